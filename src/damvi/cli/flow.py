"""Blocks of rows from a file through a model into another file, in constant memory."""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Signs by which a spreadsheet takes a cell for a formula."""
MOST_NUMBERS = 1 << 20
"""Cells of a block that is written: hundreds of classes make long rows."""


@dataclass(frozen=True, eq=False)
class Block:
    """The predictions of some rows, as Arrow batches or as lines of CSV.

    ``counts`` has the rows of each decision; of two classes, the second is the positive.
    """

    counts: Any
    written: list[Any]


class Flow:
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
        self.unseen = set(model.schema.features)
        """Features that have had no value in any row so far."""
        self.labels = list(class_names(model.target))
        cells = [harmless(label) for label in self.labels] if self.as_csv else self.labels
        self._cells = pa.array(cells, pa.string())
        fields = [(name, pa.float64()) for name in ("score", "probability")]
        fields.append(("decision", pa.string()))
        if len(self.labels) > 2:
            fields = [("decision", pa.string())]
            for what in ("probability", "score"):
                fields += [(f"{what} {label}", pa.float64()) for label in self.labels]
        self.schema = pa.schema(fields)
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
        for name in list(self.unseen):
            if X[name].notna().any():
                self.unseen.discard(name)
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
        chances, places = self._fitted.decide(vote)
        columns = [vote, chances] if vote.ndim == 1 else [*chances.T.copy(), *vote.T.copy()]
        decision = self._cells.take(pa.array(places))
        columns.insert(self.schema.get_field_index("decision"), decision)
        batch = pa.record_batch(columns, schema=self.schema)
        written = _lines(batch) if self.as_csv else batch
        return np.bincount(places, minlength=len(self.labels)), written


def _lines(batch: Any) -> Any:
    import pyarrow as pa
    from pyarrow.csv import WriteOptions, write_csv

    sink = pa.BufferOutputStream()
    how = WriteOptions(include_header=False, quoting_style="needed")
    write_csv(batch, sink, how)
    return sink.getvalue()


class Sink:
    """The file of predictions."""

    def __init__(self, path: Path, flow: Flow) -> None:
        self._file: Any
        if flow.as_csv:
            self._file = path.open("wb")
            header = io.StringIO()
            csv.writer(header, lineterminator="\n").writerow(flow.schema.names)
            self._file.write(header.getvalue().encode())
            self.write = self._file.write
        else:
            from pyarrow import parquet

            self._file = parquet.ParquetWriter(path, flow.schema)
            self.write = self._file.write_batch

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()


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


def harmless(text: str) -> str:
    """Text from the user's data that no spreadsheet takes for a formula.

    Examples
    --------
    >>> harmless("=1+1"), harmless("-1"), harmless("ok")
    ("'=1+1", '-1', 'ok')
    """
    try:
        float(text)  # -1 is a label as good as any
    except ValueError:
        return f"'{text}" if text.startswith(FORMULA) else text
    return text
