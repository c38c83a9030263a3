"""The ``damvi`` command. One file a command; heavy imports wait until it runs."""

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
from .console import Commands, visible
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


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="damvi")
def main() -> None:
    """Classification with a rare class, by a diversity-aware majority vote.

    \b
    Exit codes: 0 done, 1 something is wrong with the input, 2 wrong usage,
    130 interrupted by Ctrl-C, 143 terminated.
    """
    # To look for garbage in all that ends with the process takes a third of a second.
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
"""Seconds to put things in order after a signal, until the process ends by force."""


def run() -> None:
    """The command as a process of its own, which a signal ends cleanly.

    By Ctrl-C Python raises an exception in the main thread, and ends while other threads
    are still inside LightGBM, CatBoost or a kernel: a crash, three times in five. Here the
    main thread leaves what it is at, by an exception too, and then the process ends at
    once, with nothing half written and no worker left. Python users get their
    ``KeyboardInterrupt`` as ever; this is of the command alone.
    """
    stop = _Stop()
    stop.listen()
    sys.excepthook = _show_traceback
    with suppress(AttributeError, ValueError):  # a code page has not all letters
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        main(prog_name="damvi")
    except _Stopped:
        pass
    finally:
        if stop.number is not None:  # whatever became of the exception on its way
            _end(stop.number)
        stop.listen(signal.SIG_IGN)  # what is left takes no time, and all is written


def _show_traceback(kind: Any, error: Any, where: Any) -> None:
    """As Python does; but what is in a message may come from a table."""
    click.echo(visible("".join(format_exception(kind, error, where))), err=True, nl=False)


class _Stopped(BaseException):
    """The process was asked to end. Not caught on the way, unlike KeyboardInterrupt."""


class _Stop:
    """The signal that came, if one did."""

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
        # From a callback of a compiler, say, the exception does not come through.
        sys.unraisablehook = lambda _: None
        timer = Timer(GRACE, _end, (number,))
        timer.daemon = True
        timer.start()
        raise _Stopped


def _end(number: int) -> None:
    """End now, as shells count it: 128 and the signal's number."""
    # Such as a cluster's workers. Whoever started some has imported this.
    children = getattr(sys.modules.get("multiprocessing"), "active_children", list)
    for child in children():
        child.kill()
    remove_parts()
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h")  # the cursor, which a progress bar hides
        words = "Interrupted" if number == signal.SIGINT else "Terminated"
        sys.stderr.write(f"{words}; no file was left half written.\n")
        sys.stderr.flush()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(128 + number)
