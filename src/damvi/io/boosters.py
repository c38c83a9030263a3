"""LightGBM, XGBoost and CatBoost in a model file, in the text formats that they define.

Text, since only what can be read can be checked. Fed with trees that point nowhere,
LightGBM never ends, and XGBoost and CatBoost end the process. So the parts of their
formats that are indices are parsed and checked here before the libraries get to see
them, and models of kinds that are not checked are not taken.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..voters.trees.estimators import MAX_CLASSES
from .container import ModelFileError
from .trees import require, require_family
from .values import Json, Reader, Writer

LIGHTGBM, XGBOOST = "lightgbm.LGBMClassifier", "xgboost.XGBClassifier"
CATBOOST = "catboost.CatBoostClassifier"
KINDS = (LIGHTGBM, XGBOOST, CATBOOST)
TRAINED = {LIGHTGBM: "_Booster", XGBOOST: "_Booster", CATBOOST: "_object"}
"""The attribute that holds the trained model."""
CATBOOST_STATE = {"_init_params", "_prediction_values_change"}
"""What is kept of a CatBoost model beside the trained one."""
PARTS = {"model", "leaf_values", "scale_and_bias", "best_iteration"}

TOKEN = re.compile(r"[0-9A-Za-z_.:+-]+")
CATEGORICAL = 1
"""The bit of LightGBM's ``decision_type`` that marks a split on categories."""
DEEPEST = 16
"""Of CatBoost's trees, which have a leaf for each way of answering their questions."""
MOST_FEATURES = 2**24
BY_NODE = ("split_feature", "threshold", "decision_type", "left_child", "right_child")

Columns = dict[str, NDArray[Any]]


def booster_of(value: Any) -> str | None:
    """Which booster it is, if any; one that nobody has imported it cannot be."""
    for kind in KINDS:
        package, _, name = kind.partition(".")
        module = sys.modules.get(package)
        if module is not None and type(value) is getattr(module, name, None):
            return kind
    return None


def write_booster(writer: Writer, kind: str, model: Any) -> dict[str, Json]:
    """Its attributes, and the trained model in the library's own format."""
    state = dict(vars(model))
    state.pop("_metadata_request", None)
    trained = state.pop(TRAINED[kind], None)
    try:
        parts = _parts_of(kind, model, trained)
        _check(kind, parts)
    except Exception as error:  # what is not checked on loading is not saved either
        package = kind.partition(".")[0]
        raise ModelFileError(
            f"{writer.where} cannot be saved: model files do not take models by {package} "
            f"of this kind ({_reason(error)}); use its default trees, on numbers"
        ) from error
    if kind == CATBOOST:
        state = {name: state[name] for name in sorted(CATBOOST_STATE & state.keys())}
    if "model" in parts:
        suffix = "txt" if kind == LIGHTGBM else "json"
        parts["model"] = writer.add_blob(parts["model"], suffix)
    return {"state": writer.state(state), "trained": writer.state(parts)}


def read_booster(reader: Reader, kind: str, stored: dict[str, Json]) -> Any:
    """The model that was written."""
    package, _, name = kind.partition(".")
    try:
        cls = getattr(import_module(package), name)
    except ImportError as error:
        raise ImportError(
            f"the model has a voter by {package}, which is not installed; install it "
            f"with: pip install {package}"
        ) from error
    state, parts = reader.state(stored["state"]), reader.state(stored["trained"])
    if not parts.keys() <= PARTS:
        raise ModelFileError(f"a voter by {package} is not whole")
    if "model" in parts:
        parts["model"] = reader.take(parts["model"])
    try:
        _check(kind, parts)
        return _rebuild(kind, cls, state, parts)
    except Exception as error:  # each library has errors of its own
        raise ModelFileError(
            f"a voter by {package} is broken ({_reason(error)})"
        ) from error


def _parts_of(kind: str, model: Any, trained: Any) -> dict[str, Any]:
    if kind == CATBOOST:
        if not model.is_fitted():
            return {}
        # Its JSON rounds the leaves, so they are kept beside.
        scale, bias = model.get_scale_and_bias()
        biases = tuple(map(float, bias)) if isinstance(bias, list) else float(bias)
        return {
            "model": catboost_json(model),
            "leaf_values": model.get_leaf_values(),
            "scale_and_bias": (float(scale), biases),
        }
    if trained is None:
        return {}
    if kind == XGBOOST:
        return {"model": bytes(trained.save_raw("json"))}
    # All rounds: with early stopping, the best one is remembered beside.
    text = trained.model_to_string(num_iteration=-1)
    return {"model": text.encode(), "best_iteration": int(trained.best_iteration)}


