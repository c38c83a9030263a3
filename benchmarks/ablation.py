"""What each step adds: uniform vote, C-bound weights, reweighting, solver, threshold.

    python benchmarks/ablation.py [--data FOLDER] [--splits 20] [--out results/ablation]

All contenders of a split vote with the same trees (the same seed draws the same rows).
Cells are kept as they finish, and the same command goes on where it stopped. The intervals
are those of Nadeau and Bengio's corrected t-test, which allows for splits that overlap; the
last line takes the datasets as the sample.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy.stats import t as student

DATASETS = (
    "mammography",
    "webpage",
    "scania_partial",
    "protein_homo",
    "credit_fraud",
    "ozone_level",
    "letter_img",
    "satimage",
    "abalone_19",
    "ai4i2020",
)
METHODS = (
    "uniform",
    "C-bound",
    "DAMVI",
    "SLSQP",
    "uniform-f1",
    "DAMVI-f1",
    "constant-f1",
)
STEPS = (
    ("learned weights, no reweighting", "uniform", "C-bound"),
    ("reweighting", "C-bound", "DAMVI"),
    ("the paper whole", "uniform", "DAMVI"),
    ("exact instead of SLSQP", "SLSQP", "DAMVI"),
)
BEYOND = (
    ("threshold tuned for F1", "DAMVI", "DAMVI-f1"),
    ("learned weights, both tuned", "uniform-f1", "DAMVI-f1"),
    ("a constant and shrinkage .5", "DAMVI-f1", "constant-f1"),
    ("all of it", "DAMVI", "constant-f1"),
)
"""Beyond the paper: what ``DAMVIClassifier`` can be told to do."""
TEST_SHARE = 0.3


def corrected_interval(differences: np.ndarray) -> tuple[float, float]:
    """Mean and half width of the 95 % interval, for splits that share rows."""
    n = len(differences)
    inflation = 1 / n + TEST_SHARE / (1 - TEST_SHARE)
    half = student.ppf(0.975, n - 1) * np.sqrt(inflation * differences.var(ddof=1))
    return float(differences.mean()), float(half)


def plain_interval(values: np.ndarray) -> tuple[float, float]:
    n = len(values)
    return float(values.mean()), float(
        student.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)
    )


def show(mean: float, half: float) -> str:
    clear = "  " if abs(mean) <= half else " *"
    return f"{mean:+.4f} ± {half:.4f}{clear}"


def table(cells: list[dict], metric: str, steps: tuple = STEPS) -> list[str]:
    scores = {(c["dataset"], c["method"], c["split"]): c[metric] for c in cells}
    datasets = list(dict.fromkeys(c["dataset"] for c in cells))
    splits = sorted({c["split"] for c in cells})
    lines = [
        f"| {metric.upper()}: change by | {' | '.join(name for name, *_ in steps)} |",
        "|---" * (len(steps) + 1) + "|",
    ]
    means: dict[str, list[float]] = {name: [] for name, *_ in steps}
    for dataset in datasets:
        row = [dataset]
        for name, before, after in steps:
            differences = np.array(
                [scores[dataset, after, s] - scores[dataset, before, s] for s in splits]
            )
            mean, half = corrected_interval(differences)
            means[name].append(mean)
            row.append(show(mean, half))
        lines.append(f"| {' | '.join(row)} |")
    overall = [show(*plain_interval(np.array(means[name]))) for name, *_ in steps]
    lines.append(f"| **mean over {len(datasets)} datasets** | {' | '.join(overall)} |")
    return lines


def main() -> int:
    from paper.__main__ import follow
    from paper.data import load
    from paper.page import cells_csv
    from paper.protocol import Protocol
    from paper.runner import Plan, run
    from paper.store import write_whole
    from setting import add_data_option, print_setting

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("results/ablation"))
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    datasets = (load(name, args.data) for name in args.datasets)
    plan = Plan(datasets, METHODS, args.splits)
    cells = run(plan, args.out, Protocol(), n_jobs=args.jobs, follow=follow)
    broken = [cell for cell in cells if cell["status"] != "done"]
    if broken:
        print(f"{len(broken)} cells were not done, the first: {broken[0]['note']}")
        return 1
    print_setting("scikit-learn", "numpy", "scipy")
    lines = [
        f"{args.splits} plain random 70/30 splits, the same trees in each column; * marks",
        "an interval (95 %) that leaves 0 out.",
        "",
    ]
    for steps in (STEPS, BEYOND):
        for metric in ("f1", "ap"):
            lines += [*table(cells, metric, steps), ""]
    text = "\n".join(lines)
    print(text)
    write_whole(args.out / "ablation.md", text)
    write_whole(args.out / "cells.csv", cells_csv(cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
