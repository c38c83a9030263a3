"""Read CSV, TSV, parquet, feather, JSON and Excel files, as a whole or in blocks."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .excel import read_excel
from .labels import listed
from .schema import Column, Schema, encode
from .textfiles import PACKED, DelimitedFile, read_json, table_name
from .values import BLANKS, SURE, numbers_in

if TYPE_CHECKING:
    import pandas as pd

DELIMITED = (".csv", ".tsv")
JSON = (".json", ".jsonl", ".ndjson")
EXCEL = (".xlsx", ".xlsm")
WHOLE = (".parquet", ".feather", *EXCEL)
SUFFIXES = (
    *WHOLE,
    *(kind + packed for kind in (*DELIMITED, *JSON) for packed in ("", *PACKED)),
    ".zip",
)
"""Supported file suffixes; text files may be compressed."""
KINDS = f"{', '.join((*DELIMITED, *JSON))} (also {', '.join(PACKED)}), {', '.join(WHOLE)}"
ROWS = 1 << 16
"""Maximum number of rows per block."""


class Rows(NamedTuple):
    """A block of rows.

    Attributes
    ----------
    X : DataFrame
        The encoded rows.
    raw : DataFrame, or Arrow table or batch
        The same rows, as in the file: the columns that the model uses, and those carried
        along. Numbers may be text or doubles, from one block to the next.
    """

    X: pd.DataFrame
    raw: Any


Block = Callable[[], Rows]


def read_table(
    path: str | os.PathLike[str],
    schema: Schema | None = None,
    *,
    as_text: Collection[str] = (),
) -> pd.DataFrame:
    """Read a table, or raise an error that says what is wrong with the file.

    In delimited text, columns of only numbers or of only true and false are converted. All
    others stay text: "NA" and "None" are values, and only an empty cell is missing.
    :class:`~damvi.tables.Schema` handles other markers of missing numbers.

    Parameters
    ----------
    path : path
        ``.csv`` and ``.tsv`` (delimiter, decimal comma and encoding are detected),
        ``.json`` (a list of objects), ``.jsonl`` and ``.ndjson``, optionally compressed as
        ``.gz``, ``.bz2``, ``.zst`` or ``.zip``; ``.parquet``, ``.feather``, and ``.xlsx``
        (requires openpyxl).
    schema : Schema, optional
        Schema of a model. Its numeric columns are read as numbers, its categories and
        dates as text, as in :func:`read_blocks`.
    as_text : collection of str
        Columns to keep as text, for codes such as "01".

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("size;colour\\n1,5;NA\\n;red\\n")
    >>> read_table(path)
       size colour
    0   1.5     NA
    1   NaN    red
    """
    import pandas as pd

    path = _check_path(path)
    kind = _kind(path)
    try:
        if kind == "parquet":
            from pyarrow import parquet

            table = parquet.read_table(path)
            table.validate(full=True)  # rejects invalid UTF-8, for example
            frame = table.to_pandas()
        elif kind == "feather":
            from pyarrow import feather

            table = feather.read_table(path)
            table.validate(full=True)  # feather files are not validated on reading
            frame = table.to_pandas()
        elif kind == "Excel":
            frame = read_excel(path)
        elif kind == "JSON":
            frame = pd.concat(read_json(path, ROWS), ignore_index=True)
        else:
            frame = _read_delimited(path, schema, as_text)
    except ImportError:
        raise
    except Exception as error:
        raise _unreadable(path, error) from error
    frame.columns = _column_names(path, [str(column) for column in frame.columns])
    if len(frame) == 0:
        raise ValueError(f"{path} has a header but no rows")
    return frame.reset_index(drop=True)


def read_blocks(
    path: str | os.PathLike[str],
    schema: Schema,
    carried: Collection[str] = (),
    also: Collection[str] = (),
) -> Iterator[Block]:
    """Iterate over the rows of a table in blocks, with bounded memory.

    Each block is a callable that returns its rows, encoded as by
    :meth:`~damvi.tables.Schema.encode`, and raw. The callables do most of the work and may
    run in parallel. A table without a column of the schema, or without a column in
    ``carried``, is rejected; columns in ``also`` are carried along if present.
    """
    path = _check_path(path)
    kind = _kind(path)
    try:
        if kind == "parquet":
            yield from _parquet_blocks(path, schema, carried, also)
        elif kind == "feather":
            yield from _feather_blocks(path, schema, carried, also)
        elif kind == "Excel":
            frames = iter([read_excel(path)])
            yield from _frame_blocks(path, schema, carried, also, frames)
        elif kind == "JSON":
            yield from _frame_blocks(path, schema, carried, also, read_json(path, ROWS))
        else:
            yield from _delimited_blocks(path, schema, carried, also)
    except ImportError:
        raise
    except Exception as error:
        raise _unreadable(path, error) from error


def _check_path(path: str | os.PathLike[str]) -> Path:
    """Check that the file exists, is not empty, and has a supported suffix."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; pass a file in it")
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.name.lower().endswith(SUFFIXES):
        hint = "; save it as .xlsx" if path.suffix.lower() in (".xls", ".ods") else ""
        raise ValueError(f"unsupported file type: {path}{hint}; supported are {KINDS}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    return path


def _kind(path: Path) -> str:
    name = table_name(path)
    if name.endswith(DELIMITED):
        return "delimited"
    if name.endswith(JSON):
        return "JSON"
    if not path.name.lower().endswith(WHOLE):
        raise ValueError(
            f"{path} holds {name!r}, but only text files may be compressed "
            f"({', '.join((*DELIMITED, *JSON))}); decompress it first"
        )
    return "Excel" if name.endswith(EXCEL) else name.rpartition(".")[2]


def _column_names(path: Path, names: list[str]) -> list[str]:
    """Name unnamed columns; raise an error for duplicate names."""
    names = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(
                f"{path} has more than one column named {name!r}; rename them, because "
                f"models identify columns by name"
            )
    return names


def _check_columns(
    path: Path,
    schema: Schema,
    names: list[str],
    carried: Collection[str],
    also: Collection[str],
) -> list[str]:
    """Return the columns that the schema uses, in order, and those carried along."""
    names = _column_names(path, names)
    try:
        schema.check(names)
        check_carried(carried, names)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    used = [column.name for column in schema.used]
    there = [name for name in also if name in names]
    return list(dict.fromkeys([*used, *carried, *there]))


def check_carried(
    carried: Collection[str], names: list[str], own: Collection[str] = ()
) -> None:
    """Check that columns to carry along exist and do not clash with our own."""
    for name in carried:
        if name in own:
            raise ValueError(
                f"the output already has a column {name!r}; rename the table's column, or "
                f"leave it out"
            )
        if name not in names:
            raise ValueError(
                f"no column {name!r} to carry along; the table has {listed(names)}"
            )


def _unreadable(path: Path, error: Exception) -> Exception:
    """Add the file name to a parser's error; keep our own errors."""
    reason = " ".join(str(error).split())
    if isinstance(error, ValueError) and reason.startswith(str(path)):
        return error
    if isinstance(error, OSError) and error.errno is not None:
        return error
    return ValueError(f"cannot read {path} as a table: {reason[:500]}")


# Delimited text


def _read_delimited(
    path: Path, schema: Schema | None, as_text: Collection[str]
) -> pd.DataFrame:
    import pyarrow as pa

    file = DelimitedFile(path)
    names = _column_names(path, file.header)
    text_schema = pa.schema([(name, pa.string()) for name in names])
    table = pa.Table.from_batches(file.batches(names, names), text_schema)
    known = {column.name: column for column in schema.used} if schema else {}
    columns = []
    for name, cells in zip(names, table.columns, strict=True):
        if name in as_text:
            columns.append(cells)
        elif name not in known:
            columns.append(_inferred(cells, file.decimal))
        elif known[name].kind == "number":
            columns.append(pa.array(_as_numbers(cells, known[name], file)))
        else:
            columns.append(cells)
    return pa.table(columns, names=names).to_pandas()


def _delimited_blocks(
    path: Path, schema: Schema, carried: Collection[str], also: Collection[str]
) -> Iterator[Block]:
    file = DelimitedFile(path)
    wanted = _check_columns(path, schema, file.header, carried, also)
    as_given = {*carried, *also}
    numbers = {
        column.name
        for column in schema.used
        if column.kind == "number" and column.writing.decimal == "."
    } - as_given
    batches: list[Any] = []
    for batch in file.batches(_column_names(path, file.header), wanted, numbers):
        if batches and batch.schema != batches[0].schema:  # numbers are text from here on
            yield partial(_encode_cells, batches, schema, file)
            batches = []
        for start in range(0, len(batch), ROWS):
            batches.append(batch.slice(start, ROWS))
            if sum(map(len, batches)) >= ROWS // 4:  # small blocks cost more per row
                yield partial(_encode_cells, batches, schema, file)
                batches = []
    if batches:
        yield partial(_encode_cells, batches, schema, file)


def _encode_cells(batches: list[Any], schema: Schema, file: DelimitedFile) -> Rows:
    import pyarrow as pa

    table = pa.Table.from_batches(batches)
    columns: dict[str, Any] = {}
    for column in schema.used:
        cells = table.column(column.name)
        if column.kind == "number":
            columns[column.name] = _as_numbers(cells, column, file)
        elif column.kind in ("category", "levels"):  # each distinct text once
            columns[column.name] = cells.dictionary_encode().to_pandas()
        else:
            columns[column.name] = cells.to_pandas()
    return Rows(encode(schema.used, columns, len(table)), table)


def _as_numbers(cells: Any, column: Column, file: DelimitedFile) -> Any:
    """Return the numbers in a column that was numeric at fit."""
    import pyarrow as pa

    if pa.types.is_floating(cells.type):
        return cells.to_numpy()
    writing = column.writing
    if not writing.group and file.separator != ",":
        # The first rows of the file may have no decimals to detect the decimal sign from.
        writing = replace(writing, decimal=",")
    return numbers_in(cells, writing)[0]


def _inferred(cells: Any, decimal: str) -> Any:
    """Convert to numbers or booleans, if all cells are that."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if cells.null_count == len(cells):
        return cells
    trimmed = pc.utf8_trim(cells, BLANKS)
    if pc.any(pc.match_substring_regex(trimmed, r"^[-+]?0(\d+$|[xX])")).as_py():
        return cells  # 007 and 0x1F may be codes; the schema decides
    if decimal == ",":
        if pc.any(pc.match_substring(trimmed, ".")).as_py():
            return cells  # maybe a thousands separator
        trimmed = pc.replace_substring(trimmed, ",", ".")
    elif _may_be_thousands(trimmed):
        return cells
    for kind in (pa.int64(), pa.float64()):
        try:
            return trimmed.cast(kind)
        except pa.ArrowInvalid:
            continue
    words = pa.array(["true", "false", None])
    for some in (trimmed.slice(0, 1000), trimmed):  # a quick test on the first rows
        lowered = pc.utf8_lower(some)
        if not pc.all(pc.is_in(lowered, words)).as_py():
            return cells
    return pc.equal(lowered, "true")


def _may_be_thousands(cells: Any) -> bool:
    """Whether points may separate thousands: 1.234 and 980, but never 1.25."""
    import pyarrow.compute as pc

    pattern = r"^[-+]?(?:[1-9][0-9]{0,2}\.[0-9]{3}|[0-9]{1,3})$"
    for some in (cells.slice(0, 1000), cells):  # a quick test on the first rows
        if pc.all(pc.match_substring_regex(some, pattern)).as_py() is False:
            return False
    return bool((pc.sum(pc.match_substring(cells, ".")).as_py() or 0) >= SURE)


# Other file types


def _parquet_blocks(
    path: Path, schema: Schema, carried: Collection[str], also: Collection[str]
) -> Iterator[Block]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        names = _check_columns(path, schema, file.schema_arrow.names, carried, also)
        for batch in file.iter_batches(ROWS, columns=names):
            batch.validate(full=True)
            yield partial(_encode_batch, batch, schema)


def _feather_blocks(
    path: Path, schema: Schema, carried: Collection[str], also: Collection[str]
) -> Iterator[Block]:
    import pyarrow as pa

    with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as file:
        names = _check_columns(path, schema, file.schema.names, carried, also)
        for number in range(file.num_record_batches):
            batch = file.get_batch(number).select(names)
            batch.validate(full=True)
            for start in range(0, len(batch), ROWS):
                yield partial(_encode_batch, batch.slice(start, ROWS), schema)


def _encode_batch(batch: Any, schema: Schema) -> Rows:
    return Rows(schema.encode(batch.to_pandas()), batch)


def _encode_frame(frame: pd.DataFrame, schema: Schema) -> Rows:
    return Rows(schema.encode(frame), frame)


def _frame_blocks(
    path: Path,
    schema: Schema,
    carried: Collection[str],
    also: Collection[str],
    frames: Iterator[pd.DataFrame],
) -> Iterator[Block]:
    for number, frame in enumerate(frames):
        there = [str(name) for name in frame.columns]
        if number == 0:
            names = _check_columns(path, schema, there, carried, also)
        frame.columns = _column_names(path, there)
        frame = frame.reindex(columns=names)
        for start in range(0, len(frame), ROWS):
            yield partial(_encode_frame, frame.iloc[start : start + ROWS], schema)
