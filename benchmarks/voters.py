"""The built-in trees against their peers: time, memory and quality of 100 voters.

    python benchmarks/voters.py [--data FOLDER] [--datasets NAME ...]

Every fit runs in a process of its own, on the same 70 % of the rows, with two threads,
after a warm-up on a few rows. CPU and wall are the fit's; the peak is resident memory
above that of the process with the data loaded. `our trees` are the voters alone: bins,
draws, growth, and their votes on the training rows. `damvi` is the whole fit of
DAMVIClassifier, with the weights, their cross-fitting and the out-of-bag scores.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

DATASETS = {"credit_fraud": 50, "protein_homo": 30, "webpage": 10, "mammography": 10}
"""The paper's larger public datasets, and the least CPU ratio to scikit-learn's forest."""
REPEATS = {"our trees": 5, "damvi": 5}


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
            tree, X, y, sampling, self.n_estimators, n_jobs=self.n_jobs
        )
        return self

    def predict_proba(self, X):
        weights = np.full(self.n_estimators, 1 / self.n_estimators)
        share = (1 + self.voters_.weighted_vote(X, weights, self.n_jobs)) / 2
        return np.column_stack([1 - share, share])

    def predict(self, X):
        return self.predict_proba(X)[:, 1] > 0.5


def contenders():
    from imblearn.ensemble import BalancedBaggingClassifier, BalancedRandomForestClassifier
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    from damvi import DAMVIClassifier

    common = {"n_estimators": 100, "n_jobs": 2, "random_state": 0}
    return {
        "our trees": OurTrees(**common),
        "damvi": DAMVIClassifier(**common),
        "sklearn forest": RandomForestClassifier(
            max_features=None, max_samples=0.2, **common
        ),
        "sklearn bagging": BaggingClassifier(
            DecisionTreeClassifier(), max_samples=0.2, **common
        ),
        "lightgbm rf": LGBMClassifier(
            boosting_type="rf",
            bagging_fraction=0.2,
            bagging_freq=1,
            num_leaves=255,
            min_child_samples=1,
            verbose=-1,
            **common,
        ),
        "balanced forest": BalancedRandomForestClassifier(
            sampling_strategy="all", replacement=True, bootstrap=False, **common
        ),
        "balanced bagging": BalancedBaggingClassifier(**common),
    }


def load(name: str, folder: Path):
    import pandas as pd
    from sklearn.model_selection import train_test_split

    table = pd.read_parquet(folder / "paper" / f"{name}.parquet")
    y = table.pop("target").to_numpy()
    return train_test_split(table.to_numpy(), y, test_size=0.3, stratify=y, random_state=0)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_one(contender: str, dataset: str, folder: Path) -> dict[str, object]:
    import warnings

    from joblib import parallel_config
    from sklearn.base import clone
    from sklearn.metrics import average_precision_score, f1_score

    warnings.simplefilter("ignore")
    X, X_test, y, y_test = load(dataset, folder)
    model = contenders()[contender]
    few = np.concatenate([np.flatnonzero(y == 0)[:400], np.flatnonzero(y == 1)[:40]])
    # Threads for all: their CPU time is then this process's own.
    with parallel_config(backend="threading"):
        clone(model).set_params(n_estimators=4).fit(X[few], y[few]).predict_proba(X[:10])
        before = peak_mb()
        cpu, wall = time.process_time(), time.perf_counter()
        model.fit(X, y)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        peak = peak_mb() - before
        start = time.perf_counter()
        score = model.predict_proba(X_test)[:, 1]
        predict = time.perf_counter() - start
    return {
        "dataset": dataset,
        "contender": contender,
        "cpu_s": cpu,
        "wall_s": wall,
        "peak_mb": peak,
        "predict_s": predict,
        "ap": average_precision_score(y_test, score),
        "f1": f1_score(y_test, model.predict(X_test)),
    }


def measure(contender: str, dataset: str, folder: Path) -> dict[str, object]:
    """Median of a few processes; each prints its figures as JSON."""
    command = [sys.executable, __file__, "--data", str(folder), "--one", contender, dataset]
    runs = [
        json.loads(
            subprocess.run(command, capture_output=True, text=True, check=True).stdout
        )
        for _ in range(REPEATS.get(contender, 1))
    ]
    return {
        key: float(np.median([run[key] for run in runs]))
        if isinstance(value, float)
        else value
        for key, value in runs[0].items()
    }


def main() -> int:
    from setting import add_data_option, print_setting

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser)
    parser.add_argument("--datasets", nargs="*", default=list(DATASETS))
    parser.add_argument("--contenders", nargs="*", default=list(contenders()))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run_one(*args.one, args.data)))
        return 0
    print_setting("scikit-learn", "numba", "lightgbm", "imbalanced-learn")
    ok = True
    for dataset in args.datasets:
        cells = {name: measure(name, dataset, args.data) for name in args.contenders}
        forest = cells.get("sklearn forest", {"cpu_s": float("nan")})["cpu_s"]
        print(f"\n{dataset}")
        print("contender          CPU s   wall s   ratio  peak MB  predict s     AP     F1")
        for name, cell in cells.items():
            print(
                f"{name:17s} {cell['cpu_s']:7.3f}  {cell['wall_s']:7.3f} "
                f"{forest / cell['cpu_s']:7.1f} {cell['peak_mb']:8.0f} "
                f"{cell['predict_s']:10.3f}  {cell['ap']:.4f} {cell['f1']:.4f}",
                flush=True,
            )
        ratio = forest / cells["our trees"]["cpu_s"]
        ok &= not ratio < DATASETS[dataset]
        print(
            f"CPU ratio to scikit-learn's forest: {ratio:.0f}, asked: {DATASETS[dataset]}"
        )
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
