"""scikit-learn's trees in a model file: arrays by name, checked like our own.

They are asked by compiled code that checks no index.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _compat
from ..voters.trees.estimators import MAX_CLASSES
from .trees import need, need_family
from .values import Json, Reader, Writer

TREE, BOOSTED_TREE = "sklearn.Tree", "sklearn.TreePredictor"
BINS, LOSS = "sklearn.BinMapper", "sklearn.HalfBinomialLoss"
CLASS_LOSS = "sklearn.HalfMultinomialLoss"
KINDS = (TREE, BOOSTED_TREE, BINS, LOSS, CLASS_LOSS)
BITSET = (np.uint32, 8)
"""A set of up to 256 categories, in bits."""


def kind_of(value: Any) -> str | None:
    """What part of scikit-learn's trees it is, if any."""
    name = type(value).__name__
    if name == "Tree" and type(value) is _compat.Tree:
        return TREE
    parts = {
        "TreePredictor": BOOSTED_TREE,
        "_BinMapper": BINS,
        "HalfBinomialLoss": LOSS,
        "HalfMultinomialLoss": CLASS_LOSS,
    }
    if name in parts and type(value) is _compat.boosting_part(name):
        return parts[name]
    return None


def write(writer: Writer, kind: str, value: Any) -> dict[str, Json]:
    """Its arrays by name."""
    if kind == LOSS:
        return {}
    if kind == CLASS_LOSS:
        return {"n_classes": int(value.n_classes)}
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


def read(reader: Reader, kind: str, said: Json) -> Any:
    """The part that was written, checked as far as it can be alone."""
    state = reader.state(said)
    if kind == LOSS:
        return _compat.boosting_part("HalfBinomialLoss")()
    if kind == CLASS_LOSS:
        n_classes = state["n_classes"]
        need(type(n_classes) is int and 2 < n_classes <= MAX_CLASSES, "their classes")
        return _compat.boosting_part("HalfMultinomialLoss")(n_classes=n_classes)
    if kind == BINS:
        cls = _compat.boosting_part("_BinMapper")
        bins = cls.__new__(cls)
        vars(bins).update(state)
        return bins
    if kind == BOOSTED_TREE:
        cls = _compat.boosting_part("TreePredictor")
        nodes = _records(state["nodes"], _compat.boosting_nodes())
        tree = cls(nodes, state["binned_left_cat_bitsets"], state["raw_left_cat_bitsets"])
        check_boosted_tree(tree)
        return tree
    nodes = _records(state["nodes"], _compat.NODE_DTYPE)
    n_features, n_classes = state["n_features"], state["n_classes"]
    need(isinstance(n_features, int) and 0 < n_features < 2**31, "no features")
    need(
        isinstance(n_classes, np.ndarray)
        and n_classes.shape == (1,)
        and n_classes.dtype == np.intp
        and 0 < n_classes[0] < 1000,
        "a number of classes out of range",
    )
    values = state["values"]
    need(isinstance(values, np.ndarray) and values.dtype == np.float64, "no values")
    need(values.shape == (len(nodes), 1, int(n_classes[0])), "values of another shape")
    need(np.isfinite(values).all(), "values that are not finite")
    tree = _compat.sklearn_tree(n_features, n_classes, nodes, values, state["max_depth"])
    check_tree(tree)
    return tree


