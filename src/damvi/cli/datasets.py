"""``damvi datasets``: list datasets and download them."""

from __future__ import annotations

import click

from .console import current_output


@click.group(invoke_without_command=True)
@click.option("--data-dir", metavar="FOLDER", help="Folder of data files to look in first.")
@click.pass_context
def datasets(context: click.Context, data_dir: str | None) -> None:
    """List and download public datasets."""
    context.obj = data_dir
    if context.invoked_subcommand is not None:
        return
    from rich.table import Table

    from ..datasets import available

    output = current_output()
    records = available(data_dir)
    output.result(records)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("name", no_wrap=True)
    for heading in ("rows", "columns", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("where")
    for record in records:
        rows, columns, ratio = record["rows"], record["attributes"], record["ratio"]
        table.add_row(
            record["name"],
            f"{rows:,}" if rows else "",
            f"{columns:,}" if columns else "",
            f"{ratio:,.0f}:1" if ratio else "",
            record["where"],
        )
    output.show(table)


@datasets.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.pass_obj
def fetch(data_dir: str | None, names: tuple[str, ...]) -> None:
    """Download datasets into the cache."""
    from ..datasets import fetch as fetch_one

    output, paths = current_output(), {}
    for name in names:
        paths[name] = str(fetch_one(name, data_dir=data_dir))
        output.say(f"{name}: {paths[name]}")
    output.result(paths)
