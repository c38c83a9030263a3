"""Step 4 of DAMVI: the threshold, how good it is on other rows, and probabilities.

A threshold is the factor of one class against the other; with three or more classes, each
has a factor. For the estimators, it is found at once. Everything else that is learned from
out-of-sample votes (a score of the threshold, and the calibration of probabilities) is
computed on demand, so that trying other weights is fast.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ..folds import folds_to_learn_from
from ..labels import Labels, positive_wins
from .calibration import (
    ENOUGH_POSITIVES,
    Calibrator,
    calibrate_rows,
    calibrate_vote,
    crossfit_probability,
    effective_size,
)
from .factors import confusion, f1_by_class
from .objectives import (
    Classes,
    Counts,
    Fixed,
    Flags,
    Floor,
    MacroF1,
    Number,
    Objective,
    Rows,
    Untuned,
    best,
    between,
    deal_folds,
    parse_objective,
    read_folds,
    read_rows,
    search,
)

AVERAGE_PRECISION = "average_precision"
N_FOLDS = 5
N_DRAWS = 300
MAX_CUTS = 400
N_GROUPS = 10
SPREAD = 6
"""Range of candidate thresholds for a budget of flags, in standard errors."""
LEVEL = 0.9
"""Level of the intervals."""
MOST_SMOOTHED = 100_000
"""Rows above which thresholds are not smoothed: calibrating each fold would take longer
than it is worth."""

Interval = tuple[float, float]
ByClass = float | tuple[float, ...]
"""A value of the positive class, or of each of three or more classes."""


@dataclass(eq=False, repr=False)
class Decision:
    """A weighted vote, with a threshold for an objective.

    Attributes
    ----------
    weighting : Weighting
        Has the ``out_of_sample_vote``, its ``folds`` and whether these are ``forward``, and
        the ``votes`` with their ``targets`` and ``sample_weight``.
    objective : Objective
    calibrates : bool
        Whether the vote is calibrated as a probability.
    order : ndarray of shape (C,)
        The classes in the order in which they win ties.
    """

    weighting: Any
    objective: Objective
    calibrates: bool
    order: NDArray[np.intp]

    def __post_init__(self) -> None:
        self.threshold  # noqa: B018  (warn now if a minimum cannot be reached)

    @classmethod
    def restored(cls, **known: Any) -> Self:
        """Restore from a model file, which has the results without the votes."""
        decision = cls.__new__(cls)
        vars(decision).update(known)
        return decision

    def at(self, threshold: float) -> Decision:
        """The same vote, with a threshold that comes from elsewhere."""
        other = copy(self)
        vars(other).update(objective=Fixed(threshold), threshold=threshold, tuning=None)
        return other

    @cached_property
    def threshold(self) -> Any:
        """Rows with a vote above it are flagged; with three or more classes, factors."""
        if isinstance(self.objective, Untuned):
            return self.weighting.threshold
        if isinstance(self.objective, Fixed):
            return self.objective.threshold
        rows = self.weighting.votes
        return tune_threshold(
            self.out_of_sample_vote,
            rows.targets,
            self.objective,
            sample_weight=rows.sample_weight,
            order=self.order,
            smooth=True,
        )

    @cached_property
    def out_of_sample_vote(self) -> NDArray[np.float64]:
        """The vote on the training rows that threshold and probability are learned from.

        NaN for rows on which no voter could vote out of sample.
        """
        if "weighting" not in vars(self):
            raise AttributeError(
                "the votes on the training rows are not saved with a model that was fitted "
                "on a table beyond memory; fit it again"
            )
        weighting = self.weighting
        is_tuned = not isinstance(self.objective, Untuned)
        vote: NDArray[np.float64]
        vote = weighting.out_of_sample_vote if is_tuned else weighting.aligned_vote
        return vote

    @property
    def saved_vote(self) -> NDArray[np.float64] | None:
        """The out-of-sample vote to save; None for tables beyond memory."""
        if "weighting" not in vars(self):
            return vars(self).get("out_of_sample_vote")
        return self.out_of_sample_vote if self.weighting.votes.in_memory else None

    @cached_property
    def comparison(self) -> Any:
        """The learned weights compared with the plain vote, if they were."""
        return self.weighting.comparison

    @cached_property
    def tuning(self) -> Tuning | None:
        """Score of the threshold, if it was tuned and there are rows to score it on."""
        if isinstance(self.objective, Fixed):
            return None
        rows = self.weighting.votes
        judged = read_rows(self.out_of_sample_vote, rows.targets, rows.sample_weight)
        folds = self.weighting.folds
        if np.ptp(folds[judged.index]) == 0:  # few rows, most of them without a vote
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # already warned when the threshold was found
            return tune(
                self.out_of_sample_vote,
                rows.targets,
                self.objective,
                folds=folds,
                forward=self.weighting.forward,
                sample_weight=rows.sample_weight,
                order=self.order,
                smooth=True,
            )

    @cached_property
    def calibrator(self) -> Calibrator | None:
        """Maps the vote to a probability; learned from the out-of-sample vote."""
        if not self.calibrates:
            return None
        rows = self.weighting.votes
        return calibrate_vote(
            self.out_of_sample_vote, rows.targets, sample_weight=rows.sample_weight
        )

    @property
    def folds(self) -> NDArray[Any]:
        """The fold of each row in the out-of-sample vote; -1 for rows without."""
        folds: NDArray[Any] = self.weighting.folds
        return folds

    @property
    def plain_vote(self) -> NDArray[np.float64]:
        """The out-of-sample vote of the same voters with equal weights."""
        vote: NDArray[np.float64] = self.weighting.plain_vote
        return vote

    def crossfit(
        self, vote: Number, targets: NDArray[Any], rows: NDArray[Any], objective: Any
    ) -> tuple[Classes, Number]:
        """Decide some rows by any vote on them, with thresholds of the other folds.

        Parameters
        ----------
        vote, targets : array of shape (n,)
            Of the rows; as for :func:`tune_threshold`.
        rows : array of shape (n,)
            The rows' numbers, which say their folds, or a mask.
        objective
            See :func:`parse_objective`.

        Returns
        -------
        decided : ndarray of shape (n,)
            As by :func:`crossfit_decisions`.
        thresholds : ndarray of the shape of ``vote``
            As by :func:`crossfit_thresholds`.
        """
        thresholds = crossfit_thresholds(
            vote,
            targets,
            objective,
            self.folds[rows],
            forward=self.weighting.forward,
            order=self.order,
            smooth=True,
        )
        known = read_rows(vote, targets, None)
        decided = np.full(known.n_given, self.order[0])
        decided[known.index] = known.decided(thresholds[known.index], self.order)
        return decided, thresholds

    def crossfit_probability(
        self, vote: Number, targets: NDArray[Any], rows: NDArray[Any]
    ) -> Number:
        """Probabilities of some rows by any vote, calibrated on the other folds."""
        folds, forward = self.folds[rows], self.weighting.forward
        return crossfit_probability(vote, targets, folds, forward=forward)

    @property
    def metric(self) -> Any:
        """The metric to choose settings by: the threshold's objective, if it is tuned."""
        return AVERAGE_PRECISION if isinstance(self.objective, Fixed) else self.objective

    def __getstate__(self) -> dict[str, Any]:
        # The training votes are not saved, so compute what depends on them now.
        for name in ("threshold", "comparison", "tuning", "calibrator"):
            getattr(self, name)
        known = {name: value for name, value in vars(self).items() if name != "weighting"}
        known.pop("out_of_sample_vote", None)
        vote = self.saved_vote
        return known if vote is None else known | {"out_of_sample_vote": vote}


