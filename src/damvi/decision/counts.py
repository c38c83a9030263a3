"""What each cut of the votes finds and what it flags in vain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Number = NDArray[np.float64]
"""One number, or one a cut (and a draw)."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Weighted counts of decisions.

    Attributes
    ----------
    found, alarms : ndarray
        Positives and negatives that are flagged.
    positives, negatives : ndarray
        All of them.
    total : float
        The weight of all rows. It differs from positives + negatives where these are
        counted in costs.
    """

    found: Number
    alarms: Number
    positives: Number
    negatives: Number
    total: float

    @property
    def recall(self) -> Number:
        """The share of the positives that is found; 0 of none."""
        return _share(self.found, self.positives)

    @property
    def precision(self) -> Number:
        """The share of positives among the flagged; 0 of none."""
        return _share(self.found, self.found + self.alarms)

    def f_score(self, beta: float) -> Number:
        """The weighted harmonic mean of precision and recall; 0 without positives."""
        squared = beta * beta
        whole = squared * self.positives + self.found + self.alarms
        return _share((1 + squared) * self.found, whole)


def _share(part: Number, whole: Number) -> Number:
    with np.errstate(invalid="ignore", divide="ignore"):
        share: Number = np.where(whole > 0, part / whole, 0.0)
    return share


def counts_of(
    flagged: NDArray[np.bool_], positive: NDArray[np.bool_], mass: Number, total: float
) -> Counts:
    """The counts of given decisions, each row counting for its ``mass``."""
    return Counts(
        found=np.asarray(mass[flagged & positive].sum()),
        alarms=np.asarray(mass[flagged & ~positive].sum()),
        positives=np.asarray(mass[positive].sum()),
        negatives=np.asarray(mass[~positive].sum()),
        total=total,
    )


def all_cuts(
    vote: Number, positive: NDArray[np.bool_], mass: Number, total: float
) -> tuple[Number, Counts]:
    """The m distinct votes, ascending, and the counts of all m + 1 ways to cut them.

    Cut j flags the distinct votes from the j-th on: all of them at 0, none at m.
    """
    each = [_common(mass[side]) for side in (positive, ~positive)]
    if None not in each:
        return _cuts_of_equals(vote, positive, each, total)
    order = np.argsort(vote)
    ranked = vote[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    mass, positive = mass[order], positive[order]
    found = _from_the_top(np.where(positive, mass, 0.0), starts)
    alarms = _from_the_top(np.where(positive, 0.0, mass), starts)
    return ranked[starts], Counts(found, alarms, found[0], alarms[0], total)


def _common(mass: Number) -> float | None:
    """What all rows count for, if it is the same."""
    if not len(mass):
        return 0.0
    low, high = float(mass.min()), float(mass.max())
    return low if low == high else None


def _cuts_of_equals(
    vote: Number, positive: NDArray[np.bool_], each: list[Any], total: float
) -> tuple[Number, Counts]:
    """The same where a class's rows count alike: a sort of values, which is faster."""
    ranked = np.sort(vote)
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    votes = ranked[starts]
    places = np.searchsorted(votes, vote[positive])
    above = np.bincount(places, minlength=len(votes) + 1)[::-1].cumsum()[::-1]
    flagged = np.append(len(ranked) - starts, 0)
    found, alarms = above * each[0], (flagged - above) * each[1]
    return votes, Counts(found, alarms, found[0], alarms[0], total)


def _from_the_top(mass: Number, starts: NDArray[np.intp]) -> Number:
    sums = np.add.reduceat(mass, starts)
    return np.append(np.cumsum(sums[::-1])[::-1], 0.0)
