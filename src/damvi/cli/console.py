"""What all commands share: output for people and machines, common options, errors."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from .._files import check_writable

KEY = "damvi.cli.output"
WIDE = 160
"""Characters to a line in a file or a pipe, which has no width of its own."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Signs by which a spreadsheet takes a cell for a formula."""
STEERS = re.compile(r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""What JSON need not escape, but terminals obey: C1 codes, and the direction of text."""
FAULT = "this looks like a fault of damvi; --debug shows where"


@dataclass
class Output:
    """Where the output of a command goes, by its options: people, machines, or nobody."""

    as_json: bool = False
    quiet: bool = False
    debug: bool = False

    def say(self, text: str = "") -> None:
        """For people, on the standard output."""
        if not (self.as_json or self.quiet):
            click.echo(visible(text))

    def show(self, table: Any) -> None:
        """A rich table for people; no colour unless it goes to a terminal."""
        if not (self.as_json or self.quiet):
            _console().print(_Visible(table))

    @property
    def columns(self) -> int:
        """Characters that a line has room for."""
        return int(_console().width)

    def note(self, text: str) -> None:
        """Beside the point, on the standard error."""
        if not self.quiet:
            click.echo(visible(text), err=True)

    def result(self, values: Any) -> None:
        """For machines."""
        if self.as_json:
            text = to_json(values)
            try:
                text.encode(sys.stdout.encoding or "utf-8")
            except UnicodeEncodeError:  # a code page: letters by their numbers
                text = json.dumps(json.loads(text), indent=2)
            click.echo(text)

    @property
    def shows_progress(self) -> bool:
        """Whether somebody is there to watch a bar."""
        return not self.quiet and sys.stderr.isatty()

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """A context in which each warning of a library becomes a note, once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for text in dict.fromkeys(
            str(each.message) for each in caught if issubclass(each.category, UserWarning)
        ):
            self.note(f"Note: {' '.join(text.split())}")


class _Visible:
    """What rich draws, without what in the user's data would steer a terminal."""

    def __init__(self, drawn: Any) -> None:
        self._drawn = drawn

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.segment import Segment

        for part in console.render(self._drawn, options):
            yield part if part.control else Segment(visible(part.text), part.style)


def _console() -> Any:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE
    return console


def current_output(context: click.Context | None = None) -> Output:
    """The output of the command that is running."""
    context = context or click.get_current_context()
    found: Output = context.meta.setdefault(KEY, Output())
    return found


def to_json(values: Any) -> str:
    """JSON that every reader takes: there is no NaN in it.

    Letters are themselves, but what would steer a terminal is written by its number.
    """
    text = json.dumps(_plain(values), indent=2, ensure_ascii=False)
    return STEERS.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _plain(values: Any) -> Any:
    if isinstance(values, dict):
        return {str(key): _plain(value) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [_plain(value) for value in values]
    values = getattr(values, "item", lambda: values)()
    if isinstance(values, float) and not math.isfinite(values):
        return None
    return values


def printable(text: str) -> str:
    """Text from the user's data, without what would steer a terminal."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def visible(text: str) -> str:
    """The same for text of several lines."""
    return "\n".join(map(printable, text.split("\n")))


def no_formula(text: str) -> str:
    """Text from the user's data that no spreadsheet takes for a formula.

    Examples
    --------
    >>> no_formula("=1+1"), no_formula("-1"), no_formula("ok")
    ("'=1+1", '-1', 'ok')
    """
    try:
        float(text)  # -1 is a label as good as any
    except ValueError:
        return f"'{text}" if text.startswith(FORMULA) else text
    return text


def check_output_file(out: Path, *inputs: Path) -> None:
    """An error before the work, not after it, if ``out`` cannot be written.

    A file that is read is never written over.
    """
    if out.is_dir():
        raise ValueError(f"{out} is a folder; name a file in it")
    if not out.absolute().parent.is_dir():
        raise FileNotFoundError(f"there is no folder {out.parent} to write {out.name} to")
    if out.exists() and any(path.exists() and out.samefile(path) for path in inputs):
        raise click.UsageError(f"-o names {out}, a file that is read; name another")
    try:
        check_writable(out)
    except OSError as error:
        if error.filename == str(out.absolute()):  # of the file, and not of its folder
            raise
        raise PermissionError(
            f"nothing can be written to the folder {out.parent}: {error.strerror}"
        ) from None


class Commands(click.Group):
    """A group whose commands all take ``--json``, ``--quiet`` and ``--debug``.

    What is wrong with the user's input ends with one line and exit code 1.
    """

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        _add_common_options(cmd)
        super().add_command(cmd, name)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            text = error.format_message()
            seen = visible(text)
            current_output(ctx).result({"error": seen})
            if seen == text:
                raise
            if isinstance(error, click.UsageError):
                raise click.UsageError(seen, error.ctx) from error
            raise click.ClickException(seen) from error
        except (click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except Exception as error:
            output = current_output(ctx)
            if output.debug:
                raise
            message = printable(one_line(error))
            output.result({"error": message})
            raise click.ClickException(message) from error


def one_line(error: Exception) -> str:
    """What is wrong, without line breaks; what nobody foresaw says so."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"out of memory. {text}".strip()
    if isinstance(error, ModuleNotFoundError) and text.startswith("No module named"):
        package = (error.name or text).partition(".")[0]
        return (
            f"this needs the package {package}, which is not installed; "
            f"pip install 'damvi[all]' brings it"
        )
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"there is no file {error.filename}"
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}"
    if isinstance(error, ValueError | OSError | ImportError):
        return text or type(error).__name__
    return f"{type(error).__name__}: {text} ({FAULT})"


def _add_common_options(command: click.Command) -> None:
    """Give a command, and those below it, the options that all have."""
    there = {name for option in command.params for name in option.opts}
    for name, field, words in (
        ("--json", "as_json", "Print the result as JSON, for machines."),
        ("--quiet", "quiet", "Print nothing but errors."),
        ("--debug", "debug", "Show where an error comes from."),
    ):
        if name not in there:
            option = click.Option(
                [name],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_setter(field),
                help=words,
            )
            command.params.append(option)
    if isinstance(command, click.Group):
        for below in command.commands.values():
            _add_common_options(below)


def _setter(field: str) -> Any:
    def set_field(ctx: click.Context, option: click.Parameter, value: bool) -> None:
        if value:
            setattr(current_output(ctx), field, True)

    return set_field
