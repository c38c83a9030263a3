"""The paper's solver: sequential least-squares programming from the uniform point.

Kept for fidelity to the paper. It is a local method on a ratio that is blind to the sign
of the first moment: started where the vote is worse than a coin, it can climb to the
*inverted* vote. The guard below starts it on the right side and keeps it there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ..moments import Moments
from .solution import Solution, certified, uniform

Vector = NDArray[np.float64]


def slsqp(moments: Moments) -> Solution:
    """Weights from SciPy's SLSQP on the C-bound, as in the paper, with a guard.

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
