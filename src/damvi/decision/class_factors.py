"""A factor for each class, by which its votes count when the largest one decides.

Three or more classes have no threshold. A rare class whose votes count for more is found
more often, and flagged wrongly more often; the factors weigh that up for macro F1, the
mean of the classes' F1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Number = NDArray[np.float64]
Places = NDArray[np.intp]

MAX_SWEEPS = 20
GAIN = 1e-12
"""What counts as better: sums are rounded."""
TINY = np.finfo(np.float64).tiny
BEYOND = 2.0
"""How far outside the switching points the outermost factors are put."""


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


def confusion(labels: Places, decided: Places, weight: Number, n_classes: int) -> Number:
    """The weight of the rows by class (row) and decision (column)."""
    places = labels * n_classes + decided
    cells = np.bincount(places, weight, minlength=n_classes**2).astype(np.float64)
    return cells.reshape(n_classes, n_classes)


def f1_by_class(table: Number) -> Number:
    """F1 of each class from tables (..., C, C); 0 if it is neither there nor named."""
    found = np.diagonal(table, axis1=-2, axis2=-1)
    both = table.sum(axis=-1) + table.sum(axis=-2)
    score: Number = 2 * found / np.maximum(both, TINY)
    return score


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
    level = votes.mean(axis=0)
    starts = [even, level.max() / np.where(level > 0, level, level.max())]
    ends = [_climb(votes, truth, weight, start, places) for start in starts]
    _, factors = ends[int(ends[1][0] > ends[0][0] + GAIN)]
    return factors / factors[places[0]]


def _climb(
    vote: Number, labels: Places, weight: Number, factors: Number, order: Places
) -> tuple[float, Number]:
    """From these factors upwards, one class at a time; the sum of F1 reached."""
    n_classes, factors = len(factors), factors.copy()
    table = confusion(labels, decide(vote, factors, order), weight, n_classes)
    reached = float(f1_by_class(table).sum())
    for _ in range(MAX_SWEEPS):
        before = reached
        for c in order[::-1]:  # the rarest first: they have most to gain
            worth, factor = _best_factor(vote, labels, weight, factors, order, int(c))
            if worth > reached + GAIN:
                reached, factors[c] = worth, factor
        if reached <= before + GAIN:
            break
    return reached, factors


def _best_factor(
    vote: Number, labels: Places, weight: Number, factors: Number, order: Places, c: int
) -> tuple[float, float]:
    """The best factor of one class, the others being fixed, and the sum of F1 it gives.

    A row turns to the class where its factor passes rival / own vote. In the order of
    these points the rows are counted off from their rivals.
    """
    n_classes = len(factors)
    scores = vote * factors
    scores[:, c] = -np.inf
    rival = settled(scores, order).argmax(axis=1)
    own, other = vote[:, c], scores[np.arange(len(vote)), rival]
    point = np.divide(other, own, out=np.full(len(own), np.inf), where=own > 0)
    by_point = np.argsort(point, kind="stable")
    point, rival, truth = point[by_point], rival[by_point], labels[by_point]
    mass = weight[by_point]
    # Cuts between rows that turn at different points; a cut at i turns the first i rows.
    changes = np.flatnonzero(point[1:] > point[:-1]) + 1
    cuts = np.concatenate([[0], changes, [len(point)]])
    low = np.append(0.0, point)[cuts]
    high = np.append(point, np.inf)[cuts]
    usable = np.isfinite(low) & (high > 0)
    usable &= (low > 0) | np.isfinite(high)
    if not usable.any():
        return -np.inf, float(factors[c])
    cuts, low, high = cuts[usable], low[usable], high[usable]
    total = np.bincount(labels, weight, minlength=n_classes).astype(np.float64)
    worth = _f1_of_joined(mass, truth == c, total[c])[cuts]
    worth += _f1_of_left(mass, rival, truth, total)[cuts]
    low = np.where(low > 0, low, high / BEYOND**2)
    high = np.where(np.isfinite(high), high, low * BEYOND**2)
    best = np.flatnonzero(worth >= worth.max() - GAIN)
    widest = best[np.argmax(high[best] / low[best])]
    return float(worth[widest]), float(np.sqrt(low[widest] * high[widest]))


def _f1_of_joined(mass: Number, of_class: NDArray[np.bool_], total: float) -> Number:
    """F1 of a class when the first i rows, and no others, are named it: (n + 1,)."""
    named = np.concatenate([[0.0], np.cumsum(mass)])
    hits = np.concatenate([[0.0], np.cumsum(mass * of_class)])
    score: Number = 2 * hits / np.maximum(total + named, TINY)
    return score


def _f1_of_left(mass: Number, rival: Places, truth: Places, total: Number) -> Number:
    """The sum of the F1 of all rivals when the first i rows have left them: (n + 1,).

    A row that leaves changes the F1 of its own rival alone, so that one pass over the rows,
    rival by rival, finds all changes.
    """
    n_classes = len(total)
    hit = mass * (rival == truth)
    named = np.bincount(rival, mass, minlength=n_classes)
    found = np.bincount(rival, hit, minlength=n_classes)
    start = 2 * found / np.maximum(total + named, TINY)
    by_rival = np.argsort(rival, kind="stable")
    own = rival[by_rival]
    first = np.searchsorted(own, own)  # where the rows of the same rival begin
    gone, gone_hits = (
        running - (running - values)[first]
        for values in (mass[by_rival], hit[by_rival])
        for running in (np.cumsum(values),)
    )
    after = 2 * (found[own] - gone_hits) / np.maximum(total[own] + named[own] - gone, TINY)
    is_first = first == np.arange(len(own))
    before = np.where(is_first, start[own], np.roll(after, 1))
    change = np.empty(len(own))
    change[by_rival] = after - before
    return float(start.sum()) + np.concatenate([[0.0], np.cumsum(change)])
