"""Small subtrees of three or more classes: the keys of all features, sorted once.

Where all features are tried at each split, every node below needs all of them in order.
So a node of few rows sorts them, and a split shares out the keys of each feature to its
children, in order still. Nodes are grown depth first, so one block serves all subtrees.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import kernel
from .class_keys import (
    CLASS_MASK,
    CLASS_SHIFT,
    CODE_SHIFT,
    PLACE_MASK,
    PLACE_SHIFT,
    WEIGHT_MASK,
    keys_of_rows,
)
from .forest import goes_left

SORTED_ROWS = 1024
SORTED_CELLS = 2**18
"""The block stays in the caches."""


@kernel
def rows_to_sort(n_features: Any) -> Any:
    """The largest node that sorts its keys."""
    return min(SORTED_ROWS, max(SORTED_CELLS // n_features, 32))


@kernel
def sort_keys(
    codes: Any,
    tags: Any,
    rows: Any,
    features: Any,
    ends: Any,
    keys: Any,
    begin: Any,
    room: Any,
) -> None:
    """Fill the block for a node: from ``begin`` on, with ``room`` for each feature."""
    for f in features:
        keys_of_rows(codes, tags, rows, f, ends, keys, begin + f * room)


@kernel
def mark_sides(
    keys: Any,
    begin: Any,
    end: Any,
    threshold: Any,
    shift: Any,
    sets: Any,
    sides: Any,
    weights: Any,
    k: Any,
) -> Any:
    """Mark the places of the rows that go left by 1, others by 0; return how many do.

    ``keys`` are those of the feature that splits; the k-th ``weights`` become the left
    child's.
    """
    for c in range(weights.shape[1]):
        weights[k, c] = 0
    n_left = 0
    for i in range(begin, end):
        key = keys[i]
        left = 1 if goes_left(key >> CODE_SHIFT, threshold, shift, sets) else 0
        sides[np.uint64(key >> PLACE_SHIFT & PLACE_MASK)] = left
        weights[k, key >> CLASS_SHIFT & CLASS_MASK] += left * (key & WEIGHT_MASK)
        n_left += left
    return n_left


@kernel
def share_out(
    keys: Any,
    features: Any,
    floor: Any,
    n_features: Any,
    begin: Any,
    stride: Any,
    rows: Any,
    sides: Any,
    away: Any,
    n_left: Any,
) -> None:
    """Write the keys so far ``away``: those that go left, then the others, in order.

    The features are the first of those on a floor of the stack; a feature's keys begin at
    ``begin`` and as many strides. One call for all of them, as a call costs as much as a
    dozen keys.
    """
    for j in range(n_features):
        start = np.uint64(begin + features[floor, j] * stride)
        left_place = np.uint64(np.int64(start) + away)
        right_place = left_place + np.uint64(n_left)
        for i in range(start, start + np.uint64(rows)):
            key = keys[i]
            left = np.uint64(sides[np.uint64(key >> PLACE_SHIFT & PLACE_MASK)])
            keys[left_place if left > 0 else right_place] = key
            left_place += left
            right_place += np.uint64(1) - left
