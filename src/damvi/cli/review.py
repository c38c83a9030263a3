"""``damvi review``: which rows a person should look at."""

from __future__ import annotations

from pathlib import Path

import click

from .console import check_output_file, current_output

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
    help="How many rows there is time for.",
)
@click.option("--target", metavar="COLUMN", help="The labels. Default: the model's target.")
@click.option(
    "--doubt",
    type=click.Choice(["missed", "any"]),
    default="missed",
    show_default=True,
    help="Which labels may be wrong: the most frequent one, where a rare row was missed, "
    "or any.",
)
@click.option("--id", "id_", metavar="COLUMN", help="Stands beside each row.")
@click.option("--columns", metavar="A,B", help="More columns to stand beside each row.")
@click.option("-o", "--out", type=PATH, help="All of the rows, as CSV.")
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
    """Choose the rows of DATA that a person should look at, and say why.

    Of rows without a label, the likeliest of those that are looked for: the flagged ones,
    and then those closest below the threshold. Of rows with one, those whose label the vote
    contradicts, by the chance that the label is wrong; training rows are recognised, and
    judged by voters, weights and thresholds that had not seen them. Where DATA has both,
    each kind gets half of the budget.
    """
    from .figures import show_rows
    from .loading import load_with_table
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
        output.say("There is no row to look at.")
    show_rows(output, found.rows, MOST_ROWS, out)
    output.result({"out": None if out is None else str(out), **found.as_dict()})
