"""From a table as given to a fitted model: reading, validation and guarantee."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from joblib import cpu_count

from ..decision.guarantees import parse_guarantee
from ..evaluation import MEASURES
from ..io import ModelParts
from ..messages import counted, in_python
from ..tables import listed
from ..tables.schema import AS_BEFORE, IN_WORDS, NEW
from .comparison import Comparison, Metric, as_metric, parse_metric, promised_figures
from .dataset import dataset_fingerprint, prepare_dataset
from .evaluation import judge
from .fitting import fit_dataset, fit_table
from .guarantee import GUARANTEE, basis_of_aside, decide_by, promise, set_aside
from .model import Model
from .table import (
    Prepared,
    as_frame,
    fingerprint,
    is_path,
    labelled_frame,
    prepare,
    provenance,
    why_in_blocks,
    with_unlabeled,
)

ELSEWHERE = ("pos_label", "merge_labels", "drop", "pool", "threshold", "random_state")
"""Options of a fit that are recorded elsewhere in the model."""
OF_THIS_FIT = ("n_jobs", "like")
NEED_MEMORY = (
    *("time_limit", "prefer", "unlabeled", "unlabeled_weight", "time", "group"),
    *("sample_weight", "guarantee", "merge_labels"),
)
"""Options of a fit that do not work on tables read in blocks."""
MOST_NAMED = 20
COMPARED = ("f1", "ap", "macro_f1", "macro_ap", "cost")
"""Scores of an older model that are shown next to those of a new one."""


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
        other ``threshold`` of the estimators. With three or more classes: "macro_f1"
        (default) or "macro_ap".
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
        return train(table, **options_like(like, given), command=command).model
    except ValueError as error:
        error.args = (in_python(str(error)), *error.args[1:])
        raise


def options_like(like: ModelParts | None, given: dict[str, Any]) -> dict[str, Any]:
    """The options of :func:`train`, with defaults from an older model."""
    if like is None:
        return given
    if not isinstance(like, ModelParts):
        raise TypeError(f"like must be a model, as from damvi.load, not {like!r}")
    return repeated(like, given, _usual()) | {"like": like}


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


class Watch:
    """Receives messages during a fit; by default it only issues warnings."""

    verbose = False

    def table(self, found: Prepared, aside: int = 0) -> None:
        """The table is ready; ``aside`` more rows are set aside for a guarantee."""
        for text in found.warnings:
            warnings.warn(self.worded(text), UserWarning, stacklevel=4)

    def say(self, text: str) -> None:
        """A note on what was decided."""

    def no_guarantee(self, text: str) -> None:
        """The rows that were set aside cannot support the guarantee."""
        warnings.warn(text, UserWarning, stacklevel=4)

    def worded(self, text: str) -> str:
        """A message in terms of Python parameters instead of command-line options."""
        return in_python(text)


@dataclass(frozen=True, eq=False)
class Fit:
    """A model, its training data, and the comparison with baselines."""

    model: Model
    table: Prepared
    metric: Metric
    comparison: Comparison


def train(
    source: Any,
    target: str | None = None,
    *,
    unlabeled: Any = None,
    unlabeled_weight: float | None = None,
    in_blocks: bool = False,
    client: Any = None,
    command: str = "",
    watch: Watch | None = None,
    **options: Any,
) -> Fit:
    """As :func:`fit`, with the further options of the command line.

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
    watch : Watch, optional
        Receives messages.
    **options
        As for :func:`fit`. Only the columns of ``like`` are used here; its settings come
        from :func:`options_like`.
    """
    usual = _usual()
    unknown = sorted(options.keys() - usual.keys())
    if unknown:
        raise TypeError(f"unknown option {unknown[0]!r}")
    asked = SimpleNamespace(**usual | options | {"unlabeled_weight": unlabeled_weight})
    like, pool, guarantee = asked.like, asked.pool, asked.guarantee
    if target is None:
        raise ValueError("give the column to predict with --target (target='...')")
    watch = watch or Watch()
    how: dict[str, Any] = {
        "seed": _seed(asked.random_state),
        "n_jobs": asked.n_jobs or cpu_count(),
        "verbose": watch.verbose,
    }
    target = str(target)  # like all column names
    columns: dict[str, Any] = {
        role: (names,) if isinstance(names, str) else names
        for role, names in (("keep", asked.keep), ("drop", asked.drop))
    }
    columns["like"] = None if like is None else like.schema
    why = why_in_blocks(source, in_blocks or client is not None)
    promised = None if guarantee is None else parse_guarantee(guarantee)
    for name in ("confidence", "guarantee_size"):
        if promised is None and getattr(asked, name) != usual[name]:
            raise ValueError(f"{name} needs a guarantee; ask for one, or leave it out")
    if promised is not None and not 0 < asked.confidence < 1:
        raise ValueError(f"confidence={asked.confidence!r} must be between 0 and 1")
    if asked.sample_rows is not None and (why is None or pool in (None, "trees")):
        raise ValueError(
            "sample_rows only applies to strong models on a table read in blocks, such as "
            "a folder of parquet files; leave it out"
        )
    if why is None:
        frame = labelled_frame(source, target)
        columns |= {
            "time": asked.time,
            "group": asked.group,
            "sample_weight": asked.sample_weight,
            "shuffle": asked.shuffle,
            "merged": bool(asked.merge_labels),
        }
        table, aside = prepare(frame, target, asked.pos_label, **columns), None
        n_rows, whole = len(table.y), table
        if promised is not None:  # before anything is learned
            taken = set_aside(frame, table, promised[0], asked.guarantee_size, how["seed"])
            aside = frame.loc[taken].reset_index(drop=True)
            rest = frame.loc[~taken].reset_index(drop=True)
            table = prepare(rest, target, asked.pos_label, **columns)
            if table.target != whole.target:
                raise ValueError(
                    "without the rows set aside for the guarantee, the table has other "
                    "classes; name the positive one with --positive, or use a smaller "
                    "guarantee_size"
                )
        made = provenance(command, fingerprint(source, frame))
        if unlabeled is not None:
            more = as_frame(unlabeled, table.schema)
            name = str(unlabeled) if is_path(unlabeled) else "the unlabelled table"
            table = with_unlabeled(table, more, name)
            made["unlabeled"] = fingerprint(unlabeled, more)
        metric = as_metric(asked.threshold, table.target, n_rows)
        made["settings"] = settings(vars(asked), usual)
        table.warnings.extend([] if like is None else changes(like, table))
        watch.table(table, n_rows - len(table.y))
        n_told = len(table.warnings)
        parts, comparison = fit_table(
            table,
            metric,
            pool="strong" if pool is None else pool,
            time_limit=asked.time_limit,
            prefer=asked.prefer,
            unlabeled_weight=unlabeled_weight,
            made=made,
            say=watch.say,
            **how,
        )
        for text in table.warnings[n_told:]:
            warnings.warn(watch.worded(text), UserWarning, stacklevel=3)
        if promised is not None and aside is not None:
            judged, _ = judge(parts, aside, new=True)
            basis = basis_of_aside(aside, whole)
            found = promise(parts, judged, *promised, asked.confidence, basis)
            if found.threshold is None:
                parts.scores[GUARANTEE] = found.as_dict()
                watch.no_guarantee(f"{found.words}; the model keeps its threshold")
            else:
                parts = decide_by(parts, found)
    else:
        refuse_in_blocks({**vars(asked), "unlabeled": unlabeled})
        columns["shuffle"] = asked.shuffle
        table, n_judged = prepare_dataset(source, target, asked.pos_label, **columns, **how)
        metric = as_metric(asked.threshold, table.target, len(table.y))
        made = provenance(command, dataset_fingerprint(source, table.X))
        made |= {"out_of_core": why, "settings": settings(vars(asked), usual)}
        table.warnings.extend([] if like is None else changes(like, table))
        watch.table(table)
        n = len(table.y)
        left_out = sum(group.n_all for group in table.X.groups) - n
        if left_out:
            watch.say(f"Dropped {counted(left_out, 'row')} with a missing {target!r}.")
        if n_judged < n:
            watch.say(
                f"Column types were inferred from a sample of {n_judged:,} rows of all "
                f"classes; override them with --keep and --drop."
            )
        how |= {"pool": "trees" if pool is None else pool, "sample_rows": asked.sample_rows}
        parts, comparison = fit_dataset(table, metric, made=made, client=client, **how)
    parts.scores.update(warnings=list(table.warnings), notes=list(table.notes))
    if like is not None:
        parts.scores["older"] = promises(like, parts.scores)
    return Fit(Model(**vars(parts)), table, metric, comparison)


def _seed(random_state: Any) -> int:
    if random_state is None:
        return 0
    is_number = isinstance(random_state, (int, np.integer))
    if is_number and 0 <= random_state < 2**31:
        return int(random_state)
    raise ValueError(
        f"random_state={random_state!r} must be a whole number from 0 to {2**31 - 1:,}"
    )


# Options of an older fit.
#
# The model file has the options as ``made["settings"]``. The others follow from the model:
# its columns, classes, seed, pool and threshold rule.


def refuse_in_blocks(
    options: Mapping[str, Any], called: Callable[[str], str] = str
) -> None:
    """Raise an error if an option needs all rows in memory.

    Parameters
    ----------
    options : mapping of str to object
        The options of :func:`~damvi.model.train`.
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


