"""A table made ready for voters: which rows, which columns, which classes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..io import Target
from ..tables import Schema, binary, label_texts, many, pick

if TYPE_CHECKING:
    import pandas as pd

LEAST_POSITIVES = 2
FEW_NUMBERS = 20
"""Numbers that are classes without a question."""


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
    unlabelled : DataFrame or None
        The rows that have none, encoded alike.
    """

    X: pd.DataFrame
    y: NDArray[Any]
    groups: NDArray[Any] | None
    schema: Schema
    target: Target
    warnings: list[str]
    unlabelled: pd.DataFrame | None = None

    @property
    def is_many(self) -> bool:
        """Whether there are three or more classes."""
        return bool(self.target.classes)

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Of two classes, whether each row is positive."""
        if self.is_many:
            raise ValueError("with three or more classes no row is positive; see y")
        return self.y


def prepare(
    frame: pd.DataFrame,
    target: str,
    positive: Any = None,
    *,
    group: str | None = None,
    keep: Collection[str] = (),
    drop: Collection[str] = (),
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
    keep, drop : collections of str
        Columns to use or not to use, whatever they look like.
    """
    refuse_names(frame, target, keep, drop, group)
    labels = label_texts(frame[target])
    known = labels.notna().to_numpy()
    y, read = classes_of(labels[known].reset_index(drop=True), positive)
    groups = None
    if group is not None:
        column = pick(frame, group, "group")
        if column.isna().any():
            raise ValueError(
                f"the group column {group!r} is missing in {column.isna().sum():,} rows; "
                f"give each row a group"
            )
        groups, drop = column.to_numpy()[known], [*drop, group]
    without = None
    if not known.all():
        without = frame.loc[~known].reset_index(drop=True)
        frame = frame.loc[known].reset_index(drop=True)
    schema, warnings = judge_columns(frame, target, y, read, keep=keep, drop=drop)
    return Prepared(
        schema.encode(frame),
        y,
        groups,
        schema,
        read,
        warnings,
        None if without is None else schema.encode(without),
    )


def refuse_names(
    frame: pd.DataFrame,
    target: str,
    keep: Collection[str],
    drop: Collection[str],
    group: str | None = None,
) -> None:
    """Names of columns that are not there, or have two roles."""
    for name in (*keep, *drop):
        pick(frame, name, "named")
    if target in (*keep, *drop, group):
        raise ValueError(f"{target!r} is the target, and cannot be a feature or a group")
    pick(frame, target, "target")


def judge_columns(
    frame: pd.DataFrame,
    target: str,
    y: NDArray[Any],
    read: Target,
    *,
    keep: Collection[str],
    drop: Collection[str],
) -> tuple[Schema, list[str]]:
    """What becomes of each column, and warnings for the user to read."""
    schema = Schema.infer(frame, target, y, keep=keep, drop=drop)
    if not schema.used:
        said = "; ".join(f"{c.name!r}: {c.reason}" for c in schema.columns[:20])
        raise ValueError(f"no column is left to learn from. {said}".rstrip())
    return schema, [*_of_numbers(read), *_warnings(schema, target)]


def classes_of(labels: pd.Series, positive: Any) -> tuple[NDArray[Any], Target]:
    """What is learned of the labels, and what they are called."""
    name = str(labels.name)
    if positive is None and labels.nunique() > 2:
        classes, places = many(labels)
        return places, Target(name, classes=classes)
    found = binary(labels, positive, [])[0].astype(bool)
    _refuse_too_few(found, name)
    others = labels[~found].unique().tolist()
    return found, Target(name, others[0] if len(others) == 1 else "", labels[found].iloc[0])


def _refuse_too_few(found: NDArray[np.bool_], target: str) -> None:
    for name, n in (("positive", int(found.sum())), ("negative", int((~found).sum()))):
        if n < LEAST_POSITIVES:
            raise ValueError(
                f"only {n} row is {name} in {target!r}; at least {LEAST_POSITIVES} are "
                f"needed to learn and to judge, and dozens for figures to rely on"
            )


def _of_numbers(target: Target) -> list[str]:
    """A warning of classes that may be amounts, where there are rows enough for them."""
    if len(target.classes) <= FEW_NUMBERS or not all(map(_is_number, target.classes)):
        return []
    return [
        f"each of the {len(target.classes)} numbers of {target.name!r} is taken as a class "
        f"of its own. If they are amounts, make two or three classes of them"
    ]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _warnings(schema: Schema, target: str) -> list[str]:
    """Columns that know too much, loudly."""
    said = []
    for column in schema.columns:
        if column.reason.startswith("EQUALS"):
            said.append(
                f"LEAKAGE: {column.name!r} equals the target {target!r} and was dropped. "
                f"If it is known beforehand, use it with --keep"
            )
        elif column.reason.startswith("TELLS"):
            what = (
                "is missing in all rows of one class, and in no other"
                if column.reason.startswith("TELLS A CLASS")
                else "alone tells the classes apart, in every row"
            )
            said.append(
                f"LEAKAGE? {column.name!r} {what}. If it is not known beforehand, leave it "
                f"out with --drop"
            )
    return said
