"""Step 1 for a pool of different models on an out-of-core table.

Models are trained on a sample that fits in memory: the same number of rows of each class,
or all rows of a rare class, weighted to represent the table. All rows are voted on, in
blocks, by models of other folds. A row's fold, and whether it is sampled, are functions of
its index (or rank in its class) and the seed. So models and votes do not depend on how the
table is split into files, row groups or partitions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import delayed

from .._kernels import one_blas_thread, one_openmp_thread
from ..folds import Split, deal_folds_by_rank
from ..hashing import Hashes, hash_step, row_bits, thinned
from ..labels import ClassTotals, Labels
from ..messages import progress_bar
from ..validation import Categories, check_many_classes, is_categorical
from ..voters import PoolVoters
from ..voters.estimators import (
    VoteReader,
    Voting,
    in_parallel,
    refuse_single_class,
    weight_name,
)
from ..voters.pool import ALL_ROWS, blamed, check_pool, train_voter
from ..voters.portfolio import strong_pool_for
from . import PoolFit, TrainedPool
from .parquet import ParquetTable, RowGroup
from .training import TableReader

DRAW_KEY = 2**31 * 300
"""Added to the seed, so that sampling and folds, with up to 256 classes, use different
random bits."""
SAMPLE_CELLS = 50_000_000
"""Maximum number of cells in the sample: 400 MB as doubles."""
BLOCK_CELLS = 2**23
BLOCK_ROWS = 2**18
"""Maximum number of cells in memory per thread."""
FEWEST, MOST_PIECE_ROWS = 64, 2**12
"""Number of rows per call of a model's predict."""

Named = list[tuple[str, Any]]
Floats = NDArray[np.float64]


class RowBlock(NamedTuple):
    """Consecutive rows of a table.

    Attributes
    ----------
    numbers : ndarray of shape (n, d)
        Categories as indices into those of their column.
    targets : ndarray of uint8, shape (n,)
    weights : ndarray of shape (n,), or None
        From 0 to 1.
    start : int
        Index of the first row in the table.
    before : ndarray of shape (C,)
        Number of earlier rows of each class.
    """

    numbers: Floats
    targets: NDArray[np.uint8]
    weights: Floats | None
    start: int
    before: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Columns:
    """Convert rows of numbers to the tables that models take.

    Attributes
    ----------
    names : list of str, or None
        None for plain arrays.
    labels : tuple
        Categories of each column; None for numbers.
    """

    names: list[str] | None
    labels: tuple[Any, ...]

    @classmethod
    def of(cls, example: Any) -> Columns:
        """Return the columns of a table without rows."""
        if not hasattr(example, "columns"):
            return cls(None, (None,) * example.shape[1])
        labels = (
            example[name].cat.categories if is_categorical(example[name]) else None
            for name in example.columns
        )
        return cls(list(example.columns), tuple(labels))

    @cached_property
    def categories(self) -> Categories | None:
        """Return the codes of all categories; None if there are none."""
        if all(known is None for known in self.labels):
            return None
        places = (
            None if known is None else {label: place for place, label in enumerate(known)}
            for known in self.labels
        )
        return Categories(tuple(places))

    def table(self, numbers: Floats) -> Any:
        """Return rows in their original form: an array, or a dataframe with categories."""
        import pandas as pd

        if self.names is None:
            return numbers
        if self.categories is None:
            return pd.DataFrame(numbers, columns=self.names, copy=False)
        parts = {}
        for name, labels, column in zip(self.names, self.labels, numbers.T, strict=True):
            parts[name] = np.ascontiguousarray(column)
            if labels is not None:
                codes = np.where(np.isnan(column), -1, column).astype(np.intp)
                parts[name] = pd.Categorical.from_codes(codes, categories=labels)
        return pd.DataFrame(parts, copy=False)


