"""The growth of one tree of three or more classes: as :mod:`.grow` does for two."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import kernel
from .class_cuts import SUMS, best_cut, best_plain_cut, sums_of_histograms, sums_of_keys
from .class_keys import (
    CODE_SHIFT,
    count_classes,
    keys_of_few_rows,
    keys_of_histograms,
    keys_of_rows,
    list_bins,
    weigh_classes,
)
from .class_order import order_by_class_rates
from .forest import FEATURE, LEFT, N_CODES, NODE_COLUMNS, SET_BYTES, SHIFT, THRESHOLD
from .grow import NO_SLOT, SORT_ROWS, histograms_at_once, taller
from .homes import (
    FLOOR,
    HOME_COLUMNS,
    MAX_HOMES,
    ROWS,
    room_for_homes,
    settle,
    should_move,
)
from .sorted_keys import mark_sides, rows_to_sort, share_out, sort_keys
from .splits import mix, partition, random_below, write_split

# Columns of the stack of nodes that wait to be grown.
NODE, START, END, DEPTH, SLOT, N_VARYING, STACK_COLUMNS = 0, 1, 2, 3, 4, 5, 6
SORTED, SORTED_TOO = -2, -3
"""The slots of a node whose keys are sorted, and of all below it: the block they are in."""
HISTOGRAM_GAIN = 4
"""Bins of a class that are looked through in the time that a row takes."""


@kernel
def is_mixed(weights: Any, k: Any) -> Any:
    """Whether a node has more than one class."""
    n = 0
    for c in range(weights.shape[1]):
        n += 1 if weights[k, c] > 0 else 0
    return n > 1


@kernel
def grow_classes(
    codes: Any,
    tags: Any,
    rows: Any,
    n_classes: Any,
    starts: Any,
    categorical: Any,
    max_depth: Any,
    min_leaf: Any,
    max_features: Any,
    seed: Any,
    near_rows: Any,
) -> Any:
    """Grow a tree on the rows of ``codes`` (r, d).

    ``tags`` are the rows' classes and weights (see :mod:`.class_keys`), and ``rows``
    their numbers in the order of the classes. The rest, and what is returned, is as in
    :func:`~damvi.voters.trees.grow.grow`.
    """
    n_rows, n_features = codes.shape
    n_bins = np.int64(starts[n_features])
    nodes = np.empty((256, NODE_COLUMNS), np.int32)
    node_weights = np.empty((256, n_classes), np.int32)
    node_rows = np.empty((256, 1), np.int32)
    decrease = np.zeros(n_features)
    sets = np.empty((4, SET_BYTES), np.uint8)
    n_nodes, n_sets = 1, 0

    use_histograms = max_features == n_features and min_leaf == 1
    # A node that splits has two classes at least.
    least = max(1, 2 * n_bins // HISTOGRAM_GAIN)
    slots = histograms_at_once(n_rows * n_features, least) if use_histograms else 1
    histograms = np.empty((slots, n_classes, n_bins if use_histograms else 1), np.int32)
    free_slots, n_free = np.arange(slots), slots
    ends, running = np.zeros(N_CODES, np.int64), np.empty((4, N_CODES), np.int64)
    bins, best_bins = np.empty(N_CODES, np.int64), np.empty((N_CODES, 1), np.int64)
    values, split = np.empty(N_CODES), np.empty(2, np.int64)
    cut, best_cut_so_far = np.empty(3, np.int64), np.empty(3, np.int64)
    totals, present = np.empty(n_classes, np.int64), np.empty(n_classes, np.int64)
    by_class = np.empty((2, n_classes), np.int64)
    order, spare = np.empty(n_features, np.int32), np.empty(n_rows, np.uint32)

    homes, level = np.zeros((MAX_HOMES, HOME_COLUMNS), np.int64), 0
    homes[0, ROWS] = n_rows
    room = room_for_homes(n_rows, near_rows)
    block, block_tags = np.empty((room, n_features), np.uint8), np.empty(room, np.int64)
    all_codes, all_tags = codes, tags

    few_rows = min(rows_to_sort(n_features), n_rows) if max_features == n_features else 0
    # The keys of one feature, and behind them those of small subtrees.
    block_start = max(n_rows, N_CODES * n_classes)
    # An odd number of cache lines a feature, lest all fall on the same few.
    stride = 16 * (few_rows // 16) + 24
    block_size = n_features * stride
    keys, sorted_at = np.empty(block_start + 2 * block_size, np.int64), block_start
    sums, sides = np.empty((SUMS, block_start), np.int64), np.empty(few_rows, np.uint8)

    stack = np.zeros((64, STACK_COLUMNS), np.int64)
    varying = np.empty((64, n_features), np.int32)
    seeds = np.empty((64, 1), np.uint64)
    stack[0, END], stack[0, SLOT], stack[0, N_VARYING] = n_rows, NO_SLOT, n_features
    varying[0] = np.arange(n_features)
    seeds[0, 0] = seed
    weigh_classes(tags, rows, node_weights, 0)
    if use_histograms and n_rows * n_features * HISTOGRAM_GAIN > n_bins * n_classes:
        n_free -= 1
        stack[0, SLOT] = free_slots[n_free]
        histograms[free_slots[n_free]] = 0
        count_classes(codes, tags, rows, starts, histograms[free_slots[n_free]])

    n_stack, own = 1, rows
    while n_stack > 0:
        n_stack -= 1
        k, depth = stack[n_stack, NODE], stack[n_stack, DEPTH]
        start, end = stack[n_stack, START], stack[n_stack, END]
        slot, n_varying = stack[n_stack, SLOT], stack[n_stack, N_VARYING]
        own_rows = end - start
        node_rows[k, 0] = own_rows
        n_present, total, squares = 0, np.int64(0), np.int64(0)
        for c in range(n_classes):
            totals[c] = node_weights[k, c]
            if totals[c] > 0:
                present[n_present] = c
                n_present += 1
                total += totals[c]
                squares += totals[c] * totals[c]
        node_seed = seeds[n_stack, 0]
        while homes[level, FLOOR] > n_stack:
            level -= 1
        if level == 0:
            codes, tags = all_codes, all_tags

        # The best split over the features (all, or a random few) that still vary.
        best, best_feature, best_first, best_m = -1.0, -1, 0, 0
        n_kept, n_tied, keys_at = 0, 0, 0
        may_split = n_present > 1 and own_rows >= 2 * min_leaf
        if may_split and n_varying > 0 and (max_depth == 0 or depth < max_depth):
            if slot >= NO_SLOT:
                own = rows[start:end]
            if slot == NO_SLOT and own_rows <= few_rows:
                active = varying[n_stack, :n_varying]
                sort_keys(codes, tags, own, active, ends, keys, block_start, stride)
                slot, sorted_at = SORTED, block_start - start
            elif slot >= NO_SLOT and should_move(own_rows, homes[level], near_rows):
                level = settle(
                    codes, tags, own, own[:0], n_stack, homes, level, block, block_tags
                )
                codes, tags = block, block_tags
            keys_at = sorted_at + (SORTED - slot) * block_size + start
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
                begin, stop, m = 0, own_rows, 0
                if slot >= 0 and not categorical[f]:
                    m = sums_of_histograms(
                        histograms[slot],
                        present,
                        n_present,
                        starts[f],
                        starts[f + 1],
                        totals,
                        by_class,
                        running,
                        bins,
                        sums,
                    )
                    if m < 2:
                        continue
                    first = 1 if bins[0] == 0 else 0
                    value = best_cut(sums, first, m, squares, total, 0, 1, values, cut)
                else:
                    if slot >= 0:
                        stop = keys_of_histograms(
                            histograms[slot],
                            present,
                            n_present,
                            starts[f],
                            starts[f + 1],
                            keys,
                        )
                    elif slot < NO_SLOT:
                        begin = keys_at + f * stride
                        stop = begin + own_rows
                    elif own_rows <= SORT_ROWS:
                        keys_of_few_rows(codes, tags, own, f, keys)
                    else:
                        keys_of_rows(codes, tags, own, f, ends, keys, 0)
                    low = keys[begin] >> CODE_SHIFT
                    if low == keys[stop - 1] >> CODE_SHIFT:
                        continue
                    first = 1 if low == 0 and not categorical[f] else 0
                    if categorical[f]:
                        order_by_class_rates(keys[begin:stop], n_classes, keys)
                        begin, stop = 0, stop - begin
                    if first == 0 and min_leaf == 1:
                        value = best_plain_cut(
                            keys,
                            begin,
                            stop,
                            totals,
                            squares,
                            total,
                            best,
                            by_class,
                            sums,
                            cut,
                        )
                    else:
                        m = sums_of_keys(keys, begin, stop, first, totals, by_class, sums)
                        value = best_cut(
                            sums, first, m, squares, total, own_rows, min_leaf, values, cut
                        )
                varying[n_stack, n_kept] = f
                n_kept += 1
                # Of features that tie, each is as likely to win.
                n_tied = 1 if value > best else n_tied + (1 if value == best else 0)
                if value > best or (
                    value == best
                    and value > 0
                    and random_below(node_seed, n_features + i, n_tied) == 0
                ):
                    best, best_feature, best_first, best_m = value, f, first, m
                    for j in range(3):
                        best_cut_so_far[j] = cut[j]
                    if slot < 0 or categorical[f]:
                        best_m = list_bins(keys, begin, stop, bins)
                    for j in range(best_m):
                        best_bins[j, 0] = bins[j]

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
        left_is_heavier = 2 * best_cut_so_far[2] >= total
        write_split(
            best_bins,
            best_first,
            best_m,
            best_cut_so_far,
            left_is_heavier,
            place,
            sets,
            split,
        )
        nodes[k, FEATURE], nodes[k, LEFT] = f, left
        nodes[k, THRESHOLD], nodes[k, SHIFT] = split[0], split[1]
        decrease[f] += best - float(squares) / float(total)
        n_nodes += 2
        if n_nodes > len(nodes):
            nodes, node_weights, node_rows = (
                taller(nodes),
                taller(node_weights),
                taller(node_rows),
            )
        if slot < NO_SLOT:
            begin = keys_at + f * stride
            middle = start + mark_sides(
                keys,
                begin,
                begin + own_rows,
                split[0],
                split[1],
                sets,
                sides,
                node_weights,
                left,
            )
        else:
            own = rows[start:end]
            middle = start + partition(codes, own, f, split[0], split[1], sets, spare)
            weigh_classes(tags, rows[start:middle], node_weights, left)
        for c in range(n_classes):
            node_weights[left + 1, c] = totals[c] - node_weights[left, c]
        left_is_smaller = 2 * (middle - start) <= own_rows
        # The larger child takes its parent's histograms, less those of its sibling,
        # where that is cheaper than to count its rows.
        smaller_slot = NO_SLOT
        cells = n_bins * n_present // HISTOGRAM_GAIN
        smaller_rows = middle - start if left_is_smaller else end - middle
        if slot < NO_SLOT:
            other = SORTED + SORTED_TOO - slot
            if is_mixed(node_weights, left) or is_mixed(node_weights, left + 1):
                share_out(
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
            if should_move(smaller_rows, homes[level], near_rows):
                level = settle(
                    codes,
                    tags,
                    small,
                    small[:0],
                    n_stack + 1,
                    homes,
                    level,
                    block,
                    block_tags,
                )
                codes, tags = block, block_tags
            for j in range(n_present):
                histograms[smaller_slot, present[j]] = 0
            count_classes(codes, tags, small, starts, histograms[smaller_slot])
            for j in range(n_present):
                of_larger = histograms[slot, present[j]]
                of_smaller = histograms[smaller_slot, present[j]]
                for b in range(n_bins):
                    of_larger[b] -= of_smaller[b]
            if smaller_rows * n_kept <= cells:
                free_slots[n_free] = smaller_slot
                n_free += 1
                smaller_slot = NO_SLOT

        # The smaller child goes on top of the stack.
        if n_stack + 2 > len(stack):
            stack, varying, seeds = taller(stack), taller(varying), taller(seeds)
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
