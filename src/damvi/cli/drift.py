"""``damvi drift``: what changed since training, and how good the model is now."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..messages import counted
from .console import Output, check_output_file, current_output, load_whole

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
    help="Also write an HTML report.",
)
@click.option(
    "--label-shift",
    is_flag=True,
    help="Assume P(x|y) is unchanged instead of P(y|x), and estimate class rates from the "
    "votes.",
)
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    help="Add this batch to a history file; the report shows all its batches.",
)
@click.option("--name", help="Name of the batch in the history. Default: the file name.")
@click.option(
    "--target", metavar="COLUMN", help="Column of true labels. Default: the model's target."
)
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with code 1 if there are warnings.",
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
    """Show how DATA has drifted since MODEL was trained.

    For each column: the share of missing or unreadable cells, the distance between training
    and new values (from 0 to 1), and a p-value corrected for the number of columns.

    Also estimates, without labels, how good MODEL is on these rows: expected precision,
    recall and average precision with 90% intervals, based on its probabilities. They hold
    if P(y|x) is as in training, or P(x|y) with --label-shift. If DATA has labels, the
    achieved scores are shown next to the expected ones.
    """
    from ..drift import DriftError
    from .figures import plain_table

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
        f"{data.name}: {counted(found.rows, 'row')}, compared with "
        f"{found.training_rows:,.0f} training rows.\n{found.lead}"
    )
    if found.origin:
        output.say(found.origin)
    for one in found.decisions:
        output.say(f"{one.words}{one.remark}.")
    changed = [column for column in found.columns if column.changed]
    if changed:
        output.say()
        headings = ["column", "what changed", "distance", "corrected p"]
        rows = [[one.name, one.words, *one.figures] for one in changed[:MOST_ROWS]]
        output.show(plain_table(headings, rows, texts=2))
        if len(changed) > MOST_ROWS:
            output.say(f"and {counted(len(changed) - MOST_ROWS, 'more column')}.")
    _show_scores(output, found)
    if history is not None:
        n = counted(len(found.batches), "batch", "batches")
        output.say(f"\n{history} now has {n}.")
    if out is not None:
        output.say(
            f"\nSaved the report to {out}. Open it in a browser or share it as it is."
        )
    if strict and found.warnings:
        raise DriftError(
            f"the data have drifted since training: {'; '.join(found.warnings)}"
        )
    output.result({"page": None if out is None else str(out), **found.as_dict()})


def _show_scores(output: Output, found: Drift) -> None:
    """Print expected and achieved scores."""
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
        which = "all" if n == rows else f"the {n:,} labelled"
        output.say(f"Achieved scores are on {which} rows.")
