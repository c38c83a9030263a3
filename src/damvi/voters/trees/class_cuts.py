"""The best cut of a feature in a node of three or more classes.

As a row moves from the right of a cut to its left, the sums of squares that the Gini
impurity asks for change by one class alone, so a cut costs the same for any number of
classes: with the squares of the class weights on the left, L, and their products with
those of the node, P, the squares on the right are N - 2 P + L.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import inlined, kernel
from .class_keys import (
    BELOW_CODE,
    CLASS_MASK,
    CLASS_SHIFT,
    WEIGHT_MASK,
)

# What is known of a cut after each bin: the squares on the left, the products with the
# node, the weight on the left, the products with the missing, and the rows on the left.
SQUARES, PRODUCTS, WEIGHT, MIXED, N_ROWS, SUMS = 0, 1, 2, 3, 4, 5
LEFT_WEIGHTS, MISSING = 0, 1
"""Rows of the scratch by class."""
ALMOST = 1 - 1e-12


@inlined
def best_plain_cut(
    keys: Any,
    begin: Any,
    end: Any,
    totals: Any,
    node_squares: Any,
    total: Any,
    least: Any,
    by_class: Any,
    sums: Any,
    cut: Any,
) -> Any:
    """Cut the keys from ``begin`` to ``end``, none of them missing, into any leaves.

    ``totals`` are the node's class weights, ``total`` and ``node_squares`` their sum and
    sum of squares. ``cut`` becomes (last bin on the left, whether the missing go left, the
    weight on the left). Returns the purity of the children, or -1 when it is below
    ``least``.
    """
    for c in range(len(totals)):
        by_class[LEFT_WEIGHTS, c] = 0
    squares, products, weight = np.int64(0), np.int64(0), np.int64(0)
    n, start = np.uint64(end - begin - 1), np.uint64(begin)
    one = np.uint64(1)
    for i in range(n):
        key = keys[start + np.uint64(i)]
        w, own = key & WEIGHT_MASK, np.uint64(key >> CLASS_SHIFT & CLASS_MASK)
        squares += w * (2 * by_class[LEFT_WEIGHTS, own] + w)
        products += w * totals[own]
        weight += w
        by_class[LEFT_WEIGHTS, own] += w
        sums[SQUARES, i], sums[PRODUCTS, i], sums[WEIGHT, i] = squares, products, weight
    # Most features have no cut as good as one before. That is seen several cuts at a
    # time and without a division, rounding allowed for.
    whole, bound, n_good = float(total), least * ALMOST, 0
    for i in range(n):
        here, rest = float(sums[WEIGHT, i]), float(node_squares - 2 * sums[PRODUCTS, i])
        is_good = float(sums[SQUARES, i]) * whole + rest * here >= bound * (
            here * (whole - here)
        )
        place = start + np.uint64(i)
        is_cut = keys[place] ^ keys[place + one] > BELOW_CODE
        n_good += 1 if is_good and is_cut else 0
    best, b = -1.0, 0
    for i in range(n if n_good > 0 else np.uint64(0)):
        place = start + np.uint64(i)
        if keys[place] ^ keys[place + one] <= BELOW_CODE:
            continue
        s, right = sums[SQUARES, i], node_squares - 2 * sums[PRODUCTS, i]
        here = float(sums[WEIGHT, i])
        if float(s) * whole + float(right) * here >= bound * (here * (whole - here)):
            value = float(s) / here + float(s + right) / (whole - here)
            if value >= least and value > best:
                best, bound = value, value * ALMOST
                cut[0], cut[1], cut[2] = b, 0, sums[WEIGHT, i]
        b += 1
    return best


@kernel
def sums_of_missing(totals: Any, rows: Any, by_class: Any, sums: Any) -> None:
    """The missing are bin 0: their squares, products with the node, weight and rows."""
    squares, products, weight = np.int64(0), np.int64(0), np.int64(0)
    for c in range(len(totals)):
        missing = by_class[MISSING, c]
        squares += missing * missing
        products += missing * totals[c]
        weight += missing
    sums[SQUARES, 0], sums[PRODUCTS, 0] = squares, products
    sums[WEIGHT, 0], sums[N_ROWS, 0] = weight, rows


@kernel
def sums_of_keys(
    keys: Any, begin: Any, end: Any, first: Any, totals: Any, by_class: Any, sums: Any
) -> Any:
    """The sums after each bin; returns the number of bins.

    With ``first`` = 1 there are missing values, which are bin 0. The rows are right where
    each key is one.
    """
    for c in range(len(totals)):
        by_class[LEFT_WEIGHTS, c], by_class[MISSING, c] = 0, 0
    start = begin
    if first == 1:
        while keys[start] <= BELOW_CODE:
            by_class[MISSING, keys[start] >> CLASS_SHIFT] += keys[start] & WEIGHT_MASK
            start += 1
        sums_of_missing(totals, start - begin, by_class, sums)
    squares, products, weight, mixed = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    b = first
    for i in range(start, end):
        key = keys[i]
        w, c = key & WEIGHT_MASK, key >> CLASS_SHIFT & CLASS_MASK
        squares += w * (2 * by_class[LEFT_WEIGHTS, c] + w)
        products += w * totals[c]
        mixed += w * by_class[MISSING, c]
        weight += w
        by_class[LEFT_WEIGHTS, c] += w
        if i > start and key ^ keys[i - 1] > BELOW_CODE:
            b += 1
        sums[SQUARES, b], sums[PRODUCTS, b], sums[WEIGHT, b] = squares, products, weight
        sums[MIXED, b], sums[N_ROWS, b] = mixed, i + 1 - start
    return b + 1


@kernel
def sums_of_histograms(
    histograms: Any,
    present: Any,
    n_present: Any,
    start: Any,
    end: Any,
    totals: Any,
    by_class: Any,
    running: Any,
    bins: Any,
    sums: Any,
) -> Any:
    """The same from the histograms of a feature, class by class, and the bins' codes.

    ``running`` (4, 256) is scratch. The rows are not known.
    """
    n = np.int64(end) - np.int64(start)
    squares, products, weights, mixed = running[0], running[1], running[2], running[3]
    lefts = np.empty(len(squares), np.int32)
    for b in range(n):
        squares[b], products[b], weights[b], mixed[b] = 0, 0, 0, 0
    by_class[MISSING, :] = 0
    for j in range(n_present):
        c = present[j]
        histogram = histograms[c, start:end]
        by_class[MISSING, c] = histogram[0]
        total, missing, left = np.int32(totals[c]), histogram[0], np.int32(0)
        for b in range(1, n):
            left += histogram[b]
            lefts[b] = left
        # Products of 32 bits by 32, which the processor does several at once.
        for b in range(1, n):
            squares[b] += np.int64(lefts[b]) * np.int64(lefts[b])
            products[b] += np.int64(total) * np.int64(lefts[b])
            weights[b] += np.int64(lefts[b])
        if missing > 0:
            for b in range(1, n):
                mixed[b] += np.int64(missing) * np.int64(lefts[b])
    sums_of_missing(totals, 0, by_class, sums)
    m = 0
    if sums[WEIGHT, 0] > 0:
        bins[0] = 0
        m = 1
    for b in range(1, n):
        bins[m] = b
        sums[SQUARES, m], sums[PRODUCTS, m] = squares[b], products[b]
        sums[WEIGHT, m], sums[MIXED, m] = weights[b], mixed[b]
        m += 1 if weights[b] > weights[b - 1] else 0
    return m


@kernel
def best_cut(
    sums: Any,
    first: Any,
    m: Any,
    squares: Any,
    total: Any,
    rows: Any,
    min_leaf: Any,
    values: Any,
    cut: Any,
) -> Any:
    """Cut the bins ``first`` to ``m`` in two; a bin before the first is the missing.

    As :func:`best_plain_cut`, but -1 only when no cut is allowed.
    """
    last = m - 1 if first == 0 else m  # with missing values, they alone may go right
    for b in range(first, last):
        s, w = sums[SQUARES, b], sums[WEIGHT, b]
        right = squares - 2 * sums[PRODUCTS, b] + s
        values[b] = float(s) / float(w) + float(right) / float(total - w)
    best = -1.0
    for b in range(first, last):
        n_left = sums[N_ROWS, b] if min_leaf > 1 else 0
        if values[b] > best and (
            min_leaf == 1 or (n_left >= min_leaf and rows - n_left >= min_leaf)
        ):
            best = values[b]
            cut[0], cut[1], cut[2] = b, 0, sums[WEIGHT, b]
        if first == 0 or b == m - 1:
            continue
        s = sums[SQUARES, b] + 2 * sums[MIXED, b] + sums[SQUARES, 0]
        w = sums[WEIGHT, b] + sums[WEIGHT, 0]
        right = squares - 2 * (sums[PRODUCTS, b] + sums[PRODUCTS, 0]) + s
        value = float(s) / float(w) + float(right) / float(total - w)
        n_left += sums[N_ROWS, 0]
        if value > best and (
            min_leaf == 1 or (n_left >= min_leaf and rows - n_left >= min_leaf)
        ):
            best = value
            cut[0], cut[1], cut[2] = b, 1, w
    return best
