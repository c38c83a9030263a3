"""How trees vote on rows: all nodes at once, or step by step.

A node is four numbers (see :class:`~damvi.voters.trees.forest.Forest`); a leaf is its own
left child, with a threshold that sends every code there, so that a walk that has arrived
stays where it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import kernel
from .splits import (
    CATEGORIES,
    FEATURE,
    LEFT,
    NODE_COLUMNS,
    SHIFT,
    THRESHOLD,
    goes_left,
)

TILE = 1024
"""Rows that small trees are asked about together."""
WALK_TILE = 2**14
"""Rows that walk through a large tree before the next, so that it stays in the cache."""
ABREAST = 8
"""Rows that walk together: a step waits on memory, so eight take little more than one."""


@kernel
def walk(codes: Any, row: Any, nodes: Any, sets: Any) -> Any:
    """The leaf of one row."""
    k = np.int64(0)
    while nodes[k, LEFT] != k:
        code = codes[row, nodes[k, FEATURE]]
        left = goes_left(code, nodes[k, THRESHOLD], nodes[k, SHIFT], sets)
        k = np.int64(nodes[k, LEFT] + (0 if left else 1))
    return k


@kernel
def walk_abreast(codes: Any, start: Any, width: Any, nodes: Any, at: Any) -> None:
    """The leaves of eight rows in turn, in a tree without splits on categories.

    ``codes`` and ``nodes`` come flat, the first row at ``start``, a row every ``width``.
    Places are unsigned, which spares a test for a negative index at every step.
    """
    for j in range(ABREAST):
        at[j] = 0
    moved = np.uint32(1)
    while moved != 0:
        moved = np.uint32(0)
        for j in range(ABREAST):
            k = at[j]
            node = np.uint64(k) * np.uint64(NODE_COLUMNS)
            row = start + np.uint64(j) * width
            code = np.int32(codes[row + np.uint64(nodes[node])])
            shifted = (code - nodes[node + np.uint64(SHIFT)]) & 255
            right = np.uint32(shifted > nodes[node + np.uint64(THRESHOLD)])
            child = np.uint32(nodes[node + np.uint64(LEFT)]) + right
            moved |= child ^ k
            at[j] = child


@kernel
def find_leaves(codes: Any, nodes: Any, sets: Any, leaves: Any) -> None:
    """The leaf of each row, step by step."""
    n = len(codes)
    i = 0
    if len(sets) == 0:
        flat_codes, flat_nodes = codes.ravel(), nodes.ravel()
        at = np.empty(ABREAST, np.uint32)
        width = np.uint64(codes.shape[1])
        while i + ABREAST <= n:
            walk_abreast(flat_codes, np.uint64(i) * width, width, flat_nodes, at)
            for j in range(ABREAST):
                leaves[i + j] = at[j]
            i += ABREAST
    while i < n:
        leaves[i] = walk(codes, i, nodes, sets)
        i += 1


@kernel
def split_mask(
    column: Any, here: Any, threshold: Any, shift: Any, sets: Any, left: Any, right: Any
) -> None:
    """Share out the rows of a node, a byte of 0 or 255 each, to its children."""
    if shift == CATEGORIES:
        for i in range(len(column)):
            inside = goes_left(column[i], threshold, shift, sets)
            left[i] = here[i] if inside else np.uint8(0)
            right[i] = np.uint8(0) if inside else here[i]
        return
    # In bytes throughout, so that the processor does 32 rows or more at a time.
    limit, turn = np.uint8(threshold), np.uint8(shift)
    for i in range(len(column)):
        inside = np.uint8((np.int32(column[i]) - np.int32(turn)) & 255) <= limit
        left[i] = here[i] if inside else np.uint8(0)
        right[i] = np.uint8(0) if inside else here[i]


@kernel
def find_ballots(
    columns: Any, nodes: Any, sets: Any, ballot: Any, masks: Any, found: Any
) -> None:
    """The ballots above 0 (a byte each), and else 0: every node splits all rows at once.

    That is more work than a walk, and much faster while the tree is small.
    """
    masks[0, :] = 255
    found[:] = 0
    for k in range(len(nodes)):
        left = nodes[k, LEFT]
        if left != k:
            split_mask(
                columns[nodes[k, FEATURE]],
                masks[k],
                nodes[k, THRESHOLD],
                nodes[k, SHIFT],
                sets,
                masks[left],
                masks[left + 1],
            )
        elif ballot[k] > 0:
            mark = np.uint8(ballot[k])
            for i in range(len(found)):
                found[i] |= masks[k, i] & mark


@kernel
def cast_tile(
    codes: Any,
    roots: Any,
    nodes: Any,
    set_starts: Any,
    sets: Any,
    ballot: Any,
    lowest: Any,
    at_once: Any,
    asked: Any,
    votes: Any,
) -> None:
    """The votes (rows, trees) of the trees asked on a tile of rows.

    Ballots are +1 and ``lowest`` = -1, or the numbers of classes, of which 0 is lowest.
    """
    n = len(codes)
    columns = np.empty((codes.shape[1], n), np.uint8)
    for i in range(n):
        for f in range(codes.shape[1]):
            columns[f, i] = codes[i, f]
    largest = 1
    for t in asked:
        if at_once[t]:
            largest = max(largest, roots[t + 1] - roots[t])
    masks = np.empty((largest, n), np.uint8)
    found = np.empty(n, np.uint8)
    leaves = np.empty(n, np.uint32)
    for t in asked:
        own = nodes[roots[t] : roots[t + 1]]
        own_sets = sets[set_starts[t] : set_starts[t + 1]]
        own_ballot = ballot[roots[t] : roots[t + 1]]
        if at_once[t]:
            find_ballots(columns, own, own_sets, own_ballot, masks, found)
            for i in range(n):
                votes[i, t] = found[i] if found[i] != 0 else lowest
        else:
            find_leaves(codes, own, own_sets, leaves)
            for i in range(n):
                votes[i, t] = own_ballot[leaves[i]]


@kernel
def weigh(votes: Any, asked: Any, weights: Any, total: Any) -> None:
    """Add the weighted votes of the trees asked to ``total``."""
    for t in asked:
        weight = weights[t]
        for i in range(len(total)):
            total[i] += weight * votes[i, t]


@kernel
def weigh_by_class(votes: Any, asked: Any, weights: Any, total: Any) -> None:
    """Add the weights of the trees asked to the classes (rows, C) that they vote for."""
    for t in asked:
        weight = weights[t]
        for i in range(len(total)):
            total[i, votes[i, t]] += weight


@kernel
def add_shares(leaves: Any, shares: Any, total: Any) -> None:
    """Add the class shares of the rows' leaves."""
    for i in range(len(leaves)):
        for c in range(total.shape[1]):
            total[i, c] += shares[leaves[i], c]
