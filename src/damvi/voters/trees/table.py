"""Tables in blocks of rows, as doubles: what the bins are made from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

BLOCK_CELLS = 2**17


def row_slices(X: Any) -> Iterator[slice]:
    """Slices of rows, of a few megabytes at most once they are dense."""
    n_rows, n_features = X.shape
    step = max(1, BLOCK_CELLS // max(n_features, 1))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def blocks(X: Any) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Slices of rows and their values, one at a time."""
    for rows in row_slices(X):
        yield rows, dense(X[rows])


def take(X: Any, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Some rows, as doubles."""
    return dense(X[rows])


def dense(X: Any) -> NDArray[np.float64]:
    if sparse.issparse(X):
        X = X.toarray()
    return np.ascontiguousarray(X, dtype=np.float64)