def choose_threshold(
    weighting: Any,
    objective: Objective,
    order: NDArray[np.intp],
    *,
    calibrates: bool = False,
) -> Decision:
    """Step 4: tune the threshold on out-of-sample votes, and calibrate probabilities.

    Parameters
    ----------
    weighting : Weighting
    objective : Objective
        See :func:`parse_objective`.
    order : ndarray of shape (C,)
        The targets in the order in which they win ties.
    calibrates : bool, default=False
        Whether to calibrate the vote as a probability, on demand.
    """
    return Decision(weighting, objective, calibrates, order)


def objective_for(threshold: Any, labels: Labels) -> Objective:
    """The objective of a pool's ``threshold``: "auto" is F1, or macro F1."""
    if isinstance(threshold, str) and threshold == "auto":
        threshold = labels.tuned_for
    return parse_objective(threshold, labels.n_classes)


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
    threshold = _best_threshold(rows, aim, order, smooth and _is_smoothed(rows, aim))
    _warn_if_out_of_reach(rows, aim, threshold, order)
    return threshold


def _best_threshold(
    rows: Rows, aim: Objective, order: ArrayLike | None, smooth: bool
) -> Any:
    """The best threshold or factors; if ``smooth``, by the rows' calibrated chances."""
    chance = calibrate_rows(rows)(rows.vote) if smooth and rows.has_both else None
    return search(rows, aim, order, chance)


