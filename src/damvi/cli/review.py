"""``damvi review``: rows worth a human look."""

from __future__ import annotations

from pathlib import Path

import click

from .console import check_output_file, current_output, load_with_table

MOST_ROWS = 20
PATH = click.Path(path_type=Path)


@click.command()
@click.argument("model", type=PATH)
@click.argument("data", type=PATH)
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    metavar="N",
    help="How many rows to pick.",
)
@click.option(
    "--target", metavar="COLUMN", help="Column of labels. Default: the model's target."
)
@click.option(
    "--doubt",
    type=click.Choice(["missed", "any"]),
    default="missed",
    show_default=True,
    help="Which labels may be wrong: only the most frequent one (missed: rare rows that "
    "were overlooked), or any.",
)
@click.option(
    "--id", "id_", metavar="COLUMN", help="Column to show with each row, such as an id."
)
@click.option("--columns", metavar="A,B", help="More columns to show with each row.")
@click.option("-o", "--out", type=PATH, help="Save all picked rows as CSV.")
def review(
    model: Path,
    data: Path,
    budget: int,
    target: str | None,
    doubt: str,
    id_: str | None,
    columns: str | None,
    out: Path | None,
) -> None:
    """Pick the rows of DATA worth a human look.

    Among unlabelled rows, these are the likeliest positives: flagged rows first, then those
    just below the threshold. Among labelled rows, these are the ones whose label the vote
    contradicts, ranked by the chance that the label is wrong. Training rows are recognised
    and scored out of sample. If DATA has both kinds, each gets half of the budget.
    """
    from .figures import show_rows
    from .predict import split_names

    output = current_output()
    if out is not None:
        check_output_file(out, model, data)
    loaded, table = load_with_table(model, data, target, output, blocks=True)
    found = loaded.review(
        table,
        budget,
        target=target,
        doubt=doubt,
        id=id_,
        columns=split_names(columns),
    )
    for line in found.words:
        output.say(line)
    if not len(found):
        output.say("No rows to review.")
    show_rows(output, found.rows, MOST_ROWS, out)
    output.result({"out": None if out is None else str(out), **found.as_dict()})
