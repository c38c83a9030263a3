"""A fit of a prepared table, in memory, on disk or on a cluster, measured out of sample.

It is judged by a metric, beside a forest and LightGBM on the same rows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone

from .._threads import one_openmp_thread
from ..classifier import DAMVIClassifier
from ..decision import crossfit_decisions, crossfit_probability
from ..evaluation import Figure, compare, measure, voters_of_fit
from ..hashing import Hashes, kept, row_hashes
from ..io import ModelParts, Target, Training
from ..unlabeled import Unlabeled
from ..voters import PoolVoters, out_of_fold_votes, strong_pool
from ..voting import DAMVIVotingClassifier
from .dataset import EncodedGroup, EncodedTable
from .table import Prepared, describe_unlabeled

TRIAL_ROWS = 2000
TRAININGS = 6
"""Of each voter: five folds and all rows."""
PLANNED_SHARE = 0.8
"""Of a time limit, the share that the plan may fill: estimates err."""
KNOWN = "f1, ap, recall@0.9, precision@0.5 or cost"
MACRO = {"macro_f1": "macro F1", "macro_ap": "macro AP"}
"""Metrics of three or more classes, and what to call them: means over the classes."""
PEERS = {"forest": "plain forest", "lightgbm": "LightGBM"}
"""Voters of the strong pool, and what users call them."""
OURS = "DAMVI"
MOST_CLASSES = 30
"""Beside trees, LightGBM is trained for up to as many classes: it grows a tree for each, in
every round, which at a hundred classes takes twenty times as long as the fit."""


@dataclass(frozen=True)
class Metric:
    """A metric of the command line.

    Attributes
    ----------
    name : str
        As the user wrote it.
    threshold : str or dict
        What the threshold is tuned for, in the words of
        :func:`damvi.decision.parse_objective`.
    measure : str
        The figure by which models are compared, of :data:`damvi.evaluation.MEASURES`.
    words : str
    cost : (float, float) or None
        Of a false alarm and a miss.
    many : bool
        Whether it is for three or more classes.
    """

    name: str
    threshold: Any
    measure: str
    words: str
    cost: tuple[float, float] | None = None
    many: bool = False


def parse_metric(text: str, cost: tuple[float, float] | None = None) -> Metric:
    """The metric that a text stands for.

    ``recall@0.9`` is the best precision among thresholds that find 90 % of the positives,
    ``precision@0.5`` the best recall among those where half of the flagged are positive.
    ``ap`` judges the ranking; its threshold is the best for F1. ``macro_f1`` and
    ``macro_ap`` are their means over three or more classes.

    Examples
    --------
    >>> parse_metric("recall@0.9").threshold
    {'recall': 0.9}
    >>> parse_metric("cost", (1, 20)).words
    'cost a row'
    """
    if text in MACRO:
        if cost is not None:
            raise ValueError(
                f"the metric {text} is for three or more classes, and the costs of a miss "
                f"and a false alarm are for two; leave out one of them"
            )
        return Metric(text, "macro_f1", text, MACRO[text], many=True)
    if text == "cost":
        if cost is None or min(cost) <= 0:
            raise ValueError(
                "the metric cost needs what errors cost, as in --cost-miss 20 "
                "--cost-false-alarm 1, each above 0"
            )
        return Metric(text, {"cost": cost}, "cost", "cost a row", cost)
    if text in ("f1", "ap"):
        return Metric(text, "f1", text, text.upper(), cost)
    rate, _, floor = text.partition("@")
    if rate in ("recall", "precision") and floor:
        try:
            least = float(floor.rstrip("%")) / (100 if floor.endswith("%") else 1)
        except ValueError:
            least = 0.0
        if 0 < least <= 1:
            other = "precision" if rate == "recall" else "recall"
            words = f"{other} at a {rate} of {least:g}"
            return Metric(text, {rate: least}, other, words, cost)
    raise ValueError(
        f"the metric {text!r} is not known; give {KNOWN}; with three or more classes "
        f"{' or '.join(MACRO)}"
    )


def metric_for(target: Target, asked: Metric | None = None) -> Metric:
    """The metric that was asked for, if it goes with the classes, or the usual one.

    Examples
    --------
    >>> from damvi.io import Target
    >>> metric_for(Target("kind", classes=("a", "b", "c"))).name
    'macro_f1'
    """
    n_classes = len(target.classes)  # 0 of two classes
    many = n_classes > 2
    if many and asked is not None and asked.cost is not None:
        raise ValueError(
            f"the costs of a miss and a false alarm are for two classes, and "
            f"{target.name!r} has {n_classes}; leave them out, or name the one "
            f"to find with --positive"
        )
    if asked is None:
        return parse_metric("macro_f1" if many else "f1")
    if many and not asked.many:
        raise ValueError(
            f"the metric {asked.name} is for two classes, and {target.name!r} has "
            f"{n_classes}; give {' or '.join(MACRO)}, or name the class to "
            f"find with --positive"
        )
    if asked.many and not many:
        raise ValueError(
            f"the metric {asked.name} is for three or more classes, and here there are "
            f"two; give {KNOWN}"
        )
    return asked


def fit_table(
    table: Prepared,
    metric: Metric,
    *,
    pool: str = "strong",
    time_limit: float | None = None,
    unlabeled_weight: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    made: dict[str, Any] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[ModelParts, Comparison]:
    """Fit a model on a table and measure it out of sample, in one training.

    Parameters
    ----------
    table : Prepared
        See :func:`~damvi.model.prepare`.
    metric : Metric
        See :func:`~damvi.model.parse_metric`.
    pool : {"strong", "trees"}, default="strong"
        Different strong models, or the paper's trees: a fraction of the time.
    time_limit : float, optional
        Seconds for the training. Voters of the strong pool that do not fit are left out,
        and if next to none does, trees are used.
    unlabeled_weight : float, optional
        How much the voters' disagreement on rows without a label counts, from 0 to 1
        (excluded); by default they are left out.
    seed : int, default=0
    n_jobs : int, optional
    verbose : bool, default=False
        Show a progress bar.
    made : dict, optional
        What else is known about how the model came about.
    say : callable
        Told what was decided on the way.

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
    estimators, dropped = _choose_pool(table, pool, time_limit, seed, n_jobs, say)
    if estimators is None and table.groups is not None:
        raise ValueError(
            "groups need the strong pool: trees are judged on rows outside their samples, "
            "which other rows of a group may be in; leave out --pool trees, or --group"
        )
    classifier: Any
    if estimators is None:  # very rare classes must reach every tree
        classifier = DAMVIClassifier(stratified=True, **common)
    else:
        classifier = DAMVIVotingClassifier(estimators, **common)
    if unlabeled:
        say(unlabeled)
    more: dict[str, Any] = {} if table.groups is None else {"groups": table.groups}
    if unlabeled_weight:
        more["X_unlabeled"] = Unlabeled(table.unlabeled)
    classifier.fit(table.X, table.y, **more)
    vote = _calibrated_vote(classifier)
    comparison = compare_with_peers(table, classifier, vote, metric, seed)
    training = Training(row_hashes(table.X, table.y), vote, table.labels)
    model = ModelParts(
        classifier,
        table.schema,
        table.target,
        training,
        _scores(table, metric, classifier, comparison),
        {
            **(made or {}),
            "seed": seed,
            "pool": "trees" if estimators is None else "strong",
            "left_out": dropped,
        },
    )
    if table.unlabeled is not None:
        rows = {"rows": len(table.unlabeled), "weight": unlabeled_weight or 0.0}
        model.scores["unlabeled"] = rows
    return model, comparison


