"""From a table as it is given to a model: read, judged, fitted, and with its promise."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from joblib import cpu_count

from ..decision.guarantees import parse_guarantee
from ..evaluation import MEASURES
from ..io import ModelParts
from ..messages import counted, in_python
from ..tables import listed, typed_labels
from ..tables.schema import AS_BEFORE, IN_WORDS, NEW
from .comparison import Comparison, Metric, as_metric, parse_metric, promised_figures
from .dataset import prepare_dataset
from .evaluation import judge
from .fitting import fit_dataset, fit_table
from .guarantee import GUARANTEE, basis_of_aside, decide_by, promise, set_aside
from .model import Model
from .source import (
    as_frame,
    dataset_fingerprint,
    fingerprint,
    is_path,
    provenance,
    why_in_blocks,
)
from .table import Prepared, prepare, with_unlabeled

ELSEWHERE = ("pos_label", "merge_labels", "drop", "pool", "threshold", "random_state")
"""Options of a fit that the model tells itself, by what became of them."""
OF_THIS_FIT = ("n_jobs", "like")
NEED_MEMORY = (
    *("time_limit", "prefer", "unlabeled", "unlabeled_weight", "time", "group"),
    *("sample_weight", "guarantee", "merge_labels"),
)
"""Options of a fit that are not for tables that are read in blocks."""
MOST_NAMED = 20
COMPARED = ("f1", "ap", "macro_f1", "macro_ap", "cost")
"""Figures of an older model that are told beside those of a new one."""


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
    """Fit a model on a table as it is, and measure it out of sample.

    ``damvi fit`` does the same, and gives the same model.

    Parameters
    ----------
    table : DataFrame, Arrow table or path
        Of pandas or polars, or a file of any kind that ``damvi fit`` reads. Folders and
        patterns of parquet files, and files that are large for the memory, are read in
        blocks; the voters are trees then, unless ``pool`` says otherwise.
    target : str
        The column to predict. Rows without a label are left out.
    like : Model, optional
        An older model, whose target, settings, columns and threshold rule are those of this
        one, as far as nothing else is given here. What differs between the tables is said.
    pos_label : optional
        The label to find, against all others. By default the rarer of two; three or more
        are told apart.
    time : str, optional
        The column that says when each row was. Each row is then judged by what was learned
        from earlier rows alone. By default it is a column of dates that the rows are in the
        order of, if there is one.
    group : str, optional
        The column that says which rows belong together, so that no row is judged by what
        was learned from others of its group; it is no feature.
    sample_weight : str, optional
        The column that says how much each row counts in training; it is no feature. In the
        scores each row counts once.
    drop, keep : collections of str
        Columns not to use, or to use whatever they look like.
    pool : {"strong", "trees", "best"} or list of (str, classifier), optional
        Strong models of several kinds, weighted; or the paper's trees, in seconds instead
        of minutes; or of the strong models the one that is best alone; or models of your
        own. By default strong ones, and trees for tables that are read in blocks: other
        models learn from a sample of their rows.
    sample_rows : int, optional
        Of tables in blocks, the rows that strong models learn from; 200,000 by default.
    threshold : optional
        What to be good at: "f1" (the default), "ap", "recall@0.9" (the best precision that
        finds 90 %), "precision@0.5", "flags@200" or ``{"flags": 200}`` (flag 200 of as many
        rows as the table has; also "flags@1%", "flags@200/10000"),
        ``{"cost": (false_alarm, miss)}``, or any other
        ``threshold`` of the estimators; with three or more classes "macro_f1" (the default)
        or "macro_ap".
    guarantee : dict, optional
        A promise that the threshold is to keep on rows to come: ``{"recall": 0.9}``,
        ``{"precision": 0.5}`` or ``{"false_alarm_rate": 0.01}``. It comes from rows that
        are set aside and train, weigh and calibrate nothing: the last ones of rows in the
        order of time, whole groups, or else some at random. Where they are too few, the
        model warns of it and keeps the threshold that ``threshold`` asks for.
    confidence : float, default=0.9
        How sure the promise is to be.
    guarantee_size : float, default=0.3
        The share of the rows that is set aside for it.
    merge_labels : bool, default=False
        Take labels that differ in case or blanks alone, as Fraud and fraud, as one.
    shuffle : bool, default=False
        Judge rows by folds at random even if the rows are in the order of time.
    time_limit : float, optional
        Seconds for the training: voters are tried in the order of what they add for their
        price, as many as there is time for. Trees take no heed of it.
    prefer : {"speed"}, optional
        Leave out voters that are not worth the time they take to answer. Trees take no
        heed of it.
    n_jobs : int, optional
        Threads; by default all cores.
    random_state : int, optional
        By default 0: the same table gives the same model.

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
    """The options of :func:`train`: those of an older model, where none are given."""
    if like is None:
        return given
    if not isinstance(like, ModelParts):
        raise TypeError(f"like is a model, as damvi.load reads it, and not {like!r}")
    return repeated(like, given, _usual()) | {"like": like}


