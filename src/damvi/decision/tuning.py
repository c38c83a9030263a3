"""A tuned threshold with what it is worth, honestly, and how sure that is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..folds import folds_to_learn_from
from .objectives import (
    Counts,
    Fixed,
    Flags,
    Objective,
    confusion,
    f1_by_class,
    parse_objective,
    share,
)
from .rows import Classes, Number, Rows, deal_folds, read_folds, read_rows
from .threshold import best, search, warn_if_out_of_reach

N_FOLDS = 5
N_DRAWS = 300
MAX_CUTS = 400
SPREAD = 6
"""Standard errors around a budget's threshold in which draws look for theirs."""
LEVEL = 0.9
"""How much of the draws an interval holds."""

Interval = tuple[float, float]
ByClass = float | tuple[float, ...]
"""Of the positive class, or of each of three or more classes."""


@dataclass(frozen=True)
class Tuning:
    """What :func:`tune` found. ``print`` it to read it.

    Attributes
    ----------
    objective : str
        What ``value`` and ``honest_value`` measure.
    threshold : float or tuple of float
        Tuned on all rows. Votes above it are flagged; of three or more classes, the factor
        of each.
    value : float
        The objective on the rows that the threshold was tuned on: too good.
    honest_value : float
        The objective where every row is decided by a threshold tuned on other folds.
    honest_recall, honest_precision, honest_f1 : float or tuple of float
        What these decisions are worth for the positive class, or for each of three or more
        classes. The rates say whether a floor holds.
    threshold_interval : (float, float) or None
        Where 90 % of bootstrap draws put the threshold; None for factors.
    value_interval : (float, float)
        Where they put the honest value. Of three or more classes, with the decisions taken
        as given.
    """

    objective: str
    threshold: ByClass
    value: float
    honest_value: float
    honest_recall: ByClass
    honest_precision: ByClass
    honest_f1: ByClass
    threshold_interval: Interval | None
    value_interval: Interval

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain Python values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        low, high = self.value_interval
        lines = [
            f"{self.objective}  {self.honest_value:.3g}  (90 %: {low:.3g} to {high:.3g}) "
            f"on rows not tuned on, {self.value:.3g} on those that were"
        ]
        if self.threshold_interval is None:
            lines.insert(0, f"factors  {_listed(self.threshold)}")
            lines.append(f"F1 by class  {_listed(self.honest_f1)} on rows not tuned on")
        else:
            low, high = self.threshold_interval
            lines.insert(
                0, f"threshold  {self.threshold:.3g}  (90 %: {low:.3g} to {high:.3g})"
            )
            lines.append(
                f"recall  {self.honest_recall:.3g}, precision  {self.honest_precision:.3g} "
                f"on rows not tuned on"
            )
        return "\n".join(lines)


def _listed(numbers: Any) -> str:
    return ", ".join(f"{number:.3g}" for number in numbers)


def tune(
    vote: ArrayLike,
    targets: ArrayLike,
    objective: Any,
    *,
    folds: ArrayLike | None = None,
    forward: bool = False,
    sample_weight: ArrayLike | None = None,
    order: ArrayLike | None = None,
    seed: int = 0,
) -> Tuning:
    """Tune a threshold and say what it is worth on rows it was not tuned on.

    Parameters
    ----------
    vote, targets, objective, sample_weight, order
        As for :func:`tune_threshold`.
    folds : array of int of shape (n,), optional
        The fold of each row. By default rows are dealt over 5 folds, class by class.
    forward : bool, default=False
        The folds are windows in the order of time: each is decided by the threshold that
        is best for those before it, the first by that of the others.
    seed : int, default=0
        Of the folds, if they are dealt, and of the bootstrap.

    Returns
    -------
    tuning : Tuning

    Notes
    -----
    Decisions of all folds are pooled before they are judged: a mean of F scores over
    folds depends on how the positives fall. Where the other folds hold no positive,
    nothing is flagged.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import tune
    >>> rng = np.random.default_rng(0)
    >>> targets = (rng.random(5000) < 0.05).astype(int)
    >>> vote = np.tanh(targets - 1 + 0.4 * rng.standard_normal(5000))
    >>> tuning = tune(vote, targets, "f1")
    >>> tuning.honest_value <= tuning.value
    True
    >>> low, high = tuning.threshold_interval
    >>> low <= tuning.threshold <= high
    True
    """
    rows = read_rows(vote, targets, sample_weight)
    aim = parse_objective(objective, rows.n_classes)
    aim.check(rows)
    numbers = deal_folds(rows, N_FOLDS, seed) if folds is None else read_folds(folds, rows)
    threshold = search(rows, aim, order)
    warn_if_out_of_reach(rows, aim, threshold)
    seen = aim.decide(rows.vote, threshold, order)
    thresholds = _crossfit(rows, aim, numbers, forward, order)
    unseen = aim.decide(rows.vote, thresholds, order)
    if rows.n_classes == 2:
        counts = Counts.of(rows, unseen == 1, rows.weight)
        rates: Any = [counts.recall, counts.precision, counts.f_score(1)]
        threshold_interval, value_interval = _redraw_cuts(rows, aim, numbers, forward, seed)
    else:
        table = confusion(rows.targets, unseen, rows.weight, rows.n_classes)
        found = np.diagonal(table)
        rates = [share(found, table.sum(axis=axis)) for axis in (1, 0)]
        rates.append(f1_by_class(table))
        threshold_interval, value_interval = None, _redraw_table(table, rows, seed)
    recall, precision, f1 = (_plain(rate) for rate in rates)
    return Tuning(
        objective=aim.name,
        threshold=_plain(threshold),
        value=aim.judge(rows, seen)[0],
        honest_value=aim.judge(rows, unseen)[0],
        honest_recall=recall,
        honest_precision=precision,
        honest_f1=f1,
        threshold_interval=threshold_interval,
        value_interval=value_interval,
    )


