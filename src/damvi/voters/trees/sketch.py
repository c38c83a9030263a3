"""What bins are learned from, kept small, so that parts of a table can be looked at apart.

The sketches of the parts add up to that of the whole, in any order, and the bins are those
that :meth:`~damvi.voters.trees.binning.Binning.learn` finds with all rows at hand.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from ..hashing import row_hashes
from .binning import SAMPLE_ROWS, Binning, Distinct, Floats, count_categories, edges_of


class EdgeSketch:
    """Distinct values, counts of categories, and a sample of the rows of each class.

    Parameters
    ----------
    categorical : ndarray of bool, shape (d,)
    n_classes : int
    seed : int
    """

    def __init__(self, categorical: NDArray[np.bool_], n_classes: int, seed: int) -> None:
        d = len(categorical)
        self.categorical, self.seed = categorical, seed
        self.distinct = Distinct(d)
        self.counts: dict[int, Counter[float]] = {
            f: Counter() for f in np.flatnonzero(categorical).tolist()
        }
        size = SAMPLE_ROWS // max(n_classes, 2)
        self.samples = [Sample(d, size) for _ in range(max(n_classes, 2))]

    def add(self, block: Floats, signs: NDArray[np.integer], start: int) -> None:
        """Look at some rows, the first of which has the number ``start`` in the table.

        ``signs`` are those of :meth:`~damvi.voters.trees.binning.Binning.learn`.
        """
        some = np.flatnonzero(signs)
        counted = block if len(some) == len(block) else np.ascontiguousarray(block[some])
        if not (self.distinct.crowded | self.categorical).all():
            self.distinct.add(counted)
        features = np.array([*self.counts], dtype=np.intp)
        for f, more in count_categories(iter([counted]), features).items():
            self.counts[f].update(more)
        hashes = row_hashes(start + np.arange(len(block)), self.seed)
        for sign, sample in zip(
            (-1, *range(1, len(self.samples))), self.samples, strict=True
        ):
            sample.add(block, hashes, signs == sign)

    def merge(self, other: EdgeSketch) -> EdgeSketch:
        """This sketch, with what another has seen."""
        self.distinct.merge(other.distinct)
        for f, more in other.counts.items():
            self.counts[f].update(more)
        for own, theirs in zip(self.samples, other.samples, strict=True):
            own.add(theirs.values, theirs.hashes, np.ones(len(theirs.hashes), np.bool_))
        return self

    def __sizeof__(self) -> int:
        """Its arrays: whoever moves sketches about asks."""
        sampled = sum(
            sample.values.nbytes + sample.hashes.nbytes for sample in self.samples
        )
        return sampled + self.distinct.nbytes

    def binning(self, n_jobs: int | None = None) -> Binning:
        """The bins of all that was seen."""
        crowded = np.flatnonzero(self.distinct.crowded & ~self.categorical)
        edges = {}
        if len(crowded):
            samples = [sample.values[:, crowded] for sample in self.samples]
            edges = dict(zip(crowded.tolist(), edges_of(samples, n_jobs), strict=True))
        return Binning.of(self.distinct, edges, self.counts, self.categorical)


class Sample:
    """The rows with the smallest hashes, at most ``size`` of them."""

    def __init__(self, n_features: int, size: int) -> None:
        self.size = size
        self.hashes = np.empty(0, np.uint64)
        self.values = np.empty((0, n_features))

    def add(
        self, block: Floats, hashes: NDArray[np.uint64], taken: NDArray[np.bool_]
    ) -> None:
        if len(self.hashes) == self.size:  # only rows below the largest can enter
            taken = taken & (hashes < self.hashes.max())
        rows = np.flatnonzero(taken)
        if not len(rows):
            return
        hashes = np.concatenate([self.hashes, hashes[rows]])
        values = np.concatenate([self.values, block[rows]])
        if len(hashes) > self.size:
            kept = np.argpartition(hashes, self.size)[: self.size]
            hashes, values = hashes[kept], values[kept]
        self.hashes, self.values = hashes, values