def settings(given: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a fit to record in the model file.

    Parameters
    ----------
    given, usual : mapping of str to object
        The options and their defaults.

    Examples
    --------
    >>> settings({"time": "day", "group": None}, {"time": None, "group": None})
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


def repeated(
    like: ModelParts, given: Mapping[str, Any], usual: Mapping[str, Any]
) -> dict[str, Any]:
    """The options of a new fit: those given, and otherwise those of the older model.

    Columns to keep are merged, minus those to drop now. Columns that the older model
    dropped follow from its schema.

    Parameters
    ----------
    like : ModelParts
    given, usual : mapping of str to object
        As for :func:`settings`. Default values count as not given.
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


def _names(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else [str(name) for name in given]


def _threshold(like: ModelParts) -> Any:
    """What the threshold was tuned for, as a metric if possible."""
    rule, cost = like.classifier.threshold, like.scores.get("cost")
    try:
        metric = parse_metric(like.scores["metric"], tuple(cost) if cost else None)
    except (KeyError, ValueError):  # a rule that only the estimators have
        return rule
    return metric if metric.threshold == rule else rule


def changes(like: ModelParts, table: Prepared) -> list[str]:
    """How the tables of two fits differ, in words."""
    said = []
    before = {column.name: column for column in like.schema.columns}
    for column in table.schema.columns:
        old = before.get(column.name)
        if old is None or old.kind == "dropped":
            continue
        name, kind = column.name, IN_WORDS[old.kind]
        if column.kind == "dropped" and column.reason != "as asked":
            said.append(f"{name!r} was {kind} and is now dropped: {column.reason}")
        elif column.kind not in (old.kind, "dropped"):
            said.append(f"{name!r} was {kind} and is now {IN_WORDS[column.kind]}")
        elif column.reason.startswith(AS_BEFORE) and column.reason != old.reason:
            said.append(f"{name!r} is {kind} {column.reason}")
    new = [column.name for column in table.schema.columns if column.reason == NEW.reason]
    if new:
        more = f" and {len(new) - MOST_NAMED:,} more" if len(new) > MOST_NAMED else ""
        are = "columns are" if len(new) > 1 else "column is"
        said.append(
            f"new {are} not used: {', '.join(map(repr, new[:MOST_NAMED]))}{more}. Use "
            f"--keep to add them"
        )
    return said + _changes_of_rows(like, table)


def promises(like: ModelParts, scores: Mapping[str, Any]) -> list[str]:
    """The scores of an older model and of the new one, in words."""
    # Costs are only comparable at the same prices.
    same = like.scores.get("cost") == scores.get("cost")
    before, now = (
        {
            name: one
            for name, one in promised_figures(own).items()
            if name in COMPARED and {"value", "low", "high"} <= {*one}
        }
        for own in (like.scores, scores)
    )
    both = [
        name
        for name in COMPARED
        if name in before and name in now and (same or name != "cost")
    ]
    told = [
        [_figure(name, own[name]) for name in both] + _guaranteed(of)
        for own, of in ((before, like.scores), (now, scores))
    ]
    if not told[0]:
        return []
    return [
        f"Older model, out of sample: {'; '.join(told[0])}.",
        f"New model: {'; '.join(told[1]) or 'no such scores'}. Each is scored on its own "
        f"rows; damvi compare (in Python old.compare(new, table)) scores both on the same.",
    ]


def _figure(name: str, one: Mapping[str, Any]) -> str:
    form = ".2g" if name == "cost" else ".3f"  # tiny if positives are rare
    value, low, high = (format(one[key], form) for key in ("value", "low", "high"))
    return f"{MEASURES[name]} {value} (90% CI: {low} to {high})"


def _guaranteed(scores: Mapping[str, Any]) -> list[str]:
    promise = scores.get("guarantee")
    if not isinstance(promise, dict) or promise.get("threshold") is None:
        return []
    return [f"a guaranteed {str(promise.get('words')).partition(' (by ')[0]}"]


def _changes_of_rows(like: ModelParts, table: Prepared) -> list[str]:
    said, old, new = [], like.target, table.target
    if old.classes != new.classes:
        gone = [label for label in old.classes if label not in new.classes]
        more = [label for label in new.classes if label not in old.classes]
        parts = {"new": more, "gone": gone}
        words = [f"{what}: {listed(some)}" for what, some in parts.items() if some]
        said.append(f"the classes of {new.name!r} have changed ({'; '.join(words)})")
    elif old.negative and old.negative != new.negative:
        others = repr(new.negative) if new.negative else "several other labels"
        said.append(
            f"the negative class of {new.name!r} was {old.negative!r} and is now {others}"
        )
    known = like.scores.get("alike")
    time = known.get("time") if isinstance(known, dict) else None
    if time is not None and table.times is None:
        said.append(
            f"the older model was validated forward in time by {time!r}, but this one uses "
            f"random folds; give --time to match"
        )
    elif time is None and table.times is not None and "time" in table.alike:
        said.append(
            f"this model is validated forward in time by {table.alike['time']!r}, but the "
            f"older one used random folds"
        )
    return said
