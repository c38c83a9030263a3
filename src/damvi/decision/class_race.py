"""Who is first and who second on each row, while the factors of classes change.

With a hundred classes, all votes looked at anew for each factor of each class would take
minutes. What a factor can do depends on the rows that have a vote for its class, and on
the best of the other classes there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .class_tables import TINY, confusion, f1_by_class

Number = NDArray[np.float64]
Places = NDArray[np.intp]

GAIN = 1e-12
"""What counts as better: sums are rounded."""
BEYOND = 2.0
"""How far outside the switching points the outermost factors are put."""


class Race:
    """Votes times factors, and their first two on each row.

    Parameters
    ----------
    vote : ndarray of shape (n, C)
        0 or more; of equal scores the class that is numbered first wins.
    labels : ndarray of shape (n,)
    weight : ndarray of shape (n,)
    factors : ndarray of shape (C,)
        Changed by :meth:`set_factor`.
    """

    def __init__(
        self, vote: Number, labels: Places, weight: Number, factors: Number
    ) -> None:
        self.vote, self.labels, self.weight, self.factors = vote, labels, weight, factors
        n, n_classes = vote.shape
        self._total = np.bincount(labels, weight, minlength=n_classes).astype(np.float64)
        self._voted = [np.flatnonzero(vote[:, c] > 0) for c in range(n_classes)]
        self._places = np.empty((2, n), np.intp)
        self._scores = np.empty((2, n))
        self._rank(np.arange(n))

    def sum_of_f1(self) -> float:
        """What the factors as they are give."""
        table = confusion(self.labels, self._places[0], self.weight, len(self.factors))
        return float(f1_by_class(table).sum())

    def set_factor(self, c: int, factor: float) -> None:
        self.factors[c] = factor
        was_there = (self._places == c).any(axis=0)
        gets_there = self.vote[:, c] * factor >= self._scores[1]
        self._rank(np.flatnonzero(was_there | gets_there))

    def _rank(self, rows: Places) -> None:
        """Find the first two of these rows."""
        scores, here = self.vote[rows] * self.factors, np.arange(len(rows))
        for place in range(2):
            best = scores.argmax(axis=1)
            self._places[place, rows] = best
            self._scores[place, rows] = scores[here, best]
            scores[here, best] = -np.inf

    def best_factor(self, c: int) -> tuple[float, float]:
        """The best factor of one class, the others being fixed, and the sum of F1 then.

        A row turns to the class where its factor passes rival / own vote. In the order of
        these points the rows are counted off from their rivals. Rows without a vote for
        the class never turn.
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
        # Cuts between rows that turn at different points; a cut at i turns the first i.
        changes = np.flatnonzero(point[1:] > point[:-1]) + 1
        cuts = np.concatenate([[0], changes, [len(point)]])
        low = np.append(0.0, point)[cuts]
        high = np.append(point, np.inf)[cuts]
        usable = np.isfinite(low) & (high > 0)
        usable &= (low > 0) | np.isfinite(high)
        if not usable.any():
            return -np.inf, float(self.factors[c])
        cuts, low, high = cuts[usable], low[usable], high[usable]
        mass, of_class = self.weight[rows], self.labels[rows] == c
        worth = _f1_of_joined(mass, of_class, self._total[c])[cuts]
        worth += self._f1_of_left(rival, rows)[cuts]
        low = np.where(low > 0, low, high / BEYOND**2)
        high = np.where(np.isfinite(high), high, low * BEYOND**2)
        best = np.flatnonzero(worth >= worth.max() - GAIN)
        widest = best[np.argmax(high[best] / low[best])]
        return float(worth[widest]), float(np.sqrt(low[widest] * high[widest]))

    def _f1_of_left(self, rival: Places, rows: Places) -> Number:
        """The sum of the F1 of all rivals when the first i of ``rows`` have left them.

        A row that leaves changes the F1 of its own rival alone, so that one pass over the
        rows, rival by rival, finds all changes.
        """
        total, n_classes = self._total, len(self._total)
        right = self.weight * (rival == self.labels)
        named = np.bincount(rival, self.weight, minlength=n_classes)
        found = np.bincount(rival, right, minlength=n_classes)
        start = 2 * found / np.maximum(total + named, TINY)
        own = rival[rows].astype(np.uint16)  # whole numbers of 16 bits are sorted fastest
        by_rival = np.argsort(own, kind="stable")
        starts = np.cumsum(np.bincount(own, minlength=n_classes))
        own = own[by_rival]
        first = np.append(0, starts)[own]  # where the rows of the same rival begin
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
    """F1 of a class when the first i rows, and no others, are named it: (n + 1,)."""
    named = np.concatenate([[0.0], np.cumsum(mass)])
    hits = np.concatenate([[0.0], np.cumsum(mass * of_class)])
    score: Number = 2 * hits / np.maximum(total + named, TINY)
    return score
