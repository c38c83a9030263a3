"""From a vote to a probability that means what it says.

Two things are calibrated, both on rows that the voters have not seen: the soft votes of
each voter before they are weighted (:func:`calibrate_votes`), and the weighted vote that is
the result (:func:`calibrate_vote`). Each takes an increasing function of the vote; of three
or more classes, one a class against the rest, scaled so that all add up to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, isotonic_regression
from scipy.special import expit

from .._blas import one_blas_thread
from .rows import Number, Rows, need_all_classes, read_folds, read_rows

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
MAX_STEPS = 100
MAX_PLATT_STEPS = 50
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
        columns = self.columns(vote)
        return (
            self.for_votes * columns[..., 0]
            + self.against * columns[..., 1]
            + self.intercept
        )

    def columns(self, vote: Number) -> Number:
        up, down = (1 + vote / self.scale) / 2, (1 - vote / self.scale) / 2
        return np.stack(
            [
                np.log(np.clip(up, self.low, 1.0)),
                -np.log(np.clip(down, self.high, 1.0)),
            ],
            axis=-1,
        )


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
    intercept, slope = fit_logistic(rows.vote[:, None], platt_targets(rows), rows.weight)
    return Line(max(float(slope), 0.0), float(intercept))


def fit_beta(rows: Rows) -> BetaCurve:
    """Beta calibration (Kull et al., 2017): the best of the fits that never fall."""
    scale = max(1.0, float(np.abs(rows.vote).max()))
    up, down = (1 + rows.vote / scale) / 2, (1 - rows.vote / scale) / 2
    # A unanimous vote is placed half as far out as the nearest that is not.
    low, high = (float(s[s > 0].min(initial=1.0)) / 2 for s in (up, down))
    columns = BetaCurve(1, 1, 0, scale, low, high).columns(rows.vote)
    targets = platt_targets(rows)

    best, least = None, np.inf
    for used in ([0, 1], [0], [1], []):
        intercept, *slopes = fit_logistic(columns[:, used], targets, rows.weight)
        if min(slopes, default=0.0) < 0:
            continue
        both = np.zeros(2)
        both[used] = slopes
        loss = log_loss(columns @ both + intercept, targets, rows.weight)
        if loss < least:
            best, least = (both, intercept), loss
        if len(used) == 2:
            break
    assert best is not None  # the level curve is always among them
    (for_votes, against), intercept = best
    return BetaCurve(float(for_votes), float(against), float(intercept), scale, low, high)


def fit_knots(rows: Rows) -> Knots:
    """Isotonic regression, with a knot in the middle of each level.

    Each level counts one row more, of the mean rate, so that none is 0 or 1.
    """
    order = np.argsort(rows.vote, kind="stable")
    vote, weight = rows.vote[order], rows.weight[order]
    truth = rows.positive[order].astype(np.float64)
    starts = np.flatnonzero(np.concatenate([[True], vote[1:] != vote[:-1]]))
    weight_sum = np.add.reduceat(weight, starts)
    rate = np.add.reduceat(weight * truth, starts) / weight_sum
    levels = isotonic_regression(rate, weights=weight_sum)

    blocks = levels.blocks[:-1]
    mass = np.add.reduceat(weight_sum, blocks)
    within = weight_sum / np.repeat(mass, np.diff(levels.blocks))
    place = np.add.reduceat(within * vote[starts], blocks)
    mean = class_rate(rows)
    one_row = float((weight**2).sum() / weight.sum())
    raised = (levels.x[blocks] * mass + mean * one_row) / (mass + one_row)
    chance = isotonic_regression(raised, weights=mass).x
    return Knots(
        tuple(place.tolist()),
        tuple(np.maximum.accumulate(np.log(chance) - np.log1p(-chance)).tolist()),
    )


def platt_targets(rows: Rows) -> Number:
    """What the labels count as: (N+ + 1) / (N+ + 2) and 1 / (N- + 2).

    N is the number of rows of a class, or what their weights are worth (Kish).
    """
    ours = effective(rows.weight[rows.positive])
    others = effective(rows.weight[~rows.positive])
    return np.where(rows.positive, (ours + 1) / (ours + 2), 1 / (others + 2))


def class_rate(rows: Rows) -> float:
    """The share of positives; of rows of one class, Laplace's estimate."""
    rate = float(rows.weight[rows.positive].sum() / rows.weight.sum())
    if rows.positive.any() and not rows.positive.all():
        return rate
    known = effective(rows.weight)
    return (known * rate + 1) / (known + 2)


