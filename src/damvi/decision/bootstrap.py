"""How far a threshold, and its worth, would move on other rows of the same kind.

Rows are drawn again within each class. What counts of a draw is how many rows of each
class, and of each fold, fall between two candidate thresholds: a multinomial, drawn at
once and never row by row. The candidates lie just below the positives, where every
objective here has its best threshold (a lower one only adds false alarms); beyond
``MAX_CUTS`` positives they are thinned evenly. A draw is exact while rows of the same
cell weigh the same; otherwise they count with their mean weight.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .counts import Counts, Number
from .objectives import Fixed, Objective
from .rows import Rows
from .threshold import best

N_DRAWS = 300
MAX_CUTS = 400
LEVEL = 0.9
"""How much of the draws an interval holds."""

Interval = tuple[float, float]


def bootstrap(
    rows: Rows, aim: Objective, folds: NDArray[np.intp], seed: int
) -> tuple[Interval, Interval]:
    """Intervals for the threshold, and for its cross-fitted value.

    Each draw is tuned on all its rows for the former. For the latter it is tuned anew
    without each fold, and judged there.
    """
    rng = np.random.RandomState([seed, 7])
    cuts = _candidates(rows, aim)
    n_folds = int(folds.max()) + 1
    mass = aim.mass(rows)
    found, alarms = (
        _flagged(rng, rows.take(side), mass[side], folds[side], n_folds, cuts)
        for side in (rows.positive, ~rows.positive)
    )
    total = float(rows.weight.sum())
    whole = _counts(found.sum(axis=1), alarms.sum(axis=1), total)
    threshold = cuts[_choose(aim, whole)]

    pooled = np.zeros((2, N_DRAWS))
    for fold in range(n_folds):
        rest = np.arange(n_folds) != fold
        others = _counts(found[:, rest].sum(axis=1), alarms[:, rest].sum(axis=1), total)
        chosen = _choose(aim, others)[:, None]
        for side, flagged in enumerate((found, alarms)):
            pooled[side] += np.take_along_axis(flagged[:, fold], chosen, axis=1)[:, 0]
    positives, negatives = found[:, :, -1].sum(axis=1), alarms[:, :, -1].sum(axis=1)
    value = aim.value(Counts(pooled[0], pooled[1], positives, negatives, total))
    return _interval(threshold), _interval(value)


def _candidates(rows: Rows, aim: Objective) -> Number:
    """Thresholds from high to low, the first of which flags nothing."""
    if isinstance(aim, Fixed):
        return np.array([aim.threshold])
    votes = np.unique(rows.vote)
    places = np.searchsorted(votes, np.unique(rows.vote[rows.positive]))
    if len(places) > MAX_CUTS:
        thinned = np.linspace(0, len(places) - 1, MAX_CUTS).round().astype(np.intp)
        places = places[thinned]
    above, below = votes[places], votes[places - 1]
    middle = below / 2 + above / 2
    middle = np.where((below <= middle) & (middle < above), middle, below)
    if places[0] == 0:
        middle[0] = np.nextafter(votes[0], -np.inf)
    return np.append(np.nextafter(votes[-1], np.inf), middle[::-1])


def _flagged(
    rng: np.random.RandomState,
    rows: Rows,
    mass: Number,
    folds: NDArray[np.intp],
    n_folds: int,
    cuts: Number,
) -> Number:
    """The mass of a class above each cut, by draw and fold: (draws, folds, cuts + 1).

    The last entry is the whole mass.
    """
    # A row belongs to the first cut, from the top, that its vote is above.
    bins = len(cuts) - np.searchsorted(cuts[::-1], rows.vote, side="left")
    cell = folds * (len(cuts) + 1) + bins
    n_cells = n_folds * (len(cuts) + 1)
    members = np.bincount(cell, minlength=n_cells)
    drawn = np.zeros((N_DRAWS, n_cells))
    if len(rows):
        filled = np.flatnonzero(members)
        mean = np.bincount(cell, mass, minlength=n_cells)[filled] / members[filled]
        share = members[filled] / len(rows)
        drawn[:, filled] = rng.multinomial(len(rows), share, size=N_DRAWS) * mean
    return drawn.reshape(N_DRAWS, n_folds, -1).cumsum(axis=2)


def _counts(found: Number, alarms: Number, total: float) -> Counts:
    return Counts(found[:, :-1], alarms[:, :-1], found[:, -1:], alarms[:, -1:], total)


def _choose(aim: Objective, counts: Counts) -> NDArray[np.intp]:
    """The best cut of each draw; of equals, the one that flags fewest."""
    return np.argmax(best(aim.preference(counts)), axis=1)


def _interval(values: Number) -> Interval:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
