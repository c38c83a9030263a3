"""From a vote to a probability that means what it says.

Two things are calibrated, both on rows that the voters have not seen: the soft votes of
each voter before they are weighted (:func:`calibrate_votes`), and the weighted vote that is
the result (:func:`calibrate_vote`). Each takes an increasing function of the vote; of three
or more classes, one a class against the rest, scaled so that all add up to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, isotonic_regression
from scipy.special import expit

from .._kernels import one_blas_thread
from ..folds import folds_to_learn_from
from .objectives import Number, Rows, read_folds, read_rows, require_all_classes

Method = Literal["auto", "platt", "beta", "isotonic"]

ENOUGH_POSITIVES = 300
"""From how many positives on "auto" takes an isotonic curve of the weighted vote."""
ENOUGH_FOR_ISOTONIC = 10_000
"""Rows of the rarer class from which on "auto" takes isotonic curves of voters; see
results/pools: with some 2,000 of them a smooth curve still was better."""
TILT = 1e-3
"""How much a probability grows at least, in proportion, as the vote goes up by 1."""
LARGEST_VOTE = 1 - 2.0**-24
"""The largest below 1 in single precision: log-odds stay finite, about 17 at most."""
MAX_STEPS = 50
N_BINS = 1024
"""Of like scores, which stand for many rows until the curve is nearly there."""


def shares(chances: NDArray[Any]) -> Number:
    """Numbers of 0 or more, scaled to a sum of 1 on the last axis; even if all are 0."""
    total = chances.sum(axis=-1, keepdims=True, dtype=np.float64)
    even = np.full(chances.shape, 1 / chances.shape[-1])
    return np.divide(chances, total, out=even, where=(total > 0) | np.isnan(total))


# The weighted vote: three ways to log-odds, each rising with the vote or level.


@dataclass(frozen=True)
class Line:
    """Platt scaling: log-odds in proportion to the vote."""

    slope: float
    intercept: float

    def __call__(self, vote: Number) -> Number:
        with np.errstate(over="ignore"):
            return self.slope * vote + self.intercept


@dataclass(frozen=True)
class BetaCurve:
    """Beta calibration: log-odds from log s and -log(1 - s), s = (1 + vote / scale) / 2.

    ``s`` is kept between ``low`` and 1 - ``high``, so unanimous votes stay finite.
    """

    for_votes: float
    against: float
    intercept: float
    scale: float
    low: float
    high: float

    def __call__(self, vote: Number) -> Number:
        up, down = self.columns(vote)
        return self.for_votes * up + self.against * down + self.intercept

    def columns(self, vote: Number) -> tuple[Number, Number]:
        up, down = (1 + vote / self.scale) / 2, (1 - vote / self.scale) / 2
        return np.log(np.clip(up, self.low, 1)), -np.log(np.clip(down, self.high, 1))


@dataclass(frozen=True)
class Knots:
    """Log-odds interpolated between knots, level outside them."""

    votes: tuple[float, ...]
    log_odds: tuple[float, ...]

    def __call__(self, vote: Number) -> Number:
        heights = np.array(self.log_odds)
        after = np.searchsorted(self.votes, vote, side="right")
        ceiling = heights[np.minimum(after, len(heights) - 1)]
        # A rounded interpolation may overshoot the next knot, and would then fall there.
        return np.minimum(np.interp(vote, self.votes, heights), ceiling)


def fit_line(rows: Rows) -> Line:
    """Logistic regression on the vote, with Platt's targets; level if it would fall."""
    size = float(np.abs(rows.vote).max()) or 1.0  # squares of huge votes would overflow
    (slope,), intercept = fit_logistic([rows.vote / size], rows.positive, rows.weight)
    return Line(slope / size, intercept)


