"""Step 1 of DAMVI on an out-of-core table: labels, bins, codes on disk, voters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from hashlib import sha256
from secrets import token_hex
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from .. import __version__
from .._kernels import announce_compilation, in_threads
from ..labels import ClassTotals, Labels
from ..messages import progress_bar
from ..validation import Categories
from ..voters.sampling import PoissonSampling
from ..voters.trees.binning import Binning, EdgeSketch, Features, signs_that_count
from ..voters.trees.estimators import TreeVoters
from . import BlockFit, Trained
from .blocks import BlockPlan, BlockVotes, CodedTable
from .cache import BinCache
from .parquet import ParquetTable, RowGroup, numbers_of, values_of


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Counts of labels, and the largest weight; additive over parts of a table."""

    values: NDArray[Any]
    counts: NDArray[np.intp]
    largest_weight: float = 0.0

    @classmethod
    def none(cls) -> LabelCounts:
        return cls(np.empty(0), np.empty(0, np.intp))

    @classmethod
    def of(cls, y: NDArray[Any], weights: NDArray[Any] | None, where: str) -> LabelCounts:
        """Count the labels of some rows; ``where`` names them in errors."""
        missing = _missing(y)
        if missing.any():
            raise ValueError(
                f"{where}: {int(missing.sum())} of {len(y)} rows have no label; drop them "
                f"out"
            )
        values, counts = np.unique(y, return_counts=True)
        if weights is None:
            return cls(values, counts)
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError(
                f"{where}: some sample weights are missing, infinite or negative; all "
                f"must be finite and nonnegative"
            )
        return cls(values, counts, float(weights.max(initial=0.0)))

    def __add__(self, other: LabelCounts) -> LabelCounts:
        largest = max(self.largest_weight, other.largest_weight)
        if not len(self.values) or not len(other.values):
            known = self if len(self.values) else other
            return LabelCounts(known.values, known.counts, largest)
        values, places = np.unique(
            np.concatenate([self.values, other.values]), return_inverse=True
        )
        counts = np.zeros(len(values), np.intp)
        np.add.at(counts, places, np.concatenate([self.counts, other.counts]))
        return LabelCounts(values, counts, largest)

    def labels(self, pos_label: Any) -> Labels:
        """Return the classes of the whole table."""
        if not len(self.values):
            raise ValueError("the table has 0 rows; at least one of each class is needed")
        check_classification_targets(self.values)
        return Labels.from_counts(self.values, self.counts, pos_label)

    def scaled(self, weights: NDArray[Any] | None) -> NDArray[np.float64] | None:
        """Scale weights to a maximum of 1 in the whole table."""
        if weights is None:
            return None
        return np.asarray(weights, np.float64) / (self.largest_weight or 1.0)