def _parameters(
    table: Prepared, metric: Metric, seed: int, n_jobs: int | None, verbose: bool
) -> dict[str, Any]:
    """What both estimators are given."""
    return {
        "threshold": metric_for(table.target, metric).threshold,
        "pos_label": table.pos_label,
        "n_jobs": n_jobs,
        "random_state": seed,
        "verbose": int(verbose),
    }


def _calibrated_vote(classifier: Any) -> NDArray[np.float64]:
    """The vote on each row by voters and weights that do not know it."""
    # Users of a table are promised a probability, from trees too.
    classifier.decision_ = replace(classifier.decision_, calibrates=True)
    vote: NDArray[np.float64] = classifier.decision_.out_of_sample_vote
    return vote


def _scores(
    table: Prepared, metric: Metric, classifier: Any, comparison: Comparison
) -> dict[str, Any]:
    """What was measured of the model, in plain values."""
    counts = table.class_counts
    rows: dict[str, Any] = {"positives": counts[1]}
    if table.n_classes > 2:
        rows = {"classes": dict(zip(table.target.classes, counts, strict=True))}
    return {
        "rows": len(table.y),
        **rows,
        "metric": metric.name,
        "cost": None if metric.cost is None else list(metric.cost),
        "threshold": np.asarray(classifier.threshold_).tolist(),
        "tuning": None if classifier.tuning_ is None else classifier.tuning_.as_dict(),
        **comparison.as_dict(),
        # For the report: the votes themselves are not kept.
        "voters": voters_of_fit(classifier),
    }


