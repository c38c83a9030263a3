"""``damvi predict``: score, probability and decision for each row of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .fit import check_folder
from .loading import load_model, nothing_thrown_away
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
    probability of the positive class, and the decision. With three or more classes the
    decision, and a probability and a score (the share of the vote) of each class. Columns
    may come in any order, and others are ignored. Files may be larger than memory.
    """
    talks = talk()
    out = out or default_name(data)
    if out.suffix.lower() not in (".csv", ".parquet"):
        raise click.UsageError(f"-o takes a .csv or .parquet file, not {out}")
    check_folder(out, model, data)
    with nothing_thrown_away():
        loaded = load_model(model, talks)
    counts, unread = _write(loaded, data, out, jobs, talks)
    n = sum(counts.values())
    if loaded.target.classes:
        _tell_classes(talks, counts, out)
        talks.result({"out": str(out), "rows": n, "decisions": counts, "unread": unread})
        return
    *_, flagged = counts.values()
    talks.say(
        f"{n:,} {'row' if n == 1 else 'rows'} judged, {flagged:,} flagged as "
        f"{loaded.target.positive!r} "
        f"({flagged / n:.2%}).\nSaved {out}: score, probability and decision."
    )
    talks.result({"out": str(out), "rows": n, "flagged": flagged, "unread": unread})


def _tell_classes(talks: Talk, counts: dict[str, int], out: Path) -> None:
    from .telling import class_table

    talks.say(f"{sum(counts.values()):,} rows judged:\n")
    talks.show(class_table(tuple(counts), list(counts.values()), marks=False))
    talks.say(f"\nSaved {out}: the decision, and probability and score of each class.")


def default_name(data: Path) -> Path:
    """Where predictions go if nobody says: beside us, named after the data."""
    stem = data.name
    for suffix in (".gz", ".csv", ".tsv", ".parquet", ".feather", ".jsonl", ".ndjson"):
        stem = stem.removesuffix(suffix)
    return Path(f"{stem}.predictions.csv")


def _write(
    loaded: Any, data: Path, out: Path, jobs: int | None, talks: Talk
) -> tuple[dict[str, int], list[str]]:
    """Write the predictions: how many rows each decision has, and columns not read."""
    from joblib import cpu_count

    from .._files import whole_file
    from ..tables import read_blocks
    from .flow import Flow, Sink, with_progress
    from .loading import tell_unseen

    flow = Flow(loaded, out.suffix, jobs or cpu_count())
    blocks = flow(read_blocks(data, loaded.schema))
    if talks.shows_progress:
        blocks = with_progress(blocks)
    counts = [0] * len(flow.labels)
    with whole_file(out) as part:
        with Sink(part, flow) as sink:
            for block in blocks:
                for piece in block.written:
                    sink.write(piece)
                counts = [a + int(b) for a, b in zip(counts, block.counts, strict=True)]
        if not any(counts):
            raise ValueError(f"{data} has a header but no rows")
    unread = tell_unseen(talks, loaded.schema, flow.unseen, sum(counts))
    return dict(zip(flow.labels, counts, strict=True)), unread