def fit_beta(rows: Rows) -> BetaCurve:
    """Beta calibration (Kull et al., 2017): the best of the fits that never fall."""
    scale = max(1.0, float(np.abs(rows.vote).max()))
    up, down = (1 + rows.vote / scale) / 2, (1 - rows.vote / scale) / 2
    # A unanimous vote is placed half as far out as the nearest that is not.
    low, high = (float(s[s > 0].min(initial=1.0)) / 2 for s in (up, down))
    columns = BetaCurve(1, 1, 0, scale, low, high).columns(rows.vote)
    fits = [fit_logistic(columns, rows.positive, rows.weight)]
    if min(fits[0][0]) < 0:
        alone = [fit_logistic([one], rows.positive, rows.weight) for one in columns]
        ((first,), a), ((second,), b) = alone
        fits = [([first, 0.0], a), ([0.0, second], b)]
    target = platt_targets(rows.positive, rows.weight)
    curves = [
        BetaCurve(up, down, intercept, scale, low, high) for (up, down), intercept in fits
    ]
    return min(curves, key=lambda one: _log_loss(one(rows.vote), target, rows.weight)[0])


def fit_knots(rows: Rows) -> Knots:
    """Isotonic regression, with a knot in the middle of each level.

    Each level counts one row more, of the mean rate, so that none is 0 or 1.
    """
    votes, place = np.unique(rows.vote, return_inverse=True)
    weight, levels = _isotonic(place, rows.positive, rows.weight, len(votes))
    blocks = levels.blocks[:-1]
    mass = np.add.reduceat(weight, blocks)
    within = weight / np.repeat(mass, np.diff(levels.blocks))
    one_row = float((rows.weight**2).sum() / rows.total)
    raised = (levels.x[blocks] * mass + class_rate(rows) * one_row) / (mass + one_row)
    chance = isotonic_regression(raised, weights=mass).x
    return Knots(
        tuple(np.add.reduceat(within * votes, blocks).tolist()),
        tuple(np.maximum.accumulate(np.log(chance) - np.log1p(-chance)).tolist()),
    )


def class_rate(rows: Rows) -> float:
    """The share of positives; of rows of one class, Laplace's estimate."""
    rate = float(rows.weight[rows.positive].sum() / rows.total)
    if rows.positive.any() and not rows.positive.all():
        return rate
    known = effective_size(rows.weight)
    return (known * rate + 1) / (known + 2)


FITS: dict[str, Callable[[Rows], Line | BetaCurve | Knots]] = {
    "platt": fit_line,
    "beta": fit_beta,
    "isotonic": fit_knots,
}


@dataclass(frozen=True)
class ProbabilityCurve:
    """A probability for each vote for one class: plain numbers.

    It is expit(log_odds(vote) + shift) times a slope between .997 and 1. The slope makes it
    strictly increasing where the curve is level, or as good as level in floating point:
    votes in [-1, 1] that differ by 1e-12 keep their order. On a larger scale of votes read
    1e-12 times the largest.

    Attributes
    ----------
    method : {"platt", "beta", "isotonic"}
    log_odds : Line, BetaCurve or Knots
    shift : float
        What makes the mean probability that of the rows.
    scale : float
        The largest absolute vote, or 1.
    """

    method: str
    log_odds: Line | BetaCurve | Knots
    shift: float
    scale: float

    def __call__(self, vote: ArrayLike) -> Number:
        votes = np.asarray(vote, dtype=np.float64)
        return _chance(self.log_odds(votes) + self.shift) * _tilt(votes, self.scale)


@dataclass(frozen=True)
class Calibrator:
    """A probability for each vote, as :func:`calibrate_vote` learned it; plain numbers.

    Attributes
    ----------
    curves : tuple of ProbabilityCurve
        That of the positive class, or one for each of three or more classes.
    """

    curves: tuple[ProbabilityCurve, ...]

    def __call__(self, vote: ArrayLike) -> Number:
        """The probability of the positive class, or of each; NaN where the vote is."""
        if len(self.curves) == 1:
            return self.curves[0](vote)
        votes = np.asarray(vote, dtype=np.float64)
        against = [curve(2 * votes[:, c] - 1) for c, curve in enumerate(self.curves)]
        return shares(np.column_stack(against))


