"""The feature columns of a table, as numbers; what was done to each is noted."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..tables.encoding import find_comma, find_date_format, numbers_in
from .files import need

if TYPE_CHECKING:
    import pandas as pd

MOST_VALUES = 20
"""Text with more distinct values than this is dropped, not encoded."""

# Where the rows' own numbers are found, if they go up one by one.
NUMBERING = re.compile(r"unnamed: \d+|(.*[ _])?(id|index|number|no|nr)|row.*|#")

_SAID = {
    "encoded": "Text columns made one 0/1 column a value: {}.",
    "holes": "Took marks such as '?' as missing in {}.",
    "infinite": "Took infinite values as missing in {}.",
    "wordy": f"Dropped text columns of more than {MOST_VALUES} values: {{}}.",
    "dates": "Dropped dates: {}.",
    "numbering": "Dropped the rows' numbers: {}.",
    "constant": "Dropped constant columns: {}.",
}


def as_numbers(
    frame: pd.DataFrame, notes: list[str], keep_constant: bool = False
) -> tuple[NDArray[np.float64], list[str]]:
    """Return the table as float64, and the names of its columns.

    Numbers stay, missing ones as NaN. Bools become 0/1; text of few values one 0/1 column
    a value. Dates, other text and constant columns are dropped.
    """
    done: dict[str, list[str]] = defaultdict(list)
    made: dict[str, NDArray[np.float64]] = {}
    for name in frame.columns:
        new = _features(str(name), frame[name], done)
        if new and not keep_constant and all(_is_constant(v) for v in new.values()):
            done["constant"].append(repr(name))
        else:
            made |= new
    notes += [said.format(_few(done[what])) for what, said in _SAID.items() if done[what]]
    if not made:
        reason = " ".join(notes) or "The target is the only column."
        raise ValueError(f"no feature is left. {reason}")
    data = np.empty((len(frame), len(made)))
    for j, name in enumerate(list(made)):
        data[:, j] = made[name]
    return data, list(made)


def _features(
    name: str, column: pd.Series, done: dict[str, list[str]]
) -> dict[str, NDArray[np.float64]]:
    """Return what becomes of one column: none, one or several of numbers."""
    types = need("pandas").api.types
    if types.is_bool_dtype(column.dtype) or types.is_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if np.isinf(values).any():
            done["infinite"].append(repr(name))
            values = np.where(np.isinf(values), np.nan, values)
        if NUMBERING.fullmatch(name.lower()) and (np.diff(values) == 1).all():
            done["numbering"].append(repr(name))
            return {}
        return {name: values}
    if types.is_datetime64_any_dtype(column.dtype):
        done["dates"].append(repr(name))
        return {}
    text = column.astype("string")
    if not isinstance(column.dtype, need("pandas").CategoricalDtype):
        numbers = _numbers_in(text)
        if numbers is not None:
            if np.isnan(numbers).sum() > column.isna().sum():
                done["holes"].append(repr(name))
            return {name: numbers}
        if find_date_format(text):
            done["dates"].append(repr(name))
            return {}
    values_of = sorted(text.dropna().unique())
    if len(values_of) > MOST_VALUES:
        done["wordy"].append(f"{name!r} ({len(values_of):,})")
        return {}
    if not values_of:
        return {name: np.full(len(text), np.nan)}
    encoded = {
        f"{name}={value}": (text == value).fillna(False).to_numpy(dtype=np.float64)
        for value in values_of
    }
    if len(values_of) > 1 or text.isna().any():
        done["encoded"].append(f"{name!r} ({len(values_of)})")
    return encoded


def _numbers_in(text: pd.Series) -> NDArray[np.float64] | None:
    """Numbers, or true and false, that came as text; None if they are something else."""
    values, odd = numbers_in(text, find_comma(text))
    return None if odd.any() or np.isnan(values).all() else values


def _is_constant(values: NDArray[np.float64]) -> bool:
    missing = np.isnan(values)
    if missing.any():
        return bool(missing.all())
    return bool((values == values[0]).all())


def _few(items: list[str]) -> str:
    more = f" and {len(items) - 10:,} more" if len(items) > 10 else ""
    return ", ".join(items[:10]) + more
