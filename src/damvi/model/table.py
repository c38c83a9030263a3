"""A table made ready for voters: which rows, which columns, which classes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..folds import forward_splits
from ..messages import counted
from ..tables import (
    Schema,
    Target,
    amount_warnings,
    is_number_column,
    label_texts,
    leak_warnings,
    listed,
    merge_labels,
    note_on_neighbours,
    notes_on,
    pick,
    read_classes,
    read_times,
    spelling_warnings,
    suspicions,
    time_order,
    time_values,
    with_kind,
)
from ..tables.profile import Profile
from ..tables.values import as_numbers

if TYPE_CHECKING:
    import pandas as pd

FEW_GROUPS = 6
"""Below which the models that judge a group have learned from next to no others."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a classifier is fitted on, and what was decided on the way.

    Attributes
    ----------
    X : DataFrame
        The rows that have a label, encoded.
    y : ndarray
        Whether each row is positive; of three or more classes, the place of its label in
        ``target.classes``.
    groups : ndarray or None
    schema : Schema
    target : Target
    warnings : list of str
        For the user to read.
    unlabeled : DataFrame or None
        The rows that have none, encoded alike.
    times : ndarray or None
        Numbers in the order of time, equal where times are equal: float64 or int64.
    sample_weight : ndarray of float64 or None
    notes : list of str
        Advice, a line each.
    profile : Profile or None
        What the columns of the labelled rows hold.
    alike : dict of str to str
        The columns that say which rows are alike: "time", "group", or none.
    """

    X: Any
    y: NDArray[Any]
    groups: NDArray[Any] | None
    schema: Schema
    target: Target
    warnings: list[str]
    unlabeled: pd.DataFrame | None = None
    times: NDArray[Any] | None = None
    sample_weight: NDArray[np.float64] | None = None
    notes: list[str] = field(default_factory=list)
    profile: Profile | None = None
    alike: dict[str, str] = field(default_factory=dict)

    @property
    def labels(self) -> NDArray[Any]:
        """``y`` in a byte a row, as a model file keeps it."""
        return self.y.astype(self.target.label_type, copy=False)

    @property
    def class_counts(self) -> list[int]:
        """The rows of each class; of two, the positive one is the second."""
        return [int(np.count_nonzero(self.y == c)) for c in range(self.target.n_classes)]


def prepare(
    frame: pd.DataFrame,
    target: str,
    positive: Any = None,
    *,
    group: str | None = None,
    time: str | None = None,
    sample_weight: str | None = None,
    shuffle: bool = False,
    merged: bool = False,
    keep: Collection[str] = (),
    drop: Collection[str] = (),
    like: Schema | None = None,
) -> Prepared:
    """Judge a table and encode it.

    Columns are judged by the rows that have a label.

    Parameters
    ----------
    frame : DataFrame
        See :func:`~damvi.tables.read_table`.
    target : str
    positive : optional
        The label to find, against all others. By default the rarer of two; three or more
        are told apart.
    group : str, optional
        The column that says which rows belong together; it is no feature.
    time : str, optional
        The column that says when each row was: dates, times or numbers. Numbers are no
        feature then; of dates the parts of the calendar are. By default it is a column of
        dates that the rows are in the order of, if there is one.
    sample_weight : str, optional
        The column that says how much each row counts; it is no feature.
    merged : bool, default=False
        Labels that differ in case or blanks alone are one.
    shuffle : bool, default=False
        Rows are in no order of time, whatever they look like.
    keep, drop : collections of str
        Columns to use or not to use, whatever they look like.
    like : Schema, optional
        Of an older table, whose columns these are taken as; see
        :meth:`damvi.tables.Schema.infer`.
    """
    import pandas as pd

    if time is not None and shuffle:
        raise ValueError(
            f"rows are judged in the order of {time!r}, or shuffled, and not both; leave "
            f"out one of time and shuffle"
        )
    roles = {"group": group, "time": time, "sample_weight": sample_weight}
    if like is not None:
        drop = dropped_like(frame, like, drop)
    check_columns(frame, target, keep, drop, roles)
    labels = label_texts(frame[target])
    spelled = [] if merged else spelling_warnings(labels)
    if merged:
        labels = merge_labels(labels)
        if positive is not None:
            positive = merge_labels(pd.Series([str(positive)]), labels.dropna().unique())[0]
    known = labels.notna().to_numpy()
    y, classes = read_classes(labels[known].reset_index(drop=True), positive)
    classes = with_kind(classes, frame[target].dtype, frame[target])
    classes = replace(classes, merged=merged)
    groups = None if group is None else _filled(frame, group, "group").to_numpy()[known]
    times = None if time is None else read_times(_filled(frame, time, "time")[known])
    weights = None if sample_weight is None else _read_weights(frame[sample_weight], known)
    if time is not None and not is_number_column(frame[time]):
        del roles["time"]
    drop = [*drop, *(name for name in roles.values() if name is not None)]
    without = None
    if not known.all():
        without = frame.loc[~known].reset_index(drop=True)
        frame = frame.loc[known].reset_index(drop=True)
    schema, warnings = judge_columns(
        frame, target, y, classes, keep=keep, drop=drop, like=like
    )
    X = schema.encode(frame)
    notes = notes_on(frame, schema, X, y)
    if time is None and not shuffle:
        time, times, words = _find_times(frame, schema, y, groups)
        in_order = times is not None or time is None
        (notes if in_order else warnings).extend(words)
        if groups is None and time is None and not words:
            notes += note_on_neighbours(schema, X, y)
    if groups is not None:
        warnings += _few_groups(groups, str(group))
    if times is not None and weights is not None:
        _refuse_weightless(times, y, groups, weights)
    alike = {"time": time if times is not None else None, "group": group}
    return Prepared(
        X,
        y,
        groups,
        schema,
        classes,
        [*spelled, *warnings, *suspicions(X, y, schema, keep)],
        None if without is None else schema.encode(without),
        times,
        weights,
        notes,
        profile=Profile.learn(schema, X, frame),
        alike={role: name for role, name in alike.items() if name is not None},
    )


def _few_groups(groups: NDArray[Any], name: str) -> list[str]:
    n = len(np.unique(groups))
    if n >= FEW_GROUPS:
        return []
    return [
        f"{name!r} has only {counted(n, 'group')}: what judges one of them has learned "
        f"from few others, so the scores are rough, and more often too low than too high"
    ]


def _refuse_weightless(
    times: NDArray[Any], y: NDArray[Any], groups: Any, weights: NDArray[np.float64]
) -> None:
    """An error if all that comes before some rows weighs nothing."""
    for train, _ in forward_splits(times, y, groups):
        if len(np.unique(y[train][weights[train] > 0])) < 2:
            raise ValueError(
                "the earliest rows of one class all weigh 0, so there is nothing to learn "
                "from before the rows that are judged first; give weights above 0, leave "
                "these rows out, or judge rows in any order with --shuffle"
            )


def _find_times(
    frame: pd.DataFrame, schema: Schema, y: NDArray[Any], groups: Any
) -> tuple[str | None, NDArray[Any] | None, list[str]]:
    """The order of the rows in time, if they are in any, and what to say of it.

    A column without times has such an order, but rows cannot be judged in it.
    """
    import pandas as pd

    name = time_order(frame, schema)
    dates = [column.name for column in schema.used if column.kind == "date"]
    if name is None and not dates:
        return None, None, []
    if name is None:
        told = (
            f"If {dates[0]!r} says when each row was, give it as --time: rows are then "
            f"judged by what was learned from earlier ones, as new rows will be."
        )
        return None, None, [told]
    # A row without a date goes with the one before it.
    times = pd.Series(time_values(frame, name)).ffill().bfill().to_numpy()
    try:
        forward_splits(times, y, groups)
    except ValueError as error:
        told = (
            f"the rows are in the order of {name!r}, but {error}. They are judged in any "
            f"order, so expect less of rows to come than the scores promise"
        )
        return name, None, [told]
    told = (
        f"The rows are in the order of {name!r}, so they are judged by what was learned "
        f"from earlier ones alone, as new rows will be. To judge them in any order, give "
        f"--shuffle."
    )
    return name, times, [told]


def _filled(frame: pd.DataFrame, name: str, role: str) -> pd.Series:
    """A column that says something of each row, or an error."""
    column = frame[name]
    if column.isna().any():
        raise ValueError(
            f"the {role} column {name!r} is missing in "
            f"{counted(column.isna().sum(), 'row')}; give each row a {role}"
        )
    return column


def _read_weights(column: pd.Series, known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How much each row counts."""
    weights = as_numbers(column)[known]
    odd = ~(weights >= 0)
    if odd.any():
        raise ValueError(
            f"the column of weights {column.name!r} has "
            f"{counted(odd.sum(), 'value that is', 'values that are')} no weight, such as "
            f"{str(column[known][odd].iloc[0])!r}; give numbers of 0 and more"
        )
    return weights


