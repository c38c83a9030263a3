"""``damvi datasets``: what there is, what one holds, and fetching."""

from __future__ import annotations

import click

from .talking import talk

DATA_DIR = click.option(
    "--data-dir", metavar="FOLDER", help="A folder of data files to look in first."
)


@click.group(invoke_without_command=True)
@DATA_DIR
@click.pass_context
def datasets(context: click.Context, data_dir: str | None) -> None:
    """List the datasets; show or fetch one."""
    context.obj = data_dir
    if context.invoked_subcommand is not None:
        return
    from rich.table import Table

    from ..datasets import names

    talks = talk()
    records = names(data_dir)
    talks.result(records)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("name", no_wrap=True)
    for heading in ("rows", "columns", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("where")
    for record in records:
        rows, columns, ratio = record["rows"], record["attributes"], record["ratio"]
        table.add_row(
            record["name"] + (" *" if record["paper"] else ""),
            f"{rows:,}" if rows else "",
            f"{columns:,}" if columns else "",
            f"{ratio:,.0f}:1" if ratio else "",
            record["where"],
        )
    talks.show(table)
    talks.say(
        "\n* in the paper; pct_imitation only imitates the size and rarity of its PCT.\n"
        "Any CSV, TSV or parquet file loads too: damvi datasets show FILE --target COLUMN"
    )


@datasets.command()
@click.argument("name")
@DATA_DIR
@click.option("--target", metavar="COLUMN", help="The column to predict.")
@click.option("--positive", metavar="VALUE", help="The value to find, against all others.")
@click.option("--groups", metavar="COLUMN", help="Which rows belong together.")
@click.pass_obj
def show(
    parent: str | None,
    name: str,
    data_dir: str | None,
    target: str | None,
    positive: str | None,
    groups: str | None,
) -> None:
    """Describe NAME, a dataset or a file."""
    from ..datasets import load

    data = load(
        name,
        data_dir=data_dir or parent,
        target=target,
        positive=positive,
        groups=groups,
    )
    talks = talk()
    talks.say(data.DESCR.rstrip("\n"))
    n_groups = None if data.groups is None else len(set(data.groups.tolist()))
    if n_groups is not None:
        talks.say(f"\n{n_groups:,} groups of rows belong together.")
    talks.result(
        {
            "name": data.name,
            "rows": data.data.shape[0],
            "features": list(data.feature_names),
            "positives": int(data.target.sum()),
            "groups": n_groups,
            "notes": data.notes,
        }
    )


@datasets.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@DATA_DIR
@click.pass_obj
def fetch(parent: str | None, names: tuple[str, ...], data_dir: str | None) -> None:
    """Fetch datasets from their public homes into the cache."""
    from ..datasets import fetch as fetch_one

    talks, paths = talk(), {}
    for name in names:
        paths[name] = str(fetch_one(name, data_dir=data_dir or parent))
        talks.say(f"{name}: {paths[name]}")
    talks.result(paths)
