"""The built-in trees in a model file, and what trees of any library must be like.

Compiled code walks them and checks no index, so everything that it relies on is checked
once here: a file may come from anyone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..voters.trees.binning import MAX_BINS, Binning, Features
from ..voters.trees.estimators import MAX_CLASSES, FastTreeClassifier
from ..voters.trees.features import Categories, HashedCategories
from ..voters.trees.forest import (
    CATEGORIES,
    N_CODES,
    NODE_COLUMNS,
    SET_BYTES,
    Forest,
    weight_type,
)
from ..voters.trees.voters import TreeVoters
from .container import Json, ModelFileError, Reader, Writer

FAST_TREE = "damvi.FastTreeClassifier"
MOST_WEIGHT = 2**62
DEEPEST = 4096
"""HashedCategories of a tree."""


def require(condition: Any, complaint: str) -> None:
    """Refuse the file unless the condition holds."""
    if not condition:
        raise ModelFileError(f"it is broken: {complaint}")


def require_array(array: Any, dtype: Any, shape: tuple[int | None, ...], name: str) -> None:
    """An array of this type and shape (None is any number), laid out row by row."""
    require(isinstance(array, np.ndarray), f"{name} is no array")
    require(array.dtype == dtype, f"{name} is of {array.dtype}, not {np.dtype(dtype)}")
    require(has_shape(array, shape), f"{name} has the shape {array.shape}")
    require(array.flags.c_contiguous, f"{name} is laid out by columns")


def has_shape(array: NDArray[Any], shape: tuple[int | None, ...]) -> bool:
    """Whether the array has this shape; None is any number."""
    sizes = zip(shape, array.shape, strict=False)
    return array.ndim == len(shape) and all(want in (None, n) for want, n in sizes)


def require_starts(starts: Any, parts: int | None, end: int, least: int, name: str) -> None:
    """Where parts start in a list of ``end`` items, each of ``least`` or more."""
    require_array(starts, np.int64, (None if parts is None else parts + 1,), name)
    require(
        len(starts) > 1 and starts[0] == 0 and starts[-1] == end, f"{name} do not add up"
    )
    # Compared, since differences could overflow.
    require((starts[1:] >= starts[:-1]).all(), f"{name} go back")
    require((np.diff(starts) >= least).all(), f"{name} leave parts empty")


def require_family(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    inner: NDArray[np.bool_],
    roots: NDArray[np.int64],
) -> None:
    """Children after their parents, in the same tree, and one parent for each node."""
    n = len(left)
    last = np.repeat(roots[1:], np.diff(roots))
    children = np.concatenate([left[inner], right[inner]])
    parents = np.tile(np.flatnonzero(inner), 2)
    require((children > parents).all(), "children before their parents")
    require((children < np.tile(last[inner], 2)).all(), "children outside of their tree")
    born = np.bincount(children, minlength=n)
    born[roots[:-1]] += 1
    require((born == 1).all(), "nodes with no parent, or with two")


def require_depth(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    inner: NDArray[np.bool_],
    roots: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The depth of each tree, if none is a mere chain of a file's making.

    Some kernels and libraries take memory or stack for each step from the root.
    """
    depths = np.zeros(len(roots) - 1, dtype=np.int64)
    level, trees, depth = roots[:-1], np.arange(len(depths)), 0
    while True:
        splits = inner[level]
        parents, trees = level[splits], np.tile(trees[splits], 2)
        if len(parents) == 0:
            return depths
        depth += 1
        require(depth <= DEEPEST, f"trees of more than {DEEPEST:,} levels")
        depths[trees] = depth
        level = np.concatenate([left[parents], right[parents]])


# The built-in trees.


def write_fast_tree(writer: Writer, tree: FastTreeClassifier) -> dict[str, Json]:
    """Its attributes, without the circle from its trees back to itself."""
    state = dict(vars(tree))
    state.pop("_metadata_request", None)
    trees = state.pop("trees_", None)
    grown = {} if trees is None else {"features": trees.features, "forest": trees.forest}
    return {"state": writer.state(state), "grown": writer.state(grown)}


def read_fast_tree(reader: Reader, stored: dict[str, Json]) -> FastTreeClassifier:
    """The tree that was written."""
    tree = FastTreeClassifier()
    tree.__dict__.update(reader.state(stored["state"]))
    grown = reader.state(stored["grown"])
    if grown:
        tree.trees_ = TreeVoters(tree, grown["features"], grown["forest"])
        check_voters(tree.trees_)
    return tree