def calibrate_vote(
    vote: ArrayLike,
    targets: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    method: Method = "auto",
) -> Calibrator:
    """Learn what chance of each class a vote stands for.

    The mean probability over the rows is their share of positives; of three or more classes
    nearly so, since they are scaled to add up to 1.

    Parameters
    ----------
    vote : array of shape (n,), or (n, C) for three or more classes
        Out-of-sample votes; rows with NaN are left out.
    targets : array of int, shape (n,)
        The number of each row's class; of two classes, 1 is the positive one. In their
        natural proportions: not resampled.
    sample_weight : array of shape (n,), optional
        How much of the population a row stands for.
    method : {"auto", "platt", "beta", "isotonic"}, default="auto"
        "platt" is logistic regression on the vote [1]_, "beta" on the logarithms of the
        shares of votes for and against [2]_, "isotonic" any rising curve [3]_,
        interpolated between the middles of its levels. "auto" is isotonic from 300
        positives on (by what their weights are worth), and below that beta, or platt
        where votes leave [-1, 1].

    Returns
    -------
    calibrator : Calibrator

    References
    ----------
    .. [1] J. Platt (1999), Probabilistic Outputs for Support Vector Machines.
    .. [2] M. Kull, T. Silva Filho and P. Flach (2017), Beta calibration, AISTATS.
    .. [3] B. Zadrozny and C. Elkan (2002), Transforming Classifier Scores into Accurate
       Multiclass Probability Estimates, KDD.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import calibrate_vote
    >>> rng = np.random.default_rng(0)
    >>> targets = (rng.random(5000) < 0.05).astype(int)
    >>> vote = np.tanh(targets - 1 + 0.4 * rng.standard_normal(5000))
    >>> chance = calibrate_vote(vote, targets)
    >>> round(float(chance(vote).mean()), 4), float(targets.mean())
    (0.0518, 0.0518)
    """
    rows = read_rows(vote, targets, sample_weight)
    require_all_classes(rows)
    return calibrate_rows(rows, method)


def crossfit_probability(
    vote: ArrayLike,
    targets: ArrayLike,
    folds: ArrayLike,
    *,
    forward: bool = False,
    sample_weight: ArrayLike | None = None,
    method: Method = "auto",
) -> Number:
    """The probability of each row by a calibrator learned on the other folds.

    For what is reported about probabilities: a calibrator flatters the rows it was
    learned on. NaN where the vote is, or where the weight is 0. ``folds`` has an integer
    a row; if they are windows in the order of time (``forward``), each is judged by those
    before it, the first by the others. The rest is as for :func:`calibrate_vote`.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import crossfit_probability
    >>> vote, targets = np.array([-0.9, 0.1, -0.5, 0.3]), np.array([0, 1, 0, 1])
    >>> chance = crossfit_probability(vote, targets, [0, 0, 1, 1])
    >>> bool(chance[1] > chance[0])
    True
    """
    rows = read_rows(vote, targets, sample_weight)
    require_all_classes(rows)
    numbers = read_folds(folds, rows)
    chance = np.full((rows.n_given, *rows.vote.shape[1:]), np.nan)
    n_folds = int(numbers.max()) + 1
    for fold in range(n_folds):
        here = numbers == fold
        known = np.isin(numbers, folds_to_learn_from(fold, n_folds, forward))
        learned = calibrate_rows(rows.take(known), method)
        chance[rows.index[here]] = learned(rows.vote[here])
    return chance


def calibrate_rows(rows: Rows, method: str = "auto") -> Calibrator:
    """A calibrator, also from rows that lack a class, as the other folds may."""
    return Calibrator(tuple(_fit_curve(own, method) for own in rows.against_the_rest()))


def _fit_curve(rows: Rows, method: str) -> ProbabilityCurve:
    if method == "auto":
        # As measured in docs/probabilities.md: with 30 positives isotonic loses up to 3 %
        # of log loss to beta on smooth curves, with 300 less than 1 %, and gains 14 % on
        # steps.
        method = "beta" if np.abs(rows.vote).max() <= 1 else "platt"
        if effective_size(rows.weight[rows.positive]) >= ENOUGH_POSITIVES:
            method = "isotonic"
    if method not in FITS:
        known = ", ".join(map(repr, FITS))
        raise ValueError(f"method={method!r} is not known; give 'auto', {known}")
    log_odds = FITS[method](rows)
    scale = max(1.0, float(np.abs(rows.vote).max()))
    return ProbabilityCurve(method, log_odds, _shift(log_odds, rows, scale), scale)


