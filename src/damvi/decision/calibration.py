"""Calibration of votes as probabilities.

Two things are calibrated, both on rows that the voters were not trained on: the soft votes
of each voter before they are weighted (:func:`calibrate_votes`), and the resulting weighted
vote (:func:`calibrate_vote`). Calibration is by an increasing function of the vote; with
three or more classes, by one for each class against the rest, normalised to a sum of 1.
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
"""Number of positives from which "auto" uses isotonic regression of the weighted vote. With
fewer, thresholds are tuned on expected counts."""
ENOUGH_FOR_ISOTONIC = 10_000
"""Number of rows of the rarer class from which "auto" uses isotonic regression of voters;
with about 2,000 of them, Platt scaling was still better (results/pools)."""
TILT = 1e-3
"""Minimum relative increase of a probability as the vote increases by 1."""
LARGEST_VOTE = 1 - 2.0**-24
"""The largest number below 1 in single precision, so that log-odds are at most 17."""
MAX_STEPS = 50
N_BINS = 1024
"""Number of bins of similar scores, which replace the rows in the first Newton steps."""


def shares(chances: NDArray[Any]) -> Number:
    """Normalise numbers >= 0 to a sum of 1 on the last axis; uniform if all are 0."""
    total = chances.sum(axis=-1, keepdims=True, dtype=np.float64)
    even = np.full(chances.shape, 1 / chances.shape[-1])
    return np.divide(chances, total, out=even, where=(total > 0) | np.isnan(total))


# The weighted vote: three kinds of curves for the log-odds, none of them decreasing.


@dataclass(frozen=True)
class Line:
    """Platt scaling: log-odds linear in the vote."""

    slope: float
    intercept: float

    def __call__(self, vote: Number) -> Number:
        with np.errstate(over="ignore"):
            return self.slope * vote + self.intercept


@dataclass(frozen=True)
class BetaCurve:
    """Beta calibration: log-odds from log s and -log(1 - s), s = (1 + vote / scale) / 2.

    ``s`` is clipped to [``low``, 1 - ``high``], so that unanimous votes stay finite.
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
    """Log-odds interpolated between knots, constant outside them."""

    votes: tuple[float, ...]
    log_odds: tuple[float, ...]

    def __call__(self, vote: Number) -> Number:
        heights = np.array(self.log_odds)
        after = np.searchsorted(self.votes, vote, side="right")
        ceiling = heights[np.minimum(after, len(heights) - 1)]
        # Rounded interpolation may exceed the next knot, where the curve would decrease.
        return np.minimum(np.interp(vote, self.votes, heights), ceiling)


def fit_line(rows: Rows) -> Line:
    """Logistic regression on the vote, with Platt's targets; constant if decreasing."""
    size = float(np.abs(rows.vote).max()) or 1.0  # squares of huge votes would overflow
    (slope,), intercept = fit_logistic([rows.vote / size], rows.positive, rows.weight)
    return Line(slope / size, intercept)


