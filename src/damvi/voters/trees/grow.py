"""The growth of one tree: depth first, the smaller child before the larger."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import kernel
from .forest import FEATURE, LEFT, N_CODES, NODE_COLUMNS, SET_BYTES, SHIFT, THRESHOLD
from .homes import (
    FLOOR,
    HOME_COLUMNS,
    MAX_HOMES,
    ROWS,
    room_for_homes,
    settle,
    should_move,
)
from .splits import (
    best_cut,
    bins_of_few_rows,
    bins_of_histogram,
    bins_of_rows,
    count_rows,
    mix,
    order_by_positive_rate,
    partition,
    purity,
    random_below,
    write_split,
)

SORT_ROWS = 24
"""Nodes of up to this many rows are sorted; counting them would visit empty bins."""
NO_SLOT = -1

# Columns of the stack of nodes that wait to be grown.
NODE, NEGATIVE_START, NEGATIVE_END, POSITIVE_START, POSITIVE_END = 0, 1, 2, 3, 4
DEPTH, SLOT, N_VARYING, NEGATIVE_WEIGHT, POSITIVE_WEIGHT, STACK_COLUMNS = 5, 6, 7, 8, 9, 10


@kernel
def taller(array: Any) -> Any:
    """A copy with twice the rows, the new ones empty."""
    copy = np.empty((2 * array.shape[0], array.shape[1]), array.dtype)
    copy[: array.shape[0]] = array
    return copy


@kernel
def histograms_at_once(n_cells: Any, n_bins: Any) -> Any:
    """How many nodes may keep histograms at a time.

    Those that wait are the larger siblings of smaller children, which halve the rows each
    time, down to as many cells as bins; then come the node itself and its smaller child.
    """
    slots = 2
    while n_bins < n_cells:
        n_bins *= 2
        slots += 1
    return slots


@kernel
def grow(
    codes: Any,
    weights: Any,
    negatives: Any,
    positives: Any,
    starts: Any,
    categorical: Any,
    max_depth: Any,
    min_leaf: Any,
    max_features: Any,
    seed: Any,
    near_rows: Any,
) -> Any:
    """Grow a tree on the rows of ``codes`` (r, d), whose numbers the two lists share out.

    ``starts`` (d + 1) says where each feature's bins start in a histogram. Tables of more
    than ``near_rows`` rows are too large for the caches (see :mod:`.homes`). Returns the
    nodes, their weights and rows, the sets of categories, and the decrease of impurity
    by feature.
    """
    n_rows, n_features = codes.shape
    n_bins = np.int64(starts[n_features])
    nodes = np.empty((256, NODE_COLUMNS), np.int32)
    node_weights = np.empty((256, 2), np.int64)
    node_rows = np.empty((256, 1), np.int32)
    decrease = np.zeros(n_features)
    sets = np.empty((4, SET_BYTES), np.uint8)
    n_nodes, n_sets = 1, 0

    # Histograms of all features pay off where all are tried.
    use_histograms = max_features == n_features and min_leaf == 1
    slots = histograms_at_once(n_rows * n_features, n_bins) if use_histograms else 1
    histograms = np.empty((slots, 2, n_bins if use_histograms else 1), np.int64)
    free_slots, n_free = np.arange(slots), slots
    bins, best_bins = np.empty((N_CODES, 4), np.int64), np.empty((N_CODES, 4), np.int64)
    scratch = np.zeros((N_CODES, 3), np.int64)
    order, spare = np.empty(n_features, np.int32), np.empty(n_rows, np.uint32)
    cut, best_cut_so_far = np.empty(4, np.int64), np.empty(4, np.int64)
    node, split = np.empty(3, np.int64), np.empty(2, np.int64)

    homes, level = np.zeros((MAX_HOMES, HOME_COLUMNS), np.int64), 0
    homes[0, ROWS] = n_rows
    room = room_for_homes(n_rows, near_rows)
    block, block_weights = np.empty((room, n_features), np.uint8), np.empty(room, np.int64)
    all_codes, all_weights = codes, weights

    stack = np.zeros((64, STACK_COLUMNS), np.int64)
    varying = np.empty((64, n_features), np.int32)
    seeds = np.empty((64, 1), np.uint64)
    stack[0, NEGATIVE_END], stack[0, POSITIVE_END] = len(negatives), len(positives)
    for row in negatives:
        stack[0, NEGATIVE_WEIGHT] += weights[row]
    for row in positives:
        stack[0, POSITIVE_WEIGHT] += weights[row]
    stack[0, SLOT], stack[0, N_VARYING] = NO_SLOT, n_features
    varying[0] = np.arange(n_features)
    seeds[0, 0] = seed
    if use_histograms and n_rows * n_features > n_bins:
        n_free -= 1
        slot = free_slots[n_free]
        histograms[slot] = 0
        count_rows(codes, weights, negatives, starts, histograms[slot, 0])
        count_rows(codes, weights, positives, starts, histograms[slot, 1])
        stack[0, SLOT] = slot

    n_stack = 1
    while n_stack > 0:
        n_stack -= 1
        top = stack[n_stack]
        k, depth, slot, n_varying = top[NODE], top[DEPTH], top[SLOT], top[N_VARYING]
        ns, ne, ps, pe = (
            top[NEGATIVE_START],
            top[NEGATIVE_END],
            top[POSITIVE_START],
            top[POSITIVE_END],
        )
        node[0], node[1] = top[NEGATIVE_WEIGHT], top[POSITIVE_WEIGHT]
        node[2] = (ne - ns) + (pe - ps)
        node_weights[k, 0], node_weights[k, 1], node_rows[k, 0] = node[0], node[1], node[2]
        node_seed = seeds[n_stack, 0]
        while homes[level, FLOOR] > n_stack:
            level -= 1
        if level == 0:
            codes, weights = all_codes, all_weights

        # The best split over the features (all, or a random few) that still vary.
        best, best_feature, best_first, best_m = -1.0, -1, 0, 0
        n_kept, n_tied = 0, 0
        may_split = ne > ns and pe > ps and node[2] >= 2 * min_leaf
        if may_split and n_varying > 0 and (max_depth == 0 or depth < max_depth):
            if should_move(node[2], homes[level], near_rows):
                own_n, own_p = negatives[ns:ne], positives[ps:pe]
                level = settle(
                    codes,
                    weights,
                    own_n,
                    own_p,
                    n_stack,
                    homes,
                    level,
                    block,
                    block_weights,
                )
                codes, weights = block, block_weights
            for i in range(n_varying):
                order[i] = varying[n_stack, i]
            for i in range(n_varying):
                if n_kept == max_features:
                    for j in range(i, n_varying):  # not looked at: they may vary
                        varying[n_stack, n_kept] = order[j]
                        n_kept += 1
                    break
                if max_features < n_features:
                    j = i + random_below(node_seed, i, n_varying - i)
                    order[i], order[j] = order[j], order[i]
                f = order[i]
                if slot >= 0:
                    m = bins_of_histogram(
                        histograms[slot, 0],
                        histograms[slot, 1],
                        starts[f],
                        starts[f + 1],
                        bins,
                    )
                elif node[2] <= SORT_ROWS:
                    m = bins_of_few_rows(
                        codes, weights, negatives[ns:ne], positives[ps:pe], f, bins
                    )
                else:
                    m = bins_of_rows(
                        codes, weights, negatives[ns:ne], positives[ps:pe], f, scratch, bins
                    )
                if m < 2:
                    continue
                varying[n_stack, n_kept] = f
                n_kept += 1
                first = 0
                if categorical[f]:
                    order_by_positive_rate(bins, m)
                elif bins[0, 0] == 0:
                    first = 1
                value = best_cut(bins, first, m, node, min_leaf, cut)
                # Of features that tie, each is as likely to win.
                n_tied = 1 if value > best else n_tied + (1 if value == best else 0)
                if value > best or (
                    value == best
                    and value > 0
                    and random_below(node_seed, n_features + i, n_tied) == 0
                ):
                    best, best_feature, best_first, best_m = value, f, first, m
                    best_cut_so_far[:] = cut
                    for j in range(m):
                        best_bins[j, 0] = bins[j, 0]

        if best_feature < 0:
            nodes[k, FEATURE], nodes[k, LEFT] = 0, k
            nodes[k, THRESHOLD], nodes[k, SHIFT] = N_CODES - 1, 0
            if slot >= 0:
                free_slots[n_free] = slot
                n_free += 1
            continue

        f, left = best_feature, n_nodes
        place = -1
        if categorical[f]:
            if n_sets == len(sets):
                sets = taller(sets)
            place = n_sets
            n_sets += 1
        left_weight = best_cut_so_far[2] + best_cut_so_far[3]
        write_split(
            best_bins,
            best_first,
            best_m,
            best_cut_so_far,
            2 * left_weight >= node[0] + node[1],
            place,
            sets,
            split,
        )
        nodes[k, FEATURE], nodes[k, LEFT] = f, left
        nodes[k, THRESHOLD], nodes[k, SHIFT] = split[0], split[1]
        decrease[f] += best - purity(node[0], node[1])
        n_nodes += 2
        if n_nodes > len(nodes):
            nodes, node_weights, node_rows = (
                taller(nodes),
                taller(node_weights),
                taller(node_rows),
            )
        nm = ns + partition(codes, negatives[ns:ne], f, split[0], split[1], sets, spare)
        pm = ps + partition(codes, positives[ps:pe], f, split[0], split[1], sets, spare)

        # The larger child takes its parent's histograms, less those of its sibling,
        # where that is cheaper than to count its rows.
        left_rows = (nm - ns) + (pm - ps)
        left_is_smaller = 2 * left_rows <= node[2]
        smaller_rows = left_rows if left_is_smaller else node[2] - left_rows
        smaller_slot = NO_SLOT
        if slot >= 0 and (node[2] - smaller_rows) * n_kept <= n_bins:
            free_slots[n_free] = slot
            n_free += 1
            slot = NO_SLOT
        elif slot >= 0:
            n_free -= 1
            smaller_slot = free_slots[n_free]
            histograms[smaller_slot] = 0
            small_n = negatives[ns:nm] if left_is_smaller else negatives[nm:ne]
            small_p = positives[ps:pm] if left_is_smaller else positives[pm:pe]
            if should_move(smaller_rows, homes[level], near_rows):
                level = settle(
                    codes,
                    weights,
                    small_n,
                    small_p,
                    n_stack + 1,
                    homes,
                    level,
                    block,
                    block_weights,
                )
                codes, weights = block, block_weights
            count_rows(codes, weights, small_n, starts, histograms[smaller_slot, 0])
            count_rows(codes, weights, small_p, starts, histograms[smaller_slot, 1])
            for side in range(2):
                for b in range(n_bins):
                    histograms[slot, side, b] -= histograms[smaller_slot, side, b]
            if smaller_rows * n_kept <= n_bins:
                free_slots[n_free] = smaller_slot
                n_free += 1
                smaller_slot = NO_SLOT

        # The smaller child goes on top of the stack.
        if n_stack + 2 > len(stack):
            stack, varying, seeds = taller(stack), taller(varying), taller(seeds)
        varying[n_stack + 1, :n_kept] = varying[n_stack, :n_kept]
        for floor in range(2):
            is_left = left_is_smaller == (floor == 1)
            child = stack[n_stack + floor]
            child[NODE] = left if is_left else left + 1
            child[NEGATIVE_START], child[NEGATIVE_END] = (ns, nm) if is_left else (nm, ne)
            child[POSITIVE_START], child[POSITIVE_END] = (ps, pm) if is_left else (pm, pe)
            child[DEPTH] = depth + 1
            child[SLOT] = smaller_slot if floor == 1 else slot
            child[N_VARYING] = n_kept
            left_n, left_p = best_cut_so_far[2], best_cut_so_far[3]
            child[NEGATIVE_WEIGHT] = left_n if is_left else node[0] - left_n
            child[POSITIVE_WEIGHT] = left_p if is_left else node[1] - left_p
            seeds[n_stack + floor, 0] = mix(node_seed, 0 if is_left else 1)
        n_stack += 2

    return (
        nodes[:n_nodes].copy(),
        node_weights[:n_nodes].copy(),
        node_rows[:n_nodes, 0].copy(),
        sets[:n_sets].copy(),
        decrease,
    )
