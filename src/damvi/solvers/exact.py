"""The exact solver: the C-bound is minimised by non-negative least squares.

The ratio (m'Q)**2 / (Q'MQ) does not change when Q is scaled, and on the ray w = tQ the
residual of the least-squares fit of the signs by the weighted vote,

    sum_i D_i (y_i - (Hw)_i)**2  =  1 - 2 m'w + w'Mw,

is least at t = m'Q / Q'MQ, where it equals the C-bound. So

    min over w >= 0 of the residual  =  min over Q of the C-bound,   Q = w / sum(w),

a convex problem with a global optimum that needs only M and m.

References
----------
C. L. Lawson and R. J. Hanson (1974), Solving Least Squares Problems, chapter 23.
R. Bro and S. de Jong (1997), A fast non-negativity-constrained least squares algorithm.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .._blas import one_blas_thread
from ..moments import Moments
from .solution import Solution, certified, uniform

Indices = NDArray[np.intp]
Vector = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
INDEPENDENT = 1e-10
"""A voter this close (in squared distance) to the span of the chosen adds nothing."""


def exact(moments: Moments) -> Solution:
    """Weights that minimise the C-bound, to machine precision.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.moments import Moments
    >>> votes = np.array([[1, 1, -1], [-1, 1, -1], [-1, -1, -1], [1, -1, 1]])
    >>> solution = exact(Moments.of(votes, np.array([1, -1, -1, 1])))
    >>> solution.weights, solution.c_bound
    (array([1., 0., 0.]), 0.0)
    """
    m, M = moments.normalised()
    if not (m > 0).any():
        return uniform(moments)
    with one_blas_thread():
        w, converged = nonnegative_least_squares(M, m)
    return certified(moments, w, converged=converged)


def nonnegative_least_squares(M: Vector, m: Vector) -> tuple[Vector, bool]:
    """Minimise w'Mw - 2 m'w over w >= 0, and tell whether the optimum was reached.

    An active-set method. Voters join the chosen set a few at a time, those with the
    steepest gradient first; then the least-squares optimum on the set is approached
    from the current point, and voters whose weight falls to zero on the way leave.
    Each round lowers the objective, so no set comes twice and the method ends; where
    rounding hides the progress, the newcomers are left out until it shows again.
    """
    w = np.zeros_like(m)
    chosen: Indices = np.empty(0, dtype=np.intp)
    useless = np.zeros(len(m), dtype=bool)
    for _ in range(3 * len(m) + 10):
        gradient = m - M[:, chosen] @ w[chosen]
        rounding = 8 * EPS * len(m) * (np.abs(m).max() + M.diagonal().max() * w.sum())
        wanted = (gradient > rounding) & ~useless
        wanted[chosen] = False
        if not wanted.any():
            return w, True
        steepest = np.argsort(-gradient, kind="stable")
        newcomers = steepest[wanted[steepest]][: 1 + len(chosen) // 2]
        independent = _independent(M, chosen, newcomers)
        lower, kept = _descend(M, m, w, np.concatenate([chosen, independent]))
        # The objective's decrease, in a form that shows gains far below its rounding.
        ahead = m - M[:, kept] @ lower[kept]
        if (lower - w) @ (gradient + ahead) > 0:
            w, chosen = lower, kept
            useless[:] = False
        else:
            useless[newcomers] = True
    return w, False


def _independent(M: Vector, chosen: Indices, newcomers: Indices) -> Indices:
    """The newcomers that are not combinations of the chosen voters, nor of each other."""
    schur = M[np.ix_(newcomers, newcomers)]
    if len(chosen):
        factor = linalg.cholesky(M[np.ix_(chosen, chosen)], lower=True)
        half = linalg.solve_triangular(factor, M[np.ix_(chosen, newcomers)], lower=True)
        schur = schur - half.T @ half
    tolerance = INDEPENDENT * float(M.diagonal().max())
    _, pivots, rank, _ = linalg.lapack.dpstrf(schur, tol=tolerance, lower=1)
    return newcomers[pivots[:rank] - 1]


def _descend(M: Vector, m: Vector, w: Vector, chosen: Indices) -> tuple[Vector, Indices]:
    """From ``w`` to the optimum over the chosen voters, dropping those that reach 0."""
    x, target = w[chosen], np.empty(0)
    while len(chosen):
        factor = linalg.cho_factor(M[np.ix_(chosen, chosen)], lower=True)
        target = linalg.cho_solve(factor, m[chosen])
        blocked = target <= 0
        if not blocked.any():
            break
        # How far each voter lets us go; one still at 0 that must not grow, nowhere.
        reach = np.full(len(x), np.inf)
        reach[blocked] = 0.0
        falling = blocked & (x > 0)
        reach[falling] = x[falling] / (x[falling] - target[falling])
        x = x + reach.min() * (target - x)
        stays = reach > reach.min()
        x, chosen = np.maximum(x[stays], 0.0), chosen[stays]
    w = np.zeros_like(m)
    w[chosen] = target
    return w, chosen