def _plain(values: Any) -> ByClass:
    return tuple(values.tolist()) if np.ndim(values) else float(values)


def crossfit_decisions(
    vote: ArrayLike,
    targets: ArrayLike,
    objective: Any,
    folds: ArrayLike,
    *,
    forward: bool = False,
    sample_weight: ArrayLike | None = None,
    order: ArrayLike | None = None,
) -> Classes:
    """The class of each row, decided by the threshold that is best for the other folds.

    What :func:`tune` judges for its honest figures. Rows without a vote or a weight get the
    class that is first in a tie; the parameters are those of :func:`tune`.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import crossfit_decisions
    >>> vote, targets = [-0.9, 0.8, -0.5, 0.3], [0, 1, 0, 1]
    >>> crossfit_decisions(vote, targets, "f1", [0, 0, 1, 1])
    array([0, 1, 0, 1])
    >>> targets = np.arange(6) % 3
    >>> votes, folds = np.eye(3)[targets] * 0.5 + 0.1, np.arange(6) // 3
    >>> crossfit_decisions(votes, targets, "macro_f1", folds)
    array([0, 1, 2, 0, 1, 2])
    """
    rows = read_rows(vote, targets, sample_weight)
    aim = parse_objective(objective, rows.n_classes)
    decided = np.full(rows.n_given, 0 if order is None else np.asarray(order)[0], np.intp)
    thresholds = _crossfit(rows, aim, read_folds(folds, rows), forward, order)
    decided[rows.index] = aim.decide(rows.vote, thresholds, order)
    return decided


def crossfit_thresholds(
    vote: ArrayLike,
    targets: ArrayLike,
    objective: Any,
    folds: ArrayLike,
    *,
    forward: bool = False,
    sample_weight: ArrayLike | None = None,
    order: ArrayLike | None = None,
) -> Number:
    """For each row the threshold, or the factors, that are best for the other folds.

    What :func:`crossfit_decisions` decides by, in the shape of ``vote``; NaN for rows
    without a vote or a weight. The parameters are those of :func:`tune`.

    Examples
    --------
    >>> from damvi.decision import crossfit_thresholds
    >>> crossfit_thresholds([-0.9, 0.8, -0.5, 0.3], [0, 1, 0, 1], "f1", [0, 0, 1, 1])
    array([-0.1 , -0.1 , -0.05, -0.05])
    """
    rows = read_rows(vote, targets, sample_weight)
    aim = parse_objective(objective, rows.n_classes)
    thresholds = np.full((rows.n_given, *rows.vote.shape[1:]), np.nan)
    numbers = read_folds(folds, rows)
    thresholds[rows.index] = _crossfit(rows, aim, numbers, forward, order)
    return thresholds


def _crossfit(
    rows: Rows, aim: Objective, folds: Classes, forward: bool, order: ArrayLike | None
) -> Number:
    thresholds = np.empty(rows.vote.shape)
    n_folds = int(folds.max()) + 1
    for fold in range(n_folds):
        known = np.isin(folds, folds_to_learn_from(fold, n_folds, forward))
        thresholds[folds == fold] = search(rows.take(known), aim, order)
    return thresholds


# How far a threshold, and its worth, would move on other rows of the same kind.
#
# Rows are drawn again within each class. Of two classes, what counts of a draw is how many
# rows of each class and fold fall between two candidate thresholds: a multinomial, drawn at
# once and never row by row. The candidates lie just below the positives, where objectives
# have their best threshold (a lower one only adds false alarms), or around the threshold
# of a budget; beyond MAX_CUTS they are thinned evenly. A draw is exact while rows of the
# same cell weigh the same; otherwise they count with their mean weight. Of three or more
# classes the confusion table is drawn again, since to tune factors for each draw would take
# too long.


