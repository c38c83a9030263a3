"""Tuning of the threshold for two classes, and of a factor for each of three or more.

A threshold is the factor of one class against the other. For two classes, all possible
thresholds are compared in one sort; with few positives, on expected counts. For three or
more, a larger factor for a rare class finds more of its rows, with more false alarms; the
factors balance this for macro F1, one class at a time.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels import positive_wins
from .calibration import ENOUGH_POSITIVES, calibrate_rows, effective_size
from .objectives import (
    SLACK,
    TINY,
    Classes,
    Counts,
    Fixed,
    Flags,
    Floor,
    MacroF1,
    Number,
    Objective,
    Rows,
    confusion,
    f1_by_class,
    parse_objective,
    read_rows,
)

Threshold = float | NDArray[np.float64]

LARGEST = float(np.finfo(np.float64).max)
GAIN = 1e-12
"""Minimum improvement of macro F1, in view of rounding."""
BEYOND = 2.0
"""How far beyond the switching points the outermost factors are placed."""
BELOW = 1 / 8
"""How far the threshold of a budget is below the lowest flagged vote, as a share of the gap
to the next. If k of n votes are flagged, a new vote exceeds the lowest flagged one with
probability k / (n + 1), and the next one with probability (k + 1) / (n + 1)."""
MAX_SWEEPS = 20
MOST_SMOOTHED = 100_000
"""Rows above which thresholds are not smoothed: calibrating each fold would take longer
than it is worth."""


def tune_threshold(
    vote: ArrayLike,
    targets: ArrayLike,
    objective: Any,
    *,
    sample_weight: ArrayLike | None = None,
    order: ArrayLike | None = None,
    smooth: bool = False,
) -> Any:
    """Find the best threshold, or the best factors of three or more classes.

    For two classes, all possible thresholds are compared, so this is the optimum. Rows with
    equal votes are decided together. The threshold is halfway between two adjacent votes;
    if all rows, or none, should be flagged, it is the next float outside their range. Of
    adjacent thresholds that are equally good, the middle one is taken; of several such
    runs, the longest, then the one with the fewest flags. So the decisions depend only on
    the order of the votes, and a weight of 2 is equivalent to a duplicate row.

    For three or more classes, all factors of one class that make a difference are compared,
    class by class, until no single factor can be improved. The search starts from equal
    factors, and again from factors that equalise the total vote of each class; the better
    result is taken.

    Parameters
    ----------
    vote : array of shape (n,) or (n, C)
        Out-of-sample votes for the positive class, or non-negative ones for each of three
        or more classes; rows with NaN are ignored.
    targets : array of int, shape (n,)
        Class numbers; of two classes, 1 is the positive one.
    objective : str, number, tuple, dict, array or Objective
        See :func:`parse_objective`.
    sample_weight : array of shape (n,), optional
    order : array of int, shape (C,), optional
        The classes in the order in which they win ties; by default 0, 1, ...
    smooth : bool, default=False
        With fewer than 300 (effective) positives, maximise the expected F score, or
        minimise the expected cost: each row counts as positive with the probability that
        :func:`calibrate_vote` gives its vote, so that a few lucky positives do not decide
        the threshold. The estimators use this. Minimum rates, budgets of flags, costs
        that differ from row to row, three or more classes, and more than 100,000 rows are
        not affected.

    Returns
    -------
    threshold : float, or ndarray of shape (C,)
        Finite. Rows with a vote above it should be flagged, and also at it if ``order``
        starts with 1. Only ratios of factors matter; that of ``order[0]`` is 1.

    Warns
    -----
    UserWarning
        If no threshold reaches a minimum precision. The closest one is returned.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import tune_threshold
    >>> vote, targets = [-0.9, -0.4, -0.2, 0.1, 0.3], [0, 0, 1, 0, 1]
    >>> round(tune_threshold(vote, targets, "f1"), 3)
    -0.3
    >>> round(tune_threshold(vote, targets, {"precision": 0.9}), 3)
    0.2
    >>> votes = np.array([[0.7, 0.2, 0.1], [0.6, 0.4, 0.0], [0.5, 0.2, 0.3]])
    >>> factors = tune_threshold(votes, [0, 1, 2], "macro_f1")
    >>> (votes * factors).argmax(axis=1)
    array([0, 1, 2])
    """
    rows = read_rows(vote, targets, sample_weight)
    aim = parse_objective(objective, rows.n_classes)
    aim.check(rows)
    threshold = search(rows, aim, order, smooth=smooth and is_smoothed(rows, aim))
    warn_if_out_of_reach(rows, aim, threshold, order)
    return threshold


def search(
    rows: Rows, aim: Objective, order: ArrayLike | None = None, *, smooth: bool = False
) -> Any:
    """The best threshold, or the best factors."""
    if isinstance(aim, Fixed):
        return aim.threshold
    if isinstance(aim, MacroF1):
        return _best_factors(rows, order)
    wins = positive_wins(order)
    if smooth and rows.has_both:
        return _best_expected_cut(rows, aim, wins)
    return _best_cut(rows, aim.among(rows.n_given), wins)


def is_smoothed(rows: Rows, aim: Objective) -> bool:
    """Whether ``smooth`` has an effect: expected counts are better if positives are few."""
    if not (aim.can_be_smoothed and rows.has_both and len(rows) <= MOST_SMOOTHED):
        return False
    return effective_size(rows.weight[rows.positive]) < ENOUGH_POSITIVES


def warn_if_out_of_reach(
    rows: Rows, aim: Objective, threshold: Any, order: ArrayLike | None
) -> None:
    """Warn if a minimum recall or precision was not reached."""
    if not isinstance(aim, Floor):
        return
    decided = rows.decided(threshold, order)
    counts = Counts.of(rows, decided == 1, rows.weight)
    if not aim.reached(counts):
        warnings.warn(
            f"no threshold reaches a {aim.rate} of {aim.floor:g} on these rows; the "
            f"closest has {float(aim.kept(counts)):.3g}. Lower the minimum, or improve the "
            f"model",
            UserWarning,
            stacklevel=3,
        )


# Two classes: all thresholds at once.


def _best_cut(rows: Rows, aim: Objective, wins: bool) -> float:
    """The best threshold; above all votes if there are no positives."""
    votes, counts = all_cuts(rows.vote, rows.positive, aim.mass(rows), rows.total)
    good = np.flatnonzero(best(aim.preference(counts)))
    if isinstance(aim, Flags):
        return _threshold_at(int(good[-1]), votes, wins, BELOW)
    if not rows.positive.any():
        return _threshold_at(len(votes), votes, wins)
    return _threshold_at(_middle(good), votes, wins)


def _best_expected_cut(rows: Rows, aim: Objective, wins: bool) -> float:
    """The same where each row is positive with its calibrated probability."""
    chance = calibrate_rows(rows)(rows.vote)
    if_positive, if_negative = aim.masses(rows)
    masses = chance * if_positive, (1 - chance) * if_negative
    votes, counts = _cuts(rows.vote, *masses, rows.total)
    good = np.flatnonzero(best(aim.preference(counts)))
    return _threshold_at(_middle(good), votes, wins)


def _middle(good: NDArray[np.intp]) -> int:
    """The middle of the longest run of neighbouring cuts; of several, of the last."""
    breaks = np.flatnonzero(np.diff(good) > 1)
    first = good[np.append(0, breaks + 1)]
    last = good[np.append(breaks, len(good) - 1)]
    length = last - first
    run = np.flatnonzero(length == length.max())[-1]
    return int(first[run] + last[run] + 1) // 2


def best(preference: tuple[Number, ...]) -> NDArray[np.bool_]:
    """Mask of the best entries along the last axis, up to rounding."""
    good = np.ones(preference[0].shape, dtype=np.bool_)
    for level in preference:
        slack = SLACK * np.abs(level).max(axis=-1, keepdims=True)
        ranked = np.where(good, level, -np.inf)
        good = ranked >= ranked.max(axis=-1, keepdims=True) - slack
    return good


def _threshold_at(cut: int, votes: Number, wins: bool, part: float = 0.5) -> float:
    """A threshold that flags exactly the votes from the ``cut``-th on."""
    if cut == 0:
        return max(float(np.nextafter(votes[0], -np.inf)), -LARGEST)
    if cut == len(votes):
        return min(float(np.nextafter(votes[-1], np.inf)), LARGEST)
    return float(between(votes[cut - 1], votes[cut], wins, part))


def between(below: Any, above: Any, wins: bool, part: float = 0.5) -> Number:
    """Thresholds between adjacent votes, this ``part`` of the way down.

    Between adjacent floats, the threshold is the vote that is not flagged, or the one that
    is flagged if the positive class wins ties.
    """
    middle = below * part + above * (1 - part)
    if wins:
        return np.where((below < middle) & (middle <= above), middle, above)
    return np.where((below <= middle) & (middle < above), middle, below)


def all_cuts(
    vote: Number, positive: NDArray[np.bool_], mass: Number, total: float
) -> tuple[Number, Counts]:
    """The m distinct votes in ascending order, and the counts for all m + 1 thresholds.

    Threshold j flags the distinct votes from the j-th on: all of them for 0, none for m.
    """
    each = [_common(mass[side]) for side in (positive, ~positive)]
    if None not in each:
        return _cuts_of_equals(vote, positive, each, total)
    return _cuts(vote, np.where(positive, mass, 0.0), np.where(positive, 0.0, mass), total)


def _cuts(
    vote: Number, found: Number, alarms: Number, total: float
) -> tuple[Number, Counts]:
    """The same by what each row adds to the positives found, and to the false alarms."""
    order = np.argsort(vote)
    ranked = vote[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    found, alarms = (_from_the_top(mass[order], starts) for mass in (found, alarms))
    return ranked[starts], Counts(found, alarms, found[0], alarms[0], total)


def _common(mass: Number) -> float | None:
    """The mass of all rows if it is the same, else None."""
    if not len(mass):
        return 0.0
    low, high = float(mass.min()), float(mass.max())
    return low if low == high else None


def _cuts_of_equals(
    vote: Number, positive: NDArray[np.bool_], each: list[Any], total: float
) -> tuple[Number, Counts]:
    """:func:`all_cuts` for equal masses within each class, by a faster sort of values."""
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


# Three or more classes: all factors of one class at once, class by class.


def _best_factors(rows: Rows, order: ArrayLike | None) -> Number:
    """The best factors for macro F1; equal ones if nothing can be learned."""
    n_classes = rows.n_classes
    places = np.arange(n_classes) if order is None else np.asarray(order, np.intp)
    # Columns in the order in which they win ties, so that argmax returns the winner.
    votes = np.ascontiguousarray(rows.vote[:, places])
    targets = np.argsort(places)[rows.targets]
    level = votes.mean(axis=0)
    starts = [np.ones(n_classes), level.max() / np.where(level > 0, level, level.max())]
    ends = [_climb(votes, targets, rows.weight, start) for start in starts]
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
