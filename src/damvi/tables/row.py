"""Encode a single row quickly, with the same result as a table of one row.

pandas and Arrow take as long for one value as for a thousand. So the most common values
(JSON numbers, strings and nulls, dates in digits) are parsed directly. All others go
through :func:`~damvi.tables.schema.encode`, the slow reference implementation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hashing import find_hashes, text_hashes
from .encoding import Levels, Words
from .schema import OTHER, Column, Schema, encode
from .values import PLAIN, SINCE, numbers_in

Floats = NDArray[np.float64]

MISSING = -1.0
"""Code of a missing category."""
DIGITS = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE]-?[0-9]{1,2})?")
"""A number as in JSON, of unambiguous size."""
LARGEST_WHOLE = 2**63 - 1
"""Largest integer in an int64 column."""
FIRST_YEAR, LAST_YEAR = 1900, 2100
"""Years between which dates and time differences are exact in any unit."""
ISO = ("%Y-%m-%d", *(f"%Y-%m-%d{mark}%H:%M{end}" for mark in "T " for end in ("", ":%S")))
FIELDS = {"%Y": "year", "%y": "year", "%m": "month", "%d": "day"}
FIELDS |= {"%H": "hour", "%M": "minute", "%S": "second"}
EPOCH = datetime(1970, 1, 1).toordinal()


class RowEncoder:
    """Encode single rows as :meth:`Schema.encode <damvi.tables.Schema.encode>` does.

    Parameters
    ----------
    schema : Schema

    Attributes
    ----------
    labels : list
        Categories of each feature; None for numbers.

    Examples
    --------
    >>> from damvi.tables import Column, Schema
    >>> schema = Schema((Column("size", "number"), Column("shop", "category", ("a", "b"))))
    >>> RowEncoder(schema)({"shop": "b", "size": "2.5"})
    array([[2.5, 1. ]])
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.labels: list[Sequence[Any] | None] = []
        self._readers: list[tuple[str, int, _Number | _Category | _Level | _Text]] = []
        dates: list[Column] = []
        for column in schema.used:
            place = len(self.labels)
            self.labels += [None] * len(column.features)
            if column.kind == "date":
                dates.append(column)
                continue
            reader = _reader(column)
            self._readers.append((column.name, place, reader))
            if isinstance(reader, _Category | _Level):
                self.labels[place] = reader.labels
        places = {name: place for place, name in enumerate(schema.features)}
        self._dates = _Dates(dates, places) if dates else None

    def __call__(self, row: Mapping[str, Any]) -> Floats:
        """Return the features, (1, d); categories as codes, -1 if missing.

        Raises
        ------
        ValueError
            If a column that the model uses is missing from the row, or holds a list.
        """
        cells = np.empty((1, len(self.labels)))
        values = cells[0]
        try:
            for name, place, read in self._readers:
                value = row[name]
                if isinstance(value, list | dict | tuple | set):
                    raise _no_value(name, value)
                read(value, values, place)
            if self._dates is not None:
                self._dates(row, values)
        except KeyError:
            self.schema.check(list(row))
            raise
        return cells


def _no_value(name: str, value: Any) -> ValueError:
    kind = type(value).__name__
    return ValueError(f"column {name!r} holds a {kind}; pass one value, or None if missing")


def _one_column(column: Column, value: Any) -> Any:
    """Encode one value with the table encoder."""
    import pandas as pd

    return encode([column], pd.DataFrame([{column.name: value}]), 1)


def _is_missing(value: Any) -> bool:
    return value is None or (type(value) is float and math.isnan(value))


class _Number:
    def __init__(self, column: Column) -> None:
        self.column = column
        self.plain = column.writing == PLAIN

    def __call__(self, value: Any, cells: Floats, place: int) -> None:
        kind = type(value)
        if kind is float:
            number = value
        elif value is None:
            number = math.nan
        elif kind is bool or (kind is int and abs(value) <= LARGEST_WHOLE):
            number = float(value)
        elif kind is str:
            if self.plain and DIGITS.fullmatch(value):
                number = float(value)
            else:
                number = float(numbers_in([value], self.column.writing)[0][0])
        else:
            number = float(_one_column(self.column, value).iat[0, 0])
        cells[place] = number if math.isfinite(number) else math.nan


class _Category:
    def __init__(self, column: Column) -> None:
        self.column, self.labels = column, list(column.categories)
        last = column.categories[-1:] == (OTHER,)
        self.other = float(len(column.categories) - 1) if last else MISSING
        codes = {label: float(code) for code, label in enumerate(column.categories)}
        self.code_of = {"": MISSING} | codes

    def __call__(self, value: Any, cells: Floats, place: int) -> None:
        kind = type(value)
        if kind is str:
            text = value
        elif _is_missing(value):
            cells[place] = MISSING
            return
        elif kind is float:
            text = str(int(value)) if value.is_integer() else str(value)
        elif kind is bool or (kind is int and abs(value) <= LARGEST_WHOLE):
            text = str(value)
        else:
            found = _one_column(self.column, value)
            cells[place] = found[self.column.name].cat.codes.iat[0]
            return
        cells[place] = self.code_of.get(text, self.other)