def _shift(curve: Line | BetaCurve | Knots, rows: Rows, scale: float) -> float:
    """What to add to the log-odds so that the mean probability is the rate."""
    weight, rate = rows.weight / rows.total, class_rate(rows)
    # Handed over, and not enclosed in the function, which SciPy keeps for longer.
    known = curve(rows.vote), _tilt(rows.vote, scale), weight, rate
    reach = 1.0
    while reach < 1e3 and not _excess(-reach, *known) <= 0 <= _excess(reach, *known):
        reach *= 2
    if _excess(reach, *known) < 0:  # the tilt stays below a rate this close to 1
        return reach
    return float(brentq(_excess, -reach, reach, args=known, xtol=1e-13))


def _excess(
    shift: float, log_odds: Number, tilt: Number, weight: Number, rate: float
) -> float:
    """How far the mean probability is above the rate."""
    return float(weight @ (_chance(log_odds + shift) * tilt)) - rate


def _chance(log_odds: Number) -> Number:
    """The logistic function, never 0."""
    chance: Number = expit(np.clip(log_odds, -700.0, 700.0))
    return chance


def _tilt(vote: Number, scale: float) -> Number:
    """A factor just below 1 that rises with the vote, evenly up to the scale."""
    part = np.clip(vote / scale, -1e15, 1e15)
    size = np.maximum(np.abs(part), 1.0)
    rise = np.where(size > 1, np.sign(part) * (1.5 - 0.5 / size), part)
    return 1 - TILT * (1.6 - rise)


# The votes of voters: from soft votes to calibrated ones, in single precision.


@dataclass(frozen=True)
class Platt:
    """p = 1 / (1 + exp(-(slope * log-odds + intercept))), with a slope of 0 or more."""

    slope: float
    intercept: float

    def __call__(self, votes: NDArray[Any]) -> NDArray[np.float32]:
        # 2p - 1 is tanh of half the log-odds.
        turned = self.slope * log_odds(votes) + self.intercept
        right: NDArray[np.float64] = np.tanh(turned / 2)
        return right.astype(np.float32)


def log_odds(votes: NDArray[Any]) -> NDArray[np.float64]:
    """log p / (1 - p) of soft votes 2p - 1."""
    inside = np.clip(votes.astype(np.float64), -LARGEST_VOTE, LARGEST_VOTE)
    return 2 * np.arctanh(inside)


@dataclass(frozen=True, eq=False)
class Isotonic:
    """A vote read off an increasing line through knots, flat beyond the ends."""

    votes: NDArray[np.float32]
    calibrated: NDArray[np.float64]

    def __call__(self, votes: NDArray[Any]) -> NDArray[np.float32]:
        right: NDArray[np.float64] = np.interp(votes, self.votes, self.calibrated)
        return right.astype(np.float32)


@dataclass(frozen=True, eq=False)
class ClassCurves:
    """One voter's shares (n, C), each read off the curve of its class; rows sum to 1."""

    curves: tuple[Platt | Isotonic, ...]

    def __call__(self, votes: NDArray[Any]) -> NDArray[np.float32]:
        against = [curve(2 * votes[:, c] - 1) for c, curve in enumerate(self.curves)]
        return _shares_of_votes(np.stack(against, axis=-1))


