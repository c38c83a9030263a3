"""Step 1 for a pool of different models on a cluster.

The sample is gathered on one worker, all workers train models, and each partition is voted
on where it is. The votes are sent to the client, as for a table on disk, so the result is
the same.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from .._kernels import one_blas_thread
from ..hashing import Hashes, hash_step, row_hashes, thinned
from ..messages import progress_bar
from ..outofcore import PoolFit, TrainedPool
from ..outofcore.pool import (
    PoolPlan,
    RowBlock,
    Sample,
    cast,
    finished_pool,
    join_samples,
    pool_of,
    room_for_votes,
    sample_of,
    train_one,
)
from ..outofcore.training import LabelCounts, targets_of
from ..voters.pool import ALL_ROWS
from ..voters.trees.binning import dense
from .cluster import Cluster
from .training import Table, count_rows, names_of
from .work import Place, Truth, refuse_infinity, table_of


class SampledPart(NamedTuple):
    """The sampled rows of a partition, and the hashes of rows to record."""

    sample: Sample
    hashes: Hashes


class Answer(NamedTuple):
    """The votes on a partition, and what else the client needs of its rows."""

    votes: NDArray[Any]
    targets: NDArray[np.uint8]
    folds: NDArray[np.int8]
    weights: NDArray[np.float64] | None


def train_pool_on_cluster(
    cluster: Cluster, fit: PoolFit, table: Table, sample_rows: int
) -> TrainedPool:
    """Train a pool on a sample of a table, and vote where the rows are."""
    names_of(table)
    make_plan = partial(PoolPlan.of, fit, rows=sample_rows, example=table.example)
    rows = count_rows(cluster, fit, table, make_plan)
    plan: PoolPlan = rows.plan
    there = cluster.hand("plan", plan)
    known = {"plan": there, "label_counts": rows.label_counts}
    sampled = cluster.each_of_lazy("sample", sample_part, rows.parts, **known)
    sample = cluster.submit("join-samples", join_parts, *sampled)
    hashes = cluster.result(cluster.submit("join-hashes", join_hashes, *sampled))
    del sampled
    named = cluster.result(cluster.submit("pool", pool_of, there, fit.named, sample))
    names = [name for name, _ in named]
    by_fold, whole, seconds = _train(cluster, there, named, plan.n_folds, sample, fit)
    del sample
    n, weighted = plan.totals.n_rows, table.weights[0] is not None
    votes, targets = room_for_votes(plan, len(names)), np.empty(n, np.uint8)
    folds, weights = np.empty(n, np.int8), np.empty(n) if weighted else None
    cast_on = cluster.each_of_lazy("votes", votes_on, rows.parts, models=by_fold, **known)
    parts = (
        progress_bar("Voting on all rows")(cast_on, len(cast_on))
        if fit.verbose
        else cast_on
    )
    start = 0
    for number, future in enumerate(parts):
        answer: Answer = cluster.result(future)
        cast_on[number] = None  # release it on the worker
        own = slice(start, start + len(answer.targets))
        votes[own], targets[own], folds[own] = answer[:3]
        if weights is not None:
            weights[own] = answer.weights
        start = own.stop
    return finished_pool(
        plan, names, whole, votes, targets, folds, weights, hashes, seconds
    )


def _train(
    cluster: Cluster,
    plan: Future,
    named: list[tuple[str, Any]],
    n_folds: int,
    sample: Future,
    fit: PoolFit,
) -> tuple[Future, list[Any], dict[str, float]]:
    """Return each voter's models by fold (on the workers), those of all rows, and times."""
    tasks = [(k, fold) for fold in (ALL_ROWS, *range(n_folds)) for k in range(len(named))]
    models = {
        (k, fold): cluster.submit("train", train_there, plan, named[k], fold, sample)
        for k, fold in tasks
    }
    took = [cluster.submit("seconds", second, model) for model in models.values()]
    results = progress_bar("Training voters")(took, len(took)) if fit.verbose else took
    seconds = dict.fromkeys((name for name, _ in named), 0.0)
    for (k, _), future in zip(tasks, results, strict=True):
        seconds[named[k][0]] += cluster.result(future)
    names = [name for name, _ in named]
    ours = [models[k, fold] for k in range(len(named)) for fold in range(n_folds)]
    by_fold = cluster.submit("models", by_voter, names, *ours)
    whole = [cluster.result(models[k, ALL_ROWS])[0] for k in range(len(named))]
    return by_fold, whole, seconds


def block_of(
    X: Any, truth: Truth, place: Place, plan: PoolPlan, label_counts: LabelCounts
) -> RowBlock:
    """Return a partition as rows of numbers."""
    table = table_of(X, truth, place, plan.columns.categories)
    numbers = np.ascontiguousarray(dense(table[:]), np.float64)
    refuse_infinity(numbers, X, plan.columns.categories, place)
    targets = targets_of(plan.labels, truth.y)
    weights = label_counts.scaled(truth.weights)
    return RowBlock(numbers, targets, weights, place.start, place.before)


def sample_part(X: Any, truth: Truth, place: Place, **known: Any) -> SampledPart:
    """Return the sampled rows of a partition, and the hashes of some."""
    plan: PoolPlan = known["plan"]
    block = block_of(X, truth, place, **known)
    rows = block.numbers if plan.columns.categories is None else X
    hashes = row_hashes(rows, block.targets)
    return SampledPart(
        sample_of(plan, block), thinned(hashes, hash_step(plan.totals.n_rows))
    )


def join_parts(*parts: SampledPart) -> Sample:
    return join_samples([part.sample for part in parts])


def join_hashes(*parts: SampledPart) -> Hashes:
    return np.concatenate([part.hashes for part in parts])


def train_there(
    plan: PoolPlan, named: tuple[str, Any], fold: int, sample: Sample
) -> tuple[Any, float]:
    with one_blas_thread():
        return train_one(plan, named, fold, sample)


def second(pair: tuple[Any, float]) -> float:
    return pair[1]


def by_voter(names: list[str], *models: tuple[Any, float]) -> list[tuple[str, list[Any]]]:
    """Return each voter's models by fold."""
    n_folds = len(models) // len(names)
    return [
        (name, [model for model, _ in models[k * n_folds : (k + 1) * n_folds]])
        for k, name in enumerate(names)
    ]


def votes_on(X: Any, truth: Truth, place: Place, models: Any, **known: Any) -> Answer:
    """Return the votes on a partition, by models trained without its rows' folds."""
    plan: PoolPlan = known["plan"]
    block = block_of(X, truth, place, **known)
    with one_blas_thread():
        votes = cast(plan, models, block)
    return Answer(votes, block.targets, plan.folds(block), block.weights)
