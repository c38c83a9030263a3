"""Dataframes as tables of numbers, with categories encoded as numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._compat import take_rows
from ...hashing import find_hashes, label_text, text_hashes
from ...validation import has_categories, is_text, refuse_dates

UNKNOWN = -1.0
MANY_CATEGORIES = 100
"""With more categories, voters of the strong pool see class rates instead."""
MOST_NAMED = 255
"""With more categories, they are known by their hashes instead of their names."""
SOME_LABELS = 1000
FEW_BUCKETS = 32
"""Number of buckets for more categories than SOME_LABELS: buckets of very many categories
are alike, and the more buckets there are, the more trees overfit to them."""


def is_categorical(column: Any) -> bool:
    """Whether a pandas or polars column has a categorical dtype, or holds text."""
    return has_categories(column) or is_text(column)


def needs_reading(X: Any) -> bool:
    """Whether X is a dataframe with a column that is not numeric.

    Categories and text are supported; dates raise an error that names the column.
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


@dataclass(frozen=True)
class HashedCategories:
    """Very many categories, which are encoded as hash buckets.

    Categories are not stored. Separate codes for those that are frequent in the training
    rows would bias the score, since they are more frequent there than in new rows.
    """

    n_buckets: int

    def numbers(self, labels: list[Any], codes: NDArray[Any]) -> NDArray[np.float64]:
        """The bucket of each label that occurs in the rows."""
        asked = used_labels(labels, codes)
        hashes = text_hashes([labels[place] for place in asked.tolist()])
        numbers = np.zeros(len(labels))
        numbers[asked] = hashes % np.uint64(self.n_buckets)
        return numbers


def used_labels(labels: list[Any], codes: NDArray[Any]) -> NDArray[np.intp]:
    """Positions of the labels that occur in the rows.

    Only these are hashed, since a single row may have a dtype of thousands of categories.
    """
    used = np.zeros(len(labels) + 1, dtype=bool)
    used[codes] = True
    return np.flatnonzero(used[:-1])


def places_of(
    known: NDArray[np.uint64], labels: list[Any], codes: NDArray[Any]
) -> NDArray[np.intp]:
    """Position of each label in the rows among the known hashes; -1 if unknown."""
    asked = used_labels(labels, codes)
    places = np.full(len(labels), -1)
    hashes = text_hashes([labels[place] for place in asked.tolist()])
    places[asked] = find_hashes(known, hashes)
    return places


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of each column seen in fit; None for numeric columns."""

    by_column: tuple[dict[Any, int] | HashedCategories | None, ...]

    @classmethod
    def learn(cls, X: Any) -> Categories:
        return cls(
            tuple(
                _learn(labels_and_codes(X[name])[0]) if is_categorical(X[name]) else None
                for name in X.columns
            )
        )

    def hashed(self, n_buckets: int) -> Categories:
        """The same columns, with all categories known by hashes below a number."""
        one = HashedCategories(n_buckets)
        return Categories(tuple(None if own is None else one for own in self.by_column))

    @property
    def mask(self) -> NDArray[np.bool_]:
        return np.array([known is not None for known in self.by_column])


def _learn(labels: list[Any]) -> dict[Any, int] | HashedCategories:
    if len(labels) > MOST_NAMED:
        return HashedCategories(
            MOST_NAMED - 1 if len(labels) <= SOME_LABELS else FEW_BUCKETS
        )
    return {label: i for i, label in enumerate(labels)}


class FrameTable:
    """A dataframe that is read like an array of doubles, in blocks of rows.

    Categories become their numbers in fit, unknown ones ``UNKNOWN``, and missing values
    NaN.
    """

    def __init__(self, X: Any, categories: Categories) -> None:
        refuse_dates(X)
        self.frame = X
        self.categories = categories
        self.shape: tuple[int, int] = (len(X), len(X.columns))

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
    if has_categories(column):
        raise ValueError(f"column {name!r} has categories or text, but was numeric in fit")
    try:
        values = np.asarray(column.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"column {name!r} is not numeric ({error}); convert it to a category, as in "
            f"X[{name!r}].astype('category'), or drop it"
        ) from error
    if np.isinf(values).any():
        raise ValueError(
            f"column {name!r} contains infinity; replace it by a number or NaN"
        )
    return values


def _numbers_of_categories(
    column: Any, name: Any, known: dict[Any, int] | HashedCategories
) -> NDArray[np.float64]:
    labels, codes = labels_and_codes(column, name)
    return numbers_of(known, labels, codes)


def numbers_of(
    known: dict[Any, int] | HashedCategories, labels: list[Any], codes: NDArray[Any]
) -> NDArray[np.float64]:
    """The number of each row's label in fit; code -1 is missing, and becomes NaN."""
    if isinstance(known, HashedCategories):
        numbers: Any = known.numbers(labels, codes)
    else:
        # Labels may be text now that were numbers in fit.
        texts = {label_text(label): number for label, number in known.items()}
        numbers = [known.get(one, texts.get(label_text(one), UNKNOWN)) for one in labels]
    return np.append(numbers, np.nan)[codes]


def labels_and_codes(column: Any, name: Any = None) -> tuple[list[Any], NDArray[Any]]:
    """The categories of a column, and the position of each row's (-1 if missing)."""
    if not has_categories(column) and not _is_text_or_missing(column):
        raise ValueError(
            f"column {name!r} had categories in fit, but now has dtype {column.dtype}; "
            f"convert it, as in X[{name!r}].astype('category')"
        )
    if hasattr(column, "iloc"):  # pandas
        if not hasattr(column, "cat"):
            column = column.astype("category")
        return column.cat.categories.tolist(), column.cat.codes.to_numpy()
    import polars as pl

    texts = column.cast(pl.String)
    labels = texts.unique().drop_nulls().sort().to_list()
    numbers = list(range(len(labels)))
    places = texts.replace_strict(labels, numbers, default=-1, return_dtype=pl.Int64)
    return labels, places.to_numpy()


def _is_text_or_missing(column: Any) -> bool:
    """Whether a column is text; an empty column may have any dtype."""
    if is_text(column):
        return True
    return bool(column.isna().all() if hasattr(column, "isna") else column.is_null().all())