def _shares_of_votes(votes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Soft votes 2p - 1 of the classes as shares that add up to 1."""
    return shares((1 + votes.astype(np.float64)) / 2).astype(np.float32)


def calibrate_votes(
    votes: NDArray[Any],
    targets: NDArray[Any],
    folds: NDArray[Any],
    *,
    forward: bool = False,
    method: Literal["auto", "platt", "isotonic"] = "auto",
    sample_weight: NDArray[np.float64] | None = None,
    overwrite: bool = False,
) -> tuple[NDArray[np.float32], list[Any]]:
    """Calibrate voters on their out-of-sample votes, each fold by what the others say.

    The C-bound is a least-squares fit, so it wants honest probabilities: soft votes 2p - 1
    such that p is the share of positives among rows of the same vote.

    Parameters
    ----------
    votes : ndarray of shape (n, K), or (n, K, C) for three or more classes
        Soft votes in [-1, 1], or shares of the classes, on rows that the voters have not
        seen.
    targets : ndarray of shape (n,)
        The number of each row's class; of two classes, 1 is the positive one.
    folds : ndarray of shape (n,)
        The fold of each row: 0, 1, ... Rows of -1 have no vote, and no part in it.
    forward : bool, default=False
        The folds are windows in the order of time: each is calibrated by what those before
        it say, the first by the others.
    method : {"auto", "isotonic", "platt"}, default="auto"
        Platt: a logistic curve in the log-odds of the vote, two numbers a voter.
        Isotonic: any increasing function, which takes more rows to learn. "auto" takes
        it from 10,000 rows of the rarer class on.
    sample_weight : ndarray of shape (n,), optional
    overwrite : bool, default=False
        Put calibrated float32 votes (n, K) in the place of ``votes``: of very many rows,
        there may be no room for both.

    Returns
    -------
    calibrated : ndarray of float32, of the shape of ``votes``
        The votes of each fold by functions fitted on the other folds. Its own labels
        have no part in them. 0 for rows without a vote.
    calibrators : list of K functions
        Fitted on all rows, for votes to come. With three or more classes one is against
        the rest, and shares are scaled to add up to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import calibrate_votes
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0, 0.2, 4000)
    >>> targets = (rng.random(4000) < p).astype(int)
    >>> boasts = np.sqrt(p)[:, None]  # a voter that says a root of the truth
    >>> votes, calibrators = calibrate_votes(2 * boasts - 1, targets, np.arange(4000) % 5)
    >>> float(abs((1 + votes[:, 0]) / 2 - p).max()) < 0.05
    True
    """
    votes = np.asarray(votes)
    _check_votes(votes, targets, folds, method)
    weights = np.ones(len(votes)) if sample_weight is None else sample_weight
    weights = np.where(np.asarray(folds) < 0, 0.0, weights)
    settings = folds, forward, weights, method
    if votes.ndim == 2:
        room = votes if overwrite and votes.dtype == np.float32 else None
        return _calibrate_columns(votes, np.asarray(targets) == 1, *settings, room)
    right, by_class = np.empty(votes.shape, np.float32), []
    for c in range(votes.shape[2]):
        against = 2 * votes[:, :, c].astype(np.float32) - 1
        right[:, :, c], curves = _calibrate_columns(against, targets == c, *settings)
        by_class.append(curves)
    calibrators = [ClassCurves(curves) for curves in zip(*by_class, strict=True)]
    return _shares_of_votes(right), calibrators


def _check_votes(votes: NDArray[Any], targets: Any, folds: Any, method: str) -> None:
    if votes.dtype.kind != "f":
        raise ValueError(f"only soft votes can be calibrated; these are {votes.dtype}")
    if votes.ndim not in (2, 3) or not len(votes) == len(targets) == len(folds):
        raise ValueError(
            f"votes of shape {votes.shape}, {len(targets)} targets and {len(folds)} folds; "
            f"there must be one row, target and fold for each"
        )
    if method not in ("auto", "isotonic", "platt"):
        raise ValueError(f"method={method!r} is none of 'auto', 'isotonic' and 'platt'")
    if len(np.unique(np.asarray(folds)[np.asarray(folds) >= 0])) < 2:
        raise ValueError("there is one fold only, and no other to learn from")


def _calibrate_columns(
    votes: NDArray[Any],
    positive: NDArray[np.bool_],
    folds: NDArray[Any],
    forward: bool,
    weights: Number,
    method: str,
    right: NDArray[np.float32] | None = None,
) -> tuple[NDArray[np.float32], list[Platt | Isotonic]]:
    """Calibrate (n, K) votes on one class against the rest, in the place of ``right``."""
    if not all((np.abs(votes[:, k]) <= 1).all() for k in range(votes.shape[1])):
        raise ValueError("votes must lie in [-1, 1], and shares of classes in [0, 1]")
    if right is None:
        right = np.empty(votes.shape, dtype=np.float32, order="F")
    unjudged = np.flatnonzero(np.asarray(folds) < 0)
    parts = [np.flatnonzero(folds == fold) for fold in range(int(np.max(folds)) + 1)]
    others = [
        np.flatnonzero(
            np.isin(folds, folds_to_learn_from(fold, len(parts), forward)) & (weights > 0)
        )
        for fold in range(len(parts))
    ]
    everyone = np.flatnonzero(weights > 0)
    n_judged = int(np.count_nonzero(np.asarray(folds) >= 0))
    calibrators = []
    with one_blas_thread():
        for k in range(votes.shape[1]):
            own = votes[:, k].astype(np.float32)  # a copy, which is in one piece
            voter = _Voter(own, positive, weights, method, n_judged)
            for judged, rows in zip(parts, others, strict=True):
                if len(judged):
                    right[judged, k] = voter.fit(rows)(own[judged])
            right[unjudged, k] = 0
            calibrators.append(voter.fit(everyone))
    return right, calibrators


@dataclass(eq=False)
class _Voter:
    """One voter's votes, sorted and in log-odds once for the fits on all folds."""

    votes: NDArray[np.float32]
    positive: NDArray[np.bool_]
    weights: Number
    method: str
    n_judged: int

    @cached_property
    def scores(self) -> Number:
        return log_odds(self.votes)

    @cached_property
    def levels(self) -> Any:
        return np.unique(self.votes, return_inverse=True)

    def fit(self, rows: NDArray[np.intp]) -> Platt | Isotonic:
        """The calibrator that these rows speak for."""
        positive, weights = self.positive[rows], self.weights[rows]
        if not self._takes_steps(positive):
            (slope,), intercept = fit_logistic([self.scores[rows]], positive, weights)
            return Platt(slope, intercept)
        votes, place = self.levels
        mass, found = _isotonic(place[rows], positive, weights, len(votes))
        share = found.x
        # Between the ends of a flat stretch, knots say nothing.
        ends = np.ones(len(share), dtype=bool)
        ends[1:-1] = (share[1:-1] != share[:-2]) | (share[1:-1] != share[2:])
        return Isotonic(votes[mass > 0][ends], np.clip(2 * share[ends] - 1, -1, 1))

    def _takes_steps(self, positive: NDArray[np.bool_]) -> bool:
        if self.method != "auto":
            return self.method == "isotonic"
        # What these rows let expect of all, so that all folds take the same choice and
        # none by its own labels.
        share = positive.mean() if len(positive) else 0.0
        return bool(min(share, 1 - share) * self.n_judged >= ENOUGH_FOR_ISOTONIC)


