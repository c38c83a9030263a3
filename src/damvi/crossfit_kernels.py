"""Kernels of the out-of-sample vote: who may judge a row, with which weights.

Votes are signed votes for the positive class of two, and the vote on a row is a number;
or numbers of classes (K,) or shares of them (K, C), and it is a share for each class.
``out_of_bag`` holds a bit for each voter and row (see :func:`numpy.packbits`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._kernels import kernel

SETTLED = 1e-3
"""Weights (they add up to about 1) that move by less than this have arrived."""


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
