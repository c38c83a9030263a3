"""Rows of three or more classes as keys: code, class, place and weight in one number.

A feature's keys in order of their codes are all that a node has to know of it. Large nodes
keep a histogram for each class instead.

Weights are whole numbers whose sum is below 2**30, so that every sum is exact and no
result depends on the order of the rows. The kernels of small nodes are given whole arrays
and places in them, not slices: to make a slice takes as long as to look at a dozen rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import kernel

CODE_SHIFT, CLASS_SHIFT, PLACE_SHIFT = 55, 47, 30
"""A key is code, class, place among the rows, weight; a row's tag is class and weight."""
CLASS_MASK, PLACE_MASK, WEIGHT_MASK = 2**8 - 1, 2**17 - 1, 2**30 - 1
BELOW_CODE = 2**CODE_SHIFT - 1
MAX_TOTAL_BITS = 29
"""The sum of all weights, but for what rounding adds, is at most 2 to this."""


@kernel
def weigh_classes(tags: Any, rows: Any, weights: Any, k: Any) -> None:
    """Set the k-th ``weights`` to the weight of each class among the rows."""
    for c in range(weights.shape[1]):
        weights[k, c] = 0
    for row in rows:
        weights[k, tags[row] >> CLASS_SHIFT] += tags[row] & WEIGHT_MASK


@kernel
def count_classes(codes: Any, tags: Any, rows: Any, starts: Any, histograms: Any) -> None:
    """Add the rows' weights to the bins of all features, in the histograms by class.

    Nodes keep their rows in the order of the classes, so one histogram at a time is used.
    """
    n_features = codes.shape[1]
    for row in rows:
        histogram = histograms[tags[row] >> CLASS_SHIFT]
        weight = np.int32(tags[row] & WEIGHT_MASK)
        for f in range(n_features):
            histogram[np.uint64(starts[f]) + np.uint64(codes[row, f])] += weight


@kernel
def keys_of_histograms(
    histograms: Any, present: Any, n_present: Any, start: Any, end: Any, keys: Any
) -> Any:
    """List the keys of a feature from its histograms, and return their number."""
    n = 0
    for b in range(start, end):
        code = np.int64(b) - np.int64(start)
        for j in range(n_present):
            weight = np.int64(histograms[present[j], b])
            keys[n] = code << CODE_SHIFT | np.int64(present[j]) << CLASS_SHIFT | weight
            n += 1 if weight > 0 else 0
    return n


@kernel
def keys_of_rows(
    codes: Any, tags: Any, rows: Any, f: Any, ends: Any, keys: Any, begin: Any
) -> None:
    """The same from the rows of a node, one key each, from the place ``begin`` on.

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
