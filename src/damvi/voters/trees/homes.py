"""Where the rows of a subtree are: in the tree's table, or copied side by side.

The rows of a small node are scattered over the table of a large tree, and each costs a trip
to memory, at every level from there down. So a node with few of the rows of the table that
it is in, where that is too large for the caches, gets a table of its own for its subtree.
As nodes are grown depth first, the tables lie one after the other in a block and the last
to come is the first to go.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import kernel

NEAR_CELLS = 2**20
"""Tables of up to this many cells stay in the caches, wherever the rows are."""
SPARSE = 4
"""A node with at most one in so many rows of its table moves out."""

# Columns of a home: the place on the stack of the node that it was made for, the end of
# its rows in the block, and their number.
FLOOR, END, ROWS, HOME_COLUMNS = 0, 1, 2, 3
MAX_HOMES = 32
"""More than enough: each has at most a quarter of the rows of the one before."""


@kernel
def room_for_homes(n_rows: Any, near_rows: Any) -> Any:
    """Rows that the homes of a tree take together, at most: 1/4 + 1/16 + ... of its own."""
    return n_rows // (SPARSE - 1) + 1 if n_rows > near_rows else 0


@kernel
def should_move(n_rows: Any, home: Any, near_rows: Any) -> Any:
    """Whether a node of so many rows gets a home of its own."""
    return home[ROWS] > near_rows and SPARSE * n_rows <= home[ROWS]


@kernel
def move(codes: Any, weights: Any, rows: Any, start: Any, block: Any, own: Any) -> None:
    """Copy rows and weights into the block from ``start`` on, and number the rows anew."""
    width, place = np.uint64(codes.shape[1]), np.uint64(start)
    source, target = codes.ravel(), block.ravel()
    for i in range(len(rows)):
        row = np.uint64(rows[i])
        for f in range(width):
            target[place * width + np.uint64(f)] = source[row * width + np.uint64(f)]
        own[place] = weights[row]
        rows[i] = place
        place += np.uint64(1)


@kernel
def settle(
    codes: Any,
    weights: Any,
    negatives: Any,
    positives: Any,
    floor: Any,
    homes: Any,
    level: Any,
    block: Any,
    own: Any,
) -> Any:
    """Make a home for a node at ``floor`` on the stack, and return its level."""
    end, n_rows = homes[level, END], len(negatives) + len(positives)
    move(codes, weights, negatives, end, block, own)
    move(codes, weights, positives, end + len(negatives), block, own)
    home = homes[level + 1]
    home[FLOOR], home[END], home[ROWS] = floor, end + n_rows, n_rows
    return level + 1
