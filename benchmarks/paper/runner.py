"""Run the cells that are missing, each in a process of its own, and store them.

A cell is one method on one split of one dataset.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import platform
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, f1_score
from threadpoolctl import threadpool_limits

import damvi

from .methods import make_method
from .protocol import Protocol
from .store import Cell, Store, read_cells

PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "imbalanced-learn",
    "lightgbm",
    "xgboost",
)
Follow = Callable[[int, int, float | None, Cell | None], None]


@dataclass(frozen=True)
class Plan:
    """A table's worth of cells.

    Attributes
    ----------
    datasets : iterable of Bunch
        As ``data.load`` returns them; an iterator is loaded one by one.
    methods : sequence of str
    n_splits : int
    ratios : sequence
        Shares of positives to thin the data to; None is the data as it is.
    trees : {"fast", "cart"}
    """

    datasets: Iterable[Any]
    methods: Sequence[str]
    n_splits: int = 5
    ratios: Sequence[float | None] = (None,)
    trees: str = "fast"


@dataclass(frozen=True)
class Pending:
    """A cell that is to be run, by what estimator, and where its data lie."""

    cell: Cell
    estimator: Any
    data: Path
    cost: float
    megabytes: float


@dataclass(frozen=True)
class Task:
    """What a process needs to run one cell; ``runner`` is the process that waits for it."""

    data: Path
    runner: int
    estimator: Any
    protocol: Protocol
    split: int
    ratio: float | None


def run(
    plan: Plan,
    folder: Path,
    protocol: Protocol,
    *,
    n_jobs: int = 1,
    memory_mb: float | None = None,
    time_limit: float = 3600.0,
    follow: Follow | None = None,
    dry: bool = False,
) -> list[Cell]:
    """Run what is missing of a plan; return all its cells, in the plan's order.

    Cells that the folder already holds, made by the same settings on the same data, are
    not run again; those it holds beyond the plan (more methods, splits or datasets) come
    last, if they were made with the same trees, and of the same data. A cell that fails
    or exceeds ``time_limit`` seconds says so in its status and note, and the rest goes on.

    Parameters
    ----------
    n_jobs : int, default=1
        Cells at a time, one core each.
    memory_mb : float, optional
        What cells that run at the same time may need together. By default four fifths of
        the memory that is free.
    follow : callable, optional
        Called before the first cell and after each with the numbers done and in all, the
        seconds left as far as they can be told, and the cell.
    dry : bool, default=False
        Run nothing: ``follow`` hears how many cells are missing.
    """
    with Store(folder, protocol.as_dict()) as store, _scratch(folder) as scratch:
        known = {cell["key"]: cell for cell in read_cells(folder)}
        wanted, pending = [], []
        for work in cells_of(plan, protocol, scratch):
            wanted.append(work.cell["key"])
            if not _is_settled(known.get(work.cell["key"]), time_limit):
                pending.append(work)
        watch = Stopwatch(pending, n_jobs)
        if follow:
            follow(0, len(pending), None, None)
        if dry:
            pending = []
        for done, (work, outcome) in enumerate(
            _run_side_by_side(pending, protocol, n_jobs, memory_mb, time_limit), 1
        ):
            cell = {**work.cell, **outcome}
            store.add(cell)
            known[cell["key"]] = cell
            watch.note(work, outcome)
            if follow:
                follow(done, len(pending), watch.seconds_left(), cell)
    cells = [known[key] for key in wanted if key in known]
    return cells + _beyond(cells, known.values())


def cells_of(plan: Plan, protocol: Protocol, scratch: Path) -> Iterator[Pending]:
    """Every cell of a plan, with the folder of its data, and a guess at its weight."""
    versions, names = _versions(), set[str]()
    for number, dataset in enumerate(plan.datasets):
        if dataset.name in names:
            raise ValueError(f"two datasets have the name {dataset.name}; rename one")
        names.add(dataset.name)
        if protocol.splits == "groups" and dataset.get("groups") is None:
            raise ValueError(
                f"splits by groups need to know the groups, and {dataset.name} has none; "
                f"use random or stratified splits"
            )
        X = np.ascontiguousarray(dataset.data, dtype=np.float64)
        y = np.asarray(dataset.target, dtype=np.int8)
        data = scratch / str(number)
        data.mkdir()
        np.save(data / "X.npy", X)
        np.save(data / "y.npy", y)
        groups = dataset.get("groups")
        if groups is not None:
            groups = np.unique(np.asarray(groups), return_inverse=True)[1]
            np.save(data / "groups.npy", groups)
        digest = fingerprint(X, y, groups if protocol.splits == "groups" else None)
        megabytes = 150 + 8 * X.nbytes / 1e6
        for split, ratio, method in product(
            range(plan.n_splits), plan.ratios, plan.methods
        ):
            seed = protocol.seed + split
            model = make_method(method, trees=plan.trees, random_state=seed)
            place = {
                "dataset": dataset.name,
                "method": method,
                "split": split,
                "ratio": ratio,
            }
            settings = {
                **place,
                "data": digest,
                # Only what is not a default: a new parameter leaves old cells as they are.
                "estimator": " ".join(model.__repr__(N_CHAR_MAX=10**6).split()),
                "trees": plan.trees,
                **protocol.as_dict(),
            }
            key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
            cell = {"key": key.hexdigest()[:32], **place}
            cell |= {"settings": settings, "versions": versions}
            yield Pending(cell, model, data, float(X.size), megabytes)


def fingerprint(
    X: NDArray[np.float64], y: NDArray[np.int8], groups: NDArray[np.intp] | None = None
) -> str:
    """A digest of the data, so that cells of other data are told apart."""
    digest = hashlib.sha256(repr(X.shape).encode())
    digest.update(X.data if X.size else b"")
    digest.update(np.ascontiguousarray(y).data)
    if groups is not None:
        digest.update(np.ascontiguousarray(groups, dtype=np.int64).data)
    return digest.hexdigest()[:16]


def _versions() -> dict[str, str]:
    found = {"damvi": damvi.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


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


def _beyond(cells: list[Cell], stored: Iterable[Cell]) -> list[Cell]:
    """Stored cells that belong in one table with these."""

    def place(cell: Cell) -> tuple[Any, ...]:
        return cell["dataset"], cell["method"], cell["split"], cell["ratio"]

    def same_trees(cell: Cell) -> bool:
        return bool(cell["settings"]["trees"] == cells[0]["settings"]["trees"])

    # Of data that have changed the plan's count, or else the latest.
    stored = [cell for cell in stored if same_trees(cell)] if cells else []
    data = {cell["dataset"]: cell["settings"]["data"] for cell in [*stored, *cells]}
    places = {place(cell) for cell in cells}
    more = [
        cell
        for cell in stored
        if cell["settings"]["data"] == data[cell["dataset"]] and place(cell) not in places
    ]
    # Of two made by different settings, the later one.
    return list({place(cell): cell for cell in more}.values())


def _is_settled(known: Cell | None, time_limit: float) -> bool:
    """Whether running a cell again would tell nothing new."""
    if known is None:
        return False
    if known["status"] == "timeout":
        return bool(known["seconds_allowed"] >= time_limit)
    return bool(known["status"] == "done")


def _run_side_by_side(
    pending: Sequence[Pending],
    protocol: Protocol,
    n_jobs: int,
    memory_mb: float | None,
    time_limit: float,
) -> Iterator[tuple[Pending, Cell]]:
    """Each cell with what came of it, as they finish."""
    if not pending:
        return
    import psutil
    from pebble import ProcessPool

    budget = memory_mb or 0.8 * psutil.virtual_memory().available / 1e6
    can_fork = "forkserver" in multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if can_fork else "spawn")
    if can_fork:
        context.set_forkserver_preload([f"{__package__}.warm"])
    waiting, running = list(pending), dict[Future[Any], Pending]()
    # A new process for each cell: its memory is its own, and it can be stopped.
    pool = ProcessPool(max_workers=n_jobs, max_tasks=1, context=context)
    with pool, _stopping(pool):
        while waiting or running:
            used = sum(work.megabytes for work in running.values())
            while waiting and len(running) < n_jobs:
                if running and used + waiting[0].megabytes > budget:
                    break
                work = waiting.pop(0)
                used += work.megabytes
                place = work.cell["split"], work.cell["ratio"]
                task = Task(work.data, os.getpid(), work.estimator, protocol, *place)
                running[pool.schedule(run_cell, args=[task], timeout=time_limit)] = work
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield running.pop(future), _outcome(future, time_limit)


@contextlib.contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """A folder for the data of the cells; what a killed run left in it goes first."""
    scratch = folder / ".scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def _stopping(pool: Any) -> Iterator[None]:
    """Stop the processes when the run is broken off."""
    try:
        yield
    except BaseException:
        pool.stop()
        raise


def _outcome(future: Future[Any], time_limit: float) -> Cell:
    """What came of a cell, as the fields that say so."""
    from pebble import ProcessExpired

    nothing: Cell = {"f1": None, "ap": None}
    try:
        return {"status": "done", "note": "", **future.result()}
    except TimeoutError:
        note = f"stopped after {time_limit:g} seconds"
        allowed = {"seconds_allowed": time_limit}
        return {"status": "timeout", "note": note, **allowed, **nothing}
    except ProcessExpired as error:
        note = f"the process died (exit code {error.exitcode}): out of memory?"
        return {"status": "died", "note": note, **nothing}
    except Exception as error:
        note = " ".join(f"{type(error).__name__}: {error}".split())
        return {"status": "failed", "note": note[:500], **nothing}


class Stopwatch:
    """How long the rest will take, from what its like has taken so far."""

    def __init__(self, pending: Sequence[Pending], n_jobs: int) -> None:
        self._left = {work.cell["key"]: work for work in pending}
        self._n_jobs = n_jobs
        self._seen: dict[tuple[str, ...], tuple[float, float]] = {}

    def note(self, work: Pending, outcome: Cell) -> None:
        del self._left[work.cell["key"]]
        seconds = sum(
            outcome.get(field, 0.0)
            for field in ("fit_seconds", "predict_seconds", "seconds_allowed")
        )
        for kind in self._kinds(work):
            known_seconds, known_cost = self._seen.get(kind, (0.0, 0.0))
            self._seen[kind] = (known_seconds + seconds + 0.1, known_cost + work.cost)

    def seconds_left(self) -> float:
        total = 0.0
        for work in self._left.values():
            kinds = self._kinds(work)
            seconds, cost = next(self._seen[kind] for kind in kinds if kind in self._seen)
            total += work.cost * seconds / cost
        return total / self._n_jobs

    @staticmethod
    def _kinds(work: Pending) -> list[tuple[str, ...]]:
        """The cells that one is like, the nearest first."""
        cell = work.cell
        name = (cell["dataset"], cell["method"])
        return [(*name, str(cell["ratio"])), name, (cell["method"],), ()]