def fit_beta(rows: Rows) -> BetaCurve:
    """Beta calibration (Kull et al., 2017): the best fit that does not decrease."""
    scale = max(1.0, float(np.abs(rows.vote).max()))
    up, down = (1 + rows.vote / scale) / 2, (1 - rows.vote / scale) / 2
    # A unanimous vote is placed halfway between the limit and the nearest other vote.
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

    Each level has one additional row with the overall rate, so that none is 0 or 1.
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
    """Share of positives; Laplace's estimate if there is only one class."""
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
    """Probability of one class as a function of the vote.

    It is expit(log_odds(vote) + shift) times a factor between .997 and 1. The factor makes
    it strictly increasing where the curve is constant up to rounding: votes in [-1, 1] that
    differ by 1e-12 keep their order. For larger votes, this is relative to the largest.

    Attributes
    ----------
    method : {"platt", "beta", "isotonic"}
    log_odds : Line, BetaCurve or Knots
    shift : float
        Makes the mean probability equal to the rate of the class.
    scale : float
        The largest absolute vote, or 1 if that is larger.
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
    """Maps votes to probabilities, as learned by :func:`calibrate_vote`.

    Attributes
    ----------
    curves : tuple of ProbabilityCurve
        The curve of the positive class, or of each of three or more classes.
    """

    curves: tuple[ProbabilityCurve, ...]

    def __call__(self, vote: ArrayLike) -> Number:
        """Probability of the positive class, or of each class; NaN if the vote is NaN."""
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
    """Learn the probability of each class as a function of the vote.

    The mean probability over the rows equals the share of positives; with three or more
    classes approximately, because of the normalisation to a sum of 1.

    Parameters
    ----------
    vote : array of shape (n,), or (n, C) for three or more classes
        Out-of-sample votes; rows with NaN are ignored.
    targets : array of int, shape (n,)
        Class numbers; of two classes, 1 is the positive one. Rows must have the natural
        class rates, without resampling.
    sample_weight : array of shape (n,), optional
        Sample weights.
    method : {"auto", "platt", "beta", "isotonic"}, default="auto"
        "platt" is logistic regression on the vote [1]_, "beta" on the logarithms of the
        shares of votes for and against [2]_, "isotonic" is isotonic regression [3]_,
        interpolated between the middles of its levels. "auto" is isotonic from 300
        positives on (by effective sample size), otherwise beta, or Platt if votes are
        outside [-1, 1].

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
    """Probability of each row by a calibrator learned on the other folds.

    Use it to evaluate probabilities, since a calibrator is optimistic on the rows that it
    was learned on. NaN for rows without a vote or of weight 0. ``folds`` is the fold of
    each row; if the folds are in time order (``forward``), calibrators are learned on
    earlier folds, the first on all others. See :func:`calibrate_vote` for the rest.

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
    """Fit a calibrator; rows may lack a class, as those of the other folds do at times."""
    with one_blas_thread():
        curves = tuple(_fit_curve(own, method) for own in rows.against_the_rest())
    return Calibrator(curves)


def _fit_curve(rows: Rows, method: str) -> ProbabilityCurve:
    if method == "auto":
        # As measured in docs/probabilities.md: with 30 positives, isotonic loses up to 3%
        # of log loss to beta on smooth curves, with 300 less than 1%, and gains 14% on
        # steps.
        method = "beta" if np.abs(rows.vote).max() <= 1 else "platt"
        if effective_size(rows.weight[rows.positive]) >= ENOUGH_POSITIVES:
            method = "isotonic"
    if method not in FITS:
        known = ", ".join(map(repr, FITS))
        raise ValueError(f"method={method!r} is unknown; use one of 'auto', {known}")
    log_odds = FITS[method](rows)
    scale = max(1.0, float(np.abs(rows.vote).max()))
    return ProbabilityCurve(method, log_odds, _shift(log_odds, rows, scale), scale)


def _shift(curve: Line | BetaCurve | Knots, rows: Rows, scale: float) -> float:
    """Shift of the log-odds that makes the mean probability equal to the rate."""
    weight, rate = rows.weight / rows.total, class_rate(rows)
    # Passed as arguments rather than in a closure, which SciPy would keep alive longer.
    known = curve(rows.vote), _tilt(rows.vote, scale), weight, rate
    reach = 1.0
    while reach < 1e3 and not _excess(-reach, *known) <= 0 <= _excess(reach, *known):
        reach *= 2
    if _excess(reach, *known) < 0:  # the factor keeps it below a rate this close to 1
        return reach
    return float(brentq(_excess, -reach, reach, args=known, xtol=1e-13))


def _excess(
    shift: float, log_odds: Number, tilt: Number, weight: Number, rate: float
) -> float:
    """Difference between the mean probability and the rate."""
    return float(weight @ (_chance(log_odds + shift) * tilt)) - rate


def _chance(log_odds: Number) -> Number:
    """The logistic function, never 0."""
    chance: Number = expit(np.clip(log_odds, -700.0, 700.0))
    return chance


def _tilt(vote: Number, scale: float) -> Number:
    """A factor just below 1 that increases with the vote, linearly up to the scale."""
    part = np.clip(vote / scale, -1e15, 1e15)
    size = np.maximum(np.abs(part), 1.0)
    rise = np.where(size > 1, np.sign(part) * (1.5 - 0.5 / size), part)
    return 1 - TILT * (1.6 - rise)


# The votes of each voter: from soft votes to calibrated ones, in single precision.


@dataclass(frozen=True)
class Platt:
    """p = 1 / (1 + exp(-(slope * log-odds + intercept))), with a non-negative slope."""

    slope: float
    intercept: float

    def __call__(self, votes: NDArray[Any]) -> NDArray[np.float32]:
        # 2p - 1 is tanh of half the log-odds.
        scores = self.slope * log_odds(votes) + self.intercept
        calibrated: NDArray[np.float64] = np.tanh(scores / 2)
        return calibrated.astype(np.float32)


def log_odds(votes: NDArray[Any]) -> NDArray[np.float64]:
    """log p / (1 - p) of soft votes 2p - 1."""
    inside = np.clip(votes.astype(np.float64), -LARGEST_VOTE, LARGEST_VOTE)
    return 2 * np.arctanh(inside)


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Linear interpolation between increasing knots, constant beyond the ends."""

    votes: NDArray[np.float32]
    calibrated: NDArray[np.float64]

    def __call__(self, votes: NDArray[Any]) -> NDArray[np.float32]:
        calibrated: NDArray[np.float64] = np.interp(votes, self.votes, self.calibrated)
        return calibrated.astype(np.float32)


