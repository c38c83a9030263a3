"""Do the fast trees vote as well as exact CART trees? AP and F1 over random splits.

    python benchmarks/quality.py --trees cart --splits 10   # finished cells are kept
    python benchmarks/quality.py --trees fast --splits 10
    python benchmarks/quality.py --report

Each cell (dataset, trees, split) is one fit of DAMVI on 70 % of the rows, judged on the
rest, with the learned weights and with the plain vote of the same trees.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path

import numpy as np

DATASETS = {
    "mammography": "paper",
    "ozone_level": "extra",
    "webpage": "paper",
    "scania_partial": "paper",
    "census_kdd_half": "extra",
    "credit_fraud": "paper",
    "protein_homo": "paper",
}
FIELDS = [
    "dataset", "trees", "split", "rows", "f1", "ap", "f1_uniform", "ap_uniform",
    "fit_cpu_s", "scikit_learn", "numpy",
]  # fmt: skip


CENSUS_AMOUNTS = [
    "age",
    "wage_per_hour",
    "capital_gains",
    "capital_losses",
    "dividends_from_stocks",
    "num_persons_worked_for_employer",
    "weeks_worked_in_year",
]
"""The columns of the census that count something; the others are codes of categories."""


def load(name: str, folder: Path):
    import pandas as pd

    table = pd.read_parquet(folder / DATASETS[name] / f"{name}.parquet")
    y = table.pop("target").to_numpy()
    X = table.to_numpy()
    if name == "ozone_level":  # NaN planted in 10 % of the cells
        X = np.where(np.random.RandomState(0).rand(*X.shape) < 0.1, np.nan, X)
    codes = [c not in CENSUS_AMOUNTS for c in table] if name == "census_kdd_half" else None
    return X, y, codes


def run_cell(name: str, trees: str, split: int, X, y, codes) -> dict[str, object]:
    import sklearn
    from sklearn.metrics import average_precision_score, f1_score
    from sklearn.model_selection import train_test_split
    from sklearn.tree import DecisionTreeClassifier

    from damvi import DAMVIClassifier, FastTreeClassifier

    train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=split)
    estimator = (
        DecisionTreeClassifier()
        if trees == "cart"
        else FastTreeClassifier(categorical_features=codes)
    )
    model = DAMVIClassifier(estimator, random_state=split)
    start = time.process_time()
    model.fit(X[train], y[train])
    seconds = time.process_time() - start
    vote = model.vote(X[test])
    plain = model.reweigh(solver="uniform").vote(X[test])
    return {
        "dataset": name, "trees": trees, "split": split, "rows": len(train),
        "f1": f1_score(y[test], vote > 0), "ap": average_precision_score(y[test], vote),
        "f1_uniform": f1_score(y[test], plain > 0),
        "ap_uniform": average_precision_score(y[test], plain),
        "fit_cpu_s": round(seconds, 3), "scikit_learn": sklearn.__version__,
        "numpy": np.__version__,
    }  # fmt: skip


def read_cells(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [cell for cell in csv.DictReader(file) if cell["numpy"]]


def report(cells: list[dict[str, str]]) -> None:
    print("dataset          splits  measure     cart    fast    fast-cart ± se   not below")
    for name in DATASETS:
        for measure in ("ap", "f1", "ap_uniform", "f1_uniform"):
            by = {
                trees: {
                    int(c["split"]): float(c[measure])
                    for c in cells
                    if c["dataset"] == name and c["trees"] == trees
                }
                for trees in ("cart", "fast")
            }
            splits = sorted(by["cart"].keys() & by["fast"].keys())
            if len(splits) < 2:
                continue
            cart = np.array([by["cart"][s] for s in splits])
            fast = np.array([by["fast"][s] for s in splits])
            gap = fast - cart
            error = gap.std(ddof=1) / np.sqrt(len(gap))
            print(
                f"{name:16s} {len(splits):6d}  {measure:10s} {cart.mean():.4f}  "
                f"{fast.mean():.4f}  {gap.mean():+.4f} ± {error:.4f}  "
                f"{'yes' if gap.mean() >= -error else 'NO'}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("DAMVI_DATA", "../shared/data")),
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results/voters/quality_cells.csv")
    )
    parser.add_argument("--trees", choices=["cart", "fast"])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--datasets", nargs="*", default=list(DATASETS))
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    done = {(c["dataset"], c["trees"], int(c["split"])) for c in read_cells(args.out)}
    if args.trees:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        for split in range(args.splits):
            for name in args.datasets:
                if (name, args.trees, split) in done:
                    continue
                cell = run_cell(name, args.trees, split, *load(name, args.data))
                new = not args.out.exists()
                with args.out.open("a", newline="") as file:
                    writer = csv.DictWriter(file, FIELDS)
                    if new:
                        writer.writeheader()
                    writer.writerow(cell)
                print(cell, flush=True)
    if args.report:
        report(read_cells(args.out))


if __name__ == "__main__":
    main()
