"""Step 1 of DAMVI on a cluster: labels, bins, codes and voters, where the rows are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from numbers import Integral
from operator import add
from os import PathLike
from typing import Any, NamedTuple

import dask.array as da
import dask.dataframe as dd
import numpy as np
from distributed import Future
from numpy.typing import NDArray

from ..hashing import Hashes, hash_step
from ..labels import ClassTotals, Labels
from ..messages import progress_bar
from ..outofcore import BlockFit, PoolFit, Trained
from ..outofcore.blocks import BlockPlan, BlockVotes
from ..outofcore.training import LabelCounts, categories_of, check_totals
from ..validation import Categories
from ..voters.trees.binning import Features
from ..voters.trees.estimators import TreeVoters
from ..voters.trees.forest import Forest
from . import work
from .checkpoint import Checkpoint, key_of, missing
from .cluster import Cluster, FutureBlocks
from .work import Place

LOT_BYTES = 2**27
"""Maximum size of the samples of voters that one task grows."""
LOTS_A_THREAD = 4
"""Minimum number of batches per thread, so that no thread waits long for another."""


Parts = list[Any]
"""One lazy value per partition."""


class Table(NamedTuple):
    """A partitioned table.

    Attributes
    ----------
    X, y : list of Delayed
    weights : list of Delayed, or of None
    frame : DataFrame or None
        An empty dataframe with the same columns; None for arrays.
    n_features : int
    """

    X: Parts
    y: Parts
    weights: Parts
    frame: Any
    n_features: int

    @property
    def example(self) -> Any:
        """An empty table."""
        return np.empty((0, self.n_features)) if self.frame is None else self.frame


def read_partitions(X: Any, y: Any, sample_weight: Any) -> Table:
    """Read a table, its labels and its weights, partitioned alike."""
    if isinstance(X, dd.DataFrame):
        return _read_frame(X, y, sample_weight)
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X must be a Dask DataFrame or Array, not {type(X).__name__}; for a table in "
            f"memory, use estimator.fit(X, y)"
        )
    X = in_rows(X)
    parts = _parts(X)
    labels = _column("y", y, X, len(parts))
    weights = _column("sample_weight", sample_weight, X, len(parts))
    return Table(parts, labels, weights, None, X.shape[1])


def in_rows(X: Any) -> Any:
    """Rechunk an array so that no row is split."""
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions, but must have two")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X has dtype {X.dtype}, but an array must be numeric")
    return X.rechunk({1: -1})


def check_frame(X: Any) -> None:
    """Check that all columns are numeric or known categories."""
    twice = X.columns[X.columns.duplicated()].tolist()
    if twice:
        raise ValueError(f"X has more than one column named {twice}; rename them")
    for name, dtype in X.dtypes.items():
        if str(dtype) == "category":
            if not X[name].cat.known:
                raise ValueError(
                    f"the categories of column {name!r} are unknown; determine them with "
                    f"X = X.categorize(columns=[{name!r}])"
                )
        elif dtype.kind not in "biuf":
            raise ValueError(
                f"column {name!r} has dtype {dtype}, neither numeric nor categorical; "
                f"convert it with X = X.categorize(columns=[{name!r}]), or drop it"
            )


def _read_frame(X: Any, y: Any, sample_weight: Any) -> Table:
    whole, own = X, [name for name in (y, sample_weight) if isinstance(name, str)]
    for name in own:
        if name not in X.columns:
            raise ValueError(
                f"X has no column {name!r}; its columns are "
                f"{', '.join(map(repr, X.columns))}"
            )
    if own:
        X = X.drop(columns=own)
    if not len(X.columns):
        raise ValueError("X has no feature columns")
    check_frame(X)
    y, sample_weight = (
        whole[given] if isinstance(given, str) else given for given in (y, sample_weight)
    )
    parts = _parts(X)
    labels = _column("y", y, X, len(parts))
    weights = _column("sample_weight", sample_weight, X, len(parts))
    return Table(parts, labels, weights, X._meta, len(X.columns))


def _column(name: str, given: Any, X: Any, n_parts: int) -> Parts:
    """Return one value per row, partitioned like ``X``."""
    if given is None and name != "y":
        return [None] * n_parts
    if isinstance(given, da.Array):
        if given.ndim != 1:
            raise ValueError(f"{name} has {given.ndim} dimensions; pass one value per row")
        if isinstance(X, da.Array) and not _unknown(X) and not _unknown(given):
            if given.shape[0] != X.shape[0]:
                raise ValueError(
                    f"{name} has {given.shape[0]} rows, but X has {X.shape[0]}; pass one "
                    f"value per row"
                )
            given = given.rechunk((X.chunks[0],))
    elif not isinstance(given, dd.Series):
        or_name = " or the name of a column" if isinstance(X, dd.DataFrame) else ""
        raise TypeError(
            f"{name} is a {type(given).__name__}, but must be a Dask Series or Array"
            f"{or_name}"
        )
    parts = _parts(given)
    if len(parts) != n_parts:
        raise ValueError(
            f"{name} has {len(parts)} partitions, but X has {n_parts}; partition them "
            f"alike, as when both come from one DataFrame"
        )
    return parts


def _parts(given: Any) -> Parts:
    if isinstance(given, da.Array):
        lazy: Parts = given.to_delayed().ravel().tolist()
        return lazy
    # Only reads the columns it needs, but must not merge partitions that have become small:
    # X and y would no longer be partitioned alike.
    lazy = given.simplify().to_delayed(optimize_graph=False)
    return lazy


def _unknown(array: Any) -> bool:
    return bool(array.shape[0] != array.shape[0])  # NaN: unknown


class Rows(NamedTuple):
    """A table on the workers: what is still to be read, and what is known.

    Attributes
    ----------
    parts : list of (Delayed, Future, Place)
        For each non-empty partition: its rows, their labels, and its position.
    label_counts : LabelCounts
    plan : BlockPlan or PoolPlan
    """

    parts: list[Any]
    label_counts: LabelCounts
    plan: Any


def train_on_cluster(
    cluster: Cluster, fit: BlockFit, table: Table, cache: str | PathLike[str] | None
) -> Trained:
    """Train voters on a table, and vote where the rows are."""
    tree = fit.new_tree()
    categories, categorical = categories_of(tree, table.example)
    names = names_of(table)
    rows = count_rows(cluster, fit, table, partial(BlockPlan.of, fit))
    features, hashes = _find_bins(cluster, rows, categories, categorical)
    there = cluster.hand("features", features)
    coded = cluster.each_of_lazy(
        "codes",
        work.codes_of,
        rows.parts,
        plan=rows.plan,
        label_counts=rows.label_counts,
        features=there,
    )
    cluster.watch.wait(coded)
    plan = rows.plan
    del rows  # the raw labels are no longer needed
    checkpoint = None
    if fit.repeatable:  # otherwise no fit could resume from these voters
        fingerprints = cluster.each("fingerprint", work.fingerprint_of, coded)
        whole = cluster.total("add-fingerprints", work.add_fingerprints, fingerprints)
        key = key_of(tree, features.binning, plan, cluster.result(whole))
        checkpoint = Checkpoint(cache, key)
    grow = partial(_grow_lots, cluster, tree, plan, coded, there)
    forest, grown = _grow(cluster, fit, plan, len(features), grow, checkpoint)
    blocks = FutureBlocks(cluster.client, coded, [(forest, grown)], checkpoint)
    voters = TreeVoters(tree, features, forest)
    return Trained(voters, BlockVotes(blocks, plan, forest), hashes, names)


def count_rows(
    cluster: Cluster,
    fit: BlockFit | PoolFit,
    table: Table,
    make_plan: Callable[[Labels, ClassTotals], Any],
) -> Rows:
    """Return the labels of all partitions, and the number of rows per class in each."""
    numbers = range(len(table.X))
    given = zip(numbers, table.y, table.weights, strict=True)
    truth = cluster.each_of_lazy("labels", work.truth_of, given)
    counted = cluster.each("count-labels", work.count_labels, truth)
    whole = cluster.total("add-label-counts", partial(work.add_all, add), counted)
    label_counts: LabelCounts = cluster.result(whole)
    labels = label_counts.labels(fit.pos_label)
    fit.check_labels(labels)
    settings = {"label_counts": label_counts, "labels": labels}
    counts = cluster.each("totals", work.class_totals_of, truth, **settings)
    parts_totals: list[ClassTotals] = cluster.results("all-totals", counts)
    totals = sum(parts_totals[1:], start=parts_totals[0])
    check_totals(labels, totals, table.weights[0] is not None)
    rows = [part.rows for part in parts_totals]
    ends = np.cumsum([np.zeros_like(rows[0]), *rows], axis=0)
    parts = [
        (table.X[number], truth[number], Place(number, int(before.sum()), before))
        for number, before in zip(numbers, ends[:-1], strict=True)
        if rows[number].any()
    ]
    return Rows(parts, label_counts, make_plan(labels, totals))


def _find_bins(
    cluster: Cluster,
    rows: Rows,
    categories: Categories | None,
    categorical: NDArray[np.bool_],
) -> tuple[Features, Hashes]:
    sketches = cluster.each_of_lazy(
        "sketch",
        work.sketch_of,
        rows.parts,
        plan=rows.plan,
        label_counts=rows.label_counts,
        categories=categories,
        categorical=categorical,
        hash_step=hash_step(rows.plan.totals.n_rows),
    )
    whole = cluster.total("merge-sketches", work.merge_sketches, sketches)
    del sketches
    binning, hashes = cluster.result(cluster.submit("bins", work.bins_of, whole))
    return Features(categories, binning), hashes


def _grow(
    cluster: Cluster,
    fit: BlockFit,
    plan: BlockPlan,
    n_features: int,
    grow: Callable[[list[range]], Iterator[tuple[range, Future]]],
    checkpoint: Checkpoint | None,
) -> tuple[Forest, Future]:
    """Return the forest, here and on the workers; saved trees are not grown again.

    Parameters
    ----------
    grow : callable
        Maps batches of voters to each batch and its trees, as they finish.
    """
    n = fit.n_estimators
    kept = checkpoint.load(n, (n_features, plan.n_classes)) if checkpoint else []
    done = {there.start: (trees, cluster.hand("kept", trees)) for there, trees in kept}
    lots = _lots(plan, n, n_features, cluster.n_threads, [voters for voters, _ in kept])
    grown = grow(lots)
    if fit.verbose:
        known = sum(len(voters) for voters, _ in kept)
        what = f"Training voters ({known} of {n} resumed)" if known else "Training voters"
        grown = progress_bar(what)(grown, len(lots))
    try:
        for voters, future in grown:
            trees: Forest = cluster.result(future)
            if checkpoint is not None:
                checkpoint.keep(voters, trees)
            done[voters.start] = trees, future
    except RuntimeError as error:
        raise RuntimeError(f"{error}{checkpoint or ''}") from error
    forests, futures = zip(*(done[first] for first in sorted(done)), strict=True)
    return Forest.join(forests), cluster.submit("join", work.join, *futures)


def _grow_lots(
    cluster: Cluster,
    tree: Any,
    plan: BlockPlan,
    coded: list[Future],
    features: Future,
    lots: list[range],
) -> Iterator[tuple[range, Future]]:
    """Yield trees, a batch per task, as they finish; few at a time, to limit memory."""
    running: dict[range, Future] = {}
    for voters in lots:
        samples = cluster.each("samples", work.samples_of, coded, plan=plan, voters=voters)
        running[voters] = cluster.submit(
            "grow", work.grow_lot, samples, voters, tree, features, plan
        )
        del samples
        last = voters == lots[-1]
        while running and (last or len(running) > cluster.n_threads):
            cluster.watch.wait([*running.values()], "FIRST_COMPLETED")
            for done in [voters for voters, future in running.items() if future.done()]:
                yield done, running.pop(done)


def _lots(
    plan: BlockPlan, n_voters: int, n_features: int, n_threads: int, kept: list[range]
) -> list[range]:
    """Split voters into batches; one task each would be too many for small samples."""
    n = plan.totals.n_rows
    share = plan.max_samples
    n_draws = share if isinstance(share, Integral) else share * n
    room = LOT_BYTES / (min(n, n_draws) * (n_features + 2))
    size = max(1, min(int(room), n_voters // (LOTS_A_THREAD * n_threads)))
    return [
        range(first, min(first + size, run.stop))
        for run in missing(n_voters, kept)
        for first in range(run.start, run.stop, size)
    ]


def names_of(table: Table) -> list[str] | None:
    """Return the column names, if there are any."""
    columns = [] if table.frame is None else list(table.frame.columns)
    texts = [isinstance(name, str) for name in columns]
    if any(texts) and not all(texts):
        raise TypeError(
            "some column names are strings and others are not; convert them all with "
            "X.columns = [str(name) for name in X.columns]"
        )
    return columns if columns and all(texts) else None
