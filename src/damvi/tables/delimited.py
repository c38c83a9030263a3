"""Delimited text (CSV, TSV): its encoding, separator, decimal sign, header and rows.

pyarrow parses the rows. What it cannot know is settled here: how the file is written, and
that no row is lost or made up without an error that names the line.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..messages import counted
from .opening import open_bytes, table_name

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 20
"""Bytes that are parsed at a time: few, so that they stay in a processor's cache."""
LONGEST_ROW = 1 << 26
HEAD = 1 << 20
"""Bytes from which encoding, separator, decimal sign and header are found."""
TAIL = 1 << 10
"""Bytes in which empty lines at the end of a file are looked for."""
HEAD_ROWS = 500
ROW_SIGNS = 8
"""Separators in the lines of one cell, from which on these lines look like rows."""
NUL = "there is a NUL in it; is this text, or UTF-16 without a byte order mark?"
POINT = re.compile(r"\s*[-+]?\d+\.\d+\s*")
COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")


class DelimitedFile:
    """A text file of cells under a header.

    Attributes
    ----------
    path : Path
    encoding : {"utf-8-sig", "utf-16", "cp1252"}
        UTF-8 may have a byte order mark, UTF-16 must have one.
    separator : {",", ";", "\\t", "|"}
    decimal : {".", ","}
        The comma, where numbers have one and cells are separated by something else.
    header : list of str
        The cells of the first line that is not empty.
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

    def batches(self, names: list[str], wanted: list[str]) -> Iterator[pa.RecordBatch]:
        """The rows in order, all cells as text; an empty cell is null.

        Parameters
        ----------
        names : list of str
            A name for each column of the file.
        wanted : list of str
            Those to give, in this order.
        """
        import pyarrow as pa

        n_rows = 0
        for block in (BLOCK, LONGEST_ROW):
            try:
                for batch in self._parse(names, wanted, block, n_rows):
                    n_rows += len(batch)
                    yield batch
                return
            except pa.ArrowInvalid as error:
                # A row that is longer than a block is parsed again in a longer one.
                if block == LONGEST_ROW or "straddling" not in str(error):
                    self._count_rows()  # pyarrow, on several threads, knows no lines
                    raise

    def _parse(
        self, names: list[str], wanted: list[str], block: int, skip: int
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        # A row of our own follows the file. If it is not found, a quote before it is open.
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
                    column_types=dict.fromkeys(names, pa.string()),
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
        # Most files have a row a line. Where lines are empty or break within quotes,
        # another parser has to find the same rows.
        is_sound = is_complete and not rows.has_nul
        if not is_sound or (n_rows != rows.n_lines and n_rows != self._count_rows()):
            raise pa.ArrowInvalid("its rows cannot be told apart")

    def _open_rows(self, end: str) -> _Utf8:
        file = open_bytes(self.path)
        decoder = _decoder(self.encoding)
        head = decoder.decode(file.read(HEAD))
        has_ascii = self.encoding != "utf-16"
        return _Utf8(file, decoder, has_ascii, start=head[self._data_start :], end=end)

    def _read_header(self, text: str, is_whole: bool) -> tuple[list[str], int]:
        """The header's cells, and the place in the text where the rows start."""
        lines = io.StringIO(text, newline="")
        with _long_cells():
            for row in _rows(lines, self.separator):
                if not is_whole and lines.tell() == len(text):
                    raise ValueError(
                        f"{self.path}, line {row.line}: the header has more than "
                        f"{HEAD >> 20} MB; is there a quote that is not closed?"
                    )
                self._check_text(row)
                return row.cells, lines.tell()
        raise ValueError(f"{self.path} is empty")

    def _count_rows(self) -> int:
        """The rows as Python's own parser has them; an error for the first wrong line."""
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
                    f"{self.path} has a row of more than {LONGEST_ROW >> 20} MB after line "
                    f"{line}; is there a quote that is not closed?"
                ) from None
        return n_rows

    def _check_width(self, row: _Row, line_before: int | None) -> None:
        width, n_cells = len(self.header), len(row.cells)
        if n_cells != width:
            start = self.separator.join(row.cells)[:100]
            raise ValueError(
                f"{self.path}, line {row.line} has {counted(n_cells, 'cell')}, but the "
                f"header has {width:,}: {start!r}"
            )
        if width == 1 and line_before is not None and row.line > line_before + 1:
            raise ValueError(
                f"{self.path}, line {line_before + 1} is empty, and in a table of one "
                f'column this may be a row or none; write "" for a missing value, or '
                f"remove the line"
            )

    def _check_text(self, row: _Row, width: int = 0) -> None:
        """An error for what is no text, and for a quote that has made one row of several.

        A cell may well have line breaks in it. But where a quote is missing, the next one
        closes the cell, and is seldom followed by a separator; or whole rows are within it.
        """
        if "\0" in row.text:
            raise ValueError(f"{self.path}, line {row.line}: {NUL}")
        if row.is_open:
            raise ValueError(
                f"{self.path}, line {row.line}: a quote is opened here that is not closed"
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
                f"{self.path}, line {row.line}: a quote is opened here that is closed in "
                f"line {row.last_line} only, and what is between looks like rows; close "
                f"it, or write a quote that belongs to the text twice"
            )


