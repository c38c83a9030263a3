"""Out-of-sample votes: no row is judged by voters, or by weights, that know its label.

A row's label reaches the weights in two ways. The row itself is among those they are
learned on; so each row gets weights learned on the other folds, which takes one more
solve of (all - fold), since moments are sums. And the voters that were trained on the
row vote its label on its neighbours too, where the others' weights make up for them if it
is wrong there; so these voters are taken out and the others weighted anew. On labels that
are coin flips, the first leak scores well above chance, and the second, left alone, below
it (AUC .47 with balanced classes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._threads import run_in_threads
from .moments import Moments
from .solvers import SOLVERS
from .voters import Draws
from .voters.folds import deal_folds as deal_folds

N_FOLDS = 5
MAX_SWEEPS = 10
"""Rounds in which the weights of the voters that have not seen a row are set anew."""


@dataclass(frozen=True, eq=False)
class FoldWeights:
    """Weights for a fold, learned on the others, and what they were learned from.

    ``weights`` are on the scale at which they minimise w'Mw - 2 m'w.
    """

    weights: NDArray[np.float64]
    m: NDArray[np.float64]
    M: NDArray[np.float64]


def crossfit_weights(others: Sequence[Moments], solver: str) -> list[FoldWeights]:
    """Weights for each fold, from the moments of the other folds."""
    return [_fold_weights(moments, solver) for moments in others]


def _fold_weights(others: Moments, solver: str) -> FoldWeights:
    n_voters = others.n_voters
    if solver != "uniform" and others.total > 0:
        solution = SOLVERS[solver](others)
        if solution.informative:
            m, M = others.normalised()
            Q = solution.weights
            return FoldWeights(Q * (m @ Q) / (Q @ M @ Q), m, M)
    # Nothing was learned: with M = 1 and m equal, the optimum on any voters is even.
    even = np.full(n_voters, 1 / n_voters)
    return FoldWeights(even, even, np.eye(n_voters))


def unseen_rows(draws: Draws, n: int, n_voters: int) -> NDArray[np.uint8]:
    """A bit for each voter and row that it was not trained on, eight rows to a byte."""
    unseen = np.empty((n_voters, -(-n // 8)), dtype=np.uint8)
    for k in range(n_voters):
        unseen[k] = np.packbits(draws.out_of_bag(k))
    return unseen


def out_of_bag_vote(
    votes: NDArray[Any],
    unseen: NDArray[np.uint8],
    folds: NDArray[np.int8],
    fold_weights: Sequence[FoldWeights],
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """The vote on each row, by the voters and the weights that do not know its label.

    ``unseen`` holds a bit for each voter and row (see :func:`unseen_rows`). NaN where no
    voter was out of bag.
    """
    from ._leave_out import vote_without  # imports numba

    n, n_voters = votes.shape
    vote = np.full(n, np.nan)
    # What one row can do to the weights fades as rows outnumber voters.
    sweeps = min(MAX_SWEEPS, round(200 * n_voters / n))
    judge = (
        partial(
            vote_without,
            np.flatnonzero(folds == number),
            votes,
            unseen,
            fold.weights,
            fold.m,
            fold.M,
            sweeps,
            vote,
        )
        for number, fold in enumerate(fold_weights)
    )
    run_in_threads(judge, n_jobs)
    return vote
