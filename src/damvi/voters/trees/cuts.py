"""The best cut of a feature at a node, and the rows of a node as keys.

When a row moves from the right of a cut to its left, the sums of squares in the Gini
impurity change in one class only, so a cut costs the same for any number of classes: with L
the sum of squared class weights on the left, P their product with the class weights of the
node, and N the sum of squares of the node, the sum of squares on the right is N - 2 P + L.
Two classes need less: the weight on the left, and that of the positives in it. ``factors``
distinguish the two cases: they are what a unit of weight of each class adds to P, which is
the weight of the class in the node, or 0 and 1 for two classes, so that P is the weight of
the positives.

Small nodes use sorted keys, large ones counts: the weight of each class in each bin. A key
packs code, class, place and weight into one number, and the keys of a feature, sorted by
code, are all that a small node needs. If all features are tried at each split, all nodes of
a subtree need them all sorted, so a node with few rows sorts them once, and a split
partitions the keys of each feature stably. Nodes are grown depth first, so one block of
memory serves all subtrees.

Random cuts need neither: one pass over the codes of a feature finds the smallest and
largest, and another the sums on either side.

Weights are integers, so all sums are exact and no result depends on the order of the rows.
The kernels take whole arrays with positions rather than slices: making a slice takes as
long as processing a dozen rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._kernels import inlined, kernel
from .forest import CATEGORIES, N_CODES, goes_left

CODE_SHIFT, CLASS_SHIFT, PLACE_SHIFT = 55, 47, 37
"""A key packs code, class, place among the rows, and weight; a tag class and weight."""
CLASS_MASK, PLACE_MASK, WEIGHT_MASK = 2**8 - 1, 2**10 - 1, 2**37 - 1
BELOW_CODE = 2**CODE_SHIFT - 1

SORTED_ROWS = PLACE_MASK + 1
SORTED_CELLS = 2**18
"""Maximum size of the block of sorted keys, so that it stays in the caches."""

# Sums after each bin: the squares on the left, the products with the node, the weight on
# the left, the products with the missing values, and the number of rows on the left.
SQUARES, PRODUCTS, WEIGHT, MIXED, N_ROWS, SUMS = 0, 1, 2, 3, 4, 5
# Facts about a node: its weight, the sum of squared class weights, the weight of the last
# class, and the number of rows.
TOTAL, NODE_SQUARES, POSITIVES, NODE_ROWS, NODE_FACTS = 0, 1, 2, 3, 4
# Facts about the best cut: the last bin on the left, whether missing values go left, and
# the weight and products on the left.
LAST, MISSING_LEFT, LEFT_WEIGHT, LEFT_PRODUCTS, CUT_FACTS = 0, 1, 2, 3, 4
LEFT_WEIGHTS, MISSING = 0, 1
"""Rows of the scratch array by class."""
ALMOST = 1 - 1e-12
ROUNDS = 30
"""Iterations of the power method; an approximate first component is good enough."""


@inlined
def sides_of_cut(
    two: Any,
    squares: Any,
    products: Any,
    weight: Any,
    total: Any,
    node_squares: Any,
    positives: Any,
) -> Any:
    """Sum of squares and weight on the left of a cut, then on its right, as floats.

    ``total`` and ``positives`` are floats as well, the others integers.
    """
    w = float(weight)
    if two:
        p = float(products)
        n, right_p = w - p, positives - p
        right_n = (total - positives) - n
        return n * n + p * p, w, right_n * right_n + right_p * right_p, total - w
    return float(squares), w, float(node_squares - 2 * products + squares), total - w


@kernel
def purity(two: Any, node: Any) -> Any:
    """Sum of squares over the sum; the higher for the children, the lower the Gini."""
    if two:
        n, p = float(node[TOTAL] - node[POSITIVES]), float(node[POSITIVES])
        return (n * n + p * p) / (n + p)
    return float(node[NODE_SQUARES]) / float(node[TOTAL])


@kernel
def is_in_run(sums: Any, first: Any, b: Any) -> Any:
    """Whether a bin and the next contain only rows of the same class, of two.

    No cut between such bins is the best one, except through rounding.
    """
    p, w = sums[PRODUCTS, b + 1], sums[WEIGHT, b + 1]
    if b == first:
        return p == 0 or w == p
    return (
        p == sums[PRODUCTS, b - 1] or w - p == sums[WEIGHT, b - 1] - sums[PRODUCTS, b - 1]
    )


@kernel
def is_run_of_keys(keys: Any, start: Any, n: Any, i: Any) -> Any:
    """Whether the bin that ends at the i-th of n + 1 keys and the next have one class."""
    begin, end = np.int64(start), np.int64(start) + np.int64(n) + 1
    low, high = begin + i, begin + i + 1
    own = keys[low] >> CLASS_SHIFT & CLASS_MASK
    while low > begin and keys[low - 1] ^ keys[begin + i] <= BELOW_CODE:
        low -= 1
    while high < end - 1 and keys[high + 1] ^ keys[begin + i + 1] <= BELOW_CODE:
        high += 1
    for place in range(low, high + 1):
        if keys[place] >> CLASS_SHIFT & CLASS_MASK != own:
            return False
    return True


@inlined
def best_of_plain_cuts(
    two: Any, keys: Any, start: Any, n: Any, node: Any, least: Any, sums: Any, cut: Any
) -> Any:
    """The best of the n cuts after the keys from ``start`` on, whose sums are known.

    See :func:`best_plain_cut`. ``two`` says whether there are two classes; callers pass a
    constant, so that each case is compiled separately.
    """
    one = np.uint64(1)
    total, positives = float(node[TOTAL]), float(node[POSITIVES])
    node_squares = node[NODE_SQUARES]
    # Most features have no cut that beats the best so far. This check is vectorised and
    # needs no division; it allows for rounding.
    bound, n_good = least * ALMOST, 0
    for i in range(n):
        s, w, right, rest = sides_of_cut(
            two,
            sums[SQUARES, i],
            sums[PRODUCTS, i],
            sums[WEIGHT, i],
            total,
            node_squares,
            positives,
        )
        place = start + np.uint64(i)
        is_cut = keys[place] ^ keys[place + one] > BELOW_CODE
        n_good += 1 if s * rest + right * w >= bound * (w * rest) and is_cut else 0
    best, b = -1.0, 0
    for i in range(n if n_good > 0 else np.uint64(0)):
        place = start + np.uint64(i)
        if keys[place] ^ keys[place + one] <= BELOW_CODE:
            continue
        s, w, right, rest = sides_of_cut(
            two,
            sums[SQUARES, i],
            sums[PRODUCTS, i],
            sums[WEIGHT, i],
            total,
            node_squares,
            positives,
        )
        if s * rest + right * w >= bound * (w * rest):
            value = s / w + right / rest
            if (
                value >= least
                and value > best
                and not (two and is_run_of_keys(keys, start, n, np.int64(i)))
            ):
                best, bound = value, value * ALMOST
                cut[LAST], cut[MISSING_LEFT] = b, 0
                cut[LEFT_WEIGHT], cut[LEFT_PRODUCTS] = sums[WEIGHT, i], sums[PRODUCTS, i]
        b += 1
    return best


@inlined
def best_plain_cut(
    keys: Any,
    begin: Any,
    end: Any,
    factors: Any,
    node: Any,
    least: Any,
    by_class: Any,
    sums: Any,
    cut: Any,
) -> Any:
    """The best cut of the keys from ``begin`` to ``end``, without missing values.

    Leaves may have any size. Fills ``cut``, and returns the purity of the children, or -1
    if it is below ``least``.
    """
    squares, products, weight = np.int64(0), np.int64(0), np.int64(0)
    n, start = np.uint64(end - begin - 1), np.uint64(begin)
    for c in range(len(factors)):
        by_class[LEFT_WEIGHTS, c] = 0
    for i in range(n):
        key = keys[start + np.uint64(i)]
        w, own = key & WEIGHT_MASK, np.uint64(key >> CLASS_SHIFT & CLASS_MASK)
        squares += w * (2 * by_class[LEFT_WEIGHTS, own] + w)
        products += w * factors[own]
        weight += w
        by_class[LEFT_WEIGHTS, own] += w
        sums[SQUARES, i], sums[PRODUCTS, i], sums[WEIGHT, i] = squares, products, weight
    return best_of_plain_cuts(False, keys, start, n, node, least, sums, cut)


@kernel
def best_plain_cut_of_two(
    keys: Any, begin: Any, end: Any, node: Any, least: Any, sums: Any, cut: Any
) -> Any:
    """:func:`best_plain_cut` for two classes, as a function that is not inlined."""
    products, weight = np.int64(0), np.int64(0)
    n, start = np.uint64(end - begin - 1), np.uint64(begin)
    for i in range(n):
        key = keys[start + np.uint64(i)]
        w = key & WEIGHT_MASK
        products += w * (key >> CLASS_SHIFT & 1)
        weight += w
        sums[PRODUCTS, i], sums[WEIGHT, i] = products, weight
    return best_of_plain_cuts(True, keys, start, n, node, least, sums, cut)


@kernel
def sums_of_missing(factors: Any, rows: Any, by_class: Any, sums: Any) -> None:
    """Sums of the missing values (bin 0): squares, products with the node, weight, rows."""
    squares, products, weight = np.int64(0), np.int64(0), np.int64(0)
    for c in range(len(factors)):
        missing = by_class[MISSING, c]
        squares += missing * missing
        products += missing * factors[c]
        weight += missing
    sums[SQUARES, 0], sums[PRODUCTS, 0] = squares, products
    sums[WEIGHT, 0], sums[N_ROWS, 0] = weight, rows


@kernel
def sums_of_keys(
    keys: Any, begin: Any, end: Any, first: Any, factors: Any, by_class: Any, sums: Any
) -> Any:
    """Sums after each bin; returns the number of bins.

    With ``first`` = 1, there are missing values, which are bin 0.
    """
    two = len(factors) == 2
    for c in range(len(factors)):
        by_class[LEFT_WEIGHTS, c], by_class[MISSING, c] = 0, 0
    start = begin
    if first == 1:
        while keys[start] <= BELOW_CODE:
            by_class[MISSING, keys[start] >> CLASS_SHIFT & CLASS_MASK] += (
                keys[start] & WEIGHT_MASK
            )
            start += 1
        sums_of_missing(factors, start - begin, by_class, sums)
    squares, products, weight, mixed = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    b = first
    for i in range(start, end):
        key = keys[i]
        w, c = key & WEIGHT_MASK, key >> CLASS_SHIFT & CLASS_MASK
        products += w * factors[c]
        weight += w
        if not two:
            squares += w * (2 * by_class[LEFT_WEIGHTS, c] + w)
            mixed += w * by_class[MISSING, c]
            by_class[LEFT_WEIGHTS, c] += w
        if i > start and key ^ keys[i - 1] > BELOW_CODE:
            b += 1
        sums[SQUARES, b], sums[PRODUCTS, b], sums[WEIGHT, b] = squares, products, weight
        sums[MIXED, b], sums[N_ROWS, b] = mixed, i + 1 - start
    return b + 1


@inlined
def sums_of_two(
    counts: Any,
    slot: Any,
    start: Any,
    end: Any,
    count_rows: Any,
    bins: Any,
    sums: Any,
) -> Any:
    """Weight and positives after each bin, from the counts of two classes.

    Returns the number of bins, whose codes are written to ``bins``.
    """
    weight, positives, rows, m = np.int64(0), np.int64(0), np.int64(0), 0
    for b in range(start, end):
        own = np.int64(counts[slot, 0, b]) + np.int64(counts[slot, 1, b])
        weight += own
        positives += counts[slot, 1, b]
        bins[m] = np.int64(b) - np.int64(start)
        sums[PRODUCTS, m], sums[WEIGHT, m] = positives, weight
        if count_rows:
            rows += counts[slot, 2, b]
            sums[N_ROWS, m] = rows
        m += 1 if own > 0 else 0
        if b == start:  # missing values are counted separately
            weight, positives, rows = np.int64(0), np.int64(0), np.int64(0)
    return m


@kernel
def sums_of_counts(
    counts: Any,
    slot: Any,
    start: Any,
    end: Any,
    present: Any,
    n_present: Any,
    factors: Any,
    count_rows: Any,
    by_class: Any,
    running: Any,
    bins: Any,
    sums: Any,
) -> Any:
    """Sums after each bin, from the counts (slots, classes, bins) of a feature.

    Returns the number of bins, whose codes are written to ``bins``. ``present`` are the
    classes in the node. With ``count_rows``, the last row of the counts has the number of
    rows. ``running`` (4, 257) is scratch space.
    """
    n, n_classes = np.int64(end) - np.int64(start), len(factors)
    squares, products, weights, mixed = running[0], running[1], running[2], running[3]
    # A new array, so that the compiler knows that it does not alias the others.
    lefts = np.empty(len(squares), counts.dtype)
    for b in range(n):
        squares[b], products[b], weights[b], mixed[b] = 0, 0, 0, 0
    by_class[MISSING, :] = 0
    for j in range(n_present):
        c = present[j]
        count = counts[slot, c, start:end]
        by_class[MISSING, c] = count[0]
        missing, lefts[0] = count[0], factors[c]
        factor, left = lefts[0], missing - missing
        for b in range(1, n):
            left += count[b]
            lefts[b] = left
        # Products of two 32-bit numbers, which are vectorised.
        for b in range(1, n):
            squares[b] += np.int64(lefts[b]) * np.int64(lefts[b])
            products[b] += np.int64(factor) * np.int64(lefts[b])
            weights[b] += np.int64(lefts[b])
        if missing > 0:
            for b in range(1, n):
                mixed[b] += np.int64(missing) * np.int64(lefts[b])
    sums_of_missing(factors, 0, by_class, sums)
    first = 1 if sums[WEIGHT, 0] > 0 else 0
    m, bins[0] = first, 0
    for b in range(1, n):
        bins[m] = b
        sums[SQUARES, m], sums[PRODUCTS, m] = squares[b], products[b]
        sums[WEIGHT, m], sums[MIXED, m] = weights[b], mixed[b]
        m += 1 if weights[b] > weights[b - 1] else 0
    if count_rows:
        rows, count = np.int64(0), counts[slot, n_classes, start:end]
        for j in range(first, m):
            rows += count[bins[j]]
            sums[N_ROWS, j] = rows
        if first == 1:
            sums[N_ROWS, 0] = count[0]
    return m


@kernel
def gather_codes(columns: Any, rows: Any, f: Any, gathered: Any) -> Any:
    """Write the codes of some rows of a feature contiguously, from ``columns`` (d, n).

    Returns the smallest code, the smallest that is not missing, and the largest.
    """
    for i in range(len(rows)):
        gathered[i] = columns[f, rows[i]]
    least, low, high, one = np.uint8(255), np.uint8(255), np.uint8(0), np.uint8(1)
    for i in range(len(rows)):  # in a separate loop, which is vectorised
        code = gathered[i]
        before = np.uint8(code - one)  # missing values wrap around to 255
        least = code if code < least else least
        low = before if before < low else low
        high = code if code > high else high
    return np.int64(least), np.int64(low) + 1, np.int64(high)


@kernel
def sums_of_sides(
    gathered: Any,
    tags: Any,
    n: Any,
    last: Any,
    first: Any,
    factors: Any,
    weights: Any,
    k: Any,
    by_class: Any,
    sums: Any,
) -> None:
    """Sums after two bins: the codes of n rows up to ``last``, and those above.

    With ``first`` = 1, there are missing values, which are bin 0. ``tags`` are those of the
    rows, and the k-th ``weights`` their sums by class.
    """
    two, limit, one = len(factors) == 2, np.uint8(last - 1), np.uint8(1)
    n_left, n_missing, zero = np.int64(0), np.int64(0), np.int64(0)
    for c in range(len(factors)):
        by_class[LEFT_WEIGHTS, c], by_class[MISSING, c] = 0, 0
    if two:
        left, positives = np.int64(0), np.int64(0)
        for i in range(n):
            inside = np.uint8(gathered[i] - one) <= limit
            weight = tags[i] & WEIGHT_MASK if inside else zero
            left += weight
            positives += weight if tags[i] > WEIGHT_MASK else zero
            n_left += 1 if inside else 0
        by_class[LEFT_WEIGHTS, 0], by_class[LEFT_WEIGHTS, 1] = left - positives, positives
    else:
        for i in range(n):
            inside = np.uint8(gathered[i] - one) <= limit
            weight = tags[i] & WEIGHT_MASK if inside else zero
            by_class[LEFT_WEIGHTS, np.uint64(tags[i] >> CLASS_SHIFT)] += weight
            n_left += 1 if inside else 0
    if first == 1:
        for i in range(n):
            if gathered[i] == 0:
                own = np.uint64(tags[i] >> CLASS_SHIFT)
                by_class[MISSING, own] += tags[i] & WEIGHT_MASK
                n_missing += 1
        sums_of_missing(factors, n_missing, by_class, sums)
    for j in range(SUMS):
        sums[j, first], sums[j, first + 1] = 0, 0
    for c in range(len(factors)):
        below, missing = by_class[LEFT_WEIGHTS, c], by_class[MISSING, c]
        known = weights[k, c] - missing
        sums[PRODUCTS, first] += below * factors[c]
        sums[PRODUCTS, first + 1] += known * factors[c]
        sums[WEIGHT, first] += below
        sums[WEIGHT, first + 1] += known
        if not two:
            sums[SQUARES, first] += below * below
            sums[SQUARES, first + 1] += known * known
            sums[MIXED, first] += below * missing
            sums[MIXED, first + 1] += known * missing
    sums[N_ROWS, first], sums[N_ROWS, first + 1] = n_left, n - n_missing


@kernel
def best_cut(
    sums: Any, first: Any, m: Any, two: Any, node: Any, min_leaf: Any, values: Any, cut: Any
) -> Any:
    """The best cut of the bins ``first`` to ``m``; a bin before ``first`` is for missing.

    As :func:`best_plain_cut`, but -1 is returned only if no cut is allowed.
    """
    total, positives = float(node[TOTAL]), float(node[POSITIVES])
    node_squares, rows = node[NODE_SQUARES], node[NODE_ROWS]
    last = m - 1 if first == 0 else m  # a cut may separate missing values from all others
    for b in range(first, last):
        s, w, right, rest = sides_of_cut(
            two,
            sums[SQUARES, b],
            sums[PRODUCTS, b],
            sums[WEIGHT, b],
            total,
            node_squares,
            positives,
        )
        values[b] = s / w + right / rest
    best = -1.0
    for b in range(first, last):
        if two and min_leaf == 1 and b < m - 1 and is_in_run(sums, first, b):
            continue
        n_left = sums[N_ROWS, b] if min_leaf > 1 else 0
        if values[b] > best and (
            min_leaf == 1 or (n_left >= min_leaf and rows - n_left >= min_leaf)
        ):
            best = values[b]
            cut[LAST], cut[MISSING_LEFT] = b, 0
            cut[LEFT_WEIGHT], cut[LEFT_PRODUCTS] = sums[WEIGHT, b], sums[PRODUCTS, b]
        if first == 0 or b == m - 1:
            continue
        squares = sums[SQUARES, b] + 2 * sums[MIXED, b] + sums[SQUARES, 0]
        products = sums[PRODUCTS, b] + sums[PRODUCTS, 0]
        weight = sums[WEIGHT, b] + sums[WEIGHT, 0]
        s, w, right, rest = sides_of_cut(
            two, squares, products, weight, total, node_squares, positives
        )
        value = s / w + right / rest
        n_left += sums[N_ROWS, 0]
        if value > best and (
            min_leaf == 1 or (n_left >= min_leaf and rows - n_left >= min_leaf)
        ):
            best = value
            cut[LAST], cut[MISSING_LEFT] = b, 1
            cut[LEFT_WEIGHT], cut[LEFT_PRODUCTS] = weight, products
    return best


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
    """Convert a cut to a split: write (threshold, shift) to ``split``.

    For a split on categories, fill the set at ``place``, which is -1 for an ordered split.
    What the node has not seen (missing values, other categories) goes to the heavier child.
    """
    last = cut[LAST]
    if place >= 0:
        split[0], split[1] = place, CATEGORIES
        sets[place, :] = 255 if left_is_heavier else 0
        for i in range(m):
            code = bins[i]
            others = np.int64(sets[place, code >> 3]) & (255 ^ (1 << (code & 7)))
            sets[place, code >> 3] = others | ((1 if i <= last else 0) << (code & 7))
        return
    missing_left = cut[MISSING_LEFT] == 1 if first == 1 else left_is_heavier
    split[1] = 0 if missing_left else 1
    threshold = N_CODES - 1  # all values go left, and only missing ones right
    if last < m - 1:  # in the middle of the gap between the two bins
        threshold = (bins[last] + bins[last + 1]) // 2
    split[0] = threshold - split[1]


@kernel
def count_keys(keys: Any, begin: Any, end: Any, counts: Any, slot: Any) -> None:
    """Add sorted keys to the counts of a feature, with their number in the last row."""
    last = np.uint64(counts.shape[1] - 1)
    for i in range(begin, end):
        key = keys[i]
        code, c = np.uint64(key >> CODE_SHIFT), np.uint64(key >> CLASS_SHIFT & CLASS_MASK)
        counts[slot, c, code] += key & WEIGHT_MASK
        counts[slot, last, code] += 1


@kernel
def count_feature(codes: Any, tags: Any, rows: Any, f: Any, counts: Any, slot: Any) -> None:
    """Add the rows of a node to the counts of a feature, their number in the last row."""
    last = np.uint64(counts.shape[1] - 1)
    for row in rows:
        code, tag = np.uint64(codes[row, f]), tags[row]
        counts[slot, np.uint64(tag >> CLASS_SHIFT), code] += tag & WEIGHT_MASK
        counts[slot, last, code] += 1


@kernel
def order_categories(
    counts: Any,
    slot: Any,
    start: Any,
    end: Any,
    present: Any,
    n_present: Any,
    target: Any,
    order: Any,
) -> Any:
    """Order the categories of a feature such that the best prefix is a good subset.

    With two classes, ordered by the rate of positives, the best prefix is the best of all
    subsets [1]_. With more, there is no such order; along the first principal component of
    the categories' class rates, the best prefix is usually good, but need not be the best
    subset [2]_. The counts are written to the slot ``target`` from position 1 on (0 is for
    missing values), the codes to ``order``. Returns the number of categories.

    References
    ----------
    .. [1] L. Breiman, J. Friedman, R. Olshen and C. Stone (1984), Classification and
       regression trees.
    .. [2] D. Coppersmith, S. Hong and J. Hosking (1999), Partitioning nominal attributes in
       decision trees. Data Mining and Knowledge Discovery 3.
    """
    n_classes = counts.shape[1] - 1
    rates, weights, m = np.zeros((N_CODES, n_classes)), np.zeros(N_CODES), 0
    for b in range(start, end):
        for j in range(n_present):
            c = present[j]
            rates[m, c] = counts[slot, c, b]
            weights[m] += rates[m, c]
        if weights[m] > 0.0:
            for j in range(n_present):
                rates[m, present[j]] /= weights[m]
            order[m] = np.int64(b) - np.int64(start)
            m += 1
    if n_classes == 2:
        scores = rates[:, 1].copy()
    else:
        scores = first_component(rates[:m], weights[:m])
    for i in range(1, m):  # a stable insertion sort
        code, score, j = order[i], scores[i], i
        while j > 0 and scores[j - 1] > score:
            order[j], scores[j] = order[j - 1], scores[j - 1]
            j -= 1
        order[j], scores[j] = code, score
    for line in range(n_classes + 1):
        counts[target, line, 0] = 0
        for i in range(m):
            counts[target, line, i + 1] = counts[slot, line, np.int64(start) + order[i]]
    return m


@kernel
def first_component(rates: Any, weights: Any) -> Any:
    """Scores of the rows of ``rates`` (m, C) on the first weighted principal component.

    The sign is such that the last class that varies has a positive component.
    """
    m, n_classes = rates.shape
    total = weights.sum()
    centred = rates.copy()
    for c in range(n_classes):
        mean = 0.0
        for j in range(m):
            mean += weights[j] * rates[j, c]
        mean /= total
        for j in range(m):
            centred[j, c] -= mean
    # Start at the category farthest from the mean, which is not orthogonal to all of them.
    farthest, largest = 0, -1.0
    for j in range(m):
        length = 0.0
        for c in range(n_classes):
            length += centred[j, c] * centred[j, c]
        if length * weights[j] > largest:
            farthest, largest = j, length * weights[j]
    direction = centred[farthest].copy()
    following = np.empty(n_classes)
    for _ in range(ROUNDS):
        following[:] = 0.0
        for j in range(m):
            score = 0.0
            for c in range(n_classes):
                score += centred[j, c] * direction[c]
            for c in range(n_classes):
                following[c] += weights[j] * score * centred[j, c]
        length = 0.0
        for c in range(n_classes):
            length += following[c] * following[c]
        if length <= 0.0:  # all rates are equal
            break
        for c in range(n_classes):
            direction[c] = following[c] / np.sqrt(length)
    sign = 1.0
    for c in range(n_classes):
        if direction[c] != 0.0:
            sign = 1.0 if direction[c] > 0.0 else -1.0
    scores = np.zeros(m)
    for j in range(m):
        for c in range(n_classes):
            scores[j] += sign * direction[c] * rates[j, c]
    return scores


# The rows of a small node as keys.


@kernel
def rows_to_sort(n_features: Any) -> Any:
    """Maximum number of rows of a node that sorts the keys of all features."""
    return min(SORTED_ROWS, max(SORTED_CELLS // n_features, 32))


@kernel
def keys_of_rows(
    codes: Any, tags: Any, rows: Any, f: Any, ends: Any, keys: Any, begin: Any
) -> None:
    """Sorted keys of a feature, one for each row, written from ``begin`` on.

    ``ends`` (256) must be zeros, and is reset to zeros.
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
    """As :func:`keys_of_rows` for very few rows, by insertion sort."""
    for i in range(len(rows)):
        key = np.int64(codes[rows[i], f]) << CODE_SHIFT | tags[rows[i]]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


@kernel
def list_bins(keys: Any, begin: Any, end: Any, bins: Any) -> Any:
    """List the distinct codes of sorted keys; return their number."""
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
    """Mark the places of rows that go left by 1, others by 0; return how many go left.

    ``keys`` are those of the feature that is split on. The class weights of the left child
    are written to the k-th ``weights``.
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
    """Write the keys at a distance of ``away``: first those that go left, stably.

    The features are the first ones at ``floor`` of the stack; the keys of feature f begin
    at ``begin`` + f strides. One call handles all features, since a call takes as long as a
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