# Isotonic and logistic regression, for both.


def _isotonic(
    place: NDArray[np.intp], positive: NDArray[np.bool_], weight: Number, n_levels: int
) -> tuple[Number, Any]:
    """The weight at each level of the vote, and SciPy's regression where there is some."""
    mass: Number = np.bincount(place, weight, minlength=n_levels).astype(np.float64)
    gain = np.bincount(place, weight * positive, minlength=n_levels)
    some = mass > 0
    return mass, isotonic_regression(gain[some] / mass[some], weights=mass[some])


def effective_size(weight: Number) -> float:
    """How many rows of equal weight these are worth (Kish's effective size)."""
    largest = float(weight.max(initial=0.0))
    if largest == 0:
        return 0.0
    weight = weight / largest
    return float(weight.sum() ** 2 / (weight**2).sum())


def platt_targets(positive: NDArray[np.bool_], weight: Number) -> Number:
    """What the labels count as: (N+ + 1) / (N+ + 2) and 1 / (N- + 2).

    As if each class had been seen once more on either side, so that curves stay finite
    where the votes tell the classes apart. N is what the rows of a class are worth.
    """
    ours, others = effective_size(weight[positive]), effective_size(weight[~positive])
    return np.where(positive, (ours + 1) / (ours + 2), 1 / (others + 2))


