"""Numbers and dates as people write them: how a column writes them, and what they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Comma = Literal["", "thousands", "decimal"]

MISSING = ("", "?", "-", "--", ".", "na", "n/a", "nan", "none", "null", "unknown")
"""What people write into a column of numbers where there is none."""
BLANKS = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
BLANKS += "".join(map(chr, range(0x2000, 0x200B)))
"""What ``float`` overlooks around a number; ``strip`` takes \x1c to \x1f away as well."""
CURRENCY = rf"^[$€£][{BLANKS}]*|[{BLANKS}]*[$€£%]$"
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
DECIMAL = re.compile(r"[-+]?\d+,\d+")
ENOUGH = 0.99
"""The share of values that must be understood; the rest count as missing."""
DATES = (
    "ISO8601",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%Y/%m/%d",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d-%b-%Y",
    "%d %b %Y",
    "%b %d, %Y",
    "%H:%M:%S",
    "%H:%M",
)
DATE_PARTS = {"month": 350, "day of month": 60, "weekday": 14, "hour": 2}
"""What of a date comes again, and the days after which it has been seen twice or more.

Within less, a part is the day itself in disguise: a model learns what was, and tells it of
days that have not come.
"""
SINCE = "days since "
"""Begins a part of a date that counts from another column."""


# Numbers


def as_numbers(
    column: pd.Series | NDArray[np.float64], comma: Comma
) -> NDArray[np.float64]:
    """A column of any type as doubles; NaN for what is no finite number."""
    from pandas.api import types

    if isinstance(column, np.ndarray):
        values = column
    elif types.is_bool_dtype(column.dtype) or types.is_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    elif types.is_timedelta64_dtype(column.dtype):
        values = column.dt.total_seconds().to_numpy(np.float64)
    else:
        values, _ = numbers_in(column, comma)
    finite = np.isfinite(values)
    return values if finite.all() else np.where(finite, values, np.nan)


def numbers_in(
    text: pd.Series, comma: Comma = ""
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The numbers in a column of text, and which cells are neither number nor missing.

    Spaces around a number, a currency before or after it and a per cent sign are
    overlooked; true is 1 and false 0.

    Examples
    --------
    >>> import pandas as pd
    >>> values, odd = numbers_in(pd.Series([" 3.5", "12%", "?", "true", "high"]))
    >>> values, odd
    (array([ 3.5, 12. ,  nan,  1. ,  nan]), array([False, False, False, False,  True]))
    """
    import pandas as pd

    plain = text.astype("string").str.strip(BLANKS).str.lower()
    missing = (plain.isna() | plain.isin(MISSING)).to_numpy(dtype=bool)
    plain = plain.str.replace(CURRENCY, "", regex=True)
    if comma:
        plain = plain.str.replace(",", "" if comma == "thousands" else ".", regex=False)
    plain = plain.replace({"true": "1", "false": "0"})
    values = pd.to_numeric(plain, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    values = np.where(missing, np.nan, values)
    return values, ~missing & np.isnan(values)


def plain_numbers(cells: Any) -> NDArray[np.float64] | None:
    """The same for an Arrow column, and fast; None if there is more to a cell than digits.

    Each number is the double nearest to it, as Python's own ``float`` gives it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        numbers = cells.cast(pa.float64())
    except pa.ArrowInvalid:
        cells = pc.utf8_trim(cells, BLANKS)
        missing = pc.is_in(pc.utf8_lower(cells), pa.array(MISSING))
        try:
            numbers = pc.if_else(missing, None, cells).cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    values: NDArray[np.float64] = numbers.to_numpy()
    return values


def find_comma(text: pd.Series) -> Comma:
    """What a comma within these numbers means, as far as all of them agree."""
    some = text.dropna().astype(str).str.replace(CURRENCY, "", regex=True)
    some = some.str.strip(BLANKS)
    with_comma = some[some.str.contains(",", regex=False)].unique().tolist()
    if not with_comma:
        return ""
    if all(THOUSANDS.fullmatch(value) for value in with_comma):
        return "thousands"
    return "decimal" if all(DECIMAL.fullmatch(value) for value in with_comma) else ""


# Dates


def find_date_format(text: pd.Series) -> str:
    """The format that these texts have as dates or times; "" if they are none."""
    distinct = text.dropna().drop_duplicates()
    first = distinct.head(1000)
    if not len(first) or not first.str.contains(r"\d[-/:. ][\d\w]").all():
        return ""
    for form in DATES:
        # The first ones say quickly what it is not.
        if all(dates_in(some, form).notna().mean() >= ENOUGH for some in (first, distinct)):
            return form
    return ""


def dates_in(column: pd.Series, form: str) -> pd.Series:
    """The dates in a column, NaT where there is none."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return pd.to_datetime(column, utc=True)
    text = column.astype("string").str.strip()
    return pd.to_datetime(text, format=form or "ISO8601", errors="coerce", utc=True)


def date_parts(form: str, dates: pd.Series) -> tuple[str, ...]:
    """The calendar parts of these dates that have been seen to come again."""
    if form.startswith("%H"):
        return ("hour",)
    known = dates.dropna()
    low, high = known.quantile([0.01, 0.99])
    days = (high - low).days
    at_midnight = (known == known.dt.normalize()).all()
    parts = [part for part, least in DATE_PARTS.items() if days >= least]
    return tuple(part for part in parts if part != "hour" or not at_midnight)


def dates_of_fit(column: pd.Series, form: str) -> pd.Series:
    """The dates as they were written at fit; what is not so may still be ISO."""
    dates = dates_in(column, form)
    others = dates.isna() & column.notna()
    if form in ("", "ISO8601") or not others.any():
        return dates
    return dates.fillna(dates_in(column[others], "ISO8601"))


def date_part(dates: pd.Series, part: str) -> NDArray[np.float64]:
    """One number of each date, NaN where there is none."""
    import pandas as pd

    values: Any
    if part == "day":
        values = (dates - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(days=1)
    elif part == "hour":
        values = (dates - dates.dt.normalize()) / pd.Timedelta(hours=1)
    elif part == "day of month":
        values = dates.dt.day
    else:
        values = dates.dt.month if part == "month" else dates.dt.day_of_week
    return np.asarray(values.to_numpy(np.float64, na_value=np.nan))


def days_between(start: pd.Series, end: pd.Series) -> NDArray[np.float64]:
    """The days from the one to the other, with fractions, NaN where either is missing."""
    import pandas as pd

    days = (end - start) / pd.Timedelta(days=1)
    return np.asarray(days.to_numpy(np.float64, na_value=np.nan))


def in_words(form: str) -> str:
    """How a date is written, for the user to read."""
    words = {"%d": "day", "%m": "month", "%Y": "year", "%H": "hour", "%M": "minute"}
    words |= {"%S": "second", "%b": "month"}
    for code, word in words.items():
        form = form.replace(code, word)
    return form
