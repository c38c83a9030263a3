"""Trees in a model file, the built-in ones and scikit-learn's, and what they must be like.

Compiled code walks both kinds and checks no index, so everything that it relies on is
checked once here: a file may come from anyone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _compat
from ..voters.trees.binning import MAX_BINS, Binning, Features
from ..voters.trees.estimators import MAX_CLASSES, FastTreeClassifier
from ..voters.trees.features import Categories
from ..voters.trees.forest import CATEGORIES, N_CODES, NODE_COLUMNS, SET_BYTES, Forest
from ..voters.trees.voters import TreeVoters
from .container import ModelFileError
from .values import Json, Reader, Writer

FAST_TREE = "damvi.FastTreeClassifier"
MOST_WEIGHT = 2**62
DEEPEST = 4096
"""Levels of a tree."""
TREE, BOOSTED_TREE, BINS = "sklearn.Tree", "sklearn.TreePredictor", "sklearn.BinMapper"
LOSSES = {
    "sklearn.HalfBinomialLoss": "HalfBinomialLoss",
    "sklearn.HalfMultinomialLoss": "HalfMultinomialLoss",
}
SKLEARN_PARTS = {BOOSTED_TREE: "TreePredictor", BINS: "_BinMapper", **LOSSES}
"""What scikit-learn's histogram boosting is made of."""
BITSET = (np.uint32, 8)
"""A set of up to 256 categories, in bits."""


def require(condition: Any, complaint: str) -> None:
    """Refuse the file unless the condition holds."""
    if not condition:
        raise ModelFileError(f"its trees are broken: {complaint}")


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
) -> int:
    """The depth of the deepest tree, if no tree is a mere chain of a file's making.

    Some kernels and libraries take memory or stack for each step from the root.
    """
    level, depth = roots[:-1], -1
    while len(level):
        depth += 1
        require(depth <= DEEPEST, f"trees of more than {DEEPEST:,} levels")
        parents = level[inner[level]]
        level = np.concatenate([left[parents], right[parents]])
    return depth


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
    require(isinstance(forest.weights, np.ndarray), "weights is no array")
    n = len(forest.nodes)
    require_array(forest.nodes, np.int32, (None, NODE_COLUMNS), "nodes")
    require_array(forest.sets, np.uint8, (None, SET_BYTES), "sets")
    two = forest.weights.ndim == 2 and forest.weights.shape[1] == 2
    require_array(forest.weights, np.int64 if two else np.int32, (n, None), "weights")
    require(2 <= forest.weights.shape[1] <= MAX_CLASSES, "weights of no known classes")
    require_array(forest.rows, np.int32, (n,), "rows")
    require_starts(forest.roots, None, n, 1, "roots")
    require_starts(forest.set_starts, len(forest), len(forest.sets), 0, "set_starts")
    require_array(forest.importances, np.float64, (len(forest), None), "importances")
    require(np.isfinite(forest.importances).all(), "importances are not finite")
    weights = forest.weights
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
    for column in columns:
        require(column is None or isinstance(column, dict), "categories of no known kind")
        numbers = [] if column is None else list(column.values())
        require(
            all(type(number) is int for number in numbers), "categories without numbers"
        )
        require(all(0 <= number < 2**31 for number in numbers), "categories out of range")


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


def check_steps(steps: Any) -> None:
    """The knots of a calibrator."""
    require_array(steps.votes, np.float32, (None,), "votes")
    require_array(steps.calibrated, np.float64, (len(steps.votes),), "calibrated votes")
    require(len(steps.votes) > 0 and np.isfinite(steps.calibrated).all(), "no knots")
    require((np.diff(steps.votes) > 0).all(), "knots out of order")


# scikit-learn's trees: arrays by name.


def sklearn_part_of(value: Any) -> str | None:
    """What part of scikit-learn's trees it is, if any."""
    name = type(value).__name__
    if name == "Tree" and type(value) is _compat.Tree:
        return TREE
    for kind, cls in SKLEARN_PARTS.items():
        if name == cls and type(value) is _compat.boosting_part(cls):
            return kind
    return None


