"""Three or more classes: the factors of their votes that are best for macro F1.

A larger factor for a rare class finds more of its rows, with more false alarms; the factors
balance this, one class at a time. All factors of one class are compared at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Number = NDArray[np.float64]
Classes = NDArray[np.intp]
"""Class numbers."""

TINY = np.finfo(np.float64).tiny
GAIN = 1e-12
"""Minimum improvement of macro F1, in view of rounding."""
BEYOND = 2.0
"""How far beyond the switching points the outermost factors are placed."""
MAX_SWEEPS = 20


def confusion(targets: Classes, decided: Classes, weight: Number, n_classes: int) -> Number:
    """Confusion matrix: weight of the rows by class (row) and decision (column)."""
    places = targets * n_classes + decided
    cells = np.bincount(places, weight, minlength=n_classes**2).astype(np.float64)
    return cells.reshape(n_classes, n_classes)


def f1_by_class(table: Number) -> Number:
    """F1 of each class from confusion matrices (..., C, C); 0 for 0/0."""
    found = np.diagonal(table, axis1=-2, axis2=-1)
    both = table.sum(axis=-1) + table.sum(axis=-2)
    score: Number = 2 * found / np.maximum(both, TINY)
    return score


def best_factors(
    vote: Number, targets: Classes, weight: Number, order: ArrayLike | None
) -> Number:
    """The best factors for macro F1; equal ones if nothing can be learned.

    ``vote`` has a column for each class, and ``order`` the classes as they win ties.
    """
    n_classes = vote.shape[1]
    places = np.arange(n_classes) if order is None else np.asarray(order, np.intp)
    # Columns in the order in which they win ties, so that argmax returns the winner.
    votes = np.ascontiguousarray(vote[:, places])
    targets = np.argsort(places)[targets]
    level = votes.mean(axis=0)
    starts = [np.ones(n_classes), level.max() / np.where(level > 0, level, level.max())]
    ends = [_climb(votes, targets, weight, start) for start in starts]
    _, found = ends[int(ends[1][0] > ends[0][0] + GAIN)]
    factors = np.empty(n_classes)
    factors[places] = found / found[0]
    return factors


def _climb(
    vote: Number, targets: Classes, weight: Number, factors: Number
) -> tuple[float, Number]:
    """Coordinate ascent from these factors; also returns the sum of F1 reached."""
    search = FactorSearch(vote, targets, weight, factors.copy())
    reached = search.sum_of_f1()
    for _ in range(MAX_SWEEPS):
        before = reached
        for c in reversed(range(len(factors))):  # the rarest first, with most to gain
            value, factor = search.best_factor(c)
            if value > reached + GAIN:
                reached = value
                search.set_factor(c, factor)
        if reached <= before + GAIN:
            break
    return reached, search.factors


class FactorSearch:
    """Votes times factors, with the two largest of each row, updated as factors change.

    With a hundred classes, recomputing all votes for each factor of each class would take
    minutes. The effect of a factor depends only on the rows with a vote for its class, and
    on the best of the other classes there.

    Parameters
    ----------
    vote : ndarray of shape (n, C)
        Non-negative; of equal scores, the class with the lowest number wins.
    targets : ndarray of shape (n,)
    weight : ndarray of shape (n,)
    factors : ndarray of shape (C,)
        Changed by :meth:`set_factor`.
    """

    def __init__(
        self, vote: Number, targets: Classes, weight: Number, factors: Number
    ) -> None:
        self.vote, self.targets, self.weight, self.factors = vote, targets, weight, factors
        n, n_classes = vote.shape
        self._total = np.bincount(targets, weight, minlength=n_classes).astype(np.float64)
        self._voted = [np.flatnonzero(vote[:, c] > 0) for c in range(n_classes)]
        self._places = np.empty((2, n), np.intp)
        self._scores = np.empty((2, n))
        self._rank(np.arange(n))

    def sum_of_f1(self) -> float:
        """The sum of F1 with the current factors."""
        table = confusion(self.targets, self._places[0], self.weight, len(self.factors))
        return float(f1_by_class(table).sum())

    def set_factor(self, c: int, factor: float) -> None:
        self.factors[c] = factor
        was_there = (self._places == c).any(axis=0)
        gets_there = self.vote[:, c] * factor >= self._scores[1]
        self._rank(np.flatnonzero(was_there | gets_there))

    def _rank(self, rows: Classes) -> None:
        """Find the two largest scores of these rows."""
        scores, here = self.vote[rows] * self.factors, np.arange(len(rows))
        for place in range(2):
            first = scores.argmax(axis=1)
            self._places[place, rows] = first
            self._scores[place, rows] = scores[here, first]
            scores[here, first] = -np.inf

    def best_factor(self, c: int) -> tuple[float, float]:
        """The best factor of one class, the others fixed, preceded by its sum of F1.

        A row switches to the class when the factor exceeds the rival's score / own vote.
        Rows are counted in the order of these switching points. Rows without a vote for the
        class never switch.
        """
        is_first = self._places[0] == c
        rival = np.where(is_first, self._places[1], self._places[0])
        rows = self._voted[c]
        if not len(rows):
            return -np.inf, float(self.factors[c])
        other = np.where(is_first, self._scores[1], self._scores[0])[rows]
        point = other / self.vote[rows, c]
        by_point = np.argsort(point, kind="stable")
        point, rows = point[by_point], rows[by_point]
        # Cuts between distinct switching points; cut i switches the first i rows.
        changes = np.flatnonzero(point[1:] > point[:-1]) + 1
        cuts = np.concatenate([[0], changes, [len(point)]])
        low = np.append(0.0, point)[cuts]
        high = np.append(point, np.inf)[cuts]
        usable = np.isfinite(low) & (high > 0)
        usable &= (low > 0) | np.isfinite(high)
        if not usable.any():
            return -np.inf, float(self.factors[c])
        cuts, low, high = cuts[usable], low[usable], high[usable]
        mass, of_class = self.weight[rows], self.targets[rows] == c
        value = _f1_of_joined(mass, of_class, self._total[c])[cuts]
        value += self._f1_of_left(rival, rows)[cuts]
        low = np.where(low > 0, low, high / BEYOND**2)
        high = np.where(np.isfinite(high), high, low * BEYOND**2)
        good = np.flatnonzero(value >= value.max() - GAIN)
        widest = good[np.argmax(high[good] / low[good])]
        return float(value[widest]), float(np.sqrt(low[widest] * high[widest]))

    def _f1_of_left(self, rival: Classes, rows: Classes) -> Number:
        """The sum of F1 of all rivals after they have lost the first i of ``rows``.

        A row that switches only affects the F1 of its own rival, so one pass over the rows,
        sorted by rival, finds all changes.
        """
        total, n_classes = self._total, len(self._total)
        right = self.weight * (rival == self.targets)
        named = np.bincount(rival, self.weight, minlength=n_classes)
        found = np.bincount(rival, right, minlength=n_classes)
        start = 2 * found / np.maximum(total + named, TINY)
        own = rival[rows].astype(np.uint16)  # 16-bit integers are sorted fastest
        by_rival = np.argsort(own, kind="stable")
        starts = np.cumsum(np.bincount(own, minlength=n_classes))
        own = own[by_rival]
        first = np.append(0, starts)[own]  # the first row with the same rival
        gone, gone_hits = (
            running - (running - values)[first]
            for values in (self.weight[rows][by_rival], right[rows][by_rival])
            for running in (np.cumsum(values),)
        )
        left = np.maximum(total[own] + named[own] - gone, TINY)
        after = 2 * (found[own] - gone_hits) / left
        is_first = first == np.arange(len(own))
        before = np.where(is_first, start[own], np.roll(after, 1))
        change = np.empty(len(own))
        change[by_rival] = after - before
        return float(start.sum()) + np.concatenate([[0.0], np.cumsum(change)])


def _f1_of_joined(mass: Number, of_class: NDArray[np.bool_], total: float) -> Number:
    """F1 of a class that is predicted for exactly the first i rows: (n + 1,)."""
    named = np.concatenate([[0.0], np.cumsum(mass)])
    hits = np.concatenate([[0.0], np.cumsum(mass * of_class)])
    score: Number = 2 * hits / np.maximum(total + named, TINY)
    return score
