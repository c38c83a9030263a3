"""How fast do the trees answer? Rows per second, and one row alone.

    python benchmarks/predict.py [--data FOLDER]

Three models with the very same trees (ours converted to scikit-learn's), and LightGBM
with as many trees and as many leaves. Best of five, two threads.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np


def best_seconds(call, repeats: int = 5) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def same_trees_in_scikit_learn(model):
    """A forest of scikit-learn's with our trees in it."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(len(model.estimators_), n_jobs=2)
    forest.estimators_ = [voter.to_sklearn() for voter in model.estimators_]
    forest.classes_, forest.n_classes_, forest.n_outputs_ = np.array([0, 1]), 2, 1
    forest.n_features_in_ = model.n_features_in_
    return forest


def main() -> int:
    from lightgbm import LGBMClassifier
    from setting import add_data_option, print_setting

    from damvi import DAMVIClassifier
    from voters import load

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser)
    args = parser.parse_args()
    print_setting("scikit-learn", "numba", "lightgbm")
    ok, every = True, np.full(100, 2.0**-10)
    print(
        "rows per second         rows  our trees  weighted  sklearn  lightgbm  ours/sklearn"
    )
    for name in ("credit_fraud", "protein_homo", "webpage", "mammography"):
        X, X_test, y, _ = load(name, args.data)
        X_test = np.ascontiguousarray(X_test, dtype=np.float64)
        model = DAMVIClassifier(n_jobs=2, random_state=0).fit(X, y)
        leaves = int(np.median([voter.get_n_leaves() for voter in model.estimators_]))
        peer = same_trees_in_scikit_learn(model)
        booster = LGBMClassifier(
            n_estimators=100, num_leaves=leaves, min_child_samples=1, n_jobs=2, verbose=-1
        ).fit(X, y)
        calls = {
            "ours": lambda m=model, X=X_test: m.voters_.weighted_vote(X, every, 2),
            "weighted": lambda m=model, X=X_test: m.predict_proba(X),
            "sklearn": lambda m=peer, X=X_test: m.predict_proba(X),
            "lightgbm": lambda m=booster, X=X_test: m.predict_proba(X),
        }
        speed = {key: len(X_test) / best_seconds(call) for key, call in calls.items()}
        ratio = speed["ours"] / speed["sklearn"]
        ok &= ratio >= 2 and speed["ours"] > speed["lightgbm"]
        print(
            f"{name:20s} {len(X_test):7,d} {speed['ours']:10,.0f} "
            f"{speed['weighted']:9,.0f} {speed['sklearn']:8,.0f} "
            f"{speed['lightgbm']:9,.0f} {ratio:8.1f}",
            flush=True,
        )
        if name == "credit_fraud":
            one = X_test[:1]
            whole = best_seconds(lambda m=model, x=one: m.vote(x), 200)
            core = best_seconds(
                lambda m=model, x=one: m.voters_.weighted_vote(x, m.weights_), 200
            )
    print(
        f"\none row: {1e3 * whole:.3f} ms, of which {1e3 * core:.3f} ms beyond validation"
    )
    ok &= core < 0.2e-3
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
