"""What the boosters' own formats must hold, before their libraries get to see it.

Fed with trees that point nowhere, LightGBM never ends, and XGBoost and CatBoost end the
process. So the parts of their formats that are indices are checked here, and models of
kinds that are not checked are not taken.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..voters.trees.estimators import MAX_CLASSES
from .trees import need, need_family

TOKEN = re.compile(r"[0-9A-Za-z_.:+-]+")
CATEGORICAL = 1
"""The bit of LightGBM's ``decision_type`` that marks a split on categories."""
DEEPEST = 16
"""Of CatBoost's trees, which have a leaf for each way of answering their questions."""
MOST_FEATURES = 2**24
BY_NODE = ("split_feature", "threshold", "decision_type", "left_child", "right_child")


def check_lightgbm(text: str) -> None:
    """A model of LightGBM, as text."""
    need(text.isascii() or "\x00" not in text, "odd characters")
    head, first, rest = text.partition("\nTree=0\n")
    body, last, _ = rest.partition("\nend of trees\n")
    need(head.startswith("tree\n") and first and last, "no trees of LightGBM")
    header = _fields(head[len("tree\n") :])
    n_features = _whole(header["max_feature_idx"]) + 1
    need(0 < n_features < MOST_FEATURES, "no features")
    n_classes = _whole(header["num_class"])
    need(header["num_tree_per_iteration"] == header["num_class"], "trees for classes")
    need(n_classes == 1 or 2 < n_classes <= MAX_CLASSES, "a number of classes")
    # It writes as many numbers a row as its objective has classes.
    said = re.search(r" num_class:([0-9]+)", header["objective"])
    need((said[1] if said else "1") == header["num_class"], "an objective of other classes")
    need(len(header["feature_names"].split(" ")) == n_features, "names of features")
    need(len(header["feature_infos"].split(" ")) == n_features, "infos of features")
    blocks = re.split(r"(?m)^(?=Tree=[0-9]+$)", first[1:] + body + "\n")[1:]
    sizes = [_whole(size) for size in header["tree_sizes"].split(" ")]
    need([len(block.encode()) for block in blocks] == sizes, "sizes of trees")
    need(len(blocks) % n_classes == 0, "trees missing for some classes")
    for number, block in enumerate(blocks):
        fields = _fields(block)
        need(fields["Tree"] == str(number), "trees out of order")
        _check_lightgbm_tree(fields, n_features)


