"""Growth of a tree: depth first, the smaller child before the larger.

Features are one byte each: 0 for a missing value, 1, 2, ... for the bins (or categories).
Large nodes have histograms of all features and classes, and the larger child gets its own
by subtraction. Small nodes sort their rows (see :mod:`.cuts`). If few features are tried,
or leaves have a minimum size, a node counts one feature at a time. For random splits, it
draws one cut for each feature, and sums its two sides.

All weights are integers (counts of a bootstrap, or sample weights in fixed point), so no
result depends on the order of the rows, nor on which of these methods is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._kernels import kernel
from .cuts import (
    CLASS_SHIFT,
    CODE_SHIFT,
    CUT_FACTS,
    LAST,
    LEFT_PRODUCTS,
    LEFT_WEIGHT,
    NODE_FACTS,
    NODE_ROWS,
    NODE_SQUARES,
    POSITIVES,
    SUMS,
    TOTAL,
    WEIGHT_MASK,
    best_cut,
    best_plain_cut,
    best_plain_cut_of_two,
    count_feature,
    count_keys,
    deal_keys,
    gather_codes,
    keys_of_few_rows,
    keys_of_rows,
    list_bins,
    mark_sides,
    order_categories,
    purity,
    rows_to_sort,
    sums_of_counts,
    sums_of_keys,
    sums_of_sides,
    sums_of_two,
    write_split,
)
from .forest import (
    FEATURE,
    LEFT,
    N_CODES,
    NODE_COLUMNS,
    SET_BYTES,
    SHIFT,
    THRESHOLD,
    goes_left,
)

SORT_ROWS = 24
"""Nodes of up to this many rows are sorted, since counts would have many empty bins."""
HISTOGRAM_GAIN = 2
"""Number of bins of a class that are processed in the time of one row."""

# Columns of the stack of nodes to grow.
NODE, START, END, DEPTH, SLOT, N_VARYING, STACK_COLUMNS = 0, 1, 2, 3, 4, 5, 6
NO_SLOT, SORTED, SORTED_TOO = -1, -2, -3
"""Values of SLOT for a node without histograms, for a node whose keys are sorted, and for
its descendants: the block that has their keys."""

NEAR_CELLS = 2**20
"""Tables of up to this many cells stay in the caches."""
SPARSE = 4
"""A node gets its own table if it has at most 1 / SPARSE of the rows of its current one;
see :func:`make_subtree_table`."""
# Columns of a subtree's table: the position on the stack of the node that it was made for,
# the end of its rows in the block, and their number.
FLOOR, TABLE_END, ROWS, TABLE_COLUMNS = 0, 1, 2, 3
MAX_TABLES = 32
"""More than enough, since each has at most a quarter of the rows of the one before."""


@kernel
def mix(seed: Any, branch: Any) -> Any:
    """Seed of a node's left (0) or right (1) child, or of its n-th random draw.

    So the randomness of a node depends on its position in the tree, not on the order of
    growth.
    """
    x = seed + np.uint64(branch + 1) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def random_below(seed: Any, draw: Any, n: Any) -> Any:
    """Random integer from 0 to n - 1, for this draw of the node."""
    return np.int64(mix(seed, draw + 2) % np.uint64(n))


@kernel
def draw_subset(gathered: Any, n: Any, seed: Any, named: Any) -> Any:
    """Draw a random subset of the categories of n rows, neither empty nor all of them.

    All sizes are equally likely, so that one-against-the-rest splits occur. Returns the
    number of categories, and the position of the last one drawn in ``named``, which lists
    them all, those drawn first. The codes of their rows become 1, those of the others 2.
    """
    sides = np.zeros(N_CODES, np.uint8)
    for i in range(n):
        sides[gathered[i]] = 2
    m = 0
    for code in range(N_CODES):
        if sides[code] > 0:
            named[m] = code
            m += 1
    last = random_below(seed, 0, m - 1)
    for j in range(last + 1):
        other = j + random_below(seed, j + 1, m - j)
        named[j], named[other] = named[other], named[j]
        sides[named[j]] = 1
    for i in range(n):
        gathered[i] = sides[gathered[i]]
    return m, last


@kernel
def doubled(array: Any) -> Any:
    """A copy with twice the rows, the new ones uninitialised."""
    n, width = array.shape
    copy = np.empty((2 * n, width), array.dtype)
    for i in range(n):  # a slice would take a second to compile
        for j in range(width):
            copy[i, j] = array[i, j]
    return copy


@kernel
def histograms_at_once(n_cells: Any, n_bins: Any) -> Any:
    """Maximum number of nodes with histograms at a time.

    On the stack are the larger siblings of smaller children, which have at most half of the
    rows each time, down to as many cells as bins; then the node and its smaller child.
    """
    slots = 2
    while n_bins < n_cells:
        n_bins *= 2
        slots += 1
    return slots


@kernel
def room_for_tables(n_rows: Any, near_rows: Any) -> Any:
    """Maximum number of rows in the tables of subtrees: 1/4 + 1/16 + ... of all rows."""
    return n_rows // (SPARSE - 1) + 1 if n_rows > near_rows else 0


@kernel
def needs_own_table(n_rows: Any, table: Any, near_rows: Any) -> Any:
    """Whether a node with this many rows gets its own table."""
    return table[ROWS] > near_rows and SPARSE * n_rows <= table[ROWS]


@kernel
def make_subtree_table(
    codes: Any,
    tags: Any,
    rows: Any,
    floor: Any,
    tables: Any,
    level: Any,
    block: Any,
    block_tags: Any,
) -> Any:
    """Make a table for the node at ``floor`` of the stack, and return its level.

    The rows of a small node are scattered over the table of a large tree, and each access
    goes to main memory, at every level below. So a node with few rows of a table that is
    too large for the caches gets its own table for its subtree. Since nodes are grown depth
    first, tables are stacked in one block.
    """
    width, place = np.uint64(codes.shape[1]), np.uint64(tables[level, TABLE_END])
    source, target = codes.ravel(), block.ravel()
    for i in range(len(rows)):
        row = np.uint64(rows[i])
        for f in range(width):
            target[place * width + np.uint64(f)] = source[row * width + np.uint64(f)]
        block_tags[place] = tags[row]
        rows[i] = place
        place += np.uint64(1)
    table = tables[level + 1]
    table[FLOOR], table[TABLE_END], table[ROWS] = floor, np.int64(place), len(rows)
    return level + 1


@kernel
def weigh_classes(tags: Any, rows: Any, weights: Any, k: Any) -> None:
    """Write the weight of each class among the rows to the k-th ``weights``."""
    for c in range(weights.shape[1]):
        weights[k, c] = 0
    for row in rows:
        weights[k, tags[row] >> CLASS_SHIFT] += tags[row] & WEIGHT_MASK


@kernel
def is_mixed(weights: Any, k: Any) -> Any:
    """Whether a node has more than one class."""
    n = 0
    for c in range(weights.shape[1]):
        n += 1 if weights[k, c] > 0 else 0
    return n > 1


@kernel
def count_rows(
    codes: Any, tags: Any, rows: Any, starts: Any, counts: Any, slot: Any
) -> None:
    """Add the rows' weights to the histograms of all features, by class.

    The rows of a node are sorted by class, so only one histogram is used at a time.
    """
    n_features = codes.shape[1]
    for row in rows:
        histogram = counts[slot, tags[row] >> CLASS_SHIFT]
        weight = tags[row] & WEIGHT_MASK
        for f in range(n_features):
            histogram[np.uint64(starts[f]) + np.uint64(codes[row, f])] += weight


@kernel
def partition(
    codes: Any,
    by_column: Any,
    rows: Any,
    f: Any,
    threshold: Any,
    shift: Any,
    sets: Any,
    spare: Any,
) -> Any:
    """Move the rows that go left to the front, and return their number.

    Both sides keep their order, so that memory is accessed in order.
    """
    n_left = 0
    for i in range(len(rows)):
        row = rows[i]
        code = codes[f, row] if by_column else codes[row, f]
        left = goes_left(code, threshold, shift, sets)
        # Write both and advance one, to avoid an unpredictable branch.
        rows[n_left] = row
        spare[i - n_left] = row
        n_left += 1 if left else 0
    for i in range(len(rows) - n_left):
        rows[n_left + i] = spare[i]
    return n_left


@kernel
def grow(
    codes: Any,
    tags: Any,
    rows: Any,
    totals: Any,
    starts: Any,
    categorical: Any,
    max_depth: Any,
    min_leaf: Any,
    max_features: Any,
    seed: Any,
    near_rows: Any,
    random: Any,
) -> Any:
    """Grow a tree on the rows of ``codes`` (r, d).

    ``tags`` are the rows' classes and weights (see :mod:`.cuts`), and ``rows`` their
    numbers, sorted by class. ``totals`` (C) are the class weights, of a type that can hold
    their sum: 32 bits are faster than 64. ``starts`` (d + 1) are the positions of each
    feature's bins in a histogram. Tables of more than ``near_rows`` rows are too large for
    the caches (see :func:`make_subtree_table`). With ``random`` splits, the codes of a
    feature are read on their own, and ``codes`` is (d, r). Returns the nodes, their class
    weights and numbers of rows, the sets of categories, and the decrease of impurity by
    feature.
    """
    n_rows, n_features = len(rows), len(categorical)
    n_classes = len(totals)
    two = n_classes == 2
    n_bins = np.int64(starts[n_features])
    nodes = np.empty((256, NODE_COLUMNS), np.int32)
    node_weights = np.empty((256, n_classes), np.int64)
    node_rows = np.empty((256, 1), np.int32)
    decrease = np.zeros(n_features)
    sets = np.empty((4, SET_BYTES), np.uint8)
    n_nodes, n_sets = 1, 0

    # Histograms of all features pay off if all are tried. A node that splits has at least
    # two classes.
    use_histograms = max_features == n_features and min_leaf == 1 and not random
    least = max(1, 2 * n_bins // HISTOGRAM_GAIN)
    slots = histograms_at_once(n_rows * n_features, least) if use_histograms else 0
    # Two more slots, for a single feature and for its ordered categories, and one more row
    # for the number of rows.
    width = max(N_CODES + 1, n_bins if use_histograms else 0)
    counts = np.empty((slots + 2, n_classes + 1, width), totals.dtype)
    free_slots, n_free = np.arange(slots), slots
    ends, running = np.zeros(N_CODES, np.int64), np.empty((4, N_CODES + 1), np.int64)
    bins, best_bins = np.empty(N_CODES + 1, np.int64), np.empty(N_CODES + 1, np.int64)
    named = np.empty(N_CODES, np.int64)
    values, split = np.empty(N_CODES + 1), np.empty(2, np.int64)
    cut, winner = np.empty(CUT_FACTS, np.int64), np.empty(CUT_FACTS, np.int64)
    node, factors = np.empty(NODE_FACTS, np.int64), np.arange(n_classes)
    present, by_class = np.empty(n_classes, np.int64), np.empty((2, n_classes), np.int64)
    order, spare = np.empty(n_features, np.int32), np.empty(n_rows, np.uint32)

    tables, level = np.zeros((MAX_TABLES, TABLE_COLUMNS), np.int64), 0
    tables[0, ROWS] = n_rows
    room = 0 if random else room_for_tables(n_rows, near_rows)
    block, block_tags = np.empty((room, n_features), np.uint8), np.empty(room, np.int64)
    all_codes, all_tags = codes, tags

    few_rows = 0
    if max_features == n_features and not random:
        few_rows = min(rows_to_sort(n_features), n_rows)
    gathered = np.empty(n_rows if random else 0, np.uint8)
    own_tags = np.empty(n_rows if random else 0, np.int64)
    # The keys of one feature, followed by those of small subtrees.
    block_start = max(n_rows, N_CODES + 1)
    # An odd number of cache lines per feature, so that they do not map to the same sets.
    stride = 16 * (few_rows // 16) + 24
    block_size = n_features * stride
    keys, sorted_at = np.empty(block_start + 2 * block_size, np.int64), block_start
    sums, sides = np.empty((SUMS, block_start), np.int64), np.empty(few_rows, np.uint8)

    stack = np.zeros((64, STACK_COLUMNS), np.int64)
    varying = np.empty((64, n_features), np.int32)
    seeds = np.empty((64, 1), np.uint64)
    stack[0, END], stack[0, SLOT], stack[0, N_VARYING] = n_rows, NO_SLOT, n_features
    for f in range(n_features):
        varying[0, f] = f
    seeds[0, 0] = seed
    for c in range(n_classes):
        node_weights[0, c] = totals[c]
    if use_histograms and n_rows * n_features * HISTOGRAM_GAIN > n_bins * n_classes:
        n_free -= 1
        stack[0, SLOT] = free_slots[n_free]
        counts[free_slots[n_free]] = 0
        count_rows(codes, tags, rows, starts, counts, free_slots[n_free])

    n_stack, own = 1, rows
    while n_stack > 0:
        n_stack -= 1
        k, depth = stack[n_stack, NODE], stack[n_stack, DEPTH]
        start, end = stack[n_stack, START], stack[n_stack, END]
        slot, n_varying = stack[n_stack, SLOT], stack[n_stack, N_VARYING]
        own_rows = end - start
        node_rows[k, 0] = own_rows
        n_present, node[NODE_ROWS] = 0, own_rows
        node[TOTAL], node[NODE_SQUARES], node[POSITIVES] = 0, 0, node_weights[k, -1]
        for c in range(n_classes):
            weight = node_weights[k, c]
            if weight > 0:
                present[n_present] = c
                n_present += 1
                node[TOTAL] += weight
                node[NODE_SQUARES] += weight * weight
            if not two:
                factors[c] = weight
        node_seed = seeds[n_stack, 0]
        while tables[level, FLOOR] > n_stack:
            level -= 1
        if level == 0:
            codes, tags = all_codes, all_tags

        # The best split over the features (all, or a random few) that still vary.
        best, best_feature, best_first, best_m = -1.0, -1, 0, 0
        n_kept, n_tied, keys_at = 0, 0, 0
        may_split = n_present > 1 and own_rows >= 2 * min_leaf
        may_split &= max_depth == 0 or depth < max_depth
        n_tried = n_varying if may_split else 0
        # No branch that assigns an array contains the loop over the features: numba would
        # count references for each of them, by atomic operations.
        if n_tried > 0:
            if slot >= NO_SLOT:
                own = rows[start:end]
            if slot == NO_SLOT and own_rows <= few_rows:
                for i in range(n_varying):
                    f = varying[n_stack, i]
                    keys_of_rows(codes, tags, own, f, ends, keys, block_start + f * stride)
                slot, sorted_at = SORTED, block_start - start
            elif random:
                for i in range(own_rows):
                    own_tags[i] = tags[own[i]]
            elif slot >= NO_SLOT and needs_own_table(own_rows, tables[level], near_rows):
                level = make_subtree_table(
                    codes, tags, own, n_stack, tables, level, block, block_tags
                )
                codes, tags = block, block_tags
            keys_at = sorted_at + (SORTED - slot) * block_size + start
        for i in range(n_tried):
            order[i] = varying[n_stack, i]
        for i in range(n_tried):
            if n_kept == max_features:
                for j in range(i, n_varying):  # not tried: they may still vary
                    varying[n_stack, n_kept] = order[j]
                    n_kept += 1
                break
            if max_features < n_features:
                j = i + random_below(node_seed, i, n_varying - i)
                order[i], order[j] = order[j], order[i]
            f = order[i]
            begin, stop, m = 0, own_rows, 0
            by_counts = slot >= 0 or categorical[f] == 1
            if slot < NO_SLOT:
                begin = keys_at + f * stride
                stop = begin + own_rows
            elif slot == NO_SLOT and own_rows > SORT_ROWS:
                n_codes = np.int64(starts[f + 1]) - np.int64(starts[f])
                by_counts |= own_rows * HISTOGRAM_GAIN > n_codes * n_present
            if random:
                smallest, lowest, highest = gather_codes(codes, own, f, gathered)
                if smallest == highest:
                    continue
                first, draw = 0, 2 * n_features + i
                if categorical[f]:
                    own_seed = mix(node_seed, draw + 2)
                    m, drawn = draw_subset(gathered, own_rows, own_seed, named)
                    last, n_sides = 1, 2
                else:
                    gap = highest - lowest
                    first = 1 if smallest == 0 else 0
                    last = lowest + random_below(node_seed, draw, max(gap, 1))
                    m = first + min(gap, 1) + 1
                    bins[0], bins[first], bins[first + 1] = 0, last, last + 1
                    drawn, n_sides = 0, m
                sums_of_sides(
                    gathered,
                    own_tags,
                    own_rows,
                    last,
                    first,
                    factors,
                    node_weights,
                    k,
                    by_class,
                    sums,
                )
                value = best_cut(sums, first, n_sides, two, node, min_leaf, values, cut)
                if categorical[f]:
                    cut[LAST] = drawn
            elif by_counts:
                at, low, high = slot, np.uint64(starts[f]), np.uint64(starts[f + 1])
                if slot < 0:
                    at, low, high = slots, np.uint64(0), high - low
                    for c in range(n_classes + 1):
                        for b in range(high):
                            counts[at, c, b] = 0
                    if slot == NO_SLOT:
                        count_feature(codes, tags, own, f, counts, at)
                    else:
                        count_keys(keys, begin, stop, counts, at)
                if categorical[f]:
                    m = order_categories(
                        counts, at, low, high, present, n_present, slots + 1, named
                    )
                    at, low, high = slots + 1, np.uint64(0), np.uint64(m + 1)
                if two:
                    m = sums_of_two(counts, at, low, high, min_leaf > 1, bins, sums)
                else:
                    m = sums_of_counts(
                        counts,
                        at,
                        low,
                        high,
                        present,
                        n_present,
                        factors,
                        min_leaf > 1,
                        by_class,
                        running,
                        bins,
                        sums,
                    )
                if m < 2:
                    continue
                first = 1 if bins[0] == 0 else 0
                value = best_cut(sums, first, m, two, node, min_leaf, values, cut)
            else:
                if slot == NO_SLOT and own_rows <= SORT_ROWS:
                    keys_of_few_rows(codes, tags, own, f, keys)
                elif slot == NO_SLOT:
                    keys_of_rows(codes, tags, own, f, ends, keys, 0)
                code = keys[begin] >> CODE_SHIFT
                if code == keys[stop - 1] >> CODE_SHIFT:
                    continue
                first = 1 if code == 0 else 0
                if first == 1 or min_leaf > 1:
                    m = sums_of_keys(keys, begin, stop, first, factors, by_class, sums)
                    value = best_cut(sums, first, m, two, node, min_leaf, values, cut)
                elif two:
                    value = best_plain_cut_of_two(keys, begin, stop, node, best, sums, cut)
                else:
                    value = best_plain_cut(
                        keys, begin, stop, factors, node, best, by_class, sums, cut
                    )
            varying[n_stack, n_kept] = f
            n_kept += 1
            # Of features that tie, each is equally likely to win.
            n_tied = 1 if value > best else n_tied + (1 if value == best else 0)
            if value > best or (
                value == best
                and value > 0
                and random_below(node_seed, n_features + i, n_tied) == 0
            ):
                best, best_feature, best_first, best_m = value, f, first, m
                for j in range(CUT_FACTS):
                    winner[j] = cut[j]
                if not by_counts and not random:
                    best_m = list_bins(keys, begin, stop, best_bins)
                else:
                    for j in range(m):
                        best_bins[j] = named[j] if categorical[f] else bins[j]

        if best_feature < 0:
            nodes[k, FEATURE], nodes[k, LEFT] = 0, k
            nodes[k, THRESHOLD], nodes[k, SHIFT] = N_CODES - 1, 0
            if slot >= 0:
                free_slots[n_free] = slot
                n_free += 1
            continue

        f, left, place = best_feature, n_nodes, -1
        if categorical[f]:
            if n_sets == len(sets):
                sets = doubled(sets)
            place = n_sets
            n_sets += 1
        left_is_heavier = 2 * winner[LEFT_WEIGHT] >= node[TOTAL]
        write_split(
            best_bins, best_first, best_m, winner, left_is_heavier, place, sets, split
        )
        nodes[k, FEATURE], nodes[k, LEFT] = f, left
        nodes[k, THRESHOLD], nodes[k, SHIFT] = split[0], split[1]
        decrease[f] += best - purity(two, node)
        n_nodes += 2
        if n_nodes > len(nodes):
            nodes, node_weights = doubled(nodes), doubled(node_weights)
            node_rows = doubled(node_rows)
        if slot < NO_SLOT:
            at = keys_at + f * stride
            middle = start + mark_sides(
                keys, at, at + own_rows, split[0], split[1], sets, sides, node_weights, left
            )
        else:
            own = rows[start:end]
            middle = start + partition(
                codes, random, own, f, split[0], split[1], sets, spare
            )
            if two:
                node_weights[left, 0] = winner[LEFT_WEIGHT] - winner[LEFT_PRODUCTS]
                node_weights[left, 1] = winner[LEFT_PRODUCTS]
            else:
                weigh_classes(tags, rows[start:middle], node_weights, left)
        for c in range(n_classes):
            node_weights[left + 1, c] = node_weights[k, c] - node_weights[left, c]
        left_is_smaller = 2 * (middle - start) <= own_rows
        # The larger child takes its parent's histograms minus those of its sibling, if
        # that is cheaper than counting its rows.
        smaller_slot = NO_SLOT
        cells = n_bins * n_present // HISTOGRAM_GAIN
        smaller_rows = middle - start if left_is_smaller else end - middle
        if slot < NO_SLOT:
            other = SORTED + SORTED_TOO - slot
            if is_mixed(node_weights, left) or is_mixed(node_weights, left + 1):
                deal_keys(
                    keys,
                    varying,
                    n_stack,
                    n_kept,
                    keys_at,
                    stride,
                    own_rows,
                    sides,
                    (slot - other) * block_size,
                    middle - start,
                )
            slot, smaller_slot = other, other
        elif slot >= 0 and (own_rows - smaller_rows) * n_kept <= cells:
            free_slots[n_free] = slot
            n_free += 1
            slot = NO_SLOT
        elif slot >= 0:
            n_free -= 1
            smaller_slot = free_slots[n_free]
            small = rows[start:middle] if left_is_smaller else rows[middle:end]
            if needs_own_table(smaller_rows, tables[level], near_rows):
                floor = n_stack + 1
                level = make_subtree_table(
                    codes, tags, small, floor, tables, level, block, block_tags
                )
                codes, tags = block, block_tags
            for j in range(n_present):
                counts[smaller_slot, present[j]] = 0
            count_rows(codes, tags, small, starts, counts, smaller_slot)
            for j in range(n_present):
                of_larger = counts[slot, present[j]]
                of_smaller = counts[smaller_slot, present[j]]
                for b in range(n_bins):
                    of_larger[b] -= of_smaller[b]
            if smaller_rows * n_kept <= cells:
                free_slots[n_free] = smaller_slot
                n_free += 1
                smaller_slot = NO_SLOT

        # The smaller child goes on top of the stack.
        if n_stack + 2 > len(stack):
            stack, varying, seeds = doubled(stack), doubled(varying), doubled(seeds)
        for i in range(n_kept):
            varying[n_stack + 1, i] = varying[n_stack, i]
        for floor in range(2):
            is_left = left_is_smaller == (floor == 1)
            at = n_stack + floor
            stack[at, NODE] = left if is_left else left + 1
            stack[at, START], stack[at, END] = (start, middle) if is_left else (middle, end)
            stack[at, DEPTH], stack[at, N_VARYING] = depth + 1, n_kept
            stack[at, SLOT] = smaller_slot if floor == 1 else slot
            seeds[at, 0] = mix(node_seed, 0 if is_left else 1)
        n_stack += 2

    return (
        nodes[:n_nodes].copy(),
        node_weights[:n_nodes].copy(),
        node_rows[:n_nodes, 0].copy(),
        sets[:n_sets].copy(),
        decrease,
    )