def effective(weight: Number) -> float:
    """How many rows of equal weight these are worth: 0 of none."""
    return float(weight.sum() ** 2 / (weight**2).sum()) if len(weight) else 0.0


def fit_logistic(columns: Number, targets: Number, weight: Number) -> Number:
    """Coefficients, the intercept first, that minimise the weighted log loss.

    ``targets`` lie strictly between 0 and 1, so that the optimum is finite whatever
    the columns are. A constant column gets the coefficient 0.
    """
    weight = weight / weight.sum()
    size = np.abs(columns).max(axis=0)
    size[size == 0] = 1.0
    columns = columns / size
    centre = weight @ columns
    spread = np.sqrt(weight @ (columns - centre) ** 2)
    varies = spread > 1e-12
    scale = np.where(varies, spread, 1.0)
    design = np.ones((len(columns), 1 + columns.shape[1]))
    design[:, 1:] = np.where(varies, (columns - centre) / scale, 0.0)
    rate = float(weight @ targets)
    coef = np.zeros(design.shape[1])
    coef[0] = np.log(rate / (1 - rate))
    loss = _loss(coef, design, targets, weight)
    ridge = 1e-12 * np.eye(len(coef))
    for _ in range(MAX_STEPS):
        chance = expit(design @ coef)
        gradient = design.T @ (weight * (chance - targets))
        curvature = (design.T * (weight * chance * (1 - chance))) @ design + ridge * rate
        step = np.linalg.solve(curvature, gradient)
        decrease = float(gradient @ step)
        part = 1.0
        while part > 1e-8:
            trial = coef - part * step
            found = _loss(trial, design, targets, weight)
            if found <= loss - 1e-4 * part * decrease:
                break
            part /= 2
        else:
            break
        coef, loss = trial, found
        if decrease < 1e-14:
            break
    slopes = coef[1:] / scale
    return np.append(coef[0] - slopes @ centre, slopes / size)


def log_loss(log_odds: Number, targets: Number, weight: Number) -> float:
    """The mean log loss of given log-odds."""
    losses = np.logaddexp(0.0, log_odds) - targets * log_odds
    return float(weight @ losses / weight.sum())


def _loss(
    coef: Number, design: Number, targets: Number, weight: NDArray[np.float64]
) -> float:
    return log_loss(design @ coef, targets, weight)


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
    need_all_classes(rows)
    return _fit_calibrator(rows, method)


