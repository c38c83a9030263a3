"""Columns of trained boosters, concatenated over all trees, and how they are checked."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import require, require_array

Parts = dict[str, Any]
Column = tuple[str, Any]

MOST_FEATURES = 2**24
NUMBERS = (type(None), bool, int, float, np.bool_, np.integer, np.floating)


def require_int(value: Any, least: int, most: int, what: str) -> int:
    is_whole = type(value) is int and least <= value <= most
    require(is_whole, f"{what} {str(value)[:40]}")
    return int(value)


def check_counts(
    counts: Any, end: int, least: int, what: str, n: int | None = None
) -> NDArray[np.int64]:
    """Check ``n`` item counts that must add up to ``end``; return the start offsets.

    If ``n`` is None, there may be any number of counts but none.
    """
    require_array(counts, np.int64, (n,), what)
    require(n is not None or len(counts) > 0, f"no {what}")
    require(((counts >= least) & (counts <= end)).all(), f"{what} out of range")
    require(sum(counts.tolist()) == end, f"{what} do not add up")
    return np.append(0, np.cumsum(counts))


def check_columns(
    parts: Parts, columns: list[Column], n: int, free: Collection[str] = ()
) -> None:
    """Check columns of ``n`` entries; all must be finite except those in ``free``."""
    for name, dtype in columns:
        require_array(parts[name], dtype, (n,), name)
        if np.dtype(dtype).kind == "f" and name not in free:
            require(np.isfinite(parts[name]).all(), f"{name} has numbers out of range")


def require_names(names: Any, n: int) -> None:
    require(isinstance(names, list) and len(names) == n, "feature names")
    require(all(type(name) is str for name in names), "feature names")


def check_classes(classes: Any, n: int) -> None:
    """Check that there are labels for ``n`` classes."""
    ok = isinstance(classes, np.ndarray) and classes.shape == (n,)
    require(ok and classes.dtype.kind in "biufUO", "wrong number of classes")
    require(all(isinstance(one, (str, *NUMBERS[1:])) for one in classes), "classes")
    require(len(set(classes.tolist())) == n, "duplicate classes")


def split(column: NDArray[Any], starts: NDArray[np.int64]) -> list[NDArray[Any]]:
    return np.split(column, starts[1:-1])
