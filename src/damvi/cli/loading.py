"""Load a model and a table, for the commands that need both."""

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
"""With fewer rows, an empty column is nothing unusual."""
SOME_ROWS = 20_000
"""Rows of a table in blocks to check for empty columns."""


def load_whole(path: Path, output: Output) -> Model:
    """Load a table's model; warnings become notes."""
    from ..io import ModelFileError
    from ..model import Model, load

    with output.warnings_as_notes():
        found = load(path)
    if not isinstance(found, Model):
        raise ModelFileError(
            f"{path} holds a bare classifier without a table schema. Load it in Python "
            f"with damvi.load, or make a full model with damvi fit"
        )
    return found


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Pause garbage collection during imports and loading, whose objects are long-lived.

    It would take a sixth of a command's start-up time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # skip these objects later, too
        if enabled:
            gc.enable()


def load_with_table(
    model: Path, data: Path, target: str | None, output: Output, *, blocks: bool = False
) -> tuple[Model, Any]:
    """Load the model, and the table by its schema.

    If the caller accepts ``blocks`` and the table is large, its path is returned instead.
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
    """Note the columns without a single readable value, and return their names.

    They are probably written differently than in training.
    """
    names = [
        column.name
        for column in schema.used
        if rows >= ENOUGH_ROWS and set(column.features) <= set(empty)
    ]
    for name in names[:10]:
        output.note(
            f"Note: no value in {printable(name)!r} could be read, so all are treated as "
            f"missing. Is the column written as it was in training?"
        )
    if len(names) > 10:
        output.note(f"Note: the same holds for {counted(len(names) - 10, 'more column')}.")
    return names