def _usual() -> dict[str, Any]:
    """What the options of a fit are by default."""
    return (fit.__kwdefaults__ or {}) | {"unlabeled_weight": None}


def _command(table: Any, given: dict[str, Any]) -> str:
    """The call, with what is not as usual."""
    usual = fit.__kwdefaults__ or {}
    told = [repr(os.fspath(table)) if is_path(table) else "table"]
    told += [] if given["target"] is None else [repr(given["target"])]
    for name, value in given.items():
        if name == "like":
            told += [] if value is None else ["like=model"]
        elif name in usual and value != usual[name]:
            own = name == "pool" and not isinstance(value, str)
            told.append(f"{name}={'[...]' if own else repr(value)}")
    return f"damvi.fit({', '.join(told)})"


class Watch:
    """What is told while a fit goes on: warnings of the table, and nothing else."""

    verbose = False

    def table(self, found: Prepared, aside: int = 0) -> None:
        """Before the work; so many more rows are set aside for a guarantee."""
        for text in found.warnings:
            warnings.warn(self.worded(text), UserWarning, stacklevel=4)

    def say(self, text: str) -> None:
        """Of what was decided on the way."""

    def no_guarantee(self, text: str) -> None:
        """The rows that were set aside cannot support the promise."""
        warnings.warn(text, UserWarning, stacklevel=4)

    def worded(self, text: str) -> str:
        """A message in the words of whoever is told."""
        return in_python(text)


