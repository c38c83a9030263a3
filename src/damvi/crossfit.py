"""Out-of-sample votes: no row is judged by a voter, or by weights, that have seen it.

Weights learned on the rows they are judged on leak: on labels that are coin flips they
score well above chance. The moments are sums, so the weights without a fold cost one
more solve of (all - fold), which takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .moments import Moments
from .solvers import Solution, uniform
from .voters import Draws

N_FOLDS = 5


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


def crossfit_weights(
    by_fold: Sequence[Moments], solver: Callable[[Moments], Solution]
) -> NDArray[np.float64]:
    """Weights for each fold, (folds, K), learned on the other folds."""
    whole = sum(by_fold[1:], start=by_fold[0])
    return np.stack(
        [
            # With no row outside the fold there is nothing to learn from.
            solver(whole - fold).weights
            if whole.total > fold.total
            else uniform(whole).weights
            for fold in by_fold
        ]
    )


def out_of_bag_vote(
    votes: NDArray[Any],
    draws: Draws,
    folds: NDArray[np.int8],
    fold_weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The vote on each row, by the voters and the weights that have not seen it.

    NaN where no voter that carries weight was out of bag.
    """
    vote, weight = np.zeros(len(votes)), np.zeros(len(votes))
    for k in range(votes.shape[1]):
        share = np.where(draws.out_of_bag(k), fold_weights[folds, k], 0.0)
        weight += share
        share *= votes[:, k]
        vote += share
    with np.errstate(invalid="ignore"):
        return vote / weight
