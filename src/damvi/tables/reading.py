"""A file as a data frame: CSV, TSV, parquet, feather, JSON, Excel; whole or in blocks."""

from __future__ import annotations

import io
import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .delimited import DelimitedFile
from .excel import read_excel
from .labels import listed
from .opening import PACKED, open_bytes, table_name
from .schema import Column, Schema, encode
from .values import BLANKS, may_be_thousands, numbers_in

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
"""Endings of files that are read; those of text may be packed."""
KINDS = f"{', '.join((*DELIMITED, *JSON))} (also {', '.join(PACKED)}), {', '.join(WHOLE)}"
ROWS = 1 << 16
"""Rows of a block, at most."""


class Rows(NamedTuple):
    """Some rows of a table.

    Attributes
    ----------
    X : DataFrame
        Encoded, as a model sees them.
    raw : DataFrame, or Arrow table or batch
        The same as they were written, column by column: those that the model uses, and
        those to be carried along.
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
    """Read a table, or say what is wrong with the file.

    In delimited text, columns of nothing but numbers become numbers, and those of true and
    false booleans. All else stays text: "NA" and "None" are values, and only an empty cell
    is missing. What else marks a missing number is for :class:`~damvi.tables.Schema` to
    judge.

    Parameters
    ----------
    path : path
        ``.csv`` and ``.tsv`` (the separator, decimal commas and the encoding are found
        out), ``.json`` (a list of objects), ``.jsonl`` and ``.ndjson``, all of these also
        packed as ``.gz``, ``.bz2``, ``.zst`` or ``.zip``; ``.parquet``, ``.feather``, and
        ``.xlsx`` (with openpyxl).
    schema : Schema, optional
        Of a model: its numbers are read as numbers, and its categories and dates as text,
        as :func:`read_blocks` reads them.
    as_text : collection of str
        Columns that stay text, as "01" must where it is a code.

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
            table.validate(full=True)  # text that is no UTF-8, say
            frame = table.to_pandas()
        elif kind == "feather":
            from pyarrow import feather

            table = feather.read_table(path)
            table.validate(full=True)  # nothing in the file was checked so far
            frame = table.to_pandas()
        elif kind == "Excel":
            frame = read_excel(path)
        elif kind == "JSON":
            frame = pd.concat(_read_json(path), ignore_index=True)
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
    """The rows of a table in order, block by block; memory does not grow with the file.

    Each block is a call that gives its rows, encoded as
    :meth:`~damvi.tables.Schema.encode` does, and as they were. The calls do most of the
    work, and may be made in parallel. A table that lacks a column of the schema, or one of
    those to be ``carried`` along, is refused; ``also`` are more of the latter, as far as
    they are there.
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
            yield from _frame_blocks(path, schema, carried, also, _read_json(path))
        else:
            yield from _delimited_blocks(path, schema, carried, also)
    except ImportError:
        raise
    except Exception as error:
        raise _unreadable(path, error) from error


def _check_path(path: str | os.PathLike[str]) -> Path:
    """A file that is there, is not empty, and is of a kind that is read here."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if not path.name.lower().endswith(SUFFIXES):
        hint = "; save it as .xlsx" if path.suffix.lower() in (".xls", ".ods") else ""
        raise ValueError(
            f"{path} is not of a kind that can be read{hint}; these are: {KINDS}"
        )
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
            f"{path} holds {name!r}, and of packed files only text is read "
            f"({', '.join((*DELIMITED, *JSON))}); unpack it first"
        )
    return "Excel" if name.endswith(EXCEL) else name.rpartition(".")[2]


def _column_names(path: Path, names: list[str]) -> list[str]:
    """Names for columns without one; an error where one occurs twice."""
    names = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(
                f"{path} has more than one column named {name!r}; rename them, since a "
                f"model knows columns by name"
            )
    return names


def _check_columns(
    path: Path,
    schema: Schema,
    names: list[str],
    carried: Collection[str],
    also: Collection[str],
) -> list[str]:
    """The columns that the schema uses, in its order, and those that are carried along."""
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
    """Refuse to carry along a column that is not there, or beside one of the same name."""
    for name in carried:
        if name in own:
            raise ValueError(
                f"what is told of each row has a column {name!r} of its own; rename the "
                f"table's, or leave it out"
            )
        if name not in names:
            raise ValueError(
                f"there is no column {name!r} to carry along; the table has {listed(names)}"
            )


