"""How a node of three or more classes is split.

A feature's rows come as keys in order: code, class and weight packed in one number. As a
key moves from the right of a cut to its left, the sums of squares that the Gini impurity
asks for change by one class alone, so a cut costs the same for any number of classes.
Large nodes keep a histogram for each class instead.

The kernels of small nodes are given whole arrays and places in them, not slices: to make a
slice takes as long as to look at a dozen rows.

Weights are whole numbers whose sum is below 2**30, so that every sum is exact and no
result depends on the order of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import kernel

CODE_SHIFT, CLASS_SHIFT, PLACE_SHIFT = 55, 47, 30
"""A key is code, class, place among the rows, weight; a row's tag is class and weight."""
CLASS_MASK, PLACE_MASK, WEIGHT_MASK = 2**8 - 1, 2**17 - 1, 2**30 - 1
BELOW_CODE = 2**CODE_SHIFT - 1
ALMOST = 1 - 1e-12
MAX_TOTAL_BITS = 29
"""The sum of all weights, but for what rounding adds, is at most 2 to this."""

# What is known of the left child of a cut after each bin: its sum of squares and that of
# the right child, its weight, twice the products with the missing, and its rows.
SQUARES, RIGHT_SQUARES, WEIGHT, MIXED, N_ROWS, SUMS = 0, 1, 2, 3, 4, 5


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
def best_plain_cut(
    keys: Any,
    begin: Any,
    end: Any,
    twice_totals: Any,
    node_squares: Any,
    total: Any,
    left: Any,
    running: Any,
    least: Any,
    cut: Any,
) -> Any:
    """The best cut of the keys from ``begin`` to ``end``, none of them missing.

    As :func:`best_class_cut` of their sums, and faster, for leaves of any size.
    ``running`` (3, keys) is scratch.
    """
    for c in range(len(left)):
        left[c] = 0
    # After each key: the left child's sum of squares and weight, and what the right
    # child's squares are beyond the left's.
    squares, rest, weight = np.int64(0), np.int64(node_squares), np.int64(0)
    n, start = np.uint64(end - begin - 1), np.uint64(begin)
    for i in range(n):
        key = keys[start + i]
        w, c = key & WEIGHT_MASK, np.uint64(key >> CLASS_SHIFT & CLASS_MASK)
        squares += w * (2 * left[c] + w)
        rest -= w * twice_totals[c]
        weight += w
        left[c] += w
        running[0, i], running[1, i], running[2, i] = squares, rest, weight
    # Most features have no cut as good as one before. That is seen several cuts at a
    # time and without a division, rounding allowed for.
    whole, bound, n_good = float(total), least * ALMOST, 0
    for i in range(n):
        here = float(running[2, i])
        value = float(running[0, i]) * whole + float(running[1, i]) * here
        is_cut = keys[start + i] ^ keys[start + i + np.uint64(1)] > BELOW_CODE
        n_good += 1 if value >= bound * (here * (whole - here)) and is_cut else 0
    best, b = -1.0, 0
    if n_good == 0:
        return best
    for i in range(n):
        if keys[start + i] ^ keys[start + i + np.uint64(1)] <= BELOW_CODE:
            continue
        s, r, w = running[0, i], running[1, i], running[2, i]
        here = float(w)
        if float(s) * whole + float(r) * here >= bound * (here * (whole - here)):
            value = float(s) / here + float(s + r) / (whole - here)
            if value >= least and value > best:
                best, bound = value, value * ALMOST
                cut[0], cut[1], cut[2] = b, 0, w
        b += 1
    return best


@kernel
def sums_of_missing(missing: Any, totals: Any, rows: Any, sums: Any) -> None:
    """The missing are bin 0: their squares, products with the node, weight and rows."""
    squares, products, weight = np.int64(0), np.int64(0), np.int64(0)
    for c in range(len(totals)):
        squares += missing[c] * missing[c]
        products += missing[c] * totals[c]
        weight += missing[c]
    sums[SQUARES, 0], sums[RIGHT_SQUARES, 0] = squares, products
    sums[WEIGHT, 0], sums[N_ROWS, 0] = weight, rows


@kernel
def sums_of_keys(
    keys: Any,
    begin: Any,
    end: Any,
    first: Any,
    totals: Any,
    node_squares: Any,
    left: Any,
    missing: Any,
    min_leaf: Any,
    sums: Any,
) -> Any:
    """The sums after each bin; returns the number of bins.

    The keys are those from ``begin`` to ``end``. With ``first`` = 1 there are missing
    values, which are bin 0.
    """
    start = begin
    if first == 1 or min_leaf > 1:
        missing[:] = 0
    if first == 1:
        while keys[start] >> CODE_SHIFT == 0:
            missing[keys[start] >> CLASS_SHIFT] += keys[start] & WEIGHT_MASK
            start += 1
        sums_of_missing(missing, totals, start - begin, sums)
    for c in range(len(left)):
        left[c] = 0
    squares, right, weight = np.int64(0), np.int64(node_squares), np.int64(0)
    b, previous = np.uint64(first), keys[start] >> CODE_SHIFT
    for i in range(np.uint64(start), np.uint64(end)):
        key = keys[i]
        code, w = key >> CODE_SHIFT, key & WEIGHT_MASK
        c = np.uint64(key >> CLASS_SHIFT & CLASS_MASK)
        twice = 2 * left[c] + w
        squares += w * twice
        right += w * (twice - 2 * totals[c])
        weight += w
        left[c] += w
        # Written at every key, and the last of a bin stays: no branch to guess. Places
        # are unsigned, which spares a test for a negative index.
        b += np.uint64(1) if code != previous else np.uint64(0)
        previous = code
        sums[SQUARES, b], sums[RIGHT_SQUARES, b], sums[WEIGHT, b] = squares, right, weight
    m = np.int64(b) + 1
    if first == 1 or min_leaf > 1:
        more_sums_of_keys(keys, start, end, first, missing, sums)
    return m


