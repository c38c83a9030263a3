"""The built-in trees, from codes in bytes back to values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..voters.trees.binning import Binning
from ..voters.trees.forest import N_CODES, Forest
from .graph import Graph
from .table import Matrix, look_up
from .trees import LEAF, LEQ, LT, MEMBER, Trees


def read_own_trees(forest: Forest, binning: Binning, value: NDArray[np.float64]) -> Trees:
    """The trees with a value for each node.

    A code is one more than the number of cuts below a value, so a last code on the left
    is a largest value on the left; 0 is missing. Splits on categories stay splits on codes,
    in the columns that :func:`with_codes` adds.
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
    place = len(binning.n_codes) - 1 + np.cumsum(binning.categorical, dtype=np.int64)
    for k in np.flatnonzero(~is_leaf & forest.on_categories).tolist():
        in_set = forest.sets[forest.set_starts[owner[k]] + limit[k]]
        n_codes = int(binning.n_codes[trees.feature[k]])
        codes = np.flatnonzero(np.unpackbits(in_set, bitorder="little")[:n_codes])
        trees.mode[k], trees.sets[k] = MEMBER, codes.astype(np.float64)
        trees.feature[k] = place[trees.feature[k]]
    return trees


def with_codes(graph: Graph, X: Matrix, binning: Binning) -> str:
    """The features, and after them the codes of those that are categories.

    onnxruntime takes sets of whole numbers alone, and categories can be any.
    """
    columns = [X.name]
    for f in np.flatnonzero(binning.categorical).tolist():
        own = slice(int(binning.starts[f]), int(binning.starts[f + 1]))
        codes = look_up(
            graph,
            graph.add("Gather", X.name, graph.constant([f], np.int64), axis=1),
            binning.cuts[own],
            binning.category_codes[own].astype(np.int64),
            default=0,
        )
        columns.append(graph.cast(codes, np.float64))
    return graph.add("Concat", *columns, axis=1) if len(columns) > 1 else X.name
