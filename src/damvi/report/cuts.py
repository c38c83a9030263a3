"""The thresholds that the page offers, with exact counts of what each finds and flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..decision.threshold import all_cuts

MAX_CUTS = 2000
"""Cuts that end at a positive, and as many again evenly over all rows."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cuts:
    """Ways to cut the votes, from the one that flags no row to the one that flags all.

    Attributes
    ----------
    threshold : ndarray of float
        Rows with a vote above it, strictly, are flagged. Falling.
    found, alarms : ndarrays of int
        Positives and negatives flagged: exact counts, whatever was left out.
    positives, negatives : int
    own : int
        Where the model's own threshold is among them.
    """

    threshold: NDArray[np.float64]
    found: Ints
    alarms: Ints
    positives: int
    negatives: int
    own: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "threshold": self.threshold.tolist(),
            "found": self.found.tolist(),
            "alarms": self.alarms.tolist(),
            "positives": self.positives,
            "negatives": self.negatives,
            "own": self.own,
        }


def offer_cuts(
    vote: NDArray[np.float64],
    positive: NDArray[np.bool_],
    own: float,
    most: int = MAX_CUTS,
) -> Cuts:
    """The cuts worth offering; the best for any costs is always among them.

    A cut between two neighbouring positives is never better than the higher one, which
    finds as many with fewer alarms. So one cut for each number found is enough for any
    costs and any floor of recall. Of more than ``most`` such cuts, all corners of
    their convex hull stay (the best for some costs), and the others are thinned evenly.
    Cuts spread evenly over the rows are added, for a threshold moved by hand.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.report.cuts import offer_cuts
    >>> vote = np.array([-0.9, -0.5, 0.1, 0.4])
    >>> cuts = offer_cuts(vote, np.array([False, True, False, True]), own=0.0)
    >>> cuts.found.tolist(), cuts.alarms.tolist(), cuts.own
    ([0, 1, 1, 2, 2], [0, 0, 1, 1, 2], 2)
    """
    votes, counts = all_cuts(vote, positive, np.ones(len(vote)), float(len(vote)))
    # From none flagged to all flagged.
    found = np.rint(counts.found[::-1]).astype(np.int64)
    alarms = np.rint(counts.alarms[::-1]).astype(np.int64)
    thresholds = _between(votes)[::-1].copy()
    here = len(votes) - int(np.searchsorted(votes, own, side="right"))
    thresholds[here] = own

    corners = np.flatnonzero(np.diff(found, prepend=-1) > 0)
    chosen = np.unique(
        np.concatenate(
            [
                _spread(corners, most),
                corners[_hull(found[corners], alarms[corners])],
                _spread(np.arange(len(found)), most),
                np.array([0, here, len(found) - 1]),
            ]
        )
    )
    return Cuts(
        thresholds[chosen],
        found[chosen],
        alarms[chosen],
        positives=int(positive.sum()),
        negatives=int((~positive).sum()),
        own=int(np.searchsorted(chosen, here)),
    )


def cheapest(cuts: Cuts, miss: float) -> int:
    """The cut of least cost when a false alarm costs 1; of equals, the fewest flagged.

    The page's script does the same, operation by operation, so that both agree to the
    last bit.
    """
    return int(np.argmin(miss * (cuts.positives - cuts.found) + cuts.alarms))


def best_with_recall(cuts: Cuts, floor: float) -> int:
    """The cut of highest precision that finds ``floor`` of the positives.

    Of equals, the one that finds more. Given to the script as :func:`cheapest` is.
    """
    enough = cuts.found >= np.ceil(floor * cuts.positives - 1e-9)
    flagged = cuts.found + cuts.alarms
    precision = cuts.found / np.maximum(flagged, 1)
    ranked = np.where(enough, precision, -1.0)
    return int(len(ranked) - 1 - np.argmax(ranked[::-1]))


def _between(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """A threshold for each cut: midway between two votes, just outside at the ends."""
    below, above = votes[:-1], votes[1:]
    middle = below / 2 + above / 2
    middle = np.where((below <= middle) & (middle < above), middle, below)
    ends = np.nextafter(votes[0], -np.inf), np.nextafter(votes[-1], np.inf)
    return np.concatenate([[ends[0]], middle, [ends[1]]])


def _spread(places: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    if len(places) <= most:
        return places
    evenly = np.linspace(0, len(places) - 1, most).round().astype(np.intp)
    return places[evenly]


def _hull(found: Ints, alarms: Ints) -> list[int]:
    """Corners of the upper hull of found over alarms, both rising."""
    hull: list[int] = []
    for k, point in enumerate(zip(alarms.tolist(), found.tolist(), strict=True)):
        while len(hull) >= 2:
            (x1, y1), (x2, y2) = ((int(alarms[i]), int(found[i])) for i in hull[-2:])
            # The middle one stays only if it lies strictly above the line around it.
            if (y2 - y1) * (point[0] - x1) > (point[1] - y1) * (x2 - x1):
                break
            hull.pop()
        hull.append(k)
    return hull
