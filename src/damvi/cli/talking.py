"""What a command says, and to whom: people, machines, or nobody."""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import dataclass
from typing import Any

import click

KEY = "damvi.cli.talk"
WIDE = 160
"""Signs to a line in a file or a pipe, which has no width of its own."""


@dataclass
class Talk:
    """The manner of a command, by its options."""

    as_json: bool = False
    quiet: bool = False
    debug: bool = False

    def say(self, text: str = "") -> None:
        """For people, on the standard output."""
        if not (self.as_json or self.quiet):
            click.echo(text)

    def show(self, table: Any) -> None:
        """A rich table for people; no colour unless it goes to a terminal."""
        if not (self.as_json or self.quiet):
            _console().print(table)

    @property
    def columns(self) -> int:
        """Signs that a line has room for."""
        return int(_console().width)

    def note(self, text: str) -> None:
        """Beside the point, on the standard error."""
        if not self.quiet:
            click.echo(text, err=True)

    def result(self, values: Any) -> None:
        """For machines."""
        if self.as_json:
            click.echo(json.dumps(plain(values), indent=2, ensure_ascii=False))

    @property
    def shows_progress(self) -> bool:
        """Whether somebody is there to watch a bar."""
        return not self.quiet and sys.stderr.isatty()


def _console() -> Any:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE
    return console


def talk() -> Talk:
    """The manner of the command that is running."""
    found: Talk = click.get_current_context().meta.setdefault(KEY, Talk())
    return found


def plain(values: Any) -> Any:
    """Values that every reader of JSON takes: there is no NaN in it."""
    if isinstance(values, dict):
        return {str(key): plain(value) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [plain(value) for value in values]
    values = getattr(values, "item", lambda: values)()
    if isinstance(values, float) and not math.isfinite(values):
        return None
    return values


def shown(name: str) -> str:
    """A name from the user's data, without what would steer a terminal."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in name)
