"""A Dask client as the steps of a fit use it: tasks with names, and results or an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

from dask import delayed
from distributed import Client, Future

from .waiting import Watch
from .work import as_it_is, listed

FAN_IN = 4
"""Results that are added up at a time, so that none of many travels far."""


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
        return self.submit(step, as_it_is, value)

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
