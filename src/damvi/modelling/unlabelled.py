"""Rows without a label: where they come from, and what is made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..classifier import DAMVIClassifier
from ..tables import label_texts
from ..teaching import TEACHERS
from .preparing import Prepared

if TYPE_CHECKING:
    import pandas as pd

WAYS = ("auto", "disagreement", "kmeans", "self", "none")
"""What to learn from unlabelled rows, in the words of the classifier."""
OPTION = "--learn-from-unlabeled"
LEARNED = {
    "disagreement": "how the voters disagree on them is learned",
    "kmeans": "voters are trained on them too, with labels guessed by K-means",
    "self": "voters are trained on them too, with labels guessed by a vote",
}


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


def refuse_ways(table: Prepared, asked: str, pool: str) -> None:
    """Say so, before the work, if what is asked of unlabelled rows cannot be had."""
    if asked not in WAYS:
        raise ValueError(f"{OPTION} {asked} is not known; give one of {', '.join(WAYS)}")
    if asked in ("auto", "none"):
        return
    if table.unlabelled is None:
        raise ValueError(
            f"{OPTION} {asked} needs rows without a label, and all have one; name a file "
            f"with --unlabeled, or leave it out"
        )
    if table.is_many:
        raise ValueError(
            f"{OPTION} {asked} is for two classes so far, and {table.target.name!r} has "
            f"{len(table.target.classes)}; leave it out, or name the one to find with "
            f"--positive"
        )
    if asked in TEACHERS and pool != "trees":
        raise ValueError(
            f"{OPTION} {asked} trains one kind of voter, and the strong pool has several; "
            f"give --pool trees as well, or {OPTION} disagreement"
        )


def uses_of(table: Prepared, asked: str, classifier: DAMVIClassifier) -> tuple[str, ...]:
    """What the classifier will learn from the unlabelled rows; it knows what auto is."""
    if table.unlabelled is None or asked == "none":
        return ()
    uses = classifier._uses()
    if asked == "auto" and table.is_many:
        return ()
    if asked == "auto" and classifier._is_pool:
        return tuple(use for use in uses if use not in TEACHERS)
    return uses


def say_uses(
    table: Prepared, asked: str, uses: tuple[str, ...], is_pool: bool
) -> str | None:
    """What becomes of the unlabelled rows, for the user to read."""
    if table.unlabelled is None:
        return None
    n = len(table.unlabelled)
    said = f"{n:,} rows have no label: " if n > 1 else "1 row has no label: "
    if uses:
        learned = ", and ".join(LEARNED[use] for use in uses)
        return f"{said}{learned}. All scores are of rows with a label."
    if asked == "none":
        return f"{said}left out, as asked."
    if table.is_many:
        return f"{said}left out, since they are of use with two classes only, so far."
    ways = (
        f"{OPTION} disagreement, or with --pool trees kmeans or self"
        if is_pool
        else f"{OPTION} disagreement, kmeans or self"
    )
    return (
        f"{said}left out, since no use of them has been seen to help reliably. To try one "
        f"and compare: {ways}."
    )


def summary_of(
    table: Prepared, uses: tuple[str, ...], classifier: DAMVIClassifier
) -> dict[str, Any]:
    """What a model tells of them, if there are any: plain values."""
    if table.unlabelled is None:
        return {}
    said: dict[str, Any] = {"rows": len(table.unlabelled), "used_for": list(uses)}
    if "disagreement" in uses:
        said["eta"] = float(classifier.eta_)
    return {"unlabelled": said}
