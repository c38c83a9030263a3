"""``damvi explain``: which columns and voters a model's scores come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .console import Output, check_output_file, current_output, no_formula, printable

MOST_COLUMNS = 15
MOST_PARTS = 3


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--row",
    "rows",
    type=click.IntRange(1),
    multiple=True,
    help="Explain this row, counted from 1; may be repeated. Default: the 20 highest, or, "
    "of three or more classes, those with the least votes for the most frequent.",
)
@click.option(
    "--class",
    "label",
    metavar="LABEL",
    help="Explain the votes for this class, of three or more. Default: the one decided.",
)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="All contributions, as CSV."
)
def explain(
    model: Path, data: Path, rows: tuple[int, ...], label: str | None, out: Path | None
) -> None:
    """Say what MODEL looks at, and what makes up the scores of rows of DATA.

    Columns are credited with how far they move the vote (sampled Shapley values against
    rows of DATA: they sum to the score less the mean score of these). Voters are credited
    with weight times vote, which sums to the score. With three or more classes the score
    is the share of the vote for one class: the one decided for, or --class.
    """
    from .loading import load_with_table

    output = current_output()
    if out is not None:
        check_output_file(out, model, data)
    loaded, frame = load_with_table(model, data, None, output)
    explained = loaded.explain(frame, list(rows) or None, label=label)
    if out is not None:
        from .._files import write_whole

        write_whole(out, to_csv(explained))
    _show(output, explained, whole=bool(rows))
    if out is not None:
        output.say(f"\nAll contributions: {out}")
    output.result({**explained.as_dict(), "out": None if out is None else str(out)})


def to_csv(explained: Any) -> str:
    """A line for each row and part of its score."""
    import csv
    import io

    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    first = ["row", "class", "score"]
    writer.writerow([*first, "part", "name", "value", "contribution", "error"])
    for row in explained.as_dict()["rows"]:
        start = [row["row"], no_formula(row["class"]), repr(row["vote"])]
        writer.writerow([*start, "base", "", "", repr(row["base"]), ""])
        for column in row["columns"]:
            error = column["standard_error"]
            writer.writerow(
                [
                    *start,
                    "column",
                    no_formula(column["name"]),
                    no_formula(column["value"]),
                    repr(column["contribution"]),
                    "" if error is None else repr(error),
                ]
            )
        for voter in row["voters"]:
            part = repr(voter["contribution"])
            writer.writerow([*start, "voter", no_formula(voter["name"]), "", part, ""])
    return file.getvalue()


def _show(output: Output, explained: Any, whole: bool) -> None:
    from .figures import plain_table

    ranked = explained.ranked
    output.say("What the model looks at\n")
    listed = list(zip(ranked.names, ranked.values, strict=True))[:MOST_COLUMNS]
    rows = [[name, f"{value:.3f}"] for name, value in listed]
    output.show(plain_table(["column", "importance"], rows))
    if len(ranked.names) > MOST_COLUMNS:
        output.say(f"and {len(ranked.names) - MOST_COLUMNS:,} more")
    output.say(f"\n{ranked.words}\n")
    for row in explained.as_dict()["rows"]:
        _show_row(output, row, whole)
    output.say(f"\n{explained.words}")
    for note in explained.notes:
        output.say(note)


def _head(row: dict[str, Any]) -> str:
    """What was decided of a row, and its score."""
    told, decided = printable(row["class"]), f"decided as {printable(row['decided'])}"
    decided = "as decided" if row["class"] == row["decided"] else decided
    return f"row {row['row']:,}: score {row['vote']:.3f} for {told}, {decided}"


def _show_row(output: Output, row: dict[str, Any], whole: bool) -> None:
    """One line, or for rows that were asked for all that moved the score."""
    columns = _largest(row["columns"])[: None if whole else MOST_PARTS]
    told = [
        f"{printable(column['name'])} = {printable(column['value']) or 'missing'} "
        f"{column['contribution']:+.3f}"
        for column in columns
    ]
    if not whole:
        output.say(f"{_head(row)}; {', '.join(told)}")
        return
    output.say(f"{_head(row)}; {row['base']:+.3f} to start with, and")
    for line in told:
        output.say(f"  {line}")
    output.say("by voter (weight times vote)")
    if not row["voters"]:
        output.say("  none gives anything")
    for voter in _largest(row["voters"])[:MOST_COLUMNS]:
        output.say(f"  {printable(voter['name'])} {voter['contribution']:+.3f}")


def _largest(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that move the score most first."""
    return sorted(parts, key=lambda part: -abs(part["contribution"]))
