"""The paper's Mammography row: F1 and AP over five random 70/30 splits.

    python benchmarks/paper_mammography.py   # about a minute

DAMVI with plain CART trees, as in the paper, beside the plain vote of the same trees, a
random forest and, where it is installed, LightGBM, each at its default settings and
threshold; and DAMVI as its threshold and weights can be set. The exit status tells whether
DAMVI's F1 and AP agree with the paper's: whether they lie within two standard errors of the
difference.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec

import numpy as np
from setting import print_setting
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier
from damvi.datasets import load

# Goyal and Khiari (2020), the tables of F1 scores and of average precision, row DAMVI,
# column Mammography: mean and standard deviation over five splits.
PAPER_SPLITS = 5
PAPER = {"F1": (0.6661, 0.023), "AP": (0.7142, 0.039)}


def contenders(seed: int) -> dict[str, object]:
    trees = DecisionTreeClassifier()
    models = {
        "DAMVI": DAMVIClassifier(trees, random_state=seed),
        "DAMVI, tuned": DAMVIClassifier(
            trees, fit_intercept=True, shrinkage=0.5, threshold="f1", random_state=seed
        ),
        "plain vote, same trees": DAMVIClassifier(
            trees, solver="uniform", random_state=seed
        ),
        "random forest": RandomForestClassifier(random_state=seed),
    }
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        models["LightGBM"] = LGBMClassifier(random_state=seed, verbose=-1)
    return models


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5, help="seeds 0, 1, ...")
    n_splits = parser.parse_args().splits
    peers = ["lightgbm"] if find_spec("lightgbm") else []
    print_setting("numpy", "scipy", "scikit-learn", *peers)
    data = load("mammography")
    scores: dict[str, list[tuple[float, float]]] = {}
    for seed in range(n_splits):
        X, X_test, y, y_test = train_test_split(
            data.data, data.target, test_size=0.3, random_state=seed
        )
        for name, model in contenders(seed).items():
            model.fit(X, y)
            f1 = f1_score(y_test, model.predict(X_test))
            ap = average_precision_score(y_test, model.predict_proba(X_test)[:, 1])
            scores.setdefault(name, []).append((f1, ap))

    print(f"{'mean ± std of ' + str(n_splits) + ' splits':24} {'F1':>15} {'AP':>15}")
    summary = {
        name: (np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1))
        for name, rows in scores.items()
    }
    for name, (mean, std) in summary.items():
        cells = [f"{m:.4f} ± {s:.4f}" for m, s in zip(mean, std, strict=True)]
        print(f"{name:24} {cells[0]:>15} {cells[1]:>15}")
    cells = [f"{m:.4f} ± {s:.3f} " for m, s in PAPER.values()]
    print(f"{'DAMVI in the paper':24} {cells[0]:>15} {cells[1]:>15}\n")

    failures = 0
    mean, std = summary["DAMVI"]
    for j, (measure, (paper, paper_std)) in enumerate(PAPER.items()):
        gap = mean[j] - paper
        allowed = 2 * np.sqrt(std[j] ** 2 / n_splits + paper_std**2 / PAPER_SPLITS)
        within = abs(gap) <= allowed
        failures += not within
        print(
            f"{measure}: ours {mean[j]:.4f}, paper {paper:.4f}, difference {gap:+.4f}, "
            f"allowed {allowed:.4f}: {'within' if within else 'OUTSIDE'}"
        )
    return failures


if __name__ == "__main__":
    sys.exit(main())