def write_sklearn_part(writer: Writer, kind: str, value: Any) -> dict[str, Json]:
    """Its arrays by name."""
    if kind in LOSSES:
        many = LOSSES[kind] == "HalfMultinomialLoss"
        return {"n_classes": int(value.n_classes)} if many else {}
    if kind == BINS:
        return writer.state(vars(value))
    if kind == BOOSTED_TREE:
        sets = {
            name: getattr(value, name)
            for name in ("binned_left_cat_bitsets", "raw_left_cat_bitsets")
        }
        return writer.state({"nodes": _columns(value.nodes), **sets})
    state = value.__getstate__()
    return writer.state(
        {
            "n_features": int(value.n_features),
            "n_classes": np.asarray(value.n_classes),
            "max_depth": int(state["max_depth"]),
            "nodes": _columns(state["nodes"]),
            "values": np.ascontiguousarray(state["values"]),
        }
    )


def read_sklearn_part(reader: Reader, kind: str, stored: Json) -> Any:
    """The part that was written, checked as far as it can be alone."""
    state = reader.state(stored)
    if kind == TREE:
        return _read_tree(state)
    cls = _compat.boosting_part(SKLEARN_PARTS[kind])
    if kind in LOSSES:
        if LOSSES[kind] == "HalfBinomialLoss":
            return cls()
        n_classes = state["n_classes"]
        require(type(n_classes) is int and 2 < n_classes <= MAX_CLASSES, "their classes")
        return cls(n_classes=n_classes)
    if kind == BINS:
        bins = cls.__new__(cls)
        vars(bins).update(state)
        return bins
    nodes = _records(state["nodes"], _compat.boosting_nodes())
    tree = cls(nodes, state["binned_left_cat_bitsets"], state["raw_left_cat_bitsets"])
    check_boosted_tree(tree)
    return tree


def _read_tree(state: dict[str, Any]) -> Any:
    nodes = _records(state["nodes"], _compat.NODE_DTYPE)
    n_features, n_classes, values = (
        state[name] for name in ("n_features", "n_classes", "values")
    )
    require(isinstance(n_features, int) and 0 < n_features < 2**31, "no features")
    require_array(n_classes, np.intp, (1,), "numbers of classes")
    require(0 < n_classes[0] < 1000, "a number of classes out of range")
    require_array(values, np.float64, (len(nodes), 1, int(n_classes[0])), "values")
    require(np.isfinite(values).all(), "values that are not finite")
    tree = _compat.sklearn_tree(n_features, n_classes, nodes, values, state["max_depth"])
    check_tree(tree)
    return tree


