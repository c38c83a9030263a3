"""Out-of-sample votes: by voters and weights that do not depend on a row's label.

A row's label affects the weights in two ways. First, the weights are learned on the row
itself; so each row is given weights learned on the other folds, which takes one more solve
of (total - fold), since moments are additive. Second, voters trained on the row vote its
label on its neighbours too, and if it is wrong there, the weights of the other voters
compensate; so the voters trained on the row are removed, and the others weighted again.
With random labels, the first leak scores well above chance, and the second alone below it
(AUC .47 with balanced classes).
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
"""Maximum sweeps of coordinate descent over the out-of-bag voters of a row."""
BLOCK_ROWS = 1 << 13
"""Number of rows voted on at a time, so that the sums stay in the cache."""
SETTLED = 1e-3
"""Convergence tolerance for the change of a weight (weights sum to about 1)."""


def out_of_fold_vote(
    votes: NDArray[Any],
    folds: NDArray[Any],
    fold_weights: Sequence[FoldWeights],
    n_classes: int,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Vote on each row with the weights of its fold; no voter was trained on the row.

    With two classes, votes are signed (n, K) and the vote is (n,). With more, votes are
    class numbers (n, K) or shares (n, K, C), and the vote is (n, C).
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
    """Vote on each row by out-of-bag voters, with weights that do not know its label.

    ``out_of_bag`` has one bit for each voter and row (see :func:`numpy.packbits`). The vote
    is NaN if no voter is out of bag. ``n_rows`` is the number of rows that the weights were
    learned from, if more than are given here. For the rest, see :func:`out_of_fold_vote`.
    """
    kernels = KERNELS[kind_of(votes)]
    n, n_voters = votes.shape
    # The influence of one row on the weights vanishes as rows outnumber voters.
    sweeps = min(MAX_SWEEPS, round(200 * n_voters / (n_rows or n)))
    vote, rows = np.zeros(vote_shape(n, n_classes)), np.arange(n)
    if sweeps == 0:
        # Only leave out voters trained on the row; NaN if no weight remains.
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
    if len(rows):  # each of them gets its own weights
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
    """Voters with a positive weight in some fold."""
    return np.flatnonzero(weights.any(axis=1))


def _blocks(n: int) -> list[tuple[int, int]]:
    return [(start, min(start + BLOCK_ROWS, n)) for start in range(0, n, BLOCK_ROWS)]


# The kernels, one for each kind of votes in :func:`out_of_fold_vote`.


@kernel
def vote_by_fold(
    votes: Any, folds: Any, weights: Any, asked: Any, start: Any, stop: Any, vote: Any
) -> None:
    """Sum the votes of the voters ``asked``; ``weights`` is (K, folds), ``vote`` zeros."""
    for k in asked:
        for i in range(start, stop):
            vote[i] += weights[k, folds[i]] * votes[i, k]


@kernel
def class_vote_by_fold(
    votes: Any, folds: Any, weights: Any, asked: Any, start: Any, stop: Any, vote: Any
) -> None:
    """As :func:`vote_by_fold`, for votes that are class numbers; ``vote`` is (n, C)."""
    for k in asked:
        for i in range(start, stop):
            vote[i, votes[i, k]] += weights[k, folds[i]]


@kernel
def share_vote_by_fold(
    votes: Any, folds: Any, weights: Any, asked: Any, start: Any, stop: Any, vote: Any
) -> None:
    """As :func:`class_vote_by_fold`, for votes that are shares (n, K, C)."""
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
    """Sum the votes of voters not trained on the row, and their weights in ``mass``.

    ``start`` must be a multiple of 8.
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
    """As :func:`out_of_bag_vote_by_fold`, for class numbers; ``vote`` is (n, C)."""
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

    ``out_of_bag`` has one bit for each voter and row (see :func:`numpy.packbits`). The
    optimum over all voters, ``start``, is close; coordinate descent from there sets one
    weight at a time to its best value, until the weights converge or for ``sweeps`` sweeps.
    The voters are written to ``asked`` and their weights to ``w``; these are equal if no
    voter is better than chance. Returns the number of voters and the sum of their weights.
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
    if weight_sum == 0:  # none of them is better than chance: the plain vote
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
    """Vote on each row with its own weights; see :func:`weigh_without`."""
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
    """As :func:`vote_without`, for votes that are class numbers; ``vote`` is (n, C)."""
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