def _choose_pool(
    table: Prepared,
    pool: str,
    time_limit: float | None,
    seed: int,
    n_jobs: int | None,
    say: Callable[[str], None],
) -> tuple[Any, list[str]]:
    """The estimators of the pool, None for trees, and the names of those left out."""
    if pool == "trees":
        return None, []
    if time_limit is None:
        return "strong", []
    named = strong_pool(seed, table.y)
    chosen, dropped = voters_in_time(
        named, table.X, table.y, time_limit, n_jobs=n_jobs, seed=seed
    )
    if not dropped:
        return "strong", []
    if len(chosen) < 2:
        say(
            f"Time limit of {time_limit:g} s: too short for the strong pool, so trees are "
            f"used instead. Figures may be lower."
        )
        return None, [name for name, _ in named]
    say(
        f"Time limit of {time_limit:g} s: left out {', '.join(dropped)} as too slow. "
        f"Figures may be lower."
    )
    return chosen, dropped


def voters_in_time(
    named: list[tuple[str, Any]],
    X: Any,
    y: NDArray[Any],
    seconds: float,
    *,
    n_jobs: int | None,
    seed: int,
) -> tuple[list[tuple[str, Any]], list[str]]:
    """The voters that can be trained in time, and the names of the others.

    Each is trained once, on some of the rows; its time is taken to grow with the rows,
    which is what the models of the strong pool do. The slowest are left out first. The
    trial counts against the time too; where it runs out, the voters not tried are left
    out.
    """
    start = time.perf_counter()
    rows = trial_rows(y, seed)
    trial, labels = X.iloc[rows], y[rows].astype(np.uint8)
    growth = TRAININGS * len(y) / len(rows) / max(1, effective_n_jobs(n_jobs))
    cost: dict[str, float] = {}
    # The quick ones come last in the pool, and are tried first.
    for name, model in reversed(named):
        if time.perf_counter() - start > seconds * (1 - PLANNED_SHARE):
            break
        begun = time.perf_counter()
        with one_openmp_thread():
            clone(model).fit(trial, labels)
        cost[name] = (time.perf_counter() - begun) * growth
    left = seconds * PLANNED_SHARE - (time.perf_counter() - start)
    chosen: set[str] = set()
    for name, needed in sorted(cost.items(), key=lambda item: item[1]):
        left -= needed
        if left < 0:
            break
        chosen.add(name)
    return (
        [(name, model) for name, model in named if name in chosen],
        [name for name, _ in named if name not in chosen],
    )


def trial_rows(y: NDArray[Any], seed: int) -> NDArray[np.intp]:
    """Rows of all classes, in their proportions as far as the rare ones have enough."""
    if len(y) <= TRIAL_ROWS:
        return np.arange(len(y))
    rng = np.random.RandomState([seed, 17])
    classes, counts = np.unique(y, return_counts=True)
    *rarer, largest = np.argsort(counts, kind="stable").tolist()
    taken, room = [], TRIAL_ROWS
    for c in rarer:
        n = min(int(counts[c]), max(10, round(TRIAL_ROWS * int(counts[c]) / len(y))))
        taken.append(rng.choice(np.flatnonzero(y == classes[c]), n, replace=False))
        room -= n
    n = min(int(counts[largest]), max(10, room))
    taken.append(rng.choice(np.flatnonzero(y == classes[largest]), n, replace=False))
    return np.sort(np.concatenate(taken))