def catboost_json(model: Any) -> bytes:
    """A fitted CatBoost model as JSON, which it writes to files alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        return path.read_bytes()


def _rebuild(kind: str, cls: Any, state: dict[str, Any], parts: dict[str, Any]) -> Any:
    if kind == CATBOOST:
        return _rebuild_catboost(cls, state, parts)
    trained: Any = None
    if "model" in parts and kind == LIGHTGBM:
        from lightgbm import Booster

        trained = Booster(model_str=parts["model"].decode())
        trained.best_iteration = int(parts["best_iteration"])
    elif "model" in parts:
        from xgboost import Booster as XGBooster

        trained = XGBooster(model_file=bytearray(parts["model"]))
        if state["n_jobs"] is not None:
            trained.set_param({"nthread": int(state["n_jobs"])})
    model = cls()
    vars(model).clear()
    vars(model).update(state)
    if trained is not None or kind == LIGHTGBM:
        vars(model)[TRAINED[kind]] = trained
    return model


def _rebuild_catboost(cls: Any, state: dict[str, Any], parts: dict[str, Any]) -> Any:
    model = cls(**state["_init_params"])
    if "model" in parts:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            path.write_bytes(parts["model"])
            model.load_model(str(path), format="json")
        model.set_leaf_values(parts["leaf_values"])
        scale, bias = parts["scale_and_bias"]
        model.set_scale_and_bias(scale, bias if isinstance(bias, float) else list(bias))
    for name in CATBOOST_STATE & state.keys():
        setattr(model, name, state[name])
    return model


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


# What the formats must hold.


def _check(kind: str, parts: dict[str, Any]) -> None:
    if "model" not in parts:
        return
    content = parts["model"]
    if kind == LIGHTGBM:
        parse_lightgbm(content.decode())
    elif kind == XGBOOST:
        check_xgboost(content)
    else:
        check_catboost(content, parts["leaf_values"], parts["scale_and_bias"])


def parse_lightgbm(text: str) -> tuple[dict[str, str], list[Columns]]:
    """The header of a LightGBM model, and the columns of its trees, checked.

    A tree has ``leaf_value`` and, if it is more than a leaf, the columns ``BY_NODE``.
    """
    require(text.isascii() or "\x00" not in text, "odd characters")
    head, first, rest = text.partition("\nTree=0\n")
    body, last, _ = rest.partition("\nend of trees\n")
    require(head.startswith("tree\n") and first and last, "no trees of LightGBM")
    header = _fields(head[len("tree\n") :])
    n_features = _whole(header["max_feature_idx"]) + 1
    require(0 < n_features < MOST_FEATURES, "no features")
    n_classes = _whole(header["num_class"])
    require(header["num_tree_per_iteration"] == header["num_class"], "trees for classes")
    require(n_classes == 1 or 2 < n_classes <= MAX_CLASSES, "a number of classes")
    # It writes as many numbers a row as its objective has classes.
    named = re.search(r" num_class:([0-9]+)", header["objective"])
    require(
        (named[1] if named else "1") == header["num_class"], "an objective of other classes"
    )
    require(len(header["feature_names"].split(" ")) == n_features, "names of features")
    require(len(header["feature_infos"].split(" ")) == n_features, "infos of features")
    blocks = re.split(r"(?m)^(?=Tree=[0-9]+$)", first[1:] + body + "\n")[1:]
    sizes = [_whole(size) for size in header["tree_sizes"].split(" ")]
    require([len(block.encode()) for block in blocks] == sizes, "sizes of trees")
    require(len(blocks) % n_classes == 0, "trees missing for some classes")
    trees = []
    for number, block in enumerate(blocks):
        fields = _fields(block)
        require(fields["Tree"] == str(number), "trees out of order")
        trees.append(_parse_lightgbm_tree(fields, n_features))
    return header, trees


def _parse_lightgbm_tree(fields: dict[str, str], n_features: int) -> Columns:
    n_leaves, n_sets = _whole(fields["num_leaves"]), _whole(fields["num_cat"])
    require(n_leaves > 0 and fields.get("is_linear", "0") == "0", "leaves of no known kind")
    columns: Columns = {"leaf_value": _numbers(fields["leaf_value"], n_leaves)}
    require(not np.isnan(columns["leaf_value"]).any(), "leaves are NaN")
    for name, value in fields.items():
        if name.startswith("leaf_") and name != "leaf_value":
            _numbers(value, n_leaves if value else 0)
        if name.startswith(("internal_", "split_gain")):
            _numbers(value, n_leaves - 1 if value else 0)
    if n_leaves == 1:
        return columns
    for name in BY_NODE:
        values = _numbers(fields[name], n_leaves - 1)
        columns[name] = values if name == "threshold" else _integers(values)
    require(not np.isnan(columns["threshold"]).any(), "thresholds are NaN")
    feature = columns["split_feature"]
    require(((feature >= 0) & (feature < n_features)).all(), "features out of range")
    n = n_leaves - 1
    for side in (columns["left_child"], columns["right_child"]):
        require(((side >= -n_leaves) & (side < n)).all(), "children out of range")
    left, right = lightgbm_children(columns)
    inner = np.arange(n + n_leaves) < n
    require_family(left, right, inner, np.array([0, len(inner)]))
    kinds = columns["decision_type"]
    require(((kinds >= 0) & (kinds < 16)).all(), "splits of no known kind")
    by_set = (kinds & CATEGORICAL) != 0
    if n_sets == 0:
        require(not by_set.any(), "splits on no categories")
        return columns
    sets = columns["threshold"][by_set]
    require(((sets >= 0) & (sets < n_sets)).all(), "sets out of range")
    bounds = _integers(_numbers(fields["cat_boundaries"], n_sets + 1))
    words = fields["cat_threshold"].split(" ")
    _numbers(fields["cat_threshold"], len(words))
    require(bounds[0] == 0 and bounds[-1] == len(words), "sets do not add up")
    require((np.diff(bounds) > 0).all(), "sets out of order")
    return columns


def lightgbm_children(columns: Columns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Left and right child of each node: leaf k, -k - 1 there, comes after all splits."""
    n, n_leaves = len(columns["left_child"]), len(columns["leaf_value"])
    none = np.full(n_leaves, -1)
    sides = (columns["left_child"], columns["right_child"])
    left, right = (np.append(np.where(s < 0, n - s - 1, s), none) for s in sides)
    return left, right