def _columns(nodes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    assert nodes.dtype.names is not None
    return {name: np.ascontiguousarray(nodes[name]) for name in nodes.dtype.names}


def _records(columns: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """One record a node. scikit-learn may have added columns since, but lost none."""
    need(isinstance(columns, dict) and columns, "no nodes")
    for name, column in columns.items():
        need(dtype.names is not None and name in dtype.names, f"an unknown column {name!r}")
        need(isinstance(column, np.ndarray) and column.ndim == 1, f"{name} is no column")
        kinds = {column.dtype.kind, dtype[name].kind}
        need(len(kinds) == 1 or kinds <= {"i", "u", "b"}, f"{name} is of another type")
    sizes = {len(column) for column in columns.values()}
    need(len(sizes) == 1 and min(sizes) > 0, "columns of different lengths")
    nodes = np.zeros(sizes.pop(), dtype=dtype)
    for name, column in columns.items():
        nodes[name] = column
        same = column.dtype.kind == "f" or (nodes[name] == column).all()
        need(same, f"{name} is out of range")
    return nodes


def check_tree(tree: Any) -> None:
    """A tree of :mod:`sklearn.tree`: its children, features and depth."""
    left, right = tree.children_left, tree.children_right
    inner = left != -1
    need(((right != -1) == inner).all(), "nodes with one child")
    ends = np.array([0, tree.node_count])
    need_family(left.astype(np.int64), right.astype(np.int64), inner, ends)
    feature = tree.feature[inner]
    need(((feature >= 0) & (feature < tree.n_features)).all(), "features out of range")
    need(not np.isnan(tree.threshold[inner]).any(), "thresholds are NaN")
    # scikit-learn makes room for paths of this length.
    need(_depth(left, right, inner) == tree.max_depth, "another depth than they say")


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
    need_family(left, right, inner, np.array([0, len(nodes)]))
    need((nodes["feature_idx"][inner] >= 0).all(), "features out of range")
    need(not np.isnan(nodes["num_threshold"][inner]).any(), "thresholds are NaN")
    need(np.isfinite(nodes["value"]).all(), "values that are not finite")
    dtype, width = BITSET
    for sets in (tree.binned_left_cat_bitsets, tree.raw_left_cat_bitsets):
        need(isinstance(sets, np.ndarray) and sets.dtype == dtype, "no sets")
        need(sets.ndim == 2 and sets.shape[1] == width, "sets of another size")
        named = inner & (nodes["is_categorical"] != 0)
        need((nodes["bitset_idx"][named] < len(sets)).all(), "sets out of range")


def check_tree_model(model: Any) -> None:
    """A tree as a classifier."""
    tree = vars(model).get("tree_")
    if tree is None:
        return
    need(type(tree) is _compat.Tree, "no tree")
    need(tree.n_features == model.n_features_in_, "another number of features")
    need(model.n_outputs_ == 1, "more than one output")


def check_forest_model(model: Any) -> None:
    """A forest as a classifier; it looks at the columns once for all its trees."""
    for one in vars(model).get("estimators_", []):
        need(type(vars(one).get("tree_")) is _compat.Tree, "no tree")
        need(one.n_features_in_ == model.n_features_in_, "another number of features")


def check_boosting_model(model: Any) -> None:
    """Histogram boosting as a classifier."""
    state = vars(model)
    if "_predictors" not in state:
        return
    n_features = state["n_features_in_"]
    bins = state["_bin_mapper"]
    need(type(bins) is _compat.boosting_part("_BinMapper"), "no bins")
    named = np.asarray(bins.is_categorical_).astype(bool)
    need(named.shape == (n_features,), "another number of features")
    thresholds = bins.bin_thresholds_
    need(isinstance(thresholds, list) and len(thresholds) == n_features, "bins missing")
    for column in np.flatnonzero(named):
        values = np.asarray(thresholds[column], dtype=np.float64)
        need(((values >= 0) & (values < 256)).all(), "categories out of range")
    cls = _compat.boosting_part("TreePredictor")
    n_classes = len(state["classes_"])
    width = 1 if n_classes == 2 else n_classes
    need(state["n_trees_per_iteration_"] == width, "trees for other classes")
    need(state["_baseline_prediction"].shape == (1, width), "no start")
    loss = "HalfBinomialLoss" if width == 1 else "HalfMultinomialLoss"
    need(type(state["_loss"]) is _compat.boosting_part(loss), "another loss")
    need(width == 1 or state["_loss"].n_classes == width, "a loss for other classes")
    for stage in state["_predictors"]:
        need(len(stage) == width, "trees for other classes")
        for tree in stage:
            need(type(tree) is cls, "no tree")
            inner = tree.nodes["is_leaf"] == 0
            feature = tree.nodes["feature_idx"][inner]
            need((feature < n_features).all(), "features out of range")
            split_by_name = tree.nodes["is_categorical"][inner] != 0
            need((named[feature] | ~split_by_name).all(), "sets for columns without any")


def check_everywhere(value: Any) -> None:
    """Check the trees inside any object, wherever they are."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, (str, bytes, int, float)):
            continue
        seen.add(id(one))
        kind = kind_of(one)
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