class _Row(NamedTuple):
    """A row that is not empty, with the lines it is written in."""

    line: int
    last_line: int
    cells: list[str]
    text: str
    is_open: bool


def _rows(lines: Iterable[str], separator: str) -> Iterator[_Row]:
    """The rows of lines that come with their ends, which may be of any kind."""
    seen: list[str] = []
    at_end = False

    def lines_and_end() -> Iterator[str]:
        nonlocal at_end
        for line in lines:
            seen.append(line)
            yield line
        at_end = True
        yield "end"  # is a row of its own, unless a quote is open

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
    """A file's text in UTF-8, with an end of our own; its lines are counted."""

    def __init__(
        self, file: Any, decoder: Any, has_ascii: bool, *, start: str, end: str
    ) -> None:
        self._file, self._decoder, self._has_ascii = file, decoder, has_ascii
        self._end, self._tail, self.n_lines = f"{end}\n".encode(), b"\n", 0
        self.has_nul = False
        # An empty line, lest pyarrow take a byte order mark from the first cell.
        self._ready = b"\n" + self._counted(start.encode())

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while len(self._ready) < 2 and self._end:
            self._ready += self._more(size)
        # No more than asked for: there may be no room for it. And no CR at the end: if the
        # next part begins with LF, pyarrow takes it away, be it within quotes or not.
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
            # Empty lines at the end are common, and no reason to count all rows again.
            self.n_lines -= _count_breaks(self._tail[len(self._tail.rstrip(b"\r\n")) :]) - 1
            end, self._end = self._end, b""
            return last + end
        # Most files are ASCII, and this costs next to nothing.
        if not (self._has_ascii and data.isascii() and not self._decoder.getstate()[0]):
            data = self._decoder.decode(data).encode()
        return self._counted(data)

    def _counted(self, data: bytes) -> bytes:
        """The same; its lines are counted, whatever ends them."""
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
    """A byte that is no text: of Windows, as one in a file that else is UTF-8 will be."""
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
    cut = len(decoder.getstate()[0])  # the last character may be cut in half
    n_ascii = len(head.translate(None, bytes(range(128, 256))))
    # An odd byte does not make a file in UTF-8 one of Windows.
    n_utf8, n_odd = kept - n_ascii, len(head) - cut - kept
    if n_odd <= n_utf8:
        return "utf-8-sig"
    return "cp932" if _is_japanese(head) else "cp1252"


def _is_japanese(head: bytes) -> bool:
    """Whether it is text in Shift-JIS: with kana, which no other text has by chance."""
    try:
        text = codecs.getincrementaldecoder("cp932")().decode(head)
    except UnicodeDecodeError:
        return False
    others = sum(not letter.isascii() for letter in text)
    return len(KANA.findall(text)) > 0.05 * others


def _find_separator(text: str) -> str:
    """The mark that parts the header, and the rows after it into as many cells.

    A name may have a comma in it, "Amount, EUR", where semicolons are what separates.
    """
    best, most = ",", (0.0, 1)
    for mark in ",;\t|":
        widths = [len(row) for row in _first_rows(text, mark)]
        # The last line may be cut in the middle.
        rows = widths[1:-1] or widths[1:]
        alike = sum(width == widths[0] for width in rows) / max(1, len(rows))
        if widths and widths[0] > 1 and (alike, widths[0]) > most:
            best, most = mark, (alike, widths[0])
    return best


def _find_decimal(text: str, separator: str) -> str:
    """The comma, if more cells have one than have a point."""
    if separator == ",":
        return "."
    cells = [cell for row in _first_rows(text, separator)[1:] for cell in row]
    commas = sum(COMMA.fullmatch(cell) is not None for cell in cells)
    points = sum(POINT.fullmatch(cell) is not None for cell in cells)
    return "," if commas > points else "."


def _first_rows(text: str, separator: str) -> list[list[str]]:
    rows: list[list[str]] = []
    with suppress(csv.Error):  # a cell that is too long for this reader
        for row in _rows(io.StringIO(text, newline=""), separator):
            rows.append(row.cells)
            if len(rows) == HEAD_ROWS:
                break
    return rows
