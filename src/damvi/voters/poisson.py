"""Draws row by row: a Poisson bootstrap that does not care who holds which rows."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..census import Census
from .draws import random_state_of

GOLDEN = 0x9E3779B97F4A7C15
SEVERAL = 16.0
"""A row that is drawn more often than this on average is drawn in several goes."""
MOST_STEPS = 80
"""Draws of a row in one go, at most: at that rate, one in 10**29 would be more."""


@dataclass(frozen=True, eq=False)
class PoissonDraws:
    """How often each row is drawn: a function of (seed, voter, number of the row) alone.

    A row of weight w is drawn a Poisson number of times, on average as often as in a
    bootstrap of ``max_samples``. So the draw of any part of a table is the same on
    whatever machine the part is, and a table and its parts agree.

    Attributes
    ----------
    n_rows : int
        Rows of this part.
    rates : ndarray of shape (C,)
        Average number of draws of a row of weight 1, class by class.
    labels : ndarray of uint8, shape (n_rows,), or None
        The numbers of their classes; None when all have one rate.
    weights : ndarray of shape (n_rows,), or None
        From 0 to 1; None when they are all 1.
    seed : int
    start : int
        The number of the part's first row in the whole table.

    Examples
    --------
    >>> import numpy as np
    >>> draws = PoissonDraws.plan(np.zeros(6, np.uint8), max_samples=1.0, seed=0)
    >>> draws.counts(voter=3)
    array([2, 1, 0, 0, 1, 1])
    >>> draws.part(slice(2, 5)).counts(voter=3)
    array([0, 0, 1])
    """

    n_rows: int
    rates: NDArray[np.float64]
    labels: NDArray[np.uint8] | None
    weights: NDArray[np.float64] | None
    seed: int
    start: int = 0

    replace: ClassVar[bool] = True

    @classmethod
    def plan(
        cls,
        labels: NDArray[Any],
        *,
        max_samples: float | int,
        seed: int,
        stratified: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
        census: Census | None = None,
    ) -> PoissonDraws:
        """Draws for rows of these classes, numbered from 0.

        ``census`` is that of the whole table, if these rows are but a part of it.
        """
        labels = labels.astype(np.uint8, copy=False)
        if census is None:
            census = Census.of(labels, 1 + int(labels.max(initial=0)), sample_weight)
        rates = poisson_rates(census, max_samples, stratified)
        return cls(
            n_rows=len(labels),
            rates=rates,
            labels=labels if len(rates) > 1 else None,
            weights=sample_weight,
            seed=seed,
        )

    def part(self, rows: slice) -> PoissonDraws:
        """The draws of some of the rows."""
        start, stop, _ = rows.indices(self.n_rows)
        return dataclasses.replace(
            self,
            n_rows=stop - start,
            labels=None if self.labels is None else self.labels[rows],
            weights=None if self.weights is None else self.weights[rows],
            start=self.start + start,
        )

    def counts(self, voter: int) -> NDArray[np.intp]:
        """How many times each row was drawn for this voter."""
        return self._times(voter).astype(np.intp, copy=False)

    def sample(self, voter: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The rows drawn for this voter, in order, and how many times each."""
        times = self._times(voter)
        rows = np.flatnonzero(times)
        return rows, times[rows].astype(np.intp, copy=False)

    def out_of_bag(self, voter: int) -> NDArray[np.bool_]:
        """The rows that this voter has not seen."""
        return self._times(voter) == 0

    def random_state(self, voter: int) -> int:
        """A seed for the voter's own randomness, apart from its draw."""
        return random_state_of(self.seed, voter)

    @property
    def most_rows(self) -> int:
        """Hardly ever does a voter see more."""
        if self.weights is None and self.labels is None:
            mean = self.n_rows * min(1.0, float(self.rates[0]))
        else:
            mean = float(np.minimum(self._row_rates(), 1).sum())
        return min(self.n_rows, math.ceil(mean + 8 * math.sqrt(mean) + 8))

    def _times(self, voter: int) -> NDArray[np.uint8] | NDArray[np.uint32]:
        from ._poisson import draw_by_class, draw_by_weight  # imports numba

        key = np.uint64(mix(mix(self.seed + GOLDEN) + voter))
        if self.weights is None and self.rates.max() <= SEVERAL:
            times = np.empty(self.n_rows, np.uint8)
            labels = np.zeros(0, np.uint8) if self.labels is None else self.labels
            draw_by_class(key, self.start, labels, cumulative(self.rates), times)
            return times
        many = np.empty(self.n_rows, np.uint32)
        draw_by_weight(key, self.start, self._row_rates(), SEVERAL, many)
        return many

    def _row_rates(self) -> NDArray[np.float64]:
        """How often each row is drawn on average."""
        rates = np.full(self.n_rows, self.rates[0])
        if self.labels is not None:
            rates = self.rates[self.labels]
        return rates if self.weights is None else rates * self.weights


def poisson_rates(
    census: Census, max_samples: float | int, stratified: bool
) -> NDArray[np.float64]:
    """Average number of draws of a row of weight 1: one for all, or one for each class."""
    n, mass = census.n_rows, census.mass
    is_count = isinstance(max_samples, (int, np.integer))
    n_draws = int(max_samples) if is_count else max(1, round(max_samples * n))
    if not stratified:
        return np.array([n_draws / mass.sum()])
    shares = [max(1, round(n_draws * rows / n)) for rows in census.rows.tolist()]
    return np.divide(shares, mass, out=np.zeros(len(mass)), where=mass > 0)


def cumulative(rates: NDArray[np.float64]) -> NDArray[np.uint64]:
    """For each rate, the 53-bit numbers below which 0, 1, ... draws are meant, (C, J)."""
    table = []
    for rate in rates.tolist():
        chance = below = math.exp(-rate)
        steps = [below]
        for k in range(1, MOST_STEPS):
            chance *= rate / k
            below = min(below + chance, 1.0)
            steps.append(below)
        table.append([math.floor(math.ldexp(step, 53)) for step in steps])
    return np.array(table, np.uint64)


def mix(x: int) -> int:
    """Every bit of a number spread over all (the finish of splitmix64)."""
    mask = (1 << 64) - 1
    x &= mask
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & mask
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & mask
    return x ^ (x >> 31)
