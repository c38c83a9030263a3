"""Rows of a node as keys: code, class, place and weight in one number.

A feature's keys in the order of their codes are all that a small node has to know of it.
Where all features are tried at each split, every node below needs all of them in order, so
a node of few rows sorts them once, and a split deals the keys of each feature out to its
children, in order still. Nodes are grown depth first, so one block serves all subtrees.

Weights are whole numbers, so that every sum is exact and no result depends on the order of
the rows. The kernels are given whole arrays and places in them, not slices: to make a slice
takes as long as to look at a dozen rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import kernel
from .forest import goes_left

CODE_SHIFT, CLASS_SHIFT, PLACE_SHIFT = 55, 47, 37
"""A key is code, class, place among the rows, weight; a row's tag is class and weight."""
CLASS_MASK, PLACE_MASK, WEIGHT_MASK = 2**8 - 1, 2**10 - 1, 2**37 - 1
BELOW_CODE = 2**CODE_SHIFT - 1

SORTED_ROWS = PLACE_MASK + 1
SORTED_CELLS = 2**18
"""The block of sorted keys stays in the caches."""


@kernel
def rows_to_sort(n_features: Any) -> Any:
    """The largest node that sorts the keys of all features."""
    return min(SORTED_ROWS, max(SORTED_CELLS // n_features, 32))


@kernel
def keys_of_rows(
    codes: Any, tags: Any, rows: Any, f: Any, ends: Any, keys: Any, begin: Any
) -> None:
    """The keys of a feature in order, one for each row, from the place ``begin`` on.

    ``ends`` (256) comes and goes as zeros.
    """
    for row in rows:
        ends[np.uint64(codes[row, f])] += 1
    total = begin
    for b in range(len(ends)):
        count = ends[b]
        ends[b] = total
        total += count
    for i in range(len(rows)):
        row = rows[i]
        code = np.uint64(codes[row, f])
        place = np.int64(i & PLACE_MASK) << PLACE_SHIFT
        keys[np.uint64(ends[code])] = np.int64(code) << CODE_SHIFT | place | tags[row]
        ends[code] += 1
    ends[:] = 0


@kernel
def keys_of_few_rows(codes: Any, tags: Any, rows: Any, f: Any, keys: Any) -> None:
    """The same for a handful of rows, put in order as they come."""
    for i in range(len(rows)):
        key = np.int64(codes[rows[i], f]) << CODE_SHIFT | tags[rows[i]]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


@kernel
def list_bins(keys: Any, begin: Any, end: Any, bins: Any) -> Any:
    """List the codes of the keys, each once, as they come; return their number."""
    m = 0
    for i in range(begin, end):
        code = keys[i] >> CODE_SHIFT
        if m == 0 or bins[m - 1] != code:
            bins[m] = code
            m += 1
    return m


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
def deal_keys(
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
