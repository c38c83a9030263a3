"""The feature columns of a table, as numbers; what was done to each is noted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .files import need

if TYPE_CHECKING:
    import pandas as pd

MOST_VALUES = 20
"""Text with more distinct values than this is dropped, not encoded."""


def as_numbers(
    frame: pd.DataFrame, notes: list[str], keep_constant: bool = False
) -> tuple[NDArray[np.float64], list[str]]:
    """Return the table as float64, and the names of its columns.

    Numbers stay, missing ones as NaN. Bools become 0/1; text of few values one 0/1 column
    a value. Dates, other text and constant columns are dropped.
    """
    types = need("pandas").api.types
    columns: list[tuple[str, NDArray[np.float64]]] = []
    encoded, dates, wordy, constant = [], [], [], []
    infinite = 0
    for name in frame.columns:
        column = frame[name]
        if types.is_bool_dtype(column.dtype) or types.is_numeric_dtype(column.dtype):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            endless = np.isinf(values)
            if endless.any():
                infinite += int(endless.sum())
                values = np.where(endless, np.nan, values)
            if not keep_constant and len(np.unique(values[~np.isnan(values)])) < 2:
                constant.append(name)
            else:
                columns.append((name, values))
        elif types.is_datetime64_any_dtype(column.dtype) or _looks_like_dates(column):
            dates.append(name)
        else:
            text = column.astype("string")
            values_of = sorted(text.dropna().unique())
            if len(values_of) > MOST_VALUES:
                wordy.append(f"{name!r} ({len(values_of):,} values)")
            elif len(values_of) < 2 and not (len(values_of) and text.isna().any()):
                constant.append(name)
            else:
                encoded.append(f"{name!r} ({len(values_of)})")
                for value in values_of:
                    same = (text == value).to_numpy(dtype=bool, na_value=False)
                    columns.append((f"{name}={value}", same.astype(np.float64)))
    if encoded:
        notes.append(f"Text columns made one 0/1 column a value: {_few(encoded)}.")
    if wordy:
        notes.append(
            f"Dropped text columns of more than {MOST_VALUES} values: {_few(wordy)}."
        )
    if dates:
        notes.append(f"Dropped dates: {_few([repr(name) for name in dates])}.")
    if constant:
        notes.append(f"Dropped constant columns: {_few([repr(c) for c in constant])}.")
    if infinite:
        notes.append(f"Took {infinite:,} infinite values as missing.")
    if not columns:
        said = " ".join(notes) or "The target is the only column."
        raise ValueError(f"no feature is left. {said}")
    names = [name for name, _ in columns]
    data = np.empty((len(frame), len(columns)))
    for j in range(len(columns)):
        data[:, j] = columns[j][1]
    return data, names


def _looks_like_dates(column: pd.Series) -> bool:
    """Whether text is dates, judged by its first values."""
    pandas = need("pandas")
    first = column.dropna().head(50)
    if not len(first) or not all(isinstance(value, str) for value in first):
        # Objects that know the calendar: date, datetime, Timestamp.
        return bool(len(first)) and all(hasattr(value, "isoformat") for value in first)
    if not first.str.contains(r"\d[-/:.]\d", regex=True).all():
        return False
    for form in ("ISO8601", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%H:%M:%S", "%H:%M"):
        if pandas.to_datetime(first, format=form, errors="coerce").notna().all():
            return True
    return False


def _few(items: list[str]) -> str:
    more = f" and {len(items) - 10:,} more" if len(items) > 10 else ""
    return ", ".join(items[:10]) + more
