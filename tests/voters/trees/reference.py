"""The slow, obvious way to grow a tree, to check the fast one against.

Every cut of every feature is tried, or with ``random`` cuts the one that is drawn. Only how
numbers are drawn follows the kernel, and the order in which children are visited, since
their numbers depend on it.
"""

from __future__ import annotations

import numpy as np

MASK = 2**64 - 1


def mix(seed, branch):
    """splitmix64, as in the kernel."""
    x = (seed + (branch + 1) * 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def purity(weights):
    """The sum of squares over the sum."""
    return float((weights * weights).sum()) / float(weights.sum())


def order_of_rates(rates, weights):
    """Categories by the positive rate, or along the first principal component."""
    if rates.shape[1] == 2:
        return np.argsort(rates[:, 1], kind="stable")
    centred = rates - np.average(rates, axis=0, weights=weights)
    _, vectors = np.linalg.eigh(centred.T @ (weights[:, np.newaxis] * centred))
    return np.argsort(rates @ vectors[:, -1], kind="stable")


def below(seed, draw, n):
    """A random number from 0 to n - 1."""
    return mix(seed, draw + 2) % n


def drawn_categories(present, seed):
    """A random subset, neither none nor all; each size is as likely."""
    rest = list(present)
    size = 1 + below(seed, 0, len(rest) - 1)
    for j in range(size):
        other = j + below(seed, j + 1, len(rest) - j)
        rest[j], rest[other] = rest[other], rest[j]
    return set(rest[:size])


def grow_slowly(
    codes,
    weights,
    labels,
    n_classes,
    categorical,
    seed,
    max_depth=0,
    min_leaf=1,
    features=None,
    random=False,
):
    """Nodes as (feature, left codes, left child, weights) or (None, weights)."""
    nodes, n_features = [None], codes.shape[1]
    max_features = features or n_features

    def totals(rows):
        return np.bincount(labels[rows], weights[rows], n_classes).astype(np.int64)

    def cuts(rows, f):
        """All ways to cut the node by a feature, as the set of codes that go left."""
        present = sorted(set(codes[rows, f].tolist()))
        if categorical[f]:
            counts = np.array([totals(rows[codes[rows, f] == code]) for code in present])
            sums = counts.sum(axis=1)
            order = order_of_rates(counts / sums[:, np.newaxis], sums)
            ordered = [present[j] for j in order]
            for i in range(len(ordered) - 1):
                yield set(ordered[: i + 1])
            return
        values = [code for code in present if code > 0]
        has_missing = 0 in present
        for i in range(len(values)):
            low = set(values[: i + 1])
            if i < len(values) - 1 or has_missing:
                yield low
            if i < len(values) - 1 and has_missing:
                yield low | {0}

    def random_cuts(rows, f, i, seed):
        """The cut that is drawn, the missing on either side, or them against the rest."""
        present, draw = sorted(set(codes[rows, f].tolist())), 2 * n_features + i
        if categorical[f]:
            yield drawn_categories(present, mix(seed, draw + 2))
            return
        values = [code for code in present if code > 0]
        if len(values) > 1:
            last = values[0] + below(seed, draw, values[-1] - values[0])
            low = {code for code in values if code <= last}
            yield low
            if 0 in present:
                yield low | {0}
        if 0 in present:
            yield set(values)

    def visit(k, rows, depth, active, seed):
        own = totals(rows)
        nodes[k] = (None, own)
        deep = max_depth and depth >= max_depth
        if (own > 0).sum() < 2 or deep or len(rows) < 2 * min_leaf:
            return
        best, choice, kept, tied = -1.0, None, [], 0
        order = list(active)
        for i in range(len(order)):
            if len(kept) == max_features:
                kept = kept + order[i:]
                break
            if max_features < n_features:
                j = i + below(seed, i, len(order) - i)
                order[i], order[j] = order[j], order[i]
            f = order[i]
            if len(set(codes[rows, f].tolist())) < 2:
                continue
            kept.append(f)
            value_of_feature, cut_of_feature = -1.0, None
            for left_codes in random_cuts(rows, f, i, seed) if random else cuts(rows, f):
                inside = np.isin(codes[rows, f], list(left_codes))
                if inside.sum() < min_leaf or (~inside).sum() < min_leaf:
                    continue
                value = purity(totals(rows[inside])) + purity(totals(rows[~inside]))
                if value > value_of_feature:
                    value_of_feature, cut_of_feature = value, (f, left_codes, inside)
            if cut_of_feature is None:
                continue
            tied = 1 if value_of_feature > best else tied + (value_of_feature == best)
            if value_of_feature > best or (
                value_of_feature == best and below(seed, n_features + i, tied) == 0
            ):
                best, choice = value_of_feature, cut_of_feature
        if choice is None:
            return
        f, left_codes, inside = choice
        child = len(nodes)
        nodes.extend([None, None])
        nodes[k] = (f, frozenset(left_codes), child, own)
        order = [(0, rows[inside]), (1, rows[~inside])]
        if inside.sum() * 2 > len(rows):
            order.reverse()
        for side, part in order:
            visit(child + side, part, depth + 1, kept, mix(seed, side))

    visit(0, np.arange(len(codes)), 0, list(range(n_features)), seed)
    return nodes
