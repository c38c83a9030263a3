"""The codes of a table on the workers, as blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dask.sizeof import sizeof
from distributed import Future

from ..blocks.coded import CodedBlock
from .cluster import Cluster
from .waiting import GONE
from .work import add_all, total_of, work_on

LARGE = 2**14
"""Bytes of an argument that is handed to the workers once, and not with each task."""


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
        parts = self._start("tallies", total_of, work, add=add)
        whole = self.cluster.total("add-tallies", partial(add_all, add), parts)
        del parts
        return self.cluster.result(whole)

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
