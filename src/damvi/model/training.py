"""Fit a model on a table and score it out of sample, in memory, on disk or on a cluster."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray

from .._kernels import in_threads
from ..classifier import DAMVIClassifier
from ..decision.decision import AVERAGE_PRECISION
from ..decision.guarantees import Rate, parse_guarantee
from ..evaluation import FittedVote, voters_of_fit
from ..folds import forward_splits
from ..hashing import Hashes, kept, row_hashes
from ..io import ModelParts, TrainingRows
from ..messages import counted, in_python
from ..selection import best_alone, take_alone
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
    as_metric,
    compare_with_peers,
    leaderboard,
    metric_for,
    parse_metric,
    peer_votes,
)
from .dataset import EncodedGroup, EncodedTable, dataset_fingerprint, prepare_dataset
from .evaluation import judge
from .guarantee import GUARANTEE, basis_of_aside, decide_by, promise, set_aside
from .model import Model
from .refit import changes, promises
from .table import (
    Prepared,
    as_frame,
    describe_unlabeled,
    fingerprint,
    is_path,
    labelled_frame,
    prepare,
    provenance,
    why_in_blocks,
    with_unlabeled,
)

if TYPE_CHECKING:
    import pandas as pd

NEED_MEMORY = (
    *("time_limit", "prefer", "unlabeled", "unlabeled_weight", "time", "group"),
    *("sample_weight", "guarantee", "merge_labels"),
)
"""Options of a fit that do not work on tables read in blocks."""
ELSEWHERE = ("pos_label", "merge_labels", "drop", "pool", "threshold", "random_state")
"""Options of a fit that are recorded elsewhere in the model."""
OF_THIS_FIT = ("n_jobs", "like")
POOLS = ("strong", "trees", "best")
ADVICE = (
    "LightGBM cannot be loaded. With it (pip install lightgbm, and the system's OpenMP: "
    "libgomp1 on Debian, libomp on macOS) the strong pool gains two voters and, averaged "
    "over 13 datasets, 0.004 in average precision."
)
"""See results/portfolio/pool.md."""


def fit(
    table: Any,
    target: str | None = None,
    *,
    like: Model | None = None,
    pos_label: Any = None,
    time: str | None = None,
    group: str | None = None,
    sample_weight: str | None = None,
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    pool: str | list[tuple[str, Any]] | None = None,
    sample_rows: int | None = None,
    threshold: Any = None,
    guarantee: Any = None,
    confidence: float = 0.9,
    guarantee_size: float = 0.3,
    shuffle: bool = False,
    merge_labels: bool = False,
    time_limit: float | None = None,
    prefer: str | None = None,
    n_jobs: int | None = None,
    random_state: int | None = None,
) -> Model:
    """Fit a model on a table and score it out of sample.

    ``damvi fit`` does the same, and gives the same model.

    Parameters
    ----------
    table : DataFrame, Arrow table or path
        A pandas or polars frame, or any file that ``damvi fit`` reads. Folders and patterns
        of parquet files, and files too large for memory, are read in blocks; the voters are
        then trees, unless ``pool`` says otherwise.
    target : str
        The column to predict. Unlabelled rows are dropped.
    like : Model, optional
        An older model whose target, settings, columns and threshold rule to reuse; other
        arguments take precedence. Differences between the tables are reported.
    pos_label : optional
        The positive class; all other labels are negative. Default: the rarer of two labels,
        or a multiclass model if there are more.
    time : str, optional
        The column with the time of each row. Rows are then scored by models trained on
        earlier rows only. Default: a date column that the rows are sorted by, if any.
    group : str, optional
        The column of groups. Rows are scored by models trained on other groups. It is not a
        feature.
    sample_weight : str, optional
        The column of sample weights for training; not a feature. Scores are unweighted.
    drop, keep : collections of str
        Columns to drop, or to use even if they would be dropped.
    pool : {"strong", "trees", "best"} or list of (str, classifier), optional
        A weighted vote of strong models of several kinds; the paper's trees, which take
        seconds instead of minutes; the single best of the strong models; or your own
        models. Default: "strong", or "trees" for tables read in blocks, where other models
        are trained on a sample.
    sample_rows : int, optional
        Rows to train strong models on when a table is read in blocks. Default: 200,000.
    threshold : optional
        What to optimise: "f1" (default), "ap", "recall@0.9" (best precision at 90% recall),
        "precision@0.5", "flags@200" or ``{"flags": 200}`` (flag 200 rows per table of this
        size; also "flags@1%", "flags@200/10000"), ``{"cost": (false_alarm, miss)}``, or any
        other ``threshold`` of the estimators; models are then compared by F1. With three or
        more classes: "macro_f1" (default) or "macro_ap".
    guarantee : dict, optional
        A rate that the threshold must guarantee on new rows: ``{"recall": 0.9}``,
        ``{"precision": 0.5}`` or ``{"false_alarm_rate": 0.01}``. It comes from rows that
        are set aside and not used for training: the latest ones if rows are ordered in
        time, whole groups, or else random ones. If they are too few, you are warned, and
        ``threshold`` applies instead.
    confidence : float, default=0.9
        The confidence of the guarantee.
    guarantee_size : float, default=0.3
        The share of rows to set aside for it.
    merge_labels : bool, default=False
        Treat labels that differ only in case or spaces (Fraud, fraud) as one.
    shuffle : bool, default=False
        Use random folds even if the rows are sorted by time.
    time_limit : float, optional
        Seconds for training: the most useful voters for their time are trained first, as
        many as fit. Ignored for trees.
    prefer : {"speed"}, optional
        Drop voters that add too little for their prediction time. Ignored for trees.
    n_jobs : int, optional
        Threads. Default: all cores.
    random_state : int, optional
        Default: 0, so that the same table gives the same model.

    Returns
    -------
    model : Model
    """
    given = dict(locals())
    del given["table"]
    command = _command(table, given)
    try:
        plan = plan_fit(table, **options_like(like, given), command=command)
        for text in plan.table.warnings:
            warnings.warn(in_python(text), UserWarning, stacklevel=2)
        found = train(plan)
    except ValueError as error:
        error.args = (in_python(str(error)), *error.args[1:])
        raise
    for text in found.doubts:
        warnings.warn(in_python(text), UserWarning, stacklevel=2)
    promised = found.model.scores.get(GUARANTEE)
    if promised is not None and promised["threshold"] is None:
        told = f"{promised['words']}; the model keeps its threshold"
        warnings.warn(told, UserWarning, stacklevel=2)
    return Model(**vars(found.model))


def options_like(like: ModelParts | None, given: dict[str, Any]) -> dict[str, Any]:
    """The options of :func:`plan_fit`, with defaults from an older model."""
    if like is None:
        return given
    if not isinstance(like, ModelParts):
        raise TypeError(f"like must be a model, as from damvi.load, not {like!r}")
    return _repeated(like, given, _usual()) | {"like": like}


def _repeated(
    like: ModelParts, given: Mapping[str, Any], usual: Mapping[str, Any]
) -> dict[str, Any]:
    """The options of a new fit: those given, and otherwise those of the older model.

    Columns to keep are merged, minus those to drop now. Columns that the older model
    dropped follow from its schema.

    Parameters
    ----------
    like : ModelParts
    given, usual : mapping of str to object
        As for :func:`_settings`. Default values count as not given.
    """
    kept = like.made.get("settings")
    if not isinstance(kept, dict):
        raise ValueError(
            "the older model has no record of its options, unlike models from damvi fit; "
            "give the options instead of --like"
        )
    before = {name: value for name, value in kept.items() if name in usual}
    before |= {
        "target": like.target.name,
        "pos_label": like.target.positive or None,
        "merge_labels": like.target.merged,
        "pool": like.made.get("pool"),
        "random_state": like.made.get("seed"),
        "threshold": _threshold(like),
    }
    if before["pool"] == "own":
        estimators: Any = like.classifier
        before["pool"] = estimators.estimators
    new = {
        name: value
        for name, value in given.items()
        if name not in usual or value != usual[name]
    }
    if new.get("shuffle"):
        before.pop("time", None)
    if new.get("time") is not None:
        before.pop("shuffle", None)
    if new.get("target") is None:
        new.pop("target", None)
    drop, keep = _names(new.get("drop", ())), _names(new.get("keep", ()))
    old = [name for name in _names(before.get("keep", ())) if name not in (*drop, *keep)]
    return before | new | {"keep": (*old, *keep)}


def _threshold(like: ModelParts) -> Any:
    """What the threshold was tuned for, as a metric if possible."""
    rule, cost = like.classifier.threshold, like.scores.get("cost")
    try:
        metric = parse_metric(like.scores["metric"], tuple(cost) if cost else None)
    except (KeyError, ValueError):  # a rule that only the estimators have
        return rule
    return metric if metric.threshold == rule else rule


def _usual() -> dict[str, Any]:
    """The default options of a fit."""
    return (fit.__kwdefaults__ or {}) | {"unlabeled_weight": None}


def _command(table: Any, given: dict[str, Any]) -> str:
    """The call of :func:`fit`, with all non-default arguments."""
    usual = fit.__kwdefaults__ or {}
    arguments = [repr(os.fspath(table)) if is_path(table) else "table"]
    arguments += [] if given["target"] is None else [repr(given["target"])]
    for name, value in given.items():
        if name == "like":
            arguments += [] if value is None else ["like=model"]
        elif name in usual and value != usual[name]:
            own = name == "pool" and not isinstance(value, str)
            arguments.append(f"{name}={'[...]' if own else repr(value)}")
    return f"damvi.fit({', '.join(arguments)})"


@dataclass(frozen=True, eq=False)
class Aside:
    """Rows that are set aside for a guarantee, and what is to be guaranteed."""

    rows: pd.DataFrame
    basis: str
    rate: Rate
    level: float
    confidence: float


@dataclass(frozen=True, eq=False)
class Plan:
    """A table to train on, and how; :func:`train` does it.

    Attributes
    ----------
    table : Prepared
    metric : Metric
    in_blocks : bool
        Whether the table is read in blocks.
    options : dict
        Further options of :func:`fit_table`, or of :func:`fit_dataset`.
    notes : list of str
        What was decided in reading the table, beyond ``table.notes``.
    like : ModelParts or None
        An older model whose scores are shown next to the new ones.
    aside : Aside or None
    """

    table: Prepared
    metric: Metric
    in_blocks: bool
    options: dict[str, Any]
    notes: list[str]
    like: ModelParts | None
    aside: Aside | None = None


@dataclass(frozen=True, eq=False)
class Fit:
    """A model, its training data, and the comparison with baselines.

    ``doubts`` has a warning if the scores are too good to be true.
    """

    model: ModelParts
    table: Prepared
    metric: Metric
    comparison: Comparison
    doubts: list[str]


def plan_fit(
    source: Any,
    target: str | None = None,
    *,
    unlabeled: Any = None,
    unlabeled_weight: float | None = None,
    in_blocks: bool = False,
    client: Any = None,
    command: str = "",
    verbose: bool = False,
    **options: Any,
) -> Plan:
    """Check the options of a fit, and prepare its table.

    Parameters
    ----------
    source : DataFrame, Arrow table or path
    target : str
    unlabeled : DataFrame, Arrow table or path, optional
        More rows without labels.
    unlabeled_weight : float, optional
        Weight of the voters' disagreement on unlabelled rows.
    in_blocks : bool, default=False
        Read a parquet file in blocks, whatever its size.
    client : distributed.Client, optional
        The client of a Dask cluster to run on.
    command : str
        The command to record in the model.
    verbose : bool, default=False
        Show progress bars.
    **options
        As for :func:`fit`. The settings of ``like`` are not used here; they come from
        :func:`options_like`.
    """
    usual = _usual()
    unknown = sorted(options.keys() - usual.keys())
    if unknown:
        raise TypeError(f"unknown option {unknown[0]!r}")
    if target is None:
        raise ValueError("give the column to predict with --target (target='...')")
    asked = SimpleNamespace(**usual | options | {"unlabeled_weight": unlabeled_weight})
    asked.target = str(target)  # like all column names
    asked.unlabeled, like = unlabeled, asked.like
    how: dict[str, Any] = {
        "seed": _seed(asked.random_state),
        "n_jobs": asked.n_jobs or cpu_count(),
        "verbose": verbose,
    }
    columns: dict[str, Any] = {
        role: (names,) if isinstance(names, str) else names
        for role, names in (("keep", asked.keep), ("drop", asked.drop))
    }
    columns |= {"like": None if like is None else like.schema, "shuffle": asked.shuffle}
    why = why_in_blocks(source, in_blocks or client is not None)
    promised = None if asked.guarantee is None else parse_guarantee(asked.guarantee)
    for name in ("confidence", "guarantee_size"):
        if promised is None and getattr(asked, name) != usual[name]:
            raise ValueError(f"{name} needs a guarantee; ask for one, or leave it out")
    if promised is not None and not 0 < asked.confidence < 1:
        raise ValueError(f"confidence={asked.confidence!r} must be between 0 and 1")
    if asked.sample_rows is not None and (why is None or asked.pool in (None, "trees")):
        raise ValueError(
            "sample_rows only applies to strong models on a table read in blocks, such as "
            "a folder of parquet files; leave it out"
        )
    recorded: dict[str, Any] = {"settings": _settings(vars(asked), usual)}
    if why is None:
        columns |= {"time": asked.time, "group": asked.group}
        columns["sample_weight"] = asked.sample_weight
        columns["merged"] = bool(asked.merge_labels)
        return _plan_in_memory(source, asked, columns, promised, command, recorded, how)
    refuse_in_blocks(vars(asked))
    recorded = {"out_of_core": why} | recorded
    how |= {"client": client, "sample_rows": asked.sample_rows}
    return _plan_in_blocks(source, asked, columns, command, recorded, how)


def _plan_in_memory(
    source: Any,
    asked: SimpleNamespace,
    columns: dict[str, Any],
    promised: tuple[Rate, float] | None,
    command: str,
    recorded: dict[str, Any],
    how: dict[str, Any],
) -> Plan:
    """:func:`plan_fit` on a table in memory; rows for a guarantee are set aside first."""
    frame = labelled_frame(source, asked.target)
    table, aside = prepare(frame, asked.target, asked.pos_label, **columns), None
    n_rows, whole = len(table.y), table
    if promised is not None:  # before anything is learned
        taken = set_aside(frame, table, promised[0], asked.guarantee_size, how["seed"])
        rows = frame.loc[taken].reset_index(drop=True)
        aside = Aside(rows, basis_of_aside(rows, whole), *promised, asked.confidence)
        rest = frame.loc[~taken].reset_index(drop=True)
        table = prepare(rest, asked.target, asked.pos_label, **columns)
        if table.target != whole.target:
            raise ValueError(
                "without the rows set aside for the guarantee, the table has other "
                "classes; name the positive one with --positive, or use a smaller "
                "guarantee_size"
            )
    made = provenance(command, fingerprint(source, frame))
    if asked.unlabeled is not None:
        more = as_frame(asked.unlabeled, table.schema)
        is_file = is_path(asked.unlabeled)
        name = str(asked.unlabeled) if is_file else "the unlabelled table"
        table = with_unlabeled(table, more, name)
        made["unlabeled"] = fingerprint(asked.unlabeled, more)
    metric = as_metric(asked.threshold, table.target, n_rows)
    table.warnings.extend([] if asked.like is None else changes(asked.like, table))
    options = how | {
        "pool": "strong" if asked.pool is None else asked.pool,
        "time_limit": asked.time_limit,
        "prefer": asked.prefer,
        "unlabeled_weight": asked.unlabeled_weight,
        "made": made | recorded,
    }
    return Plan(table, metric, False, options, [], asked.like, aside)


def _plan_in_blocks(
    source: Any,
    asked: SimpleNamespace,
    columns: dict[str, Any],
    command: str,
    recorded: dict[str, Any],
    how: dict[str, Any],
) -> Plan:
    """:func:`plan_fit` on parquet files, block by block, here or on a cluster."""
    own = {name: how[name] for name in ("seed", "n_jobs", "verbose")}
    target = asked.target
    table, n_judged = prepare_dataset(source, target, asked.pos_label, **columns, **own)
    metric = as_metric(asked.threshold, table.target, len(table.y))
    made = provenance(command, dataset_fingerprint(source, table.X)) | recorded
    table.warnings.extend([] if asked.like is None else changes(asked.like, table))
    notes: list[str] = []
    n = len(table.y)
    left_out = sum(group.n_all for group in table.X.groups) - n
    if left_out:
        notes.append(f"Dropped {counted(left_out, 'row')} with a missing {target!r}.")
    if n_judged < n:
        notes.append(
            f"Column types were inferred from a sample of {n_judged:,} rows of all "
            f"classes; override them with --keep and --drop."
        )
    pool = "trees" if asked.pool is None else asked.pool
    options = how | {"pool": pool, "made": made}
    return Plan(table, metric, True, options, notes, asked.like)


def train(plan: Plan, say: Callable[[str], None] = lambda text: None) -> Fit:
    """Train on the table of a plan, and score the model out of sample.

    Parameters
    ----------
    plan : Plan
        From :func:`plan_fit`.
    say : callable
        Called with notes on what was decided.
    """
    table, aside = plan.table, plan.aside
    doubts: list[str] = []
    if plan.in_blocks:
        model, comparison = fit_dataset(table, plan.metric, **plan.options)
    else:
        model, comparison = fit_table(table, plan.metric, say=say, **plan.options)
        doubts = table.doubts(comparison.figures[OURS])
    if aside is not None:
        judged, _ = judge(model, aside.rows, new=True)
        what = aside.rate, aside.level, aside.confidence, aside.basis
        found = promise(model, judged, *what)
        if found.threshold is None:
            model.scores[GUARANTEE] = found.as_dict()
        else:
            model = decide_by(model, found)
    scores = model.scores
    scores.update(warnings=[*table.warnings, *doubts], notes=list(table.notes))
    if plan.like is not None:
        scores["older"] = promises(plan.like, scores)
    return Fit(model, table, plan.metric, comparison, doubts)


def _settings(given: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a fit to record in the model file.

    Parameters
    ----------
    given, usual : mapping of str to object
        The options and their defaults.

    Examples
    --------
    >>> _settings({"time": "day", "group": None}, {"time": None, "group": None})
    {'time': 'day'}
    """
    names = [name for name in usual if name not in (*ELSEWHERE, *OF_THIS_FIT)]
    return {
        name: _names(given[name]) if name == "keep" else _plain(given[name])
        for name in names
        if name in given and given[name] != usual[name]
    }


