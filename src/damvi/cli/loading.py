"""A model and a table from their files, for the commands that need both."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .talking import Talk, shown

ENOUGH_ROWS = 10
"""In fewer, that a column is missing everywhere may well be so."""


def load_model(path: Path, talks: Talk) -> Any:
    """The model; what is doubtful about it is said as a note."""
    from ..io import load

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = load(path)
    for each in caught:
        talks.note(f"Note: {' '.join(str(each.message).split())}")
    return loaded


@contextmanager
def nothing_thrown_away() -> Iterator[None]:
    """A context for imports and loading.

    What they make is there to stay, and to look through it for garbage again and again
    takes a sixth of a command's start.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # nor is it looked through later
        if enabled:
            gc.enable()


def load_with_table(
    model: Path, data: Path, target: str | None, talks: Talk
) -> tuple[Any, Any]:
    """The model, and the table read as the model's schema needs it."""
    from ..tables import pick, read_table

    loaded = load_model(model, talks)
    name = target or loaded.target.name
    frame = read_table(data, loaded.schema, as_text=[name])
    if target is not None:
        pick(frame, target, "target")
    encoded = loaded.schema.encode(frame)
    unseen = [feature for feature in encoded.columns if encoded[feature].isna().all()]
    tell_unseen(talks, loaded.schema, unseen, len(frame))
    return loaded, frame


def tell_unseen(talks: Talk, schema: Any, unseen: Collection[str], rows: int) -> list[str]:
    """Name the columns in which nothing could be read, and return their names.

    What is written otherwise than at the fit, all of it, should not go unnoticed.
    """
    names = [
        column.name
        for column in schema.used
        if rows >= ENOUGH_ROWS and set(column.features) <= set(unseen)
    ]
    for name in names[:10]:
        talks.note(
            f"Note: in {shown(name)!r} no value could be read in any row, so all count as "
            f"missing. Is it written as it was at the fit?"
        )
    if len(names) > 10:
        talks.note(f"Note: and so it is in {len(names) - 10:,} more columns.")
    return names
