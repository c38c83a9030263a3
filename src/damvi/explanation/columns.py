"""Rows and columns of any table that a classifier takes: arrays and dataframes."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_CHARACTERS = 80


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """These rows of a table, in this order, repeated where they are."""
    if hasattr(X, "iloc"):
        return X.iloc[rows].reset_index(drop=True)
    return X[rows]


def replace_columns(X: Any, others: Any, swapped: NDArray[np.bool_]) -> Any:
    """``X`` with the values of ``others`` where ``swapped`` (n, n_features) says so.

    Both hold the same columns and as many rows; kinds of columns stay as they are.
    """
    if not hasattr(X, "iloc"):
        return np.where(swapped, others, X)
    import pandas as pd

    columns = [
        X.iloc[:, j].mask(swapped[:, j], others.iloc[:, j])
        if swapped[:, j].any()
        else X.iloc[:, j]
        for j in range(X.shape[1])
    ]
    return pd.concat(columns, axis=1)


def as_text(value: Any) -> str:
    """A value of the user's table as they would write it; a gap is empty.

    Examples
    --------
    >>> as_text(0.1 + 0.2), as_text(3), as_text(float("nan")), as_text("<b>")
    ('0.3', '3', '', '<b>')
    """
    if isinstance(value, str):
        return value if len(value) <= MAX_CHARACTERS else value[: MAX_CHARACTERS - 1] + "…"
    if value is None or str(value) in {"<NA>", "NaT", "nan"}:
        return ""
    if isinstance(value, Real) and not isinstance(value, Integral):
        return f"{value:.6g}"
    return as_text(str(value))