def _plain(value: Any) -> Any:
    """A value without numpy scalars."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def _names(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else [str(name) for name in given]


def _seed(random_state: Any) -> int:
    if random_state is None:
        return 0
    is_number = isinstance(random_state, (int, np.integer))
    if is_number and 0 <= random_state < 2**31:
        return int(random_state)
    raise ValueError(
        f"random_state={random_state!r} must be a whole number from 0 to {2**31 - 1:,}"
    )


def refuse_in_blocks(
    options: Mapping[str, Any], called: Callable[[str], str] = str
) -> None:
    """Raise an error if an option needs all rows in memory.

    Parameters
    ----------
    options : mapping of str to object
        The options of :func:`~damvi.model.plan_fit`.
    called : callable
        Gives the user's name of an option.
    """
    given = {name: options.get(name) for name in NEED_MEMORY}
    asked = [
        called(name)
        for name, value in given.items()
        if value is not None and value is not False
    ]
    cure = "leave it out"
    if options.get("pool") == "best":
        asked.append(f"{called('pool')} best")
        cure = cure if asked[1:] else f"use {called('pool')} strong or trees"
    if asked:
        raise ValueError(
            f"{' and '.join(asked)} need{'s' * (len(asked) == 1)} all rows in memory, but "
            f"this table is read in blocks; {cure}, or fit on a sample in one file"
        )


# In memory.


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
        by = AVERAGE_PRECISION if by_rank else classifier.decision_.objective
        single = best_alone(classifier, by)
        peers[BEST] = single.vote
    board = leaderboard(FittedVote(classifier), peers, metric)
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
    fitted = FittedVote(classifier)
    comparison = compare_with_peers(table, fitted, vote, metric, peers, ours, advice)
    known = comparison.threshold, comparison.probability, comparison.blocks
    training = TrainingRows(row_hashes(table.X, table.y), vote, table.labels, *known)
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
        table.profile_with(_decided(fitted)),
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
    classifier.decision_.calibrates = True
    vote: NDArray[np.float64] = classifier.decision_.out_of_sample_vote
    return vote


def _decided(fitted: FittedVote) -> NDArray[np.intp]:
    """The out-of-sample decisions on the training rows that have one."""
    decided, judged = fitted.training_decisions()
    return decided[judged]


def _scores(
    table: Prepared, metric: Metric, classifier: Any, comparison: Comparison
) -> dict[str, Any]:
    """The scores of the model as plain values."""
    tuning = classifier.tuning_
    return {
        "rows": len(table.y),
        **table.sizes,
        "metric": metric.name,
        "cost": None if metric.cost is None else list(metric.cost),
        "threshold": np.asarray(classifier.threshold_).tolist(),
        "tuning": None if tuning is None else asdict(tuning),
        **comparison.as_dict(),
        # For the report, since the votes are not saved.
        "voters": voters_of_fit(classifier, comparison.threshold),
    }


def _choose_pool(pool: str | list[tuple[str, Any]], known: tuple[str, ...] = POOLS) -> Any:
    """The estimators of the pool; None for trees."""
    if isinstance(pool, str) and pool not in known:
        raise ValueError(f"unknown pool={pool!r}; use {', '.join(known)} or a list")
    if pool == "trees":
        return None
    return "strong" if isinstance(pool, str) else pool


# Block by block.


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
    estimators = _choose_pool(pool, ("strong", "trees"))
    encoded: EncodedTable = table.X
    encoded.sample_rows = sample_rows or encoded.sample_rows
    common = _parameters(table, metric, seed, n_jobs, verbose)
    classifier: Any
    if estimators is None:
        classifier = DAMVIClassifier(bootstrap="poisson", stratified=True, **common)
    else:
        classifier = DAMVIVotingClassifier(estimators, **common)
    start = time.perf_counter()
    if client is None:
        classifier.fit(encoded, encoded.encoder.label)
    else:
        _fit_on_cluster(classifier, encoded, client)
    seconds = {WEIGHTED: time.perf_counter() - start, **getattr(classifier, "seconds_", {})}
    vote = _calibrated_vote(classifier)
    how = {**(made or {}), "seed": seed, "pool": pool if isinstance(pool, str) else "own"}
    peers, board, fitted = None, {}, FittedVote(classifier)
    if estimators is not None:
        peers = peer_votes(classifier, None, table.labels, seed, seconds)
        board = {"leaderboard": leaderboard(fitted, peers, metric)}
        how |= {"sample_rows": encoded.sample_rows, "seconds": seconds}
    comparison = compare_with_peers(table, fitted, vote, metric, peers)
    rows, hashes = _rows_to_remember(encoded, classifier, n_jobs, client)
    learned = comparison.threshold[rows], comparison.probability[rows]
    training = TrainingRows(hashes, vote[rows], table.labels[rows], *learned)
    scores = _scores(table, metric, classifier, comparison) | board
    profile = table.profile_with(_decided(fitted))
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