def fit_dataset(
    table: Prepared,
    metric: Metric,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    made: dict[str, Any] | None = None,
    client: Any = None,
) -> tuple[ModelParts, Comparison]:
    """Fit trees on a dataset block by block, and measure them on rows unseen by each.

    Parameters
    ----------
    table : Prepared
        See :func:`~damvi.model.prepare_dataset`.
    metric : Metric
    seed : int, default=0
    n_jobs : int, optional
    verbose : bool, default=False
        Show a progress bar for each pass.
    made : dict, optional
        What else is known about how the model came about.
    client : distributed.Client, optional
        Of the cluster that is to do the work.
    """
    encoded: EncodedTable = table.X
    common = _parameters(table, metric, seed, n_jobs, verbose)
    classifier = DAMVIClassifier(bootstrap="poisson", stratified=True, **common)
    if client is None:
        classifier.fit(encoded, encoded.encoder.label)
        hashes = classifier.votes_.blocks.cache.hashes
        rows = kept(hashes, classifier.row_hash_step_)
        hashes = np.array(hashes[rows])
    else:
        rows, hashes = _fit_on_cluster(classifier, encoded, client)
    vote = _calibrated_vote(classifier)
    comparison = compare_with_peers(table, classifier, vote, metric, seed, in_memory=False)
    training = Training(hashes, vote[rows], table.labels[rows])
    scores = _scores(table, metric, classifier, comparison)
    how = {**(made or {}), "seed": seed, "pool": "trees"}
    return ModelParts(
        classifier, table.schema, table.target, training, scores, how
    ), comparison


def _fit_on_cluster(
    classifier: DAMVIClassifier, table: EncodedTable, client: Any
) -> tuple[NDArray[np.intp], Hashes]:
    """Fit, and return the rows to be remembered with their hashes.

    A partition is a row group, so that rows have the numbers that they have on disk.
    """
    import dask.dataframe as dd

    from ..distributed import fit
    from ..distributed.cluster import Cluster

    encoder = table.encoder
    # Workers run in other folders.
    groups = [replace(group, file=os.path.abspath(group.file)) for group in table.groups]
    meta = encoder.example.assign(**{encoder.label: encoder.no_labels})
    frame = dd.from_map(EncodedGroup.read, groups, meta=meta, label="damvi-read")
    fit(classifier, frame, encoder.label, client=client)
    kept_rows = partial(EncodedGroup.kept_rows, step=classifier.row_hash_step_)
    cluster = Cluster(client)
    with cluster.cancelled_on_failure():
        found = cluster.results("kept", cluster.each("kept-rows", kept_rows, groups))
    starts = np.cumsum([0, *(group.n_rows for group in groups)])
    places = [start + rows for start, (rows, _) in zip(starts, found, strict=False)]
    return np.concatenate(places), np.concatenate([hashes for _, hashes in found])


@dataclass(frozen=True, eq=False)
class Comparison:
    """Figures by model and measure, and words on who is better.

    ``by_class`` has those of three or more classes, one after the other.
    """

    figures: dict[str, dict[str, Figure]]
    verdicts: list[str]
    n_judged: int
    by_class: dict[str, tuple[dict[str, Figure | None], ...]] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        plain: dict[str, Any] = {
            "models": {
                model: {name: figure.as_dict() for name, figure in figures.items()}
                for model, figures in self.figures.items()
            },
            "verdicts": self.verdicts,
            "rows_judged": self.n_judged,
        }
        if self.by_class is not None:
            plain["by_class"] = {
                model: [_figures_as_dict(figures) for figures in classes]
                for model, classes in self.by_class.items()
            }
        return plain


def _figures_as_dict(figures: dict[str, Figure | None]) -> dict[str, Any]:
    return {
        name: None if figure is None else figure.as_dict()
        for name, figure in figures.items()
    }


