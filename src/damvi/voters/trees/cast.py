"""How trees vote: each row walks from the root to a leaf.

A node is four numbers (see :class:`~damvi.voters.trees.forest.Forest`); a leaf is its own
left child, with a threshold that sends every code there, so that a walk that has arrived
stays where it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import kernel
from .splits import (
    FEATURE,
    LEFT,
    NODE_COLUMNS,
    SHIFT,
    THRESHOLD,
    goes_left,
)

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
def walk_abreast(codes: Any, starts: Any, nodes: Any, at: Any) -> None:
    """The leaves of eight rows, in a tree without splits on categories.

    ``codes`` and ``nodes`` come flat, each row's place in ``starts``. Places are
    unsigned, which spares a test for a negative index at every step.
    """
    for j in range(ABREAST):
        at[j] = 0
    moved = np.uint32(1)
    while moved != 0:
        moved = np.uint32(0)
        for j in range(ABREAST):
            k = at[j]
            node = np.uint64(k) * np.uint64(NODE_COLUMNS)
            code = np.int32(codes[starts[j] + np.uint64(nodes[node])])
            shifted = (code - nodes[node + np.uint64(SHIFT)]) & 255
            right = np.uint32(shifted > nodes[node + np.uint64(THRESHOLD)])
            child = np.uint32(nodes[node + np.uint64(LEFT)]) + right
            moved |= child ^ k
            at[j] = child


@kernel
def add_votes(
    codes: Any, rows: Any, nodes: Any, sets: Any, values: Any, weight: Any, total: Any
) -> None:
    """Add what the leaves of a tree say of some rows, times a weight, to ``total``."""
    flat_codes, flat_nodes = codes.ravel(), nodes.ravel()
    at, starts = np.empty(ABREAST, np.uint32), np.empty(ABREAST, np.uint64)
    i = 0
    if len(sets) == 0:
        while i + ABREAST <= len(rows):
            for j in range(ABREAST):
                starts[j] = np.uint64(rows[i + j]) * np.uint64(codes.shape[1])
            walk_abreast(flat_codes, starts, flat_nodes, at)
            for j in range(ABREAST):
                total[rows[i + j]] += weight * values[at[j]]
            i += ABREAST
    while i < len(rows):
        total[rows[i]] += weight * values[walk(codes, rows[i], nodes, sets)]
        i += 1
