"""The built-in trees, from codes in bytes back to values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..voters.trees.binning import Binning
from ..voters.trees.forest import Forest
from ..voters.trees.splits import N_CODES
from .trees import LEAF, LEQ, LT, MEMBER, Trees


def read_own_trees(forest: Forest, binning: Binning, value: NDArray[np.float64]) -> Trees:
    """The trees with a value for each node.

    A code is one more than the number of cuts below a value, so a last code on the left
    is a largest value on the left; 0 is missing.
    """
    is_leaf, shift, limit = forest.is_leaf, forest.shift, forest.threshold.astype(np.int64)
    base = np.repeat(forest.roots[:-1], np.diff(forest.roots))
    left = np.where(is_leaf, LEAF, forest.left + base)
    last = np.minimum(limit + shift, N_CODES - 1)
    places = binning.starts[forest.feature] + last - 1
    by_order = ~is_leaf & ~forest.on_categories
    some = by_order & (last > 0) & (places < binning.starts[forest.feature + 1])
    threshold = np.where(by_order & (last > 0), np.inf, -np.inf)
    threshold[some] = binning.cuts[places[some]]
    mode = np.where(last > 0, LEQ, LT).astype(np.uint8)
    trees = Trees(
        roots=forest.roots[:-1].copy(),
        feature=forest.feature.astype(np.int64),
        mode=mode,
        threshold=threshold,
        left=left,
        right=np.where(is_leaf, LEAF, left + 1),
        missing_left=by_order & (((-shift) & (N_CODES - 1)) <= limit),
        value=np.asarray(value, dtype=np.float64),
        sets={},
    )
    owner = np.repeat(np.arange(len(forest)), np.diff(forest.roots))
    for k in np.flatnonzero(~is_leaf & forest.on_categories).tolist():
        in_set = forest.sets[forest.set_starts[owner[k]] + limit[k]]
        _split_on_categories(trees, k, np.unpackbits(in_set, bitorder="little"), binning)
    return trees


def _split_on_categories(
    trees: Trees, k: int, goes_left: NDArray[np.uint8], binning: Binning
) -> None:
    """Write a split on codes as one on values.

    Code 0, whatever was not seen at fit, has no list of values: the side without it is
    the set, and so on the left.
    """
    f = int(trees.feature[k])
    own = slice(int(binning.starts[f]), int(binning.starts[f + 1]))
    inside = goes_left[binning.category_codes[own]] == 1
    if goes_left[0]:
        inside = ~inside
        trees.left[k], trees.right[k] = trees.right[k], trees.left[k]
    trees.mode[k] = MEMBER
    trees.sets[k] = binning.cuts[own][inside]
