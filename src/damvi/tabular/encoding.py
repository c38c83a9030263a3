"""A table as the voters see it, the same at fit and at prediction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .parsing import Comma, date_part, dates_in, numbers_in

if TYPE_CHECKING:
    import pandas as pd

    from .schema import Column

OTHER = "(other)"
"""The category of all rare ones together, and of those not seen at fit."""


def encode(columns: Sequence[Column], frame: pd.DataFrame) -> pd.DataFrame:
    """The columns in order, each as its features."""
    table = np.empty((len(frame), len(number_features(columns))))
    for place, column in numbers_and_places(columns):
        table[:, place] = as_numbers(frame[column.name], column.comma)
    return complete(columns, table, frame)


def number_features(columns: Sequence[Column]) -> list[str]:
    """The features that are numbers: they share an array, which voters do not copy."""
    return [
        name for column in columns if column.kind != "category" for name in column.features
    ]


def numbers_and_places(columns: Sequence[Column]) -> Iterator[tuple[int, Column]]:
    """The columns of numbers, and the place of each in the array of numbers."""
    places = {name: place for place, name in enumerate(number_features(columns))}
    return ((places[column.name], column) for column in columns if column.kind == "number")


def complete(
    columns: Sequence[Column], table: NDArray[np.float64], given: Mapping[str, pd.Series]
) -> pd.DataFrame:
    """Dates and categories beside the numbers, which ``table`` (rows, features) has."""
    import pandas as pd

    numbers = number_features(columns)
    categories: dict[str, pd.Categorical] = {}
    for column in columns:
        if column.kind == "category":
            categories[column.name] = as_categories(given[column.name], column.categories)
        elif column.kind == "date":
            dates = written_dates(given[column.name], column.form)
            for name, part in zip(column.features, column.parts, strict=True):
                table[:, numbers.index(name)] = date_part(dates, part)
    encoded = pd.DataFrame(table, columns=numbers, copy=False)
    if not categories:
        return encoded
    features = {
        name: categories.get(name, encoded.get(name))
        for column in columns
        for name in column.features
    }
    return pd.DataFrame(features, copy=False)


def as_numbers(column: pd.Series, comma: Comma) -> NDArray[np.float64]:
    """A column of any type as doubles; NaN for what is no finite number."""
    from pandas.api import types

    if types.is_bool_dtype(column.dtype) or types.is_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    elif types.is_timedelta64_dtype(column.dtype):
        values = column.dt.total_seconds().to_numpy(np.float64)
    else:
        values, _ = numbers_in(column, comma)
    finite = np.isfinite(values)
    return values if finite.all() else np.where(finite, values, np.nan)


def written_dates(column: pd.Series, form: str) -> pd.Series:
    """The dates as they were written at fit; what is not so may still be ISO."""
    dates = dates_in(column, form)
    others = dates.isna() & column.notna()
    if form in ("", "ISO8601") or not others.any():
        return dates
    return dates.fillna(dates_in(column[others], "ISO8601"))


def as_categories(column: pd.Series, categories: tuple[str, ...]) -> pd.Categorical:
    """A column of any type as some of the known categories, or missing."""
    import pandas as pd

    # Each distinct value once: texts repeat.
    if hasattr(column, "cat"):
        codes, distinct = column.cat.codes.to_numpy(), column.cat.categories
    else:
        codes, distinct = pd.factorize(column)
    known = {"": -1} | {label: code for code, label in enumerate(categories)}
    other = len(categories) - 1 if categories[-1:] == (OTHER,) else -1
    of_distinct = [known.get(label, other) for label in texts_of(distinct)]
    numbers = np.array([*of_distinct, -1], dtype=np.int32)[codes]
    return pd.Categorical.from_codes(numbers, categories=list(categories))


def texts_of(values: object) -> list[str]:
    """Values as text, alike whatever file they come from: 1.0 and 1 are "1"."""
    import pandas as pd

    return [
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        for value in pd.Index(values).tolist()
    ]