@dataclass(frozen=True, eq=False)
class Fit:
    """A model, and what it was fitted on and compared with."""

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
    """As :func:`fit`, with all that the command line has beyond it.

    Parameters
    ----------
    source : DataFrame, Arrow table or path
    target : str
    unlabeled : DataFrame, Arrow table or path, optional
        More rows, without a label.
    unlabeled_weight : float, optional
        How much the voters' disagreement on rows without a label counts.
    in_blocks : bool, default=False
        Read a parquet file in blocks, whatever its size.
    client : distributed.Client, optional
        Of the cluster that is to do the work.
    command : str
        What the model is made by, for its file.
    watch : Watch, optional
        Told what goes on.
    **options
        Those of :func:`fit`, with its defaults. Of ``like`` only the columns are taken
        here; :func:`options_like` are its settings.
    """
    usual = _usual()
    unknown = sorted(options.keys() - usual.keys())
    if unknown:
        raise TypeError(f"{unknown[0]!r} is no option of a fit")
    asked = SimpleNamespace(**usual | options | {"unlabeled_weight": unlabeled_weight})
    like, pool, guarantee = asked.like, asked.pool, asked.guarantee
    if target is None:
        raise ValueError("name the column to predict with --target (target='...')")
    watch = watch or Watch()
    how: dict[str, Any] = {
        "seed": _seed(asked.random_state),
        "n_jobs": asked.n_jobs or cpu_count(),
        "verbose": watch.verbose,
    }
    target = str(target)  # as all names of columns are
    columns: dict[str, Any] = {
        role: (names,) if isinstance(names, str) else names
        for role, names in (("keep", asked.keep), ("drop", asked.drop))
    }
    columns["like"] = None if like is None else like.schema
    why = why_in_blocks(source, in_blocks or client is not None)
    promised = None if guarantee is None else parse_guarantee(guarantee)
    if promised is not None and not 0 < asked.confidence < 1:
        raise ValueError(f"confidence={asked.confidence!r}; give a number between 0 and 1")
    if asked.sample_rows is not None and (why is None or pool in (None, "trees")):
        raise ValueError(
            "sample_rows is for strong models of a table that is read in blocks, as "
            "folders of parquet files are; other fits use all rows: leave it out"
        )
    if why is None:
        frame = as_frame(source, as_text=[target])
        if target in frame.columns and _is_text_file(source):
            frame[target] = typed_labels(frame[target])
        columns |= {
            "time": asked.time,
            "group": asked.group,
            "sample_weight": asked.sample_weight,
            "shuffle": asked.shuffle,
            "merged": bool(asked.merge_labels),
        }
        table, aside = prepare(frame, target, asked.pos_label, **columns), None
        n_rows, whole = len(table.y), table
        if promised is not None:  # before anything is learned of the rows
            taken = set_aside(frame, table, promised[0], asked.guarantee_size, how["seed"])
            aside = frame.loc[taken].reset_index(drop=True)
            rest = frame.loc[~taken].reset_index(drop=True)
            table = prepare(rest, target, asked.pos_label, **columns)
            if table.target != whole.target:
                raise ValueError(
                    "the rows that are left to learn from have other classes than the "
                    "table; name the positive one with --positive, or give a smaller "
                    "guarantee_size"
                )
        made = provenance(command, fingerprint(source, frame))
        if unlabeled is not None:
            more = as_frame(unlabeled, table.schema)
            name = str(unlabeled) if is_path(unlabeled) else "the table without labels"
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
                watch.no_guarantee(found.words)
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
            watch.say(f"Left out {counted(left_out, 'row')} whose {target!r} is missing.")
        if n_judged < n:
            watch.say(
                f"Columns were judged by a sample of {n_judged:,} rows, some of each "
                f"class; --keep and --drop overrule it."
            )
        how |= {"pool": "trees" if pool is None else pool, "sample_rows": asked.sample_rows}
        parts, comparison = fit_dataset(table, metric, made=made, client=client, **how)
    parts.scores.update(warnings=list(table.warnings), notes=list(table.notes))
    if like is not None:
        parts.scores["older"] = promises(like, parts.scores)
    return Fit(Model(**vars(parts)), table, metric, comparison)


def _is_text_file(source: Any) -> bool:
    """Whether all that is in a table was text to begin with."""
    return is_path(source) and bool({".csv", ".tsv"} & set(Path(source).suffixes))


def _seed(random_state: Any) -> int:
    if random_state is None:
        return 0
    is_number = isinstance(random_state, (int, np.integer))
    if is_number and 0 <= random_state < 2**31:
        return int(random_state)
    raise ValueError(
        f"random_state={random_state!r} is not a whole number from 0 to {2**31 - 1:,}; the "
        f"same one gives the same model"
    )


# Options: what users call them, and those of an older fit.
#
# What a fit was asked for is in the model's file as ``made["settings"]``. The rest is known
# from the model: what its columns are, its classes, its seed, its pool, its threshold rule.


