"""Which voters of a pool fit into the time that there is."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone

from .._threads import one_openmp_thread

ROWS = 2000
"""Rows of the trial."""
TRAININGS = 6
"""Of each voter: five folds and all rows."""
SLACK = 0.8
"""The share of the time that the plan may fill: estimates err."""


def within(
    named: list[tuple[str, Any]],
    X: Any,
    y: NDArray[Any],
    seconds: float,
    *,
    n_jobs: int | None,
    seed: int,
) -> tuple[list[tuple[str, Any]], list[str]]:
    """The voters that can be trained in time, and the names of the others.

    Each is trained once, on some of the rows; its time is taken to grow with the rows,
    which is what the models of the strong pool do. The slowest are left out first. The
    trial counts against the time too; where it runs out, the voters not tried are left
    out.
    """
    start = time.perf_counter()
    rows = _some_rows(y, seed)
    trial, labels = X.iloc[rows], y[rows].astype(np.uint8)
    growth = TRAININGS * len(y) / len(rows) / max(1, effective_n_jobs(n_jobs))
    cost: dict[str, float] = {}
    # The quick ones come last in the pool, and are tried first.
    for name, model in reversed(named):
        if time.perf_counter() - start > seconds * (1 - SLACK):
            break
        begun = time.perf_counter()
        with one_openmp_thread():
            clone(model).fit(trial, labels)
        cost[name] = (time.perf_counter() - begun) * growth
    left = seconds * SLACK - (time.perf_counter() - start)
    chosen: set[str] = set()
    for name, needed in sorted(cost.items(), key=lambda item: item[1]):
        left -= needed
        if left < 0:
            break
        chosen.add(name)
    return (
        [(name, model) for name, model in named if name in chosen],
        [name for name, _ in named if name not in chosen],
    )


def _some_rows(y: NDArray[Any], seed: int) -> NDArray[np.intp]:
    """Rows of all classes, in their proportions as far as the rare ones have enough."""
    if len(y) <= ROWS:
        return np.arange(len(y))
    rng = np.random.RandomState([seed, 17])
    classes, counts = np.unique(y, return_counts=True)
    *rarer, largest = np.argsort(counts, kind="stable").tolist()
    taken, room = [], ROWS
    for c in rarer:
        n = min(int(counts[c]), max(10, round(ROWS * int(counts[c]) / len(y))))
        taken.append(rng.choice(np.flatnonzero(y == classes[c]), n, replace=False))
        room -= n
    n = min(int(counts[largest]), max(10, room))
    taken.append(rng.choice(np.flatnonzero(y == classes[largest]), n, replace=False))
    return np.sort(np.concatenate(taken))
