"""Batches of an Arrow table as doubles: numbers as they are, texts by their categories."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..voters.trees.features import UNKNOWN, Categories

MOST_CATEGORIES = 2**16
"""Distinct texts of a column; more are no categories."""


def is_text(kind: Any) -> bool:
    """Whether a column's values are to be taken as categories."""
    import pyarrow.types as t

    if t.is_dictionary(kind):
        kind = kind.value_type
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def is_number(kind: Any) -> bool:
    import pyarrow.types as t

    return bool(
        t.is_integer(kind)
        or t.is_floating(kind)
        or t.is_boolean(kind)
        or t.is_decimal(kind)
        or t.is_null(kind)
    )


def is_label(kind: Any) -> bool:
    """Whether a column's values can be names of classes."""
    import pyarrow.types as t

    if t.is_dictionary(kind):
        kind = kind.value_type
    known = is_text(kind) or t.is_temporal(kind)
    return bool(known or (is_number(kind) and not t.is_decimal(kind)))


def values_of(column: Any) -> NDArray[Any]:
    """A column of labels as numpy holds it."""
    import pyarrow.types as t

    if t.is_dictionary(column.type):
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))


def texts_of(column: Any) -> set[str]:
    """The distinct texts of a column."""
    import pyarrow.types as t

    if t.is_dictionary(column.type):
        column = column.dictionary_decode()
    return {text for text in column.unique().to_pylist() if text is not None}


def doubles_of(
    batch: Any, categories: Categories | None, where: str
) -> NDArray[np.float64]:
    """The batch as a table of doubles; ``where`` says in an error which rows these are."""
    table = np.empty((batch.num_rows, batch.num_columns))
    for f, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        known = None if categories is None else categories.by_column[f]
        values = numbers_of(column) if known is None else _places(column, known)
        if known is None and np.isinf(values).any():
            raise ValueError(
                f"{where}: column {name!r} contains infinity; replace it by a number or NaN"
            )
        table[:, f] = values
    return table


def numbers_of(column: Any) -> NDArray[np.float64]:
    """A column of numbers as doubles, NaN where there is none."""
    import pyarrow as pa

    if column.type != pa.float64():
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)


def _places(column: Any, known: dict[Any, int]) -> NDArray[np.float64]:
    import pyarrow.types as t

    if not t.is_dictionary(column.type):
        column = column.dictionary_encode()
    labels = column.dictionary.to_pylist()
    numbers = np.array([float(known.get(label, UNKNOWN)) for label in labels] + [np.nan])
    codes = column.indices.fill_null(len(labels)).to_numpy(zero_copy_only=False)
    return numbers[codes.astype(np.intp)]
