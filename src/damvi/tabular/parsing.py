"""Numbers and dates in columns of text, as people write them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Comma = Literal["", "thousands", "decimal"]

HOLES = {"", "?", "-", "--", ".", "na", "n/a", "nan", "none", "null", "unknown"}
"""What people write into a column of numbers where there is none."""
CURRENCY = r"^[$€£]\s*|\s*[$€£%]$"
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
PARTS = ("day", "month", "weekday", "hour")


def numbers_in(
    text: pd.Series, comma: Comma = ""
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The numbers, NaN where there is none, and which cells are no number and no gap.

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

    plain = text.astype("string").str.strip().str.lower()
    gap = (plain.isna() | plain.isin(HOLES)).to_numpy(dtype=bool)
    plain = plain.str.replace(CURRENCY, "", regex=True)
    if comma:
        plain = plain.str.replace(",", "" if comma == "thousands" else ".", regex=False)
    plain = plain.replace({"true": "1", "false": "0"})
    values = pd.to_numeric(plain, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    values = np.where(gap, np.nan, values)
    return values, ~gap & np.isnan(values)


def find_comma(text: pd.Series) -> Comma:
    """What a comma within these numbers means, as far as all of them agree."""
    some = text.dropna().astype(str).str.replace(CURRENCY, "", regex=True).str.strip()
    with_comma = some[some.str.contains(",", regex=False)].unique().tolist()
    if not with_comma:
        return ""
    if all(THOUSANDS.fullmatch(value) for value in with_comma):
        return "thousands"
    return "decimal" if all(DECIMAL.fullmatch(value) for value in with_comma) else ""


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
    """What of these dates may tell rows apart."""
    if form.startswith("%H"):
        return ("hour",)
    known = dates.dropna()
    at_midnight = (known == known.dt.normalize()).all()
    return PARTS[:-1] if at_midnight else PARTS


def date_part(dates: pd.Series, part: str) -> NDArray[np.float64]:
    """One number of each date, NaN where there is none."""
    import pandas as pd

    values: Any
    if part == "day":
        values = (dates - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(days=1)
    elif part == "hour":
        values = (dates - dates.dt.normalize()) / pd.Timedelta(hours=1)
    else:
        values = dates.dt.month if part == "month" else dates.dt.day_of_week
    return np.asarray(values.to_numpy(np.float64, na_value=np.nan))
