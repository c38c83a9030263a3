"""A model and a table from their files, for the commands that need both."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .talking import Talk


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
        if enabled:
            gc.enable()


def load_with_table(
    model: Path, data: Path, target: str | None, talks: Talk
) -> tuple[Any, Any]:
    """The model, and the table read as the model's schema needs it."""
    from ..modelfile import load
    from ..tabular import pick, read_table

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = load(model)
    for each in caught:
        talks.note(f"Note: {' '.join(str(each.message).split())}")
    name = target or loaded.target.name
    frame = read_table(data, as_text=[*loaded.schema.text_columns, name])
    if target is not None:
        pick(frame, target, "target")
    return loaded, frame
