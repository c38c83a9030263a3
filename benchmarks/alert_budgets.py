"""Alert budgets: are as many rows flagged as were asked for, and are the hits as foreseen?

    python benchmarks/alert_budgets.py   # 200 simulations each, minutes

1. Flags: the threshold for a budget of k flags, found on the out-of-sample votes of n rows,
   and what it flags of 20,000 new rows, in % of what was asked: the mean over simulations
   and its standard error. Asked: within 10 %.
2. Hits: how often the 90 % interval of the hits in the top k holds the hits that are to be
   expected: k times the precision of the model among the top k / n of the new rows.

"known votes" are normal, and the truth is exact: what the intervals are worth by
themselves. "trees, new rows" are the votes of a fitted DAMVI on rows that it does not know,
as ``evaluate --top`` has them. "trees, out of bag" are those of its own training rows, as
``fit`` has them: there the threshold and the hits are of a vote by fewer voters than the
model's. Cells are added to results/alert_budgets/cells.csv one by one, and a run that is
interrupted goes on where it was. The seeds are not those that the code was written with.
"""

from __future__ import annotations

import csv
import json
import platform
import sys
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

import damvi
from damvi import DAMVIClassifier
from damvi.decision import tune_threshold
from damvi.evaluation import top_figures

OUT = Path("results/alert_budgets")
SIMULATIONS, FIRST_SEED, N_NEW = 200, 10_000, 20_000
RATES, SHARES = (0.02, 0.05), np.array([0.01, 0.03, 0.1])
KNOWN, NEW, BAGS = "known votes", "trees, new rows", "trees, out of bag"
SIZES = {KNOWN: (1000, 4000), NEW: (2000,)}
SEPARATION = 2.5
NAMES = ["votes", "rows", "rate", "asked", "simulations", "flags", "flags_error", "held"]
NAMES += ["mean_hits", "mean_expected", "mean_width"]
Rows = tuple[np.ndarray, np.ndarray]
"""Features or votes, and which rows are positive."""


def rows_of(n: int, rate: float, rng: np.random.Generator) -> Rows:
    positive = rng.random(n) < rate
    X = rng.standard_normal((n, 6))
    X[:, 0] += 1.5 * positive
    X[:, 1] += 1.0 * positive
    X[:, 2] += positive * rng.standard_normal(n)
    return X, positive


