"""Where the time of the built-in trees goes, next to what the hardware could do.

    python benchmarks/where_time_goes.py [--data FOLDER]

One thread, 20 trees a dataset, CPU time by stage. Counted beside it: the additions to
histograms (one a cell of a row that is counted), the steps that the rows would walk from
root to leaf, and the bytes of codes that a tree touches; with them the cost of one addition
and of one step, and the time that the bytes alone would take at the bandwidth measured in
the same run.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

TREES = 20


def bandwidth() -> float:
    """Bytes a second that one thread reads and adds, from an array beyond the caches."""
    array = np.ones(2**27 // 8)
    array.sum()
    start = time.process_time()
    for _ in range(5):
        array.sum()
    return 5 * array.nbytes / (time.process_time() - start)


def additions(tree, n_features: int, n_bins: int) -> int:
    """Additions to histograms: the root's, then the smaller children's, while they pay."""
    total = 0
    for k in np.flatnonzero(~tree.is_leaf):
        children = tree.rows[tree.left[k] : tree.left[k] + 2]
        if k == 0:
            total += int(tree.rows[0]) * n_features
        if int(tree.rows[k]) * n_features > n_bins:
            total += int(children.min()) * n_features
        else:
            total += int(tree.rows[k]) * n_features
    return total


def steps(tree) -> int:
    """Steps from root to leaf, over the rows that the tree was grown on."""
    return int(tree.rows[~tree.is_leaf].sum())


def main() -> int:
    from setting import add_data_option, print_setting

    from damvi.voters import BootstrapSampling, FastTreeClassifier
    from damvi.voters.trees.binning import Features
    from damvi.voters.trees.estimators import grow_tree
    from damvi.voters.trees.forest import Forest
    from voters import load

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser)
    args = parser.parse_args()
    print_setting("numba", "numpy")
    speed = bandwidth()
    print(f"memory: {speed / 1e9:.1f} GB/s read by one thread\n")
    print("milliseconds of CPU  bins  codes |  a tree: draw  gather   grow   vote")
    options = FastTreeClassifier()
    for name in ("credit_fraud", "protein_homo", "webpage", "mammography"):
        X, _, y, _ = load(name, args.data)
        labels, clock = (y > 0).astype(np.uint8), time.process_time
        signs = np.where(y > 0, 1, -1).astype(np.int8)
        mask = options.categorical_mask(X)
        Features.learn(mask, X[:500], signs[:500], 0).encode(X[:500])
        marks = [clock()]
        features = Features.learn(mask, X, signs, 0)
        marks.append(clock())
        codes = features.encode(X)
        marks.append(clock())
        sampling = BootstrapSampling.plan(labels, max_samples=0.2, seed=0)
        spent, trees, in_bag = np.zeros(4), [], 0
        for k in range(TREES + 1):
            stamps = [clock()]
            rows, times = sampling.sample(k)
            stamps.append(clock())
            own = codes[rows]
            stamps.append(clock())
            tree = grow_tree(options, features, 2, own, times, labels[rows], k)
            stamps.append(clock())
            if k > 0:  # the first loads the kernels
                spent[:3] += np.diff(stamps)
                trees.append(tree)
                in_bag += len(rows)
        forest = Forest.join(trees)
        votes = np.empty((len(y), TREES), np.int8, order="F")
        forest.cast(codes[:10], np.arange(TREES), votes[:10])
        stamp = clock()
        forest.cast(codes, np.arange(TREES), votes)
        spent[3] = clock() - stamp
        # In-bag rows are counted in the nodes; the others go as far on average.
        walked = sum(steps(tree) / tree.rows[0] for tree in trees) * len(y)
        n_bins = int(features.binning.n_codes.sum())
        added = sum(additions(tree, X.shape[1], n_bins) for tree in trees)
        per_tree = 1e3 * spent / TREES
        bins, encode = 1e3 * np.diff(marks)
        print(
            f"{name:18s} {bins:6.0f} {encode:6.0f} |       "
            + " ".join(f"{ms:7.3f}" for ms in per_tree)
        )
        moved = in_bag * 2 * X.shape[1] / TREES + codes.nbytes
        each_addition, each_step = 1e6 * per_tree[2:] * TREES / [added, walked]
        print(
            f"    {added / TREES:11,.0f} additions, {each_addition:5.2f} ns each\n"
            f"    {walked / TREES:11,.0f} steps,     {each_step:5.2f} ns each\n"
            f"    {moved / 1e6:11.1f} MB of codes,{1e3 * moved / speed:6.2f} ms in all"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
