"""A vote on each row by the voters that have not seen it, as if there were no others."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._jit import kernel

SETTLED = 1e-3
"""Weights (they add up to about 1) that move by less than this have arrived."""


@kernel
def weigh_without(
    row: Any,
    unseen: Any,
    start: Any,
    m: Any,
    M: Any,
    sweeps: Any,
    w: Any,
    gradient: Any,
    asked: Any,
) -> Any:
    """Minimise w'Mw - 2 m'w over w >= 0 on the voters that have not seen the row.

    ``unseen`` holds a bit for each voter and row (see :func:`numpy.packbits`). The
    optimum of all voters, ``start``, is near; from there one weight at a time is set to
    its best value, voter after voter, until they stay or ``sweeps`` rounds are over. The
    voters go to ``asked``, their weights to ``w``; equal ones if none beats a coin.
    Returned are their number and the sum of their weights.
    """
    n_voters = len(m)
    n_asked = 0
    for j in range(n_voters):
        gradient[j], w[j] = m[j], 0.0
        if (unseen[j, row >> 3] >> (7 - (row & 7))) & 1:
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
    rows: Any, votes: Any, unseen: Any, start: Any, m: Any, M: Any, sweeps: Any, vote: Any
) -> None:
    """The vote on each row with weights of its own; see :func:`weigh_without`."""
    w, gradient, asked = np.empty(len(m)), np.empty(len(m)), np.empty(len(m), np.int64)
    for row in rows:
        n_asked, weight_sum = weigh_without(
            row, unseen, start, m, M, sweeps, w, gradient, asked
        )
        if weight_sum > 0:
            total = 0.0
            for i in range(n_asked):
                total += w[asked[i]] * votes[row, asked[i]]
            vote[row] = total / weight_sum


@kernel
def class_vote_without(
    rows: Any, votes: Any, unseen: Any, start: Any, m: Any, M: Any, sweeps: Any, vote: Any
) -> None:
    """The same where votes are numbers of classes, and ``vote`` is (n, C)."""
    w, gradient, asked = np.empty(len(m)), np.empty(len(m)), np.empty(len(m), np.int64)
    for row in rows:
        n_asked, weight_sum = weigh_without(
            row, unseen, start, m, M, sweeps, w, gradient, asked
        )
        if weight_sum > 0:
            vote[row] = 0.0
            for i in range(n_asked):
                vote[row, votes[row, asked[i]]] += w[asked[i]] / weight_sum
