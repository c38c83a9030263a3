"""``damvi report``: one page about a model on a table, for people."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from .console import check_output_file, current_output


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--target", metavar="COLUMN", help="The true answers. Default: the model's.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default="report.html",
    show_default=True,
    help="The page.",
)
def report(model: Path, data: Path, target: str | None, out: Path) -> None:
    """Write one HTML page about MODEL on the table DATA.

    It shows what the model finds and misses, with a slider for what errors cost (with
    three or more classes, for what a class counts); curves, voters, columns, the rows it
    gets wrong, and what can be promised. The page loads nothing from anywhere and may be
    sent as it is. Without true answers in DATA it shows what is decided. DATA may be a
    folder of parquet files or a quoted pattern; of large ones the page shows a sample.
    """
    from ..report.words import basis, lead
    from .loading import load_with_table

    output = current_output()
    check_output_file(out, model, data)
    loaded, table = load_with_table(model, data, target, output, blocks=True)
    summary = loaded.report(
        table,
        out,
        target=target,
        name=data.name,
        command=shlex.join(["damvi", *sys.argv[1:]]),
    )
    output.say(lead(summary))
    output.say(basis(summary))
    output.say(f"\nWritten to {out}: open it in a browser, or send it.")
    output.result({"report": str(out), **summary})
