"""From a table as it is given to a model: read, judged, fitted, and with its promise."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count

from ..decision.guarantees import parse_guarantee
from ..io import ModelParts
from ..messages import counted
from .comparison import Comparison, Metric, as_metric
from .dataset import prepare_dataset
from .evaluation import judge
from .fitting import fit_dataset, fit_table
from .guarantee import GUARANTEE, basis_of_aside, decide_by, promise, set_aside
from .model import Model
from .options import changes, in_python, refuse_in_blocks, repeated, settings
from .source import (
    as_frame,
    dataset_fingerprint,
    fingerprint,
    is_path,
    provenance,
    why_in_blocks,
)
from .table import Prepared, prepare, typed_labels, with_unlabeled


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
    like: ModelParts | None = None,
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
    unlabeled: Any = None,
    unlabeled_weight: float | None = None,
    in_blocks: bool = False,
    client: Any = None,
    command: str = "",
    watch: Watch | None = None,
) -> Fit:
    """As :func:`fit`, with all that the command line has beyond it.

    Parameters
    ----------
    source : DataFrame, Arrow table or path
    like : ModelParts, optional
        An older model, whose columns these are taken as; :func:`options_like` are its
        settings.
    target, pos_label, time, group, sample_weight, drop, keep, pool, threshold, shuffle
        See :func:`fit`; so are ``guarantee``, ``confidence``, ``guarantee_size``,
        ``sample_rows``, ``merge_labels``, ``time_limit``, ``prefer``, ``n_jobs`` and
        ``random_state``.
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
    """
    options = dict(locals())
    asked = settings(options, _usual())
    if target is None:
        raise ValueError("name the column to predict with --target (target='...')")
    watch = watch or Watch()
    how: dict[str, Any] = {
        "seed": _seed(random_state),
        "n_jobs": n_jobs or cpu_count(),
        "verbose": watch.verbose,
    }
    target = str(target)  # as all names of columns are
    columns: dict[str, Any] = {
        role: (names,) if isinstance(names, str) else names
        for role, names in (("keep", keep), ("drop", drop))
    }
    columns["like"] = None if like is None else like.schema
    why = why_in_blocks(source, in_blocks or client is not None)
    promised = None if guarantee is None else parse_guarantee(guarantee)
    if promised is not None and not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}; give a number between 0 and 1")
    if sample_rows is not None and (why is None or pool in (None, "trees")):
        raise ValueError(
            "sample_rows is for strong models of a table that is read in blocks, as "
            "folders of parquet files are; other fits use all rows: leave it out"
        )
    if why is None:
        frame = as_frame(source, as_text=[target])
        if target in frame.columns and _is_text_file(source):
            frame[target] = typed_labels(frame[target])
        columns |= {
            "time": time,
            "group": group,
            "sample_weight": sample_weight,
            "shuffle": shuffle,
            "merged": bool(merge_labels),
        }
        table, aside = prepare(frame, target, pos_label, **columns), None
        n_rows, whole = len(table.y), table
        if promised is not None:  # before anything is learned of the rows
            taken = set_aside(frame, table, promised[0], guarantee_size, how["seed"])
            aside = frame.loc[taken].reset_index(drop=True)
            rest = frame.loc[~taken].reset_index(drop=True)
            table = prepare(rest, target, pos_label, **columns)
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
        metric = as_metric(threshold, table.target, n_rows)
        made["settings"] = asked
        table.warnings.extend([] if like is None else changes(like, table))
        watch.table(table, n_rows - len(table.y))
        n_told = len(table.warnings)
        parts, comparison = fit_table(
            table,
            metric,
            pool="strong" if pool is None else pool,
            time_limit=time_limit,
            prefer=prefer,
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
            found = promise(parts, judged, *promised, confidence, basis)
            if found.threshold is None:
                parts.scores[GUARANTEE] = found.as_dict()
                watch.no_guarantee(found.words)
            else:
                parts = decide_by(parts, found)
    else:
        refuse_in_blocks(options)
        columns["shuffle"] = shuffle
        table, n_judged = prepare_dataset(source, target, pos_label, **columns, **how)
        metric = as_metric(threshold, table.target, len(table.y))
        made = provenance(command, dataset_fingerprint(source, table.X))
        made |= {"out_of_core": why, "settings": asked}
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
        how |= {"pool": "trees" if pool is None else pool, "sample_rows": sample_rows}
        parts, comparison = fit_dataset(table, metric, made=made, client=client, **how)
    told = {"warnings": list(table.warnings), "notes": list(table.notes)}
    parts = replace(parts, scores=parts.scores | told)
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