def fit_logistic(
    columns: Sequence[Number], positive: NDArray[np.bool_], weight: Number
) -> tuple[list[float], float]:
    """Slopes and intercept of greatest likelihood for Platt's targets [1]_.

    A single slope is 0 or more, and that of a constant column 0.

    References
    ----------
    .. [1] J. Platt (1999), Probabilistic outputs for support vector machines; H.-T. Lin,
       C.-J. Lin and R. Weng (2007), A note on Platt's probabilistic outputs.
    """
    target = platt_targets(positive, weight)
    mean = float(np.average(target, weights=weight))
    slopes, intercept = [0.0] * len(columns), float(np.log(mean / (1 - mean)))
    centres = [float(np.average(one, weights=weight)) for one in columns]
    spreads = [
        float(np.sqrt(np.average((one - centre) ** 2, weights=weight)))
        for one, centre in zip(columns, centres, strict=True)
    ]
    varies = [
        k for k, spread in enumerate(spreads) if spread > 1e-9 * max(1, abs(centres[k]))
    ]
    z = [(columns[k] - centres[k]) / spreads[k] for k in varies]
    # The likelihood is concave: its top has a slope above 0 only if it rises from 0.
    if not z or (len(columns) == 1 and weight @ (z[0] * (target - mean)) <= 0):
        return slopes, intercept
    at = np.append(np.zeros(len(z)), intercept)
    if len(target) > 4 * N_BINS:
        means, targets, masses = _in_bins(z, positive, target, weight)
        at = _newton(means, targets, masses, at)
    *found, intercept = _newton(z, target, weight / weight.sum(), at).tolist()
    for k, slope in zip(varies, found, strict=True):
        slopes[k] = slope / spreads[k]
        intercept -= slopes[k] * centres[k]
    return slopes, intercept


def _in_bins(
    z: Sequence[Number], positive: NDArray[np.bool_], target: Number, weight: Number
) -> tuple[list[Number], Number, Number]:
    """Mean scores of like rows of a class, their targets and weights.

    Several scores are functions of one vote, so the sum of all of them tells rows apart.
    """
    score = np.sum(z, axis=0) if len(z) > 1 else z[0]
    low, high = score.min(), score.max()
    places = ((score - low) * ((N_BINS - 1) / (high - low))).astype(np.intp)
    places += N_BINS * positive
    mass = np.bincount(places, weight, minlength=2 * N_BINS)
    some = mass > 0
    mass = mass[some]
    means = [
        np.bincount(places, weight * one, minlength=2 * N_BINS)[some] / mass for one in z
    ]
    targets = np.bincount(places, weight * target, minlength=2 * N_BINS)[some] / mass
    return means, targets, mass / mass.sum()


def _newton(z: Sequence[Number], target: Number, weight: Number, at: Number) -> Number:
    """Slopes and intercept, by steps that are halved until they help."""

    def loss_at(at: Number) -> tuple[float, Number, Number]:
        s = at[0] * z[0]
        for slope, one in zip(at[1:-1], z[1:], strict=True):
            s += slope * one
        return _log_loss(s + at[-1], target, weight)

    cost, e, p = loss_at(at)
    for _ in range(MAX_STEPS):
        off = weight * (p - target)
        gradient = np.array([*(off @ one for one in z), off.sum()])
        steepest = float(np.abs(gradient).max())
        if steepest < 1e-12:
            break
        bend = weight * (e / (1 + e) ** 2)
        curls = [bend * one for one in z]
        sides = [curl.sum() for curl in curls]
        hessian = np.array([[curl @ one for one in z] for curl in curls])
        hessian = np.block([[hessian, np.c_[sides]], [np.r_[sides, bend.sum()]]])
        hessian += 1e-12 * np.trace(hessian) * np.eye(len(at))
        # Where the loss is as good as flat, though not at the top, steps are far too long.
        for ridge in (0.0, steepest)[: 1 + (steepest > 1e-9)]:
            step = np.linalg.solve(hessian + ridge * np.eye(len(at)), gradient)
            size, gain = 1.0, float(gradient @ step)
            while size > 1e-6:
                found = loss_at(at - size * step)
                if found[0] <= cost - 1e-4 * size * gain:
                    break
                size /= 2
            if size > 1e-6:
                break
        else:
            break  # nothing left to gain but rounding
        at, (cost, e, p) = at - size * step, found
    return at


def _log_loss(s: Number, target: Number, weight: Number) -> tuple[float, Number, Number]:
    """Log loss of log-odds, with exp(-|s|) and p for the derivatives."""
    e = np.exp(-np.abs(s))
    p = np.where(s > 0, 1.0, e) / (1 + e)
    cost = float(weight @ (np.maximum(s, 0) - target * s + np.log1p(e)))
    return cost, e, p
