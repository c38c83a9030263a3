"""Step 2 of DAMVI: lean on the positives that the plain vote misses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def uniform_vote(
    votes: NDArray[Any], mask: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """The mean vote on each row, of those that count; 0 where none does.

    It is exact before the division for hard votes.
    """
    dtype = np.int64 if votes.dtype.kind == "i" else np.float64
    if mask is None:
        return votes.sum(axis=1, dtype=dtype) / votes.shape[1]
    counted = np.where(mask, votes, 0).sum(axis=1, dtype=dtype)
    return counted / np.maximum(mask.sum(axis=1), 1)


def emphasize_missed_positives(
    votes: NDArray[Any],
    signs: NDArray[Any],
    base: NDArray[np.float64] | None = None,
    strength: float = 1.0,
    mask: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64] | None:
    """Multiply the weight of each positive by exp(-vote), once, and leave the negatives.

    The exponent is the real-valued uniform vote, so a positive that every voter misses
    gains a factor e, one that all find loses it.

    Parameters
    ----------
    votes : ndarray of shape (n, K)
    signs : ndarray of shape (n,), -1 or +1
    base : ndarray of shape (n,), optional
        The weights to start from; 1 each by default.
    strength : float, default=1
        A factor of the exponent. At 0 the weights stay ``base``.
    mask : ndarray of bool, shape (n, K), optional
        The votes that count; all by default.

    Returns
    -------
    weights : ndarray of shape (n,)
        Not normalised: nothing that follows depends on their scale.

    Examples
    --------
    >>> import numpy as np
    >>> votes = np.array([[-1, -1], [1, 1], [1, 1]], dtype=np.int8)
    >>> emphasize_missed_positives(votes, np.array([1, 1, -1])).round(3)
    array([2.718, 0.368, 1.   ])
    """
    if strength == 0:
        return base
    weights = np.ones(len(votes)) if base is None else base.astype(np.float64)
    positive = np.flatnonzero(signs > 0)
    counted = None if mask is None else mask[positive]
    weights[positive] *= emphasis(uniform_vote(votes[positive], counted), strength)
    return weights


def uniform_class_vote(
    votes: NDArray[Any], n_classes: int, mask: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """The votes that each class gets on each row, (n, C), as sums over the voters.

    ``votes`` are numbers of classes (n, K), or shares of them (n, K, C).
    """
    if votes.ndim == 3:
        return votes.sum(axis=1, dtype=np.float64)
    got = np.empty((len(votes), n_classes))
    for c in range(n_classes):
        named = votes == c
        got[:, c] = (named if mask is None else named & mask).sum(axis=1)
    return got


def class_margin(vote: NDArray[np.float64], labels: NDArray[Any]) -> NDArray[np.float64]:
    """The vote for the row's own class less that for the strongest other one.

    With two classes it is the binary margin, sign times vote.

    Examples
    --------
    >>> import numpy as np
    >>> class_margin(np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]), np.array([0, 2]))
    array([ 0.2, -0.3])
    """
    rows = np.arange(len(vote))
    others = vote.copy()
    others[rows, labels] = -np.inf
    margin: NDArray[np.float64] = vote[rows, labels] - others.max(axis=1)
    return margin


def emphasis(vote: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
    """What a positive's weight is multiplied by, given the plain vote on it."""
    factor: NDArray[np.float64] = np.exp(-strength * vote)
    return factor