def _redraw_cuts(
    rows: Rows, aim: Objective, folds: Classes, forward: bool, seed: int
) -> tuple[Interval, Interval]:
    """Intervals for the threshold, and for its cross-fitted value.

    Each draw is tuned on all its rows for the former. For the latter it is tuned anew
    without each fold (on those before it, if ``forward``), and judged there.
    """
    rng = np.random.RandomState([seed, 7])
    aim = aim.among(rows.n_given)
    cuts = _candidates(rows, aim)
    n_folds = int(folds.max()) + 1
    mass = aim.mass(rows)
    found, alarms = (
        _flagged(rng, rows.vote[side], mass[side], folds[side], n_folds, cuts)
        for side in (rows.positive, ~rows.positive)
    )
    whole = _counts(found.sum(axis=1), alarms.sum(axis=1), rows.total)
    threshold = cuts[_choose(aim, whole)]

    pooled = np.zeros((2, N_DRAWS))
    for fold in range(n_folds):
        rest = np.isin(np.arange(n_folds), folds_to_learn_from(fold, n_folds, forward))
        others = _counts(
            found[:, rest].sum(axis=1), alarms[:, rest].sum(axis=1), rows.total
        )
        chosen = _choose(aim, others)[:, None]
        for side, flagged in enumerate((found, alarms)):
            pooled[side] += np.take_along_axis(flagged[:, fold], chosen, axis=1)[:, 0]
    positives, negatives = found[:, :, -1].sum(axis=1), alarms[:, :, -1].sum(axis=1)
    value = aim.value(Counts(pooled[0], pooled[1], positives, negatives, rows.total))
    return _interval(threshold), _interval(value)


def _candidates(rows: Rows, aim: Objective) -> Number:
    """Thresholds from high to low, the first of which flags nothing."""
    if isinstance(aim, Fixed):
        return np.array([aim.threshold])
    votes = np.unique(rows.vote)
    places = np.searchsorted(votes, np.unique(rows.vote[rows.positive]))
    if isinstance(aim, Flags):  # it heeds no truth; draws move by the root of the number
        flagged = aim.share * len(rows)
        reach = SPREAD * np.sqrt(flagged + 1) * np.array([-1, 1])
        ends = np.clip(len(rows) - flagged + reach, 0, len(rows) - 1).astype(np.intp)
        first, last = np.searchsorted(votes, np.sort(rows.vote)[ends])
        places = np.arange(first, last + 1)
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
    vote: Number,
    mass: Number,
    folds: Classes,
    n_folds: int,
    cuts: Number,
) -> Number:
    """The mass of a class above each cut, by draw and fold: (draws, folds, cuts + 1).

    The last entry is the whole mass.
    """
    # A row belongs to the first cut, from the top, that its vote is above.
    bins = len(cuts) - np.searchsorted(cuts[::-1], vote, side="left")
    cell = folds * (len(cuts) + 1) + bins
    n_cells = n_folds * (len(cuts) + 1)
    members = np.bincount(cell, minlength=n_cells)
    drawn = np.zeros((N_DRAWS, n_cells))
    if len(vote):
        filled = np.flatnonzero(members)
        mean = np.bincount(cell, mass, minlength=n_cells)[filled] / members[filled]
        part = members[filled] / len(vote)
        drawn[:, filled] = rng.multinomial(len(vote), part, size=N_DRAWS) * mean
    return drawn.reshape(N_DRAWS, n_folds, -1).cumsum(axis=2)


def _counts(found: Number, alarms: Number, total: float) -> Counts:
    return Counts(found[:, :-1], alarms[:, :-1], found[:, -1:], alarms[:, -1:], total)


def _choose(aim: Objective, counts: Counts) -> NDArray[np.intp]:
    """The best cut of each draw; of equals, the one that flags fewest."""
    return np.argmax(best(aim.preference(counts)), axis=1)


def _redraw_table(table: Number, rows: Rows, seed: int) -> Interval:
    """Macro F1 of tables drawn anew, class by class."""
    rng = np.random.RandomState([seed, 11])
    drawn = np.zeros((N_DRAWS, *table.shape))
    sizes = np.bincount(rows.targets, minlength=rows.n_classes)
    for c, counts in enumerate(table):
        if sizes[c]:
            times = rng.multinomial(sizes[c], counts / counts.sum(), size=N_DRAWS)
            drawn[:, c] = times * (counts.sum() / sizes[c])
    return _interval(f1_by_class(drawn).mean(axis=1))


def _interval(values: Number) -> Interval:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
