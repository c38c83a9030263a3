"""``damvi predict``: score, probability and decision for each row of a file.

Blocks of rows go from the file through the model into another file, in constant memory.
"""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import click

from .console import Output, check_output_file, current_output, no_formula
from .loading import load_whole, note_unread_columns, without_garbage_collection

MOST_NUMBERS = 1 << 20
"""Cells of a block that is written: hundreds of classes make long rows."""


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
    output = current_output()
    out = out or default_name(data)
    if out.suffix.lower() not in (".csv", ".parquet"):
        raise click.UsageError(f"-o takes a .csv or .parquet file, not {out}")
    check_output_file(out, model, data)
    with without_garbage_collection():
        loaded = load_whole(model, output)
    counts, unread = _write(loaded, data, out, jobs, output)
    n = sum(counts.values())
    judged = f"{n:,} {'row' if n == 1 else 'rows'} judged"
    decided: dict[str, Any]
    if loaded.target.n_classes == 2:
        *_, flagged = counts.values()
        decided = {"flagged": flagged}
        output.say(
            f"{judged}, {flagged:,} flagged as {loaded.target.positive!r} "
            f"({flagged / n:.2%}).\nSaved {out}: score, probability and decision."
        )
    else:
        from .figures import count_table

        decided = {"decisions": counts}
        output.say(f"{judged}:\n")
        output.show(count_table(list(counts), list(counts.values()), mark=False))
        output.say(f"\nSaved {out}: the decision, and probability and score of each class.")
    output.result({"out": str(out), "rows": n, **decided, "unread": unread})


def default_name(data: Path) -> Path:
    """Where predictions go if nobody says: beside us, named after the data."""
    stem = data.name
    for suffix in (".gz", ".csv", ".tsv", ".parquet", ".feather", ".jsonl", ".ndjson"):
        stem = stem.removesuffix(suffix)
    return Path(f"{stem}.predictions.csv")


def _write(
    loaded: Any, data: Path, out: Path, jobs: int | None, output: Output
) -> tuple[dict[str, int], list[str]]:
    """Write the predictions: how many rows each decision has, and columns not read."""
    from joblib import cpu_count

    from .._files import whole_file
    from ..tables import read_blocks

    predictions = Predictions(loaded, out.suffix, jobs or cpu_count())
    blocks = predictions(read_blocks(data, loaded.schema))
    if output.shows_progress:
        blocks = with_progress(blocks)
    counts = [0] * len(predictions.labels)
    with whole_file(out) as file:
        with PredictionFile(file, predictions) as lines:
            for block in blocks:
                for piece in block.written:
                    lines.write(piece)
                counts = [a + int(b) for a, b in zip(counts, block.counts, strict=True)]
        if not any(counts):
            raise ValueError(f"{data} has a header but no rows")
    unread = note_unread_columns(output, loaded.schema, predictions.empty, sum(counts))
    return dict(zip(predictions.labels, counts, strict=True)), unread


@dataclass(frozen=True, eq=False)
class Block:
    """The predictions of some rows, as Arrow batches or as lines of CSV.

    ``counts`` has the rows of each decision; of two classes, the second is the positive.
    """

    counts: Any
    written: list[Any]


class Predictions:
    """Predictions of blocks of rows, several at a time, in the order of the file.

    Each block is converted, voted on and formatted by one thread, while the next ones are
    read. Few are in memory at a time, whatever the size of the file.
    """

    def __init__(self, model: Any, suffix: str, jobs: int) -> None:
        import pyarrow as pa

        from ..evaluation import FittedVote, class_names

        self.as_csv = suffix.lower() == ".csv"
        self._model, self._jobs = model, jobs
        self._fitted = FittedVote(model.classifier)
        self.empty = set(model.schema.features)
        """Features that have had no value in any row so far."""
        self.labels = list(class_names(model.target))
        cells = [no_formula(label) for label in self.labels] if self.as_csv else self.labels
        self._cells = pa.array(cells, pa.string())
        places = {what: (what, 0) for what in ("score", "probability", "decision")}
        if len(self.labels) > 2:
            places = {"decision": ("decision", 0)}
            for what in ("probability", "score"):
                for c, label in enumerate(self.labels):
                    places[f"{what} {label}"] = what, c
        self._places = list(places.values())
        """Of each column of the output, what it has and of which class."""
        number, text = pa.float64(), pa.string()
        self.schema = pa.schema(
            (name, text if what == "decision" else number)
            for name, (what, _) in places.items()
        )
        # The blocks are what is done side by side.
        model.classifier.n_jobs = 1

    def __call__(self, blocks: Iterator[Any]) -> Iterator[Block]:
        """The results, in the order of what :func:`~damvi.tables.read_blocks` gives."""
        pool = ThreadPoolExecutor(self._jobs)
        pending: deque[Future[Block]] = deque()
        try:
            for encoded in blocks:
                pending.append(pool.submit(self._predict, encoded))
                if len(pending) > 2 * self._jobs:  # one each to do, and one in reserve
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:  # after an error or a Ctrl-C, what has not begun never does
            pool.shutdown(wait=True, cancel_futures=True)

    def _predict(self, encoded: Any) -> Block:
        X = encoded()
        for name in list(self.empty):
            if X[name].notna().any():
                self.empty.discard(name)
        # Fewer rows at a time where there are many columns to write.
        step = max(1, MOST_NUMBERS // len(self.schema))
        parts = [
            self._format(X.iloc[start : start + step] if len(X) > step else X)
            for start in range(0, len(X), step)
        ]
        counts = sum((part[0] for part in parts), start=0)
        return Block(counts, [part[1] for part in parts])

    def _format(self, X: Any) -> tuple[Any, Any]:
        """How many rows have each decision, and the rows of the output."""
        import numpy as np
        import pyarrow as pa

        vote = self._model.classifier.vote(X)
        chances, decided = self._fitted.decide(vote)
        told: dict[str, Any] = {
            what: np.ascontiguousarray(numbers.reshape(len(numbers), -1).T)
            for what, numbers in (("score", vote), ("probability", chances))
        }
        told["decision"] = [self._cells.take(pa.array(decided))]
        columns = [told[what][c] for what, c in self._places]
        batch = pa.record_batch(columns, schema=self.schema)
        written = _lines(batch) if self.as_csv else batch
        return np.bincount(decided, minlength=len(self.labels)), written


def _lines(batch: Any) -> Any:
    import pyarrow as pa
    from pyarrow.csv import WriteOptions, write_csv

    sink = pa.BufferOutputStream()
    how = WriteOptions(include_header=False, quoting_style="needed")
    write_csv(batch, sink, how)
    return sink.getvalue()


class PredictionFile:
    """The lines of a CSV, or the batches of a parquet file, in a file that is open."""

    def __init__(self, file: IO[bytes], predictions: Predictions) -> None:
        self._writer: Any = None
        if predictions.as_csv:
            header = io.StringIO()
            csv.writer(header, lineterminator="\n").writerow(predictions.schema.names)
            file.write(header.getvalue().encode())
            self.write: Callable[[Any], Any] = file.write
        else:
            from pyarrow import parquet

            self._writer = parquet.ParquetWriter(file, predictions.schema)
            self.write = self._writer.write_batch

    def __enter__(self) -> PredictionFile:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._writer is not None:
            self._writer.close()


def with_progress(blocks: Iterator[Block]) -> Iterator[Block]:
    """The same blocks; the rows so far are shown on the standard error."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    rows = TextColumn("{task.completed:,.0f} rows")
    columns = (SpinnerColumn(), rows, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        for block in blocks:
            yield block
            bar.advance(task, int(sum(block.counts)))
