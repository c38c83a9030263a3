"""Step 3 of DAMVI: from the moments of the votes to the weights of the voters.

The C-bound is minimised exactly, by non-negative least squares. The ratio
(m'Q)**2 / (Q'MQ) does not change when Q is scaled, and on the ray w = tQ the residual of
the least-squares fit of the signs by the weighted vote,

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

import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from ._kernels import one_blas_thread
from .moments import Moments

Indices = NDArray[np.intp]
Vector = NDArray[np.float64]

GRID_BITS = 52
EPS = float(np.finfo(np.float64).eps)
INDEPENDENT = 1e-10
"""A voter within this squared distance of the span of the chosen voters adds nothing."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights of the voters, with a certificate of optimality.

    Attributes
    ----------
    weights : ndarray of shape (K,)
        The distribution Q over the voters. Its entries are multiples of 2**-52, so sums of
        them with any signs are exact in any order: a vote is the same, bit for bit,
        whatever the blocks and threads, and a tie is exactly 0.
    c_bound : float
        The C-bound of these weights; 1 if they are no better than chance.
    kkt_residual : float
        Largest violation of the optimality conditions, relative to max ``|m|``; 0 proves
        optimality.
    duality_gap : float
        No weights w >= 0 with sum(w) at most twice that of the solution have a residual
        (hence a C-bound) that is lower by more than this gap.
    informative : bool
        False if no voter is better than chance (all m_k <= 0, up to rounding), in which
        case the weights are uniform.
    converged : bool
        False if the solver reached its maximum number of iterations.
    """

    weights: NDArray[np.float64] = field(repr=False)
    c_bound: float
    kkt_residual: float
    duality_gap: float
    informative: bool = True
    converged: bool = True


def on_grid(Q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round weights to multiples of 2**-52, so that sums of votes are exact."""
    return np.ldexp(np.rint(np.ldexp(Q, GRID_BITS)), -GRID_BITS)


def certified(
    moments: Moments, Q: NDArray[np.float64], *, converged: bool = True
) -> Solution:
    """Solution with weights ``Q`` (on any scale; uniform if 0) and its certificate."""
    found = bool(np.isfinite(Q).all() and Q.sum() > 0)
    Q = on_grid(Q / Q.sum()) if found else on_grid(np.full(len(Q), 1 / len(Q)))
    m, M = moments.normalised()
    mu1, mu2 = float(m @ Q), float(Q @ M @ Q)
    # On the ray through Q, the residual is least where it equals the C-bound.
    w = Q * (mu1 / mu2) if min(mu1, mu2) > 0 else np.zeros_like(Q)
    gradient = m - M @ w
    steepest = max(float(gradient.max()), 0.0)
    violation = max(steepest, float(np.abs(gradient[w > 0]).max(initial=0.0)))
    return Solution(
        weights=Q,
        c_bound=moments.c_bound(Q),
        kkt_residual=violation / max(float(np.abs(m).max()), np.finfo(float).tiny),
        duality_gap=2 * float(2 * w.sum() * steepest - gradient @ w),
        informative=found and bool((m > 0).any()),
        converged=converged,
    )


