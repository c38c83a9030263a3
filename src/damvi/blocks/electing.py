"""Step 1 of DAMVI on a table beyond memory: labels, bins, codes on disk, voters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .. import __version__
from .._jit import announce_compilation
from .._threads import in_threads
from ..census import Census
from ..fingerprint import Prints
from ..progress import progress_bar
from ..voters.sampling import PoissonSampling
from ..voters.trees.binning import Binning, EdgeSketch, signs_that_count
from ..voters.trees.features import Categories, Features
from ..voters.trees.voters import TreeVoters
from .arrow import numbers_of, values_of
from .ballots import BlockBallots
from .cache import BinCache
from .coded import Plan
from .parquet import ParquetTable, RowGroup
from .survey import Contest, Survey, check_census, number
from .table import CodedTable


class Elected(NamedTuple):
    """What a fit leaves behind."""

    contest: Contest
    voters: TreeVoters
    ballots: BlockBallots
    prints: Prints
    names: list[str] | None


class TableReader:
    """A table's passes: each row group is read by one thread at a time.

    Parameters
    ----------
    table : ParquetTable
    target : str
    weight : str or None
        The column of the rows' weights.
    n_jobs : int or None
    verbose : int
    """

    def __init__(
        self,
        table: ParquetTable,
        target: str,
        weight: str | None,
        n_jobs: int | None,
        verbose: int,
    ) -> None:
        self.digest = table.digest()  # before anything is read
        self.table, self.target, self.weight = table, target, weight
        self.names = table.features(target, weight)
        self.n_jobs, self.verbose = n_jobs, verbose
        sizes = [group.n_rows for group in table.groups]
        self.starts = np.cumsum([0, *sizes]).tolist()

    def through(self, what: str, work: Callable[[int, RowGroup], Any]) -> Iterator[Any]:
        """What the work makes of each row group, in order, with a bar if one is wanted."""
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
        """Passes over files that change meanwhile would not be of the same rows."""
        try:
            same = self.table.digest() == self.digest
        except OSError:  # it is gone
            same = False
        if not same:
            raise ValueError(
                f"{self.table.path} was changed while it was read; fit again"
            ) from error

    def truth(self, group: RowGroup) -> Iterator[tuple[NDArray[Any], NDArray[Any] | None]]:
        """Labels and weights, batch by batch."""
        names = [self.target] if self.weight is None else [self.target, self.weight]
        for batch in group.batches(names):
            weights = None if self.weight is None else numbers_of(batch.column(1))
            yield values_of(batch.column(0)), weights

    def rows(self, group: RowGroup, start: int) -> Iterator[tuple[int, Any]]:
        """The number of the first row of each batch, and the batch."""
        for batch in group.batches(self.names):
            yield start, batch
            start += batch.num_rows


def elect_from_disk(model: Any, reader: TableReader, seed: int, balance: float) -> Elected:
    """Train the voters of ``model`` on a table, and have them vote block by block."""
    announce_compilation()
    table = reader.table
    tree = clone(model._voter())
    tree._validate_params()
    survey = reduce(
        lambda one, other: one + other,
        reader.through("Reading labels", partial(_survey, reader)),
        Survey(np.empty(0), np.empty(0, np.intp)),
    )
    contest = survey.contest(model.pos_label)
    labels, weights, census = _read_labels(reader, survey, contest)
    check_census(contest, census, weights is not None)
    plan = Plan(
        contest,
        census,
        seed,
        model.max_samples,
        model.stratified,
        balance,
        model._way == "oob",
    )
    categories, categorical = table.categories(tree, reader.names, reader.through)
    key = _key(reader, categorical, seed, contest)
    shape = len(labels), len(reader.names)
    cache = BinCache(table.cache, key, shape, len(table.groups))
    if model.random_state is None:  # no other fit can go on from these bins
        cache.removed_when_unused()
    try:
        binning = cache.binning
        if binning is None:
            signs = partial(_signs, plan, labels, weights)
            binning = _find_bins(reader, categories, categorical, plan, signs)
            cache.keep_binning(binning)
        _write_codes(reader, categories, binning, labels, cache)
        reader.refuse_changes()
    except ValueError:  # of the files: once they are mended, these bins are of no use
        cache.removed_when_unused()
        raise
    features = Features(categories, binning)
    draws = PoissonSampling.plan(
        labels,
        max_samples=model.max_samples,
        seed=seed,
        stratified=model.stratified,
        sample_weight=weights,
        census=census,
    )
    voters = TreeVoters.grow_on(
        tree,
        features,
        cache.codes,
        labels,
        draws,
        model.n_estimators,
        n_classes=plan.n_classes,
        n_jobs=reader.n_jobs,
        progress=progress_bar("Training voters") if reader.verbose else None,
    )
    blocks = CodedTable(
        cache.codes, labels, weights, plan.n_classes, reader.n_jobs, reader.verbose, cache
    )
    return Elected(
        contest,
        voters,
        BlockBallots(blocks, plan, voters.forest),
        cache.prints,
        reader.names,
    )


def _survey(reader: TableReader, _: int, group: RowGroup) -> Survey:
    found = Survey(np.empty(0), np.empty(0, np.intp))
    for y, weights in reader.truth(group):
        found = found + Survey.of(y, weights, str(group))
    return found


def _read_labels(
    reader: TableReader, survey: Survey, contest: Contest
) -> tuple[NDArray[np.uint8], NDArray[np.float64] | None, Census]:
    """The number of each row's class, its weight, and what they come to."""
    n, n_classes = reader.starts[-1], len(contest.classes)
    labels = np.empty(n, np.uint8)
    weights = None if reader.weight is None else np.empty(n)

    def read(part: int, group: RowGroup) -> Census:
        start, found = reader.starts[part], Census.of(labels[:0], n_classes)
        for y, given in reader.truth(group):
            rows = slice(start, start + len(y))
            labels[rows], start = number(contest, y), rows.stop
            scaled = survey.scaled(given)
            if weights is not None and scaled is not None:
                weights[rows] = scaled
            found += Census.of(labels[rows], n_classes, scaled)
        return found

    parts = reader.through("Numbering classes", read)
    return labels, weights, reduce(lambda one, other: one + other, parts)


def _signs(
    plan: Plan,
    labels: NDArray[np.uint8],
    weights: NDArray[np.float64] | None,
    rows: slice,
) -> NDArray[np.int16]:
    """As bins are learned from them."""
    given = None if weights is None else weights[rows]
    return signs_that_count(labels[rows], plan.n_classes, given, plan.census.counted)


def _find_bins(
    reader: TableReader,
    categories: Categories | None,
    categorical: NDArray[np.bool_],
    plan: Plan,
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
    labels: NDArray[np.uint8],
    cache: BinCache,
) -> None:
    def write(part: int, group: RowGroup) -> None:
        if cache.is_done(part):
            return
        for start, batch in reader.rows(group, reader.starts[part]):
            block = reader.table.doubles(batch, categories, str(group))
            prints = reader.table.prints(batch, block, labels[start : start + len(block)])
            cache.write(start, binning.encode(block), prints)
        cache.finish(part)

    for _ in reader.through("Binning", write):
        pass


def _key(
    reader: TableReader, categorical: NDArray[np.bool_], seed: int, contest: Contest
) -> str:
    """All that the bins and codes depend on."""
    said = (
        __version__,
        reader.digest,
        reader.names,
        reader.target,
        reader.weight,
        seed,
        contest.pos_label,
        categorical.tolist(),
    )
    return sha256(repr(said).encode()).hexdigest()
