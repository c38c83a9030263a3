"""``damvi explain``: which columns and voters drive a model's scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .console import (
    Output,
    check_output_file,
    current_output,
    load_with_table,
    no_formula,
    printable,
)

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
    help="Row to explain, counted from 1; may be repeated. Default: the 20 highest scores, "
    "or with three or more classes, the 20 with the fewest votes for the majority class.",
)
@click.option(
    "--class",
    "label",
    metavar="LABEL",
    help="With three or more classes: explain votes for this one. Default: the predicted "
    "class.",
)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Save all contributions as CSV."
)
def explain(
    model: Path, data: Path, rows: tuple[int, ...], label: str | None, out: Path | None
) -> None:
    """Explain what drives MODEL's scores on DATA.

    Columns get sampled Shapley values, which add up to the score minus the mean score of
    the background rows (taken from DATA). Voters get weight times vote, which adds up to
    the score. With three or more classes, the score is the share of the vote for one class:
    the predicted one, or --class.
    """
    output = current_output()
    if out is not None:
        check_output_file(out, model, data)
    loaded, frame = load_with_table(model, data, None, output)
    explained = loaded.explain(frame, list(rows) or None, label=label)
    if out is not None:
        from .._files import write_whole

        write_whole(out, to_csv(explained))
    _show(output, explained, in_full=bool(rows))
    if out is not None:
        output.say(f"\nSaved all contributions to {out}.")
    output.result({**explained.as_dict(), "out": None if out is None else str(out)})


def to_csv(explained: Any) -> str:
    """A line for each part of each row's score."""
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


def _show(output: Output, explained: Any, in_full: bool) -> None:
    from .figures import plain_table

    ranked = explained.ranked
    output.say("Column importance\n")
    listed = list(zip(ranked.names, ranked.values, strict=True))[:MOST_COLUMNS]
    rows = [[name, f"{value:.3f}"] for name, value in listed]
    output.show(plain_table(["column", "importance"], rows))
    if len(ranked.names) > MOST_COLUMNS:
        output.say(f"and {len(ranked.names) - MOST_COLUMNS:,} more")
    output.say(f"\n{ranked.words}\n")
    for row in explained.as_dict()["rows"]:
        _show_row(output, row, in_full)
    output.say(f"\n{explained.words}")
    for note in explained.notes:
        output.say(note)


def _head(row: dict[str, Any]) -> str:
    """A row's score and decision."""
    label, decided = printable(row["class"]), printable(row["decided"])
    return f"row {row['row']:,}: score {row['vote']:.3f} for {label}, predicted {decided}"


def _show_row(output: Output, row: dict[str, Any], in_full: bool) -> None:
    """One line per row, or all contributions to rows given by ``--row``."""
    columns = _largest(row["columns"])[: None if in_full else MOST_PARTS]
    parts = [
        f"{printable(column['name'])} = {printable(column['value']) or 'missing'} "
        f"{column['contribution']:+.3f}"
        for column in columns
    ]
    if not in_full:
        output.say(f"{_head(row)}; {', '.join(parts)}")
        return
    output.say(f"{_head(row)}")
    output.say(f"by column (starting from the mean score {row['base']:+.3f})")
    for line in parts:
        output.say(f"  {line}")
    output.say("by voter (weight times vote)")
    if not row["voters"]:
        output.say("  no voter contributes")
    for voter in _largest(row["voters"])[:MOST_COLUMNS]:
        output.say(f"  {printable(voter['name'])} {voter['contribution']:+.3f}")


def _largest(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The largest contributions first."""
    return sorted(parts, key=lambda part: -abs(part["contribution"]))
