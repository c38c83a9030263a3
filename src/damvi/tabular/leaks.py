"""Columns that know the target: the answer in disguise."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .encoding import as_categories, as_numbers
from .schema import Column

if TYPE_CHECKING:
    import pandas as pd

Labels = NDArray[Any]

FEW_ROWS = 10
"""Of a class; with fewer, chance alone may part it from the others."""


def is_the_target(judged: Column, column: pd.Series, labels: Labels) -> bool:
    """Whether there are as many values as classes, one for each class.

    Of two classes, a gap in all rows of one and in no other gives the answer away too.
    """
    if judged.kind == "date":
        return False
    values = _values(judged, column)
    gaps = np.isnan(values)
    classes, places = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        return False
    if len(classes) == 2 and gaps.any():
        return _are_the_rows_of(gaps, places)
    codes = np.unique(np.where(gaps, np.inf, values), return_inverse=True)[1]
    pairs = len(np.unique(codes * len(classes) + places))
    return pairs == len(classes) == codes.max() + 1


def has_gaps_of_a_class(judged: Column, column: pd.Series, labels: Labels) -> bool:
    """Whether a column is missing in all rows of one of many classes and in no other.

    The day a case was closed is missing where it is still open.
    """
    classes, places = np.unique(labels, return_inverse=True)
    if len(classes) < 3:
        return False
    gaps = column.isna().to_numpy()
    if judged.kind != "date":
        gaps = np.isnan(_values(judged, column))
    return any(_are_the_rows_of(gaps, places == c) for c in range(len(classes)))


def separates(column: pd.Series, judged: Column, labels: Labels) -> bool:
    """Whether cuts of a number part the classes without an error."""
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2 or counts.min() < FEW_ROWS:
        return False
    values = as_numbers(column, judged.comma)
    if np.isnan(values).any():
        return False
    ranges = sorted(
        (values[labels == label].min(), values[labels == label].max()) for label in classes
    )
    return all(one[1] < next_one[0] for one, next_one in pairwise(ranges))


def _are_the_rows_of(gaps: NDArray[np.bool_], places: Labels) -> bool:
    inside = places.astype(bool)
    return bool((gaps == inside).all() or (gaps != inside).all())


def _values(judged: Column, column: pd.Series) -> NDArray[np.float64]:
    """The column as numbers, categories by their places; NaN for a gap."""
    if judged.kind != "category":
        return as_numbers(column, judged.comma)
    values = np.asarray(as_categories(column, judged.categories).codes, dtype=np.float64)
    values[values < 0] = np.nan
    return values
