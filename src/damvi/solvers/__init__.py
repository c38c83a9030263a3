"""Step 3 of DAMVI: from the moments of the votes to the weights of the voters."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning

from ..moments import Moments
from .exact import exact
from .slsqp import slsqp
from .solution import Solution, uniform

SOLVERS = {"exact": exact, "slsqp": slsqp, "uniform": uniform}

__all__ = ["SOLVERS", "Solution", "exact", "slsqp", "solve", "uniform"]


def solve(moments: Moments, solver: str = "exact") -> Solution:
    """Weights by a solver's name, with a warning when they mean little."""
    solution = SOLVERS[solver](moments)
    if not solution.informative:
        warnings.warn(
            "No voter does better than a coin on the (reweighted) training sample, so "
            "there is nothing to weight: the plain vote is used. Stronger voters help "
            "(deeper trees, larger max_samples, more informative features), or "
            "reweight=False if it is the emphasis on the positives that undoes them.",
            UserWarning,
            stacklevel=2,
        )
    elif not solution.converged:
        warnings.warn(
            f"solver={solver!r} stopped before it converged (relative KKT residual "
            f"{solution.kkt_residual:.1e}); solver='exact' has no such limit.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return solution
