"""Which class is taken for which, and the F1 of each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Number = NDArray[np.float64]
Places = NDArray[np.intp]

TINY = np.finfo(np.float64).tiny


def confusion(labels: Places, decided: Places, weight: Number, n_classes: int) -> Number:
    """The weight of the rows by class (row) and decision (column)."""
    places = labels * n_classes + decided
    cells = np.bincount(places, weight, minlength=n_classes**2).astype(np.float64)
    return cells.reshape(n_classes, n_classes)


def f1_by_class(table: Number) -> Number:
    """F1 of each class from tables (..., C, C); 0 if it is neither there nor named."""
    found = np.diagonal(table, axis1=-2, axis2=-1)
    both = table.sum(axis=-1) + table.sum(axis=-2)
    score: Number = 2 * found / np.maximum(both, TINY)
    return score