def compare_with_peers(
    table: Prepared,
    classifier: Any,
    vote: NDArray[np.float64],
    metric: Metric,
    seed: int,
    *,
    in_memory: bool = True,
) -> Comparison:
    """Judge the vote and its peers on the same rows, all of them out of sample.

    Thresholds, factors of classes and calibrators are cross-fitted over the same folds for
    all. Where the rows are not in memory there are no peers.
    """
    folds, order = classifier.votes_.folds, classifier.labels_.target_order
    targets, n_classes = table.y.astype(np.intp), table.n_classes
    votes = {OURS: vote}
    if in_memory:
        votes |= _peer_votes(classifier, table.X, targets, seed)
    has_vote = ~np.isnan(vote.reshape(len(vote), -1)).any(axis=1)
    truth = targets[has_vote]
    figures, by_class, decided = {}, {}, {}
    for name, votes_of_all in votes.items():
        # Rows that have no vote of ours are nobody's, so that all are judged alike.
        own, some = votes_of_all[has_vote], folds[has_vote]
        decisions = crossfit_decisions(own, truth, metric.threshold, some, order=order)
        chance = crossfit_probability(own, truth, some) if n_classes == 2 else None
        decided[name] = own, decisions
        found = measure(truth, own, decisions, chance, cost=metric.cost)
        figures[name], by_class[name] = found.overall, found.by_class
    cost = metric.cost or (1.0, 1.0)
    verdicts = [
        verdict(name, metric, compare(metric.measure, truth, decided[OURS], own, cost=cost))
        for name, own in decided.items()
        if name != OURS
    ]
    weights = getattr(classifier, "comparison_", None)  # of a pool
    if weights is not None and weights.plain_kept:
        verdicts.append(
            f"All voters weigh the same: learned weights had average precision "
            f"{weights.learned:.3f} out of fold, and equal ones {weights.plain:.3f}."
        )
    if in_memory and n_classes > MOST_CLASSES and PEERS["lightgbm"] not in votes:
        verdicts.append(
            f"LightGBM is not compared beside trees: with {n_classes} classes it would "
            f"take far longer than the fit. The strong pool has it."
        )
    if not in_memory:
        verdicts.append(
            "No forest or LightGBM beside it: they would need all rows in memory."
        )
    several = by_class if n_classes > 2 else None
    return Comparison(figures, verdicts, int(has_vote.sum()), several)


def _peer_votes(
    classifier: Any, X: Any, targets: NDArray[np.intp], seed: int
) -> dict[str, NDArray[np.float64]]:
    """Votes out of fold: those that the pool took already, or by a training for them."""
    voters, folds = classifier.voters_, classifier.votes_.folds
    if isinstance(voters, PoolVoters):
        places = {name: k for k, name in enumerate(voters.names)}
        return {
            words: classifier.votes_.votes[:, places[name]].astype(np.float64)
            for name, words in PEERS.items()
            if name in places
        }
    n_classes = classifier.labels_.n_classes
    boosts = find_spec("lightgbm") is not None and n_classes <= MOST_CLASSES
    names = [name for name in PEERS if name != "lightgbm" or boosts]
    pool = dict(strong_pool(seed, targets))
    splits = [
        (np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
        for fold in range(int(folds.max()) + 1)
    ]
    votes = out_of_fold_votes(
        [(name, pool[name]) for name in names],
        X,
        targets,
        n_classes=n_classes,
        seed=seed,
        cv=[(train, test) for train, test in splits if len(test)],
        n_jobs=classifier.n_jobs,
    )
    return {PEERS[name]: votes[:, k].astype(np.float64) for k, name in enumerate(names)}


def verdict(name: str, metric: Metric, gain: Figure) -> str:
    """Who is better, by how much our figure is, in words."""
    # A cost a row is tiny where the positives are rare.
    form = ".2g" if metric.measure == "cost" else ".3f"
    size = f"{abs(gain.value):{form}}"
    sure = f"90 %: {gain.low:+{form}} to {gain.high:+{form}}"
    less = "lower" if metric.measure == "cost" else "higher"
    peer = f"a {name}" if name.startswith("plain") else name
    if gain.low > 0:
        return (
            f"{OURS} does better than {peer}: its {metric.words} is {size} {less} ({sure})."
        )
    if gain.high < 0:
        sure = f"90 %: {-gain.high:+{form}} to {-gain.low:+{form}}"
        return (
            f"{peer[0].upper()}{peer[1:]} alone does better: its {metric.words} is {size} "
            f"{less} ({sure}). Consider it."
        )
    return f"{OURS} and {peer} tie on {metric.words} (difference, {sure})."
