"""The ``damvi`` command. One file a command; heavy imports wait until it runs."""

from __future__ import annotations

import atexit
import gc

import click

from .. import __version__
from .bench import bench
from .console import Commands
from .datasets import datasets
from .demo import demo
from .evaluate import evaluate
from .explain import explain
from .export import export
from .fit import fit
from .info import info
from .predict import predict
from .report import report


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="damvi")
def main() -> None:
    """Classification with a rare class, by a diversity-aware majority vote.

    \b
    Exit codes: 0 done, 1 something is wrong with the input, 2 wrong usage.
    """
    # To look for garbage in all that ends with the process takes a third of a second.
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


for command in (
    bench,
    datasets,
    demo,
    evaluate,
    explain,
    export,
    fit,
    info,
    predict,
    report,
):
    main.add_command(command)