def check_forest(forest: Forest) -> None:
    """All that the kernels of :mod:`damvi.voters.trees.forest` take for granted.

    The vote of a leaf is not stored but read off its weights, so it names a class that
    there is.
    """
    weights, n = forest.weights, len(forest.nodes)
    require(isinstance(weights, np.ndarray), "weights is no array")
    require(has_shape(weights, (n, None)), f"weights has the shape {weights.shape}")
    require_array(forest.nodes, np.int32, (None, NODE_COLUMNS), "nodes")
    require_array(forest.sets, np.uint8, (None, SET_BYTES), "sets")
    require_array(weights, weight_type(weights.shape[1]), (n, None), "weights")
    require(2 <= weights.shape[1] <= MAX_CLASSES, "weights of no known classes")
    require_array(forest.rows, np.int32, (n,), "rows")
    require_starts(forest.roots, None, n, 1, "roots")
    require_starts(forest.set_starts, len(forest), len(forest.sets), 0, "set_starts")
    require_array(forest.importances, np.float64, (len(forest), None), "importances")
    require(np.isfinite(forest.importances).all(), "importances are not finite")
    require(((weights >= 0) & (weights <= MOST_WEIGHT)).all(), "weights out of range")
    require((weights.sum(axis=1, dtype=np.int64) > 0).all(), "nodes without weight")
    require((forest.rows > 0).all(), "nodes without rows")
    feature, shift, threshold = forest.feature, forest.shift, forest.threshold
    n_features = forest.importances.shape[1]
    require(((feature >= 0) & (feature < n_features)).all(), "features out of range")
    require(np.isin(shift, (0, 1, CATEGORIES)).all(), "unknown kinds of splits")
    sizes = np.diff(forest.roots)
    n_sets = np.repeat(np.diff(forest.set_starts), sizes)
    most = np.where(shift == CATEGORIES, n_sets, N_CODES)
    require(((threshold >= 0) & (threshold < most)).all(), "thresholds out of range")
    is_leaf = forest.is_leaf
    ends = (shift[is_leaf] != CATEGORIES) & (threshold[is_leaf] == N_CODES - 1)
    require(ends.all(), "leaves that send rows on")
    roots = np.repeat(forest.roots[:-1], sizes)
    left = forest.left.astype(np.int64) + roots
    require_family(left, left + 1, ~is_leaf, forest.roots)
    require_depth(left, left + 1, ~is_leaf, forest.roots)


def check_binning(binning: Binning) -> None:
    """All that :func:`damvi.voters.trees.binning.encode` takes for granted."""
    cuts, starts = binning.cuts, binning.starts
    require_array(cuts, np.float64, (None,), "cuts")
    require_starts(starts, None, len(cuts), 0, "cuts' starts")
    sizes = np.diff(starts)
    n_features = len(sizes)
    require_array(binning.category_codes, np.uint8, (len(cuts),), "category codes")
    require_array(binning.categorical, np.uint8, (n_features,), "categorical")
    require_array(binning.n_codes, np.int64, (n_features,), "numbers of codes")
    require(not np.isnan(cuts).any(), "cuts are NaN")
    rises = np.ones(len(cuts), dtype=bool)
    rises[1:] = cuts[1:] > cuts[:-1]
    rises[starts[:-1][sizes > 0]] = True
    require(rises.all(), "cuts out of order")
    named = binning.categorical == 1
    require((named | (binning.categorical == 0)).all(), "categorical is not 0 or 1")
    require((sizes[~named] < MAX_BINS).all(), "too many cuts")
    require((binning.n_codes[~named] == sizes[~named] + 2).all(), "codes do not add up")
    n_codes = binning.n_codes
    require(((n_codes >= 1) & (n_codes <= N_CODES)).all(), "numbers of codes out of range")
    most = np.repeat(n_codes, sizes)
    require((binning.category_codes < most).all(), "category codes out of range")


def check_features(features: Features) -> None:
    """One column of categories for each of the bins."""
    require(isinstance(features.binning, Binning), "no bins")
    known = features.categories
    if known is None:
        return
    require(isinstance(known, Categories), "categories of no known kind")
    columns = known.by_column
    require(
        isinstance(columns, tuple) and len(columns) == len(features), "categories missing"
    )
    check_categories(known)


def check_categories(categories: Categories) -> None:
    """Whole numbers for the categories of each column."""
    require(isinstance(categories.by_column, tuple), "categories of no known kind")
    for column in categories.by_column:
        if isinstance(column, HashedCategories):  # checked when it was read
            continue
        require(column is None or isinstance(column, dict), "categories of no known kind")
        numbers = [] if column is None else list(column.values())
        require(
            all(type(number) is int for number in numbers), "categories without numbers"
        )
        require(all(0 <= number < 2**31 for number in numbers), "categories out of range")


def check_hashed(categories: HashedCategories) -> None:
    """As many buckets as there are codes for."""
    n = categories.n_buckets
    require(type(n) is int and 1 <= n < MAX_BINS, "buckets out of range")


def check_hashes(hashes: Any) -> None:
    """Of categories: they are found by halving."""
    require_array(hashes, np.uint64, (None,), "hashes")
    require((hashes[1:] > hashes[:-1]).all(), "hashes out of order")


def check_voters(voters: TreeVoters) -> None:
    """Trees, and the features that they look at."""
    require(isinstance(voters.tree, FastTreeClassifier), "no options")
    require(isinstance(voters.features, Features), "no features")
    require(isinstance(voters.forest, Forest), "no nodes")
    require(
        voters.forest.importances.shape[1] == len(voters.features),
        "they look at other features than there are",
    )


def check_model(model: Any) -> None:
    """A forest or tree as a classifier; one that is not fitted has nothing to check."""
    voters = vars(model).get("trees_")
    if voters is None:
        return
    require(isinstance(voters, TreeVoters), "no trees")
    classes = vars(model).get("classes_")
    shape = (voters.n_classes,)
    require(isinstance(classes, np.ndarray) and classes.shape == shape, "other classes")
    require(model.n_features_in_ == len(voters.features), "another number of features")