@dataclass(frozen=True, eq=False)
class ClassCurves:
    """Calibrates the shares (n, C) of a voter class by class, normalised to a sum of 1."""

    curves: tuple[Platt | Isotonic, ...]

    def __call__(self, votes: NDArray[Any]) -> NDArray[np.float32]:
        against = [curve(2 * votes[:, c] - 1) for c, curve in enumerate(self.curves)]
        return _shares_of_votes(np.stack(against, axis=-1))


def _shares_of_votes(votes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Soft votes 2p - 1 for each class as shares with sum 1."""
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
    """Calibrate voters on their out-of-sample votes, cross-fitted by fold.

    The C-bound is a least-squares fit, so it needs calibrated probabilities: soft votes
    2p - 1 such that p is the share of positives among rows with the same vote.

    Parameters
    ----------
    votes : ndarray of shape (n, K), or (n, K, C) for three or more classes
        Soft votes in [-1, 1], or shares of the classes, on rows that the voters were not
        trained on.
    targets : ndarray of shape (n,)
        Class numbers; of two classes, 1 is the positive one.
    folds : ndarray of shape (n,)
        The fold of each row: 0, 1, ... Rows of fold -1 have no vote and are ignored.
    forward : bool, default=False
        Whether the folds are in time order: calibrators are then learned on earlier folds,
        those of the first fold on all others.
    method : {"auto", "isotonic", "platt"}, default="auto"
        "platt" is logistic regression on the log-odds of the vote, with two parameters per
        voter; "isotonic" any increasing function, which takes more rows to learn. "auto" is
        isotonic from 10,000 rows of the rarer class on.
    sample_weight : ndarray of shape (n,), optional
    overwrite : bool, default=False
        Whether to write the calibrated votes to ``votes`` (float32, (n, K)), to save
        memory.

    Returns
    -------
    calibrated : ndarray of float32, of the shape of ``votes``
        The votes on each fold, calibrated by functions fitted on the other folds. 0 for
        rows without a vote.
    calibrators : list of K functions
        Fitted on all rows, for new votes. With three or more classes, each class is
        calibrated against the rest, and shares are normalised to a sum of 1.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import calibrate_votes
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0, 0.2, 4000)
    >>> targets = (rng.random(4000) < p).astype(int)
    >>> scores = np.sqrt(p)[:, None]  # a voter whose probabilities are too large
    >>> votes, calibrators = calibrate_votes(2 * scores - 1, targets, np.arange(4000) % 5)
    >>> float(abs((1 + votes[:, 0]) / 2 - p).max()) < 0.05
    True
    """
    votes = np.asarray(votes)
    _check_votes(votes, targets, folds, method)
    weights = np.ones(len(votes)) if sample_weight is None else sample_weight
    weights = np.where(np.asarray(folds) < 0, 0.0, weights)
    settings = folds, forward, weights, method
    if votes.ndim == 2:
        out = votes if overwrite and votes.dtype == np.float32 else None
        return _calibrate_columns(votes, np.asarray(targets) == 1, *settings, out)
    calibrated, by_class = np.empty(votes.shape, np.float32), []
    for c in range(votes.shape[2]):
        against = 2 * votes[:, :, c].astype(np.float32) - 1
        calibrated[:, :, c], curves = _calibrate_columns(against, targets == c, *settings)
        by_class.append(curves)
    calibrators = [ClassCurves(curves) for curves in zip(*by_class, strict=True)]
    return _shares_of_votes(calibrated), calibrators


def _check_votes(votes: NDArray[Any], targets: Any, folds: Any, method: str) -> None:
    if votes.dtype.kind != "f":
        raise ValueError(f"only soft votes can be calibrated, but these are {votes.dtype}")
    if votes.ndim not in (2, 3) or not len(votes) == len(targets) == len(folds):
        raise ValueError(
            f"votes of shape {votes.shape} do not match {len(targets)} targets and "
            f"{len(folds)} folds; all must have the same number of rows"
        )
    if method not in ("auto", "isotonic", "platt"):
        raise ValueError(f"method={method!r} must be 'auto', 'isotonic' or 'platt'")
    if len(np.unique(np.asarray(folds)[np.asarray(folds) >= 0])) < 2:
        raise ValueError("calibration needs at least two folds, but there is only one")


def _calibrate_columns(
    votes: NDArray[Any],
    positive: NDArray[np.bool_],
    folds: NDArray[Any],
    forward: bool,
    weights: Number,
    method: str,
    out: NDArray[np.float32] | None = None,
) -> tuple[NDArray[np.float32], list[Platt | Isotonic]]:
    """Calibrate votes (n, K) for one class against the rest, writing to ``out``."""
    if not all((np.abs(votes[:, k]) <= 1).all() for k in range(votes.shape[1])):
        raise ValueError("votes must be in [-1, 1], and shares of classes in [0, 1]")
    if out is None:
        out = np.empty(votes.shape, dtype=np.float32, order="F")
    in_no_fold = np.flatnonzero(np.asarray(folds) < 0)
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
            own = votes[:, k].astype(np.float32)  # a contiguous copy
            voter = _Voter(own, positive, weights, method, n_judged)
            for judged, rows in zip(parts, others, strict=True):
                if len(judged):
                    out[judged, k] = voter.fit(rows)(own[judged])
            out[in_no_fold, k] = 0
            calibrators.append(voter.fit(everyone))
    return out, calibrators


@dataclass(eq=False)
class _Voter:
    """Votes of one voter, sorted and converted to log-odds once for all folds."""

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
        """Fit a calibrator on these rows."""
        positive, weights = self.positive[rows], self.weights[rows]
        if not self._uses_isotonic(positive):
            (slope,), intercept = fit_logistic([self.scores[rows]], positive, weights)
            return Platt(slope, intercept)
        votes, place = self.levels
        mass, found = _isotonic(place[rows], positive, weights, len(votes))
        share = found.x
        # Only the ends of a constant stretch are needed as knots.
        ends = np.ones(len(share), dtype=bool)
        ends[1:-1] = (share[1:-1] != share[:-2]) | (share[1:-1] != share[2:])
        return Isotonic(votes[mass > 0][ends], np.clip(2 * share[ends] - 1, -1, 1))

    def _uses_isotonic(self, positive: NDArray[np.bool_]) -> bool:
        if self.method != "auto":
            return self.method == "isotonic"
        # Extrapolate from these rows to all of them, so that folds agree on the method and
        # none depends on its own labels.
        share = positive.mean() if len(positive) else 0.0
        return bool(min(share, 1 - share) * self.n_judged >= ENOUGH_FOR_ISOTONIC)


# Isotonic and logistic regression, used by both.


def _isotonic(
    place: NDArray[np.intp], positive: NDArray[np.bool_], weight: Number, n_levels: int
) -> tuple[Number, Any]:
    """Weight at each level of the vote, and SciPy's regression on levels with weight."""
    mass: Number = np.bincount(place, weight, minlength=n_levels).astype(np.float64)
    gain = np.bincount(place, weight * positive, minlength=n_levels)
    some = mass > 0
    return mass, isotonic_regression(gain[some] / mass[some], weights=mass[some])


