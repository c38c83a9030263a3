"""A Dask client as the steps of a fit use it: tasks with names, and results or an error."""

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
"""Results that are added up at a time, so that none of many travels far."""
LARGE = 2**14
"""Bytes of an argument that is handed to the workers once, and not with each task."""
LOOK_EVERY = 5.0
"""Seconds between looks at what the workers do."""
PATIENCE = 60.0
"""Seconds without work until nobody believes that it will go on."""
MORE_PATIENCE = 900.0
"""The same where all workers are alive and free; data may be on a long way."""
GONE = (
    "the connection to the cluster is lost, and with it the training rows; connect a "
    "client, and fit again"
)


class Said(NamedTuple):
    """A heartbeat of a worker: when, and how many tasks it runs and results it holds."""

    when: float
    n_running: int
    n_held: int


class Cluster:
    """A client, and how the work of a fit, or of a pass over its rows, is given to it.

    The name of a step is the prefix of its tasks' keys, for whoever watches Dask's
    dashboard: "codes" is "damvi-codes" there.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.watch: Watch = Watch(client)
        self._futures: WeakSet[Future] = WeakSet()

    @contextmanager
    def cancelled_on_failure(self) -> Iterator[None]:
        """Whatever ends the steps within, workers are not left with what they were given.

        Futures would go with the last reference to them; but a traceback may hold some for
        as long as a session lasts.
        """
        try:
            yield
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Give up all that was submitted, and what came of it."""
        # Not by Client.cancel: where tasks depend on each other, the scheduler stumbles
        # over those that nobody holds any more, and closes the connection.
        for future in list(self._futures):
            with suppress(Exception):  # the connection is lost, and that has been told
                future.release()

    @property
    def n_threads(self) -> int:
        return max(1, sum(self.client.nthreads().values()))

    def submit(self, step: str, func: Callable[..., Any], *args: Any) -> Future:
        """One task."""
        future = self.client.submit(func, *args, key=_keys(step, 1)[0], priority=1)
        self._futures.add(future)
        return future

    def hand(self, step: str, value: Any) -> Future:
        """What the client knows, as something that any worker can make again."""
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1PB"}):
            return self.submit(step, identity, value)

    def each(
        self, step: str, func: Callable[..., Any], parts: list[Any], **settings: Any
    ) -> list[Future]:
        """A task for each part; of a future, on the worker that has it."""
        keys = _keys(step, len(parts))
        return self._known(self.client.map(func, parts, key=keys, **settings))

    def each_of_lazy(
        self, step: str, func: Callable[..., Any], parts: Iterable[Any], **settings: Any
    ) -> list[Future]:
        """The same for parts that are yet to be made, and are forgotten after it."""
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
        """Results added up on the workers, a few at a time, as soon as they are there."""
        while len(parts) > 1:
            groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
            parts = [
                group[0] if len(group) == 1 else self.submit(step, add, *group)
                for group in groups
            ]
        return parts[0]

    def result(self, future: Future) -> Any:
        """The value of a future, here."""
        return self.watch.result(future)

    def results(self, step: str, parts: list[Future]) -> list[Any]:
        """Many small values, fetched at once."""
        values: list[Any] = self.result(self.submit(step, listed, *parts))
        return values


def _keys(step: str, n: int) -> list[str]:
    """Keys of tasks that are never taken for others."""
    mark = uuid4().hex
    return [f"damvi-{step}-{mark}-{number}" for number in range(n)]


