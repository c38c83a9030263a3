"""A file as a data frame: CSV, TSV, parquet, feather, JSON lines."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import os
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .dialect import Dialect, find_dialect, head_of

if TYPE_CHECKING:
    import pandas as pd

TEXTS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
LINES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
BLOCK = 1 << 23
"""Bytes of text that are parsed at a time."""
LINES_AT_A_TIME = 1 << 16
SUFFIXES = (".parquet", ".feather", *TEXTS, *LINES)


def read_table(
    path: str | os.PathLike[str], *, as_text: Collection[str] = ()
) -> pd.DataFrame:
    """Read a table, or say what is wrong with the file.

    Of a text file, columns that hold nothing but numbers become numbers, and those of
    true and false booleans. All else stays the text that it is: "NA" and "None" are
    values, and only an empty cell is missing. What marks a gap among numbers is for
    :class:`~damvi.tabular.Schema` to judge.

    Parameters
    ----------
    path : path
        ``.csv`` and ``.tsv`` (also ``.gz``; semicolons, tabs and decimal commas are
        found out), ``.parquet``, ``.feather``, ``.jsonl`` and ``.ndjson`` (also ``.gz``).
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

    path = check_path(path)
    name = path.name.lower()
    try:
        if name.endswith(".parquet"):
            from pyarrow import parquet

            frame = parquet.read_table(path).to_pandas()
        elif name.endswith(".feather"):
            from pyarrow import feather

            frame = feather.read_table(path).to_pandas()
        elif name.endswith(LINES):
            parts = list(read_lines(path, LINES_AT_A_TIME))
            frame = pd.concat(parts, ignore_index=True)
        else:
            frame = _read_text(path, as_text)
    except ImportError:
        raise
    except Exception as error:
        raise unreadable(path, error) from error
    frame.columns = tidy_names(path, [str(column) for column in frame.columns])
    if len(frame) == 0:
        raise ValueError(f"{path} has a header but no rows")
    return frame.reset_index(drop=True)


def check_path(path: str | os.PathLike[str]) -> Path:
    """A file that is there, is not empty, and is of a kind that is read here."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if not path.name.lower().endswith(SUFFIXES):
        raise ValueError(f"{path}: not one of the kinds read here, {', '.join(SUFFIXES)}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    return path


def tidy_names(path: Path, names: list[str]) -> list[str]:
    """Names for columns without one; an error where one occurs twice."""
    names = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(
                f"{path} has more than one column named {name!r}; rename them, since a "
                f"model knows columns by name"
            )
    return names


def unreadable(path: Path, error: Exception) -> Exception:
    """What a parser says, with the file; errors of our own stay."""
    reason = " ".join(str(error).split())
    if isinstance(error, ValueError) and reason.startswith(str(path)):
        return error
    if isinstance(error, OSError) and error.errno is not None:
        return error
    if "Empty CSV file" in reason:
        return ValueError(f"{path} is empty")
    return ValueError(f"{path} cannot be read as a table: {reason[:500]}")


def read_lines(path: Path, rows: int) -> Iterator[pd.DataFrame]:
    """JSON lines, some rows at a time; a line may leave out what it does not know.

    No type is guessed, as pandas would: it makes dates of columns by their names.
    """
    import pandas as pd

    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8-sig") as file:
        numbered = ((n, line) for n, line in enumerate(file, 1) if line.strip())
        while lines := list(itertools.islice(numbered, rows)):
            yield pd.DataFrame.from_records([_record(path, *line) for line in lines])


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{path} is no JSON in line {number}: {error}") from None
    if not isinstance(record, dict):
        raise ValueError(f"{path} has no record {{...}} in line {number}")
    return record


def header_of(path: Path, dialect: Dialect) -> tuple[list[str], int]:
    """The names in the first line that is not empty, as it has them; lines until there."""
    text = head_of(path).decode(dialect.encoding, errors="replace").removeprefix("\ufeff")
    # Line ends as they are: old Macs have \r.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=dialect.separator)
    for row in reader:
        if row:
            return row, reader.line_num
    raise ValueError(f"{path} is empty")


def _read_text(path: Path, as_text: Collection[str]) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    dialect = find_dialect(path)
    names, _ = header_of(path, dialect)
    tidy_names(path, names)
    types = {name: pa.string() for name in names}
    try:
        table = arrow_csv.read_csv(path, **how_to_read(dialect, types))
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise name_row(path, dialect, types, error) from None
        # The first odd byte comes late in the file.
        dialect = Dialect(dialect.separator, dialect.decimal, "latin-1")
        table = arrow_csv.read_csv(path, **how_to_read(dialect, types))
    columns = [
        column if name in as_text else _typed(column, dialect.decimal)
        for name, column in zip(names, table.columns, strict=True)
    ]
    return pa.table(columns, names=names).to_pandas()


def name_row(
    path: Path, dialect: Dialect, types: dict[str, Any], error: Exception
) -> Exception:
    """The same error, with the number of the row; several threads do not know it."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    how = how_to_read(dialect, types, threads=False)
    try:
        for _ in arrow_csv.open_csv(path, **how):
            pass
    except pa.ArrowInvalid as named:
        return named
    return error


def how_to_read(
    dialect: Dialect,
    types: dict[str, Any],
    header: list[str] | None = None,
    *,
    threads: bool = True,
) -> dict[str, Any]:
    """What pyarrow is told; only an empty cell is missing.

    With a ``header`` the text has none, and columns not in ``types`` are left out.
    """
    from pyarrow import csv

    return {
        "read_options": csv.ReadOptions(
            encoding=dialect.encoding,
            use_threads=threads,
            block_size=BLOCK,
            column_names=header,
        ),
        "parse_options": csv.ParseOptions(
            delimiter=dialect.separator, newlines_in_values=True
        ),
        "convert_options": csv.ConvertOptions(
            column_types=types,
            include_columns=None if header is None else list(types),
            null_values=[""],
            strings_can_be_null=True,
            decimal_point=dialect.decimal,
        ),
    }


def _typed(column: Any, decimal: str) -> Any:
    """Numbers or booleans, if all of the text is that."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return column
    trimmed = pc.utf8_trim_whitespace(column)
    if pc.any(pc.match_substring_regex(trimmed, r"^[-+]?0\d+$")).as_py():
        return column  # 007 is a code, until it is known how many there are
    if decimal == ",":
        trimmed = pc.replace_substring(trimmed, ",", ".")
    for kind in (pa.int64(), pa.float64()):
        try:
            return trimmed.cast(kind)
        except pa.ArrowInvalid:
            continue
    words = pc.unique(pc.utf8_lower(trimmed.slice(0, 1000))).drop_null().to_pylist()
    if set(words) <= {"true", "false"}:
        try:
            return pc.utf8_lower(trimmed).cast(pa.bool_())
        except pa.ArrowInvalid:
            pass
    return column
