"""Dask DataFrames and Arrays as lists of partitions, with labels and weights beside."""

from __future__ import annotations

from typing import Any, NamedTuple

import dask.array as da
import dask.dataframe as dd

Parts = list[Any]
"""Of a partition each, something lazy."""


class Table(NamedTuple):
    """A table in parts.

    Attributes
    ----------
    X, y : list of Delayed
    weights : list of Delayed, or of None
    frame : DataFrame or None
        No rows of the same columns; None for arrays.
    n_features : int
    """

    X: Parts
    y: Parts
    weights: Parts
    frame: Any
    n_features: int


def read(X: Any, y: Any, sample_weight: Any) -> Table:
    """A table, its labels and its weights, cut alike."""
    if isinstance(X, dd.DataFrame):
        return _read_frame(X, y, sample_weight)
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X is a {type(X).__name__}, and must be a Dask DataFrame or Array; for a "
            f"table in memory use estimator.fit(X, y)"
        )
    X = in_rows(X)
    parts = _parts(X)
    labels = _column("y", y, X, len(parts))
    weights = _column("sample_weight", sample_weight, X, len(parts))
    return Table(parts, labels, weights, None, X.shape[1])


def in_rows(X: Any) -> Any:
    """An array of rows, none of which is cut."""
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions; give it rows and columns")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X holds {X.dtype}; an array must hold numbers")
    return X.rechunk({1: -1})


def check_frame(X: Any) -> None:
    """That all columns are numbers, or categories that are known."""
    twice = X.columns[X.columns.duplicated()].tolist()
    if twice:
        raise ValueError(f"X has more than one column named {twice}; rename them")
    for name, dtype in X.dtypes.items():
        if str(dtype) == "category":
            if not X[name].cat.known:
                raise ValueError(
                    f"the categories of column {name!r} are not known yet; find them with "
                    f"X = X.categorize(columns=[{name!r}])"
                )
        elif dtype.kind not in "biuf":
            raise ValueError(
                f"column {name!r} holds {dtype}, neither numbers nor categories; make it "
                f"a category, as in X = X.categorize(columns=[{name!r}]), or drop it"
            )


def _read_frame(X: Any, y: Any, sample_weight: Any) -> Table:
    whole, own = X, [name for name in (y, sample_weight) if isinstance(name, str)]
    for name in own:
        if name not in X.columns:
            raise ValueError(
                f"X has no column {name!r}; its columns are "
                f"{', '.join(map(repr, X.columns))}"
            )
    if own:
        X = X.drop(columns=own)
    if not len(X.columns):
        raise ValueError("X has no column to learn from")
    check_frame(X)
    y, sample_weight = (
        whole[given] if isinstance(given, str) else given for given in (y, sample_weight)
    )
    parts = _parts(X)
    labels = _column("y", y, X, len(parts))
    weights = _column("sample_weight", sample_weight, X, len(parts))
    return Table(parts, labels, weights, X._meta, len(X.columns))


def _column(name: str, given: Any, X: Any, n_parts: int) -> Parts:
    """One value a row, cut as ``X`` is."""
    if given is None and name != "y":
        return [None] * n_parts
    if isinstance(given, da.Array):
        if given.ndim != 1:
            raise ValueError(
                f"{name} has {given.ndim} dimensions; give one value for each row"
            )
        if isinstance(X, da.Array) and not _unknown(X) and not _unknown(given):
            if given.shape[0] != X.shape[0]:
                raise ValueError(
                    f"{name} has {given.shape[0]} rows, and X {X.shape[0]}; give one value "
                    f"for each row"
                )
            given = given.rechunk((X.chunks[0],))
    elif not isinstance(given, dd.Series):
        or_name = " or the name of a column" if isinstance(X, dd.DataFrame) else ""
        raise TypeError(
            f"{name} is a {type(given).__name__}, and must be a Dask Series or Array"
            f"{or_name}"
        )
    parts = _parts(given)
    if len(parts) != n_parts:
        raise ValueError(
            f"{name} is cut into {len(parts)} partitions, and X into {n_parts}; cut them "
            f"alike, as they are when both come from one DataFrame"
        )
    return parts


def _parts(given: Any) -> Parts:
    if isinstance(given, da.Array):
        lazy: Parts = given.to_delayed().ravel().tolist()
        return lazy
    # Reads no more columns than it needs, but does not go on to join partitions that have
    # become small: X and y would no longer be cut alike.
    lazy = given.simplify().to_delayed(optimize_graph=False)
    return lazy


def _unknown(array: Any) -> bool:
    return bool(array.shape[0] != array.shape[0])  # not a number
