"""A model and a table from their files, for the commands that need both."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..messages import counted
from .console import Output, printable

if TYPE_CHECKING:
    from ..model import Model

ENOUGH_ROWS = 10
"""In fewer, that a column is missing everywhere may well be so."""
SOME_ROWS = 20_000
"""Of a table in blocks, rows that are looked at for such columns."""


def load_whole(path: Path, output: Output) -> Model:
    """The model of a table; warnings about it become notes."""
    from ..io import ModelFileError
    from ..model import Model, load

    with output.warnings_as_notes():
        found = load(path)
    if not isinstance(found, Model):
        raise ModelFileError(
            f"{path} holds a classifier without a table's columns, which Python can load "
            f"with damvi.load; damvi fit makes whole models"
        )
    return found


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """A context for imports and loading, whose objects are there to stay.

    Looking through them for garbage again and again takes a sixth of a command's start.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # nor are they looked through later
        if enabled:
            gc.enable()


def load_with_table(
    model: Path, data: Path, target: str | None, output: Output, *, blocks: bool = False
) -> tuple[Model, Any]:
    """The model, and the table read as the model's schema needs it.

    Where ``blocks`` will do and it is better read so, the table is the path as it is.
    """
    from ..model import DatasetRows, why_in_blocks
    from ..tables import pick

    loaded, table = load_whole(model, output), None
    if blocks and why_in_blocks(data) is not None:
        more = [] if target is None else [target]
        frame, table = DatasetRows(data, loaded.schema, more).sample(SOME_ROWS), data
    else:
        frame = table = loaded.read(data, target)
    if target is not None:
        pick(frame, target, "target")
    encoded = loaded.schema.encode(frame)
    empty = [feature for feature in encoded.columns if encoded[feature].isna().all()]
    note_unread_columns(output, loaded.schema, empty, len(frame))
    return loaded, table


def note_unread_columns(
    output: Output, schema: Any, empty: Collection[str], rows: int
) -> list[str]:
    """Name the columns in which nothing could be read, and return their names.

    A column that is written otherwise than it was in training should not go unnoticed.
    """
    names = [
        column.name
        for column in schema.used
        if rows >= ENOUGH_ROWS and set(column.features) <= set(empty)
    ]
    for name in names[:10]:
        output.note(
            f"Note: in {printable(name)!r} no value could be read in any row, so all count "
            f"as missing. Is it written as it was in training?"
        )
    if len(names) > 10:
        output.note(f"Note: the same goes for {counted(len(names) - 10, 'more column')}.")
    return names
