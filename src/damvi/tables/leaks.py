"""Columns that give the target away."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .encoding import as_categories, as_numbers

if TYPE_CHECKING:
    import pandas as pd

    from .schema import Column

FEW_ROWS = 10
"""Of a class; with fewer, chance alone may part it from the others."""
EQUALS_TARGET = "EQUALS THE TARGET: it would give the answer away"
SEPARATES = "TELLS THE CLASSES APART ALONE: is it known beforehand?"
MISSING_FOR_A_CLASS = "TELLS A CLASS APART BY ITS GAPS: is it known beforehand?"


def find_leak(column: Column, values: pd.Series, labels: NDArray[Any]) -> str:
    """What is suspicious about a column, given the class of each row; "" if nothing is."""
    classes, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(classes) < 2:
        return ""
    n_classes = len(classes)
    if column.kind == "date":
        numbers = np.where(values.isna(), np.nan, 0.0)
    elif column.kind == "number":
        numbers = as_numbers(values, column.comma)
    else:
        codes = as_categories(values, column.categories).codes
        numbers = np.where(codes < 0, np.nan, codes)
    if column.kind != "date" and _equals_target(numbers, places, n_classes):
        return EQUALS_TARGET
    enough = column.kind == "number" and counts.min() >= FEW_ROWS
    if enough and _separates(numbers, places, n_classes):
        return SEPARATES
    missing = np.isnan(numbers)
    if n_classes > 2 and any(_same_split(missing, places == c) for c in range(n_classes)):
        # The day a case was closed is missing where it is still open.
        return MISSING_FOR_A_CLASS
    return ""


def _equals_target(
    numbers: NDArray[np.float64], places: NDArray[np.intp], n_classes: int
) -> bool:
    """Whether there are as many values as classes, one for each class.

    Of two classes, a gap in all rows of one and in no other gives the answer away too.
    """
    missing = np.isnan(numbers)
    if n_classes == 2 and missing.any():
        return _same_split(missing, places == 1)
    codes = np.unique(np.where(missing, np.inf, numbers), return_inverse=True)[1]
    pairs = len(np.unique(codes * n_classes + places))
    return bool(pairs == n_classes == codes.max() + 1)


def _separates(
    numbers: NDArray[np.float64], places: NDArray[np.intp], n_classes: int
) -> bool:
    """Whether thresholds on a number part the classes without an error."""
    if np.isnan(numbers).any():
        return False
    of_class = [numbers[places == c] for c in range(n_classes)]
    ranges = sorted((some.min(), some.max()) for some in of_class)
    return all(one[1] < next_one[0] for one, next_one in pairwise(ranges))


def _same_split(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> bool:
    return bool((one == other).all() or (one != other).all())
