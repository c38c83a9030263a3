"""Fit a prepared table in memory, on disk or on a cluster, and score it out of sample."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._kernels import in_threads
from ..classifier import DAMVIClassifier
from ..decision.decision import AVERAGE_PRECISION
from ..evaluation import FittedVote, voters_of_fit
from ..folds import forward_splits
from ..hashing import Hashes, kept, row_hashes
from ..io import ModelParts, Training
from ..selection import best_alone, objective_of, take_alone
from ..unlabeled import Unlabeled
from ..voters.portfolio import can_load
from ..voting import DAMVIVotingClassifier
from .comparison import (
    BEST,
    OF_YOURS,
    OURS,
    PEERS,
    SINGLE_MODEL,
    WEIGHTED,
    Comparison,
    Metric,
    compare_with_peers,
    leaderboard,
    metric_for,
    peer_votes,
)
from .dataset import EncodedGroup, EncodedTable
from .table import Prepared, describe_unlabeled

POOLS = ("strong", "trees", "best")
ADVICE = (
    "LightGBM cannot be loaded. With it (pip install lightgbm, and the system's OpenMP: "
    "libgomp1 on Debian, libomp on macOS) the strong pool gains two voters and, averaged "
    "over 13 datasets, 0.004 in average precision."
)
"""See results/portfolio/pool.md."""


def fit_table(
    table: Prepared,
    metric: Metric,
    *,
    pool: str | list[tuple[str, Any]] = "strong",
    time_limit: float | None = None,
    prefer: str | None = None,
    unlabeled_weight: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    made: dict[str, Any] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[ModelParts, Comparison]:
    """Fit a model on a table and score it out of sample, in a single training.

    Parameters
    ----------
    table : Prepared
        See :func:`~damvi.model.prepare`.
    metric : Metric
        See :func:`~damvi.model.parse_metric`.
    pool : {"strong", "trees", "best"} or list of (str, classifier), default="strong"
        A vote of strong models, the paper's trees (much faster), the single best of the
        strong models, or your own models.
    time_limit : float, optional
        Seconds for training a pool; see :class:`~damvi.DAMVIVotingClassifier`. Ignored for
        trees.
    prefer : {"speed"}, optional
        Drop voters of a pool that add too little for their prediction time.
    unlabeled_weight : float, optional
        Weight of the voters' disagreement on unlabelled rows, in [0, 1). By default these
        rows are dropped.
    seed : int, default=0
    n_jobs : int, optional
    verbose : bool, default=False
        Show a progress bar.
    made : dict, optional
        Further provenance to record in the model.
    say : callable
        Called with notes on what was decided.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from damvi.model import fit_table, parse_metric, prepare
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    >>> frame["bad"] = frame["a"] + 0.3 * rng.normal(size=400) > 1.2
    >>> table, metric = prepare(frame, "bad"), parse_metric("f1")
    >>> model, comparison = fit_table(table, metric, pool="trees")
    >>> model.target.positive, comparison.figures["DAMVI"]["ap"].value > 0.5
    ('True', True)
    """
    unlabeled = describe_unlabeled(table, unlabeled_weight)
    common = _parameters(table, metric, seed, n_jobs, verbose)
    common["unlabeled_weight"] = unlabeled_weight or 0.0
    estimators = _choose_pool(pool)
    splits = None
    if table.times is not None:
        splits = forward_splits(table.times, table.y, table.groups)
        common["cv"] = splits
        n = sum(len(test) for _, test in splits)
        say(
            f"Validating forward in time: the first {len(table.y) - n:,} rows are for "
            f"training only; the other {n:,}, in {len(splits)} windows, are scored by "
            f"models trained on earlier rows."
        )
    classifier: Any
    if estimators is None:  # so that every tree gets rows of very rare classes
        classifier = DAMVIClassifier(stratified=True, **common)
    else:
        common |= {"time_limit": time_limit, "prefer": prefer}
        classifier = DAMVIVotingClassifier(estimators, **common)
        if isinstance(estimators, str) and not can_load("lightgbm"):
            say(ADVICE)
    if unlabeled:
        say(unlabeled)
    more: dict[str, Any] = {} if table.groups is None else {"groups": table.groups}
    if table.sample_weight is not None:
        more["sample_weight"] = table.sample_weight
    if unlabeled_weight:
        more["X_unlabeled"] = Unlabeled(table.unlabeled)
    start = time.perf_counter()
    classifier.fit(table.X, table.y, **more)
    seconds = {WEIGHTED: time.perf_counter() - start, **getattr(classifier, "seconds_", {})}
    left_out = getattr(classifier, "left_out_", {})
    for why in () if verbose else dict.fromkeys(left_out.values()):  # already shown
        names = [name for name, own in left_out.items() if own == why]
        say(f"Dropped {', '.join(names)}: {why}.")
    targets = table.y.astype(np.intp)
    peers = peer_votes(classifier, table.X, targets, seed, seconds, splits)
    single = None
    if estimators is not None and len(classifier.weights_) > 1:
        by_rank = metric.measure in ("ap", "macro_ap")
        by = AVERAGE_PRECISION if by_rank else objective_of(classifier)
        single = best_alone(classifier, by)
        peers[BEST] = single.vote
    board = leaderboard(classifier, peers, metric)
    ours, name, advice = OURS, None, ""
    if isinstance(pool, str):
        advice = SINGLE_MODEL
    elif single is not None:
        advice = f"{OF_YOURS}{classifier.voters_.names[single.voter]}."
    if pool == "best" and single is not None:
        name, advice = classifier.voters_.names[single.voter], ""
        ours = f"{name} (the best single model)"
        del peers[BEST]
        peers.pop(PEERS.get(name, ""), None)
        peers[WEIGHTED] = classifier.decision_.out_of_sample_vote
        take_alone(classifier, single)
    vote = _calibrated_vote(classifier)
    comparison = compare_with_peers(table, classifier, vote, metric, peers, ours, advice)
    table.doubt(comparison.figures[OURS])
    known = comparison.threshold, comparison.probability, comparison.blocks
    training = Training(row_hashes(table.X, table.y), vote, table.labels, *known)
    scores = _scores(table, metric, classifier, comparison) | {"leaderboard": board}
    how = {"seed": seed, "pool": pool if isinstance(pool, str) else "own"}
    how |= {} if name is None else {"best": name}
    if splits is not None:
        how["windows"] = len(splits)
        classifier.cv = None  # row indices, useless for other data
    how["pool"] = "trees" if estimators is None else how["pool"]
    model = ModelParts(
        classifier,
        table.schema,
        table.target,
        training,
        scores,
        {**(made or {}), **how, "left_out": list(left_out), "seconds": seconds},
        table.profile_with(_decided(classifier)),
    )
    if table.unlabeled is not None:
        rows = {"rows": len(table.unlabeled), "weight": unlabeled_weight or 0.0}
        model.scores["unlabeled"] = rows
    return model, comparison


def _parameters(
    table: Prepared, metric: Metric, seed: int, n_jobs: int | None, verbose: bool
) -> dict[str, Any]:
    """Parameters for both estimators."""
    return {
        "threshold": metric_for(table.target, metric).threshold,
        "pos_label": table.target.pos_label,
        "n_jobs": n_jobs,
        "random_state": seed,
        "verbose": int(verbose),
    }


def _calibrated_vote(classifier: Any) -> NDArray[np.float64]:
    """The out-of-sample vote on each row."""
    # Models of tables always give probabilities, even trees.
    classifier.decision_ = replace(classifier.decision_, calibrates=True)
    vote: NDArray[np.float64] = classifier.decision_.out_of_sample_vote
    return vote


def _decided(classifier: Any) -> NDArray[np.intp]:
    """The out-of-sample decisions on the training rows that have one."""
    decided, judged = FittedVote(classifier).training_decisions()
    return decided[judged]


def _scores(
    table: Prepared, metric: Metric, classifier: Any, comparison: Comparison
) -> dict[str, Any]:
    """The scores of the model as plain values."""
    return {
        "rows": len(table.y),
        **table.sizes,
        "metric": metric.name,
        "cost": None if metric.cost is None else list(metric.cost),
        "threshold": np.asarray(classifier.threshold_).tolist(),
        "tuning": None if classifier.tuning_ is None else classifier.tuning_.as_dict(),
        **comparison.as_dict(),
        # For the report, since the votes are not saved.
        "voters": voters_of_fit(classifier, comparison.threshold),
    }


def _choose_pool(pool: str | list[tuple[str, Any]]) -> Any:
    """The estimators of the pool; None for trees."""
    if isinstance(pool, str) and pool not in POOLS:
        raise ValueError(f"unknown pool={pool!r}; use {', '.join(POOLS)} or a list")
    if pool == "trees":
        return None
    return "strong" if isinstance(pool, str) else pool


def fit_dataset(
    table: Prepared,
    metric: Metric,
    *,
    pool: str | list[tuple[str, Any]] = "trees",
    sample_rows: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    made: dict[str, Any] | None = None,
    client: Any = None,
) -> tuple[ModelParts, Comparison]:
    """Fit on a dataset block by block, and score the model out of sample.

    Parameters
    ----------
    table : Prepared
        See :func:`~damvi.model.prepare_dataset`.
    metric : Metric
    pool : {"trees", "strong"} or list of (str, classifier), default="trees"
        The paper's trees, trained on all rows, or different models, on a sample.
    sample_rows : int, optional
        Size of that sample; see :class:`~damvi.ParquetTable`.
    seed : int, default=0
    n_jobs : int, optional
    verbose : bool, default=False
        Show a progress bar for each pass.
    made : dict, optional
        Further provenance to record in the model.
    client : distributed.Client, optional
        The client of a Dask cluster to run on.
    """
    if isinstance(pool, str) and pool not in POOLS:
        raise ValueError(f"unknown pool={pool!r}; use {', '.join(POOLS)} or a list")
    encoded: EncodedTable = table.X
    encoded.sample_rows = sample_rows or encoded.sample_rows
    common = _parameters(table, metric, seed, n_jobs, verbose)
    classifier: Any
    if pool == "trees":
        classifier = DAMVIClassifier(bootstrap="poisson", stratified=True, **common)
    else:
        classifier = DAMVIVotingClassifier(pool, **common)
    start = time.perf_counter()
    if client is None:
        classifier.fit(encoded, encoded.encoder.label)
    else:
        _fit_on_cluster(classifier, encoded, client)
    seconds = {WEIGHTED: time.perf_counter() - start, **getattr(classifier, "seconds_", {})}
    vote = _calibrated_vote(classifier)
    how = {**(made or {}), "seed": seed, "pool": pool if isinstance(pool, str) else "own"}
    peers, board = None, {}
    if pool != "trees":
        peers = peer_votes(classifier, None, table.labels, seed, seconds)
        board = {"leaderboard": leaderboard(classifier, peers, metric)}
        how |= {"sample_rows": encoded.sample_rows, "seconds": seconds}
    comparison = compare_with_peers(table, classifier, vote, metric, peers)
    rows, hashes = _rows_to_remember(encoded, classifier, n_jobs, client)
    learned = comparison.threshold[rows], comparison.probability[rows]
    training = Training(hashes, vote[rows], table.labels[rows], *learned)
    scores = _scores(table, metric, classifier, comparison) | board
    profile = table.profile_with(_decided(classifier))
    model = ModelParts(
        classifier, table.schema, table.target, training, scores, how, profile
    )
    return model, comparison


def _rows_to_remember(
    table: EncodedTable, classifier: Any, n_jobs: int | None, client: Any
) -> tuple[NDArray[np.intp], Hashes]:
    """The indices of the rows to remember, and their hashes."""
    step = classifier.row_hash_step_
    if client is None and not classifier.votes_.in_memory:  # hashed while training trees
        hashes = classifier.votes_.blocks.cache.hashes
        rows = kept(hashes, step)
        return rows, np.array(hashes[rows])
    look, groups = partial(EncodedGroup.kept_rows, step=step), _groups_anywhere(table)
    found: list[Any]
    if client is None:
        found = [*in_threads((partial(look, group) for group in groups), n_jobs)]
    else:
        from ..distributed.cluster import Cluster

        cluster = Cluster(client)
        with cluster.cancelled_on_failure():
            found = cluster.results("kept", cluster.each("kept-rows", look, groups))
    starts = np.cumsum([0, *(group.n_rows for group in groups)])
    places = [start + rows for start, (rows, _) in zip(starts, found, strict=False)]
    return np.concatenate(places), np.concatenate([hashes for _, hashes in found])


def _groups_anywhere(table: EncodedTable) -> list[Any]:
    """The row groups with absolute paths, for workers in other folders."""
    return [replace(group, file=os.path.abspath(group.file)) for group in table.groups]


def _fit_on_cluster(classifier: Any, table: EncodedTable, client: Any) -> None:
    """Fit with one partition per row group, so that row numbers are those on disk."""
    import dask.dataframe as dd

    from ..distributed import fit

    encoder = table.encoder
    meta = encoder.example.assign(**{encoder.label: encoder.no_labels})
    groups = _groups_anywhere(table)
    frame = dd.from_map(EncodedGroup.read, groups, meta=meta, label="damvi-read")
    fit(classifier, frame, encoder.label, client=client, sample_rows=table.sample_rows)
