"""Two models on the same rows: is one better, or is it the draw of the rows?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .measures import LEVEL, Bools, Figure, Floats

N_DRAWS = 300
MOST_NEGATIVES = 50_000
"""Negatives of a draw of whole rows; more are thinned, and count for more."""


def compare(
    measure: str,
    positive: ArrayLike,
    ours: tuple[ArrayLike, ArrayLike],
    other: tuple[ArrayLike, ArrayLike],
    *,
    cost: tuple[float, float] = (1.0, 1.0),
    seed: int = 0,
) -> Figure:
    """How much better ours is, on the same draws of rows.

    Parameters
    ----------
    measure : {"f1", "precision", "recall", "ap", "cost"}
        Positive differences are in our favour, also for the cost.
    positive : array of bool, shape (n,)
    ours, other : (vote, flagged)
    cost : (false alarm, miss)
    seed : int, default=0

    Returns
    -------
    difference : Figure
        If its interval holds 0, the two are not told apart.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(1000) < 0.2
    >>> good, bad = positive + rng.normal(size=(2, 1000)) * [[0.3], [2.0]]
    >>> compare("ap", positive, (good, good > 0.5), (bad, bad > 0.5)).low > 0
    True
    """
    truth = np.asarray(positive, bool)
    rng = np.random.RandomState([seed, 13])
    if measure == "ap":
        value, draws = _by_rows(rng, truth, np.asarray(ours[0]), np.asarray(other[0]))
    else:
        value, draws = _by_decisions(
            rng, measure, truth, np.asarray(ours[1]), np.asarray(other[1]), cost
        )
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Figure(value, float(low), float(high), float(draws.std()))


def _by_decisions(
    rng: np.random.RandomState,
    measure: str,
    truth: Bools,
    ours: Bools,
    other: Bools,
    cost: tuple[float, float],
) -> tuple[float, Floats]:
    """A draw is the number of rows of each class for each pair of decisions."""
    counts = np.zeros((1 + N_DRAWS, 2, 2, 2))
    for side in (0, 1):
        rows = truth == side
        pairs = np.bincount(ours[rows] * 2 + other[rows], minlength=4)
        counts[0, side] = pairs.reshape(2, 2)
        drawn = rng.multinomial(rows.sum(), pairs / rows.sum(), size=N_DRAWS)
        counts[1:, side] = drawn.reshape(N_DRAWS, 2, 2)
    gain = _of_counts(measure, counts.sum(axis=3), cost) - _of_counts(
        measure, counts.sum(axis=2), cost
    )
    return float(gain[0]), gain[1:]


def _of_counts(measure: str, counts: Floats, cost: tuple[float, float]) -> Floats:
    """A measure of decisions, the higher the better; counts by truth and decision."""
    alarms, missed, found = counts[:, 0, 1], counts[:, 1, 0], counts[:, 1, 1]
    if measure == "cost":
        return -(cost[0] * alarms + cost[1] * missed) / counts.sum(axis=(1, 2))
    whole = {
        "f1": (found + missed + found + alarms) / 2,
        "precision": found + alarms,
        "recall": found + missed,
    }[measure]
    return np.divide(found, whole, out=np.zeros(len(found)), where=whole > 0)


def _by_rows(
    rng: np.random.RandomState, truth: Bools, ours: Floats, other: Floats
) -> tuple[float, Floats]:
    """A draw says how often each row is in it."""
    value = _average_precision(truth, ours, np.ones(len(truth)))
    value -= _average_precision(truth, other, np.ones(len(truth)))
    ups, downs = np.flatnonzero(truth), np.flatnonzero(~truth)
    scale = 1.0
    if len(downs) > MOST_NEGATIVES:
        scale = len(downs) / MOST_NEGATIVES
        downs = rng.choice(downs, MOST_NEGATIVES, replace=False)
    rows = np.concatenate([ups, downs])
    truth, ours, other = truth[rows], ours[rows], other[rows]
    orders = [np.argsort(-vote, kind="stable") for vote in (ours, other)]
    draws = np.empty(N_DRAWS)
    for draw in range(N_DRAWS):
        weight = np.empty(len(rows))
        for place, n in (
            (slice(0, len(ups)), len(ups)),
            (slice(len(ups), None), len(downs)),
        ):
            weight[place] = np.bincount(rng.randint(n, size=n), minlength=n)
        weight[len(ups) :] *= scale
        gains = [
            _average_precision(truth, vote, weight, order)
            for vote, order in zip((ours, other), orders, strict=True)
        ]
        draws[draw] = gains[0] - gains[1]
    return float(value), draws


def _times_drawn(rng: np.random.RandomState, n: int) -> NDArray[np.intp]:
    return np.bincount(rng.randint(n, size=n), minlength=n)


def _average_precision(
    truth: Bools, vote: Floats, weight: Floats, order: NDArray[np.intp] | None = None
) -> float:
    order = np.argsort(-vote, kind="stable") if order is None else order
    ranked = vote[order]
    ends = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    found = np.cumsum((weight * truth)[order])[ends]
    flagged = np.cumsum(weight[order])[ends]
    precision = np.divide(found, flagged, out=np.zeros(len(ends)), where=flagged > 0)
    return float((np.diff(found, prepend=0.0) * precision).sum() / found[-1])
