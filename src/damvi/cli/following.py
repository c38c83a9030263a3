"""How a benchmark goes, on the standard error."""

from __future__ import annotations

from typing import Any

import click


class Following:
    """How a run goes, on the standard error: a bar on a terminal, lines elsewhere."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet

    def __enter__(self) -> Any:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        console = Console(stderr=True)
        self._bar = None
        if console.is_terminal and not self._quiet:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
                console=console,
            )
            self._bar.start()
            self._task = self._bar.add_task("Reading the data", total=None, left="")
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int, left: float | None, cell: Any) -> None:
        words = "" if left is None or done == total else f"about {in_words(left)} left"
        if self._bar is not None:
            what = f"{cell['dataset']} {cell['method']}" if cell else "Cells"
            self._bar.update(
                self._task, completed=done, total=total, left=words, description=what
            )
        elif self._quiet:
            return
        elif cell is None:
            click.echo(f"{total} cells to run", err=True)
        else:
            at = "" if cell["ratio"] is None else f" at {cell['ratio']:.1%}"
            result = (
                f"F1 {cell['f1']:.3f} AP {cell['ap']:.3f}"
                if cell["status"] == "done"
                else f"{cell['status']}: {cell['note']}"
            )
            name = f"{cell['dataset']}{at} {cell['method']} split {cell['split']}"
            click.echo(f"[{done}/{total}] {name}: {result}  {words}".rstrip(), err=True)


def in_words(seconds: float) -> str:
    """A time that a person waits, without false precision."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = seconds / 60
    return f"{round(minutes)} min" if minutes < 90 else f"{minutes / 60:.1f} h"
