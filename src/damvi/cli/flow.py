"""Blocks of rows from a file through a model into another file, in constant memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Signs by which a spreadsheet takes a cell for a formula."""


@dataclass(frozen=True, eq=False)
class Block:
    """What a model says of some rows, as an Arrow batch or as lines of CSV."""

    rows: int
    flagged: int
    written: Any


class Flow:
    """Judges blocks of rows, several at a time, and gives the results in order.

    Each block is parsed, voted on and put into writing by one thread, while the next
    ones are read; few are on the way at a time, whatever the size of the file.
    """

    def __init__(self, model: Any, suffix: str, jobs: int) -> None:
        import pyarrow as pa

        self.as_csv = suffix.lower() == ".csv"
        self._model, self._jobs = model, jobs
        target = model.target
        labels = [target.negative or f"not {target.positive}", target.positive]
        if self.as_csv:
            labels = [harmless(label) for label in labels]
        self._labels = pa.array(labels, pa.string())
        numbers = [("score", pa.float64()), ("probability", pa.float64())]
        self.schema = pa.schema([*numbers, ("decision", pa.string())])
        # The blocks are what is done side by side.
        model.classifier.n_jobs = 1

    def __call__(self, blocks: Iterator[Any]) -> Iterator[Block]:
        """The results, in the order of what :func:`~damvi.tabular.read_blocks` gives."""
        pool = ThreadPoolExecutor(self._jobs)
        under_way: deque[Future[Block]] = deque()
        try:
            for encoded in blocks:
                under_way.append(pool.submit(self._judge, encoded))
                if len(under_way) > 2 * self._jobs:  # one each to do, and one in reserve
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:  # after an error or a Ctrl-C, what has not begun never does
            pool.shutdown(wait=True, cancel_futures=True)

    def _judge(self, encoded: Any) -> Block:
        import numpy as np
        import pyarrow as pa

        from ..evaluation import decide

        vote = self._model.classifier.vote(encoded())
        chance, flagged = decide(self._model.classifier, vote)
        decision = self._labels.take(pa.array(flagged.astype(np.int8)))
        columns = [pa.array(vote), pa.array(chance), decision]
        batch = pa.record_batch(columns, schema=self.schema)
        written = _lines(batch) if self.as_csv else batch
        return Block(len(vote), int(flagged.sum()), written)


def _lines(batch: Any) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    sink = pa.BufferOutputStream()
    how = csv.WriteOptions(include_header=False, quoting_style="needed")
    csv.write_csv(batch, sink, how)
    return sink.getvalue()


class Sink:
    """The file of predictions."""

    def __init__(self, path: Path, flow: Flow) -> None:
        self._file: Any
        if flow.as_csv:
            self._file = path.open("wb")
            self._file.write((",".join(flow.schema.names) + "\n").encode())
            self.write = self._file.write
        else:
            from pyarrow import parquet

            self._file = parquet.ParquetWriter(path, flow.schema)
            self.write = self._file.write_batch

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()


def counted(blocks: Iterator[Block]) -> Iterator[Block]:
    """The same, with the rows so far on the standard error: the end is not known."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    rows = TextColumn("{task.completed:,.0f} rows")
    columns = (SpinnerColumn(), rows, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        for block in blocks:
            yield block
            bar.advance(task, block.rows)


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
