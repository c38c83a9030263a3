"""Alert budgets: are as many rows flagged as were asked for, and are the hits as foreseen?

    python benchmarks/alert_budgets.py   # 200 simulations each, about six minutes

1. Flags: the threshold for a budget of k flags, found on the out-of-sample votes of n rows,
   and what it flags of 50,000 new rows, in % of what was asked: the mean over simulations
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
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

import damvi
from damvi import DAMVIClassifier
from damvi.decision import tune_threshold
from damvi.evaluation import top_figures

OUT = Path("results/alert_budgets")
SIMULATIONS, FIRST_SEED, N_NEW = 200, 10_000, 50_000
SIZES, RATES = (1000, 4000), (0.02, 0.05)
SHARES = (0.01, 0.03, 0.1)
SEPARATION = 2.5
NAMES = ["votes", "rows", "rate", "asked", "simulations", "flags", "flags_error", "held"]
NAMES += ["mean_hits", "mean_expected", "mean_width"]
Vote = tuple[np.ndarray, np.ndarray]
"""Votes, and which rows are positive."""


def rows_of(n: int, rate: float, rng: np.random.Generator) -> Vote:
    positive = rng.random(n) < rate
    X = rng.standard_normal((n, 6))
    X[:, 0] += 1.5 * positive
    X[:, 1] += 1.0 * positive
    X[:, 2] += positive * rng.standard_normal(n)
    return X, positive


def known_votes(n: int, rate: float, seed: int) -> Vote:
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < rate
    while positive.sum() < 2:
        positive = rng.random(n) < rate
    return rng.standard_normal(n) + SEPARATION * positive, positive


def exact(rate: float, share: float) -> tuple[float, Callable[[float], float]]:
    """The precision among the top share, and the share above a cut."""

    def above(cut: float) -> float:
        return rate * norm.sf(cut - SEPARATION) + (1 - rate) * norm.sf(cut)

    cut = brentq(lambda cut: above(cut) - share, -10, 10)
    return float(rate * norm.sf(cut - SEPARATION) / share), above


def simulate(votes: str, n: int, rate: float, seed: int) -> list[list[float]]:
    """For each budget: flags in % of it, whether the interval holds, hits, width."""
    if votes == "known votes":
        vote, positive = known_votes(n, rate, seed)
        new = truth = None
    else:
        rng = np.random.default_rng(seed)
        X, y = rows_of(n, rate, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DAMVIClassifier(stratified=True, random_state=seed, n_jobs=1).fit(X, y)
        Z, truth = rows_of(N_NEW, rate, rng)
        new = model.vote(Z)
        if votes == "trees, new rows":
            X, positive = rows_of(n, rate, rng)
            vote = model.vote(X)
        else:
            vote = model.decision_.out_of_sample_vote
            there = ~np.isnan(vote)
            vote, positive = vote[there], y[there]
    found = []
    for share in SHARES:
        number = share * len(vote)
        cut = tune_threshold(vote, positive.astype(int), {"flags": (share, 1)})
        (top,) = top_figures(positive, vote, [number], seed=seed)
        if new is None or truth is None:
            precision, above = exact(rate, share)
            flagged = above(cut)
        else:
            flagged = (new > cut).mean()
            (whole,) = top_figures(truth, new, [share * N_NEW])
            precision = whole.precision.value
        expected = number * precision
        hits = top.hits
        held = hits.low <= expected <= hits.high
        width = hits.high - hits.low
        found.append([100 * flagged / share, held, hits.value, expected, width])
    return found


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / "cells.csv"
    done = set()
    if path.exists():
        with path.open() as file:
            done = {tuple(row[:3]) for row in csv.reader(file)}
    else:
        path.write_text(",".join(NAMES) + "\n")
    for votes in ("known votes", "trees, new rows", "trees, out of bag"):
        for n in SIZES:
            for rate in RATES:
                if (votes, str(n), str(rate)) in done:
                    continue
                seeds = range(FIRST_SEED, FIRST_SEED + SIMULATIONS)
                cells = np.array([simulate(votes, n, rate, seed) for seed in seeds])
                with path.open("a") as file:
                    for share, cell in zip(SHARES, cells.transpose(1, 0, 2), strict=True):
                        mean, error = (
                            cell.mean(0),
                            cell[:, 0].std(ddof=1) / np.sqrt(len(cell)),
                        )
                        row = [mean[0], error, *mean[1:]]
                        csv.writer(file, lineterminator="\n").writerow(
                            [votes, n, rate, share, len(cell)] + [f"{x:.4g}" for x in row]
                        )
    setting = {
        "command": "python benchmarks/alert_budgets.py",
        "versions": {
            "damvi": damvi.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
    }
    (OUT / "setting.json").write_text(json.dumps(setting, indent=1) + "\n")
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
    (OUT / "summary.txt").write_text(f"$ python benchmarks/alert_budgets.py\n\n{text}")
    return int(bool(off))


if __name__ == "__main__":
    main()
