"""What a column holds, judged by its values and, for ids, by its name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .encoding import OTHER, as_numbers, texts_of
from .leaks import has_gaps_of_a_class, is_the_target, separates
from .parsing import (
    ENOUGH,
    date_parts,
    dates_in,
    find_comma,
    find_date_format,
    numbers_in,
)
from .schema import Column

if TYPE_CHECKING:
    import pandas as pd

ID_NAME = re.compile(
    r"unnamed: \d+|(.*[ _\-.])?(id|ids|uuid|guid|index|idx|key|number|no|nr|row)|row.*|#"
    r"|.*(Id|ID)",
)
FEW_ROWS = 10
"""Below this, that all values differ says nothing."""
SORTED_ROWS = 50
"""From this on, whole numbers that all differ and are sorted are no measurement."""
MOST_CATEGORIES = 100
"""Categories that are told apart; the rarest share one."""
LEAST_ROWS = 10
"""Rows that a category needs for a place of its own, where there are too many."""
FEW_CODES = 20


def infer_column(
    name: str, column: pd.Series, labels: NDArray[Any] | None, keep: bool = False
) -> Column:
    """Judge one column; ``keep`` uses it whatever it looks like."""
    if column.isna().all():
        return Column(name, "dropped", reason="no value in any row")
    judged = _judge(name, column, keep)
    if keep or judged.kind == "dropped" or labels is None:
        return judged
    if is_the_target(judged, column, labels):
        return Column(name, "dropped", reason=f"EQUALS THE TARGET: {LEAK}")
    if judged.kind == "number" and separates(column, judged, labels):
        said = "TELLS THE CLASSES APART ALONE: is it known beforehand?"
        return replace(judged, reason=said)
    if has_gaps_of_a_class(judged, column, labels):
        said = "TELLS A CLASS APART BY ITS GAPS: is it known beforehand?"
        return replace(judged, reason=said)
    return judged


LEAK = "it would give the answer away"


def _judge(name: str, column: pd.Series, keep: bool) -> Column:
    from pandas.api import types

    kind = column.dtype
    if types.is_datetime64_any_dtype(kind):
        return _date(name, column, "")
    if types.is_bool_dtype(kind) or types.is_timedelta64_dtype(kind):
        return _number(name, as_numbers(column, ""), keep)
    if types.is_numeric_dtype(kind) and not types.is_complex_dtype(kind):
        values = as_numbers(column, "")
        raw = column.to_numpy(dtype=np.float64, na_value=np.nan)
        said = "infinite values count as missing" if np.isinf(raw).any() else ""
        return _number(name, values, keep, said=said)
    text = column.astype("string")
    if types.is_object_dtype(kind) and _holds_structures(column):
        return Column(name, "dropped", reason="lists or records, not single values")
    if not hasattr(column, "cat"):
        found = _number_in_text(name, text, keep) or _date_in_text(name, text)
        if found is not None:
            return found
    return _category(name, column, text, keep)


def _number(
    name: str, values: NDArray[np.float64], keep: bool, *, said: str = "", comma: str = ""
) -> Column:
    known = values[~np.isnan(values)]
    if not len(known):
        return Column(name, "dropped", reason="no finite number in any row")
    if not keep:
        if len(known) == len(values) and (known == known[0]).all():
            return Column(name, "dropped", reason="the same value in every row")
        if _are_ids(name, known):
            return Column(name, "dropped", reason="looks like an id")
    return Column(name, "number", reason=said, comma=comma)  # type: ignore[arg-type]


def _are_ids(name: str, known: NDArray[np.float64]) -> bool:
    n = len(known)
    if n < FEW_ROWS or (known != np.floor(known)).any():
        return False
    steps = np.diff(known)
    if not ((steps > 0).all() or (steps < 0).all()):
        ordered = np.sort(known)
        if (np.diff(ordered) == 0).any():
            return False
        consecutive = ordered[-1] - ordered[0] == n - 1
        return ID_NAME.fullmatch(name) is not None or (consecutive and n >= SORTED_ROWS)
    return ID_NAME.fullmatch(name) is not None or n >= SORTED_ROWS


def _number_in_text(name: str, text: pd.Series, keep: bool) -> Column | None:
    some = text.dropna()
    comma = find_comma(some)
    first = numbers_in(some.head(1000), comma)[1]
    if first.mean() > 0.5:
        return None
    values, odd = numbers_in(text, comma)
    known = int((~np.isnan(values)).sum())
    if not known:
        return None
    stripped = some.str.strip()
    if stripped.str.fullmatch(r"0\d+").any() and stripped.nunique() <= FEW_CODES:
        return None  # codes such as 01 and 02
    if odd.any() and (known < ENOUGH * (known + odd.sum()) or some.nunique() <= FEW_CODES):
        return None
    signs = stripped.str.endswith("%")
    if signs.any() and not signs[~np.isnan(values[some.index])].all():
        return None  # 12% beside 0.12: who knows
    notes = []
    if comma:
        notes.append(f"commas read as {'thousands' if comma == 'thousands' else 'points'}")
    if signs.any():
        notes.append("per cent")
    if odd.any():
        what = str(text[odd].iloc[0])
        notes.append(f"{odd.sum():,} not numbers, such as {what!r}, count as missing")
    elif np.isnan(values).sum() > text.isna().sum():
        mark = str(text[np.isnan(values) & text.notna().to_numpy()].iloc[0])
        notes.append(f"{mark!r} counts as missing")
    values = np.where(np.isfinite(values), values, np.nan)
    return _number(name, values, keep, said="; ".join(notes), comma=comma)


def _date_in_text(name: str, text: pd.Series) -> Column | None:
    form = find_date_format(text)
    return _date(name, text, form) if form else None


def _date(name: str, column: pd.Series, form: str) -> Column:
    dates = dates_in(column, form)
    if dates.nunique() == 1 and dates.notna().all():
        return Column(name, "dropped", reason="the same value in every row")
    parts = date_parts(form, dates)
    written = "" if form in ("", "ISO8601") else f", read as {_in_words(form)}"
    said = f"a date: {', '.join(parts)}{written}"
    return Column(name, "date", reason=said, form=form, parts=parts)


def _in_words(form: str) -> str:
    words = {"%d": "day", "%m": "month", "%Y": "year", "%H": "hour", "%M": "minute"}
    words |= {"%S": "second", "%b": "month"}
    for code, word in words.items():
        form = form.replace(code, word)
    return form


def _category(name: str, column: pd.Series, text: pd.Series, keep: bool) -> Column:
    counts = column.value_counts()
    counts = counts[counts > 0].drop("", errors="ignore")  # an empty cell, as in a CSV
    n_known = int(counts.sum())
    if not n_known:
        return Column(name, "dropped", reason="no value in any row")
    if len(counts) == 1 and n_known == len(column) and not keep:
        return Column(name, "dropped", reason="the same value in every row")
    if len(counts) == n_known and n_known >= FEW_ROWS:
        return Column(name, "dropped", reason="each row has its own value, as an id has")
    if len(counts) <= MOST_CATEGORIES:
        categories = tuple(sorted(set(texts_of(counts.index))))
        return Column(name, "category", categories, f"{len(categories)} categories")
    frequent = counts[counts >= LEAST_ROWS].head(MOST_CATEGORIES - 1)
    if frequent.sum() < n_known / 2:
        words = text.dropna().str.count(r"\s+").mean() >= 2
        what = "free text" if words else "text of too many values"
        return Column(name, "dropped", reason=f"{what} ({len(counts):,})")
    categories = (*sorted(set(texts_of(frequent.index))), OTHER)
    said = f"{len(frequent)} of {len(counts):,} categories, the rest as one"
    return Column(name, "category", categories, said)


def _holds_structures(column: pd.Series) -> bool:
    some = column.dropna().head(100)
    return bool(some.map(lambda value: isinstance(value, list | dict | set)).any()) or bool(
        some.map(lambda value: isinstance(value, np.ndarray)).any()
    )
