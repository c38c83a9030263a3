"""Three ways from a vote to log-odds, each rising with the vote or level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from .counts import Number
from .logistic import fit_logistic, log_loss
from .rows import Rows


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
