"""Three or more classes: DAMVI against a plain vote, balanced forests and LightGBM.

    python benchmarks/multiclass.py [--out results/multiclass] [--splits 5] [--report]

A cell is one split of one dataset by one group of methods. Cells are kept as they finish
and the same command goes on where it stopped. Generated tables are trained on a third of
their rows and judged on the rest, digits on half. ``--report`` writes the tables of the
cells that are there.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from multiclass_data import DATASETS, Table
from sklearn.metrics import average_precision_score, balanced_accuracy_score, f1_score
from sklearn.model_selection import cross_val_predict, train_test_split

MEASURES = ("macro F1", "balanced accuracy", "macro AP")
PACKAGES = ("numpy", "scikit-learn", "imbalanced-learn", "lightgbm", "xgboost", "catboost")
METHODS = (
    "DAMVI",
    "uniform vote, same trees",
    "DAMVI, factors",
    "DAMVI out of bag, factors",
    "uniform vote, factors",
    "balanced random forest",
    "LightGBM",
    "LightGBM, factors",
    "DAMVI strong",
)
Judged = tuple[str, np.ndarray, np.ndarray]


def vote_of_trees(X: Any, y: Any, X_new: Any, seed: int) -> Iterator[Judged]:
    from damvi import DAMVIClassifier

    model = DAMVIClassifier(votes="oob", threshold="macro_f1", random_state=seed)
    model.fit(X, y)
    yield "DAMVI out of bag, factors", model.predict(X_new), model.vote(X_new)
    model = DAMVIClassifier(random_state=seed).fit(X, y)
    for name, settings in (
        ("DAMVI", {}),
        ("DAMVI, factors", {"threshold": "macro_f1"}),
        ("uniform vote, factors", {"solver": "uniform"}),
        ("uniform vote, same trees", {"threshold": "vote"}),
    ):
        model.reweigh(**settings)
        yield name, model.predict(X_new), model.vote(X_new)


def balanced_forest(X: Any, y: Any, X_new: Any, seed: int) -> Iterator[Judged]:
    from imblearn.ensemble import BalancedRandomForestClassifier

    model = BalancedRandomForestClassifier(
        100, sampling_strategy="all", replacement=True, bootstrap=False, random_state=seed
    ).fit(X, y)
    yield "balanced random forest", model.predict(X_new), model.predict_proba(X_new)


def lightgbm(X: Any, y: Any, X_new: Any, seed: int) -> Iterator[Judged]:
    from lightgbm import LGBMClassifier

    from damvi.decision import tune_threshold

    model = LGBMClassifier(
        n_estimators=200,
        learning_rate=0.05,
        min_child_samples=5,
        n_jobs=1,
        random_state=seed,
        verbose=-1,
    )
    out_of_fold = cross_val_predict(model, X, y, cv=3, method="predict_proba")
    chances = model.fit(X, y).predict_proba(X_new)
    yield "LightGBM", model.predict(X_new), chances
    factors = tune_threshold(out_of_fold, y, "macro_f1")
    yield "LightGBM, factors", (chances * factors).argmax(axis=1), chances


def strong(X: Any, y: Any, X_new: Any, seed: int) -> Iterator[Judged]:
    from damvi import DAMVIVotingClassifier

    model = DAMVIVotingClassifier(cv=3, random_state=seed).fit(X, y)
    yield "DAMVI strong", model.predict(X_new), model.predict_proba(X_new)


GROUPS = (vote_of_trees, balanced_forest, lightgbm, strong)


def judge(y: np.ndarray, decided: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    precisions = [
        average_precision_score(y == c, scores[:, c]) for c in range(scores.shape[1])
    ]
    return {
        "macro F1": float(f1_score(y, decided, average="macro")),
        "balanced accuracy": float(balanced_accuracy_score(y, decided)),
        "macro AP": float(np.mean(precisions)),
    }


def run(table: Table, dataset: str, split: int, group: Any) -> list[dict[str, Any]]:
    X, y = table
    X, X_new, y, y_new = train_test_split(
        X,
        y,
        test_size=0.5 if dataset.startswith("digits") else 2 / 3,
        random_state=split,
        stratify=y,
    )
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            {"method": name, **judge(y_new, decided, scores)}
            for name, decided, scores in group(X, y, X_new, split)
        ]
    seconds = time.process_time() - start
    common = {"dataset": dataset, "split": split, "group": group.__name__}
    return [common | one | {"cpu_seconds": round(seconds, 2)} for one in found]


def report(cells: list[dict[str, Any]], out: Path) -> None:
    names = [name for name in DATASETS if any(c["dataset"] == name for c in cells)]
    lines = ["# Three or more classes", ""]
    note = out / "NOTE.md"
    if note.exists():
        lines += [note.read_text(encoding="utf-8").strip(), ""]
    lines += ["| dataset | rows | classes, by rows |", "|---|---|---|"]
    for name in names:
        counts = np.sort(np.bincount(DATASETS[name]()[1]))[::-1]
        lines.append(f"| {name} | {counts.sum()} | {', '.join(map(str, counts))} |")
    for measure in MEASURES:
        lines += ["", f"## {measure}", "", "| method | " + " | ".join(names) + " | mean |"]
        lines.append("|---" * (len(names) + 2) + "|")
        for method in METHODS:
            row, means = [method], []
            for name in names:
                values = [
                    cell[measure]
                    for cell in cells
                    if (cell["dataset"], cell["method"]) == (name, method)
                ]
                means.append(np.mean(values) if values else np.nan)
                spread = f" ± {np.std(values):.3f}" if len(values) > 1 else ""
                row.append(f"{means[-1]:.3f}{spread}" if values else "-")
            lines.append("| " + " | ".join([*row, f"{np.mean(means):.3f}"]) + " |")
    seconds = {(c["dataset"], c["split"], c["group"]): c["cpu_seconds"] for c in cells}
    found = {"python": platform.python_version()} | {p: version(p) for p in PACKAGES}
    lines += [
        "",
        f"Mean ± standard deviation over {1 + max(c['split'] for c in cells)} splits. "
        f"`python benchmarks/multiclass.py`, {sum(seconds.values()) / 60:.0f} CPU minutes; "
        + ", ".join(f"{name} {number}" for name, number in found.items())
        + ".",
        "",
    ]
    (out / "README.md").write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/multiclass"))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "cells.jsonl"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    cells = [json.loads(line) for line in text.splitlines()]
    done = {(cell["dataset"], cell["split"], cell["group"]) for cell in cells}
    splits = range(0 if options.report else options.splits)
    for group, split, name in product(GROUPS, splits, DATASETS):
        if (name, split, group.__name__) in done:
            continue
        found = run(DATASETS[name](), name, split, group)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(cell) + "\n" for cell in found)
        cells += found
        print(name, split, group.__name__, found[0]["cpu_seconds"], flush=True)
    report(cells, options.out)


if __name__ == "__main__":
    main()
