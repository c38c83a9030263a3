"""A table as one-byte codes, which all trees split on.

Columns of a dataframe become numbers first (``FrameTable`` in ``validation.py``). Then each
feature is put into bins, learned once, class by class, for all voters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..._kernels import announce_compilation, in_threads, kernel
from ...hashing import row_bits
from ...validation import Categories, FrameTable

MAX_BINS = 255
BLOCK_CELLS = 2**17
"""Number of cells of a table that are made dense at a time."""
SAMPLE_ROWS = 2**16
"""Rows that determine the bins of features with many values, equally many of each class."""
ROWS_TO_HASH = 2**18
RARE_CUTS = 64
"""Number of quantiles for all classes but the most frequent one, which share them."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Features:
    """Encodes a table as codes of one byte per cell, learned once for all trees."""

    categories: Categories | None
    binning: Binning

    @classmethod
    def learn(
        cls,
        categorical: NDArray[np.bool_],
        X: Any,
        signs: NDArray[np.integer[Any]],
        seed: int,
        n_jobs: int | None = None,
    ) -> Features:
        announce_compilation()
        if not hasattr(X, "columns"):
            return cls(None, Binning.learn(X, signs, categorical, seed, n_jobs))
        categories = Categories.learn(X)
        table = FrameTable(X, categories)
        categorical = categorical | categories.mask
        return cls(categories, Binning.learn(table, signs, categorical, seed, n_jobs))

    def table(self, X: Any) -> Any:
        """Wrap ``X`` for reading numbers in blocks of rows."""
        if X.shape[1] != len(self):  # the kernels do not check indices
            raise ValueError(
                f"X has {X.shape[1]} columns, but the trees were grown on {len(self)}; if "
                f"a later fit failed, fit the model again"
            )
        if self.categories is None:
            return X
        if not hasattr(X, "columns"):
            raise ValueError(
                "the model was fitted on a dataframe with categories or column names; give "
                "it a dataframe with the same columns"
            )
        return FrameTable(X, self.categories)

    def encode(self, X: Any, n_jobs: int | None = None) -> NDArray[np.uint8]:
        """The codes of a whole table."""
        return self.binning.encode(self.table(X), n_jobs)

    def __len__(self) -> int:
        return len(self.binning.n_codes)


# Bins, and the codes of numbers.


@dataclass(frozen=True, eq=False)
class Binning:
    """Maps features to codes: 0 for missing or unknown categories, then 1, 2, ...

    Attributes
    ----------
    cuts : ndarray
        For each feature in turn, the sorted upper edges of its bins (without the last), or
        its sorted categories.
    starts : ndarray of shape (d + 1,)
        Position of each feature's first cut.
    category_codes : ndarray
        The code of each cut that is a category.
    categorical : ndarray of shape (d,), uint8
    n_codes : ndarray of shape (d,)
        Number of codes of each feature, including 0.
    """

    cuts: Floats
    starts: NDArray[np.int64]
    category_codes: NDArray[np.uint8]
    categorical: NDArray[np.uint8]
    n_codes: NDArray[np.int64]

    @cached_property
    def histogram_starts(self) -> NDArray[np.uint32]:
        """Start of each feature in a histogram of all features, and its length."""
        return np.concatenate([[0], np.cumsum(self.n_codes)]).astype(np.uint32)

    @classmethod
    def learn(
        cls,
        X: Any,
        signs: NDArray[np.integer[Any]],
        categorical: NDArray[np.bool_],
        seed: int,
        n_jobs: int | None = None,
    ) -> Binning:
        """Learn the bins of a table, at most 255 per feature.

        A feature with at most 255 values keeps them all. With more, the edges are quantiles
        taken class by class, so that a few positives in a tail still get their own bins. Of
        more than 255 categories, the rarest share a code. ``signs`` are -1 for the most
        frequent class, 1 (2, 3, ...) for the others, and 0 for rows to ignore.
        """
        distinct = Distinct(X.shape[1])
        for block in _blocks_that_count(X, signs):
            distinct.add(block)
            if (distinct.crowded | categorical).all():
                break  # nothing more to learn
        crowded = np.flatnonzero(distinct.crowded & ~categorical)
        edges = _sampled_edges(X, signs, crowded, seed, n_jobs)
        counts = count_categories(_blocks_that_count(X, signs), np.flatnonzero(categorical))
        return cls.of(distinct, edges, counts, categorical)

    @classmethod
    def of(
        cls,
        distinct: Distinct,
        edges: dict[int, Floats],
        counts: dict[int, Counter[float]],
        categorical: NDArray[np.bool_],
    ) -> Binning:
        """Make bins from the values seen, or from edges if there are too many values.

        ``counts`` has the categories of each categorical feature.
        """
        cuts, codes, n_codes = [], [], []
        for f in range(len(categorical)):
            if categorical[f]:
                values, category_codes = _category_codes(counts[f])
                n_codes.append(1 + int(category_codes.max(initial=0)))
            else:
                values = edges[f] if f in edges else midpoints(distinct.values(f))
                category_codes = np.zeros(len(values), dtype=np.uint8)
                n_codes.append(2 + len(values))
            cuts.append(values)
            codes.append(category_codes)
        return cls(
            cuts=np.concatenate(cuts),
            starts=np.cumsum([0, *map(len, cuts)]),
            category_codes=np.concatenate(codes),
            categorical=categorical.astype(np.uint8),
            n_codes=np.array(n_codes),
        )

    def encode(self, X: Any, n_jobs: int | None = None) -> NDArray[np.uint8]:
        """The codes of a table, one byte per cell."""
        codes = np.empty(X.shape, dtype=np.uint8)
        calls = (partial(self.encode_rows, X, rows, codes[rows]) for rows in row_slices(X))
        for _ in in_threads(calls, n_jobs):
            pass
        return codes

    def encode_rows(self, X: Any, rows: slice, out: NDArray[np.uint8]) -> None:
        """The codes of a few rows, which are made dense."""
        block = dense(X[rows])
        encode(block, self.cuts, self.starts, self.category_codes, self.categorical, out)


