"""Small subtrees of three or more classes: the keys of all features, sorted once.

Where all features are tried at each split, every node below needs all of them in order.
So a node of few rows sorts them, and a split shares out the keys of each feature to its
children, in order still. Nodes are grown depth first, so one block serves all subtrees.
"""

from __future__ import annotations

from typing import Any

from ..._jit import kernel
from .class_splits import (
    CLASS_MASK,
    CLASS_SHIFT,
    CODE_SHIFT,
    PLACE_MASK,
    PLACE_SHIFT,
    WEIGHT_MASK,
    keys_of_rows,
)
from .splits import goes_left

SORTED_ROWS = 1024
SORTED_CELLS = 2**18
"""The block stays in the caches."""


@kernel
def rows_to_sort(n_features: Any) -> Any:
    """The largest node that sorts its keys."""
    return min(SORTED_ROWS, max(SORTED_CELLS // n_features, 32))


@kernel
def sort_keys(
    codes: Any, tags: Any, rows: Any, features: Any, ends: Any, block: Any
) -> None:
    """Fill the block (d, rows) for a node."""
    for f in features:
        keys_of_rows(codes, tags, rows, f, ends, block[f])


@kernel
def mark_sides(
    keys: Any, threshold: Any, shift: Any, sets: Any, sides: Any, weights: Any
) -> Any:
    """Mark the places of the rows that go left by 1, others by 0; return how many do.

    ``keys`` are those of the feature that splits; ``weights`` become the left child's.
    """
    weights[:] = 0
    n_left = 0
    for key in keys:
        left = 1 if goes_left(key >> CODE_SHIFT, threshold, shift, sets) else 0
        sides[key >> PLACE_SHIFT & PLACE_MASK] = left
        weights[key >> CLASS_SHIFT & CLASS_MASK] += left * (key & WEIGHT_MASK)
        n_left += left
    return n_left


@kernel
def share_out(keys: Any, sides: Any, spare: Any) -> None:
    """Move the keys of the rows that go left to the front; each side keeps its order."""
    n_left = 0
    for i in range(len(keys)):
        key = keys[i]
        keys[n_left] = key
        spare[i - n_left] = key
        n_left += sides[key >> PLACE_SHIFT & PLACE_MASK]
    for i in range(n_left, len(keys)):
        keys[i] = spare[i - n_left]
