"""Blocks of lines as encoded tables: plain ones by kernels, others by pyarrow."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .cells import LINE_FEED, NOT_PLAIN, SKIPPED, copy_spans, count_sign, parse_cells
from .dialect import Dialect
from .encoding import complete, number_features, numbers_and_places
from .lines import Text
from .reading import how_to_read, name_row, tidy_names, unreadable
from .schema import Schema

if TYPE_CHECKING:
    import pandas as pd


class LineParser:
    """What a text file's lines are to a model. Several threads may ask it at a time."""

    def __init__(
        self, path: Path, dialect: Dialect, header: list[str], schema: Schema
    ) -> None:
        self._path, self._dialect, self._schema = path, dialect, schema
        self._header = header
        self.free: deque[Text] = deque()
        self._columns = schema.used
        self._texts = [column for column in self._columns if column.kind != "number"]
        names = tidy_names(path, header)
        self._raw = dict(zip(names, header, strict=True))
        self._slots = np.full(len(names), SKIPPED, np.int64)
        self._is_text = np.zeros(len(names), np.bool_)
        for place, column in numbers_and_places(self._columns):
            self._slots[names.index(column.name)] = place
        for place, column in enumerate(self._texts):
            self._slots[names.index(column.name)] = place
            self._is_text[names.index(column.name)] = True

    def __call__(self, lines: Text) -> pd.DataFrame:
        """The rows, encoded. The memory of the lines is free then."""
        try:
            if not _is_utf8(lines):
                # The first odd byte of the file comes late.
                text = lines.tobytes().decode("latin-1").encode()
                return self._schema.encode(self._by_arrow(text))
            encoded = self._by_kernels(lines)
            if encoded is None:
                return self._schema.encode(self._by_arrow(lines.tobytes()))
            return encoded
        except Exception as error:
            raise unreadable(self._path, error) from error
        finally:
            self.free.append(np.asarray(lines.base))

    def _by_kernels(self, lines: Text) -> pd.DataFrame | None:
        most = count_sign(lines, len(lines), LINE_FEED)
        table = np.empty((most, len(number_features(self._columns))))
        starts, stops = np.empty((2, len(self._texts), most), np.int64)
        separator, point = self._signs
        n = parse_cells(
            lines,
            len(lines),
            separator,
            point,
            self._slots,
            self._is_text,
            table,
            starts,
            stops,
        )
        if n == NOT_PLAIN:
            return None
        texts = {
            column.name: _series(lines, starts[k, :n], stops[k, :n], column.kind)
            for k, column in enumerate(self._texts)
        }
        return complete(self._columns, table[:n], texts)

    @property
    def _signs(self) -> tuple[np.uint8, np.uint8]:
        return np.uint8(ord(self._dialect.separator)), np.uint8(ord(self._dialect.decimal))

    def _by_arrow(self, text: bytes) -> pd.DataFrame:
        import pyarrow as pa
        from pyarrow import csv

        names = [column.name for column in self._columns]
        dialect = Dialect(self._dialect.separator, self._dialect.decimal)
        texts = {self._raw[name]: pa.string() for name in names}
        types = texts | {
            self._raw[column.name]: pa.float64()
            for column in self._columns
            if column.kind == "number"
        }
        how = how_to_read(dialect, types, self._header, threads=False)
        try:
            table = csv.read_csv(pa.BufferReader(text), **how)
            return table.to_pandas().set_axis(names, axis="columns")
        except pa.ArrowInvalid as error:
            if "conversion error" not in str(error):
                raise name_row(self._path, self._dialect, texts, error) from None
        # Some cell is no plain number: all is read as text, and parsed later.
        how = how_to_read(dialect, texts, self._header, threads=False)
        frame = csv.read_csv(pa.BufferReader(text), **how).to_pandas()
        frame = frame.set_axis(names, axis="columns")
        if dialect.decimal == ",":
            for _, column in numbers_and_places(self._columns):
                plain = frame[column.name].str.replace(",", ".", regex=False)
                frame[column.name] = plain
        return frame


def _is_utf8(lines: Text) -> bool:
    if lines.max() < 128:
        return True
    try:
        lines.tobytes().decode()
    except UnicodeDecodeError:
        return False
    return True


def _series(
    lines: Text, starts: NDArray[np.int64], stops: NDArray[np.int64], kind: str
) -> pd.Series:
    """Spans of text as a column; an empty one is missing."""
    import pyarrow as pa

    offsets = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(stops - starts, out=offsets[1:])
    data = np.empty(offsets[-1], np.uint8)
    copy_spans(lines, starts, stops, offsets, data)
    known = np.packbits(stops > starts, bitorder="little")
    parts = [pa.py_buffer(part) for part in (known, offsets, data)]
    column: Any = pa.Array.from_buffers(pa.string(), len(starts), parts)
    # Each distinct category once: they repeat.
    if kind == "category":
        column = column.dictionary_encode()
    return column.to_pandas()
