"""A vote on each row by the voters that have not seen it, as if there were no others."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._jit import kernel

SETTLED = 1e-3
"""Weights (they add up to about 1) that move by less than this have arrived."""


@kernel
def vote_without(
    rows: Any, votes: Any, unseen: Any, start: Any, m: Any, M: Any, sweeps: Any, vote: Any
) -> None:
    """For each row, minimise w'Mw - 2 m'w over w >= 0 on the voters that have not seen it.

    ``unseen`` holds a bit for each voter and row (see :func:`numpy.packbits`). The
    optimum of all voters, ``start``, is near; from there one weight at a time is set to
    its best value, voter after voter, until they stay or ``sweeps`` rounds are over.
    """
    n_voters = len(m)
    w, gradient = np.empty(n_voters), np.empty(n_voters)
    asked = np.empty(n_voters, np.int64)
    for row in rows:
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
        total, weight_sum = 0.0, 0.0
        for i in range(n_asked):
            total += w[asked[i]] * votes[row, asked[i]]
            weight_sum += w[asked[i]]
        if weight_sum == 0:  # none of them beats a coin: the plain vote
            for i in range(n_asked):
                total += votes[row, asked[i]]
            weight_sum = float(n_asked)
        if weight_sum > 0:
            vote[row] = total / weight_sum