def signs_that_count(
    labels: NDArray[Any],
    n_classes: int,
    sample_weight: NDArray[Any] | None,
    sizes: NDArray[Any] | None = None,
) -> NDArray[np.int16]:
    """-1 for the first of two classes, or the largest of more; 1, 2, ... for the others.

    Rarer classes come first; rows of weight 0 have 0. If these rows are part of a larger
    table, ``sizes`` are the numbers of its rows with positive weight in each class.
    """
    counts = np.ones(len(labels), bool) if sample_weight is None else sample_weight > 0
    order = np.arange(n_classes)[::-1]
    if n_classes > 2:
        if sizes is None:
            sizes = np.bincount(labels[counts], minlength=n_classes)
        order = np.argsort(sizes, kind="stable")
    signs = np.empty(n_classes, np.int16)
    signs[order] = [*range(1, n_classes), -1]
    return np.where(counts, signs[labels], np.int16(0))


def row_slices(X: Any) -> Iterator[slice]:
    """Slices of rows, each of a few megabytes at most when dense."""
    n_rows, n_features = X.shape
    step = max(1, BLOCK_CELLS // max(n_features, 1))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def blocks(X: Any) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Slices of rows with their values, one at a time."""
    for rows in row_slices(X):
        yield rows, dense(X[rows])


def take(X: Any, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Some rows, as doubles."""
    return dense(X[rows])


def dense(X: Any) -> NDArray[np.float64]:
    if sparse.issparse(X):
        X = X.toarray()
    return np.ascontiguousarray(X, dtype=np.float64)


class Distinct:
    """The distinct values of each feature, up to 255. Can be merged over blocks of rows."""

    def __init__(self, n_features: int) -> None:
        self._values = np.empty((n_features, MAX_BINS + 1))
        self._counts = np.zeros(n_features, dtype=np.int64)

    def add(self, block: Floats) -> None:
        collect_distinct(block, self._values, self._counts)

    def merge(self, other: Distinct) -> None:
        """Add the values seen by another."""
        for f in range(len(self._counts)):
            own = slice(f, f + 1)
            found = np.ascontiguousarray(other._values[f, : other._counts[f], np.newaxis])
            collect_distinct(found, self._values[own], self._counts[own])

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + self._counts.nbytes

    @property
    def crowded(self) -> NDArray[np.bool_]:
        return self._counts > MAX_BINS

    def values(self, f: int) -> Floats:
        return self._values[f, : self._counts[f]]


def _blocks_that_count(X: Any, signs: NDArray[np.integer[Any]]) -> Iterator[Floats]:
    for rows, block in blocks(X):
        count = signs[rows] != 0
        yield block if count.all() else np.ascontiguousarray(block[count])


def midpoints(values: Floats) -> Floats:
    """Edges halfway between sorted values, as in CART."""
    low, high = values[:-1], values[1:]
    with np.errstate(over="ignore", invalid="ignore"):
        middle = low + (high - low) / 2
    # There is no number halfway between adjacent floats, infinities, or values whose
    # difference overflows.
    return np.where((middle >= low) & (middle < high), middle, low)


def sample_rows(members: NDArray[np.int64], seed: int, size: int) -> NDArray[np.int64]:
    """The ``size`` members with the smallest hashes, sorted.

    The sample of a union is the sample of the union of samples, so it can be found part by
    part, however the table is divided.
    """
    if len(members) <= size:
        return members
    hashes = row_bits(members, seed)
    return np.sort(members[np.argpartition(hashes, size)[:size]])


def _sample_of(side: NDArray[np.bool_], seed: int, size: int) -> NDArray[np.int64]:
    """A sample of the rows of a class, found part by part."""
    chosen = np.empty(0, dtype=np.int64)
    for start in range(0, len(side), ROWS_TO_HASH):
        more = start + np.flatnonzero(side[start : start + ROWS_TO_HASH])
        chosen = sample_rows(np.concatenate([chosen, more]), seed, size)
    return chosen


def _sampled_edges(
    X: Any,
    signs: NDArray[np.integer[Any]],
    features: NDArray[Any],
    seed: int,
    n_jobs: int | None,
) -> dict[int, Floats]:
    if not len(features):
        return {}
    n_classes = max(2, 1 + int(signs.max()))
    size = SAMPLE_ROWS // n_classes
    samples = [
        take(X, _sample_of(signs == sign, seed, size))[:, features]
        for sign in (-1, *range(1, n_classes))
    ]
    return dict(zip(features.tolist(), edges_of(samples, n_jobs), strict=True))


def edges_of(samples: list[Floats], n_jobs: int | None = None) -> list[Floats]:
    """The edges of each column, from samples of the most frequent and each other class."""
    common, *rare = samples
    if len(rare) > 1:  # the most frequent class is then one of many
        common = np.concatenate([common, *rare])
    find = (
        partial(class_quantile_edges, common[:, j], *(sample[:, j] for sample in rare))
        for j in range(common.shape[1])
    )
    return [*in_threads(find, n_jobs)]


def class_quantile_edges(common: Floats, *rare: Floats) -> Floats:
    """At most 254 edges: around quantiles of each rare class, then of the common values.

    An edge is halfway to the next value of any class. NaN is ignored. With very many rare
    classes, only the first have quantiles, one each.
    """
    common, *others = (np.sort(side[~np.isnan(side)]) for side in (common, *rare))
    # A stable sort merges sorted lists efficiently.
    values = np.sort(np.concatenate([common, *others]), kind="stable")
    values = np.concatenate([values[:1], values[1:][values[1:] != values[:-1]]])
    if len(values) <= MAX_BINS:
        return midpoints(values)
    between = midpoints(values)
    own = max(1, RARE_CUTS // len(others))
    chosen = np.concatenate([_quantiles(side, own) for side in others[:RARE_CUTS]])
    above = np.searchsorted(values, chosen)
    edges = np.unique(np.concatenate([above, above - 1]).clip(0, len(between) - 1))
    rest = _quantiles(common, MAX_BINS - 1 - len(edges))
    return between[
        np.union1d(edges, np.searchsorted(values, rest).clip(0, len(between) - 1))
    ]


def _quantiles(values: Floats, n: int) -> Floats:
    """``n`` values spread evenly over a sorted list, or all if there are fewer."""
    if len(values) <= n:
        return values
    return values[((np.arange(n) + 0.5) / n * len(values)).astype(np.int64)]


def count_categories(
    blocks: Iterator[Floats], features: NDArray[Any]
) -> dict[int, Counter[float]]:
    """Frequencies of the categories of each feature, in one pass over the rows."""
    counts: dict[int, Counter[float]] = {int(f): Counter() for f in features}
    for block in blocks if counts else ():
        for f, counter in counts.items():
            values, more = np.unique(block[:, f], return_counts=True)
            known = ~np.isnan(values)
            counter.update(
                dict(zip(values[known].tolist(), more[known].tolist(), strict=True))
            )
    return counts


def _category_codes(counter: Counter[float]) -> tuple[Floats, NDArray[np.uint8]]:
    seen = np.array(sorted(counter), dtype=np.float64)
    codes = np.arange(1, len(seen) + 1)
    if len(seen) > MAX_BINS:
        counts = np.array([counter[value] for value in seen.tolist()])
        # Of equally frequent categories, the first keep their own code.
        frequent = np.argsort(-counts, kind="stable")[: MAX_BINS - 1]
        codes = np.full(len(seen), MAX_BINS)
        codes[np.sort(frequent)] = np.arange(1, MAX_BINS)
    return seen, codes.astype(np.uint8)


class EdgeSketch:
    """Sketch of a table for binning: distinct values, category counts, sampled rows.

    Parameters
    ----------
    categorical : ndarray of bool, shape (d,)
    n_classes : int
    seed : int
    """

    def __init__(self, categorical: NDArray[np.bool_], n_classes: int, seed: int) -> None:
        d = len(categorical)
        self.categorical: NDArray[np.bool_] = categorical
        self.seed: int = seed
        self.distinct: Distinct = Distinct(d)
        self.counts: dict[int, Counter[float]] = {
            f: Counter() for f in np.flatnonzero(categorical).tolist()
        }
        size = SAMPLE_ROWS // max(n_classes, 2)
        self.samples: list[Sample] = [Sample(d, size) for _ in range(max(n_classes, 2))]

    def add(self, block: Floats, signs: NDArray[np.integer], start: int) -> None:
        """Add rows, the first of which has number ``start`` in the table.

        For ``signs``, see :meth:`~damvi.voters.trees.binning.Binning.learn`.
        """
        some = np.flatnonzero(signs)
        counted = block if len(some) == len(block) else np.ascontiguousarray(block[some])
        if not (self.distinct.crowded | self.categorical).all():
            self.distinct.add(counted)
        features = np.array([*self.counts], dtype=np.intp)
        for f, more in count_categories(iter([counted]), features).items():
            self.counts[f].update(more)
        hashes = row_bits(start + np.arange(len(block)), self.seed)
        for sign, sample in zip(
            (-1, *range(1, len(self.samples))), self.samples, strict=True
        ):
            sample.add(block, hashes, signs == sign)

    def merge(self, other: EdgeSketch) -> EdgeSketch:
        """Merge another sketch into this one, and return it."""
        self.distinct.merge(other.distinct)
        for f, more in other.counts.items():
            self.counts[f].update(more)
        for own, theirs in zip(self.samples, other.samples, strict=True):
            own.add(theirs.values, theirs.hashes, np.ones(len(theirs.hashes), np.bool_))
        return self

    def __sizeof__(self) -> int:
        """Size of the arrays, for schedulers that move sketches between workers."""
        sampled = sum(
            sample.values.nbytes + sample.hashes.nbytes for sample in self.samples
        )
        return sampled + self.distinct.nbytes

    def binning(self, n_jobs: int | None = None) -> Binning:
        """The bins of all rows seen."""
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
        self.hashes: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.values: Floats = np.empty((0, n_features))

    def add(
        self, block: Floats, hashes: NDArray[np.uint64], taken: NDArray[np.bool_]
    ) -> None:
        if len(self.hashes) == self.size:  # only rows with smaller hashes can enter
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


@kernel
def collect_distinct(block: Any, values: Any, counts: Any) -> None:
    """Insert a block into the sorted lists of distinct values, up to their capacity."""
    room = values.shape[1]
    for f in range(block.shape[1]):
        m = counts[f]
        for i in range(block.shape[0]):
            if m == room:
                break
            x = block[i, f]
            if np.isnan(x):
                continue
            j = np.searchsorted(values[f, :m], x)
            if j < m and values[f, j] == x:
                continue
            for k in range(m, j, -1):
                values[f, k] = values[f, k - 1]
            values[f, j] = x
            m += 1
        counts[f] = m


@kernel
def encode(
    block: Any, cuts: Any, starts: Any, category_codes: Any, categorical: Any, out: Any
) -> None:
    """The code of each cell of a block."""
    n_rows = block.shape[0]
    column, place = np.empty(n_rows), np.empty(n_rows, np.int32)
    for f in range(block.shape[1]):
        start, end = starts[f], starts[f + 1]
        for i in range(n_rows):
            column[i] = block[i, f]
            place[i] = start
        # The number of cuts below each value, by binary search: all rows take each step
        # together, which is vectorised.
        n = end - start
        while n > 0:
            half = (n + 1) // 2
            for i in range(n_rows):
                below = cuts[place[i] + half - 1] < column[i]
                place[i] = place[i] + half if below else place[i]
            n -= half
        if categorical[f] == 0:
            for i in range(n_rows):
                out[i, f] = 0 if np.isnan(column[i]) else 1 + place[i] - start
        else:
            for i in range(n_rows):
                known = place[i] < end and cuts[place[i]] == column[i]
                out[i, f] = category_codes[place[i]] if known else 0
