"""A progress bar on the standard error, for whoever asks for one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def progress_bar(what: str) -> Callable[[Iterable[Any], int], Iterator[Any]]:
    """A function that passes an iterable of known length on, and shows how it goes."""

    def follow(items: Iterable[Any], length: int) -> Iterator[Any]:
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
        with Progress(*columns, console=Console(stderr=True)) as bar:
            yield from bar.track(items, total=length, description=what)

    return follow
