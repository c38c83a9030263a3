"""A Dask client for the steps of a fit: named tasks, and results or an error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4
from weakref import WeakSet

import dask.config
from dask import delayed
from dask.sizeof import sizeof
from dask.utils import format_bytes
from distributed import Client, Future, KilledWorker, wait

from ..outofcore.blocks import CodedBlock
from .checkpoint import Checkpoint
from .work import add_all, identity, listed, total_of, work_on

FAN_IN = 4
"""Number of results summed at a time, so that few travel far."""
LARGE = 2**14
"""Size in bytes from which an argument is sent to the workers once, not per task."""
CHECK_EVERY = 5.0
"""Seconds between checks of the workers."""
PATIENCE = 60.0
"""Seconds without progress after which a fit fails."""
MORE_PATIENCE = 900.0
"""The same if all workers are alive and idle; data may be in transit."""
GONE = (
    "lost the connection to the cluster, and with it the training rows; connect a client, "
    "and fit again"
)


class Heartbeat(NamedTuple):
    """A heartbeat of a worker: time, running tasks, and stored results."""

    when: float
    n_running: int
    n_held: int


class Cluster:
    """A client, with the tasks of a fit or of a pass over its rows.

    The name of a step is the prefix of its task keys on Dask's dashboard: "codes" is
    "damvi-codes" there.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.watch: Watch = Watch(client)
        self._futures: WeakSet[Future] = WeakSet()

    @contextmanager
    def cancelled_on_failure(self) -> Iterator[None]:
        """Release everything on the workers if the steps within fail.

        Futures are released with their last reference, but a traceback may hold references
        for a whole session.
        """
        try:
            yield
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Cancel all submitted tasks, and release their results."""
        # Not with Client.cancel: with dependent tasks, the scheduler fails on released
        # ones and closes the connection.
        for future in list(self._futures):
            with suppress(Exception):  # connection lost, already reported
                future.release()

    @property
    def n_threads(self) -> int:
        return max(1, sum(self.client.nthreads().values()))

    def submit(self, step: str, func: Callable[..., Any], *args: Any) -> Future:
        """Submit one task."""
        future = self.client.submit(func, *args, key=_keys(step, 1)[0], priority=1)
        self._futures.add(future)
        return future

    def hand(self, step: str, value: Any) -> Future:
        """Send a value from the client as a task that any worker can repeat."""
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1PB"}):
            return self.submit(step, identity, value)

    def each(
        self, step: str, func: Callable[..., Any], parts: list[Any], **settings: Any
    ) -> list[Future]:
        """Submit a task per part; for a future, on the worker that holds it."""
        keys = _keys(step, len(parts))
        return self._known(self.client.map(func, parts, key=keys, **settings))

    def each_of_lazy(
        self, step: str, func: Callable[..., Any], parts: Iterable[Any], **settings: Any
    ) -> list[Future]:
        """The same for lazy parts, which are released afterwards."""
        parts = list(parts)
        task = delayed(func)
        calls = [
            task(*part, **settings, dask_key_name=key)
            for part, key in zip(parts, _keys(step, len(parts)), strict=True)
        ]
        return self._known(self.client.compute(calls))

    def _known(self, futures: list[Future]) -> list[Future]:
        self._futures.update(futures)
        return futures

    def total(self, step: str, add: Callable[..., Any], parts: list[Future]) -> Future:
        """Sum results on the workers, a few at a time, as they become available."""
        while len(parts) > 1:
            groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
            parts = [
                group[0] if len(group) == 1 else self.submit(step, add, *group)
                for group in groups
            ]
        return parts[0]

    def result(self, future: Future) -> Any:
        """Fetch the value of a future."""
        return self.watch.result(future)

    def results(self, step: str, parts: list[Future]) -> list[Any]:
        """Fetch many small values at once."""
        values: list[Any] = self.result(self.submit(step, listed, *parts))
        return values


def _keys(step: str, n: int) -> list[str]:
    """Return unique task keys."""
    mark = uuid4().hex
    return [f"damvi-{step}-{mark}-{number}" for number in range(n)]


class Watch:
    """Wait for futures as long as some worker makes progress.

    A worker makes progress if it runs a task, however long that takes, or if the number of
    its results has changed, according to its heartbeat. If none does, their state explains
    why: paused for lack of memory, or silent because they are stopped.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._heartbeats: dict[str, Heartbeat] = {}
        self._silent: dict[str, float] = {}
        self._checked, self._idle = time.monotonic(), 0.0

    def result(self, future: Future) -> Any:
        """Return the value of a future."""
        self.wait([future])
        patience = CHECK_EVERY
        while True:
            try:
                return future.result(timeout=patience)
            except TimeoutError:
                self._check_progress(patience, fetching=True)
                patience *= 2  # a large value may take long to arrive
            except Exception as error:
                raise self._explained(error) from None

    def wait(self, futures: list[Future], how: str = "ALL_COMPLETED") -> None:
        """Wait until all (or the first) are done, or one has failed."""
        self._idle = 0.0
        while True:
            try:
                with self.client.as_current():
                    wait(futures, timeout=CHECK_EVERY, return_when=how)
                break
            except TimeoutError:
                self._check_progress(CHECK_EVERY)
                if any(future.status in ("error", "lost") for future in futures):
                    break
            except Exception as error:  # lost a worker or the scheduler
                raise self._explained(error) from error
        for future in futures:
            if future.status == "error":
                raise self._explained(future.exception())

    def _check_progress(self, waited: float, fetching: bool = False) -> None:
        """Check for progress; raise an error if there was none for too long."""
        workers: dict[str, Any] | None
        try:
            ask = self.client.scheduler.identity
            workers = self.client.sync(ask, callback_timeout=CHECK_EVERY)["workers"]
        except TimeoutError:
            workers = None
        except (OSError, ValueError, AttributeError) as error:  # closed on either side
            raise RuntimeError(GONE) from error
        now = time.monotonic()
        # If this process itself was suspended, that time does not count as waiting.
        passed = min(now - self._checked, waited + 2 * CHECK_EVERY)
        self._checked = now
        if self._at_work(workers or {}, passed):
            self._idle = 0.0
            return
        self._idle += passed
        why = self._why_idle(workers, fetching) if self._idle >= PATIENCE else None
        if why is not None:
            raise RuntimeError(why)

    def _at_work(self, workers: dict[str, Any], passed: float) -> bool:
        """Whether any worker made progress since the last check."""
        before, self._heartbeats = self._heartbeats, {}
        silent, self._silent = self._silent, {}
        found = False
        for address, worker in workers.items():
            tasks = worker["metrics"].get("task_counts", {})
            running = sum(tasks.get(state, 0) for state in ("executing", "long-running"))
            heartbeat = Heartbeat(worker["last_seen"], running, tasks.get("memory", 0))
            known = self._heartbeats[address] = before.get(address, heartbeat)
            self._silent[address] = silent.get(address, 0.0) + passed
            if heartbeat.when != known.when:
                found |= heartbeat.n_running > 0 or heartbeat.n_held != known.n_held
                self._heartbeats[address], self._silent[address] = heartbeat, 0.0
        return found

    def _why_idle(self, workers: dict[str, Any] | None, fetching: bool) -> str | None:
        """Explain why all workers are idle, with a remedy; None if just a delay."""
        seconds = f"{PATIENCE:.0f} seconds"
        if workers is None:
            return (
                f"no sign of life from the cluster's scheduler for {seconds}; it has "
                f"stopped, or its machine is out of memory. Restart it, and fit again"
            )
        if not workers:
            return (
                f"the cluster has had no workers for {seconds}; if they ran out of "
                f"memory, give workers more. Start some, and fit again"
            )
        silent = [name for name, time in self._silent.items() if time >= PATIENCE / 2]
        if silent:
            return (
                f"no progress for {seconds}: no sign of life from {len(silent)} of "
                f"{len(workers)} workers ({', '.join(silent[:3])}). They have "
                f"stopped, or their machine is out of memory; restart them, and fit "
                f"again"
            )
        paused = [worker for worker in workers.values() if worker["status"] == "paused"]
        if not paused or fetching:  # paused workers still send their results
            if self._idle < MORE_PATIENCE:  # data may be in transit
                return None
            return (
                f"no progress for {MORE_PATIENCE / 60:.0f} minutes, though all "
                f"{len(workers)} workers are alive: the scheduler has lost track of a "
                f"task, as can happen if work is cancelled and resubmitted at once, or if "
                f"memory is short; call client.restart(), and fit again"
            )
        limit = format_bytes(min(worker["memory_limit"] or 0 for worker in paused))
        return (
            f"no worker accepted tasks for {seconds}: {len(paused)} of {len(workers)} are "
            f"paused because they are short of memory (limit per worker: {limit}); "
            f"give workers more memory, or use smaller partitions, and fit "
            f"again"
        )

    def _explained(self, error: Any) -> Any:
        """Translate Dask's errors for the user of a fit."""
        name, text = type(error).__name__, str(error).partition("\n")[0]
        if isinstance(error, KilledWorker):
            return RuntimeError(
                f"workers die repeatedly at the same task ({text}), most likely because "
                f"they run out of memory; use smaller partitions, or give workers more "
                f"memory"
            )
        if not ("Cancelled" in name or "CommClosed" in name):
            return error
        if self.client.status != "running":
            return RuntimeError(GONE)
        return RuntimeError(
            f"the cluster has lost data that it cannot recompute ({name}: {text}); fit "
            f"again, on data that workers read themselves rather than get from the client"
        )


