"""A history of batches: expected scores, and the achieved ones once labels arrive.

The file has one JSON line per batch, in the order in which they were first seen. It is
rewritten as a whole, by one process at a time. A batch is identified by the values of its
rows, not by its name: given again, with labels by then, it replaces its earlier entry.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ._files import lock_file, write_whole

WAIT = 30.0
"""Seconds to wait for another process that has locked the file."""


@dataclass(frozen=True)
class Batch:
    """A batch in a history.

    Attributes
    ----------
    name : str
    fingerprint : str
        Identifies the values of its rows, whatever their order and labels.
    rows, flagged : int
        Flagged rows are those predicted as another class than the expected majority.
    assumption : str
        What the expected scores assume; empty if there are none.
    expected : dict of str to list of 3 floats
        Each expected score and its 90% interval.
    warnings : list of str
        What has drifted since training.
    answered : int
        Labelled rows.
    achieved : dict of str to float
        The scores on these.
    beside : dict of str to list of 3 floats
        The expected scores on these.
    date, answered_on : str
        When it was first seen, and when its labels arrived.
    model : str
        Identifies the model; each model has its own entries.
    """

    name: str
    fingerprint: str
    rows: int
    flagged: int
    assumption: str = ""
    expected: dict[str, list[float]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    answered: int = 0
    achieved: dict[str, float] = field(default_factory=dict)
    beside: dict[str, list[float]] = field(default_factory=dict)
    date: str = ""
    answered_on: str = ""
    model: str = ""

    def within(self, figure: str) -> bool | None:
        """Whether a score is within its expected interval; None if it is not known.

        Examples
        --------
        >>> known = {"achieved": {"ap": 0.5}, "beside": {"ap": [0.6, 0.4, 0.7]}}
        >>> batch = Batch("May", "f", rows=9, flagged=2, **known)
        >>> batch.within("ap"), batch.within("recall")
        (True, None)
        """
        if figure not in self.achieved or figure not in self.beside:
            return None
        _, low, high = self.beside[figure]
        return low - 1e-9 <= self.achieved[figure] <= high + 1e-9


def read_history(path: str | os.PathLike[str]) -> list[Batch]:
    """The batches of a file; empty if there is no such file.

    Raises a ValueError that names the line if it is not a valid history.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except UnicodeDecodeError:
        text = "?"
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found.append(_checked(json.loads(line)))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{os.fspath(path)} is not a valid damvi drift history: line {number} is "
                f"damaged. Nothing was written; remove that line or move the file away"
            ) from error
    return found


def add_batch(
    path: str | os.PathLike[str], batch: Batch, *, rename: bool = True
) -> list[Batch]:
    """Add a batch to a file and return all of its batches.

    A batch of the same rows and model is replaced. Its first date is kept, as are its
    achieved scores if the new one has none, and its name unless ``rename`` is set.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("May", "June", "May"):
    ...         batches = add_batch(f"{folder}/history.jsonl", Batch(name, name, 100, 5))
    >>> [batch.name for batch in batches]
    ['May', 'June']
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with _alone(path):
        batches = read_history(path)
        places = {(one.fingerprint, one.model): k for k, one in enumerate(batches)}
        place = places.get((batch.fingerprint, batch.model))
        batch = replace(batch, date=now, answered_on=now if batch.answered else "")
        if place is None:
            batches.append(batch)
        else:
            before = batches[place]
            name = batch.name if rename else before.name
            batch = replace(batch, date=before.date, name=name)
            if before.answered and not batch.answered:
                kept = ("answered", "achieved", "beside", "answered_on")
                batch = replace(batch, **{name: getattr(before, name) for name in kept})
            elif before.answered == batch.answered:
                batch = replace(batch, answered_on=before.answered_on)
            batches[place] = batch
        lines = [json.dumps(asdict(one), ensure_ascii=False) for one in batches]
        write_whole(path, "\n".join(lines) + "\n")
    return batches


@contextmanager
def _alone(path: str | os.PathLike[str]) -> Iterator[None]:
    """Lock the file while it is read and rewritten.

    The file itself is locked. If it was replaced while we waited, lock the new one.
    """
    if os.name == "nt":  # open files cannot be replaced there
        yield
        return
    end = time.monotonic() + WAIT
    while True:
        with open(path, "ab") as file:
            ours = lock_file(file.fileno())
            if ours is not False and _is_at(path, file.fileno()):
                yield
                return
        if time.monotonic() > end:
            raise TimeoutError(f"{os.fspath(path)} is in use by another process")
        time.sleep(0.02)


def _is_at(path: str | os.PathLike[str], file: int) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def _checked(values: Any) -> Batch:
    """A batch from untrusted JSON values."""
    if not isinstance(values, dict) or values.keys() - {one.name for one in fields(Batch)}:
        raise ValueError("not a batch")
    batch = Batch(**values)
    names = ("name", "fingerprint", "assumption", "date", "answered_on", "model")
    texts = [getattr(batch, name) for name in names]
    counts = batch.rows, batch.flagged, batch.answered
    sound = all(type(one) is str for one in texts)
    sound = sound and all(type(one) is int and one >= 0 for one in counts)
    sound = sound and type(batch.warnings) is list
    sound = sound and all(type(one) is str for one in batch.warnings)
    for figures in (batch.expected, batch.beside):
        sound = sound and type(figures) is dict
        sound = sound and all(
            type(own) is list and len(own) == 3 and all(map(_is_share, own))
            for own in figures.values()
        )
    sound = sound and type(batch.achieved) is dict
    if not sound or not all(map(_is_share, batch.achieved.values())):
        raise ValueError("not a batch")
    return batch


def _is_share(value: Any) -> bool:
    number = type(value) in (int, float) and math.isfinite(value)
    return number and -1e-9 <= value <= 1 + 1e-9