def _fields(lines: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in lines.split("\n"):
        if line:
            name, equals, value = line.partition("=")
            require(equals and name not in fields, f"a line {line[:40]!r}")
            fields[name] = value
    return fields


def _whole(text: Any) -> int:
    require(isinstance(text, str) and re.fullmatch(r"[0-9]{1,9}", text), "no number")
    return int(text)


def _numbers(text: str, n: int) -> NDArray[np.float64]:
    """So many numbers with a blank between."""
    tokens = text.split(" ") if text else []
    require(len(tokens) == n, f"{len(tokens)} numbers for {n}")
    require(all(TOKEN.fullmatch(token) for token in tokens), "what is no number")
    return np.array(tokens, dtype=np.float64)


def _integers(values: Any) -> NDArray[np.int64]:
    numbers = np.asarray(values)
    require(numbers.ndim == 1 and numbers.dtype.kind in "biuf", "numbers of no known kind")
    whole = np.isfinite(numbers) & (np.abs(numbers.astype(np.float64)) < 2**53)
    require(whole.all() and (numbers == np.floor(numbers)).all(), "what is no whole number")
    return numbers.astype(np.int64)


def check_xgboost(content: bytes) -> None:
    """A model of XGBoost, as JSON."""
    learner = json.loads(content)["learner"]
    booster, params = learner["gradient_booster"], learner["learner_model_param"]
    require(booster["name"] == "gbtree", f"XGBoost's {str(booster['name'])[:20]!r}")
    n_classes = _whole(params["num_class"])
    require(params.get("num_target", "1") == "1", "targets")
    require(n_classes == 0 or 2 < n_classes <= MAX_CLASSES, "a number of classes")
    known = learner["objective"].get("softmax_multiclass_param", {"num_class": "0"})
    require(known["num_class"] == params["num_class"], "an objective of other classes")
    n_starts = len(params["base_score"].split(","))
    require(n_starts in (1, n_classes), "starts for other classes")
    n_features = _whole(params["num_feature"])
    require(0 < n_features < MOST_FEATURES, "no features")
    model = booster["model"]
    trees = model["trees"]
    require(_whole(model["gbtree_model_param"]["num_trees"]) == len(trees), "trees missing")
    of_class = _integers(model["tree_info"])
    require(len(of_class) == len(trees), "trees for no class")
    most = max(n_classes, 1)
    require(((of_class >= 0) & (of_class < most)).all(), "trees for other classes")
    if "iteration_indptr" in model:
        rounds = _integers(model["iteration_indptr"])
        require(rounds[0] == 0 and rounds[-1] == len(trees), "rounds do not add up")
        require((np.diff(rounds) >= 0).all(), "rounds out of order")
    for tree in trees:
        _check_xgboost_tree(tree, n_features)


def _check_xgboost_tree(tree: dict[str, Any], n_features: int) -> None:
    params = tree["tree_param"]
    n = _whole(params["num_nodes"])
    require(n > 0 and params["size_leaf_vector"] in ("0", "1"), "leaves of no known kind")
    require(params["num_deleted"] == "0", "nodes that were cut off")
    require(_whole(params["num_feature"]) == n_features, "another number of features")
    names = ("left_children", "right_children", "parents", "split_indices", "split_type")
    left, right, parents, feature, kinds = (_integers(tree[name]) for name in names)
    for name in ("split_conditions", "default_left", "base_weights", "sum_hessian"):
        values = np.asarray(tree[name], dtype=np.float64)
        require(values.shape == (n,) and not np.isnan(values).any(), f"{name} is wrong")
    sizes = {len(column) for column in (left, right, parents, feature, kinds)}
    require(sizes == {n}, "columns of other lengths")
    inner = left != -1
    require(((right != -1) == inner).all(), "nodes with one child")
    require_family(left, right, inner, np.array([0, n]))
    nodes = np.flatnonzero(inner)
    for side in (left, right):
        require((parents[side[nodes]] == nodes).all(), "parents of other children")
    require(((feature >= 0) & (feature < n_features)).all(), "features out of range")
    require((kinds == 0).all(), "splits on categories")
    for name in ("categories", "categories_nodes", "categories_segments"):
        require(not tree.get(name), "splits on categories")


def check_catboost(content: bytes, leaf_values: Any, scale_and_bias: Any) -> None:
    """A model of CatBoost, as JSON, and the exact values of its leaves and bias."""
    model = json.loads(content)
    require(
        set(model["features_info"]) == {"float_features"}, "features that are no numbers"
    )
    features = model["features_info"]["float_features"]
    n_borders = 0
    for place, one in enumerate(features):
        require(type(one["feature_index"]) is int, "no number")
        require(one["feature_index"] == one["flat_feature_index"] == place, "features")
        borders = np.asarray(one["borders"] or [], dtype=np.float64)
        require(borders.ndim == 1 and np.isfinite(borders).all(), "borders are no numbers")
        require((np.diff(borders) > 0).all(), "borders out of order")
        n_borders += len(borders)
    require("trees" not in model, "trees of no known kind")
    scale, bias = model["scale_and_bias"]
    # One number a leaf for two classes, else one for each class.
    width = len(bias)
    require(width == 1 or 2 < width <= MAX_CLASSES, "a bias of no known kind")
    exact = np.ravel(scale_and_bias[1])
    require(exact.shape == (width,), "a bias of no known kind")
    both = [scale, *bias, scale_and_bias[0], *exact]
    require(np.isfinite(both).all(), "a bias of no known kind")
    _check_catboost_classes(model["model_info"], 2 if width == 1 else width)
    n_leaves = 0
    for tree in model["oblivious_trees"]:
        splits = tree["splits"] or []
        require(len(splits) <= DEEPEST, "too many questions")
        for split in splits:
            at = split["split_index"]
            require(split["split_type"] == "FloatFeature", "splits of no known kind")
            require(type(at) is int and 0 <= at < n_borders, "borders out of range")
            require(0 <= split["float_feature_index"] < len(features), "features")
        for name, times in (("leaf_values", width), ("leaf_weights", 1)):
            values = np.asarray(tree[name], dtype=np.float64)
            require(values.shape == (times * 2 ** len(splits),), f"{name} do not fit")
            require(np.isfinite(values).all(), f"{name} are not finite")
        n_leaves += width * 2 ** len(splits)
    is_array = isinstance(leaf_values, np.ndarray) and leaf_values.dtype == np.float64
    require(is_array and leaf_values.shape == (n_leaves,), "another number of leaves")
    require(np.isfinite(leaf_values).all(), "leaves are not finite")


def _check_catboost_classes(info: dict[str, Any], n_classes: int) -> None:
    """It looks its classes up by their numbers, and trusts these."""
    classes = info["class_params"]
    names, numbers = classes["class_names"], classes["class_to_label"]
    require(len(names) == len(set(map(str, names))) == n_classes, "names of classes")
    require(numbers == list(range(n_classes)), "numbers of classes")
    require(classes.get("classes_count", 0) in (0, n_classes), "a number of classes")