def effective_size(weight: Number) -> float:
    """Number of equally weighted rows with the same variance (Kish's effective size)."""
    largest = float(weight.max(initial=0.0))
    if largest == 0:
        return 0.0
    weight = weight / largest
    return float(weight.sum() ** 2 / (weight**2).sum())


def platt_targets(positive: NDArray[np.bool_], weight: Number) -> Number:
    """Smoothed labels: (N+ + 1) / (N+ + 2) and 1 / (N- + 2).

    As if each class had one more row with either label, so that curves stay finite if the
    votes separate the classes. N is the effective size of a class.
    """
    ours, others = effective_size(weight[positive]), effective_size(weight[~positive])
    return np.where(positive, (ours + 1) / (ours + 2), 1 / (others + 2))


def fit_logistic(
    columns: Sequence[Number], positive: NDArray[np.bool_], weight: Number
) -> tuple[list[float], float]:
    """Maximum-likelihood slopes and intercept for Platt's targets [1]_.

    A single slope is non-negative, and the slope of a constant column is 0.

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
    # The likelihood is concave: its maximum has a positive slope only if it rises from 0.
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
    """Mean scores, target and weight of the rows of a class in each bin.

    Several scores are functions of one vote, so rows are binned by their sum.
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
    """Slopes and intercept by Newton's method, with step halving."""

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
        # Where the loss is nearly flat, but not at the optimum, Newton steps are too long.
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
            break  # at the optimum, up to rounding
        at, (cost, e, p) = at - size * step, found
    return at


def _log_loss(s: Number, target: Number, weight: Number) -> tuple[float, Number, Number]:
    """Log loss of log-odds, with exp(-|s|) and p for the derivatives."""
    e = np.exp(-np.abs(s))
    p = np.where(s > 0, 1.0, e) / (1 + e)
    cost = float(weight @ (np.maximum(s, 0) - target * s + np.log1p(e)))
    return cost, e, p
