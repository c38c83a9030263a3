"""The ``damvi`` command. One file a command; heavy imports wait until it runs."""

from __future__ import annotations

import click

from .. import __version__
from .bench import bench
from .datasets import datasets
from .demo import demo
from .export import export


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="damvi")
def main() -> None:
    """Classification with a rare class, by a diversity-aware majority vote."""


for command in (bench, datasets, demo, export):
    main.add_command(command)
