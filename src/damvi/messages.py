"""What is told to people: numbers of things in words, and a bar for whoever asks;
options of the command as Python users know them.
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
"""What options of the command are in Python."""


def counted(n: float, one: str, several: str = "") -> str:
    """So many of something, as people write it.

    Parameters
    ----------
    n : float
    one, several : str
        What a single one is called, with its verb if it has one, and what others are; by
        default with an "s".

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row"), counted(1, "row is", "rows are")
    ('1 row', '2,000 rows', '1 row is')
    """
    return f"{n:,.15g} {one if n == 1 else several or f'{one}s'}"


def in_python(text: str) -> str:
    """A message with parameters of :func:`damvi.fit` in place of the command's options."""
    for option, parameter in IN_PYTHON.items():
        text = re.sub(option, parameter, text)
    return text


def progress_bar(what: str) -> Callable[[Iterable[Any], int], Iterator[Any]]:
    """A function that passes an iterable of known length on, and shows how it goes."""

    def follow(items: Iterable[Any], length: int) -> Iterator[Any]:
        with _bar() as bar:
            yield from bar.track(items, total=length, description=what)

    return follow


@contextmanager
def progress_lines(what: str) -> Iterator[Callable[[float, float, str | None], None]]:
    """A bar, and lines above it: a function of what is done, of how much, and a line."""
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