def targets_of(labels: Labels, y: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the class index of each row; for two classes, 1 is positive."""
    return labels.targets_at(np.searchsorted(labels.classes, y)).astype(np.uint8)


def check_totals(labels: Labels, totals: ClassTotals, weighted: bool) -> None:
    """Check that all classes have rows with positive weight."""
    if not weighted:
        return
    if not totals.units.any():
        raise ValueError("all weights are zero; some must be positive")
    if not totals.units.all():
        name = labels.by_target.tolist()[int(totals.units.argmin())]
        raise ValueError(
            f"all rows of class {name!r} have zero weight, or less than 2**-31 of the "
            f"largest; give one of them a larger weight, or drop these rows"
        )


def _missing(y: NDArray[Any]) -> NDArray[np.bool_]:
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind == "O":
        return np.array([value is None or value != value for value in y.tolist()], np.bool_)
    return np.zeros(len(y), np.bool_)


class TableReader:
    """Passes over a table; each row group is read by one thread.

    Parameters
    ----------
    table : ParquetTable
    target : str
    weight : str or None
        The column of sample weights.
    n_jobs : int or None
    verbose : int
    """

    table: ParquetTable
    target: str
    weight: str | None
    n_jobs: int | None
    verbose: int

    def __init__(
        self,
        table: ParquetTable,
        target: str,
        weight: str | None,
        n_jobs: int | None,
        verbose: int,
    ) -> None:
        self.status: list[tuple[Any, ...]] = table.status()  # before anything is read
        self.table, self.target, self.weight = table, target, weight
        self.names: list[str] = table.features(target, weight)
        self.n_jobs, self.verbose = n_jobs, verbose
        sizes = [group.n_rows for group in table.groups]
        self.starts: list[int] = np.cumsum([0, *sizes]).tolist()

    @classmethod
    def of(
        cls, table: ParquetTable, y: Any, sample_weight: Any, n_jobs: Any, verbose: int
    ) -> TableReader:
        """Create a reader from the arguments of ``fit``."""
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            if not isinstance(given, str) and (given is not None or name == "y"):
                raise TypeError(
                    f"X is a parquet dataset, so {name} must be the name of a column, not "
                    f"{type(given).__name__}"
                )
        return cls(table, y, sample_weight, n_jobs, verbose)

    def all_truth(
        self, pos_label: Any, check_labels: Callable[[Labels], Any]
    ) -> tuple[Labels, NDArray[np.uint8], NDArray[np.float64] | None, ClassTotals]:
        """Return the classes, each row's class index and weight, and their totals."""
        counts = reduce(
            lambda one, other: one + other,
            self.through("Reading labels", partial(_count_labels, self)),
            LabelCounts.none(),
        )
        labels = counts.labels(pos_label)
        check_labels(labels)
        targets, weights, totals = _read_targets(self, counts, labels)
        check_totals(labels, totals, weights is not None)
        return labels, targets, weights, totals

    def through(self, what: str, work: Callable[[int, RowGroup], Any]) -> Iterator[Any]:
        """Yield the result of ``work`` on each row group, in order, with a progress bar."""
        groups = self.table.groups
        calls = (
            partial(self._watched, work, number, group)
            for number, group in enumerate(groups)
        )
        results = in_threads(calls, self.n_jobs)
        return progress_bar(what)(results, len(groups)) if self.verbose else results

    def _watched(self, work: Callable[[int, RowGroup], Any], *given: Any) -> Any:
        try:
            return work(*given)
        except Exception as error:
            self.refuse_changes(error)
            raise

    def refuse_changes(self, error: Exception | None = None) -> None:
        """Raise an error if the files have changed, since passes must see the same rows."""
        try:
            same = self.table.status() == self.status
        except OSError:  # a file was removed
            same = False
        if not same:
            raise ValueError(
                f"{self.table.path} changed while it was read; fit again"
            ) from error

    def truth(self, group: RowGroup) -> Iterator[tuple[NDArray[Any], NDArray[Any] | None]]:
        """Yield labels and weights in batches."""
        names = [self.target] if self.weight is None else [self.target, self.weight]
        for batch in group.batches(names):
            weights = None if self.weight is None else numbers_of(batch.column(1))
            yield values_of(batch.column(0)), weights

    def rows(self, group: RowGroup, start: int) -> Iterator[tuple[int, Any]]:
        """Yield each batch with the index of its first row."""
        for batch in group.batches(self.names):
            yield start, batch
            start += batch.num_rows


def train_on_parquet(
    table: ParquetTable, fit: BlockFit, y: Any, sample_weight: Any
) -> Trained:
    """Train voters on a table on disk, and let them vote in blocks."""
    announce_compilation()
    tree = fit.new_tree()
    reader = TableReader.of(table, y, sample_weight, fit.n_jobs, fit.verbose)
    labels, targets, weights, totals = reader.all_truth(fit.pos_label, fit.check_labels)
    plan = BlockPlan.of(fit, labels, totals)
    example = table.example(reader.names, reader.through)
    categories, categorical = categories_of(tree, example)
    # Without a known seed, no other fit can resume from these bins.
    key = _key(reader, categorical, fit.seed, labels) if fit.repeatable else token_hex(32)
    cache = BinCache(table.cache, key, reader.starts, len(reader.names))
    if not fit.repeatable:
        cache.removed_when_unused()
    try:
        binning = cache.binning
        if binning is None:
            signs = partial(_signs, plan, targets, weights)
            binning = _find_bins(reader, categories, categorical, plan, signs)
            cache.keep_binning(binning)
        _write_codes(reader, categories, binning, targets, cache)
        reader.refuse_changes()
    except ValueError:  # bad files: once fixed, these bins are useless
        cache.removed_when_unused()
        raise
    sampling = PoissonSampling.plan(
        targets,
        max_samples=fit.max_samples,
        seed=fit.seed,
        stratified=fit.stratified,
        sample_weight=weights,
        totals=totals,
    )
    voters = TreeVoters.grow_on(
        tree,
        Features(categories, binning),
        cache.codes,
        targets,
        sampling,
        fit.n_estimators,
        n_classes=plan.n_classes,
        n_jobs=fit.n_jobs,
        progress=progress_bar("Training voters") if fit.verbose else None,
    )
    blocks = CodedTable(
        cache.codes, targets, weights, plan.n_classes, fit.n_jobs, fit.verbose, cache
    )
    votes = BlockVotes(blocks, plan, voters.forest)
    return Trained(voters, votes, cache.hashes, reader.names)


def categories_of(tree: Any, example: Any) -> tuple[Categories | None, NDArray[np.bool_]]:
    """Return the categories of each column of an empty table, and which have any."""
    mask = tree.categorical_mask(example)
    if not tree.wants_frame(example):
        return None, mask
    categories = Categories.learn(example)
    return categories, mask | categories.mask


def _count_labels(reader: TableReader, _: int, group: RowGroup) -> LabelCounts:
    found = LabelCounts.none()
    for y, weights in reader.truth(group):
        found = found + LabelCounts.of(y, weights, str(group))
    return found


def _read_targets(
    reader: TableReader, counts: LabelCounts, labels: Labels
) -> tuple[NDArray[np.uint8], NDArray[np.float64] | None, ClassTotals]:
    """Return each row's class index and weight, and their totals."""
    n, n_classes = reader.starts[-1], labels.n_classes
    targets = np.empty(n, np.uint8)
    weights = None if reader.weight is None else np.empty(n)

    def read(part: int, group: RowGroup) -> ClassTotals:
        start, found = reader.starts[part], ClassTotals.of(targets[:0], n_classes)
        for y, given in reader.truth(group):
            rows = slice(start, start + len(y))
            targets[rows], start = targets_of(labels, y), rows.stop
            scaled = counts.scaled(given)
            if weights is not None and scaled is not None:
                weights[rows] = scaled
            found += ClassTotals.of(targets[rows], n_classes, scaled)
        return found

    parts = reader.through("Numbering classes", read)
    return targets, weights, reduce(lambda one, other: one + other, parts)


def _signs(
    plan: BlockPlan,
    targets: NDArray[np.uint8],
    weights: NDArray[np.float64] | None,
    rows: slice,
) -> NDArray[np.int16]:
    """Return the signs from which bins are learned."""
    given = None if weights is None else weights[rows]
    return signs_that_count(targets[rows], plan.n_classes, given, plan.totals.counted)


def _find_bins(
    reader: TableReader,
    categories: Categories | None,
    categorical: NDArray[np.bool_],
    plan: BlockPlan,
    signs: Callable[[slice], NDArray[np.int16]],
) -> Binning:
    def look(part: int, group: RowGroup) -> EdgeSketch:
        sketch = EdgeSketch(categorical, plan.n_classes, plan.seed)
        for start, batch in reader.rows(group, reader.starts[part]):
            block = reader.table.doubles(batch, categories, str(group))
            sketch.add(block, signs(slice(start, start + len(block))), start)
        return sketch

    whole = EdgeSketch(categorical, plan.n_classes, plan.seed)
    for sketch in reader.through("Finding bins", look):
        whole.merge(sketch)
    return whole.binning(reader.n_jobs)


def _write_codes(
    reader: TableReader,
    categories: Categories | None,
    binning: Binning,
    targets: NDArray[np.uint8],
    cache: BinCache,
) -> None:
    def write(part: int, group: RowGroup) -> None:
        if cache.is_done(part):
            return
        for start, batch in reader.rows(group, reader.starts[part]):
            block = reader.table.doubles(batch, categories, str(group))
            own = targets[start : start + len(block)]
            hashes = reader.table.hashes(batch, block, own)
            cache.write(start, binning.encode(block), hashes)
        cache.finish(part)

    for _ in reader.through("Binning", write):
        pass


def _key(
    reader: TableReader, categorical: NDArray[np.bool_], seed: int, labels: Labels
) -> str:
    """Return a digest of everything that bins and codes depend on."""
    digest = reader.table.digest(reader.n_jobs)
    reader.refuse_changes()
    said = (
        __version__,
        digest,
        reader.names,
        reader.target,
        reader.weight,
        seed,
        labels.pos_label,
        categorical.tolist(),
    )
    return sha256(repr(said).encode()).hexdigest()
