"""The vote on each row by the weights of its fold, column by column."""

from __future__ import annotations

from typing import Any

from ._jit import kernel


@kernel
def vote_by_fold(
    votes: Any, folds: Any, weights: Any, asked: Any, start: Any, stop: Any, vote: Any
) -> None:
    """Add up the votes of those ``asked``; ``weights`` is (K, folds), ``vote`` zeros."""
    for k in asked:
        for i in range(start, stop):
            vote[i] += weights[k, folds[i]] * votes[i, k]


@kernel
def vote_of_unseen(
    votes: Any,
    unseen: Any,
    folds: Any,
    weights: Any,
    asked: Any,
    start: Any,
    stop: Any,
    vote: Any,
    mass: Any,
) -> None:
    """The same by the voters that have not seen a row, with their weight in ``mass``.

    ``unseen`` holds a bit for each voter and row (see :func:`numpy.packbits`), and
    ``start`` is a multiple of 8.
    """
    for k in asked:
        own = weights[k]
        for place in range(start >> 3, stop >> 3):
            byte = unseen[k, place]
            for j in range(8):
                i = 8 * place + j
                weight = own[folds[i]] * ((byte >> (7 - j)) & 1)
                vote[i] += weight * votes[i, k]
                mass[i] += weight
        for i in range(8 * (stop >> 3), stop):
            weight = own[folds[i]] * ((unseen[k, i >> 3] >> (7 - (i & 7))) & 1)
            vote[i] += weight * votes[i, k]
            mass[i] += weight