def uniform(moments: Moments) -> Solution:
    """The plain vote: each voter has weight 1/K."""
    return certified(moments, np.ones(moments.n_voters))


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
    """Minimise w'Mw - 2 m'w over w >= 0; also return whether the optimum was reached.

    An active-set method. Voters join the chosen set a few at a time, those with the
    steepest gradient first. Then the weights move from the current point towards the
    least-squares optimum on this set, and voters whose weight reaches 0 on the way leave.
    Each round lowers the objective, so no set recurs and the method terminates. If rounding
    hides the progress, the newcomers are excluded until there is progress again.
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
        # Decrease of the objective, in a form that resolves gains below its rounding error.
        ahead = m - M[:, kept] @ lower[kept]
        if (lower - w) @ (gradient + ahead) > 0:
            w, chosen = lower, kept
            useless[:] = False
        else:
            useless[newcomers] = True
    return w, False


def _independent(M: Vector, chosen: Indices, newcomers: Indices) -> Indices:
    """Newcomers that are linearly independent of the chosen voters and of each other."""
    schur = M[np.ix_(newcomers, newcomers)]
    if len(chosen):
        factor = linalg.cholesky(M[np.ix_(chosen, chosen)], lower=True)
        half = linalg.solve_triangular(factor, M[np.ix_(chosen, newcomers)], lower=True)
        schur = schur - half.T @ half
    tolerance = INDEPENDENT * float(M.diagonal().max())
    _, pivots, rank, _ = linalg.lapack.dpstrf(schur, tol=tolerance, lower=1)
    return newcomers[pivots[:rank] - 1]


def _descend(M: Vector, m: Vector, w: Vector, chosen: Indices) -> tuple[Vector, Indices]:
    """Move from ``w`` to the optimum over the chosen voters; drop those that reach 0."""
    x, target = w[chosen], np.empty(0)
    while len(chosen):
        factor = linalg.cho_factor(M[np.ix_(chosen, chosen)], lower=True)
        target = linalg.cho_solve(factor, m[chosen])
        blocked = target <= 0
        if not blocked.any():
            break
        # How far each voter lets us go; not at all if it is at 0 and would turn negative.
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


def slsqp(moments: Moments) -> Solution:
    """Weights from SciPy's SLSQP on the C-bound, as in the paper, with a guard.

    For fidelity to the paper. It is a local method on a ratio that ignores the sign of the
    first moment: started where the vote is worse than chance, it can converge to the
    *inverted* vote. The guard keeps the first moment positive, from the start on.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.moments import Moments
    >>> votes = np.array([[1, 1, -1], [-1, 1, -1], [-1, -1, -1], [1, -1, 1]])
    >>> moments = Moments.of(votes, np.array([1, -1, -1, 1]))
    >>> slsqp(moments).c_bound < 1e-6
    True
    """
    m, M = moments.normalised()
    if not (m > 0).any():
        return uniform(moments)

    def c_bound(Q: Vector) -> tuple[float, Vector]:
        mu1, MQ = float(m @ Q), M @ Q
        mu2 = max(float(Q @ MQ), np.finfo(float).tiny)
        ratio = mu1 / mu2
        return 1 - mu1 * ratio, 2 * ratio * (ratio * MQ - m)

    start = np.full(len(m), 1 / len(m))
    if m @ start <= 0:  # the sign trap
        start = np.maximum(m, 0) / np.maximum(m, 0).sum()
    result = minimize(
        c_bound,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * len(m),
        constraints=[
            {"type": "eq", "fun": lambda Q: Q.sum() - 1, "jac": np.ones_like},
            {"type": "ineq", "fun": lambda Q: m @ Q, "jac": lambda _: m},
        ],
    )
    Q = np.clip(result.x, 0, None)
    if not np.isfinite(Q).all() or Q.sum() <= 0 or moments.c_bound(Q) >= 1:
        Q = start
    return certified(moments, Q, converged=bool(result.success))


SOLVERS = {"exact": exact, "slsqp": slsqp, "uniform": uniform}


def solve(moments: Moments, solver: str = "exact") -> Solution:
    """Step 3 with the solver of this name; warns if the weights are not meaningful."""
    solution = SOLVERS[solver](moments)
    if not solution.informative:
        warnings.warn(
            "No voter is better than chance on the (reweighted) training rows, so the "
            "voters are weighted equally. Use stronger voters (deeper trees, larger "
            "max_samples, more informative features), or try reweight=False if giving "
            "more weight to the positives causes this.",
            UserWarning,
            stacklevel=2,
        )
    elif not solution.converged:
        warnings.warn(
            f"solver={solver!r} did not converge (relative KKT residual "
            f"{solution.kkt_residual:.1e}); solver='exact' always does.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return solution


def shrink(moments: Moments, share: float) -> Moments:
    """Moments whose optimal weights lie between those of the C-bound and equal weights.

    A plain ridge would shrink the weights towards m, the accuracies of the voters. Here the
    penalty is the distance to equal weights c, at the scale c where these fit best:
    (w - c)'(w - c) adds 1 to the diagonal of M and c to m.

    Parameters
    ----------
    moments : Moments
    share : float in [0, 1)
        0 leaves the moments unchanged; near 1 the weights are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.moments import Moments
    >>> from damvi.solvers import exact, shrink
    >>> votes = np.array([[1, 1], [1, -1], [-1, -1], [-1, -1]], dtype=np.int8)
    >>> moments = Moments.of(votes, np.array([1, 1, -1, -1]))
    >>> for share in (0, 0.5, 0.99):
    ...     print(exact(shrink(moments, share)).weights.round(2))
    [1. 0.]
    [0.67 0.33]
    [0.5 0.5]
    """
    if share == 0:
        return moments
    m, M = moments.normalised()
    strength = share / (1 - share) * float(np.trace(M)) / len(m)
    spread = float(M.sum())
    scale = max(float(m.sum()), 0.0) / spread if spread > 0 else 0.0
    return Moments(m + strength * scale, M + strength * np.eye(len(m)), 1)