class FutureBlocks:
    """Coded partitions on the workers, where the work is done.

    Parameters
    ----------
    client : Client
    blocks : list of Future
    known : list of (object, Future)
        Values that the workers already have, and that need not be sent.
    checkpoint : Checkpoint or None
        What the fit could resume from.
    """

    client: Client
    blocks: list[Future]
    checkpoint: Checkpoint | None

    def __init__(
        self,
        client: Client,
        blocks: list[Future],
        known: list[tuple[Any, Future]],
        checkpoint: Checkpoint | None,
    ) -> None:
        self.client, self.blocks, self.checkpoint = client, blocks, checkpoint
        self._known = known

    def each(self, work: Callable[[CodedBlock], Any], what: str = "") -> Iterator[Any]:
        """Yield the result of ``work`` on each block, in order."""
        cluster = Cluster(self.client)
        with cluster.cancelled_on_failure():
            for future in self._start(cluster, "votes", work_on, work):
                yield from cluster.result(future)

    def total(
        self, work: Callable[[CodedBlock], Any], add: Callable[..., Any], what: str = ""
    ) -> Any:
        """Return the sum of the results, computed on the workers."""
        cluster = Cluster(self.client)
        with cluster.cancelled_on_failure():
            parts = self._start(cluster, "moments", total_of, work, add=add)
            whole = cluster.total("add-moments", partial(add_all, add), parts)
            del parts
            return cluster.result(whole)

    def fit_succeeded(self) -> None:
        """Release the codes on the workers along with the model."""
        if self.checkpoint is not None:
            self.checkpoint.fit_succeeded()

    def _start(
        self,
        cluster: Cluster,
        step: str,
        task: Callable[..., Any],
        work: Any,
        **settings: Any,
    ) -> list[Future]:
        if self.client.status != "running":
            raise RuntimeError(GONE)
        asked, given = work, []
        if isinstance(work, partial):
            asked = work.func
            given = [self._there(cluster, value) for value in work.args]
        settings |= {"asked": asked, "given": given}
        return cluster.each(step, task, self.blocks, **settings)

    def _there(self, cluster: Cluster, value: Any) -> Any:
        """Return the value, or its future on the workers."""
        for known, future in self._known:
            if known is value:
                return future
        # Dask's own handling of large arguments in map fails in some releases.
        return cluster.hand("given", value) if sizeof(value) > LARGE else value