@dataclass(frozen=True, eq=False)
class PoolPlan:
    """What a block needs to know of the whole table.

    Attributes
    ----------
    labels : Labels
    totals : ClassTotals
    seed : int
    n_folds : int
    sample_rows : int
        Approximate number of rows to sample.
    voting : {"soft", "hard"}
    columns : Columns
    """

    labels: Labels
    totals: ClassTotals
    seed: int
    n_folds: int
    sample_rows: int
    voting: Voting
    columns: Columns

    @classmethod
    def of(
        cls, fit: PoolFit, labels: Labels, totals: ClassTotals, rows: int, example: Any
    ) -> PoolPlan:
        columns = Columns.of(example)
        rows = min(rows, max(1, SAMPLE_CELLS // max(1, len(columns.labels))))
        return cls(labels, totals, fit.seed, fit.n_folds, rows, fit.voting, columns)

    @cached_property
    def rates(self) -> Floats:
        """The sampling rate of each class; the rarest first, since the room that it leaves
        goes to the others."""
        rates, room = np.ones(len(self.totals.counted)), self.sample_rows
        for left, c in enumerate(np.argsort(self.totals.counted, kind="stable").tolist()):
            n = int(self.totals.counted[c])
            drawn = min(n, max(1, room // (len(rates) - left)))
            rates[c], room = drawn / n, room - drawn
        return rates

    @cached_property
    def piece_rows(self) -> int:
        """Number of rows per call of a model's predict.

        It is fixed, because the number of rows and a row's position among them can change
        the last bits of a matrix product. Smaller blocks are padded with copies.
        """
        wanted = 1 << max(0, (self.totals.n_rows // 64).bit_length() - 1)
        return int(np.clip(wanted, FEWEST, MOST_PIECE_ROWS))

    @property
    def reader(self) -> VoteReader:
        return VoteReader(np.arange(self.labels.n_classes), self.voting)

    def folds(self, block: RowBlock) -> NDArray[np.int8]:
        return deal_folds_by_rank(block.targets, self.seed, block.before, self.n_folds)

    def drawn(self, block: RowBlock) -> NDArray[np.intp]:
        """Return the rows of the block that are in the sample."""
        rows = np.arange(block.start, block.start + len(block.targets), dtype=np.int64)
        rates = self.rates[block.targets]
        bits = row_bits(rows, self.seed + DRAW_KEY)
        drawn = (rates == 1) | (np.ldexp(bits.astype(np.float64), -64) < rates)
        if block.weights is not None:
            drawn &= block.weights > 0
        return np.flatnonzero(drawn)


class Sample(NamedTuple):
    """The rows that models are trained on.

    Attributes
    ----------
    numbers : ndarray of shape (n, d)
    targets : ndarray of uint8, shape (n,)
    folds : ndarray of shape (n,)
    weights : ndarray of shape (n,)
        Own weight times the number of rows that each represents.
    """

    numbers: Floats
    targets: NDArray[np.uint8]
    folds: NDArray[np.int8]
    weights: Floats

    def rows_without(self, fold: int) -> NDArray[np.intp]:
        """Return the training rows for a fold; all rows for ``ALL_ROWS``."""
        return np.flatnonzero(self.folds != fold)

    @property
    def weights_that_differ(self) -> Floats | None:
        return self.weights if np.ptp(self.weights) > 0 else None


def sample_of(plan: PoolPlan, block: RowBlock) -> Sample:
    """Return the sampled rows of a block."""
    rows = plan.drawn(block)
    targets = block.targets[rows]
    weights = 1 / plan.rates[targets]
    if block.weights is not None:
        weights = weights * block.weights[rows]
    return Sample(block.numbers[rows], targets, plan.folds(block)[rows], weights)


def join_samples(parts: Sequence[Sample]) -> Sample:
    """Join the samples of all blocks, in row order."""
    return Sample(*(np.concatenate(some) for some in zip(*parts, strict=True)))


def pool_of(plan: PoolPlan, given: Named | None, sample: Sample) -> Named:
    """Return the voters, all of which must be able to learn from the sample."""
    weights = sample.weights_that_differ
    if given is None:
        few = plan.columns.table(sample.numbers[:1])
        given = strong_pool_for(few, sample.targets, plan.seed, sample_weight=weights)
    check_pool(given)
    check_many_classes(plan.labels, [voter for _, voter in given])
    refuse_single_class(
        [sample.rows_without(fold) for fold in range(plan.n_folds)], sample.targets
    )
    for name, estimator in given:
        if weights is not None and weight_name(estimator) is None:
            raise ValueError(
                f"voter {name!r} ({type(estimator).__name__}) does not accept "
                f"sample_weight, but on an out-of-core table voters are trained on a "
                f"weighted sample; remove it from the pool, or fit on a table in memory"
            )
    return given


def train_one(
    plan: PoolPlan, named: tuple[str, Any], fold: int, sample: Sample, table: Any = None
) -> tuple[Any, float]:
    """Train a voter for a fold; return the model and the time."""
    table = plan.columns.table(sample.numbers) if table is None else table
    start, rows = time.perf_counter(), sample.rows_without(fold)
    weights = sample.weights_that_differ
    own = None if weights is None else weights[rows]
    model = train_voter(*named, fold, table, sample.targets, rows, own, {}, plan.seed)
    return model, time.perf_counter() - start


def cast(
    plan: PoolPlan, models: list[tuple[str, list[Any]]], block: RowBlock
) -> NDArray[Any]:
    """Return the votes on a block, each by models trained without the row's fold.

    ``models`` has the name of each voter, and its models by fold.
    """
    read, size = plan.reader, plan.piece_rows
    folds = plan.folds(block)
    votes = read.empty(len(folds), len(models))
    with one_openmp_thread():
        for fold in np.unique(folds).tolist():
            judged = np.flatnonzero(folds == fold)
            for start in range(0, len(judged), size):
                rows = judged[start : start + size]
                asked = np.append(rows, np.full(size - len(rows), rows[-1]))
                table = plan.columns.table(block.numbers[asked])
                for k, (name, by_fold) in enumerate(models):
                    with blamed(f"voter {name!r} failed"):
                        votes[rows, k] = read(by_fold[fold], table)[: len(rows)]
    return votes


def room_for_votes(plan: PoolPlan, n_voters: int, folder: Any = None) -> NDArray[Any]:
    """Allocate the votes on all rows on disk, to save memory.

    The file has no name, and is deleted with the last reference to the votes.
    """
    like = plan.reader.empty(0, n_voters)
    shape = (plan.totals.n_rows, *like.shape[1:])
    order: Any = "F" if like.ndim == 2 else "C"
    with TemporaryFile(dir=folder) as file:
        mapped: Any = np.memmap(file, like.dtype, "w+", shape=shape, order=order)
    return np.asarray(mapped)


def finished_pool(
    plan: PoolPlan,
    names: Sequence[str],
    models: list[Any],
    votes: NDArray[Any],
    targets: NDArray[np.uint8],
    folds: NDArray[np.int8],
    weights: Floats | None,
    hashes: Hashes,
    seconds: dict[str, float],
) -> TrainedPool:
    """Collect what the rest of the fit needs, without any block."""
    classes = np.arange(plan.labels.n_classes)
    # Omit the training rows of each fold, which are no longer needed.
    return TrainedPool(
        plan.labels,
        targets,
        weights,
        PoolVoters(tuple(names), models, classes, plan.voting),
        votes,
        Split([], folds.astype(np.int32)),
        np.sort(hashes),
        hash_step(plan.totals.n_rows),
        seconds,
        len(plan.columns.labels),
        plan.columns.names,
    )


class PoolReader:
    """A table on disk, as blocks of rows for a pool."""

    reader: TableReader
    plan: PoolPlan
    targets: NDArray[np.uint8]
    weights: Floats | None

    def __init__(
        self,
        reader: TableReader,
        plan: PoolPlan,
        targets: NDArray[np.uint8],
        weights: Floats | None,
    ) -> None:
        self.reader, self.plan = reader, plan
        self.targets, self.weights = targets, weights
        n_classes = plan.labels.n_classes
        starts = reader.starts
        counts = [
            np.bincount(targets[start:stop], minlength=n_classes)
            for start, stop in pairwise(starts)
        ]
        self._before = np.cumsum([np.zeros(n_classes, np.int64), *counts], axis=0)
        room = BLOCK_CELLS // max(1, len(plan.columns.labels))
        self._block_rows = int(np.clip(room, plan.piece_rows, BLOCK_ROWS))

    def blocks(self, number: int, group: RowGroup) -> Iterator[tuple[RowBlock, Hashes]]:
        """Yield the rows of a row group, with the hashes to record."""
        table, columns = self.reader.table, self.plan.columns
        before, step = self._before[number], hash_step(self.plan.totals.n_rows)
        start = self.reader.starts[number]
        parts: list[Floats] = []
        hashes: list[Hashes] = []
        for first, batch in self.reader.rows(group, start):
            parts.append(table.doubles(batch, columns.categories, str(group)))
            end = first + len(parts[-1])
            own = table.hashes(batch, parts[-1], self.targets[first:end])
            hashes.append(thinned(own, step))
            if end - start >= self._block_rows or end == self.reader.starts[number + 1]:
                rows = slice(start, end)
                numbers = parts[0] if len(parts) == 1 else np.concatenate(parts)
                weights = None if self.weights is None else self.weights[rows]
                block = RowBlock(numbers, self.targets[rows], weights, start, before)
                yield block, np.concatenate(hashes)
                before = before + np.bincount(self.targets[rows], minlength=len(before))
                start, parts, hashes = end, [], []


def train_pool_on_parquet(
    table: ParquetTable, fit: PoolFit, y: Any, sample_weight: Any
) -> TrainedPool:
    """Train a pool on a sample of a table on disk, and vote on all rows."""
    reader = TableReader.of(table, y, sample_weight, fit.n_jobs, fit.verbose)
    labels, targets, weights, totals = reader.all_truth(fit.pos_label, fit.check_labels)
    example = table.example(reader.names, reader.through)
    plan = PoolPlan.of(fit, labels, totals, table.sample_rows, example)
    rows = PoolReader(reader, plan, targets, weights)
    looked = [*reader.through("Drawing a sample", partial(_look, rows))]
    sample = join_samples([part for some, _ in looked for part in some])
    hashes = np.concatenate([part for _, some in looked for part in some])
    del looked
    named = pool_of(plan, fit.named, sample)
    models, whole, seconds = _train(plan, named, sample, fit.n_jobs, fit.verbose)
    del sample
    votes = room_for_votes(plan, len(named), table.cache)
    folds = np.empty(len(targets), np.int8)
    by_name = [(name, by_fold) for (name, _), by_fold in zip(named, models, strict=True)]

    def vote(number: int, group: RowGroup) -> None:
        for block, _ in rows.blocks(number, group):
            own = slice(block.start, block.start + len(block.targets))
            votes[own], folds[own] = cast(plan, by_name, block), plan.folds(block)

    with one_blas_thread():
        for _ in reader.through("Voting on all rows", vote):
            pass
    reader.refuse_changes()
    names = [name for name, _ in named]
    return finished_pool(
        plan, names, whole, votes, targets, folds, weights, hashes, seconds
    )


def _look(
    rows: PoolReader, number: int, group: RowGroup
) -> tuple[list[Sample], list[Hashes]]:
    found = [
        (sample_of(rows.plan, block), own) for block, own in rows.blocks(number, group)
    ]
    return [sample for sample, _ in found], [hashes for _, hashes in found]


def _train(
    plan: PoolPlan, named: Named, sample: Sample, n_jobs: int | None, verbose: int
) -> tuple[list[list[Any]], list[Any], dict[str, float]]:
    """Return each voter's models by fold, its model of all rows, and the times."""
    table = plan.columns.table(sample.numbers)
    tasks = [
        (k, fold) for fold in (ALL_ROWS, *range(plan.n_folds)) for k in range(len(named))
    ]
    work = (delayed(train_one)(plan, named[k], fold, sample, table) for k, fold in tasks)
    models: dict[tuple[int, int], Any] = {}
    seconds = dict.fromkeys((name for name, _ in named), 0.0)
    with one_blas_thread():
        results: Any = in_parallel(work, n_jobs)
        if verbose:
            results = progress_bar("Training voters")(results, len(tasks))
        for (k, fold), (model, took) in zip(tasks, results, strict=True):
            models[k, fold] = model
            seconds[named[k][0]] += took
    by_fold = [[models[k, fold] for fold in range(plan.n_folds)] for k in range(len(named))]
    return by_fold, [models[k, ALL_ROWS] for k in range(len(named))], seconds
