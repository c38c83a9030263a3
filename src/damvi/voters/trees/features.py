"""Dataframes as tables of numbers: a categorical column becomes codes here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._compat import take_rows
from ...validation import refuse_dates

UNKNOWN = -1.0


def is_categorical(column: Any) -> bool:
    """Whether a pandas or polars column has a categorical dtype."""
    return str(column.dtype).split("(")[0].lower() in {"category", "categorical", "enum"}


def needs_reading(X: Any) -> bool:
    """Whether X is a dataframe with a column that is not plainly numeric.

    Categories are read; text and dates are refused, by their column's name.
    """
    if not hasattr(X, "columns"):
        return False
    twice = [name for name, n in Counter(X.columns).items() if n > 1]
    if twice:
        raise ValueError(f"X has more than one column named {twice}; rename them")
    return any(_is_no_number(X[name].dtype) for name in X.columns)


def _is_no_number(dtype: Any) -> bool:
    if hasattr(dtype, "kind"):  # numpy's, or pandas'
        return dtype.kind in "OSUTMm"
    return str(dtype).startswith(("Cat", "Date", "Dur", "Enum", "Obj", "Str", "Time"))


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of each column, as they were at fit; None for numeric columns."""

    by_column: tuple[dict[Any, int] | None, ...]

    @classmethod
    def learn(cls, X: Any) -> Categories:
        return cls(
            tuple(
                {label: i for i, label in enumerate(_labels_and_codes(X[name])[0])}
                if is_categorical(X[name])
                else None
                for name in X.columns
            )
        )

    @property
    def mask(self) -> NDArray[np.bool_]:
        return np.array([known is not None for known in self.by_column])


class FrameTable:
    """A dataframe that looks like an array of doubles, read by blocks of rows.

    A category becomes its number at fit, one that was not there ``UNKNOWN``, and a
    missing value NaN.
    """

    def __init__(self, X: Any, categories: Categories) -> None:
        refuse_dates(X)
        self.frame = X
        self.categories = categories
        self.shape = (len(X), len(X.columns))

    def __getitem__(self, rows: Any) -> NDArray[np.float64]:
        if not isinstance(rows, slice):
            part = take_rows(self.frame, rows)
        else:
            part = (
                self.frame.iloc[rows] if hasattr(self.frame, "iloc") else self.frame[rows]
            )
        values = np.empty((len(part), self.shape[1]))
        for f, name in enumerate(part.columns):
            known = self.categories.by_column[f]
            if known is None:
                values[:, f] = _numbers(part[name], name)
            else:
                values[:, f] = _numbers_of_categories(part[name], name, known)
        return values


def _numbers(column: Any, name: Any) -> NDArray[np.float64]:
    if is_categorical(column):
        raise ValueError(f"column {name!r} has categories, but was numeric at fit")
    try:
        values = np.asarray(column.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"column {name!r} does not hold numbers ({error}); make it a category, as in "
            f"X[{name!r}].astype('category'), or drop it"
        ) from error
    if np.isinf(values).any():
        raise ValueError(
            f"column {name!r} contains infinity; replace it by a number or NaN"
        )
    return values


def _numbers_of_categories(
    column: Any, name: Any, known: dict[Any, int]
) -> NDArray[np.float64]:
    if not is_categorical(column):
        raise ValueError(
            f"column {name!r} had categories at fit, but is {column.dtype} now; convert "
            f"it back, as in X[{name!r}].astype('category')"
        )
    labels, codes = _labels_and_codes(column)
    numbers = [float(known.get(label, UNKNOWN)) for label in labels]
    return np.array([*numbers, np.nan])[codes]  # -1, for missing, is the last


def _labels_and_codes(column: Any) -> tuple[list[Any], NDArray[Any]]:
    """A column's categories, and the place of each row's in them (-1 when missing)."""
    if hasattr(column, "cat") and hasattr(column.cat, "codes"):  # pandas
        return column.cat.categories.tolist(), column.cat.codes.to_numpy()
    import polars as pl

    texts = column.cast(pl.String)
    labels = texts.unique().drop_nulls().sort().to_list()
    numbers = list(range(len(labels)))
    places = texts.replace_strict(labels, numbers, default=-1, return_dtype=pl.Int64)
    return labels, places.to_numpy()
