"""``damvi explain``: which columns and voters a model's scores come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .fit import check_folder
from .talking import Talk, shown, talk

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
    help="Explain this row, counted from 1; may be repeated. Default: the 20 highest.",
)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="All contributions, as CSV."
)
def explain(model: Path, data: Path, rows: tuple[int, ...], out: Path | None) -> None:
    """Say what MODEL looks at, and what makes up the scores of rows of DATA.

    Columns are credited with how far they move the vote (sampled Shapley values against
    rows of DATA: they sum to the score less the mean score of these). Voters are credited
    with weight times vote, which sums to the score.
    """
    from ..evaluation.voters import voter_names
    from ..explanation import explain as explain_rows
    from .loading import load_with_table

    talks = talk()
    if out is not None:
        check_folder(out, model, data)
    loaded, frame = load_with_table(model, data, None, talks)
    voters = voter_names(loaded.classifier)
    explained = explain_rows(loaded, frame, list(rows) or None, voters=voters)
    if out is not None:
        from .._files import write_whole

        write_whole(out, to_csv(explained))
    _tell(talks, explained, whole=bool(rows))
    if out is not None:
        talks.say(f"\nAll contributions: {out}")
    talks.result({**explained.as_dict(), "out": None if out is None else str(out)})


def to_csv(explained: Any) -> str:
    """A line for each row and part of its score."""
    import csv
    import io

    from .flow import harmless

    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["row", "score", "part", "name", "value", "contribution", "error"])
    for row in explained.as_dict()["rows"]:
        start = [row["row"], repr(row["vote"])]
        writer.writerow([*start, "base", "", "", repr(explained.parts.base), ""])
        for column in row["columns"]:
            error = column["standard_error"]
            writer.writerow(
                [
                    *start,
                    "column",
                    harmless(column["name"]),
                    harmless(column["value"]),
                    repr(column["contribution"]),
                    "" if error is None else repr(error),
                ]
            )
        for voter in row["voters"]:
            part = repr(voter["contribution"])
            writer.writerow([*start, "voter", harmless(voter["name"]), "", part, ""])
    return file.getvalue()


def _tell(talks: Talk, explained: Any, whole: bool) -> None:
    from rich.table import Table

    ranked, parts = explained.ranked, explained.parts
    talks.say("What the model looks at\n")
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("column", overflow="fold")
    table.add_column("importance", justify="right")
    for name, value in list(zip(ranked.names, ranked.values, strict=True))[:MOST_COLUMNS]:
        table.add_row(shown(name), f"{value:.3f}")
    talks.show(table)
    if len(ranked.names) > MOST_COLUMNS:
        talks.say(f"and {len(ranked.names) - MOST_COLUMNS:,} more")
    talks.say(f"\n{ranked.words}\n")
    for i in range(len(explained.numbers)):
        _tell_row(talks, explained, i, whole)
    talks.say(f"\n{parts.words}")
    for note in explained.notes:
        talks.say(note)


def _tell_row(talks: Talk, explained: Any, i: int, whole: bool) -> None:
    """One line, or for rows that were asked for all that moved the score."""
    parts = explained.parts
    said = parts.by_column[i]
    order = abs(said).argsort(kind="stable")[::-1][: None if whole else MOST_PARTS]
    flagged = "flagged" if explained.flagged[i] else "passed"
    head = f"row {explained.numbers[i]:,}: score {parts.vote[i]:.3f}, {flagged}"
    told = [
        f"{shown(parts.columns[j])} = {shown(explained.values[i][j]) or 'missing'} "
        f"{said[j]:+.3f}"
        for j in order.tolist()
    ]
    if not whole:
        talks.say(f"{head}; {', '.join(told)}")
        return
    talks.say(f"{head}; {parts.base:+.3f} to start with, and")
    for line in told:
        talks.say(f"  {line}")
    by_voter = parts.by_voter[i]
    talks.say("by voter (weight times vote)")
    for k in abs(by_voter).argsort(kind="stable")[::-1][:MOST_COLUMNS].tolist():
        if by_voter[k]:
            talks.say(f"  {shown(parts.voters[k])} {by_voter[k]:+.3f}")