def _unreadable(path: Path, error: Exception) -> Exception:
    """What a parser says, with the file; errors of our own stay."""
    reason = " ".join(str(error).split())
    if isinstance(error, ValueError) and reason.startswith(str(path)):
        return error
    if isinstance(error, OSError) and error.errno is not None:
        return error
    return ValueError(f"{path} cannot be read as a table: {reason[:500]}")


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
    batches: list[Any] = []
    for batch in file.batches(_column_names(path, file.header), wanted):
        for start in range(0, len(batch), ROWS):
            batches.append(batch.slice(start, ROWS))
            if sum(map(len, batches)) >= ROWS // 4:  # few rows cost more, row by row
                yield partial(_encode_text, batches, schema, file)
                batches = []
    if batches:
        yield partial(_encode_text, batches, schema, file)


def _encode_text(batches: list[Any], schema: Schema, file: DelimitedFile) -> Rows:
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
    """The numbers in a column that held numbers at fit."""
    writing = column.writing
    if not writing.group and file.separator != ",":
        # The file's first rows may have no decimals, and so not show how they are written.
        writing = replace(writing, decimal=",")
    return numbers_in(cells, writing)[0]


def _inferred(cells: Any, decimal: str) -> Any:
    """Numbers or booleans, if all of the cells are that."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if cells.null_count == len(cells):
        return cells
    trimmed = pc.utf8_trim(cells, BLANKS)
    if pc.any(pc.match_substring_regex(trimmed, r"^[-+]?0(\d+$|[xX])")).as_py():
        return cells  # 007 and 0x1F are codes, until it is known how many there are
    if decimal == ",":
        if pc.any(pc.match_substring(trimmed, ".")).as_py():
            return cells  # thousands perhaps
        trimmed = pc.replace_substring(trimmed, ",", ".")
    elif may_be_thousands(trimmed):
        return cells
    for kind in (pa.int64(), pa.float64()):
        try:
            return trimmed.cast(kind)
        except pa.ArrowInvalid:
            continue
    words = pa.array(["true", "false", None])
    for some in (trimmed.slice(0, 1000), trimmed):  # the first ones say it quickly
        lowered = pc.utf8_lower(some)
        if not pc.all(pc.is_in(lowered, words)).as_py():
            return cells
    return pc.equal(lowered, "true")


# Other kinds


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


def _read_json(path: Path) -> Iterator[pd.DataFrame]:
    """A list of objects, or objects line by line; one may leave out what it does not know.

    No type is guessed, as pandas would: it makes dates of columns by their names.
    """
    import pandas as pd

    with io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig") as file:
        numbered: Iterator[tuple[int, str]]
        numbered = ((n, line) for n, line in enumerate(file, 1) if line.strip())
        first = next(numbered, None)
        if first is None:
            raise ValueError(f"{path} is empty")
        if first[1].lstrip().startswith("["):
            yield _from_list(path, first[1] + file.read())
            return
        numbered = itertools.chain([first], numbered)
        while lines := list(itertools.islice(numbered, ROWS)):
            yield pd.DataFrame.from_records([_record(path, *line) for line in lines])


def _from_list(path: Path, text: str) -> pd.DataFrame:
    import pandas as pd

    try:
        records = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise ValueError(f"{path}, item {number} is not a JSON object {{...}}")
    if not records:
        raise ValueError(f"{path} is a list without rows")
    return pd.DataFrame.from_records([_flat(record) for record in records])


def _flat(record: dict[str, Any], within: str = "") -> dict[str, Any]:
    """A record without records in it: what is within ``a`` under ``b`` is ``a.b``."""
    cells: dict[str, Any] = {}
    for name, value in record.items():
        inner = isinstance(value, dict) and bool(value)
        cells |= _flat(value, f"{within}{name}.") if inner else {within + name: value}
    return cells


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line.strip())
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path}, line {number} is not JSON: {error.msg} (column {error.colno})"
        ) from None
    if not isinstance(record, dict):
        raise ValueError(f"{path}, line {number} is not a JSON object {{...}}")
    return _flat(record)
