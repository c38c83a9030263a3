"""Platt's calibration: a logistic curve in the log-odds of a vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST_VOTE = 1 - 2.0**-24
"""The largest below 1 in single precision: log-odds stay finite, about 17 at most."""
MAX_STEPS = 50
N_BINS = 1024
"""Of like scores, which stand for many rows until the curve is nearly there."""


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
    for _ in range(MAX_STEPS):
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
