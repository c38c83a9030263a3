"""Two models on the same rows of three or more classes: is one better?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..decision.objectives import f1_by_class
from .class_rankings import BLOCK, _drawn, _rank, _thinned
from .measures import LEVEL, N_DRAWS, Figure, Floats

Places = NDArray[np.intp]


def compare_classes(
    measure: str,
    labels: ArrayLike,
    ours: tuple[ArrayLike, ArrayLike],
    other: tuple[ArrayLike, ArrayLike],
    *,
    seed: int = 0,
) -> Figure:
    """How much better ours is, on the same draws of rows.

    Parameters
    ----------
    measure : {"macro_f1", "macro_ap"}
    labels : array of int, shape (n,)
        The place of each row's class.
    ours, other : (vote of shape (n, C), decided of shape (n,))
    seed : int, default=0

    Returns
    -------
    difference : Figure
        If its interval holds 0, the two are not told apart.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.choice(3, p=[0.7, 0.2, 0.1], size=1000)
    >>> noise = rng.normal(size=(2, 1000, 3)) * np.array([0.3, 2.0])[:, None, None]
    >>> good, bad = np.eye(3)[labels] + noise
    >>> both = (good, good.argmax(axis=1)), (bad, bad.argmax(axis=1))
    >>> [compare_classes(name, labels, *both).low > 0 for name in ("macro_f1", "macro_ap")]
    [True, True]
    """
    truth = np.asarray(labels, np.intp)
    rng = np.random.RandomState([seed, 19])
    n_classes = np.shape(ours[0])[1]
    if measure == "macro_ap":
        value, draws = _by_rows(rng, truth, np.asarray(ours[0]), np.asarray(other[0]))
    else:
        decided = np.asarray(ours[1], np.intp), np.asarray(other[1], np.intp)
        value, draws = _by_decisions(rng, truth, *decided, n_classes)
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Figure(value, float(low), float(high), float(draws.std()))


def _by_decisions(
    rng: np.random.RandomState, truth: Places, ours: Places, other: Places, n_classes: int
) -> tuple[float, Floats]:
    """A draw is the number of rows of each class for each pair of decisions."""
    shape = (1 + N_DRAWS, n_classes, n_classes)
    tables = np.zeros(shape), np.zeros(shape)
    there = np.unique(truth)
    for c in there:
        rows = truth == c
        pairs = np.stack([ours[rows], other[rows]])
        cells, counts = np.unique(pairs, axis=1, return_counts=True)
        size = counts.sum()
        drawn = rng.multinomial(size, counts / size, size=N_DRAWS)
        drawn = np.concatenate([counts[None, :], drawn])
        for table, named in zip(tables, cells, strict=True):
            table[:, c] = drawn @ np.eye(n_classes)[named]
    gains = [f1_by_class(table)[:, there].mean(axis=1) for table in tables]
    gain = gains[0] - gains[1]
    return float(gain[0]), gain[1:]


def _by_rows(
    rng: np.random.RandomState, truth: Places, ours: Floats, other: Floats
) -> tuple[float, Floats]:
    """A draw says how often each row is in it."""
    there = np.unique(truth)

    def gain(some: Places, weight: Floats) -> Floats:
        votes = ours[some], other[some]
        scores = [_rank(truth[some], vote, weight)[0, there].mean(axis=0) for vote in votes]
        return np.asarray(scores[0] - scores[1])

    rows, scale = _thinned(rng, truth, ours.shape[1])
    exact = float(gain(np.arange(len(truth)), np.ones((1, len(truth))))[0])
    plain = float(gain(rows, scale[None, :])[0])
    draws = np.empty(N_DRAWS)
    for start in range(0, N_DRAWS, BLOCK):
        weight = _drawn(rng, truth[rows], min(BLOCK, N_DRAWS - start)) * scale
        draws[start : start + BLOCK] = gain(rows, weight)
    # Around the figure of all rows, not of the thinned ones.
    return exact, draws + (exact - plain)
