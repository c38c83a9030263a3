"""How a node of three or more classes is split.

A feature's rows come as keys in order: code, class and weight packed in one number. As a
key moves from the right of a cut to its left, the sums of squares that the Gini impurity
asks for change by one class alone, so a cut costs the same for any number of classes.

Weights are whole numbers whose sum is at most 2**30, so that every sum is exact and no
result depends on the order of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import kernel
from .splits import N_CODES

CLASS_SHIFT, CODE_SHIFT = 32, 48
"""A key is code, class, weight; a row's tag is the same without the code."""
WEIGHT_MASK = 2**CLASS_SHIFT - 1
CLASS_MASK = 2 ** (CODE_SHIFT - CLASS_SHIFT) - 1
MAX_TOTAL_BITS = 30
"""The sum of all weights is at most 2 to this."""


@kernel
def weigh_classes(tags: Any, rows: Any, weights: Any) -> None:
    """Set ``weights`` to the weight of each class among the rows."""
    weights[:] = 0
    for row in rows:
        weights[tags[row] >> CLASS_SHIFT] += tags[row] & WEIGHT_MASK


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
def keys_of_rows(codes: Any, tags: Any, rows: Any, f: Any, ends: Any, keys: Any) -> Any:
    """The same from the rows of a node, one key each; ``ends`` (256) comes as zeros."""
    low, high = np.uint64(N_CODES), np.uint64(0)
    for row in rows:
        code = np.uint64(codes[row, f])
        ends[code] += 1
        low, high = min(low, code), max(high, code)
    if low < high:
        total = 0
        for b in range(np.int64(low), np.int64(high) + 1):
            count = ends[b]
            ends[b] = total
            total += count
        for row in rows:
            code = np.uint64(codes[row, f])
            keys[ends[code]] = np.int64(code) << CODE_SHIFT | tags[row]
            ends[code] += 1
    for b in range(np.int64(low), np.int64(high) + 1):
        ends[b] = 0
    return len(rows) if low < high else 0


@kernel
def keys_of_few_rows(codes: Any, tags: Any, rows: Any, f: Any, keys: Any) -> Any:
    """The same for a handful of rows, put in order as they come."""
    for i in range(len(rows)):
        key = np.int64(codes[rows[i], f]) << CODE_SHIFT | tags[rows[i]]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key
    return len(rows)


@kernel
def list_bins(keys: Any, n: Any, bins: Any) -> Any:
    """List the codes of the keys, each once, as they come; return their number."""
    m = 0
    for i in range(n):
        code = keys[i] >> CODE_SHIFT
        if m == 0 or bins[m - 1, 0] != code:
            bins[m, 0] = code
            m += 1
    return m


@kernel
def children_purity(left: Any, product: Any, weight: Any, node: Any, total: Any) -> Any:
    """The sums of squares of both children, each over its weight.

    ``left`` is the sum of squares of the left child's class weights, and ``product`` that
    of their products with the node's, whose own sum of squares is ``node``.
    """
    right = node - 2 * product + left
    return float(left) / float(weight) + float(right) / float(total - weight)


@kernel
def best_class_cut(
    keys: Any,
    n: Any,
    first: Any,
    totals: Any,
    min_leaf: Any,
    left: Any,
    missing: Any,
    cut: Any,
) -> Any:
    """Cut the bins of ``n`` keys in two; a bin before the ``first`` is the missing.

    ``totals`` are the node's class weights. With ``min_leaf`` above 1 each key must be one
    row. ``cut`` becomes (last bin on the left, whether the missing go left, the weight on
    the left). Returns the purity of the children, or -1 when no cut is allowed.
    """
    total, node = np.int64(0), np.int64(0)
    for c in range(len(totals)):
        left[c] = 0
        total += totals[c]
        node += totals[c] * totals[c]
    start = 0
    missing_square, missing_product, missing_weight = np.int64(0), np.int64(0), np.int64(0)
    if first == 1:
        missing[:] = 0
        while keys[start] >> CODE_SHIFT == 0:
            missing[keys[start] >> CLASS_SHIFT & CLASS_MASK] += keys[start] & WEIGHT_MASK
            start += 1
        for c in range(len(totals)):
            missing_square += missing[c] * missing[c]
            missing_product += missing[c] * totals[c]
            missing_weight += missing[c]

    best, i, b, previous = -1.0, start, first, -1
    # Sums over the left child: of squares, of products with the node, with the missing.
    square, product, mixed, weight = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while True:
        # A cut before this bin, once it is known whether the bin has a single class.
        rows, before_square, before_product = i - start, square, product
        before_mixed, before_weight = mixed, weight
        only = -1
        if i < n:
            key = keys[i]
            code = key >> CODE_SHIFT
            only = key >> CLASS_SHIFT & CLASS_MASK
            while key >> CODE_SHIFT == code:
                c, w = key >> CLASS_SHIFT & CLASS_MASK, key & WEIGHT_MASK
                square += w * (2 * left[c] + w)
                product += w * totals[c]
                if first == 1:
                    mixed += w * missing[c]
                left[c] += w
                weight += w
                only = only if only == c else -1
                i += 1
                if i == n:
                    break
                key = keys[i]
        elif first == 0 or b == first:
            break
        is_end = before_weight == weight  # all values left, only the missing right
        # Between two bins that hold the same single class no cut is best.
        if b > first and not (min_leaf == 1 and only >= 0 and only == previous):
            for missing_left in range(1 if first == 0 or is_end else 2):
                s, p, w = before_square, before_product, before_weight
                if missing_left == 1:
                    s += 2 * before_mixed + missing_square
                    p += missing_product
                    w += missing_weight
                    rows += start
                if min_leaf > 1 and (rows < min_leaf or n - rows < min_leaf):
                    continue
                value = children_purity(s, p, w, node, total)
                if value > best:
                    best = value
                    cut[0] = b - 1
                    cut[1] = missing_left
                    cut[2] = w
        if is_end:
            break
        previous = only
        b += 1
    return best