class Watch:
    """Waits for futures for as long as there is somebody to work on them.

    A worker is at work if it runs a task, however long that takes, or if it has since come
    to hold more or fewer results; that is known from its heartbeat. What keeps all of them
    from it is told from what they say of themselves: paused, for want of memory; or nothing
    at all, if they are stopped.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._said: dict[str, Said] = {}
        self._silent: dict[str, float] = {}
        self._looked, self._idle = time.monotonic(), 0.0

    def result(self, future: Future) -> Any:
        """The value of a future."""
        self.wait([future])
        patience = LOOK_EVERY
        while True:
            try:
                return future.result(timeout=patience)
            except TimeoutError:
                self._look(patience, fetching=True)
                patience *= 2  # a large value may take longer to arrive
            except Exception as error:
                raise self._told(error) from None

    def wait(self, futures: list[Future], how: str = "ALL_COMPLETED") -> None:
        """Until all are there (or the first of them), or one has failed."""
        self._idle = 0.0
        while True:
            try:
                with self.client.as_current():
                    wait(futures, timeout=LOOK_EVERY, return_when=how)
                break
            except TimeoutError:
                self._look(LOOK_EVERY)
                if any(future.status in ("error", "lost") for future in futures):
                    break
            except Exception as error:  # a worker or the scheduler is gone
                raise self._told(error) from error
        for future in futures:
            if future.status == "error":
                raise self._told(future.exception())

    def _look(self, waited: float, fetching: bool = False) -> None:
        """Whether anybody is at work, and if nobody is for too long, why."""
        workers: dict[str, Any] | None
        try:
            ask = self.client.scheduler.identity
            workers = self.client.sync(ask, callback_timeout=LOOK_EVERY)["workers"]
        except TimeoutError:
            workers = None
        except (OSError, ValueError, AttributeError) as error:  # closed, here or there
            raise RuntimeError(GONE) from error
        now = time.monotonic()
        # A process that was itself stopped for an hour has not been waiting for an hour.
        passed = min(now - self._looked, waited + 2 * LOOK_EVERY)
        self._looked = now
        if self._at_work(workers or {}, passed):
            self._idle = 0.0
            return
        self._idle += passed
        why = self._why_idle(workers, fetching) if self._idle >= PATIENCE else None
        if why is not None:
            raise RuntimeError(why)

    def _at_work(self, workers: dict[str, Any], passed: float) -> bool:
        """Whether any worker said so since the last look."""
        before, self._said = self._said, {}
        silent, self._silent = self._silent, {}
        found = False
        for address, worker in workers.items():
            tasks = worker["metrics"].get("task_counts", {})
            running = sum(tasks.get(state, 0) for state in ("executing", "long-running"))
            said = Said(worker["last_seen"], running, tasks.get("memory", 0))
            known = self._said[address] = before.get(address, said)
            self._silent[address] = silent.get(address, 0.0) + passed
            if said.when != known.when:
                found |= said.n_running > 0 or said.n_held != known.n_held
                self._said[address], self._silent[address] = said, 0.0
        return found

    def _why_idle(self, workers: dict[str, Any] | None, fetching: bool) -> str | None:
        """What keeps all workers from their work, and what helps; None is just a delay."""
        seconds = f"{PATIENCE:.0f} seconds"
        if workers is None:
            return (
                f"the scheduler of the cluster gave no sign of life for {seconds}; it is "
                f"stopped, or its machine is out of memory: start it again, and fit again"
            )
        if not workers:
            return (
                f"no worker is left in the cluster, and none came for {seconds}; if the "
                f"last ones ran out of memory, give workers more; start some, and fit again"
            )
        silent = [name for name, time in self._silent.items() if time >= PATIENCE / 2]
        if silent:
            return (
                f"nothing could go on for {seconds}, since {len(silent)} of {len(workers)} "
                f"workers gave no sign of life ({', '.join(silent[:3])}); they are "
                f"stopped, or their machine is out of memory: start them again, and fit "
                f"again"
            )
        paused = [worker for worker in workers.values() if worker["status"] == "paused"]
        if not paused or fetching:  # the paused still give away what they have
            if self._idle < MORE_PATIENCE:  # a long way from one worker to another
                return None
            return (
                f"nothing went on for {MORE_PATIENCE / 60:.0f} minutes, though all "
                f"{len(workers)} workers are alive: the scheduler has lost sight of a "
                f"task, as when work is broken off and asked for again at once, or memory "
                f"is short; call client.restart(), and fit again"
            )
        limit = format_bytes(min(worker["memory_limit"] or 0 for worker in paused))
        return (
            f"no worker accepted work for {seconds}: {len(paused)} of {len(workers)} are "
            f"paused, since they are short of memory (the limit of a worker is {limit}); "
            f"give workers more memory, or cut the table into smaller partitions, and fit "
            f"again"
        )

    def _told(self, error: Any) -> Any:
        """Dask's own errors in the terms of whoever asked for a fit."""
        name, text = type(error).__name__, str(error).partition("\n")[0]
        if isinstance(error, KilledWorker):
            return RuntimeError(
                f"workers die again and again at the same task ({text}); most likely they "
                f"run out of memory: cut the table into smaller partitions, or give "
                f"workers more memory"
            )
        if not ("Cancelled" in name or "CommClosed" in name):
            return error
        if self.client.status != "running":
            return RuntimeError(GONE)
        return RuntimeError(
            f"the cluster has lost data that it cannot make again ({name}: {text}); fit "
            f"again, on data that workers read themselves rather than get from the client"
        )


class FutureBlocks:
    """Partitions in codes, each on a worker; what is asked of them is done there.

    Parameters
    ----------
    client : Client
    blocks : list of Future
    known : list of (object, Future)
        What the workers have too, and need not be sent.
    checkpoint : Checkpoint or None
        What the fit could be resumed from.
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
        """What the work makes of each block, in their order."""
        cluster = Cluster(self.client)
        with cluster.cancelled_on_failure():
            for future in self._start(cluster, "votes", work_on, work):
                yield from cluster.result(future)

    def total(
        self, work: Callable[[CodedBlock], Any], add: Callable[..., Any], what: str = ""
    ) -> Any:
        """The same, added up on the workers."""
        cluster = Cluster(self.client)
        with cluster.cancelled_on_failure():
            parts = self._start(cluster, "moments", total_of, work, add=add)
            whole = cluster.total("add-moments", partial(add_all, add), parts)
            del parts
            return cluster.result(whole)

    def fit_succeeded(self) -> None:
        """Codes on the workers go with the model."""
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
        """The value, or where workers find it."""
        for known, future in self._known:
            if known is value:
                return future
        # Dask's own way with large arguments of a map fails in some releases.
        return cluster.hand("given", value) if sizeof(value) > LARGE else value
