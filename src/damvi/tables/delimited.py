"""Delimited text (CSV, TSV): its encoding, separator, decimal sign, header and rows.

pyarrow parses the rows. What it cannot know is settled here: how the file is written, and
that no row is lost or made up without an error that names the line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 20
"""Bytes that are parsed at a time: few, so that they stay in a processor's cache."""
LONGEST_ROW = 1 << 26
HEAD = 1 << 20
"""Bytes from which encoding, separator, decimal sign and header are found."""
HEAD_ROWS = 500
END = "\x03"
"""A row of these follows each file. If it is not found, a quote before it is open."""
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
        with _open(path) as file:
            head = file.read(HEAD)
            is_whole = not file.read(1)
        self.encoding = _find_encoding(head)
        text = _decoder(self.encoding).decode(head, is_whole)
        is_tsv = ".tsv" in path.name.lower()
        self.separator = "\t" if is_tsv else _find_separator(text)
        self.decimal = _find_decimal(text, self.separator)
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
                    raise self._locate(error) from None

    def _parse(
        self, names: list[str], wanted: list[str], block: int, skip: int
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        end = self.separator.join([END] * (len(names) + 1))
        is_complete = False

        def on_wrong_width(row: Any) -> str:
            nonlocal is_complete
            if row.text != end or is_complete:
                return "error"
            is_complete = True
            return "skip"

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
                if skip < len(batch):
                    yield batch.slice(skip)
                skip = max(0, skip - len(batch))
        if not is_complete:
            raise pa.ArrowInvalid("a quote is not closed")

    def _open_rows(self, end: str) -> _Utf8:
        file = _open(self.path)
        decoder = _decoder(self.encoding)
        head = decoder.decode(file.read(HEAD))[self._data_start :]
        has_ascii = self.encoding != "utf-16"
        return _Utf8(file, decoder, has_ascii, start=head, end=f"\n{end}\n")

    def _read_header(self, text: str, is_whole: bool) -> tuple[list[str], int]:
        """The header's cells, and the place in the text where the rows start."""
        lines = io.StringIO(text, newline="")
        for line, row, is_open in _numbered_rows(lines, self.separator):
            if not is_whole and lines.tell() == len(text):
                raise ValueError(
                    f"{self.path}, line {line}: the header has more than {HEAD >> 20} MB; "
                    f"is there a quote that is not closed?"
                )
            if is_open:
                raise ValueError(f"{self.path}, line {line}: {OPEN_QUOTE}")
            return row, lines.tell()
        raise ValueError(f"{self.path} is empty")

    def _locate(self, error: Exception) -> Exception:
        """The error with its line. pyarrow, on several threads, does not know it."""
        width = len(self.header)
        line, limit = 1, csv.field_size_limit(LONGEST_ROW)
        try:
            with _open(self.path) as file:
                lines = io.TextIOWrapper(file, self.encoding, ODD_BYTES, newline="")
                for line, row, is_open in _numbered_rows(lines, self.separator):
                    if is_open:
                        return ValueError(f"{self.path}, line {line}: {OPEN_QUOTE}")
                    if len(row) != width:
                        cells = "1 cell" if len(row) == 1 else f"{len(row):,} cells"
                        start = self.separator.join(row)[:100]
                        return ValueError(
                            f"{self.path}, line {line} has {cells}, but the header has "
                            f"{width:,}: {start!r}"
                        )
        except csv.Error:
            return ValueError(
                f"{self.path} has a row of more than {LONGEST_ROW >> 20} MB after line "
                f"{line}; is there a quote that is not closed?"
            )
        finally:
            csv.field_size_limit(limit)
        return error


OPEN_QUOTE = "a quote is opened here that is not closed"


def _numbered_rows(
    lines: Iterable[str], separator: str
) -> Iterator[tuple[int, list[str], bool]]:
    """Each row that is not empty, the line it starts in, and whether its quote is open.

    Lines may end in any way, so they come with their ends.
    """
    at_end = False

    def lines_and_end() -> Iterator[str]:
        nonlocal at_end
        yield from lines
        at_end = True
        yield END

    reader = csv.reader(lines_and_end(), delimiter=separator)
    line = 1
    for row in reader:
        if at_end and line == reader.line_num:
            return
        if row:
            yield line, row, at_end
        line = reader.line_num + 1


def _open(path: Path) -> Any:
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    return opened(path, "rb")


class _Utf8(io.RawIOBase):
    """A file's text in UTF-8, with a start and an end of our own."""

    def __init__(
        self, file: Any, decoder: Any, has_ascii: bool, *, start: str, end: str
    ) -> None:
        self._file, self._decoder, self._has_ascii = file, decoder, has_ascii
        self._ready, self._end = start.encode(), end.encode()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while not self._ready and self._end:
            self._ready = self._more(size)
        # No more than asked for: there may be no room for it.
        data, self._ready = self._ready[:size], self._ready[size:]
        return data

    def _more(self, size: int) -> bytes:
        data: bytes = self._file.read(size)
        if not data:
            last, self._end = self._end, b""
            return bytes(self._decoder.decode(b"", True).encode() + last)
        if self._has_ascii and data.isascii() and not self._decoder.getstate()[0]:
            return data  # most files are, and this costs next to nothing
        return bytes(self._decoder.decode(data).encode())

    def close(self) -> None:
        self._file.close()
        super().close()


ODD_BYTES = "damvi-odd-bytes"


def _odd_byte(error: UnicodeError) -> tuple[str, int]:
    """A byte that is no text: of Windows, as one in a file that else is UTF-8 will be."""
    assert isinstance(error, UnicodeDecodeError)
    odd = error.object[error.start : error.end]
    try:
        return odd.decode("cp1252"), error.end
    except UnicodeDecodeError:
        return odd.decode("latin-1"), error.end


codecs.register_error(ODD_BYTES, _odd_byte)


def _decoder(encoding: str) -> codecs.IncrementalDecoder:
    errors = "strict" if encoding == "utf-16" else ODD_BYTES
    return codecs.getincrementaldecoder(encoding)(errors)


def _find_encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:  # the last character may be cut in half
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


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
        for _, row, _ in _numbered_rows(io.StringIO(text, newline=""), separator):
            rows.append(row)
            if len(rows) == HEAD_ROWS:
                break
    return rows
