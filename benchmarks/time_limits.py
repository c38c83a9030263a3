"""How well a time limit is kept, and what memory a strong fit takes.

    python benchmarks/time_limits.py [--rows 200000] [--limits 3 10 30 60] [--jobs 2]
    python benchmarks/time_limits.py --memory [--rows 200000] [--limits 0 60] [--jobs 2]

A generated table of 30 columns, 3 % positive, and 50,000 fresh rows. The first command says
what was asked, what was taken, and what came of it; run it alone. The second measures the
peak of memory of the strong model with each limit (0 is none), and then of each voter that
was trained for it, once and alone; each in a process of its own, that has the table and all
libraries in memory before it begins. What was aimed at is no more than the two largest
voters need.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from setting import print_setting
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score

from damvi import DAMVIVotingClassifier
from damvi.voters import FastForestClassifier, strong_pool

FRESH = 50_000
FEW = 2000
MB = 1e6


def made_up(rows: int) -> tuple[np.ndarray, np.ndarray]:
    found = make_classification(rows, 30, n_informative=10, weights=[0.97], random_state=0)
    return found[0], found[1]


def keep_limits(rows: int, limits: list[float], jobs: int) -> None:
    X, y = made_up(rows + FRESH)
    # Kernels are compiled once on a machine, and loaded here.
    FastForestClassifier(2, random_state=0).fit(X[:FEW], y[:FEW])
    print(f"\n{rows:,} rows, {jobs} jobs, load {os.getloadavg()[0]:.1f} before")
    for limit in limits:
        model = DAMVIVotingClassifier(time_limit=limit, n_jobs=jobs, random_state=0)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few rows
            model.fit(X[:rows], y[:rows])
        took = time.perf_counter() - start
        positive = list(model.classes_).index(model.pos_label_)
        chance = model.predict_proba(X[rows:])[:, positive]
        score = average_precision_score(y[rows:] == model.pos_label_, chance)
        used = [name for name, _ in model.estimators_used_]
        print(
            f"asked {limit:3g} s, took {took:5.1f} ({took / limit - 1:+.0%}), "
            f"AP {score:.4f}: {', '.join(used)}",
            flush=True,
        )


def write_table(rows: int, folder: Path) -> None:
    for name, values in zip("Xy", made_up(rows), strict=True):
        np.save(folder / name, values)


def peak(what: str | float | None, folder: Path, jobs: int) -> tuple[float, float, Any]:
    """Bytes above the table, seconds, and who was trained: a voter, or all with a limit."""
    import psutil

    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    warnings.simplefilter("ignore")  # of few rows
    pool = dict(strong_pool(0, y, extended=True))
    for voter in pool.values():  # loads libraries and kernels
        clone(voter).fit(X[:FEW], y[:FEW])
    model: Any
    if isinstance(what, str):
        model = pool[what]
    else:
        model = DAMVIVotingClassifier(time_limit=what, n_jobs=jobs, random_state=0)
    before, start = psutil.Process().memory_info().rss, time.perf_counter()
    model.fit(X, y)
    took, unit = time.perf_counter() - start, 1 if sys.platform == "darwin" else 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return most - before, took, list(getattr(model, "seconds_", ()))


def in_own_process(call: Any, *given: Any) -> Any:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(call, *given).result()


def measure_memory(rows: int, limits: list[float], jobs: int) -> None:
    alone: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        in_own_process(write_table, rows, folder)
        size = (folder / "X.npy").stat().st_size / MB
        print(f"{rows:,} rows of 30 columns, {size:.0f} MB; {jobs} jobs. MB above that:\n")
        for limit in (one or None for one in limits):
            found, took, used = in_own_process(peak, limit, folder, jobs)
            label = "no limit" if limit is None else f"{limit:g} s"
            print(f"strong, {label}: {found / MB:.0f} MB, {took:.1f} s", flush=True)
            for voter in used:
                if voter not in alone:
                    alone[voter], took, _ = in_own_process(peak, voter, folder, jobs)
                    told = f"{alone[voter] / MB:.0f} MB, {took:.1f} s"
                    print(f"  {voter} alone: {told}", flush=True)
            largest = sorted(used, key=lambda voter: -alone[voter])[:jobs]
            allowed = sum(alone[voter] for voter in largest)
            told = f"{' and '.join(largest)}, {allowed / MB:.0f} MB together"
            print(f"  {found / allowed:.2f} of the largest: {told}\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--limits", type=float, nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--memory", action="store_true")
    args = parser.parse_args()
    print_setting("numpy", "scikit-learn", "lightgbm", "xgboost", "catboost")
    if args.memory:
        measure_memory(args.rows, args.limits or [0.0, 60.0], args.jobs)
    else:
        keep_limits(args.rows, args.limits or [3.0, 10.0, 30.0, 60.0], args.jobs)


if __name__ == "__main__":
    main()
