"""``damvi compare``: what a new model does otherwise than an old one."""

from __future__ import annotations

from pathlib import Path

import click

from ..messages import counted
from .console import check_output_file, current_output
from .fit import COST

MOST_ROWS = 10
PATH = click.Path(path_type=Path)


@click.command()
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@click.argument("data", type=PATH)
@click.option("--target", metavar="COLUMN", help="The true answers. Default: the models'.")
@click.option("--cost-miss", type=COST, help="What a miss costs.")
@click.option("--cost-false-alarm", type=COST, help="What a false alarm costs.")
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="K",
    help="Also the hits in the K highest scores of each. Default: as many as both were "
    "fitted to flag.",
)
@click.option("--id", "id_", metavar="COLUMN", help="Stands beside each row that differs.")
@click.option("--columns", metavar="A,B", help="More columns to stand beside these rows.")
@click.option("-o", "--out", type=PATH, help="All rows on which they differ, as CSV.")
def compare(
    old: Path,
    new: Path,
    data: Path,
    target: str | None,
    cost_miss: float | None,
    cost_false_alarm: float | None,
    top: int | None,
    id_: str | None,
    columns: str | None,
    out: Path | None,
) -> None:
    """Compare the models OLD and NEW on the rows of DATA.

    Figures of both, and the difference (new less old) with its 90 % interval, from draws of
    the same rows for both; each model decides by its own threshold. Training rows of either
    are recognised, and judged by voters, weights and thresholds of it that had not seen
    them. Without true answers the decisions alone are compared.
    """
    from .figures import digits, plain_table, show_rows
    from .loading import load_whole
    from .predict import split_names

    output = current_output()
    if out is not None:
        check_output_file(out, old, new, data)
    cost = None
    if cost_miss is not None or cost_false_alarm is not None:
        cost = (cost_false_alarm or 1.0, cost_miss or 1.0)
    one, other = load_whole(old, output), load_whole(new, output)
    found = one.compare(
        other, data, target=target, cost=cost, top=top, id=id_, columns=split_names(columns)
    )
    rows = []
    for name, figure in found.table.iterrows():
        whole = str(name) == "flags" or str(name).startswith("decided ")
        form = "{:,.0f}".format if whole else digits
        form = "{:,.3g}".format if str(name).startswith("hits ") else form
        less, low, high = (figure[key] for key in ("difference", "low", "high"))
        told = [f"{'+' if value > 0 else ''}{form(value)}" for value in (less, low, high)]
        sure = f"{told[1]} to {told[2]}"
        rows.append([str(name), form(figure["old"]), form(figure["new"]), told[0], sure])
    output.show(plain_table(["", "old", "new", "new less old", "90 % interval"], rows))
    output.say()
    for line in found.words:
        output.say(line)
    n = len(found.rows)
    output.say(
        f"\nThe decisions agree on {found.agreement:.2%} of "
        f"{counted(found.judged, 'row')}, and differ on {n:,}."
    )
    show_rows(output, found.rows, MOST_ROWS, out)
    output.result({"out": None if out is None else str(out), **found.as_dict()})
