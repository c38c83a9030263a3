"""A table made ready for voters: which rows, which columns, which class."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..modelfile import Target
from ..tabular import Schema, binary, label_texts, pick

if TYPE_CHECKING:
    import pandas as pd

LEAST_POSITIVES = 2


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a classifier is fitted on, and what was decided on the way."""

    X: pd.DataFrame
    positive: NDArray[np.bool_]
    groups: NDArray[Any] | None
    schema: Schema
    target: Target
    notes: list[str]
    warnings: list[str]


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

    Parameters
    ----------
    frame : DataFrame
        See :func:`~damvi.tabular.read_table`.
    target : str
    positive : optional
        The label to find. By default the rarer of two.
    group : str, optional
        The column that says which rows belong together; it is no feature.
    keep, drop : collections of str
        Columns to use or not to use, whatever they look like.
    """
    notes: list[str] = []
    for name in (*keep, *drop):
        pick(frame, name, "named")
    if target in (*keep, *drop, group):
        raise ValueError(f"{target!r} is the target, and cannot be a feature or a group")
    labels = label_texts(pick(frame, target, "target"))
    found, known = binary(labels, positive, notes)
    _refuse_too_few(found, target)
    groups = None
    if group is not None:
        column = pick(frame, group, "group")
        if column.isna().any():
            raise ValueError(
                f"the group column {group!r} is missing in {column.isna().sum():,} rows; "
                f"give each row a group"
            )
        groups, drop = column.to_numpy()[known], [*drop, group]
    if not known.all():
        frame = frame.loc[known].reset_index(drop=True)
    kinds = labels[known].reset_index(drop=True)
    is_positive = found.astype(bool)
    schema = Schema.infer(frame, target, is_positive, keep=keep, drop=drop)
    if not schema.used:
        said = "; ".join(f"{c.name!r}: {c.reason}" for c in schema.columns[:20])
        raise ValueError(f"no column is left to learn from. {said}".rstrip())
    others = kinds[~is_positive].unique().tolist()
    return Prepared(
        schema.encode(frame),
        is_positive,
        groups,
        schema,
        Target(target, others[0] if len(others) == 1 else "", kinds[is_positive].iloc[0]),
        [note for note in notes if not note.startswith("Target")],
        _warnings(schema, target),
    )


def _refuse_too_few(found: NDArray[np.int8], target: str) -> None:
    for name, n in (("positive", int(found.sum())), ("negative", int((1 - found).sum()))):
        if n < LEAST_POSITIVES:
            raise ValueError(
                f"only {n} row is {name} in {target!r}; at least {LEAST_POSITIVES} are "
                f"needed to learn and to judge, and dozens for figures to rely on"
            )


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
            said.append(
                f"LEAKAGE? {column.name!r} alone tells the classes apart, in every row. If "
                f"it is not known beforehand, leave it out with --drop"
            )
    return said
