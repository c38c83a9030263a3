"""A random number for each row, by its number: the same wherever the row is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def row_hashes(rows: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """A random number for each row, a function of (seed, row number) alone."""
    with np.errstate(over="ignore"):
        x = rows.astype(np.uint64) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x ^= x >> np.uint64(shift)
            x *= np.uint64(factor)
        x ^= x >> np.uint64(31)
    return x
