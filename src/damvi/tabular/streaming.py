"""A file of any size, a block of rows at a time, with the columns that a model uses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .dialect import Dialect, find_dialect
from .reading import (
    LINES,
    check_path,
    header_of,
    open_text,
    read_lines,
    tidy_names,
    unreadable,
)
from .schema import Schema

if TYPE_CHECKING:
    import pandas as pd

ROWS = 1 << 16
"""Rows of a block, at most: its columns stay in the cache of a processor."""


def read_blocks(path: str | os.PathLike[str], schema: Schema) -> Iterator[pd.DataFrame]:
    """The rows of a table in order, block by block; memory does not grow with the file.

    Each block has the columns that the schema uses, ready for
    :meth:`~damvi.tabular.Schema.encode`. A table that lacks one is refused.
    """
    path = check_path(path)
    name = path.name.lower()
    try:
        if name.endswith(".parquet"):
            yield from _parquet(path, schema)
        elif name.endswith(".feather"):
            yield from _feather(path, schema)
        elif name.endswith(LINES):
            yield from _json_lines(path, schema)
        else:
            yield from _text(path, schema)
    except ImportError:
        raise
    except Exception as error:
        raise unreadable(path, error) from error


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


def _text(path: Path, schema: Schema) -> Iterator[Any]:
    import pyarrow as pa

    dialect = find_dialect(path)
    header = header_of(path, dialect)
    names = _check(path, schema, header)
    written = dict(zip(tidy_names(path, header), header, strict=True))
    raw = [written[name] for name in names]
    text = {written[name] for name in schema.text_columns}
    # Each distinct category once: they repeat.
    kinds = {
        "number": pa.float64(),
        "category": pa.dictionary(pa.int32(), pa.string()),
        "date": pa.string(),
    }
    types = {written[column.name]: kinds[column.kind] for column in schema.used}
    done = 0
    try:
        for batch in _batches(path, dialect, types, 0):
            yield batch.to_pandas().set_axis(names, axis="columns")
            done += len(batch)
        return
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            dialect = Dialect(dialect.separator, dialect.decimal, "latin-1")
        elif "conversion error" not in str(error):
            raise
    # Some cell is no plain number: from here on all is read as text, and parsed later.
    types = dict.fromkeys(raw, pa.string())
    decimal = dialect.decimal == ","
    numbers = [name for name in raw if name not in text]
    for batch in _batches(path, dialect, types, done):
        frame = batch.to_pandas()
        if decimal:
            for name in numbers:
                frame[name] = frame[name].str.replace(",", ".", regex=False)
        yield frame.set_axis(names, axis="columns")


def _batches(
    path: Path, dialect: Dialect, types: dict[str, Any], skip: int
) -> Iterator[Any]:
    """Batches of rows, after some that are known already."""
    with open_text(path, dialect, types, list(types)) as reader:
        for batch in reader:
            if skip >= len(batch):
                skip -= len(batch)
                continue
            yield batch.slice(skip)
            skip = 0


def _check(path: Path, schema: Schema, names: list[str]) -> list[str]:
    """The columns that are used, in the order of the schema."""
    try:
        schema.check(tidy_names(path, names))
    except ValueError as error:
        said = str(error)
        raise ValueError(said if str(path) in said else f"{path}: {said}") from None
    return [column.name for column in schema.used]