def crossfit_probability(
    vote: ArrayLike,
    targets: ArrayLike,
    folds: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    method: Method = "auto",
) -> Number:
    """The probability of each row by a calibrator learned on the other folds.

    For what is reported about probabilities: a calibrator flatters the rows it was
    learned on. NaN where the vote is, or where the weight is 0. ``folds`` has an integer
    a row; the rest is as for :func:`calibrate_vote`.

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
    need_all_classes(rows)
    numbers = read_folds(folds, rows)
    chance = np.full((rows.n_given, *rows.vote.shape[1:]), np.nan)
    for fold in range(int(numbers.max()) + 1):
        here = numbers == fold
        learned = _fit_calibrator(rows.take(~here), method)
        chance[rows.index[here]] = learned(rows.vote[here])
    return chance


def _fit_calibrator(rows: Rows, method: str) -> Calibrator:
    """A calibrator, also from rows that lack a class, as the other folds may."""
    each = [rows] if rows.n_classes == 2 else rows.one_against_the_rest()
    return Calibrator(tuple(_fit_curve(own, method) for own in each))


def _fit_curve(rows: Rows, method: str) -> ProbabilityCurve:
    if method == "auto":
        method = _choose_method(rows)
    if method not in FITS:
        known = ", ".join(map(repr, FITS))
        raise ValueError(f"method={method!r} is not known; give 'auto', {known}")
    log_odds = FITS[method](rows)
    scale = max(1.0, float(np.abs(rows.vote).max()))
    return ProbabilityCurve(method, log_odds, _shift(log_odds, rows, scale), scale)


def _choose_method(rows: Rows) -> str:
    # What was measured is in docs/decisions.md. With 30 positives isotonic loses up to 3 %
    # of log loss to beta on smooth curves, with 300 less than 1 %, and gains 14 % on steps.
    if effective(rows.weight[rows.positive]) >= ENOUGH_POSITIVES:
        return "isotonic"
    return "beta" if np.abs(rows.vote).max() <= 1 else "platt"


def _shift(curve: Line | BetaCurve | Knots, rows: Rows, scale: float) -> float:
    """What to add to the log-odds so that the mean probability is the rate."""
    weight, rate = rows.weight / rows.weight.sum(), class_rate(rows)
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
    method: Literal["auto", "platt", "isotonic"] = "auto",
    sample_weight: NDArray[np.float64] | None = None,
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
        The fold of each row: 0, 1, ...
    method : {"auto", "isotonic", "platt"}, default="auto"
        Platt: a logistic curve in the log-odds of the vote, two numbers a voter.
        Isotonic: any increasing function, which takes more rows to learn. "auto" takes
        it from 10,000 rows of the rarer class on.
    sample_weight : ndarray of shape (n,), optional

    Returns
    -------
    calibrated : ndarray of float32, of the shape of ``votes``
        The votes of each fold by functions fitted on the other folds. Its own labels
        have no part in them.
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
    settings = folds, np.asarray(weights, dtype=np.float64), method
    if votes.ndim == 2:
        return _calibrate_columns(votes, np.asarray(targets) == 1, *settings)
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
    if len(np.unique(folds)) < 2:
        raise ValueError("there is one fold only, and no other to learn from")


def _calibrate_columns(
    votes: NDArray[Any],
    positive: NDArray[np.bool_],
    folds: NDArray[Any],
    weights: Number,
    method: str,
) -> tuple[NDArray[np.float32], list[Platt | Isotonic]]:
    """Calibrate (n, K) votes on one class against the rest."""
    if not (np.abs(votes) <= 1).all():
        raise ValueError("votes must lie in [-1, 1], and shares of classes in [0, 1]")
    votes = np.asfortranarray(votes, dtype=np.float32)
    right = np.empty(votes.shape, dtype=np.float32, order="F")
    parts = [np.flatnonzero(folds == fold) for fold in range(int(np.max(folds)) + 1)]
    others = [np.flatnonzero((folds != f) & (weights > 0)) for f in range(len(parts))]
    everyone = np.flatnonzero(weights > 0)
    calibrators = []
    with one_blas_thread():
        for k in range(votes.shape[1]):
            voter = _Voter(votes[:, k], positive, weights, method)
            for judged, rows in zip(parts, others, strict=True):
                if len(judged):
                    right[judged, k] = voter.fit(rows)(votes[judged, k])
            calibrators.append(voter.fit(everyone))
    return right, calibrators


class _Voter:
    """One voter's votes, sorted and in log-odds once for the fits on all folds."""

    def __init__(
        self,
        votes: NDArray[np.float32],
        positive: NDArray[np.bool_],
        weights: NDArray[np.float64],
        method: str,
    ) -> None:
        self.votes, self.positive, self.weights = votes, positive, weights
        self.method = method
        self.place: NDArray[np.intp] | None = None
        self.scores: NDArray[np.float64] | None = None

    def fit(self, rows: NDArray[np.intp]) -> Platt | Isotonic:
        """The calibrator that these rows speak for."""
        if self._takes_steps(rows):
            return self._isotonic(rows)
        if self.scores is None:
            self.scores = log_odds(self.votes)
        return fit_platt(self.scores[rows], self.positive[rows], self.weights[rows])

    def _takes_steps(self, rows: NDArray[np.intp]) -> bool:
        if self.method != "auto":
            return self.method == "isotonic"
        # What these rows let expect of all, so that all folds take the same choice and
        # none by its own labels.
        share = self.positive[rows].mean() if len(rows) else 0.0
        return bool(min(share, 1 - share) * len(self.votes) >= ENOUGH_FOR_ISOTONIC)

    def _isotonic(self, rows: NDArray[np.intp]) -> Isotonic:
        if self.place is None:
            self.levels, self.place = np.unique(self.votes, return_inverse=True)
        place, weights = self.place[rows], self.weights[rows]
        size = len(self.levels)
        weight = np.bincount(place, weights, minlength=size)
        gain = np.bincount(place, weights * self.positive[rows], minlength=size)
        seen = weight > 0
        levels, weight = self.levels[seen], weight[seen]
        share = isotonic_regression(gain[seen] / weight, weights=weight).x
        # Between the ends of a flat stretch, knots say nothing.
        ends = np.ones(len(share), dtype=bool)
        ends[1:-1] = (share[1:-1] != share[:-2]) | (share[1:-1] != share[2:])
        return Isotonic(levels[ends], np.clip(2 * share[ends] - 1, -1, 1))


