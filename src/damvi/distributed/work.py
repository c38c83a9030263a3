"""The tasks of the workers.

They are pure functions of their arguments, so that the results of a lost worker can be
recomputed elsewhere, with the same outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..hashing import Hashes, row_hashes, thinned
from ..labels import ClassTotals, Labels
from ..outofcore.blocks import BlockPlan, CodedBlock, sample_of
from ..outofcore.training import LabelCounts, targets_of
from ..validation import Categories, FrameTable
from ..voters.sampling import random_state_of
from ..voters.trees.binning import (
    Binning,
    EdgeSketch,
    Features,
    dense,
    signs_that_count,
)
from ..voters.trees.estimators import grow_tree
from ..voters.trees.forest import Forest

PIECE_ROWS = 2**16
"""Rows of a partition whose votes are in memory at a time."""
SKETCH_CELLS = 2**20
"""Cells examined at a time; each step copies the sketch."""


class Truth(NamedTuple):
    """Labels and weights of a partition, as given."""

    number: int
    y: NDArray[Any]
    weights: NDArray[Any] | None


class Place(NamedTuple):
    """The position of a partition in the table.

    Attributes
    ----------
    number : int
    start : int
        Index of its first row.
    before : ndarray of shape (C,)
        Number of earlier rows of each class.
    """

    number: int
    start: int
    before: NDArray[np.int64]

    def __str__(self) -> str:
        return f"partition {self.number}"


class PartitionSketch(NamedTuple):
    """What bins are learned from, and the hashes of the rows."""

    sketch: EdgeSketch
    hashes: Hashes


class Sample(NamedTuple):
    """Rows that a voter is trained on."""

    codes: NDArray[np.uint8]
    times: NDArray[Any]
    targets: NDArray[np.uint8]


def truth_of(number: int, y: Any, weights: Any) -> Truth:
    values = np.asarray(y)
    if values.dtype.kind == "O" and hasattr(y, "isna"):
        values = np.array(y.astype(object).where(~y.isna(), None), object)
    try:
        given = None if weights is None else np.asarray(weights, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"partition {number}: sample_weight is not numeric ({error})"
        ) from error
    if given is not None and len(given) != len(values):
        raise ValueError(
            f"partition {number}: y has {len(values)} rows, but sample_weight has "
            f"{len(given)}; partition both alike"
        )
    return Truth(number, values, given)


def count_labels(truth: Truth) -> LabelCounts:
    return LabelCounts.of(truth.y, truth.weights, f"partition {truth.number}")


def class_totals_of(truth: Truth, label_counts: LabelCounts, labels: Labels) -> ClassTotals:
    targets = targets_of(labels, truth.y)
    return ClassTotals.of(targets, labels.n_classes, label_counts.scaled(truth.weights))


def sketch_of(
    X: Any,
    truth: Truth,
    place: Place,
    plan: BlockPlan,
    label_counts: LabelCounts,
    categories: Categories | None,
    categorical: NDArray[np.bool_],
    hash_step: int,
) -> PartitionSketch:
    """Examine the rows of a partition once."""
    table = table_of(X, truth, place, categories)
    targets, weights = targets_of(plan.labels, truth.y), label_counts.scaled(truth.weights)
    signs = signs_that_count(targets, plan.n_classes, weights, plan.totals.counted)
    sketch = EdgeSketch(categorical, plan.n_classes, plan.seed)
    step = max(1, SKETCH_CELLS // table.shape[1])
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        block = dense(table[rows])
        refuse_infinity(block, X, categories, place)
        sketch.add(block, signs[rows], place.start + start)
    known = row_hashes(table if categories is None else X, targets)
    return PartitionSketch(sketch, thinned(known, hash_step))


def merge_sketches(*parts: PartitionSketch) -> PartitionSketch:
    first = parts[0].sketch
    whole = EdgeSketch(first.categorical, len(first.samples), first.seed)
    for part in parts:
        whole.merge(part.sketch)
    return PartitionSketch(whole, np.concatenate([part.hashes for part in parts]))


def bins_of(whole: PartitionSketch) -> tuple[Binning, Hashes]:
    return whole.sketch.binning(), whole.hashes


def codes_of(
    X: Any,
    truth: Truth,
    place: Place,
    plan: BlockPlan,
    label_counts: LabelCounts,
    features: Features,
) -> CodedBlock:
    """Return the partition as one-byte codes, as used from here on."""
    table = table_of(X, truth, place, features.categories)
    return CodedBlock(
        features.binning.encode(table),
        targets_of(plan.labels, truth.y),
        label_counts.scaled(truth.weights),
        place.start,
        place.before,
    )


def fingerprint_of(block: CodedBlock) -> int:
    """Return a number for the rows and their positions; see :func:`add_fingerprints`."""
    return add_fingerprints(*map(_fingerprint, pieces(block)))


def add_fingerprints(*parts: int) -> int:
    """Combine the fingerprints of the parts of a table, independent of the partitioning."""
    return sum(parts) % 2**64


def _fingerprint(block: CodedBlock) -> int:
    n, d = block.codes.shape
    words = np.zeros((n, -(-d // 4) * 4), np.uint8)  # four codes per word
    words[:, :d] = block.codes
    weights = np.zeros(n) if block.weights is None else block.weights
    places = np.arange(block.start, block.start + n)
    parts = [words, block.targets.astype(np.uint32), weights, places]
    known = np.concatenate([part.view(np.uint32).reshape(n, -1) for part in parts], axis=1)
    return int(row_hashes(known, np.zeros(n, np.uint8)).sum())


def samples_of(block: CodedBlock, plan: BlockPlan, voters: range) -> list[Sample]:
    """Return the rows of the partition that some voters are trained on."""
    samples = []
    for voter in voters:
        codes, times, targets = sample_of(plan, voter, block)
        small = np.min_scalar_type(
            int(times.max(initial=0))
        )  # they are sent between workers
        samples.append(Sample(codes, times.astype(small), targets))
    return samples


def grow_lot(
    parts: Sequence[list[Sample]],
    voters: range,
    tree: Any,
    features: Features,
    plan: BlockPlan,
) -> Forest:
    """Grow some trees, from the samples of all partitions in row order."""
    grown = []
    sizes = [sum(len(part[k].targets) for part in parts) for k in range(len(voters))]
    # One array for all, since Dask's workers return freed memory at once.
    room = np.empty((max(sizes), len(features)), np.uint8)
    for k, (voter, size) in enumerate(zip(voters, sizes, strict=True)):
        samples = [part[k] for part in parts]
        codes = np.concatenate([sample.codes for sample in samples], out=room[:size])
        times = np.concatenate([sample.times for sample in samples]).astype(np.int64)
        targets = np.concatenate([sample.targets for sample in samples])
        seed = random_state_of(plan.seed, voter)
        grown.append(grow_tree(tree, features, plan.n_classes, codes, times, targets, seed))
    return Forest.join(grown)


def join(*forests: Forest) -> Forest:
    return Forest.join(forests)


def listed(*values: Any) -> list[Any]:
    """Join many small values, to fetch them at once."""
    return list(values)


def identity(value: Any) -> Any:
    """Return a value of the client, as a task that any worker can repeat."""
    return value


def add_all(add: Callable[..., Any], *values: Any) -> Any:
    return reduce(add, values)


def work_on(block: CodedBlock, asked: Callable[..., Any], given: list[Any]) -> list[Any]:
    """Return what ``asked`` returns for each piece of a partition, in order."""
    return [asked(*given, piece) for piece in pieces(block)]


def total_of(
    block: CodedBlock, asked: Callable[..., Any], given: list[Any], add: Callable[..., Any]
) -> Any:
    """Return the sum of the results."""
    return reduce(add, (asked(*given, piece) for piece in pieces(block)))


def pieces(block: CodedBlock) -> Iterator[CodedBlock]:
    """Split a partition into blocks whose votes fit in memory."""
    before = block.before
    for first in range(0, len(block.targets), PIECE_ROWS):
        rows = slice(first, first + PIECE_ROWS)
        targets = block.targets[rows]
        weights = None if block.weights is None else block.weights[rows]
        yield CodedBlock(block.codes[rows], targets, weights, block.start + first, before)
        before = before + np.bincount(targets, minlength=len(before))


def table_of(X: Any, truth: Truth, place: Place, categories: Categories | None) -> Any:
    """Return the rows as a table from which numbers are read in blocks."""
    if len(X) != len(truth.y):
        raise ValueError(
            f"{place}: X has {len(X)} rows, but y has {len(truth.y)}; use the same "
            f"partitions"
        )
    if categories is not None:
        return FrameTable(X, categories)
    if hasattr(X, "columns"):
        return X.to_numpy(np.float64, na_value=np.nan)
    return np.asarray(X)


def refuse_infinity(
    block: NDArray[np.float64], X: Any, categories: Categories | None, place: Place
) -> None:
    if categories is not None or not np.isinf(block).any():
        return  # with categories, the table itself checks
    column = int(np.isinf(block).any(axis=0).argmax())
    name = X.columns[column] if hasattr(X, "columns") else column
    raise ValueError(f"{place}: column {name!r} contains infinity; use a number or NaN")
