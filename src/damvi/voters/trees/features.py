"""Dataframes as tables of numbers: a category becomes its number here."""

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
"""With more, a voter of the strong pool sees the rates of the classes in them instead."""
MOST_NAMED = 255
"""With more, categories are known by a hash alone, not by name."""
SOME_LABELS = 1000
FEW_BUCKETS = 32
"""For more of them: buckets of very many categories are alike, and the more buckets there
are, the more trees take chance for a difference."""


def is_categorical(column: Any) -> bool:
    """Whether a pandas or polars column has a categorical dtype, or holds text."""
    return has_categories(column) or is_text(column)


def needs_reading(X: Any) -> bool:
    """Whether X is a dataframe with a column that is not plainly numeric.

    Categories and text are read; dates are refused, by their column's name.
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
    """Very many categories, each with the number of a bucket that its hash falls into.

    Nothing of them is kept. A place of their own for those that are frequent in training
    rows would flatter the score: there, more rows have one than among new ones.
    """

    n_buckets: int

    def numbers(self, labels: list[Any], codes: NDArray[Any]) -> NDArray[np.float64]:
        """The bucket of each label that a row has."""
        asked = used_labels(labels, codes)
        hashes = text_hashes([labels[place] for place in asked.tolist()])
        numbers = np.zeros(len(labels))
        numbers[asked] = hashes % np.uint64(self.n_buckets)
        return numbers


def used_labels(labels: list[Any], codes: NDArray[Any]) -> NDArray[np.intp]:
    """The places of the labels that some row has.

    The others are not hashed: a row or two may have a type of thousands.
    """
    used = np.zeros(len(labels) + 1, dtype=bool)
    used[codes] = True
    return np.flatnonzero(used[:-1])


def places_of(
    known: NDArray[np.uint64], labels: list[Any], codes: NDArray[Any]
) -> NDArray[np.intp]:
    """Where each label that a row has is among the known hashes; -1 where it is not."""
    asked = used_labels(labels, codes)
    places = np.full(len(labels), -1)
    hashes = text_hashes([labels[place] for place in asked.tolist()])
    places[asked] = find_hashes(known, hashes)
    return places


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of each column, as they were at fit; None for numeric columns."""

    by_column: tuple[dict[Any, int] | HashedCategories | None, ...]

    @classmethod
    def learn(cls, X: Any) -> Categories:
        return cls(
            tuple(
                _learn(labels_and_codes(X[name])[0]) if is_categorical(X[name]) else None
                for name in X.columns
            )
        )

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
    """A dataframe that looks like an array of doubles, read by blocks of rows.

    A category becomes its number at fit, one that was not there ``UNKNOWN``, and a
    missing value NaN.
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
        raise ValueError(f"column {name!r} has categories or text, but was numeric at fit")
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
    column: Any, name: Any, known: dict[Any, int] | HashedCategories
) -> NDArray[np.float64]:
    labels, codes = labels_and_codes(column, name)
    return numbers_of(known, labels, codes)


def numbers_of(
    known: dict[Any, int] | HashedCategories, labels: list[Any], codes: NDArray[Any]
) -> NDArray[np.float64]:
    """The number at fit of each row's label, which its code names; -1 is for missing."""
    if isinstance(known, HashedCategories):
        numbers: Any = known.numbers(labels, codes)
    else:
        # Labels may come as text now, and may have been numbers then.
        texts = {label_text(label): number for label, number in known.items()}
        numbers = [known.get(one, texts.get(label_text(one), UNKNOWN)) for one in labels]
    return np.append(numbers, np.nan)[codes]


def labels_and_codes(column: Any, name: Any = None) -> tuple[list[Any], NDArray[Any]]:
    """A column's categories, and the place of each row's in them (-1 when missing)."""
    if not has_categories(column) and not _is_text_or_missing(column):
        raise ValueError(
            f"column {name!r} had categories at fit, but is {column.dtype} now; convert "
            f"it back, as in X[{name!r}].astype('category')"
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
    """Whether it is text; with nothing in it, a column has any type."""
    if is_text(column):
        return True
    return bool(column.isna().all() if hasattr(column, "isna") else column.is_null().all())
