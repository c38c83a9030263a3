"""The slow, obvious way to grow a tree, to check the fast one against.

Plain Python on lists of rows: every cut of every feature is tried. Only the order in
which children are visited follows the kernel, since their numbers depend on it.
"""

from __future__ import annotations

MASK = 2**64 - 1


def mix(seed, branch):
    """splitmix64, as in the kernel."""
    x = (seed + (branch + 1) * 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def purity(n, p):
    return (float(n) * float(n) + float(p) * float(p)) / (float(n) + float(p))


def grow_slowly(codes, weights, positive, categorical, seed, max_depth=0, min_leaf=1):
    """Nodes as (feature, rule, left, right) or (None, negative, positive weight)."""
    nodes, n_features = [None], len(codes[0])

    def totals(rows):
        n = sum(int(weights[i]) for i in rows if not positive[i])
        p = sum(int(weights[i]) for i in rows if positive[i])
        return n, p

    def cuts(rows, f):
        """All ways to cut the node by a feature: (left codes, last left code, next)."""
        present = sorted({int(codes[i][f]) for i in rows})
        if categorical[f]:

            def rate(code):
                n, p = totals([i for i in rows if codes[i][f] == code])
                return p / (n + p)

            present.sort(key=rate)
            for i in range(len(present) - 1):
                yield set(present[: i + 1])
            return
        values = [code for code in present if code > 0]
        has_missing = 0 in present
        for i in range(len(values)):
            low = set(values[: i + 1])
            if i < len(values) - 1 or has_missing:
                yield low
            if i < len(values) - 1 and has_missing:
                yield low | {0}

    def visit(k, rows, depth, active, seed):
        n, p = totals(rows)
        nodes[k] = (None, n, p)
        if (
            n == 0
            or p == 0
            or (max_depth and depth >= max_depth)
            or len(rows) < 2 * min_leaf
        ):
            return
        best, choice, kept, tied = -1.0, None, [], 0
        for i, f in enumerate(active):
            if len({int(codes[row][f]) for row in rows}) < 2:
                continue
            kept.append(f)
            value_of_feature, cut_of_feature = -1.0, None
            for left_codes in cuts(rows, f):
                left = [row for row in rows if int(codes[row][f]) in left_codes]
                if len(left) < min_leaf or len(rows) - len(left) < min_leaf:
                    continue
                ln, lp = totals(left)
                value = purity(ln, lp) + purity(n - ln, p - lp)
                if value > value_of_feature:
                    value_of_feature, cut_of_feature = value, (f, left_codes, left)
            if cut_of_feature is None:
                continue
            tied = 1 if value_of_feature > best else tied + (value_of_feature == best)
            if value_of_feature > best or (
                value_of_feature == best and mix(seed, n_features + i + 2) % tied == 0
            ):
                best, choice = value_of_feature, cut_of_feature
        if choice is None:
            return
        f, left_codes, left = choice
        right = [row for row in rows if int(codes[row][f]) not in left_codes]
        child = len(nodes)
        nodes.extend([None, None])
        nodes[k] = (f, frozenset(left_codes), child, n, p)
        order = [(0, left), (1, right)]
        if len(left) * 2 > len(rows):
            order.reverse()
        for side, part in order:
            visit(child + side, part, depth + 1, kept, mix(seed, side))

    visit(0, list(range(len(codes))), 0, list(range(len(codes[0]))), seed)
    return nodes
