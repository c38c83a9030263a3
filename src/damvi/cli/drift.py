"""``damvi drift``: what has changed since training, and what the model is worth now."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..messages import counted
from .console import Output, check_output_file, current_output

if TYPE_CHECKING:
    from ..drift import Drift

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
    "--label-shift",
    is_flag=True,
    help="Expect figures at class rates estimated from the votes, and not at P(y|x) as it "
    "was.",
)
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    help="Add the batch to this file; the page shows all of them.",
)
@click.option("--name", help="Of the batch in the history. Default: the file's.")
@click.option("--target", metavar="COLUMN", help="The true answers. Default: the model's.")
@click.option(
    "--strict",
    is_flag=True,
    help="Exit code 1 if something has changed by enough to be warned of.",
)
def drift(
    model: Path,
    data: Path,
    out: Path | None,
    label_shift: bool,
    history: Path | None,
    name: str | None,
    target: str | None,
    strict: bool,
) -> None:
    """Show what differs between the table DATA and the rows that MODEL was trained on.

    For each column: the share of cells that are missing or cannot be read, the distance
    between its values then and now (from 0 to 1), and the chance of so clear a difference
    had nothing changed, corrected for all columns together.

    And what MODEL is worth on these rows, whose true answers are not needed: precision,
    recall and average precision as its own probabilities lead to expect, with 90 %
    intervals. They hold if P(y|x) is what it was in training, or with --label-shift P(x|y).
    Where DATA has true answers, what was achieved stands beside it.
    """
    from ..drift import DriftError
    from .figures import plain_table
    from .loading import load_whole

    output = current_output()
    if out is not None:
        check_output_file(out, model, data)
    if history is not None:
        check_output_file(history, model, data)
    loaded = load_whole(model, output)
    found = loaded.drift(
        data, target=target, label_shift=label_shift, history=history, name=name or ""
    )
    if out is not None:
        command = shlex.join(["damvi", *sys.argv[1:]])
        found.save(out, name=data.name, command=command)
    output.say(
        f"{counted(found.rows, 'row')} of {data.name} against {found.training_rows:,.0f} "
        f"of training.\n{found.lead}"
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
            output.say(f"and {counted(len(changed) - MOST_ROWS, 'more column')}.")
    _show_worth(output, found)
    if history is not None:
        n = counted(len(found.batches), "batch", "batches")
        output.say(f"\n{history} has {n} now.")
    if out is not None:
        output.say(f"\nWritten to {out}: open it in a browser, or send it.")
    if strict and found.warnings:
        raise DriftError(f"the table differs from training: {'; '.join(found.warnings)}")
    output.result({"page": None if out is None else str(out), **found.as_dict()})


def _show_worth(output: Output, found: Drift) -> None:
    """What is expected, and what was achieved."""
    from .figures import plain_table

    if not found.worth:
        return
    output.say()
    for line in found.worth:
        output.say(line)
    output.say()
    output.show(plain_table(found.headings, found.figures))
    if found.answered:
        n, rows = found.answered, int(found.rows)
        which = "all" if n == rows else f"{n:,} of the {rows:,}"
        output.say(f"Achieved: on {which} rows, whose answers are in the table.")
