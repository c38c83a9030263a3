"""A column of very many values and one of free text: where they matter, and where not.

    python benchmarks/coin_flips.py [--out results/coin_flips] [--seeds 20] [--rows 4000]
        [--only trees|pool] [--report]

On coin-flip labels the average precision must be the rate of positives, out of sample as
on fresh rows. On tables whose levels or texts matter it must rise by them, and what is
promised out of sample must be what fresh rows give. A line is added to cells.csv for each
fit, and the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score

from damvi import DAMVIClassifier, DAMVIVotingClassifier
from damvi.tables import TableEncoder

N_LEVELS, RATE = 5000, 0.05
FEW_LEVELS = 600
"""Where levels matter: each has rows enough to tell."""
FRESH_ROWS = 4000
PERMUTATIONS = 200
WORDS = {
    "common": "the a was is of and to in on with machine part found after before it",
    "things": "pump valve motor belt shaft sensor panel filter hose frame cable screw",
    "calm": "clean fine normal quiet stable replaced routine checked fitted dry greased ok",
    "alarm": "leak smoke crack noise burnt broken loose hot stuck wet bent spill",
}
COMMON, THINGS, CALM, ALARM = (text.split() for text in WORDS.values())
MODELS: dict[str, Any] = {"trees": DAMVIClassifier, "pool": DAMVIVotingClassifier}
COLUMNS = ["table", "model", "columns", "seed", "rows", "positives", "kinds"]
COLUMNS += ["promised", "chance95", "fresh", "fresh_rate", "seconds"]
TABLES = {
    "coin flips": ("level and note",),
    "levels matter": ("neither", "level and note"),
    "text matters": ("neither", "level and note"),
}


def make(table: str, n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of a table; which levels and words matter is the same for all seeds."""
    rng = np.random.default_rng([seed, n, len(table)])
    n_levels = FEW_LEVELS if table == "levels matter" else N_LEVELS
    levels = rng.integers(0, n_levels, n)
    x = rng.normal(size=(n, 3))
    troubled = rng.random(n) < 0.15
    log_odds = np.full(n, np.log(RATE / (1 - RATE)))
    if table == "levels matter":
        effect = np.random.default_rng(7).gamma(0.3, 4, n_levels)
        log_odds += 0.5 * x[:, 0] + effect[levels] - 1.5
    elif table == "text matters":
        log_odds += 0.5 * x[:, 0] + np.where(troubled, 2.5, -0.8)
    y = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    frame["level"] = [f"customer {number:05d}" for number in levels]
    frame["note"] = [_note(rng, ALARM if bad else CALM) for bad in troubled]
    return frame, y.astype(int)


def _note(rng: np.random.Generator, tone: list[str]) -> str:
    words = [*rng.choice(COMMON, 6), *rng.choice(THINGS, 2), *rng.choice(tone, 2)]
    words = [word[:-1] if rng.random() < 0.05 else word for word in words]
    return " ".join(rng.permutation(words))


def fit(table: str, model: str, columns: str, seed: int, n: int) -> dict[str, Any]:
    """One fit, judged out of sample and on fresh rows."""
    X, y = make(table, n, seed)
    fresh, truth = make(table, FRESH_ROWS, seed + 10_000)
    drop = ["level", "note"] if columns == "neither" else []
    start = time.perf_counter()
    encoder = TableEncoder(drop=drop).fit(X)
    fitted = MODELS[model](random_state=seed).fit(encoder.transform(X), y)
    seconds = time.perf_counter() - start
    vote = fitted.decision_.out_of_sample_vote
    known = ~np.isnan(vote)
    rng = np.random.default_rng(seed)
    by_chance = [
        average_precision_score(rng.permutation(y[known]), vote[known])
        for _ in range(PERMUTATIONS)
    ]
    answers = fitted.vote(encoder.transform(fresh))
    return {
        "table": table,
        "model": model,
        "columns": columns,
        "seed": seed,
        "rows": n,
        "positives": int(y.sum()),
        "kinds": " ".join(column.kind for column in encoder.schema_.columns),
        "promised": average_precision_score(y[known], vote[known]),
        "chance95": float(np.quantile(by_chance, 0.95)),
        "fresh": average_precision_score(truth, answers),
        "fresh_rate": float(truth.mean()),
        "seconds": round(seconds, 1),
    }


def run(out: Path, seeds: int, n: int, only: str | None) -> None:
    out.mkdir(parents=True, exist_ok=True)
    path = out / "cells.csv"
    keys = COLUMNS[:5]
    done = set()
    if path.exists():
        done = {tuple(row[key] for key in keys) for row in csv.DictReader(path.open())}
    for model in [only] if only else MODELS:
        for table, variants in TABLES.items():
            # Promises and gains need fewer: they differ by more than chance does.
            for seed in range(seeds if table == "coin flips" else max(1, seeds // 5)):
                for columns in variants:
                    if tuple(map(str, (table, model, columns, seed, n))) in done:
                        continue
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        found = fit(table, model, columns, seed, n)
                    new = not path.exists()
                    with path.open("a", newline="") as file:
                        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                        if new:
                            writer.writeheader()
                        writer.writerow(found)
                    report(out)


def report(out: Path) -> None:
    """README.md, from all cells."""
    cells = pd.read_csv(out / "cells.csv")
    lines = [
        "# Very many values and free text: nothing where labels are coin flips",
        "",
        "Made by `python benchmarks/coin_flips.py`; a fit is a line of `cells.csv`. "
        f"scikit-learn {version('scikit-learn')}, numpy {version('numpy')}.",
        "",
        f"Tables have three numbers, a column of {N_LEVELS:,} values ({FEW_LEVELS} where "
        "they matter) and notes of ten words. Promised is the average precision out of "
        "sample, fresh that on 4,000 new rows; rate is that of positives, which is "
        "chance. Above chance counts the fits whose promise is above 95 % of "
        "permutations of the labels: "
        "one in twenty by chance.",
        "",
        "| table | model | level and note | fits | promised | fresh "
        "| promised - fresh, ± s.e. | rate | above chance | s a fit |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (table, model, columns), own in cells.groupby(
        ["table", "model", "columns"], sort=False
    ):
        gap = own["promised"] - own["fresh"]
        error = gap.std() / np.sqrt(len(own)) if len(own) > 1 else np.nan
        rate = (own["positives"] / own["rows"]).mean()
        above = int((own["promised"] > own["chance95"]).sum())
        lines.append(
            f"| {table} | {model} | {'with' if columns != 'neither' else 'without'} "
            f"| {len(own)} | {own['promised'].mean():.3f} | {own['fresh'].mean():.3f} "
            f"| {gap.mean():+.3f} ± {error:.3f} | {rate:.3f} | {above} of {len(own)} "
            f"| {own['seconds'].mean():.0f} |"
        )
    (out / "README.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/coin_flips"))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--only", choices=list(MODELS))
    parser.add_argument("--report", action="store_true", help="of what is there")
    asked = parser.parse_args()
    if not asked.report:
        run(asked.out, asked.seeds, asked.rows, asked.only)
    report(asked.out)


if __name__ == "__main__":
    main()
