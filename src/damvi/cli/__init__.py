"""The ``damvi`` command: the options and errors of all subcommands, and its process.

Each subcommand has a file. Heavy imports wait until it runs.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress
from threading import Timer
from traceback import format_exception
from typing import Any

import click

from .. import __version__
from .._files import remove_parts
from .bench import bench
from .compare import compare
from .console import current_output, printable, visible
from .datasets import datasets
from .demo import demo
from .drift import drift
from .evaluate import evaluate
from .explain import explain
from .export import export
from .fit import fit
from .info import info
from .predict import predict
from .report import report
from .review import review

FAULT = "this looks like a bug in damvi; run with --debug for a traceback"


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


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="damvi")
def main() -> None:
    """Classify rare events with a diversity-aware majority vote.

    \b
    New here? Try: damvi demo
    Exit codes: 0 success, 1 bad input, 2 bad usage, 130 interrupted (Ctrl-C),
    143 terminated.
    """
    # A last garbage collection at exit would cost a third of a second.
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


for command in (
    bench,
    compare,
    datasets,
    demo,
    drift,
    evaluate,
    explain,
    export,
    fit,
    info,
    predict,
    report,
    review,
):
    main.add_command(command)


GRACE = 5.0
"""Seconds for cleanup after a signal before the process is killed."""


def run() -> None:
    """Run the command as its own process, and end it cleanly on a signal.

    On Ctrl-C Python raises an exception in the main thread and exits while other threads
    are still inside LightGBM, CatBoost or a kernel, which crashes three times in five.
    Here the main thread unwinds by an exception too, and then the process exits at once,
    with no partial files and no orphaned workers. This applies to the command only; Python
    users get their usual ``KeyboardInterrupt``.
    """
    stop = _Stop()
    stop.listen()
    sys.excepthook = _show_traceback
    with suppress(AttributeError, ValueError):  # a code page lacks some characters
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        main(prog_name="damvi")
    except _Stopped:
        pass
    finally:
        if stop.number is not None:  # even if the exception was swallowed on the way
            _end(stop.number)
        stop.listen(signal.SIG_IGN)  # all is written, and the rest is instant


def _show_traceback(kind: Any, error: Any, where: Any) -> None:
    """Print a traceback, escaping control characters that came from the user's data."""
    click.echo(visible("".join(format_exception(kind, error, where))), err=True, nl=False)


class _Stopped(BaseException):
    """The process was asked to stop. Unlike KeyboardInterrupt, nothing catches it."""


class _Stop:
    """A signal handler that remembers the signal it received, if any."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._asked = [
            number
            for name in ("SIGINT", "SIGTERM", "SIGHUP")
            if (number := getattr(signal, name, None)) is not None
            and signal.getsignal(number) != signal.SIG_IGN  # as under nohup
        ]

    def listen(self, answer: Any = None) -> None:
        for number in self._asked:
            signal.signal(number, answer or self)

    def __call__(self, number: int, _: Any) -> None:
        if self.number is not None:  # asked twice
            _end(number)
        self.number = number
        # Inside a compiler callback, for example, the exception is not propagated.
        sys.unraisablehook = lambda _: None
        timer = Timer(GRACE, _end, (number,))
        timer.daemon = True
        timer.start()
        raise _Stopped


def _end(number: int) -> None:
    """Exit now, with the shell's code for a signal: 128 plus its number."""
    # Kill worker processes, such as a cluster's. If there are any, this is imported.
    children = getattr(sys.modules.get("multiprocessing"), "active_children", list)
    for child in children():
        child.kill()
    remove_parts()
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h")  # show the cursor, which a progress bar hides
        words = "Interrupted" if number == signal.SIGINT else "Terminated"
        sys.stderr.write(f"{words}. No partial files were left behind.\n")
        sys.stderr.flush()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(128 + number)
