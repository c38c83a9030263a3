"""The vote for each class: who says what, added up by weight, column by column."""

from __future__ import annotations

from typing import Any

from ._jit import kernel


@kernel
def class_vote_by_fold(
    votes: Any, folds: Any, weights: Any, asked: Any, start: Any, stop: Any, vote: Any
) -> None:
    """Add the weights of those ``asked`` to the classes that they name.

    ``votes`` are numbers of classes, ``weights`` is (K, folds), ``vote`` zeros (n, C).
    """
    for k in asked:
        for i in range(start, stop):
            vote[i, votes[i, k]] += weights[k, folds[i]]


@kernel
def soft_class_vote_by_fold(
    votes: Any, folds: Any, weights: Any, asked: Any, start: Any, stop: Any, vote: Any
) -> None:
    """The same for ``votes`` that share themselves out over the classes (n, K, C)."""
    for i in range(start, stop):
        for k in asked:
            weight = weights[k, folds[i]]
            for c in range(vote.shape[1]):
                vote[i, c] += weight * votes[i, k, c]


@kernel
def class_vote_of_unseen(
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
        for place in range(start >> 3, (stop + 7) >> 3):
            byte = unseen[k, place]
            for j in range(8):
                i = 8 * place + j
                if i < stop:
                    weight = own[folds[i]] * ((byte >> (7 - j)) & 1)
                    vote[i, votes[i, k]] += weight
                    mass[i] += weight
