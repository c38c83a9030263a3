"""``damvi drift``: what has changed since training, column by column."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from .console import check_output_file, current_output

MOST_ROWS = 30


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="Write a page as well: one HTML file.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Exit code 1 if something has changed by enough to be warned of.",
)
def drift(model: Path, data: Path, out: Path | None, strict: bool) -> None:
    """Show what differs between the table DATA and the rows that MODEL was trained on.

    For each column: the share of cells that are missing or cannot be read, the distance
    between its values then and now (from 0 to 1), and the chance of so clear a difference
    had nothing changed, corrected for all columns together. True answers are not needed.
    """
    from ..drift import DriftError
    from ..model.prediction import find_drift
    from .figures import plain_table
    from .loading import load_whole

    output = current_output()
    if out is not None:
        check_output_file(out, model, data)
    loaded = load_whole(model, output)
    found = find_drift(loaded, data)
    if out is not None:
        command = shlex.join(["damvi", *sys.argv[1:]])
        found.save(out, name=data.name, command=command)
    output.say(
        f"{found.rows:,.0f} rows of {data.name} against {found.training_rows:,.0f} of "
        f"training.\n{found.lead}"
    )
    for one in found.decisions:
        output.say(f"{one.words}{'' if one.matters else ' (not far from it)'}.")
    changed = [column for column in found.columns if column.changed]
    if changed:
        output.say()
        headings = ["column", "what changed", "distance", "p, corrected"]
        rows = [[one.name, one.words, *one.figures] for one in changed[:MOST_ROWS]]
        output.show(plain_table(headings, rows, texts=2))
        if len(changed) > MOST_ROWS:
            output.say(f"and {len(changed) - MOST_ROWS:,} more columns.")
    if out is not None:
        output.say(f"\nWritten to {out}: open it in a browser, or send it.")
    if strict and found.warnings:
        raise DriftError(f"the table differs from training: {'; '.join(found.warnings)}")
    output.result({"page": None if out is None else str(out), **found.as_dict()})
