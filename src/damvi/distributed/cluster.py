"""A Dask client as the steps of a fit use it: tasks with names, and results or an error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any
from uuid import uuid4

from dask import delayed
from dask.sizeof import sizeof
from distributed import Client, Future, KilledWorker, wait

from ..outofcore.blocks import CodedBlock
from .work import add_all, identity, listed, total_of, work_on

FAN_IN = 4
"""Results that are added up at a time, so that none of many travels far."""
LARGE = 2**14
"""Bytes of an argument that is handed to the workers once, and not with each task."""
LOOK_EVERY = 5.0
"""Seconds between looks at whether there are workers at all."""
PATIENCE = 60.0
"""Seconds without a worker until nobody believes that one will come."""
GONE = (
    "the connection to the cluster is lost, and with it the training rows; connect a "
    "client, and fit again"
)


class Cluster:
    """A client, and how work is given to it.

    The name of a step is the prefix of its tasks' keys, for whoever watches Dask's
    dashboard: "codes" is "damvi-codes" there.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.watch = Watch(client)

    @property
    def n_threads(self) -> int:
        return max(1, sum(self.client.nthreads().values()))

    def submit(self, step: str, func: Callable[..., Any], *args: Any) -> Future:
        """One task."""
        return self.client.submit(func, *args, key=_keys(step, 1)[0], priority=1)

    def hand(self, step: str, value: Any) -> Future:
        """What the client knows, as something that any worker can make again."""
        return self.submit(step, identity, value)

    def each(
        self, step: str, func: Callable[..., Any], parts: list[Future], **settings: Any
    ) -> list[Future]:
        """A task for each part, on the worker that has it."""
        keys = _keys(step, len(parts))
        futures: list[Future] = self.client.map(func, parts, key=keys, **settings)
        return futures

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
        futures: list[Future] = self.client.compute(calls)
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
    """Waits for futures for as long as there is somebody to work on them."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._alone_since: float | None = None

    def result(self, future: Future) -> Any:
        """The value of a future."""
        self.wait([future])
        patience = LOOK_EVERY
        while True:
            try:
                return future.result(timeout=patience)
            except TimeoutError:
                self._look()
                patience *= 2  # a large value may take longer to arrive
            except Exception as error:
                raise self._told(error) from None

    def wait(self, futures: list[Future], how: str = "ALL_COMPLETED") -> None:
        """Until all are there (or the first of them), or one has failed."""
        while True:
            try:
                with self.client.as_current():
                    wait(futures, timeout=LOOK_EVERY, return_when=how)
                break
            except TimeoutError:
                self._look()
                if any(future.status in ("error", "lost") for future in futures):
                    break
            except Exception as error:  # a worker or the scheduler is gone
                raise self._told(error) from error
        for future in futures:
            if future.status == "error":
                raise self._told(future.exception())

    def _look(self) -> None:
        """Whether there is anybody to wait for."""
        try:
            if self.client.nthreads():
                self._alone_since = None
                return
        except (OSError, ValueError) as error:  # a closed connection, or client
            raise RuntimeError(GONE) from error
        now = time.monotonic()
        self._alone_since = self._alone_since or now
        if now - self._alone_since >= PATIENCE:
            raise RuntimeError(
                f"no worker is left in the cluster, and none came for {PATIENCE:.0f} "
                f"seconds; start some, and fit again"
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
    cluster : Cluster
    blocks : list of Future
    known : list of (object, Future)
        What the workers have too, and need not be sent.
    """

    def __init__(
        self, cluster: Cluster, blocks: list[Future], known: list[tuple[Any, Future]]
    ) -> None:
        self.cluster, self.blocks, self._known = cluster, blocks, known

    def each(self, work: Callable[[CodedBlock], Any], what: str = "") -> Iterator[Any]:
        """What the work makes of each block, in their order."""
        for future in self._start("votes", work_on, work):
            yield from self.cluster.result(future)

    def total(
        self, work: Callable[[CodedBlock], Any], add: Callable[..., Any], what: str = ""
    ) -> Any:
        """The same, added up on the workers."""
        parts = self._start("moments", total_of, work, add=add)
        whole = self.cluster.total("add-moments", partial(add_all, add), parts)
        del parts
        return self.cluster.result(whole)

    def fit_succeeded(self) -> None:
        """Codes on the workers go with the model."""

    def _start(
        self, step: str, task: Callable[..., Any], work: Any, **settings: Any
    ) -> list[Future]:
        if self.cluster.client.status != "running":
            raise RuntimeError(GONE)
        asked, given = work, []
        if isinstance(work, partial):
            asked, given = work.func, [self._there(value) for value in work.args]
        settings |= {"asked": asked, "given": given}
        return self.cluster.each(step, task, self.blocks, **settings)

    def _there(self, value: Any) -> Any:
        """The value, or where workers find it."""
        for known, future in self._known:
            if known is value:
                return future
        # Dask's own way with large arguments of a map fails in some releases.
        return self.cluster.hand("given", value) if sizeof(value) > LARGE else value
