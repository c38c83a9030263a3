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
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._kernels import in_threads, kernel
from .labels import vote_shape
from .votes import CLASS_NUMBERS, SHARES, SIGNS, kind_of

if TYPE_CHECKING:
    from .weighting import FoldWeights

MAX_SWEEPS = 10
"""Rounds in which the weights of the voters that are out of bag for a row are set anew."""
BLOCK_ROWS = 1 << 13
"""Rows whose votes are added up at a time, so that the sums stay in the cache."""
SETTLED = 1e-3
"""Weights (they add up to about 1) that move by less than this have arrived."""


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
    kernels = KERNELS[kind_of(votes)]
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
    kernels = KERNELS[kind_of(votes)]
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


def _asked(weights: NDArray[np.float64]) -> NDArray[np.intp]:
    """The voters with a weight in some fold."""
    return np.flatnonzero(weights.any(axis=1))


def _blocks(n: int) -> list[tuple[int, int]]:
    return [(start, min(start + BLOCK_ROWS, n)) for start in range(0, n, BLOCK_ROWS)]


# The kernels. Votes are those of one kind of :func:`out_of_fold_vote` each.


@kernel
def vote_by_fold(
    votes: Any, folds: Any, weights: Any, asked: Any, start: Any, stop: Any, vote: Any
) -> None:
    """Add up the votes of those ``asked``; ``weights`` is (K, folds), ``vote`` zeros."""
    for k in asked:
        for i in range(start, stop):
            vote[i] += weights[k, folds[i]] * votes[i, k]


@kernel
def class_vote_by_fold(
    votes: Any, folds: Any, weights: Any, asked: Any, start: Any, stop: Any, vote: Any
) -> None:
    """The same where votes are numbers of classes, and ``vote`` is (n, C)."""
    for k in asked:
        for i in range(start, stop):
            vote[i, votes[i, k]] += weights[k, folds[i]]


@kernel
def share_vote_by_fold(
    votes: Any, folds: Any, weights: Any, asked: Any, start: Any, stop: Any, vote: Any
) -> None:
    """The same where votes are shares of the classes (n, K, C)."""
    for i in range(start, stop):
        for k in asked:
            weight = weights[k, folds[i]]
            for c in range(vote.shape[1]):
                vote[i, c] += weight * votes[i, k, c]


@kernel
def out_of_bag_vote_by_fold(
    votes: Any,
    out_of_bag: Any,
    folds: Any,
    weights: Any,
    asked: Any,
    start: Any,
    stop: Any,
    vote: Any,
    mass: Any,
) -> None:
    """The vote by voters that were not trained on a row, with their weight in ``mass``.

    ``start`` is a multiple of 8.
    """
    for k in asked:
        own = weights[k]
        for place in range(start >> 3, stop >> 3):
            byte = out_of_bag[k, place]
            for j in range(8):
                i = 8 * place + j
                weight = own[folds[i]] * ((byte >> (7 - j)) & 1)
                vote[i] += weight * votes[i, k]
                mass[i] += weight
        for i in range(8 * (stop >> 3), stop):
            weight = own[folds[i]] * ((out_of_bag[k, i >> 3] >> (7 - (i & 7))) & 1)
            vote[i] += weight * votes[i, k]
            mass[i] += weight


@kernel
def out_of_bag_class_vote_by_fold(
    votes: Any,
    out_of_bag: Any,
    folds: Any,
    weights: Any,
    asked: Any,
    start: Any,
    stop: Any,
    vote: Any,
    mass: Any,
) -> None:
    """The same where votes are numbers of classes, and ``vote`` is (n, C)."""
    for k in asked:
        own = weights[k]
        for place in range(start >> 3, (stop + 7) >> 3):
            byte = out_of_bag[k, place]
            for j in range(8):
                i = 8 * place + j
                if i < stop:
                    weight = own[folds[i]] * ((byte >> (7 - j)) & 1)
                    vote[i, votes[i, k]] += weight
                    mass[i] += weight


