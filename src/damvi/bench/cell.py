"""One cell of a table: one method, on one split of one dataset, in a process of its own.

Importing this module loads the compiled kernels, so that processes forked after it start
ready and their times are the methods' own.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, f1_score
from threadpoolctl import threadpool_limits

from ..classifier import DAMVIClassifier
from .protocol import Protocol


def _load_kernels() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 3)), rng.random(2000) < 0.3  # noise grows large trees
    for stratified in (False, True):
        model = DAMVIClassifier(n_estimators=4, stratified=stratified).fit(X, y)
        model.predict(X)


_load_kernels()


@dataclass(frozen=True)
class Task:
    """What a process needs to run one cell.

    Attributes
    ----------
    data : Path
        A folder with X.npy, y.npy and perhaps groups.npy.
    runner : int
        The number of the process that waits for the cell.
    """

    data: Path
    runner: int
    estimator: Any
    protocol: Protocol
    split: int
    ratio: float | None


def run_cell(task: Task) -> dict[str, Any]:
    """Fit on the training rows, judge on the test rows."""
    threading.Thread(target=_end_with, args=[task.runner], daemon=True).start()
    X = np.load(task.data / "X.npy", mmap_mode="r")
    y = np.load(task.data / "y.npy")
    groups_file = task.data / "groups.npy"
    groups = np.load(groups_file) if groups_file.exists() else None
    train, test = task.protocol.split(y, groups, task.split, task.ratio)
    X_train, X_test, y_train, y_test = X[train], X[test], y[train], y[test]
    cell: dict[str, Any] = {
        "rows": len(train) + len(test),
        "features": X.shape[1],
        "positives": int(y_train.sum() + y_test.sum()),
        "train_positives": int(y_train.sum()),
        "test_positives": int(y_test.sum()),
    }
    if not y_test.any():
        raise ValueError(
            "no positive among the test rows of this split; stratify the splits"
        )

    model, before = task.estimator, _peak_mb()
    # One core a cell, so that cells side by side do not fight over them.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(X_train, y_train)
        fitted = time.perf_counter()
        cell["fit_seconds"] = round(fitted - wall, 4)
        cell["fit_cpu_seconds"] = round(time.process_time() - cpu, 4)
        flagged = model.predict(X_test)
        score = model.predict_proba(X_test)[:, list(model.classes_).index(1)]
        cell["predict_seconds"] = round(time.perf_counter() - fitted, 4)
    cell["peak_mb"] = round(_peak_mb() - before, 1)
    cell["f1"] = float(f1_score(y_test, flagged, zero_division=0))
    cell["ap"] = float(average_precision_score(y_test, score))
    return cell


def _end_with(runner: int) -> None:
    """End this process when the one that waits for it is gone, killed perhaps."""
    import psutil

    while psutil.pid_exists(runner):
        time.sleep(1)
    os._exit(1)


def _peak_mb() -> float:
    """The most memory that this process has had so far."""
    import psutil

    memory = psutil.Process().memory_info()
    if hasattr(memory, "peak_wset"):  # Windows
        return memory.peak_wset / 1e6
    import resource
    import sys

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