def check_columns(
    frame: pd.DataFrame,
    target: str,
    keep: Collection[str],
    drop: Collection[str],
    roles: Mapping[str, str | None] | None = None,
) -> None:
    """An error if a named column is not there, or has two roles."""
    given = {role: name for role, name in (roles or {}).items() if name is not None}
    for name in (*keep, *drop):
        pick(frame, name, "such")
    if target in (*keep, *drop, *given.values()):
        raise ValueError(f"{target!r} is the target, and cannot be a feature or a group")
    pick(frame, target, "target")
    for role, name in given.items():
        pick(frame, name, role)
        if name in keep:
            raise ValueError(f"{name!r} says the {role} of rows, and cannot be a feature")


def dropped_like(
    frame: pd.DataFrame, like: Schema, drop: Collection[str]
) -> Collection[str]:
    """The columns to drop; an error if another column of the older table is not there."""
    gone = [column.name for column in like.used if column.name not in frame.columns]
    lacking = [name for name in gone if name not in drop]
    if lacking:
        are = "columns are missing" if len(lacking) > 1 else "column is missing"
        raise ValueError(
            f"{are}: {listed(lacking)}, which the older model uses; the table has "
            f"{listed(list(frame.columns))}. To fit without, name it in --drop"
        )
    return [name for name in drop if name not in gone]