@kernel
def weigh_without(
    row: Any,
    out_of_bag: Any,
    start: Any,
    m: Any,
    M: Any,
    sweeps: Any,
    w: Any,
    gradient: Any,
    asked: Any,
) -> Any:
    """Minimise w'Mw - 2 m'w over w >= 0 on the voters that were not trained on the row.

    ``out_of_bag`` holds a bit for each voter and row (see :func:`numpy.packbits`). The
    optimum of all voters, ``start``, is near; from there one weight at a time is set to
    its best value, voter after voter, until they stay or ``sweeps`` rounds are over. The
    voters go to ``asked``, their weights to ``w``; equal ones if none beats a coin.
    Returned are their number and the sum of their weights.
    """
    n_voters = len(m)
    n_asked = 0
    for j in range(n_voters):
        gradient[j], w[j] = m[j], 0.0
        if (out_of_bag[j, row >> 3] >> (7 - (row & 7))) & 1:
            asked[n_asked] = j
            n_asked += 1
    for i in range(n_asked):
        j = asked[i]
        w[j] = start[j]
        if sweeps > 0 and w[j] > 0:
            for k in range(n_voters):
                gradient[k] -= M[j, k] * w[j]
    for _ in range(sweeps):
        furthest = 0.0
        for i in range(n_asked):
            j = asked[i]
            if w[j] == 0 and gradient[j] <= 0:
                continue
            step = max(gradient[j] / M[j, j], -w[j])
            w[j] += step
            furthest = max(furthest, abs(step))
            for k in range(n_voters):
                gradient[k] -= M[j, k] * step
        if furthest < SETTLED:
            break
    weight_sum = 0.0
    for i in range(n_asked):
        weight_sum += w[asked[i]]
    if weight_sum == 0:  # none of them beats a coin: the plain vote
        for i in range(n_asked):
            w[asked[i]] = 1.0
        weight_sum = float(n_asked)
    return n_asked, weight_sum


@kernel
def vote_without(
    rows: Any,
    votes: Any,
    out_of_bag: Any,
    start: Any,
    m: Any,
    M: Any,
    sweeps: Any,
    vote: Any,
) -> None:
    """The vote on each row with weights of its own; see :func:`weigh_without`."""
    w, gradient, asked = np.empty(len(m)), np.empty(len(m)), np.empty(len(m), np.int64)
    for row in rows:
        n_asked, weight_sum = weigh_without(
            row, out_of_bag, start, m, M, sweeps, w, gradient, asked
        )
        if weight_sum > 0:
            total = 0.0
            for i in range(n_asked):
                total += w[asked[i]] * votes[row, asked[i]]
            vote[row] = total / weight_sum


@kernel
def class_vote_without(
    rows: Any,
    votes: Any,
    out_of_bag: Any,
    start: Any,
    m: Any,
    M: Any,
    sweeps: Any,
    vote: Any,
) -> None:
    """The same where votes are numbers of classes, and ``vote`` is (n, C)."""
    w, gradient, asked = np.empty(len(m)), np.empty(len(m)), np.empty(len(m), np.int64)
    for row in rows:
        n_asked, weight_sum = weigh_without(
            row, out_of_bag, start, m, M, sweeps, w, gradient, asked
        )
        if weight_sum > 0:
            vote[row] = 0.0
            for i in range(n_asked):
                vote[row, votes[row, asked[i]]] += w[asked[i]] / weight_sum


class Kernels(NamedTuple):
    """What adds up votes of one kind."""

    by_fold: Any
    out_of_bag: Any
    without: Any


KERNELS = {
    SIGNS: Kernels(vote_by_fold, out_of_bag_vote_by_fold, vote_without),
    CLASS_NUMBERS: Kernels(
        class_vote_by_fold, out_of_bag_class_vote_by_fold, class_vote_without
    ),
    SHARES: Kernels(share_vote_by_fold, None, None),
}
"""A model that votes by shares is out of fold."""