def known_votes(n: int, rate: float, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < rate
    while positive.sum() < 2:
        positive = rng.random(n) < rate
    return rng.standard_normal(n) + SEPARATION * positive, positive


def above(cut: float, rate: float) -> float:
    """The share of normal votes above a cut."""
    return rate * norm.sf(cut - SEPARATION) + (1 - rate) * norm.sf(cut)


def simulate(n: int, rate: float, seed: int, known: bool) -> dict[str, list[list[float]]]:
    """By votes, for each budget: flags in % of it, whether the interval holds the hits that
    are to be expected, hits, these, and the interval's width."""
    if known:
        cuts = [brentq(lambda c, s=s: above(c, rate) - s, -10, 10) for s in SHARES]
        true = [rate * norm.sf(cut - SEPARATION) for cut in cuts] / SHARES
        rows = {KNOWN: known_votes(n, rate, seed)}
        return {KNOWN: judge(*rows[KNOWN], true, lambda cut: above(cut, rate), seed)}
    rng = np.random.default_rng(seed)
    X, y = rows_of(n, rate, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DAMVIClassifier(stratified=True, random_state=seed, n_jobs=1).fit(X, y)
    Z, truth = rows_of(N_NEW, rate, rng)
    new = model.vote(Z)
    order = np.argsort(-new, kind="stable")
    true = np.array([truth[order[: round(s * N_NEW)]].mean() for s in SHARES])
    unseen = model.decision_.out_of_sample_vote
    there = ~np.isnan(unseen)
    X, positive = rows_of(n, rate, rng)
    rows = {NEW: (model.vote(X), positive), BAGS: (unseen[there], y[there])}
    return {
        name: judge(*own, true, lambda cut: float((new > cut).mean()), seed)
        for name, own in rows.items()
    }


def judge(
    vote: np.ndarray,
    positive: np.ndarray,
    true: np.ndarray,
    flagged: Callable[[float], float],
    seed: int,
) -> list[list[float]]:
    found = []
    tops = top_figures(positive, vote, SHARES * len(vote), seed=seed)
    for share, top, precision in zip(SHARES, tops, true, strict=True):
        cut = tune_threshold(vote, positive.astype(int), {"flags": (share, 1)})
        hits, expected = top.hits, top.rows * precision
        held = hits.low <= expected <= hits.high
        off = 100 * flagged(cut) / share
        found.append([off, held, hits.value, expected, hits.high - hits.low])
    return found


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / "cells.csv"
    done = set()
    if path.exists():
        with path.open(encoding="utf-8") as file:
            done = {tuple(row[:3]) for row in csv.reader(file)}
    else:
        path.write_text(",".join(NAMES) + "\n", encoding="utf-8")
    seeds = range(FIRST_SEED, FIRST_SEED + SIMULATIONS)
    for votes, sizes in SIZES.items():
        for n, rate in product(sizes, RATES):
            if (votes, str(n), str(rate)) in done:
                continue
            runs = [simulate(n, rate, seed, votes == KNOWN) for seed in seeds]
            with path.open("a", encoding="utf-8") as file:
                writer = csv.writer(file, lineterminator="\n")
                for name in runs[0]:
                    cells = np.array([run[name] for run in runs]).transpose(1, 0, 2)
                    for share, cell in zip(SHARES, cells, strict=True):
                        mean = cell.mean(axis=0)
                        error = cell[:, 0].std(ddof=1) / np.sqrt(len(cell))
                        figures = [f"{x:.4g}" for x in (mean[0], error, *mean[1:])]
                        writer.writerow([name, n, rate, share, len(cell), *figures])
    setting = {
        "command": "python benchmarks/alert_budgets.py",
        "versions": {
            "damvi": damvi.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
    }
    (OUT / "setting.json").write_text(
        json.dumps(setting, indent=1) + "\n", encoding="utf-8"
    )
    sys.exit(summary(path))


def summary(path: Path) -> int:
    """The cells as a table, and whether the flags are within 10 % of what was asked."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = [
        f"{'votes':18} {'rows':>5} {'rate':>5} {'asked':>6}  {'flagged, % of asked':>19}  "
        f"{'90 % interval held':>18}  {'mean hits':>9}  {'expected':>8}"
    ]
    for r in rows:
        lines.append(
            f"{r['votes']:18} {r['rows']:>5} {float(r['rate']):5.0%} "
            f"{float(r['asked']):6.0%}  {float(r['flags']):10.1f} ± "
            f"{float(r['flags_error']):<6.1f}  {float(r['held']):18.1%}  "
            f"{float(r['mean_hits']):9.1f}  {float(r['mean_expected']):8.1f}"
        )
    off = [r for r in rows if abs(float(r["flags"]) - 100) > 10]
    lines.append(
        f"\nFlags within 10 % of what was asked in {len(rows) - len(off)} of {len(rows)} "
        f"cells of {rows[0]['simulations']} simulations each."
    )
    for votes in dict.fromkeys(r["votes"] for r in rows):
        held = [float(r["held"]) for r in rows if r["votes"] == votes]
        lines.append(
            f"The 90 % interval of the hits held in {min(held):.1%} to {max(held):.1%} "
            f"({votes}; mean {np.mean(held):.1%})."
        )
    text = "\n".join(lines) + "\n"
    print(text)
    (OUT / "summary.txt").write_text(
        f"$ python benchmarks/alert_budgets.py\n\n{text}", encoding="utf-8"
    )
    return int(bool(off))


if __name__ == "__main__":
    main()
