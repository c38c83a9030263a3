"""``damvi predict``: score, probability and decision for each row of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .fit import check_folder
from .loading import nothing_thrown_away
from .talking import Talk, talk


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="A .csv or .parquet file. Default: DATA's name with .predictions.csv.",
)
@click.option("--jobs", type=click.IntRange(1), help="Threads. Default: all cores.")
def predict(model: Path, data: Path, out: Path | None, jobs: int | None) -> None:
    """Judge each row of DATA by MODEL.

    One line a row, in the order of DATA: the score (the vote, from -1 to 1), the
    probability of the positive class, and the decision. Columns may come in any order, and
    others are ignored. Files may be larger than memory.
    """
    talks = talk()
    out = out or default_name(data)
    if out.suffix.lower() not in (".csv", ".parquet"):
        raise click.UsageError(f"-o takes a .csv or .parquet file, not {out}")
    check_folder(out)
    if out.absolute() == data.absolute():
        raise click.UsageError("-o names the file that is read; name another")
    with nothing_thrown_away():
        from ..modelfile import load

        loaded = load(model)
    n, flagged = _write(loaded, data, out, jobs, talks)
    talks.say(
        f"{n:,} rows judged, {flagged:,} flagged as {loaded.target.positive!r} "
        f"({flagged / n:.2%}).\nSaved {out}: score, probability and decision."
    )
    talks.result({"out": str(out), "rows": n, "flagged": flagged})


def default_name(data: Path) -> Path:
    """Where predictions go if nobody says: beside us, named after the data."""
    stem = data.name
    for suffix in (".gz", ".csv", ".tsv", ".parquet", ".feather", ".jsonl", ".ndjson"):
        stem = stem.removesuffix(suffix)
    return Path(f"{stem}.predictions.csv")


def _write(loaded: Any, data: Path, out: Path, jobs: int | None, talks: Talk) -> Any:
    from joblib import cpu_count

    from .._files import whole_file
    from ..tabular import read_blocks
    from .flow import Flow, Sink, counted

    flow = Flow(loaded, out.suffix, jobs or cpu_count())
    blocks = flow(read_blocks(data, loaded.schema))
    if talks.shows_progress:
        blocks = counted(blocks)
    n = flagged = 0
    with whole_file(out) as part:
        with Sink(part, flow) as sink:
            for block in blocks:
                sink.write(block.written)
                n += block.rows
                flagged += block.flagged
        if n == 0:
            raise ValueError(f"{data} has a header but no rows")
    return n, flagged
