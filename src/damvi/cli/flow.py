"""Blocks of rows from a file through a model into another file, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Signs by which a spreadsheet takes a cell for a formula."""


@dataclass(frozen=True, eq=False)
class Block:
    """What a model says of some rows."""

    score: NDArray[np.float64]
    probability: NDArray[np.float64]
    flagged: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.score)


def judge_blocks(model: Any, path: Path, progress: bool) -> Iterator[Block]:
    """Judge the rows of a file, block by block."""
    from ..evaluation import decide
    from ..tabular import read_blocks

    frames: Any = read_blocks(path, model.schema)
    if progress:
        frames = _counted(frames)
    for frame in frames:
        vote = model.classifier.vote(model.schema.encode(frame))
        yield Block(vote, *decide(model.classifier, vote))


def _counted(frames: Iterator[Any]) -> Iterator[Any]:
    """The same, with the rows so far on the standard error: the end is not known."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        for frame in frames:
            yield frame
            bar.advance(task, len(frame))


class Sink:
    """A CSV or parquet file of predictions."""

    def __init__(self, path: Path, suffix: str, target: Any) -> None:
        import pyarrow as pa

        self._pa = pa
        negative = target.negative or f"not {target.positive}"
        labels = [negative, target.positive]
        if suffix.lower() == ".csv":
            labels = [harmless(label) for label in labels]
        self._labels = pa.array(labels, pa.string())
        self._schema = pa.schema(
            [
                ("score", pa.float64()),
                ("probability", pa.float64()),
                ("decision", pa.string()),
            ]
        )
        if suffix.lower() == ".csv":
            from pyarrow import csv

            self._writer: Any = csv.CSVWriter(
                path,
                self._schema,
                write_options=csv.WriteOptions(quoting_style="needed"),
            )
        else:
            from pyarrow import parquet

            self._writer = parquet.ParquetWriter(path, self._schema)

    def write(self, block: Block) -> None:
        """Add some rows."""
        pa = self._pa
        decision = self._labels.take(pa.array(block.flagged.astype(np.int8)))
        columns = [pa.array(block.score), pa.array(block.probability), decision]
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, *exception: object) -> None:
        self._writer.close()


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
