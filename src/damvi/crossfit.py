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

from ._kernels import in_threads
from .labels import vote_shape
from .moments import Moments
from .solvers import SOLVERS

MAX_SWEEPS = 10
"""Rounds in which the weights of the voters that are out of bag for a row are set anew."""
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


def crossfit_weights(
    others: Sequence[Moments],
    solver: str,
    known: Sequence[NDArray[np.float64]] | None = None,
) -> list[FoldWeights]:
    """Weights for each fold, from the moments of the other folds, unless they are known."""
    if known is None:
        return [fold_weights(moments, _solved(moments, solver)) for moments in others]
    return [fold_weights(m, Q) for m, Q in zip(others, known, strict=True)]


def fold_weights(others: Moments, Q: NDArray[np.float64] | None) -> FoldWeights:
    """Weights ``Q`` on the scale that fits ``others`` best; None is the plain vote."""
    if Q is not None and min(others.mu1(Q), others.mu2(Q)) > 0:
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
    n_classes: int,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """The vote on each row by the weights of its fold; no voter was trained on the row.

    Of two classes, votes are signed (n, K) and the vote is (n,). Of more, votes are numbers
    of classes (n, K) or shares of them (n, K, C), and the vote is (n, C).
    """
    kernels = _kernels(votes, n_classes)
    weights = np.stack([fold.weights for fold in fold_weights], axis=1)
    weights = weights / weights.sum(axis=0)
    vote, asked = np.zeros(vote_shape(len(votes), n_classes)), _asked(weights)
    calls = (
        partial(kernels.by_fold, votes, folds, weights, asked, start, stop, vote)
        for start, stop in _blocks(len(votes))
    )
    for _ in in_threads(calls, n_jobs):
        pass
    return vote


def out_of_bag_vote(
    votes: NDArray[Any],
    out_of_bag: NDArray[np.uint8],
    folds: NDArray[Any],
    fold_weights: Sequence[FoldWeights],
    n_classes: int,
    n_jobs: int | None = None,
    n_rows: int | None = None,
) -> NDArray[np.float64]:
    """The vote on each row, by the voters and the weights that do not know its label.

    ``out_of_bag`` holds a bit for each voter and row (see :func:`numpy.packbits`). NaN
    where no voter is out of bag. ``n_rows`` is the number of rows that the weights were
    learned from, if not all are here. The rest is as for :func:`out_of_fold_vote`.
    """
    kernels = _kernels(votes, n_classes)
    n, n_voters = votes.shape
    # What one row can do to the weights fades as rows outnumber voters.
    sweeps = min(MAX_SWEEPS, round(200 * n_voters / (n_rows or n)))
    vote, rows = np.zeros(vote_shape(n, n_classes)), np.arange(n)
    if sweeps == 0:
        # Voters trained on the row are left out, and no more; NaN where none is left.
        weights = np.stack([fold.weights for fold in fold_weights], axis=1)
        mass = np.zeros(n)
        settings = votes, out_of_bag, folds, weights, _asked(weights)
        calls = (
            partial(kernels.out_of_bag, *settings, start, stop, vote, mass)
            for start, stop in _blocks(n)
        )
        for _ in in_threads(calls, n_jobs):
            pass
        mass[mass <= 0] = np.nan
        by_class = np.atleast_2d(vote.T)
        by_class /= mass
        rows = np.flatnonzero(np.isnan(by_class[0]))
    else:
        vote.fill(np.nan)
    if len(rows):  # weights of its own for each of them
        judge = (
            partial(
                kernels.without,
                rows[folds[rows] == number],
                votes,
                out_of_bag,
                fold.weights,
                fold.m,
                fold.M,
                sweeps,
                vote,
            )
            for number, fold in enumerate(fold_weights)
        )
        for _ in in_threads(judge, n_jobs):
            pass
    return vote


class _Kernels(NamedTuple):
    by_fold: Any
    out_of_bag: Any
    without: Any


def _kernels(votes: NDArray[Any], n_classes: int) -> _Kernels:
    """What adds up votes for the positive one of two classes, or for each of many."""
    from .crossfit_kernels import (  # imports numba
        class_vote_by_fold,
        class_vote_without,
        out_of_bag_class_vote_by_fold,
        out_of_bag_vote_by_fold,
        share_vote_by_fold,
        vote_by_fold,
        vote_without,
    )

    if n_classes == 2:
        return _Kernels(vote_by_fold, out_of_bag_vote_by_fold, vote_without)
    by_fold = share_vote_by_fold if votes.ndim == 3 else class_vote_by_fold
    return _Kernels(by_fold, out_of_bag_class_vote_by_fold, class_vote_without)


def _asked(weights: NDArray[np.float64]) -> NDArray[np.intp]:
    """The voters with a weight in some fold."""
    return np.flatnonzero(weights.any(axis=1))


def _blocks(n: int) -> list[tuple[int, int]]:
    return [(start, min(start + BLOCK_ROWS, n)) for start in range(0, n, BLOCK_ROWS)]
