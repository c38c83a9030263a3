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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._threads import run_in_threads
from .moments import Moments
from .solvers import SOLVERS

N_FOLDS = 5
MAX_SWEEPS = 10
"""Rounds in which the weights of the voters that have not seen a row are set anew."""
BLOCK_ROWS = 1 << 13
"""Rows whose votes are added up at a time, so that the sums stay in the cache."""


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
    return [fold_weights(moments, _solved(moments, solver)) for moments in others]


def fold_weights(others: Moments, Q: NDArray[np.float64] | None) -> FoldWeights:
    """Weights ``Q`` on the scale that fits ``others`` best; None is the plain vote."""
    if Q is not None and others.mu1(Q) > 0:
        m, M = others.normalised()
        return FoldWeights(Q * (m @ Q) / (Q @ M @ Q), m, M)
    # Nothing was learned: with M = 1 and m equal, the optimum on any voters is even.
    even = np.full(others.n_voters, 1 / others.n_voters)
    return FoldWeights(even, even, np.eye(others.n_voters))


def _solved(others: Moments, solver: str) -> NDArray[np.float64] | None:
    if solver == "uniform" or others.total <= 0:
        return None
    solution = SOLVERS[solver](others)
    return solution.weights if solution.informative else None


def out_of_fold_vote(
    votes: NDArray[Any],
    folds: NDArray[Any],
    fold_weights: Sequence[FoldWeights],
    n_jobs: int | None = None,
    n_classes: int | None = None,
) -> NDArray[np.float64]:
    """The vote on each row by the weights of its fold; no voter has seen the row.

    With ``n_classes``, votes are numbers of classes (n, K) or shares of them (n, K, C),
    and the vote is (n, C): what each class gets.
    """
    kernels = _kernels(n_classes, soft=votes.ndim == 3)
    weights = np.stack([fold.weights for fold in fold_weights], axis=1)
    weights = weights / weights.sum(axis=0)
    vote, asked = _room(len(votes), n_classes), _asked(weights)
    run_in_threads(
        (
            partial(kernels.by_fold, votes, folds, weights, asked, start, stop, vote)
            for start, stop in _blocks(len(votes))
        ),
        n_jobs,
    )
    return vote


def out_of_bag_vote(
    votes: NDArray[Any],
    unseen: NDArray[np.uint8],
    folds: NDArray[Any],
    fold_weights: Sequence[FoldWeights],
    n_jobs: int | None = None,
    n_classes: int | None = None,
    n_rows: int | None = None,
) -> NDArray[np.float64]:
    """The vote on each row, by the voters and the weights that do not know its label.

    ``unseen`` holds a bit for each voter and row that it was not trained on, (K, n / 8).
    NaN where no voter was out of bag. With ``n_classes``, votes are numbers of classes,
    and the vote is (n, C). ``n_rows`` is the number of rows that the weights were learned
    from, if not all are here.
    """
    kernels = _kernels(n_classes)
    n, n_voters = votes.shape
    # What one row can do to the weights fades as rows outnumber voters.
    sweeps = min(MAX_SWEEPS, round(200 * n_voters / (n_rows or n)))
    vote, rows = _room(n, n_classes), np.arange(n)
    if sweeps == 0:
        _plainly(kernels, votes, unseen, folds, fold_weights, vote, n_jobs)
        rows = np.flatnonzero(np.isnan(vote if n_classes is None else vote[:, 0]))
    else:
        vote.fill(np.nan)
    _one_by_one(kernels, rows, votes, unseen, folds, fold_weights, sweeps, vote, n_jobs)
    return vote


class _Kernels(NamedTuple):
    by_fold: Any
    of_unseen: Any
    without: Any


def _kernels(n_classes: int | None, *, soft: bool = False) -> _Kernels:
    """What adds up votes for one class against the other, or for each of many."""
    if n_classes is None:
        from ._leave_out import vote_without  # imports numba
        from ._unseen_vote import vote_by_fold, vote_of_unseen

        return _Kernels(vote_by_fold, vote_of_unseen, vote_without)
    from ._class_vote import (
        class_vote_by_fold,
        class_vote_of_unseen,
        soft_class_vote_by_fold,
    )
    from ._leave_out import class_vote_without

    by_fold = soft_class_vote_by_fold if soft else class_vote_by_fold
    return _Kernels(by_fold, class_vote_of_unseen, class_vote_without)


def _room(n: int, n_classes: int | None) -> NDArray[np.float64]:
    return np.zeros(n if n_classes is None else (n, n_classes))


def _plainly(
    kernels: _Kernels,
    votes: NDArray[Any],
    unseen: NDArray[np.uint8],
    folds: NDArray[Any],
    fold_weights: Sequence[FoldWeights],
    vote: NDArray[np.float64],
    n_jobs: int | None,
) -> None:
    """Voters that have seen the row left out, and no more; NaN where none is left."""
    weights = np.stack([fold.weights for fold in fold_weights], axis=1)
    mass, asked = np.zeros(len(votes)), _asked(weights)
    settings = votes, unseen, folds, weights, asked
    run_in_threads(
        (
            partial(kernels.of_unseen, *settings, start, stop, vote, mass)
            for start, stop in _blocks(len(votes))
        ),
        n_jobs,
    )
    mass[mass <= 0] = np.nan
    vote /= mass if vote.ndim == 1 else mass[:, np.newaxis]


def _one_by_one(
    kernels: _Kernels,
    rows: NDArray[np.intp],
    votes: NDArray[Any],
    unseen: NDArray[np.uint8],
    folds: NDArray[Any],
    fold_weights: Sequence[FoldWeights],
    sweeps: int,
    vote: NDArray[np.float64],
    n_jobs: int | None,
) -> None:
    """Weights of its own for each of the rows."""
    if not len(rows):
        return
    judge = (
        partial(
            kernels.without,
            rows[folds[rows] == number],
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


def _asked(weights: NDArray[np.float64]) -> NDArray[np.intp]:
    """The voters with a weight in some fold."""
    return np.flatnonzero(weights.any(axis=1))


def _blocks(n: int) -> list[tuple[int, int]]:
    return [(start, min(start + BLOCK_ROWS, n)) for start in range(0, n, BLOCK_ROWS)]
