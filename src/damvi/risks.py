"""The paper's quantities, computed from their definitions for any votes and weights.

``votes`` is the (n, K) matrix of votes in {-1, +1} (or [-1, 1]), ``signs`` are the true
labels in {-1, +1}, ``Q`` the weights of the voters (a distribution) and ``D`` those of the
examples (normalised here; None means 1/n each). :class:`damvi.moments.Moments` computes the
same quantities from sums, for large tables.

Examples
--------
>>> import numpy as np
>>> from damvi import risks
>>> votes = np.array([[1, 1, -1], [-1, 1, -1], [-1, -1, -1], [1, -1, 1]])
>>> signs, Q = np.array([1, -1, -1, 1]), np.full(3, 1 / 3)
>>> float(risks.vote_risk(votes, signs, Q)) <= float(risks.gibbs_bound(votes, signs, Q))
True
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .moments import c_bound_of


def margins(votes: ArrayLike, signs: ArrayLike, Q: ArrayLike) -> NDArray[np.float64]:
    """M_Q(x, y) = y * E_Q h(x): the margin, positive if the vote is correct."""
    H = np.asarray(votes, dtype=np.float64)
    return np.asarray(signs, dtype=np.float64) * (H @ np.asarray(Q, dtype=np.float64))


def vote_risk(
    votes: ArrayLike, signs: ArrayLike, Q: ArrayLike, D: ArrayLike | None = None
) -> float:
    """R(B_Q), the risk of the majority vote; a margin of 0 counts as an error."""
    return _mean(margins(votes, signs, Q) <= 0, D)


def gibbs_risk(
    votes: ArrayLike, signs: ArrayLike, Q: ArrayLike, D: ArrayLike | None = None
) -> float:
    """R(G_Q), the mean risk of one voter drawn from Q."""
    return _mean((1 - margins(votes, signs, Q)) / 2, D)


def gibbs_bound(
    votes: ArrayLike, signs: ArrayLike, Q: ArrayLike, D: ArrayLike | None = None
) -> float:
    """2 R(G_Q), the paper's first upper bound on :func:`vote_risk`."""
    return 2 * gibbs_risk(votes, signs, Q, D)


def disagreement(votes: ArrayLike, Q: ArrayLike, D: ArrayLike | None = None) -> float:
    """d(Q), the probability that two voters drawn from Q disagree. It needs no labels."""
    confidence = margins(votes, 1.0, Q)
    return _mean((1 - confidence**2) / 2, D)


def c_bound(
    votes: ArrayLike, signs: ArrayLike, Q: ArrayLike, D: ArrayLike | None = None
) -> float:
    """1 - (1 - 2 R(G_Q))**2 / (1 - 2 d(Q)), the C-bound on :func:`vote_risk`."""
    mu1 = 1 - 2 * gibbs_risk(votes, signs, Q, D)
    return c_bound_of(mu1, 1 - 2 * disagreement(votes, Q, D))


def _mean(values: NDArray[Any], D: ArrayLike | None) -> float:
    weights = None if D is None else np.asarray(D, dtype=np.float64)
    return float(np.average(values.astype(np.float64), weights=weights))