def _fields(lines: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in lines.split("\n"):
        if line:
            name, equals, value = line.partition("=")
            need(equals and name not in fields, f"a line {line[:40]!r}")
            fields[name] = value
    return fields


def _whole(text: Any) -> int:
    need(isinstance(text, str) and re.fullmatch(r"[0-9]{1,9}", text), "no number")
    return int(text)


def _numbers(text: str, n: int) -> NDArray[np.float64]:
    """So many numbers with a blank between."""
    tokens = text.split(" ") if text else []
    need(len(tokens) == n, f"{len(tokens)} numbers for {n}")
    need(all(TOKEN.fullmatch(token) for token in tokens), "what is no number")
    return np.array(tokens, dtype=np.float64)


def _integers(values: Any) -> NDArray[np.int64]:
    numbers = np.asarray(values)
    need(numbers.ndim == 1 and numbers.dtype.kind in "biuf", "numbers of no known kind")
    whole = np.isfinite(numbers) & (np.abs(numbers.astype(np.float64)) < 2**53)
    need(whole.all() and (numbers == np.floor(numbers)).all(), "what is no whole number")
    return numbers.astype(np.int64)


def _check_lightgbm_tree(fields: dict[str, str], n_features: int) -> None:
    n_leaves, n_sets = _whole(fields["num_leaves"]), _whole(fields["num_cat"])
    need(n_leaves > 0 and fields.get("is_linear", "0") == "0", "leaves of no known kind")
    need(not np.isnan(_numbers(fields["leaf_value"], n_leaves)).any(), "leaves are NaN")
    for name, value in fields.items():
        if name.startswith("leaf_") and name != "leaf_value":
            _numbers(value, n_leaves if value else 0)
        if name.startswith(("internal_", "split_gain")):
            _numbers(value, n_leaves - 1 if value else 0)
    if n_leaves == 1:
        return
    columns = {name: _numbers(fields[name], n_leaves - 1) for name in BY_NODE}
    need(not np.isnan(columns["threshold"]).any(), "thresholds are NaN")
    feature = _integers(columns["split_feature"])
    need(((feature >= 0) & (feature < n_features)).all(), "features out of range")
    n = n_leaves - 1
    children = [_integers(columns[name]) for name in ("left_child", "right_child")]
    for side in children:
        need(((side >= -n_leaves) & (side < n)).all(), "children out of range")
    # Leaf k is written as -k - 1; here it comes after all inner nodes.
    left, right = (np.where(side < 0, n - side - 1, side) for side in children)
    inner = np.arange(n + n_leaves) < n
    fill = np.zeros(n_leaves, dtype=np.int64)
    family = [np.concatenate([side, fill]) for side in (left, right)]
    need_family(family[0], family[1], inner, np.array([0, len(inner)]))
    kinds = _integers(columns["decision_type"])
    need(((kinds >= 0) & (kinds < 16)).all(), "splits of no known kind")
    named = (kinds & CATEGORICAL) != 0
    if n_sets == 0:
        need(not named.any(), "splits on no categories")
        return
    sets = columns["threshold"][named]
    need(((sets >= 0) & (sets < n_sets)).all(), "sets out of range")
    bounds = _integers(_numbers(fields["cat_boundaries"], n_sets + 1))
    words = fields["cat_threshold"].split(" ")
    _numbers(fields["cat_threshold"], len(words))
    need(bounds[0] == 0 and bounds[-1] == len(words), "sets do not add up")
    need((np.diff(bounds) > 0).all(), "sets out of order")


def check_xgboost(content: bytes) -> None:
    """A model of XGBoost, as JSON."""
    learner = json.loads(content)["learner"]
    booster, params = learner["gradient_booster"], learner["learner_model_param"]
    need(booster["name"] == "gbtree", f"XGBoost's {str(booster['name'])[:20]!r}")
    n_classes = _whole(params["num_class"])
    need(params.get("num_target", "1") == "1", "targets")
    need(n_classes == 0 or 2 < n_classes <= MAX_CLASSES, "a number of classes")
    known = learner["objective"].get("softmax_multiclass_param", {"num_class": "0"})
    need(known["num_class"] == params["num_class"], "an objective of other classes")
    n_starts = len(params["base_score"].split(","))
    need(n_starts in (1, n_classes), "starts for other classes")
    n_features = _whole(params["num_feature"])
    need(0 < n_features < MOST_FEATURES, "no features")
    model = booster["model"]
    trees = model["trees"]
    need(_whole(model["gbtree_model_param"]["num_trees"]) == len(trees), "trees missing")
    of_class = _integers(model["tree_info"])
    need(len(of_class) == len(trees), "trees for no class")
    most = max(n_classes, 1)
    need(((of_class >= 0) & (of_class < most)).all(), "trees for other classes")
    if "iteration_indptr" in model:
        rounds = _integers(model["iteration_indptr"])
        need(rounds[0] == 0 and rounds[-1] == len(trees), "rounds do not add up")
        need((np.diff(rounds) >= 0).all(), "rounds out of order")
    for tree in trees:
        _check_xgboost_tree(tree, n_features)


def _check_xgboost_tree(tree: dict[str, Any], n_features: int) -> None:
    params = tree["tree_param"]
    n = _whole(params["num_nodes"])
    need(n > 0 and params["size_leaf_vector"] in ("0", "1"), "leaves of no known kind")
    need(params["num_deleted"] == "0", "nodes that were cut off")
    need(_whole(params["num_feature"]) == n_features, "another number of features")
    columns = ("left_children", "right_children", "parents", "split_indices", "split_type")
    numbers = {name: _integers(tree[name]) for name in columns}
    for name in ("split_conditions", "default_left", "base_weights", "sum_hessian"):
        values = np.asarray(tree[name], dtype=np.float64)
        need(values.shape == (n,) and not np.isnan(values).any(), f"{name} is wrong")
    need(all(len(column) == n for column in numbers.values()), "columns of other lengths")
    left, right = numbers["left_children"], numbers["right_children"]
    inner = left != -1
    need(((right != -1) == inner).all(), "nodes with one child")
    need_family(left, right, inner, np.array([0, n]))
    nodes = np.flatnonzero(inner)
    parents = numbers["parents"]
    need((parents[left[nodes]] == nodes).all(), "parents of other children")
    need((parents[right[nodes]] == nodes).all(), "parents of other children")
    feature = numbers["split_indices"]
    need(((feature >= 0) & (feature < n_features)).all(), "features out of range")
    need((numbers["split_type"] == 0).all(), "splits on categories")
    for name in ("categories", "categories_nodes", "categories_segments"):
        need(not tree.get(name), "splits on categories")


def check_catboost(content: bytes, leaf_values: Any, scale_and_bias: Any) -> None:
    """A model of CatBoost, as JSON, and the exact values of its leaves and bias."""
    model = json.loads(content)
    features = model["features_info"]
    need(set(features) == {"float_features"}, "features that are no numbers")
    n_borders = 0
    for place, one in enumerate(features["float_features"]):
        need(type(one["feature_index"]) is int, "no number")
        need(one["feature_index"] == one["flat_feature_index"] == place, "features")
        borders = np.asarray(one["borders"] or [], dtype=np.float64)
        need(borders.ndim == 1 and np.isfinite(borders).all(), "borders are no numbers")
        need((np.diff(borders) > 0).all(), "borders out of order")
        n_borders += len(borders)
    need("trees" not in model, "trees of no known kind")
    scale, bias = model["scale_and_bias"]
    # One number a leaf for two classes, else one for each class.
    width = len(bias)
    need(width == 1 or 2 < width <= MAX_CLASSES, "a bias of no known kind")
    need(np.isfinite([scale, *bias]).all(), "a bias of no known kind")
    exact = np.ravel(scale_and_bias[1])
    need(exact.shape == (width,) and np.isfinite(exact).all(), "a bias of no known kind")
    need(np.isfinite(scale_and_bias[0]), "a scale of no known kind")
    _check_catboost_classes(model["model_info"], 2 if width == 1 else width)
    n_leaves = 0
    for tree in model["oblivious_trees"]:
        splits = tree["splits"] or []
        need(len(splits) <= DEEPEST, "too many questions")
        for split in splits:
            at = split["split_index"]
            need(split["split_type"] == "FloatFeature", "splits of no known kind")
            need(type(at) is int and 0 <= at < n_borders, "borders out of range")
            need(0 <= split["float_feature_index"] < len(features["float_features"]), "it")
        for name, times in (("leaf_values", width), ("leaf_weights", 1)):
            values = np.asarray(tree[name], dtype=np.float64)
            need(values.shape == (times * 2 ** len(splits),), f"{name} do not fit")
            need(np.isfinite(values).all(), f"{name} are not finite")
        n_leaves += width * 2 ** len(splits)
    need(isinstance(leaf_values, np.ndarray) and leaf_values.dtype == np.float64, "leaves")
    need(leaf_values.shape == (n_leaves,), "another number of leaves")
    need(np.isfinite(leaf_values).all(), "leaves are not finite")


def _check_catboost_classes(info: dict[str, Any], n_classes: int) -> None:
    """It looks its classes up by their numbers, and trusts these."""
    classes = info["class_params"]
    names, numbers = classes["class_names"], classes["class_to_label"]
    need(len(names) == len(set(map(str, names))) == n_classes, "names of classes")
    need(numbers == list(range(n_classes)), "numbers of classes")
    need(classes.get("classes_count", 0) in (0, n_classes), "a number of classes")
