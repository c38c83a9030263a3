"""Run the cells that are missing, side by side, and store each as it finishes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import platform
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..baselines import make_method
from ..baselines.methods import Trees
from .protocol import Protocol
from .store import Cell, Store, read_cells

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "imbalanced-learn", "lightgbm")
PACKAGES += ("xgboost",)


@dataclass(frozen=True)
class Plan:
    """A table's worth of cells.

    Parameters
    ----------
    datasets : sequence of Bunch
        As :func:`damvi.datasets.load` returns them; an iterator is loaded one by one.
    methods : sequence of str
    n_splits : int
    ratios : sequence
        Shares of positives to thin the data to; None is the data as it is.
    """

    datasets: Iterable[Any]
    methods: Sequence[str]
    n_splits: int = 5
    ratios: Sequence[float | None] = (None,)
    trees: Trees = "fast"


@dataclass(frozen=True)
class Pending:
    """A cell that is to be run, and where its data lie."""

    cell: Cell
    data: Path
    cost: float
    megabytes: float


def run(
    plan: Plan,
    folder: Path,
    protocol: Protocol,
    *,
    n_jobs: int = 1,
    memory_mb: float | None = None,
    time_limit: float = 3600.0,
    follow: Callable[[int, int, float | None, Cell | None], None] | None = None,
) -> list[Cell]:
    """Run what is missing of a plan; return all its cells, in the plan's order.

    Cells that the folder already holds, made by the same settings on the same data, are
    not run again. A cell that fails or exceeds ``time_limit`` seconds says so in its
    status and note, and the rest goes on.

    Parameters
    ----------
    plan : Plan
    folder : Path
        Where the cells are kept.
    protocol : Protocol
    n_jobs : int, default=1
        Cells at a time, one core each.
    memory_mb : float, optional
        What cells that run at the same time may need together. By default four fifths of
        the memory that is free.
    time_limit : float, default=3600
        Seconds that a cell may take.
    follow : callable, optional
        Called after each cell with the numbers done and in all, the seconds left as far as
        they can be told, and the cell.
    """
    with (
        Store(folder, protocol.as_dict()) as store,
        tempfile.TemporaryDirectory(prefix="damvi-bench-") as scratch,
    ):
        known = {cell["key"]: cell for cell in read_cells(folder)}
        wanted, pending = [], []
        for cell, data, cost, megabytes in _cells_of(plan, protocol, Path(scratch)):
            wanted.append(cell["key"])
            if not _is_settled(known.get(cell["key"]), cell, time_limit):
                pending.append(Pending(cell, data, cost, megabytes))
        watch = Stopwatch(pending, n_jobs)
        if follow:
            follow(0, len(pending), None, None)
        for done, (work, outcome) in enumerate(
            _run_side_by_side(pending, plan, protocol, n_jobs, memory_mb, time_limit), 1
        ):
            cell = {**work.cell, **outcome}
            store.add(cell)
            known[cell["key"]] = cell
            watch.note(work, outcome)
            if follow:
                follow(done, len(pending), watch.seconds_left(), cell)
    return [known[key] for key in wanted]


def _is_settled(known: Cell | None, cell: Cell, time_limit: float) -> bool:
    """Whether running a cell again would tell nothing new."""
    if known is None or known["status"] == "died":
        return False
    if known["status"] == "timeout":
        return bool(known["seconds_allowed"] >= time_limit)
    if known["status"] == "failed":
        return bool(known["versions"] == cell["versions"])
    return True


def _cells_of(
    plan: Plan, protocol: Protocol, scratch: Path
) -> Iterator[tuple[Cell, Path, float, float]]:
    """Every cell of a plan, with the folder of its data, and a guess at its weight."""
    versions = _versions()
    for number, dataset in enumerate(plan.datasets):
        X = np.ascontiguousarray(dataset.data, dtype=np.float64)
        y = np.asarray(dataset.target, dtype=np.int8)
        data = scratch / str(number)
        data.mkdir()
        np.save(data / "X.npy", X)
        np.save(data / "y.npy", y)
        groups = dataset.get("groups")
        if groups is not None:
            np.save(data / "groups.npy", np.asarray(groups))
        print_of_data = fingerprint(X, y)
        megabytes = 150 + 8 * X.nbytes / 1e6
        for split in range(plan.n_splits):
            for ratio in plan.ratios:
                for method in plan.methods:
                    seed = protocol.seed + split
                    model = make_method(method, trees=plan.trees, random_state=seed)
                    settings = {
                        "dataset": dataset.name,
                        "data": print_of_data,
                        "method": method,
                        "split": split,
                        "ratio": ratio,
                        "estimator": _in_words(model),
                        "trees": plan.trees,
                        **protocol.as_dict(),
                    }
                    key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
                    cell = {
                        "key": key.hexdigest()[:32],
                        "dataset": dataset.name,
                        "method": method,
                        "split": split,
                        "ratio": ratio,
                        "settings": settings,
                        "versions": versions,
                    }
                    yield cell, data, float(X.size) * (ratio or 1.0), megabytes


def _run_side_by_side(
    pending: Sequence[Pending],
    plan: Plan,
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

    from .cell import Task, run_cell

    budget = memory_mb or 0.8 * psutil.virtual_memory().available / 1e6
    if "forkserver" in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["damvi.bench.cell"])
    else:
        context = multiprocessing.get_context("spawn")
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
                cell = work.cell
                model = make_method(
                    cell["method"],
                    trees=plan.trees,
                    random_state=protocol.seed + cell["split"],
                )
                task = Task(work.data, model, protocol, cell["split"], cell["ratio"])
                running[pool.schedule(run_cell, args=[task], timeout=time_limit)] = work
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield running.pop(future), _outcome(future, time_limit)


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
    """How long the rest will take, from what each method has taken so far."""

    def __init__(self, pending: Sequence[Pending], n_jobs: int) -> None:
        self._left = {work.cell["key"]: work for work in pending}
        self._n_jobs = n_jobs
        self._seen: dict[str, tuple[float, float]] = {}

    def note(self, work: Pending, outcome: Cell) -> None:
        del self._left[work.cell["key"]]
        seconds = outcome.get("fit_seconds", 0.0) + outcome.get("predict_seconds", 0.0)
        method = work.cell["method"]
        for name in (method, ""):
            known_seconds, known_cost = self._seen.get(name, (0.0, 0.0))
            self._seen[name] = (known_seconds + seconds + 0.1, known_cost + work.cost)

    def seconds_left(self) -> float | None:
        total = 0.0
        for work in self._left.values():
            seconds, cost = self._seen.get(work.cell["method"], self._seen.get("", (0, 0)))
            if cost == 0:
                return None
            total += work.cost * seconds / cost
        return total / self._n_jobs


def fingerprint(X: NDArray[np.float64], y: NDArray[np.int8]) -> str:
    """A digest of the data, so that cells of other data are told apart."""
    digest = hashlib.sha256(repr(X.shape).encode())
    digest.update(X.data if X.size else b"")
    digest.update(np.ascontiguousarray(y).data)
    return digest.hexdigest()[:16]


def _in_words(model: Any) -> str:
    """An estimator with all its settings, those left at their defaults too."""
    settings = sorted(model.get_params(deep=True).items())
    return f"{type(model).__name__}({', '.join(f'{k}={v!r}' for k, v in settings)})"


def _versions() -> dict[str, str]:
    found = {"damvi": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
