"""How many rows each class has, and what they weigh: the first thing to know of a table.

Weights are added as whole multiples of 2**-30, so that the parts of a table give the same
sum in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FRACTIONAL_BITS = 30


@dataclass(frozen=True, eq=False)
class Census:
    """Rows of each class, and their weight. Those of the parts of a table add up.

    Attributes
    ----------
    rows : ndarray of int64, shape (C,)
    counted : ndarray of int64, shape (C,)
        Those whose weight is not 0.
    units : ndarray of int64, shape (C,)
        Their weight, in units of 2**-30.

    Examples
    --------
    >>> import numpy as np
    >>> census = Census.of(np.array([0, 0]), 2)
    >>> census += Census.of(np.array([1]), 2, np.array([0.5]))
    >>> census.rows, census.mass
    (array([2, 1]), array([2. , 0.5]))
    """

    rows: NDArray[np.int64]
    counted: NDArray[np.int64]
    units: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        labels: NDArray[Any],
        n_classes: int,
        weights: NDArray[np.float64] | None = None,
    ) -> Census:
        """Of rows of the classes 0, 1, ...; ``weights`` lie between 0 and 1."""
        rows = np.bincount(labels, minlength=n_classes).astype(np.int64)
        if weights is None:
            return cls(rows, rows, rows << FRACTIONAL_BITS)
        counted = np.bincount(labels[weights > 0], minlength=n_classes).astype(np.int64)
        fixed = np.rint(np.ldexp(weights, FRACTIONAL_BITS)).astype(np.int64)
        units = np.zeros(n_classes, np.int64)
        np.add.at(units, labels, fixed)
        return cls(rows, counted, units)

    def __add__(self, other: Census) -> Census:
        return Census(
            self.rows + other.rows,
            self.counted + other.counted,
            self.units + other.units,
        )

    @property
    def n_rows(self) -> int:
        return int(self.rows.sum())

    @property
    def mass(self) -> NDArray[np.float64]:
        """The weight of each class."""
        return np.ldexp(self.units.astype(np.float64), -FRACTIONAL_BITS)