def refuse_in_blocks(
    options: Mapping[str, Any], called: Callable[[str], str] = str
) -> None:
    """An error if options of a fit need all rows in memory.

    Parameters
    ----------
    options : mapping of str to object
        Of :func:`~damvi.model.train`.
    called : callable
        What the user calls an option.
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
        cure = cure if asked[1:] else f"give {called('pool')} strong or trees"
    if asked:
        raise ValueError(
            f"{' and '.join(asked)} need{'s' * (len(asked) == 1)} all rows in memory, and "
            f"these are read in blocks; {cure}, or fit on a sample in one file"
        )


def settings(given: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Of the options of a fit, those to be kept in the model's file.

    Parameters
    ----------
    given, usual : mapping of str to object
        The options, and what they are by default.

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
    """A value without numpy's kinds of numbers."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def repeated(
    like: ModelParts, given: Mapping[str, Any], usual: Mapping[str, Any]
) -> dict[str, Any]:
    """The options of a new fit: those given, and for the others those of the older model.

    Columns to keep are those of both, but for those that are to be dropped now. Columns
    that the older model dropped are known by its schema.

    Parameters
    ----------
    like : ModelParts
    given, usual : mapping of str to object
        As for :func:`settings`. What is as usual is not given.
    """
    kept = like.made.get("settings")
    if not isinstance(kept, dict):
        raise ValueError(
            "the older model does not say how it was fitted, as those of damvi fit do; "
            "give the options themselves instead of --like"
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
    """What the threshold was tuned for, and the metric of the figures beside it."""
    rule, cost = like.classifier.threshold, like.scores.get("cost")
    try:
        metric = parse_metric(like.scores["metric"], tuple(cost) if cost else None)
    except (KeyError, ValueError):  # a rule of the estimators, which have more of them
        return rule
    return metric if metric.threshold == rule else rule


def changes(like: ModelParts, table: Prepared) -> list[str]:
    """What differs between the tables of two fits, for the user to read."""
    said = []
    before = {column.name: column for column in like.schema.columns}
    for column in table.schema.columns:
        old = before.get(column.name)
        if old is None or old.kind == "dropped":
            continue
        name, kind = column.name, IN_WORDS[old.kind]
        if column.kind == "dropped" and column.reason != "as asked":
            said.append(f"{name!r} was {kind}, and is not used now: {column.reason}")
        elif column.kind not in (old.kind, "dropped"):
            said.append(f"{name!r} was {kind}, and is {IN_WORDS[column.kind]} now")
        elif column.reason.startswith(AS_BEFORE) and column.reason != old.reason:
            said.append(f"{name!r} is {kind} {column.reason}")
    new = [column.name for column in table.schema.columns if column.reason == NEW.reason]
    if new:
        more = f" and {len(new) - MOST_NAMED:,} more" if len(new) > MOST_NAMED else ""
        are = "columns are" if len(new) > 1 else "column is"
        said.append(
            f"new {are} not used: {', '.join(map(repr, new[:MOST_NAMED]))}{more}. To use "
            f"one, give --keep"
        )
    return said + _changes_of_rows(like, table)


def promises(like: ModelParts, scores: Mapping[str, Any]) -> list[str]:
    """What an older model promised, and what the new one does, for the user to read."""
    # What errors cost is compared at the same prices alone.
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
        f"The older model, out of sample: {'; '.join(told[0])}.",
        f"This one: {'; '.join(told[1]) or 'nothing of the kind'}. Each is told by its own "
        f"rows; damvi compare (in Python old.compare(new, table)) judges both on the same.",
    ]


def _figure(name: str, one: Mapping[str, Any]) -> str:
    form = ".2g" if name == "cost" else ".3f"  # which is tiny where positives are rare
    value, low, high = (format(one[key], form) for key in ("value", "low", "high"))
    return f"{MEASURES[name]} {value} (90 %: {low} to {high})"


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
        said.append(f"{new.name!r} has other classes than it had ({'; '.join(words)})")
    elif old.negative and old.negative != new.negative:
        others = repr(new.negative) if new.negative else "several other labels"
        said.append(
            f"{new.positive!r} stands against {others} in {new.name!r}, and stood against "
            f"{old.negative!r}"
        )
    known = like.scores.get("alike")
    time = known.get("time") if isinstance(known, dict) else None
    if time is not None and table.times is None:
        said.append(
            f"the rows of the older model were judged in the order of {time!r}, and these "
            f"are judged in any order; give --time to judge them so too"
        )
    elif time is None and table.times is not None and "time" in table.alike:
        said.append(
            f"these rows are judged in the order of {table.alike['time']!r}, and those of "
            f"the older model were judged in any order"
        )
    return said
