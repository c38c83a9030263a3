"""``damvi compare``: how a new model differs from an old one."""

from __future__ import annotations

from pathlib import Path

import click

from ..messages import counted
from .console import check_output_file, current_output, load_whole
from .fit import COST

MOST_ROWS = 10
PATH = click.Path(path_type=Path)


@click.command()
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@click.argument("data", type=PATH)
@click.option(
    "--target", metavar="COLUMN", help="Column of true labels. Default: the models' target."
)
@click.option("--cost-miss", type=COST, help="Cost of a missed positive. [1]")
@click.option("--cost-false-alarm", type=COST, help="Cost of a false alarm. [1]")
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="K",
    help="Also compare the hits among each model's K highest scores. Default: the alert "
    "budget both were fitted for, if any.",
)
@click.option(
    "--id",
    "id_",
    metavar="COLUMN",
    help="Column to show with each differing row, such as an id.",
)
@click.option("--columns", metavar="A,B", help="More columns to show with these rows.")
@click.option("-o", "--out", type=PATH, help="Save all differing rows as CSV.")
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
    """Compare the models OLD and NEW on DATA.

    Shows the scores of both and the difference (new minus old), with a 90% interval from a
    paired bootstrap. Each model uses its own threshold. Training rows of either model are
    recognised and scored out of sample. Without labels, only the decisions are compared.
    """
    from .figures import digits, plain_table, show_rows
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
        is_count = str(name) == "flags" or str(name).startswith("decided ")
        form = "{:,.0f}".format if is_count else digits
        form = "{:,.3g}".format if str(name).startswith("hits ") else form
        less, low, high = (figure[key] for key in ("difference", "low", "high"))
        less, low, high = (
            f"{'+' if value > 0 else ''}{form(value)}" for value in (less, low, high)
        )
        interval = f"{low} to {high}"
        rows.append([str(name), form(figure["old"]), form(figure["new"]), less, interval])
    output.show(plain_table(["", "old", "new", "difference", "90% interval"], rows))
    output.say()
    for line in found.words:
        output.say(line)
    n = len(found.rows)
    output.say(
        f"\nThe models agree on {found.agreement:.2%} of {counted(found.judged, 'row')} "
        f"and differ on {n:,}."
    )
    show_rows(output, found.rows, MOST_ROWS, out)
    output.result({"out": None if out is None else str(out), **found.as_dict()})
