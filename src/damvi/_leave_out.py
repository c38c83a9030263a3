"""A vote on each row by the voters that have not seen it, weighted as if the others
had never been there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._jit import kernel


@kernel
def cholesky_solve(a: Any, x: Any, n: Any) -> Any:
    """Solve a x = x in place for the first n rows; False when a is not positive."""
    for i in range(n):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * a[j, k]
            if i > j:
                a[i, j] = total / a[j, j]
            elif total > 0:
                a[i, i] = np.sqrt(total)
            else:
                return False
    for i in range(n):
        for k in range(i):
            x[i] -= a[i, k] * x[k]
        x[i] /= a[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= a[k, i] * x[k]
        x[i] /= a[i, i]
    return True


@kernel
def vote_without(
    rows: Any, votes: Any, voters: Any, unseen: Any, weights: Any, inverse: Any, vote: Any
) -> None:
    """For each row, take the voters that saw it out of the fit, then count the others.

    ``unseen`` holds a bit for each voter and row (see :func:`numpy.packbits`). Weights
    that would turn negative count as 0.
    """
    s = len(voters)
    out, a, x = np.empty(s, np.int64), np.empty((s, s)), np.empty(s)
    for row in rows:
        n_out = 0
        for j in range(s):
            if (unseen[j, row >> 3] >> (7 - (row & 7))) & 1 == 0:
                out[n_out] = j
                n_out += 1
        for p in range(n_out):
            x[p] = weights[out[p]]
            for q in range(p + 1):
                a[p, q] = inverse[out[p], out[q]]
        moved = cholesky_solve(a, x, n_out)
        total, weight_sum = 0.0, 0.0
        p = 0
        for j in range(s):
            if p < n_out and out[p] == j:
                p += 1
                continue
            weight = weights[j]
            if moved:
                for q in range(n_out):
                    weight -= inverse[j, out[q]] * x[q]
            if weight > 0:
                total += weight * votes[row, voters[j]]
                weight_sum += weight
        if weight_sum > 0:
            vote[row] = total / weight_sum
