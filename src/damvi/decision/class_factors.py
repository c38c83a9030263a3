"""A factor for each class, by which its votes count when the largest one decides.

Three or more classes have no threshold. A rare class whose votes count for more is found
more often, and flagged wrongly more often; the factors weigh that up for macro F1, the
mean of the classes' F1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .class_race import GAIN, Race
from .class_tables import confusion as confusion
from .class_tables import f1_by_class as f1_by_class

Number = NDArray[np.float64]
Places = NDArray[np.intp]

MAX_SWEEPS = 20


def settled(scores: Number, order: Places) -> Number:
    """Scores in which ties for the first place go to the class that is first in ``order``.

    Its score is raised by the smallest step there is, so that the largest always decides.
    """
    best = scores.max(axis=1, keepdims=True)
    ties = scores == best
    tied = np.flatnonzero(ties.sum(axis=1) > 1)
    if not len(tied):
        return scores
    scores = scores.copy()
    winner = order[np.argmax(ties[tied][:, order], axis=1)]
    scores[tied, winner] = np.nextafter(best[tied, 0], np.inf)
    return scores


def decide(vote: Number, factors: Number, order: Places) -> Places:
    """The class of each row: the largest vote times factor."""
    return settled(vote * factors, order).argmax(axis=1)


def tune_factors(
    vote: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    order: ArrayLike | None = None,
) -> Number:
    """The factors that are best for macro F1 on these rows, one class after the other.

    For each class in turn, all factors that decide the rows differently are tried, until
    no single one can be bettered. The search starts from the plain vote and, a second
    time, from factors that even out how much is voted for each class; the better end is
    taken.

    Parameters
    ----------
    vote : array of shape (n, C)
        Out-of-sample votes, 0 or more; rows with NaN are left out.
    labels : array of int, shape (n,)
        The number of each row's class.
    sample_weight : array of shape (n,), optional
    order : array of int, shape (C,), optional
        The classes by their claim to a tie; by default as they are numbered.

    Returns
    -------
    factors : ndarray of shape (C,)
        Only their ratios matter; that of ``order[0]`` is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import tune_factors
    >>> vote = np.array([[0.7, 0.2, 0.1], [0.6, 0.4, 0.0], [0.5, 0.2, 0.3]])
    >>> factors = tune_factors(vote, [0, 1, 2])
    >>> (vote * factors).argmax(axis=1)
    array([0, 1, 2])
    """
    votes, truth = np.asarray(vote, np.float64), np.asarray(labels, np.intp)
    weight = np.ones(len(votes)) if sample_weight is None else np.asarray(sample_weight)
    n_classes = votes.shape[1]
    places = np.arange(n_classes) if order is None else np.asarray(order, np.intp)
    kept = ~np.isnan(votes).any(axis=1) & (weight > 0)
    votes, truth, weight = votes[kept], truth[kept], weight[kept].astype(np.float64)
    even = np.ones(n_classes)
    if not len(votes):
        return even
    # Columns by their claim to a tie, so that the first of the largest is the winner.
    votes, truth = np.ascontiguousarray(votes[:, places]), np.argsort(places)[truth]
    level = votes.mean(axis=0)
    starts = [even, level.max() / np.where(level > 0, level, level.max())]
    ends = [_climb(votes, truth, weight, start) for start in starts]
    _, found = ends[int(ends[1][0] > ends[0][0] + GAIN)]
    factors = np.empty(n_classes)
    factors[places] = found / found[0]
    return factors


def _climb(
    vote: Number, labels: Places, weight: Number, factors: Number
) -> tuple[float, Number]:
    """From these factors upwards, one class at a time; the sum of F1 reached."""
    race = Race(vote, labels, weight, factors.copy())
    reached = race.sum_of_f1()
    for _ in range(MAX_SWEEPS):
        before = reached
        for c in reversed(range(len(factors))):  # the rarest first: most to gain
            worth, factor = race.best_factor(c)
            if worth > reached + GAIN:
                reached = worth
                race.set_factor(c, factor)
        if reached <= before + GAIN:
            break
    return reached, race.factors