def _is_smoothed(rows: Rows, aim: Objective) -> bool:
    """Whether ``smooth`` has an effect: expected counts are better if positives are few."""
    if not (aim.can_be_smoothed and rows.has_both and len(rows) <= MOST_SMOOTHED):
        return False
    return effective_size(rows.weight[rows.positive]) < ENOUGH_POSITIVES


def _warn_if_out_of_reach(
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


@dataclass(frozen=True)
class Tuning:
    """Result of :func:`tune`. ``print`` shows a summary.

    Attributes
    ----------
    objective : str
        Name of the objective that ``value`` and ``honest_value`` measure.
    threshold : float or tuple of float
        Tuned on all rows. Rows with a vote above it are flagged; with three or more
        classes, the factor of each.
    value : float
        The objective on the rows that the threshold was tuned on, which is optimistic.
    honest_value : float
        The cross-fitted objective: each row is decided by a threshold tuned on other folds.
    honest_recall, honest_precision, honest_f1 : float or tuple of float
        Scores of the cross-fitted decisions, for the positive class or for each of three or
        more classes. They show whether a minimum of recall or precision is met.
    threshold_interval : (float, float) or None
        90% interval of the threshold, by a bootstrap, or by a jackknife if the threshold
        is smoothed; None for factors.
    value_interval : (float, float)
        90% bootstrap interval of ``honest_value``. With three or more classes, and for
        smoothed thresholds, it does not account for the tuning.
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
        """All attributes as plain Python values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        low, high = self.value_interval
        lines = [
            f"{self.objective}  {self.honest_value:.3g}  (90% CI: {low:.3g} to {high:.3g}) "
            f"on rows not tuned on, {self.value:.3g} on those that were"
        ]
        if self.threshold_interval is None:
            lines.insert(0, f"factors  {_listed(self.threshold)}")
            lines.append(f"F1 by class  {_listed(self.honest_f1)} on rows not tuned on")
        else:
            low, high = self.threshold_interval
            lines.insert(
                0, f"threshold  {self.threshold:.3g}  (90% CI: {low:.3g} to {high:.3g})"
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
    smooth: bool = False,
    seed: int = 0,
) -> Tuning:
    """Tune a threshold, and score it on rows that it was not tuned on.

    Parameters
    ----------
    vote, targets, objective, sample_weight, order, smooth
        See :func:`tune_threshold`.
    folds : array of int of shape (n,), optional
        The fold of each row. By default, 5 stratified random folds.
    forward : bool, default=False
        Whether the folds are in time order: the threshold for a fold is then tuned on
        earlier folds, that for the first fold on all others.
    seed : int, default=0
        Seed of the random folds and of the bootstrap.

    Returns
    -------
    tuning : Tuning

    Notes
    -----
    Decisions of all folds are pooled before they are scored, since a mean of F scores over
    folds depends on how the positives are distributed. If the other folds have no
    positives, nothing is flagged.

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
    smooth = smooth and _is_smoothed(rows, aim)
    threshold = _best_threshold(rows, aim, order, smooth)
    _warn_if_out_of_reach(rows, aim, threshold, order)
    seen = rows.decided(threshold, order)
    thresholds = _crossfit(rows, aim, numbers, forward, order, smooth)
    unseen = rows.decided(thresholds, order)
    threshold_interval = None
    if isinstance(aim, MacroF1):
        value_interval = _redraw_table(rows, unseen, seed)
    elif smooth:
        threshold_interval = _jackknife(rows, aim, threshold, order, seed)
        value_interval = _redraw_counts(rows, aim, unseen == 1, seed)
    else:
        threshold_interval, value_interval = _redraw_cuts(
            rows, aim, numbers, forward, positive_wins(order), seed
        )
    if threshold_interval is not None:  # of many rows, the draws only try some thresholds
        low, high = threshold_interval
        threshold_interval = min(low, float(threshold)), max(high, float(threshold))
    recall, precision, f1 = (_plain(rate) for rate in aim.rates(rows, unseen))
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
    smooth: bool = False,
) -> Classes:
    """Class of each row, decided by the threshold that is best for the other folds.

    These are the decisions that :func:`tune` scores. Rows without a vote or of weight 0 get
    the class that wins ties. The parameters are those of :func:`tune`.

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
    numbers, smooth = read_folds(folds, rows), smooth and _is_smoothed(rows, aim)
    thresholds = _crossfit(rows, aim, numbers, forward, order, smooth)
    decided[rows.index] = rows.decided(thresholds, order)
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
    smooth: bool = False,
) -> Number:
    """Threshold for each row, or factors, tuned on the other folds.

    :func:`crossfit_decisions` uses these. They have the shape of ``vote``, and are NaN for
    rows without a vote or of weight 0. The parameters are those of :func:`tune`.

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
    smooth = smooth and _is_smoothed(rows, aim)
    thresholds[rows.index] = _crossfit(rows, aim, numbers, forward, order, smooth)
    return thresholds


def _crossfit(
    rows: Rows,
    aim: Objective,
    folds: Classes,
    forward: bool,
    order: ArrayLike | None,
    smooth: bool,
) -> Number:
    thresholds = np.empty(rows.vote.shape)
    n_folds = int(folds.max()) + 1
    for fold in range(n_folds):
        known = np.isin(folds, folds_to_learn_from(fold, n_folds, forward))
        thresholds[folds == fold] = _best_threshold(rows.take(known), aim, order, smooth)
    return thresholds


# Bootstrap intervals of a threshold and its score.
#
# Rows are resampled within each class. With two classes, all that matters of a draw is how
# many rows of each class and fold fall between two candidate thresholds: a multinomial
# variable, drawn at once rather than row by row. The candidates lie just below the
# positives, where the optimum of any objective is (a lower threshold only adds false
# alarms), or around the threshold of a budget; beyond MAX_CUTS they are thinned evenly. A
# draw is exact if rows in the same cell have the same weight; otherwise their mean weight
# is used. With three or more classes the confusion matrix is resampled, since tuning
# factors for each draw would take too long.


def _redraw_cuts(
    rows: Rows, aim: Objective, folds: Classes, forward: bool, wins: bool, seed: int
) -> tuple[Interval, Interval]:
    """Intervals for the threshold, and for its cross-fitted value.

    For the former, each draw is tuned on all of its rows. For the latter, it is tuned
    without each fold (on earlier folds, if ``forward``), and scored there.
    """
    rng = np.random.RandomState([seed, 7])
    aim = aim.among(rows.n_given)
    cuts = _candidates(rows, aim, wins)
    n_folds = int(folds.max()) + 1
    mass = aim.mass(rows)
    found, alarms = (
        _flagged(rng, rows.vote[side], mass[side], folds[side], n_folds, cuts, wins)
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


def _candidates(rows: Rows, aim: Objective, wins: bool) -> Number:
    """Thresholds in decreasing order, the first of which flags nothing."""
    if isinstance(aim, Fixed):
        return np.array([aim.threshold])
    votes = np.unique(rows.vote)
    places = np.searchsorted(votes, np.unique(rows.vote[rows.positive]))
    if isinstance(aim, Flags):  # independent of the targets; draws vary by a square root
        flagged = aim.share * len(rows)
        reach = SPREAD * np.sqrt(flagged + 1) * np.array([-1, 1])
        ends = np.clip(len(rows) - flagged + reach, 0, len(rows) - 1).astype(np.intp)
        first, last = np.searchsorted(votes, np.sort(rows.vote)[ends])
        places = np.arange(first, last + 1)
    if len(places) > MAX_CUTS:
        thinned = np.linspace(0, len(places) - 1, MAX_CUTS).round().astype(np.intp)
        places = places[thinned]
    middle = between(votes[places - 1], votes[places], wins)
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
    wins: bool,
) -> Number:
    """Mass of a class above each threshold, by draw and fold: (draws, folds, cuts + 1).

    The last entry is the total mass.
    """
    # A row belongs to the highest threshold that its vote exceeds (or reaches, if positives
    # win ties).
    bins = len(cuts) - np.searchsorted(cuts[::-1], vote, side="right" if wins else "left")
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
    """The best threshold of each draw; of equally good ones, that with the fewest flags."""
    return np.argmax(best(aim.preference(counts)), axis=1)


def _jackknife(
    rows: Rows, aim: Objective, threshold: float, order: ArrayLike | None, seed: int
) -> Interval:
    """An interval for a smoothed threshold, which moves little as rows are left out.

    A tenth of the rows is left out at a time; to calibrate many draws would take too long.
    """
    groups = deal_folds(rows, N_GROUPS, seed)
    parts = [rows.take(groups != one) for one in range(N_GROUPS)]
    found = np.array(
        [_best_threshold(part, aim, order, True) for part in parts if part.has_both]
    )
    ends = float(rows.vote.min()), float(rows.vote.max())
    if len(found) < 2:
        return min(ends[0], threshold), max(ends[1], threshold)
    error = np.sqrt((len(found) - 1) * np.var(found))
    reach = float(error * stats.t.ppf((1 + LEVEL) / 2, len(found) - 1))
    low, high = max(threshold - reach, ends[0]), min(threshold + reach, ends[1])
    return min(low, threshold), max(high, threshold)


def _redraw_counts(
    rows: Rows, aim: Objective, flagged: NDArray[np.bool_], seed: int
) -> Interval:
    """The value of given decisions on rows drawn again, class by class."""
    rng = np.random.RandomState([seed, 17])
    mass = aim.mass(rows)
    # Positives, which are few, are drawn one by one; of negatives the mean mass counts.
    own, flags = mass[rows.positive], flagged[rows.positive]
    times = rng.multinomial(len(own), np.full(len(own), 1 / len(own)), size=N_DRAWS)
    found, positives = (np.asarray(times @ part) for part in (own * flags, own))
    others, flags = mass[~rows.positive], flagged[~rows.positive]
    above, below = (
        float(others[part].sum() / max(part.sum(), 1)) for part in (flags, ~flags)
    )
    drawn = rng.binomial(len(others), flags.mean(), size=N_DRAWS)
    alarms = np.asarray(drawn * above)
    negatives = np.asarray(alarms + (len(others) - drawn) * below)
    return _interval(aim.value(Counts(found, alarms, positives, negatives, rows.total)))


def _redraw_table(rows: Rows, decided: Classes, seed: int) -> Interval:
    """Interval of macro F1, by resampling the confusion matrix class by class."""
    table = confusion(rows.targets, decided, rows.weight, rows.n_classes)
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
