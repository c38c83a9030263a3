"""Text files: decompressed, and their rows, as delimited text (CSV, TSV) or JSON.

Expanded files have a limit. pyarrow parses delimited text; this module detects encoding,
delimiter, decimal sign and header, and makes sure that no row is lost or invented without
an error that names the line.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import itertools
import json
import re
import secrets
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..messages import counted

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

DAMAGE = (
    *(EOFError, OSError, NotImplementedError, RuntimeError),
    *(zlib.error, zipfile.BadZipFile),
)
"""Exceptions that readers raise for corrupt compressed files."""
PACKED = (".gz", ".bz2", ".zst", ".zip")
OTHERS = {
    b"PK\3\4": "an Excel workbook (or a zip archive): name it .xlsx (or .zip)",
    b"PAR1\x15": "a parquet file: name it .parquet",
    b"\x1f\x8b": "compressed with gzip: add .gz to its name",
}
"""Files that are no text, by their first bytes; those of parquet go on after its name."""
LEAST_LIMIT = 1 << 29
"""Expanded size that is always allowed, in bytes."""
MOST_RATIO = 200
"""Allowed ratio of expanded to compressed size; text with few values compresses well."""

BLOCK = 1 << 20
"""Bytes parsed at a time; small enough to stay in the CPU cache."""
LONGEST_ROW = 1 << 26
HEAD = 1 << 20
"""Bytes from which encoding, delimiter, decimal sign and header are detected."""
TAIL = 1 << 10
"""Bytes searched for empty lines at the end of a file."""
HEAD_ROWS = 500
ROW_SIGNS = 8
"""Minimum number of delimiters in a multi-line cell for its lines to look like rows."""
NUL = "contains a NUL byte; is this a text file, or UTF-16 without a byte order mark?"
POINT = re.compile(r"\s*[-+]?\d+\.\d+\s*")
COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")


# Opening a file.


def table_name(path: Path) -> str:
    """Return the name of the table in a file, in lower case, without compression suffix.

    A zip archive must hold one file, whose name is returned.
    """
    name = path.name.lower()
    if name.endswith(".zip"):
        with _archive(path) as archive:
            return Path(_member(path, archive).filename).name.lower()
    for ending in PACKED:
        if name.endswith(ending):
            return name.removesuffix(ending)
    return name


def open_bytes(path: Path) -> Any:
    """Open a file for reading, decompressed.

    Reading stops with an error if the file expands to far more than a table would.
    """
    name = path.name.lower()
    file: Any
    if not name.endswith(PACKED):
        file = path.open("rb")
        head = file.peek(8)
        for start, words in OTHERS.items():
            if head.startswith(start):
                file.close()
                raise ValueError(f"{path} is {words}")
        return file
    if name.endswith(".gz"):
        file = gzip.GzipFile(path)
    elif name.endswith(".bz2"):
        file = bz2.BZ2File(path)
    elif name.endswith(".zst"):
        import pyarrow as pa

        file = pa.input_stream(str(path), compression="zstd")
    else:
        archive = _archive(path)
        try:
            file = archive.open(_member(path, archive))
        except DAMAGE as error:
            raise ValueError(f"{path} is damaged: {error}") from error
    return io.BufferedReader(_Bounded(path, file), 1 << 17)


def limit_of(path: Path) -> int:
    """Maximum expanded size of a file, in bytes."""
    return max(LEAST_LIMIT, MOST_RATIO * path.stat().st_size)


def refuse_bomb(path: Path) -> ValueError:
    """Return the error for a file that expands beyond its limit."""
    return ValueError(
        f"{path} expands to more than {limit_of(path) >> 20:,} MB, over {MOST_RATIO} times "
        f"its size, which is unusual for a table; if you trust it, decompress it first"
    )


class _Bounded(io.RawIOBase):
    """A stream that raises an error beyond a size limit."""

    def __init__(self, path: Path, file: Any) -> None:
        self._path, self._file, self._left = path, file, limit_of(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except DAMAGE as error:
            raise ValueError(
                f"{self._path} is damaged: {str(error).rstrip('.')}; copy or download it "
                f"again"
            ) from error
        self._left -= len(data)
        if self._left < 0:
            raise refuse_bomb(self._path)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (*DAMAGE, ValueError) as error:
        raise ValueError(f"cannot read {path} as a zip archive: {error}") from error


def _member(path: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """Return the only file of an archive, ignoring those that macOS and Windows add."""
    files = [
        info
        for info in archive.infolist()
        if not info.is_dir()
        and not info.filename.startswith("__MACOSX/")
        and Path(info.filename).name not in (".DS_Store", "Thumbs.db")
    ]
    if len(files) != 1:
        names = ", ".join(repr(info.filename) for info in files[:5])
        what = f"{len(files):,} files: {names}" if files else "no file"
        raise ValueError(f"{path} holds {what}; it must contain exactly one table")
    if files[0].flag_bits & 1:
        raise ValueError(f"{path} is encrypted; decrypt and extract it first")
    return files[0]


# Delimited text.


class DelimitedFile:
    """A delimited text file with a header.

    Attributes
    ----------
    path : Path
    encoding : {"utf-8-sig", "utf-16", "cp1252"}
        UTF-8 with or without a byte order mark; UTF-16 with one.
    separator : {",", ";", "\\t", "|"}
    decimal : {".", ","}
        A comma if numbers use one and the delimiter is something else.
    header : list of str
        The cells of the first non-empty line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with open_bytes(path) as file:
            head = file.read(HEAD)
            is_whole = not file.read(1)
        self.encoding: str = _find_encoding(head)
        text = _decoder(self.encoding).decode(head, is_whole)
        is_tsv = table_name(path).endswith(".tsv")
        self.separator: str = "\t" if is_tsv else _find_separator(text)
        self.decimal: str = _find_decimal(text, self.separator)
        self.header: list[str]
        self.header, self._data_start = self._read_header(text, is_whole)

    def batches(
        self, names: list[str], wanted: list[str], numbers: Collection[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, cells as text; an empty cell is null.

        Parameters
        ----------
        names : list of str
            The name of each column in the file.
        wanted : list of str
            The columns to return, in this order.
        numbers : collection of str
            Columns to return as doubles instead, which is faster, up to the first block
            with a cell that is no plain number. From there on, they are text too, and
            pyarrow reads the file a second time.
        """
        import pyarrow as pa

        n_rows = 0
        attempts = [(numbers, BLOCK)] if numbers else []
        for doubles, block in (*attempts, ((), BLOCK), ((), LONGEST_ROW)):
            try:
                for batch in self._parse(names, wanted, doubles, block, n_rows):
                    n_rows += len(batch)
                    yield batch
                return
            except pa.ArrowInvalid as error:
                if doubles:  # read as text, which raises whatever else is wrong
                    continue
                # Parse a row longer than a block again, with a larger block.
                if block == LONGEST_ROW or "straddling" not in str(error):
                    self._count_rows()  # multi-threaded pyarrow reports no line numbers
                    raise

    def _parse(
        self,
        names: list[str],
        wanted: list[str],
        doubles: Collection[str],
        block: int,
        skip: int,
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        # Append a row of our own. If it does not come out, a quote before it is still open.
        end = secrets.token_hex(8) + self.separator * len(names)
        is_complete = False

        def on_wrong_width(row: Any) -> str:
            nonlocal is_complete
            is_complete = is_complete or row.text == end
            return "skip" if row.text == end else "error"

        n_rows = 0
        with self._open_rows(end) as rows:
            reader = arrow_csv.open_csv(
                pa.PythonFile(rows, mode="r"),
                arrow_csv.ReadOptions(column_names=names, block_size=block),
                arrow_csv.ParseOptions(
                    delimiter=self.separator,
                    newlines_in_values=True,
                    invalid_row_handler=on_wrong_width,
                ),
                arrow_csv.ConvertOptions(
                    column_types={
                        name: pa.float64() if name in doubles else pa.string()
                        for name in names
                    },
                    include_columns=wanted,
                    null_values=[""],
                    strings_can_be_null=True,
                    check_utf8=False,
                ),
            )
            for batch in reader:
                n_rows += len(batch)
                if skip < len(batch):
                    yield batch.slice(skip)
                skip = max(0, skip - len(batch))
        # Most files have one row per line. If lines are empty or break within quotes,
        # check the number of rows with another parser.
        is_sound = is_complete and not rows.has_nul
        if not is_sound or (n_rows != rows.n_lines and n_rows != self._count_rows()):
            raise pa.ArrowInvalid("cannot tell where rows begin and end")

    def _open_rows(self, end: str) -> _Utf8:
        file = open_bytes(self.path)
        decoder = _decoder(self.encoding)
        head = decoder.decode(file.read(HEAD))
        has_ascii = self.encoding != "utf-16"
        return _Utf8(file, decoder, has_ascii, start=head[self._data_start :], end=end)

    def _read_header(self, text: str, is_whole: bool) -> tuple[list[str], int]:
        """Return the header's cells, and the offset at which the rows start."""
        lines = io.StringIO(text, newline="")
        with _long_cells():
            for row in _rows(lines, self.separator):
                if not is_whole and lines.tell() == len(text):
                    raise ValueError(
                        f"{self.path}, line {row.line}: the header is longer than "
                        f"{HEAD >> 20} MB; is a quote not closed?"
                    )
                self._check_text(row)
                return row.cells, lines.tell()
        raise ValueError(f"{self.path} is empty")

    def _count_rows(self) -> int:
        """Count the rows with Python's csv parser; raise an error for a bad line."""
        n_rows, line = -1, 0
        with open_bytes(self.path) as file, _long_cells():
            errors = _errors(self.encoding)
            lines = io.TextIOWrapper(file, self.encoding, errors, newline="")
            try:
                for row in _rows(lines, self.separator):
                    self._check_text(row, len(self.header))
                    self._check_width(row, line if n_rows >= 0 else None)
                    n_rows, line = n_rows + 1, row.last_line
            except csv.Error:
                raise ValueError(
                    f"{self.path} has a row longer than {LONGEST_ROW >> 20} MB after line "
                    f"{line}; is a quote not closed?"
                ) from None
        return n_rows

    def _check_width(self, row: _Row, line_before: int | None) -> None:
        width, n_cells = len(self.header), len(row.cells)
        if n_cells != width:
            start = self.separator.join(row.cells)[:100]
            is_cut = n_cells < width and not row.text.endswith(("\n", "\r"))
            raise ValueError(
                f"{self.path}, line {row.line} has {counted(n_cells, 'cell')}, but the "
                f"header has {width:,}: {start!r}{'; was the file cut off?' * is_cut}"
            )
        if width == 1 and line_before is not None and row.line > line_before + 1:
            raise ValueError(
                f"{self.path}, line {line_before + 1} is empty, which is ambiguous in a "
                f'table with one column; write "" for a missing value, or remove the line'
            )

    def _check_text(self, row: _Row, width: int = 0) -> None:
        """Raise an error for binary data, and for a missing quote that merges rows.

        Cells may contain line breaks. But if a quote is missing, the next quote closes the
        cell and is rarely followed by a delimiter, or the cell contains whole rows.
        """
        if "\0" in row.text:
            raise ValueError(f"{self.path}, line {row.line}: {NUL}")
        if row.is_open:
            raise ValueError(
                f"{self.path}, line {row.line}: the quote opened here is never closed; was "
                f"the file cut off?"
            )
        if row.line == row.last_line:
            return
        lines = list(io.StringIO(row.text, newline=""))
        inner = (next(csv.reader([line], delimiter=self.separator)) for line in lines[1:-1])
        are_rows = (len(lines) - 2) * (width - 1) >= ROW_SIGNS and all(
            len(cells) == width for cells in inner
        )
        try:
            next(csv.reader(lines, delimiter=self.separator, strict=True))
        except csv.Error:
            are_rows = True
        if are_rows:
            raise ValueError(
                f"{self.path}, line {row.line}: the quote opened here is only closed in "
                f"line {row.last_line}, and the text in between looks like rows; close the "
                f"quote, or double it if it is part of the text"
            )


class _Row(NamedTuple):
    """A non-empty row, and the lines that it spans."""

    line: int
    last_line: int
    cells: list[str]
    text: str
    is_open: bool


def _rows(lines: Iterable[str], separator: str) -> Iterator[_Row]:
    """Parse lines, which keep their line endings, into rows."""
    seen: list[str] = []
    at_end = False

    def lines_and_end() -> Iterator[str]:
        nonlocal at_end
        for line in lines:
            seen.append(line)
            yield line
        at_end = True
        yield "end"  # a separate row, unless a quote is open

    reader = csv.reader(lines_and_end(), delimiter=separator)
    line = 1
    for cells in reader:
        if not seen:
            return
        if cells:
            yield _Row(line, line + len(seen) - 1, cells, "".join(seen), at_end)
        line += len(seen)
        seen.clear()


@contextmanager
def _long_cells() -> Iterator[None]:
    limit = csv.field_size_limit(LONGEST_ROW)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


class _Utf8(io.RawIOBase):
    """A file's text as UTF-8, followed by an end marker; counts the lines."""

    def __init__(
        self, file: Any, decoder: Any, has_ascii: bool, *, start: str, end: str
    ) -> None:
        self._file, self._decoder, self._has_ascii = file, decoder, has_ascii
        self._end, self._tail, self.n_lines = f"{end}\n".encode(), b"\n", 0
        self.has_nul = False
        # Start with an empty line, or pyarrow strips a byte order mark from the first cell.
        self._ready = b"\n" + self._counted(start.encode())

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while len(self._ready) < 2 and self._end:
            self._ready += self._more(size)
        # Return no more than asked for: the caller's buffer may be full. Never end with
        # CR: if the next chunk starts with LF, pyarrow drops it, even within quotes.
        last = len(self._ready) if size < 0 else min(size, len(self._ready))
        last -= last > 1 and self._ready[last - 1 : last] == b"\r"
        data, self._ready = self._ready[:last], self._ready[last:]
        return data

    def _more(self, size: int) -> bytes:
        data: bytes = self._file.read(size)
        if not data:
            last = self._counted(self._decoder.decode(b"", True).encode())
            if not self._tail.endswith((b"\n", b"\r")):
                last += self._counted(b"\n")
            # Trailing empty lines are common, and no reason to count all rows again.
            self.n_lines -= _count_breaks(self._tail[len(self._tail.rstrip(b"\r\n")) :]) - 1
            end, self._end = self._end, b""
            return last + end
        # Most files are ASCII; the check is cheap.
        if not (self._has_ascii and data.isascii() and not self._decoder.getstate()[0]):
            data = self._decoder.decode(data).encode()
        return self._counted(data)

    def _counted(self, data: bytes) -> bytes:
        """Count the lines in the data, with any line ending, and return the data."""
        self.has_nul = self.has_nul or 0 in data
        self.n_lines += _count_breaks(data)
        self.n_lines -= self._tail.endswith(b"\r") and data.startswith(b"\n")
        self._tail = (self._tail + data[-TAIL:])[-TAIL:]
        return data

    def close(self) -> None:
        self._file.close()
        super().close()


def _count_breaks(data: bytes) -> int:
    n_breaks = data.count(b"\n")
    if b"\r" in data:
        n_breaks += data.count(b"\r") - data.count(b"\r\n")
    return n_breaks


ODD_BYTES = "damvi-odd-bytes"
KANA = re.compile("[\u3040-\u30ff年月日時分]")


def _odd_byte(error: UnicodeError) -> tuple[str, int]:
    """Decode a byte that is not valid UTF-8 as Windows-1252."""
    assert isinstance(error, UnicodeDecodeError)
    odd = error.object[error.start : error.end]
    try:
        return odd.decode("cp1252"), error.end
    except UnicodeDecodeError:
        return odd.decode("latin-1"), error.end


codecs.register_error(ODD_BYTES, _odd_byte)


def _errors(encoding: str) -> str:
    return "strict" if encoding == "utf-16" else ODD_BYTES


def _decoder(encoding: str) -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder(encoding)(_errors(encoding))


def _find_encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    kept = len(decoder.decode(head).encode())
    cut = len(decoder.getstate()[0])  # the last character may be incomplete
    n_ascii = len(head.translate(None, bytes(range(128, 256))))
    # A stray byte does not turn UTF-8 into Windows-1252.
    n_utf8, n_odd = kept - n_ascii, len(head) - cut - kept
    if n_odd <= n_utf8:
        return "utf-8-sig"
    return "cp932" if _is_japanese(head) else "cp1252"


def _is_japanese(head: bytes) -> bool:
    """Whether the bytes are Shift-JIS text; kana do not occur in other text by chance."""
    try:
        text = codecs.getincrementaldecoder("cp932")().decode(head)
    except UnicodeDecodeError:
        return False
    others = sum(not letter.isascii() for letter in text)
    return len(KANA.findall(text)) > 0.05 * others


def _find_separator(text: str) -> str:
    """Return the delimiter that splits the header and the rows into equally many cells.

    A column name may contain a comma, as in "Amount, EUR", though the delimiter is ";".
    """
    best, most = ",", (0.0, 1)
    for mark in ",;\t|":
        widths = [len(row) for row in _first_rows(text, mark)]
        # The last line may be incomplete.
        rows = widths[1:-1] or widths[1:]
        alike = sum(width == widths[0] for width in rows) / max(1, len(rows))
        if widths and widths[0] > 1 and (alike, widths[0]) > most:
            best, most = mark, (alike, widths[0])
    return best


def _find_decimal(text: str, separator: str) -> str:
    """Return the comma if more cells contain one than a point."""
    if separator == ",":
        return "."
    cells = [cell for row in _first_rows(text, separator)[1:] for cell in row]
    commas = sum(COMMA.fullmatch(cell) is not None for cell in cells)
    points = sum(POINT.fullmatch(cell) is not None for cell in cells)
    return "," if commas > points else "."


def _first_rows(text: str, separator: str) -> list[list[str]]:
    rows: list[list[str]] = []
    with suppress(csv.Error):  # a cell too long for this parser
        for row in _rows(io.StringIO(text, newline=""), separator):
            rows.append(row.cells)
            if len(rows) == HEAD_ROWS:
                break
    return rows


# JSON.


def read_json(path: Path, most: int) -> Iterator[pd.DataFrame]:
    """Read a list of objects at once, or objects by line, up to ``most`` rows at a time.

    Keys may be missing. No types are guessed; pandas would parse columns as dates by their
    names.
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
        while lines := list(itertools.islice(numbered, most)):
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
        raise ValueError(f"{path} is an empty list")
    return pd.DataFrame.from_records([_flat(record) for record in records])


def _flat(record: dict[str, Any], within: str = "") -> dict[str, Any]:
    """Flatten nested records: ``b`` within ``a`` becomes ``a.b``."""
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
