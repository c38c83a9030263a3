"""What a solver returns: the weights, and how good they provably are."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..moments import Moments

GRID_BITS = 52


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights of the voters, with a certificate of optimality.

    Attributes
    ----------
    weights : ndarray of shape (K,)
        The distribution Q over the voters. Its entries are multiples of 2**-52, so
        adding them with any signs, in any order, is exact: a vote is the same bits
        whatever the blocks and threads, and a tie is exactly 0.
    c_bound : float
        The C-bound of these weights, 1 when they are no better than a coin.
    kkt_residual : float
        Largest violation of the optimality conditions, relative to max ``|m|``;
        0 means provably optimal.
    duality_gap : float
        No weights w >= 0 with sum(w) at most twice that of the solution have a residual
        (hence a C-bound) lower than this one by more than the gap.
    informative : bool
        False when no voter beats a coin (all m_k <= 0) and the weights are uniform
        for want of anything better.
    converged : bool
        False when the solver stopped at its limit of iterations.
    """

    weights: NDArray[np.float64] = field(repr=False)
    c_bound: float
    kkt_residual: float
    duality_gap: float
    informative: bool = True
    converged: bool = True


def on_grid(Q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round weights to multiples of 2**-52, where sums of votes are exact."""
    return np.ldexp(np.rint(np.ldexp(Q, GRID_BITS)), -GRID_BITS)


def certified(
    moments: Moments, Q: NDArray[np.float64], *, converged: bool = True
) -> Solution:
    """The solution with weights ``Q`` (any non-negative scale) and its certificate."""
    Q = on_grid(Q / Q.sum())
    m, M = moments.normalised()
    mu1, mu2 = float(m @ Q), float(Q @ M @ Q)
    # The best point of the ray through Q is where the residual is the C-bound.
    w = Q * (mu1 / mu2) if mu1 > 0 else np.zeros_like(Q)
    gradient = m - M @ w
    steepest = max(float(gradient.max()), 0.0)
    violation = max(steepest, float(np.abs(gradient[w > 0]).max(initial=0.0)))
    return Solution(
        weights=Q,
        c_bound=moments.c_bound(Q),
        kkt_residual=violation / max(float(np.abs(m).max()), np.finfo(float).tiny),
        duality_gap=2 * float(2 * w.sum() * steepest - gradient @ w),
        informative=bool((m > 0).any()),
        converged=converged,
    )


def uniform(moments: Moments) -> Solution:
    """The plain vote, each voter with weight 1/K."""
    return certified(moments, np.ones(moments.n_voters))
