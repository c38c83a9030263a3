"""Rows without a label: where they come from, and what is made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..tables import label_texts
from .preparing import Prepared

if TYPE_CHECKING:
    import pandas as pd

OPTION = "--unlabeled-weight"


def with_unlabelled(table: Prepared, frame: pd.DataFrame, name: str) -> Prepared:
    """The table, with more rows that have no label.

    Parameters
    ----------
    table : Prepared
    frame : DataFrame
        As :func:`~damvi.tables.read_table` reads it, with
        ``schema=table.schema``. Columns may come in any order; what the
        model does not use is ignored.
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
                f"{name} has a {target!r} in {n:,} rows, which is not looked at. Rows with "
                f"a label belong into the table that is fitted"
            )
    for column in table.schema.used:
        read = more[list(column.features)].notna().to_numpy().any()
        if not read and frame[column.name].notna().any():
            warnings.append(
                f"{name}: no value of {column.name!r} could be read, so all count as "
                f"missing. Is it written as in the table that is fitted?"
            )
    parts = [more] if table.unlabelled is None else [table.unlabelled, more]
    return replace(table, unlabelled=pd.concat(parts, ignore_index=True), warnings=warnings)


def weight_of(table: Prepared, asked: float | None) -> float:
    """How much the unlabelled rows count."""
    return 0.0 if table.unlabelled is None or asked is None else asked


def refuse_weight(table: Prepared, asked: float | None) -> None:
    """Say so, before the work, if what is asked of unlabelled rows cannot be had."""
    if not asked:
        return
    if not 0 <= asked < 1:
        raise ValueError(f"{OPTION} {asked} must be at least 0 and below 1")
    if table.unlabelled is None:
        raise ValueError(
            f"{OPTION} {asked:g} needs rows without a label, and all have one; name a file "
            f"with --unlabeled, or leave it out"
        )
    if table.is_many:
        raise ValueError(
            f"{OPTION} {asked:g} is for two classes so far, and {table.target.name!r} has "
            f"{len(table.target.classes)}; leave it out, or name the one to find with "
            f"--positive"
        )


def say_use(table: Prepared, asked: float | None, weight: float) -> str | None:
    """What becomes of the unlabelled rows, for the user to read."""
    if table.unlabelled is None:
        return None
    n = len(table.unlabelled)
    said = f"{n:,} rows have no label: " if n > 1 else "1 row has no label: "
    if weight:
        return (
            f"{said}how the voters disagree on them counts with a weight of {weight:g}. "
            f"All scores are of rows with a label."
        )
    if asked is not None:
        return f"{said}left out, as asked."
    if table.is_many:
        return f"{said}left out, since they are of use with two classes only, so far."
    return (
        f"{said}left out, since no use of them has been seen to help reliably. To try and "
        f"compare: {OPTION} 0.5."
    )


def summary_of(table: Prepared, weight: float) -> dict[str, Any]:
    """What a model tells of them, if there are any: plain values."""
    if table.unlabelled is None:
        return {}
    return {"unlabelled": {"rows": len(table.unlabelled), "weight": weight}}
