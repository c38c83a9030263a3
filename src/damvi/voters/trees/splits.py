"""How a node is split: on binned features, with exact integer counts.

A row's features are one byte each: 0 for a missing value, 1, 2, ... for the bins in order
(or the categories). A node keeps its negatives and its positives apart, so that a count
is one addition. Large nodes keep histograms of all features, and the larger child gets
its own by subtraction; small nodes count or sort the few rows they have.

All weights are whole numbers (draws of a bootstrap, or sample weights in fixed point),
so no result depends on the order of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import kernel
from .forest import CATEGORIES, N_CODES, goes_left


@kernel
def mix(seed: Any, branch: Any) -> Any:
    """The seed of a node's left (0) or right (1) child, or of its n-th random draw.

    A node's randomness so depends on its place in the tree, not on when it is grown.
    """
    x = seed + np.uint64(branch + 1) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def random_below(seed: Any, draw: Any, n: Any) -> Any:
    """A random number from 0 to n - 1: the node's draw of that number."""
    return np.int64(mix(seed, draw + 2) % np.uint64(n))


@kernel
def count_rows(codes: Any, weights: Any, rows: Any, starts: Any, histogram: Any) -> None:
    """Add the rows' weights to the bins of all features."""
    n_features = codes.shape[1]
    for row in rows:
        weight = weights[row]
        for f in range(n_features):
            histogram[np.uint64(starts[f]) + np.uint64(codes[row, f])] += weight


@kernel
def bins_of_histogram(negative: Any, positive: Any, start: Any, end: Any, out: Any) -> Any:
    """List the occupied bins of a feature: code, negative weight, positive weight."""
    m = 0
    for b in range(start, end):
        if negative[b] + positive[b] > 0:
            out[m, 0] = np.int64(b) - np.int64(start)
            out[m, 1] = negative[b]
            out[m, 2] = positive[b]
            m += 1
    return m


@kernel
def bins_of_rows(
    codes: Any, weights: Any, negatives: Any, positives: Any, f: Any, scratch: Any, out: Any
) -> Any:
    """The same list, and the number of rows, from the rows of a node.

    ``scratch`` (256, 3) comes and goes as zeros.
    """
    low, high = np.uint64(N_CODES), np.uint64(0)
    for row in negatives:
        code = np.uint64(codes[row, f])
        scratch[code, 0] += weights[row]
        scratch[code, 2] += 1
        low, high = min(low, code), max(high, code)
    for row in positives:
        code = np.uint64(codes[row, f])
        scratch[code, 1] += weights[row]
        scratch[code, 2] += 1
        low, high = min(low, code), max(high, code)
    m = 0
    for b in range(np.int64(low), np.int64(high) + 1):
        if scratch[b, 2] > 0:
            out[m, 0] = b
            for k in range(3):
                out[m, k + 1] = scratch[b, k]
                scratch[b, k] = 0
            m += 1
    return m


@kernel
def bins_of_few_rows(
    codes: Any, weights: Any, negatives: Any, positives: Any, f: Any, out: Any
) -> Any:
    """The same list for a handful of rows, kept in order as they come."""
    m = 0
    n_negative = len(negatives)
    for i in range(n_negative + len(positives)):
        side = 1 if i < n_negative else 2
        row = negatives[i] if i < n_negative else positives[i - n_negative]
        code = np.int64(codes[row, f])
        j = m
        while j > 0 and out[j - 1, 0] > code:
            j -= 1
        if j == 0 or out[j - 1, 0] < code:
            for k in range(m, j, -1):
                for column in range(4):
                    out[k, column] = out[k - 1, column]
            out[j, 0] = code
            out[j, 1] = 0
            out[j, 2] = 0
            out[j, 3] = 0
            m += 1
            j += 1
        out[j - 1, side] += weights[row]
        out[j - 1, 3] += 1
    return m


