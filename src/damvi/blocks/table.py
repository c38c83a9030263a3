"""A table of codes on this machine, in memory or mapped from disk, as blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from .._threads import in_threads
from ..progress import progress_bar
from .coded import CodedBlock

BLOCK_ROWS = 2**16


class CodedTable:
    """Codes, classes and weights of all rows; work on its blocks is done by threads.

    Parameters
    ----------
    codes : array of uint8, shape (n, d)
    labels : ndarray of uint8, shape (n,)
    weights : ndarray of shape (n,), or None
    n_classes : int
    n_jobs : int or None
    verbose : int, default=0
        Show how passes go.
    owner : object
        What the codes belong to, kept for as long as they are needed.
    """

    def __init__(
        self,
        codes: NDArray[np.uint8],
        labels: NDArray[np.uint8],
        weights: NDArray[np.float64] | None,
        n_classes: int,
        n_jobs: int | None = None,
        verbose: int = 0,
        owner: Any = None,
    ) -> None:
        self.codes, self.labels, self.weights = codes, labels, weights
        self.n_jobs, self.verbose, self.owner = n_jobs, verbose, owner
        self._blocks = [
            slice(start, min(start + BLOCK_ROWS, len(labels)))
            for start in range(0, len(labels), BLOCK_ROWS)
        ]
        counts = [np.bincount(labels[rows], minlength=n_classes) for rows in self._blocks]
        self._before = np.cumsum([np.zeros(n_classes, np.int64), *counts], axis=0)

    def each(self, work: Callable[[CodedBlock], Any], what: str = "") -> Iterator[Any]:
        """What the work makes of each block, in their order."""
        calls = (
            partial(self._work_on, work, number) for number in range(len(self._blocks))
        )
        return self._shown(in_threads(calls, self.n_jobs), len(self._blocks), what)

    def total(
        self, work: Callable[[CodedBlock], Any], add: Callable[..., Any], what: str = ""
    ) -> Any:
        """The same, added up: each thread a run of blocks, so that few sums are kept."""
        n = len(self._blocks)
        size = -(-n // (4 * effective_n_jobs(self.n_jobs)))
        runs = [range(first, min(first + size, n)) for first in range(0, n, size)]
        calls = (
            partial(reduce, add, map(partial(self._work_on, work), run)) for run in runs
        )
        return reduce(add, self._shown(in_threads(calls, self.n_jobs), len(runs), what))

    def _shown(self, results: Iterator[Any], n: int, what: str) -> Iterator[Any]:
        return progress_bar(what)(results, n) if what and self.verbose else results

    def _work_on(self, work: Callable[[CodedBlock], Any], number: int) -> Any:
        rows = self._blocks[number]
        weights = None if self.weights is None else self.weights[rows]
        before = self._before[number]
        return work(
            CodedBlock(self.codes[rows], self.labels[rows], weights, rows.start, before)
        )
