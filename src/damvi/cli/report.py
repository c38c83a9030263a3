"""``damvi report``: an HTML report on a model and a table."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from .console import check_output_file, current_output, load_with_table


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--target", metavar="COLUMN", help="Column of true labels. Default: the model's target."
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default="report.html",
    show_default=True,
    help="Output file.",
)
def report(model: Path, data: Path, target: str | None, out: Path) -> None:
    """Write an HTML report on MODEL and DATA.

    The report shows what the model finds and misses, with a slider for the costs of errors
    (with three or more classes, for class weights), curves, voters, columns, the rows it
    gets wrong and what can be guaranteed. It is a single file that works offline. If DATA
    has no labels, it shows the predictions. DATA may be a folder of parquet files or a
    quoted pattern; large ones are sampled.
    """
    from ..report.words import basis, lead

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
    output.say(f"\nSaved the report to {out}. Open it in a browser or share it as it is.")
    output.result({"report": str(out), **summary})