@kernel
def order_by_positive_rate(bins: Any, m: Any) -> None:
    """Sort categories by their rate of positives: the best subset is then a prefix."""
    for i in range(1, m):
        for j in range(i, 0, -1):
            n0, p0, n1, p1 = bins[j - 1, 1], bins[j - 1, 2], bins[j, 1], bins[j, 2]
            if p0 / (n0 + p0) <= p1 / (n1 + p1):
                break
            for column in range(4):
                bins[j - 1, column], bins[j, column] = bins[j, column], bins[j - 1, column]


@kernel
def purity(negative: Any, positive: Any) -> Any:
    """(n² + p²) / (n + p): the higher the sum over the children, the lower the Gini."""
    n, p = float(negative), float(positive)
    return (n * n + p * p) / (n + p)


@kernel
def best_cut(bins: Any, first: Any, m: Any, node: Any, min_leaf: Any, cut: Any) -> Any:
    """Cut the bins ``first`` to ``m`` in two; a bin before the first is the missing.

    ``node`` is (negative weight, positive weight, rows). ``cut`` becomes (last bin on the
    left, whether the missing go left, left negative weight, left positive weight).
    Returns the purity of the children, or -1 when no cut is allowed.
    """
    best = -1.0
    left_n, left_p, left_rows = 0, 0, 0
    last = m - 1 if first == 0 else m  # with missing values, they alone may go right
    for i in range(first, last):
        left_n += bins[i, 1]
        left_p += bins[i, 2]
        left_rows += bins[i, 3]
        # Between two bins that hold the same single class no cut is best; with a
        # rare class this leaves few to try.
        if min_leaf == 1 and i < m - 1:
            if bins[i, 1] == 0 and bins[i + 1, 1] == 0:
                continue
            if bins[i, 2] == 0 and bins[i + 1, 2] == 0:
                continue
        for missing_left in range(1 if first == 0 or i == m - 1 else 2):
            n, p, rows = left_n, left_p, left_rows
            if missing_left == 1:
                n, p, rows = n + bins[0, 1], p + bins[0, 2], rows + bins[0, 3]
            if min_leaf > 1 and (rows < min_leaf or node[2] - rows < min_leaf):
                continue
            value = purity(n, p) + purity(node[0] - n, node[1] - p)
            if value > best:
                best = value
                cut[0] = i
                cut[1] = missing_left
                cut[2] = n
                cut[3] = p
    return best


@kernel
def partition(
    codes: Any, rows: Any, f: Any, threshold: Any, shift: Any, sets: Any, spare: Any
) -> Any:
    """Move the rows that go left to the front and return how many they are.

    Each side keeps its order, so that counting goes through memory one way.
    """
    n_left = 0
    for i in range(len(rows)):
        row = rows[i]
        left = goes_left(codes[row, f], threshold, shift, sets)
        # Both are written and one place moves on: no branch to guess.
        rows[n_left] = row
        spare[i - n_left] = row
        n_left += 1 if left else 0
    rows[n_left:] = spare[: len(rows) - n_left]
    return n_left


@kernel
def write_split(
    bins: Any,
    first: Any,
    m: Any,
    cut: Any,
    left_is_heavier: Any,
    place: Any,
    sets: Any,
    split: Any,
) -> None:
    """From a cut to a split: ``split`` becomes (threshold, shift).

    A split on categories fills the set at ``place``, which is -1 for one on order. What
    the node has not seen (missing values, other categories) goes to the heavier child.
    """
    last = cut[0]
    if place >= 0:
        split[0], split[1] = place, CATEGORIES
        sets[place, :] = 255 if left_is_heavier else 0
        for i in range(m):
            code = bins[i, 0]
            others = np.int64(sets[place, code >> 3]) & (255 ^ (1 << (code & 7)))
            sets[place, code >> 3] = others | ((1 if i <= last else 0) << (code & 7))
        return
    missing_left = cut[1] == 1 if first == 1 else left_is_heavier
    split[1] = 0 if missing_left else 1
    threshold = N_CODES - 1  # all values left, only the missing right
    if last < m - 1:  # half way across the gap between the two bins
        threshold = (bins[last, 0] + bins[last + 1, 0]) // 2
    split[0] = threshold - split[1]
