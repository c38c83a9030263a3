"""Helpers for messages: counts in words, progress bars, and command-line options
translated to Python parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

IN_PYTHON = {
    r"--[\w-]+(?: \w+)? \((?:in Python )?(\w+=[^)]*)\)": r"\1",
    r"--\w+, (\w+=True)": r"\1",
    r"--cost-miss 20 --cost-false-alarm 1": "threshold={'cost': (1, 20)}",
    r"--group (\S+?)(?=[.,;]?(?:\s|$))": r"group='\1'",
    r"--positive\b": "pos_label=",
    r"--merge-labels\b": "merge_labels=True",
    r"--shuffle\b": "shuffle=True",
    r"--(time|keep|drop)\b": r"\1=",
}
"""Command-line options and their Python equivalents."""


def counted(n: float, one: str, several: str = "") -> str:
    """A count and its noun, singular or plural.

    Parameters
    ----------
    n : float
    one, several : str
        Singular and plural, with a verb if needed; by default the plural adds an "s".

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row"), counted(1, "row is", "rows are")
    ('1 row', '2,000 rows', '1 row is')
    """
    return f"{n:,.15g} {one if n == 1 else several or f'{one}s'}"


def in_python(text: str) -> str:
    """A message with command-line options replaced by :func:`damvi.fit` parameters."""
    for option, parameter in IN_PYTHON.items():
        text = re.sub(option, parameter, text)
    return text


def progress_bar(what: str) -> Callable[[Iterable[Any], int], Iterator[Any]]:
    """A function that iterates with a progress bar, given an iterable and its length."""

    def follow(items: Iterable[Any], length: int) -> Iterator[Any]:
        with _bar() as bar:
            yield from bar.track(items, total=length, description=what)

    return follow


@contextmanager
def progress_lines(what: str) -> Iterator[Callable[[float, float, str | None], None]]:
    """A progress bar with lines above it: a function of done, total and a line."""
    with _bar() as bar:
        task = bar.add_task(what)

        def show(done: float, total: float, line: str | None = None) -> None:
            bar.update(task, completed=done, total=total)
            if line is not None:
                bar.console.print(line, highlight=False)

        yield show


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True))