def judge_columns(
    frame: pd.DataFrame,
    target: str,
    y: NDArray[Any],
    classes: Target,
    *,
    keep: Collection[str],
    drop: Collection[str],
    like: Schema | None = None,
) -> tuple[Schema, list[str]]:
    """What becomes of each column, and warnings for the user to read."""
    schema = Schema.infer(frame, target, y, keep=keep, drop=drop, like=like)
    if not schema.used:
        reasons = "; ".join(f"{c.name!r}: {c.reason}" for c in schema.columns[:20])
        raise ValueError(f"no column is left to learn from. {reasons}".rstrip())
    return schema, [*amount_warnings(classes), *leak_warnings(schema, target)]


def with_unlabeled(table: Prepared, frame: pd.DataFrame, name: str) -> Prepared:
    """The table, with more rows that have no label.

    Parameters
    ----------
    table : Prepared
    frame : DataFrame
        As :func:`~damvi.tables.read_table` reads it, with ``schema=table.schema``. Columns
        may come in any order; what the model does not use is ignored.
    name : str
        Of the file, for errors.
    """
    import pandas as pd

    try:
        more = table.schema.encode(frame)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    target, warnings = table.target.name, list(table.warnings)
    if target in frame.columns:
        n = int(label_texts(frame[target]).notna().sum())
        if n:
            warnings.append(
                f"{name} has a {target!r} in {counted(n, 'row')}, which is ignored. Rows "
                f"with a label belong in the table that is fitted"
            )
    for column in table.schema.used:
        read = more[list(column.features)].notna().to_numpy().any()
        if not read and frame[column.name].notna().any():
            warnings.append(
                f"{name}: no value of {column.name!r} could be read, so all count as "
                f"missing. Is it written as in the table that is fitted?"
            )
    parts = [more] if table.unlabeled is None else [table.unlabeled, more]
    return replace(table, unlabeled=pd.concat(parts, ignore_index=True), warnings=warnings)


def describe_unlabeled(table: Prepared, weight: float | None) -> str | None:
    """What becomes of the rows without a label, for the user to read.

    An error, before the work, if they cannot be used as asked.
    """
    if weight and table.unlabeled is None:
        raise ValueError(
            f"--unlabeled-weight {weight:g} needs rows without a label, and all have one; "
            f"name a file with --unlabeled, or leave it out"
        )
    if weight:
        table.target.require_two(
            f"--unlabeled-weight {weight:g} is, so far,",
            "leave it out, or name the one to find with --positive",
        )
    if table.unlabeled is None:
        return None
    rows = f"{counted(len(table.unlabeled), 'row has', 'rows have')} no label: "
    if weight:
        return (
            f"{rows}how the voters disagree on them counts with a weight of at most "
            f"{weight:g}. All scores are of rows with a label."
        )
    if weight is not None:
        return f"{rows}left out, as asked."
    return (
        f"{rows}left out, since no use of them has been seen to help reliably. To try and "
        f"compare, with two classes: --unlabeled-weight 0.5."
    )