def fit_platt(
    scores: NDArray[np.float64],
    positive: NDArray[np.bool_],
    weights: NDArray[np.float64],
) -> Platt:
    """The curve of greatest likelihood, by Newton's method.

    Its targets are not quite 0 and 1, as if each class had been seen once more on either
    side [1]_; so the curve stays finite where the votes tell the classes apart.

    References
    ----------
    .. [1] J. Platt (1999), Probabilistic outputs for support vector machines; H.-T. Lin,
       C.-J. Lin and R. Weng (2007), A note on Platt's probabilistic outputs.
    """
    gain, loss = _rows_worth(weights[positive]), _rows_worth(weights[~positive])
    target = np.where(positive, (gain + 1) / (gain + 2), 1 / (loss + 2))
    mean = float(np.average(target, weights=weights))
    flat = Platt(0.0, float(np.log(mean / (1 - mean))))
    centre = float(np.average(scores, weights=weights))
    spread = float(np.sqrt(np.average((scores - centre) ** 2, weights=weights)))
    if spread <= 1e-9 * max(1.0, abs(centre)):
        return flat
    z = (scores - centre) / spread
    # The likelihood is concave: its top has a slope above 0 only if it rises from 0.
    if weights @ (z * (target - mean)) <= 0:
        return flat
    start = np.array([0.0, flat.intercept])
    if len(z) > 4 * N_BINS:
        means, targets, masses = _in_bins(z, positive, target, weights)
        start = _newton(means, targets, masses, start)
    slope, intercept = _newton(z, target, weights / weights.sum(), start).tolist()
    slope /= spread
    return Platt(slope, intercept - slope * centre)


def _rows_worth(weights: NDArray[np.float64]) -> float:
    """How many rows of equal weight these are worth (Kish's effective size)."""
    largest = float(weights.max(initial=0.0))
    if largest == 0:
        return 0.0
    weights = weights / largest
    return float(weights.sum() ** 2 / (weights**2).sum())


def _in_bins(
    z: NDArray[np.float64],
    positive: NDArray[np.bool_],
    target: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.float64], ...]:
    """Mean scores of like rows of a class, their targets and weights."""
    low, high = z.min(), z.max()
    places = ((z - low) * ((N_BINS - 1) / (high - low))).astype(np.intp)
    places += N_BINS * positive
    weight = np.bincount(places, weights, minlength=2 * N_BINS)
    some = weight > 0
    weight = weight[some]
    means = np.bincount(places, weights * z, minlength=2 * N_BINS)[some] / weight
    targets = np.bincount(places, weights * target, minlength=2 * N_BINS)[some] / weight
    return means, targets, weight / weight.sum()


def _newton(
    z: NDArray[np.float64],
    target: NDArray[np.float64],
    weights: NDArray[np.float64],
    at: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Slope and intercept, by steps that are halved until they help."""
    cost, e, p = _cost(z, target, weights, at)
    for _ in range(MAX_PLATT_STEPS):
        off = weights * (p - target)
        gradient = np.array([off @ z, off.sum()])
        if np.abs(gradient).max() < 1e-12:
            break
        bend = weights * (e / (1 + e) ** 2)
        curl = bend * z
        hessian = np.array([[curl @ z, curl.sum()], [curl.sum(), bend.sum()]])
        hessian[[0, 1], [0, 1]] += 1e-12 * np.trace(hessian)
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while size > 1e-6:
            new = at - size * step
            lower, new_e, new_p = _cost(z, target, weights, new)
            if lower <= cost - 1e-4 * size * float(gradient @ step):
                break
            size /= 2
        else:
            break  # nothing left to gain but rounding
        at, cost, e, p = new, lower, new_e, new_p
    return at


def _cost(
    z: NDArray[np.float64],
    target: NDArray[np.float64],
    weights: NDArray[np.float64],
    at: NDArray[np.float64],
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Log loss, with exp(-|s|) and p for the derivatives."""
    s = at[0] * z + at[1]
    e = np.exp(-np.abs(s))
    p = np.where(s > 0, 1.0, e) / (1 + e)
    cost = float(weights @ (np.maximum(s, 0) - target * s + np.log1p(e)))
    return cost, e, p
