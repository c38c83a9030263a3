"""What all commands share: human and JSON output, common options, error handling."""

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
"""Line width for files and pipes, which have none of their own."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Leading characters that make a spreadsheet read a cell as a formula."""
STEERS = re.compile(r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Characters JSON leaves alone but terminals obey: C1 codes and text direction marks."""
FAULT = "this looks like a bug in damvi; run with --debug for a traceback"


@dataclass
class Output:
    """Where a command's output goes: text, JSON, or nowhere."""

    as_json: bool = False
    quiet: bool = False
    debug: bool = False

    def say(self, text: str = "") -> None:
        """Print text for people to standard output."""
        if not (self.as_json or self.quiet):
            click.echo(visible(text))

    def show(self, table: Any) -> None:
        """Print a rich table, in colour only on a terminal."""
        if not (self.as_json or self.quiet):
            _console().print(_Visible(table))

    @property
    def columns(self) -> int:
        """Width of the terminal in characters."""
        return int(_console().width)

    def note(self, text: str) -> None:
        """Print a side note to standard error."""
        if not self.quiet:
            click.echo(visible(text), err=True)

    def result(self, values: Any) -> None:
        """Print the result as JSON, if asked for."""
        if self.as_json:
            text = to_json(values)
            try:
                text.encode(sys.stdout.encoding or "utf-8")
            except UnicodeEncodeError:  # a code page: escape what it lacks
                text = json.dumps(json.loads(text), indent=2)
            click.echo(text)

    @property
    def shows_progress(self) -> bool:
        """Whether a progress bar has an audience: standard error is a terminal."""
        return not self.quiet and sys.stderr.isatty()

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Turn library warnings inside this context into notes, each printed once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for text in dict.fromkeys(
            str(each.message) for each in caught if issubclass(each.category, UserWarning)
        ):
            self.note(f"Note: {' '.join(text.split())}")


class _Visible:
    """A rich renderable, with control characters from the user's data escaped."""

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
    """The output of the running command."""
    context = context or click.get_current_context()
    found: Output = context.meta.setdefault(KEY, Output())
    return found


def to_json(values: Any) -> str:
    """Strict JSON, without NaN.

    Characters are written as they are, except those a terminal would obey: these are
    escaped.
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
    """Text from the user's data, with control characters escaped."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def visible(text: str) -> str:
    """The same for multi-line text."""
    return "\n".join(map(printable, text.split("\n")))


def no_formula(text: str) -> str:
    """Text from the user's data, quoted if a spreadsheet would read it as a formula.

    Examples
    --------
    >>> no_formula("=1+1"), no_formula("-1"), no_formula("ok")
    ("'=1+1", '-1', 'ok')
    """
    try:
        float(text)  # -1 is a fine label
    except ValueError:
        return f"'{text}" if text.startswith(FORMULA) else text
    return text


def check_output_file(out: Path, *inputs: Path) -> None:
    """Fail before the work, not after it, if ``out`` cannot be written.

    Input files are never overwritten.
    """
    if out.is_dir():
        raise ValueError(f"{out} is a folder; give a file name inside it")
    if not out.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"cannot write {out}: the folder {out.parent} does not exist"
        )
    if out.exists() and any(path.exists() and out.samefile(path) for path in inputs):
        raise click.UsageError(
            f"-o would overwrite the input file {out}; choose another name"
        )
    try:
        check_writable(out)
    except OSError as error:
        if error.filename == str(out.absolute()):  # the file itself, not its folder
            raise
        raise PermissionError(
            f"cannot write to the folder {out.parent}: {error.strerror}"
        ) from None


class Commands(click.Group):
    """A group whose commands all take ``--json``, ``--quiet`` and ``--debug``.

    Errors in the user's input end with a one-line message and exit code 1.
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
    """An error message without line breaks; unforeseen errors are marked as such."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"out of memory. {text}".strip()
    if isinstance(error, ModuleNotFoundError) and text.startswith("No module named"):
        package = (error.name or text).partition(".")[0]
        return (
            f"this needs the package {package}, which is not installed; "
            f"run pip install 'damvi[all]'"
        )
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"no such file: {error.filename}"
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}"
    if isinstance(error, ValueError | OSError | ImportError):
        return text or type(error).__name__
    return f"{type(error).__name__}: {text} ({FAULT})"


def _add_common_options(command: click.Command) -> None:
    """Add the common options to a command and its subcommands."""
    there = {name for option in command.params for name in option.opts}
    for name, field, words in (
        ("--json", "as_json", "Print the result as JSON."),
        ("--quiet", "quiet", "Print only errors."),
        ("--debug", "debug", "Show a full traceback on error."),
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