def _columns(nodes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    assert nodes.dtype.names is not None
    return {name: np.ascontiguousarray(nodes[name]) for name in nodes.dtype.names}


def _records(columns: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """One record a node. scikit-learn may have added columns since, but lost none."""
    require(isinstance(columns, dict) and columns, "no nodes")
    for name, column in columns.items():
        require(
            dtype.names is not None and name in dtype.names, f"an unknown column {name!r}"
        )
        require(isinstance(column, np.ndarray) and column.ndim == 1, f"{name} is no column")
        kinds = {column.dtype.kind, dtype[name].kind}
        require(len(kinds) == 1 or kinds <= {"i", "u", "b"}, f"{name} is of another type")
    sizes = {len(column) for column in columns.values()}
    require(len(sizes) == 1 and min(sizes) > 0, "columns of different lengths")
    nodes = np.zeros(sizes.pop(), dtype=dtype)
    for name, column in columns.items():
        nodes[name] = column
        same = column.dtype.kind == "f" or (nodes[name] == column).all()
        require(same, f"{name} is out of range")
    return nodes


def check_tree(tree: Any) -> None:
    """A tree of :mod:`sklearn.tree`: its children, features and depth."""
    left, right = tree.children_left, tree.children_right
    inner = left != -1
    require(((right != -1) == inner).all(), "nodes with one child")
    ends = np.array([0, tree.node_count])
    require_family(left.astype(np.int64), right.astype(np.int64), inner, ends)
    feature = tree.feature[inner]
    require(((feature >= 0) & (feature < tree.n_features)).all(), "features out of range")
    require(not np.isnan(tree.threshold[inner]).any(), "thresholds are NaN")
    # scikit-learn makes room for paths of this length.
    require(_depth(left, right, inner) == tree.max_depth, "another depth than they say")


def _depth(left: NDArray[Any], right: NDArray[Any], inner: NDArray[np.bool_]) -> int:
    level, depth = np.array([0]), -1
    while len(level):
        parents = level[inner[level]]
        level = np.concatenate([left[parents], right[parents]])
        depth += 1
    return depth


def check_boosted_tree(tree: Any) -> None:
    """A tree of histogram boosting, as far as it can be told alone."""
    nodes = tree.nodes
    inner = nodes["is_leaf"] == 0
    left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
    require_family(left, right, inner, np.array([0, len(nodes)]))
    require((nodes["feature_idx"][inner] >= 0).all(), "features out of range")
    require(not np.isnan(nodes["num_threshold"][inner]).any(), "thresholds are NaN")
    require(np.isfinite(nodes["value"]).all(), "values that are not finite")
    dtype, width = BITSET
    for sets in (tree.binned_left_cat_bitsets, tree.raw_left_cat_bitsets):
        require(isinstance(sets, np.ndarray) and sets.dtype == dtype, "no sets")
        require(sets.ndim == 2 and sets.shape[1] == width, "sets of another size")
        named = inner & (nodes["is_categorical"] != 0)
        require((nodes["bitset_idx"][named] < len(sets)).all(), "sets out of range")


def check_tree_model(model: Any) -> None:
    """A tree as a classifier."""
    tree = vars(model).get("tree_")
    if tree is None:
        return
    require(type(tree) is _compat.Tree, "no tree")
    require(tree.n_features == model.n_features_in_, "another number of features")
    require(model.n_outputs_ == 1, "more than one output")


def check_forest_model(model: Any) -> None:
    """A forest as a classifier; it looks at the columns once for all its trees."""
    for one in vars(model).get("estimators_", []):
        require(type(vars(one).get("tree_")) is _compat.Tree, "no tree")
        require(one.n_features_in_ == model.n_features_in_, "another number of features")


def check_boosting_model(model: Any) -> None:
    """Histogram boosting as a classifier."""
    state = vars(model)
    if "_predictors" not in state:
        return
    n_features = state["n_features_in_"]
    bins = state["_bin_mapper"]
    require(type(bins) is _compat.boosting_part("_BinMapper"), "no bins")
    named = np.asarray(bins.is_categorical_).astype(bool)
    require(named.shape == (n_features,), "another number of features")
    thresholds = bins.bin_thresholds_
    require(isinstance(thresholds, list) and len(thresholds) == n_features, "bins missing")
    for column in np.flatnonzero(named):
        values = np.asarray(thresholds[column], dtype=np.float64)
        require(((values >= 0) & (values < 256)).all(), "categories out of range")
    cls = _compat.boosting_part("TreePredictor")
    n_classes = len(state["classes_"])
    width = 1 if n_classes == 2 else n_classes
    require(state["n_trees_per_iteration_"] == width, "trees for other classes")
    require(state["_baseline_prediction"].shape == (1, width), "no start")
    loss = "HalfBinomialLoss" if width == 1 else "HalfMultinomialLoss"
    require(type(state["_loss"]) is _compat.boosting_part(loss), "another loss")
    require(width == 1 or state["_loss"].n_classes == width, "a loss for other classes")
    for stage in state["_predictors"]:
        require(len(stage) == width, "trees for other classes")
        for tree in stage:
            require(type(tree) is cls, "no tree")
            inner = tree.nodes["is_leaf"] == 0
            feature = tree.nodes["feature_idx"][inner]
            require((feature < n_features).all(), "features out of range")
            split_by_name = tree.nodes["is_categorical"][inner] != 0
            require((named[feature] | ~split_by_name).all(), "sets for columns without any")


def check_everywhere(value: Any) -> None:
    """Check the trees inside any object, wherever they are."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, (str, bytes, int, float)):
            continue
        seen.add(id(one))
        kind = sklearn_part_of(one)
        if kind == TREE:
            check_tree(one)
        elif kind == BOOSTED_TREE:
            check_boosted_tree(one)
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, (list, tuple)):
            waiting.extend(one)
        elif isinstance(one, np.ndarray):
            waiting.extend(one.ravel().tolist() if one.dtype.kind == "O" else [])
        elif hasattr(one, "__dict__"):
            waiting.extend(vars(one).values())
