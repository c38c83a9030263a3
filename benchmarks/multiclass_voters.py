"""The built-in trees on many classes against scikit-learn's forest: 100 voters of each.

    python benchmarks/multiclass_voters.py

A generated set of ten classes, the largest 25 times the smallest: 100,000 rows of 30
features to learn from and 30,000 to judge by. As in voters.py, every fit runs in a process
of its own, with two threads, after a warm-up on a few rows. `our trees` are the voters
alone: bins, draws, growth, and their votes on the training rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import numpy as np
from sklearn.base import BaseEstimator

from voters import peak_mb

ASKED = 20
CLASSES, ROWS, TEST_ROWS, FEATURES = 10, 100_000, 30_000, 30
REPEATS = {"our trees": 5, "our forest": 3}


class OurTrees(BaseEstimator):
    """The voters of DAMVI, and their plain vote."""

    def __init__(self, n_estimators=100, n_jobs=2, random_state=0):
        self.n_estimators = n_estimators
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X, y):
        from damvi.voters import BootstrapSampling, FastTreeClassifier
        from damvi.voters.trees.estimators import TreeVoters

        tree = FastTreeClassifier()
        sampling = BootstrapSampling.plan(y, max_samples=0.2, seed=self.random_state)
        self.voters_, _ = TreeVoters.train(
            tree,
            X,
            y,
            sampling,
            self.n_estimators,
            n_classes=CLASSES,
            n_jobs=self.n_jobs,
        )
        return self

    def predict_proba(self, X):
        weights = np.full(self.n_estimators, 1 / self.n_estimators)
        return self.voters_.weighted_vote(X, weights, self.n_jobs)

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)


def contenders():
    from sklearn.ensemble import RandomForestClassifier

    from damvi.voters import FastForestClassifier

    common = {"n_estimators": 100, "n_jobs": 2, "random_state": 0}
    alike = {"max_features": None, "max_samples": 0.2}
    return {
        "our trees": OurTrees(**common),
        "our forest": FastForestClassifier(**alike, **common),
        "sklearn forest": RandomForestClassifier(**alike, **common),
    }


def generate():
    from sklearn.datasets import make_classification

    shares = 0.7 ** np.arange(CLASSES)
    X, y = make_classification(
        ROWS + TEST_ROWS,
        FEATURES,
        n_informative=12,
        n_redundant=6,
        n_classes=CLASSES,
        weights=shares / shares.sum(),
        random_state=0,
    )
    return X[:ROWS], X[ROWS:], y[:ROWS], y[ROWS:]


def run_one(contender: str) -> dict[str, float]:
    from joblib import parallel_config
    from sklearn.base import clone
    from sklearn.metrics import f1_score

    X, X_test, y, y_test = generate()
    model = contenders()[contender]
    # Threads for all: their CPU time is then this process's own.
    with parallel_config(backend="threading"):
        clone(model).set_params(n_estimators=4).fit(X[:4000], y[:4000]).predict(X[:10])
        before = peak_mb()
        cpu, wall = time.process_time(), time.perf_counter()
        model.fit(X, y)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        peak = peak_mb() - before
        start = time.perf_counter()
        predicted = model.predict(X_test)
        predict = time.perf_counter() - start
    return {
        "cpu_s": cpu,
        "wall_s": wall,
        "peak_mb": peak,
        "predict_s": predict,
        "macro_f1": f1_score(y_test, predicted, average="macro"),
        "accuracy": float((predicted == y_test).mean()),
    }


def measure(contender: str) -> dict[str, float]:
    """Median of a few processes; each prints its figures as JSON."""
    command = [sys.executable, __file__, "--one", contender]
    runs = [
        json.loads(
            subprocess.run(command, capture_output=True, text=True, check=True).stdout
        )
        for _ in range(REPEATS.get(contender, 1))
    ]
    return {key: float(np.median([run[key] for run in runs])) for key in runs[0]}


def main() -> int:
    from setting import print_setting

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--contenders", nargs="*", default=list(contenders()))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run_one(args.one)))
        return 0
    print_setting("scikit-learn", "numba", "numpy")
    print(f"{CLASSES} classes, {ROWS:,} x {FEATURES}, 100 trees each")
    print("contender             CPU s   wall s  peak MB  predict s  macro F1  accuracy")
    cells = {}
    for name in args.contenders:
        cell = cells[name] = measure(name)
        print(
            f"{name:19s} {cell['cpu_s']:7.2f}  {cell['wall_s']:7.2f} "
            f"{cell['peak_mb']:8.0f} {cell['predict_s']:10.3f}  "
            f"{cell['macro_f1']:8.4f}  {cell['accuracy']:8.4f}",
            flush=True,
        )
    if not {"our trees", "sklearn forest"} <= set(cells):
        return 0
    ratio = cells["sklearn forest"]["cpu_s"] / cells["our trees"]["cpu_s"]
    print(f"\nCPU ratio to scikit-learn's forest: {ratio:.1f}, asked: {ASKED}")
    return 0 if ratio >= ASKED else 1


if __name__ == "__main__":
    sys.exit(main())