class _Level:
    def __init__(self, column: Column, levels: Levels) -> None:
        self.column, self.levels = column, levels
        self.labels = range(len(levels) + 1)
        self.n_parts = len(column.parts)

    def __call__(self, value: Any, cells: Floats, place: int) -> None:
        counts = cells[place + 1 : place + 1 + self.n_parts]
        if _is_missing(value) or (type(value) is str and value == ""):
            cells[place], counts[:] = MISSING, np.nan
        elif type(value) in (str, bool, float) or (
            type(value) is int and abs(value) <= LARGEST_WHOLE
        ):
            known = int(find_hashes(self.levels.hashes, text_hashes([value]))[0])
            cells[place] = known + 1
            counts[:] = 1.0 if known < 0 else self.levels.counts[known]
            np.log(counts, out=counts)
        else:
            found = _one_column(self.column, value)
            cells[place] = found[self.column.name].cat.codes.iat[0]
            counts[:] = found.iloc[0, 1:].to_numpy(np.float64)


class _Text:
    def __init__(self, column: Column, words: Words) -> None:
        self.column, self.words = column, words
        self.places = [words.parts.index(part) for part in column.parts]

    def __call__(self, value: Any, cells: Floats, place: int) -> None:
        own = cells[place : place + len(self.places)]
        if _is_missing(value):
            own[:] = np.nan
        elif type(value) is str:
            own[:] = self.words.numbers([value])[0, self.places]
        else:
            own[:] = _one_column(self.column, value).to_numpy(np.float64)[0]


def _reader(column: Column) -> _Number | _Category | _Level | _Text:
    if isinstance(column.encoder, Levels):
        return _Level(column, column.encoder)
    if isinstance(column.encoder, Words):
        return _Text(column, column.encoder)
    return _Number(column) if column.kind == "number" else _Category(column)


class _Dates:
    """Encodes all dates of a row together, since one may count days since another."""

    def __init__(self, columns: list[Column], places: Mapping[str, int]) -> None:
        self.columns = columns
        self.forms = [_forms(column.form) for column in columns]
        self.parts = [
            (places[feature], column.name, part)
            for column in columns
            for feature, part in zip(column.features, column.parts, strict=True)
        ]
        self.places = [place for place, _, _ in self.parts]

    def __call__(self, row: Mapping[str, Any], cells: Floats) -> None:
        found: dict[str, tuple[int, int, datetime] | None] = {}
        for column, forms in zip(self.columns, self.forms, strict=True):
            value = row[column.name]
            if isinstance(value, list | dict | tuple | set):
                raise _no_value(column.name, value)
            if _is_missing(value):
                found[column.name] = None
                continue
            date = _in_digits(value, forms) if type(value) is str else None
            if date is None:
                cells[self.places] = self._slowly(row)
                return
            seconds = 3600 * date.hour + 60 * date.minute + date.second
            found[column.name] = date.toordinal() - EPOCH, seconds, date
        for place, name, part in self.parts:
            own = found[name]
            cells[place] = math.nan if own is None else _part(own, part, found)

    def _slowly(self, row: Mapping[str, Any]) -> Floats:
        import pandas as pd

        raw = pd.DataFrame([{column.name: row[column.name] for column in self.columns}])
        encoded: Floats = encode(self.columns, raw, 1).to_numpy(np.float64)[0]
        return encoded


def _part(
    own: tuple[int, int, datetime],
    part: str,
    found: Mapping[str, tuple[int, int, datetime] | None],
) -> float:
    day, seconds, date = own
    if part.startswith(SINCE):
        other = found[part.removeprefix(SINCE)]
        if other is None:
            return math.nan
        return (86_400 * (day - other[0]) + seconds - other[1]) / 86_400
    if part == "hour":
        return seconds / 3600
    known = {"day": day, "day of month": date.day, "month": date.month}
    return float(known[part] if part in known else date.weekday())


Form = tuple[re.Pattern[str], Callable[[tuple[str, ...]], datetime]]


def _forms(form: str) -> list[Form]:
    """Return parsers for fixed-width numeric dates; none for other formats."""
    return [
        way
        for one in (ISO if form in ("", "ISO8601") else (form,))
        if (way := _form(one)) is not None
    ]


def _form(form: str) -> Form | None:
    names = re.findall("%.", form)
    if not form.isascii() or not names or not {*names} <= FIELDS.keys():
        return None
    pattern = re.escape(form)
    for name in FIELDS:
        digits = "([0-9]{4})" if name == "%Y" else "([0-9]{2})"
        pattern = pattern.replace(re.escape(name), digits)
    return re.compile(pattern), _Assembled(tuple(names))


class _Assembled:
    """Builds a datetime from its parts; times without a date get a dummy day."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def __call__(self, digits: tuple[str, ...]) -> datetime:
        parts: dict[str, Any] = {"year": 1970, "month": 1, "day": 1}
        for name, text in zip(self.names, digits, strict=True):
            number = int(text)
            if name == "%y":  # as in strptime
                number += 1900 if number >= 69 else 2000
            parts[FIELDS[name]] = number
        return datetime(**parts)


def _in_digits(text: str, forms: list[Form]) -> datetime | None:
    for pattern, assemble in forms:
        if match := pattern.fullmatch(text):
            try:
                date = assemble(match.groups())
            except ValueError:  # no such date or time
                return None
            return date if FIRST_YEAR <= date.year <= LAST_YEAR else None
    return None
