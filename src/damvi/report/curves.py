"""Data for sliders and charts: thresholds, class weights, curves and histograms."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..evaluation import confusion, share

MAX_CUTS = 2000
"""Limit on thresholds at positives, and on evenly spaced ones."""
N_BINS = 10
N_BARS = 40
TIMES = (1.2, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)
STEPS = (*(1 / times for times in TIMES[::-1]), 1.0, *TIMES)
"""Weights of a class, relative to the model, that the slider offers."""
OWN = STEPS.index(1.0)

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]
Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cuts:
    """Thresholds, from flagging no row to flagging all.

    Attributes
    ----------
    threshold : ndarray of float
        Decreasing. Rows with a vote strictly above it are flagged.
    found, alarms : ndarrays of int
        Exact counts of flagged positives and negatives.
    positives, negatives : int
    own : int
        The index of the model's own threshold.
    """

    threshold: Floats
    found: Ints
    alarms: Ints
    positives: int
    negatives: int
    own: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        lists = {name: getattr(self, name).tolist() for name in ("threshold", "found")}
        return {**asdict(self), **lists, "alarms": self.alarms.tolist()}

    def curves(self) -> dict[str, Any]:
        """Points of the precision-recall and ROC curves, one for each cut.

        With nothing flagged, precision is that of the first flagged rows.
        """
        precision = self.found[1:] / (self.found + self.alarms)[1:]
        return {
            "recall": (self.found / max(self.positives, 1)).tolist(),
            "alarm_rate": (self.alarms / max(self.negatives, 1)).tolist(),
            "precision": [*precision[:1].tolist(), *precision.tolist()],
        }


def offer_cuts(
    vote: Floats,
    positive: Mask,
    own: float,
    most: int = MAX_CUTS,
    also: ArrayLike = (),
) -> Cuts:
    """The cuts to offer; the best one for any costs is always among them.

    A cut between two neighbouring positives is never better than one at the higher
    positive, which finds as many with fewer false alarms. So one cut per number found is
    enough for any costs and any recall floor. If there are more than ``most`` such cuts,
    the corners of their convex hull are kept (each is best for some costs), and the others
    are thinned evenly. Evenly spaced cuts, and those at the thresholds ``also``, are added.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.report.curves import offer_cuts
    >>> vote = np.array([-0.9, -0.5, 0.1, 0.4])
    >>> cuts = offer_cuts(vote, np.array([False, True, False, True]), own=0.0)
    >>> cuts.found.tolist(), cuts.alarms.tolist(), cuts.own
    ([0, 1, 1, 2, 2], [0, 0, 1, 1, 2], 2)
    """
    votes, place = np.unique(vote, return_inverse=True)
    # From none flagged to all flagged.
    found, alarms = (
        np.append(0, np.bincount(place[rows], minlength=len(votes))[::-1].cumsum())
        for rows in (positive, ~positive)
    )
    thresholds = _between(votes)[::-1].copy()
    here = len(votes) - int(np.searchsorted(votes, own, side="right"))
    thresholds[here] = own
    asked = len(votes) - np.searchsorted(votes, also, side="right")
    corners = np.flatnonzero(np.diff(found, prepend=-1) > 0)
    ends = np.array([0, here, len(found) - 1])
    hull = corners[_hull(found[corners], alarms[corners])]
    spread = _spread(corners, most), _spread(np.arange(len(found)), most)
    chosen = np.unique(np.concatenate([*spread, hull, ends, asked]))
    return Cuts(
        thresholds[chosen],
        found[chosen],
        alarms[chosen],
        positives=int(positive.sum()),
        negatives=int((~positive).sum()),
        own=int(np.searchsorted(chosen, here)),
    )


def offer_weights(
    vote: Floats, labels: Labels, factors: Floats, order: Labels
) -> list[list[Ints]]:
    """Confusion tables when the votes for one class count for more, or less.

    There is one for each class and each of ``STEPS``; the other classes keep their factors,
    and ties go by ``order``. The page then has exact counts without holding the votes.
    ``factors`` are (C,), or (n, C) if rows have their own.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.report.curves import OWN, offer_weights
    >>> vote = np.array([[0.6, 0.4, 0.0], [0.5, 0.3, 0.2]])
    >>> tables = offer_weights(vote, np.array([0, 1]), np.ones(3), np.arange(3))
    >>> tables[1][OWN].tolist()
    [[1, 0, 0], [1, 0, 0], [0, 0, 0]]
    >>> tables[1][-1].tolist()  # class 1 counts a hundredfold
    [[0, 1, 0], [0, 1, 0], [0, 0, 0]]
    """
    n_classes = vote.shape[1]
    offered = []
    for c in range(n_classes):
        rival, against, wins_ties = _rivals(vote, factors, order, c)
        tables = []
        for step in STEPS:
            own = vote[:, c] * (factors[..., c] * step)
            turned = (own > against) | ((own == against) & wins_ties)
            tables.append(confusion(labels, np.where(turned, c, rival), n_classes))
        offered.append(tables)
    return offered


def standing(vote: Floats, factors: Floats, order: Labels, c: int) -> Floats:
    """How close each row is to class ``c``, from 0 to 1; above one half, it is predicted.

    The class's share of the votes times factors that it and its strongest rival have. With
    its factor times ``step``, a row gets the class if its standing is above
    1 / (1 + step), so these are the thresholds along the slider of a class.
    """
    _, against, wins_ties = _rivals(vote, factors, order, c)
    own = vote[:, c] * factors[..., c]
    both = own + against
    share = np.divide(own, both, out=np.full(len(vote), 0.5), where=both > 0)
    turned = (own > against) | ((own == against) & wins_ties)
    # Despite rounding, exactly the rows with that class are above one half.
    return np.where(turned, np.maximum(share, np.nextafter(0.5, 1)), np.minimum(share, 0.5))


def _rivals(
    vote: Floats, factors: Floats, order: Labels, c: int
) -> tuple[Labels, Floats, Mask]:
    """For each row, the best class other than ``c``, its votes times factor, and whether
    ``c`` wins a tie against it."""
    scores = vote * factors
    scores[:, c] = -np.inf
    rival = order[scores[:, order].argmax(axis=1)]
    rank = np.argsort(order)
    return rival, scores[np.arange(len(vote)), rival], rank[c] < rank[rival]


def calibration(chance: Floats, positive: Mask) -> list[dict[str, Any]]:
    """Bins of equal size: the mean predicted probability and the share of positives.

    With rare positives most bins are near 0, so the highest bin is split repeatedly until
    it has about a tenth of the positives.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.report.curves import calibration
    >>> bins = calibration(np.linspace(0, 1, 100), np.arange(100) >= 50)
    >>> len(bins), bins[0]["rows"], bins[-1]["seen"]
    (10, 10, 1.0)
    """
    order = np.argsort(chance, kind="stable")
    ranked, n, n_positive = chance[order], len(order), int(positive.sum())
    edges = np.linspace(0, n, N_BINS + 1)
    while n - edges[-2] > 2 * max(20.0, n_positive / N_BINS) and 2 * n_positive < n:
        edges = np.append(edges[:-1], [(edges[-2] + n) / 2, n])
    edges = np.unique(edges.round().astype(np.intp))
    # Rows with the same probability stay together.
    inner = np.searchsorted(ranked, ranked[edges[1:-1]], side="left")
    edges = np.unique(np.concatenate([[0], inner, [n]]))
    bins = []
    for start, stop in pairwise(edges.tolist()):
        rows = order[start:stop]
        seen = share(int(positive[rows].sum()), len(rows))
        bins.append(
            {
                "rows": len(rows),
                "positives": seen["part"],
                "said": float(chance[rows].mean()),
                "from": float(ranked[start]),
                "to": float(ranked[stop - 1]),
                "seen": seen["value"],
                "low": seen["low"],
                "high": seen["high"],
            }
        )
    return bins


def distribution(
    vote: Floats, positive: Mask | None, span: tuple[float, float] = (-1.0, 1.0)
) -> dict[str, Any]:
    """A histogram of the votes, with 40 bars, by class."""
    low, high = min(float(vote.min()), span[0]), max(float(vote.max()), span[1])
    edges = np.linspace(low, high, N_BARS + 1)
    groups = {"all": np.ones(len(vote), dtype=bool)}
    if positive is not None:
        groups = {"positive": positive, "negative": ~positive}
    counted = {name: np.histogram(vote[rows], edges)[0] for name, rows in groups.items()}
    return {
        "edges": edges.tolist(),
        **{name: counts.tolist() for name, counts in counted.items()},
    }


def _between(votes: Floats) -> Floats:
    """A threshold for each cut: midway between two votes, or just outside the ends."""
    below, above = votes[:-1], votes[1:]
    middle = below / 2 + above / 2
    middle = np.where((below <= middle) & (middle < above), middle, below)
    ends = np.nextafter(votes[0], -np.inf), np.nextafter(votes[-1], np.inf)
    return np.concatenate([[ends[0]], middle, [ends[1]]])


def _spread(places: Labels, most: int) -> Labels:
    if len(places) <= most:
        return places
    return places[np.linspace(0, len(places) - 1, most).round().astype(np.intp)]


def _hull(found: Ints, alarms: Ints) -> list[int]:
    """Corners of the upper hull of found over alarms, both increasing."""
    hull: list[int] = []
    points = list(zip(alarms.tolist(), found.tolist(), strict=True))
    for k, (x, y) in enumerate(points):
        while len(hull) >= 2:
            (x1, y1), (x2, y2) = (points[i] for i in hull[-2:])
            # The middle one stays only if it lies strictly above the line around it.
            if (y2 - y1) * (x - x1) > (y - y1) * (x2 - x1):
                break
            hull.pop()
        hull.append(k)
    return hull
