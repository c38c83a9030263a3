"""Run the cells that are missing, side by side, and store each as it finishes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import Any

from .plan import Pending, Plan, cells_of
from .protocol import Protocol
from .stopwatch import Stopwatch
from .store import Cell, Store, read_cells


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

    Cells that the folder holds beyond the plan (more methods, splits or datasets) come
    after them, if they were made with the same trees, and of the same data.

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
        for done, (work, outcome) in enumerate(
            _run_side_by_side(pending, protocol, n_jobs, memory_mb, time_limit), 1
        ):
            cell = {**work.cell, **outcome}
            store.add(cell)
            known[cell["key"]] = cell
            watch.note(work, outcome)
            if follow:
                follow(done, len(pending), watch.seconds_left(), cell)
    cells = [known[key] for key in wanted]
    return cells + _beyond(cells, known.values())


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

    from .cell import Task, run_cell

    budget = memory_mb or 0.8 * psutil.virtual_memory().available / 1e6
    can_fork = "forkserver" in multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if can_fork else "spawn")
    if can_fork:
        context.set_forkserver_preload(["damvi.bench.cell"])
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
                task = Task(
                    work.data,
                    os.getpid(),
                    work.estimator,
                    protocol,
                    work.cell["split"],
                    work.cell["ratio"],
                )
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
