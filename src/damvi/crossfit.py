"""Out-of-sample votes: no row is judged by voters, or by weights, that know its label.

A row's label reaches the weights in two ways. The row itself is among those they are
learned on; so each row gets weights learned on the other folds, which takes one more
solve of (all - fold), since moments are sums. And the voters that were trained on the
row vote its label on its neighbours too, where the others' weights make up for them if it
is wrong there; so these voters are taken out of the fit as well, by a closed formula on
the voters that carry weight. On labels that are coin flips, the first leak scores well
above chance, and the second, left alone, below it (AUC .47 with balanced classes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from ._blas import one_blas_thread
from .moments import Moments
from .solvers import SOLVERS, uniform
from .voters import Draws

N_FOLDS = 5
NEGLIGIBLE = 1e-9
"""A weight below this is taken for 0; only a solver that is not exact leaves any."""


def deal_folds(signs: NDArray[Any], seed: int, n_folds: int = N_FOLDS) -> NDArray[np.int8]:
    """Deal the rows of each class over the folds, at random and evenly.

    Even by class, since a fold short of positives would leave more of them to the
    others, and so tell its labels to the weights that judge it.
    """
    rng = np.random.RandomState([seed, 2**31])
    folds = np.empty(len(signs), dtype=np.int8)
    for side in (signs > 0, signs <= 0):
        folds[rng.permutation(np.flatnonzero(side))] = np.arange(side.sum()) % n_folds
    return folds


@dataclass(frozen=True, eq=False)
class FoldWeights:
    """Weights for a fold, learned on the others.

    Attributes
    ----------
    voters : ndarray of shape (s,)
        The voters that carry weight.
    weights : ndarray of shape (s,)
        Their weights, not normalised.
    inverse : ndarray of shape (s, s)
        The inverse of their second moments: with some voters left out, the optimum of
        the others moves to ``w - inverse[:, out] @ inv(inverse[out, out]) @ w[out]``.
    """

    voters: NDArray[np.intp]
    weights: NDArray[np.float64]
    inverse: NDArray[np.float64]


def crossfit_weights(by_fold: Sequence[Moments], solver: str) -> list[FoldWeights]:
    """Weights for each fold, learned on the other folds."""
    whole = sum(by_fold[1:], start=by_fold[0])
    return [_fold_weights(whole, whole - fold, solver) for fold in by_fold]


def _fold_weights(whole: Moments, others: Moments, solver: str) -> FoldWeights:
    # With no row outside the fold there is nothing to learn from.
    solution = SOLVERS[solver](others) if others.total > 0 else uniform(whole)
    voters = np.flatnonzero(solution.weights > NEGLIGIBLE)
    weights = solution.weights[voters]
    if solver == "uniform" or others.total == 0 or not solution.informative:
        return FoldWeights(voters, weights, np.eye(len(voters)))  # nothing was learned
    _, M = others.normalised()
    with one_blas_thread():
        inverse = np.linalg.pinv(M[np.ix_(voters, voters)], hermitian=True)
    return FoldWeights(voters, weights, inverse.astype(np.float64))


def out_of_bag_vote(
    votes: NDArray[Any],
    draws: Draws,
    folds: NDArray[np.int8],
    fold_weights: Sequence[FoldWeights],
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """The vote on each row, by the voters and the weights that do not know its label.

    NaN where no voter that carries weight was out of bag.
    """
    from ._leave_out import vote_without  # imports numba

    asked = sorted({int(k) for fold in fold_weights for k in fold.voters})
    unseen = np.stack([np.packbits(draws.out_of_bag(k)) for k in asked])
    vote = np.full(len(votes), np.nan)
    Parallel(n_jobs=n_jobs, require="sharedmem")(
        delayed(vote_without)(
            np.flatnonzero(folds == number),
            votes,
            fold.voters,
            unseen[np.searchsorted(asked, fold.voters)],
            fold.weights,
            fold.inverse,
            vote,
        )
        for number, fold in enumerate(fold_weights)
    )
    return vote