@kernel
def more_sums_of_keys(
    keys: Any, start: Any, end: Any, first: Any, missing: Any, sums: Any
) -> None:
    """What only missing values or a least number of rows ask for."""
    b, mixed = first, np.int64(0)
    for i in range(start, end):
        if i > start and keys[i] >> CODE_SHIFT != keys[i - 1] >> CODE_SHIFT:
            b += 1
        mixed += 2 * (keys[i] & WEIGHT_MASK) * missing[keys[i] >> CLASS_SHIFT & CLASS_MASK]
        sums[MIXED, b] = mixed
        sums[N_ROWS, b] = i + 1 - start


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
def sums_of_histograms(
    histograms: Any,
    present: Any,
    n_present: Any,
    start: Any,
    end: Any,
    totals: Any,
    node_squares: Any,
    running: Any,
    missing: Any,
    bins: Any,
    sums: Any,
) -> Any:
    """The same from the histograms of a feature, class by class, and the bins' codes.

    ``running`` (4, 256) is scratch. The rows are not known.
    """
    n = np.int64(end) - np.int64(start)
    squares, products, weights, mixed = running[0], running[1], running[2], running[3]
    lefts = np.empty(256, np.int32)
    for b in range(n):
        squares[b], products[b], weights[b], mixed[b] = 0, 0, 0, 0
    missing[:] = 0
    for j in range(n_present):
        c = present[j]
        histogram = histograms[c, start:end]
        missing[c] = histogram[0]
        total, absent, left = np.int32(totals[c]), np.int32(missing[c]), np.int32(0)
        for b in range(1, n):
            left += histogram[b]
            lefts[b] = left
        # Products of 32 bits by 32, which the processor does several at once.
        for b in range(1, n):
            squares[b] += np.int64(lefts[b]) * np.int64(lefts[b])
            products[b] += np.int64(total) * np.int64(lefts[b])
            weights[b] += np.int64(lefts[b])
        if absent > 0:
            for b in range(1, n):
                mixed[b] += np.int64(absent) * np.int64(lefts[b])
    sums_of_missing(missing, totals, 0, sums)
    m = 0
    if sums[WEIGHT, 0] > 0:
        bins[0] = 0
        m = 1
    for b in range(1, n):
        bins[m] = b
        sums[SQUARES, m] = squares[b]
        sums[RIGHT_SQUARES, m] = node_squares - 2 * products[b] + squares[b]
        sums[WEIGHT, m] = weights[b]
        sums[MIXED, m] = 2 * mixed[b]
        m += 1 if weights[b] > weights[b - 1] else 0
    return m


@kernel
def best_class_cut(
    sums: Any,
    first: Any,
    m: Any,
    total: Any,
    rows: Any,
    min_leaf: Any,
    least: Any,
    values: Any,
    cut: Any,
) -> Any:
    """Cut the bins ``first`` to ``m`` in two; a bin before the first is the missing.

    ``total`` is the weight of the node. ``cut`` becomes (last bin on the left, whether the
    missing go left, the weight on the left). Returns the purity of the children, or -1
    when no cut is allowed or none has a purity of at least ``least``.
    """
    last = m - 1 if first == 0 else m  # with missing values, they alone may go right
    for b in range(first, last):
        w = sums[WEIGHT, b]
        left, right = float(sums[SQUARES, b]), float(sums[RIGHT_SQUARES, b])
        values[b] = left / float(w) + right / float(total - w)
    # Most features are no better than one before, which is seen without a branch.
    n_better = 0
    for b in range(first, last):
        n_better += 1 if values[b] >= least else 0
    best = -1.0
    if n_better == 0 and first == 0:
        return best
    for b in range(first, last):
        n_left = sums[N_ROWS, b] if min_leaf > 1 else 0
        if values[b] > best and (
            min_leaf == 1 or (n_left >= min_leaf and rows - n_left >= min_leaf)
        ):
            best = values[b]
            cut[0], cut[1], cut[2] = b, 0, sums[WEIGHT, b]
        if first == 0 or b == m - 1:
            continue
        more, w = sums[MIXED, b] + sums[SQUARES, 0], sums[WEIGHT, b] + sums[WEIGHT, 0]
        left = float(sums[SQUARES, b] + more)
        right = float(sums[RIGHT_SQUARES, b] + more - 2 * sums[RIGHT_SQUARES, 0])
        value = left / float(w) + right / float(total - w)
        n_left += sums[N_ROWS, 0]
        if value > best and (
            min_leaf == 1 or (n_left >= min_leaf and rows - n_left >= min_leaf)
        ):
            best = value
            cut[0], cut[1], cut[2] = b, 1, w
    return best
