"""A model that was just fitted: into its file, and into words."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .talking import Talk, plain


@contextmanager
def warnings_as_notes(talks: Talk) -> Iterator[None]:
    """A context in which what libraries warn of is said once, in a line each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(
        str(w.message) for w in caught if issubclass(w.category, UserWarning)
    ):
        talks.note(f"Note: {' '.join(text.split())}")


def keep_and_tell(
    talks: Talk, model: Any, worth: Any, metric: Any, table: Any, out: Path
) -> None:
    """Save the model and its scores, and say what it is worth."""
    from .._files import write_whole
    from ..io import save
    from .telling import summary, tell_worth

    save(model, out)
    beside = out.with_name(f"{out.stem}.scores.json")
    said = summary(model, out, beside, table)
    write_whole(beside, json.dumps(plain(said), indent=2, ensure_ascii=False) + "\n")
    tell_worth(talks, model, worth, metric)
    size = out.stat().st_size / 1e6
    talks.say(f"\nSaved {out} ({size:.1f} MB) and its scores in {beside}.")
    talks.result(said)
