"""A file of any size, a block of rows at a time, with the columns that a model uses."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .dialect import find_dialect
from .reading import (
    LINES,
    check_path,
    header_of,
    read_lines,
    tidy_names,
    unreadable,
)
from .schema import Schema

if TYPE_CHECKING:
    import pandas as pd

Block = Callable[[], "pd.DataFrame"]

ROWS = 1 << 16
"""Rows of a block, at most: its columns stay in the cache of a processor."""


def read_blocks(path: str | os.PathLike[str], schema: Schema) -> Iterator[Block]:
    """The rows of a table in order, block by block; memory does not grow with the file.

    Each block is a call that gives its rows as :meth:`~damvi.tabular.Schema.encode` does.
    The calls do most of the work, and may be made side by side. A table that lacks a column
    that the schema uses is refused.
    """
    path = check_path(path)
    name = path.name.lower()
    try:
        if name.endswith(".parquet"):
            yield from _encoded(_parquet(path, schema), schema)
        elif name.endswith(".feather"):
            yield from _encoded(_feather(path, schema), schema)
        elif name.endswith(LINES):
            yield from _encoded(_json_lines(path, schema), schema)
        else:
            yield from _text(path, schema)
    except ImportError:
        raise
    except SystemError as error:
        # What becomes of a Ctrl-C that arrives while a kernel runs.
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
    except Exception as error:
        raise unreadable(path, error) from error


def _encoded(frames: Iterator[Any], schema: Schema) -> Iterator[Block]:
    return (partial(schema.encode, frame) for frame in frames)


def _parquet(path: Path, schema: Schema) -> Iterator[Any]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        names = _check(path, schema, file.schema_arrow.names)
        for batch in file.iter_batches(ROWS, columns=names):
            yield batch.to_pandas()


def _feather(path: Path, schema: Schema) -> Iterator[Any]:
    import pyarrow as pa

    with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as file:
        names = _check(path, schema, file.schema.names)
        for number in range(file.num_record_batches):
            batch = file.get_batch(number).select(names)
            for start in range(0, len(batch), ROWS):
                yield batch.slice(start, ROWS).to_pandas()


def _json_lines(path: Path, schema: Schema) -> Iterator[Any]:
    for number, frame in enumerate(read_lines(path, ROWS)):
        if number == 0:
            _check(path, schema, [str(name) for name in frame.columns])
        yield frame.reindex(columns=[column.name for column in schema.used])


def _text(path: Path, schema: Schema) -> Iterator[Block]:
    from .lines import (
        whole_lines,
    )  # with kernels, which whoever only names a file needs not
    from .plain import LineParser

    dialect = find_dialect(path)
    header, n_lines = header_of(path, dialect)
    _check(path, schema, header)
    parse = LineParser(path, dialect, header, schema)
    for lines in whole_lines(path, dialect, n_lines, parse.free):
        yield partial(parse, lines)


def _check(path: Path, schema: Schema, names: list[str]) -> list[str]:
    """The columns that are used, in the order of the schema."""
    try:
        schema.check(tidy_names(path, names))
    except ValueError as error:
        said = str(error)
        raise ValueError(said if str(path) in said else f"{path}: {said}") from None
    return [column.name for column in schema.used]
