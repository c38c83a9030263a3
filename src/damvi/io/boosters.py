"""Store LightGBM, XGBoost and CatBoost models as plain arrays.

A trained model is converted to columns with one entry per node or leaf, all trees
concatenated. The libraries' own formats are never stored, because their readers trust
their input: invalid trees crash them or never end. On loading, the columns are validated,
and the library's input is rebuilt from them alone. Settings that affect prediction, such as
the number of threads, are validated or overridden.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..voters.trees.estimators import MAX_CLASSES
from .catboost_models import check_catboost, read_catboost, rebuild_catboost
from .checks import (
    MOST_FEATURES,
    NUMBERS,
    Column,
    ModelFileError,
    Parts,
    require,
    require_array,
    require_columns,
    require_counts,
    require_depth,
    require_family,
    require_int,
    require_labels,
    require_names,
    split,
)

LIGHTGBM, XGBOOST = "lightgbm.LGBMClassifier", "xgboost.XGBClassifier"
CATBOOST = "catboost.CatBoostClassifier"
KINDS = (LIGHTGBM, XGBOOST, CATBOOST)

MOST_THREADS = 1024
THREADS = {"n_jobs", "nthread", "nthreads", "num_thread", "num_threads", "thread_count"}


def check_threads(settings: dict[str, Any]) -> None:
    """Reject absurd numbers of threads, and limit them to the number of CPUs."""
    for name in THREADS & settings.keys():
        n = settings[name]
        is_whole = isinstance(n, (int, np.integer)) and not isinstance(n, bool)
        if n is not None and not (is_whole and abs(int(n)) <= MOST_THREADS):
            raise ModelFileError(f"its {name} is {str(n)[:80]}, which is invalid")
        if n is not None and int(n) > (cpus := os.cpu_count() or 1):
            settings[name] = cpus


def booster_of(value: Any) -> str | None:
    """Return which booster a value is, if any; a library not yet imported is ruled out."""
    for kind in KINDS:
        package, _, name = kind.partition(".")
        module = sys.modules.get(package)
        if module is not None and type(value) is getattr(module, name, None):
            return kind
    return None


def take_apart(kind: str, model: Any) -> tuple[dict[str, Any], Parts]:
    """Return the parameters, and the trained model as columns."""
    package = kind.partition(".")[0]
    read, check, _ = LIBRARIES[package]
    params = dict(model.get_params(deep=False))
    try:
        check_booster_params(kind, dict(params))
        parts = read(model)
        if parts:
            check(parts)
    except Exception as error:  # do not save what loading would reject
        raise ModelFileError(
            f"model files do not support this {package} model ({_reason(error)}); use its "
            f"default trees and objective"
            + (", and no text features" if kind == CATBOOST else "")
        ) from error
    return params, parts


def put_together(kind: str, params: dict[str, Any], parts: Parts) -> Any:
    """Rebuild a model that was taken apart."""
    package, _, name = kind.partition(".")
    try:
        cls = getattr(import_module(package), name)
    except ImportError as error:
        raise ImportError(
            f"the model has a {package} voter, but {package} is not installed; install it "
            f"with: pip install {package}"
        ) from error
    _, check, rebuild = LIBRARIES[package]
    try:
        check_booster_params(kind, params)
        model = cls(**params)
        if parts:
            check(parts)
            rebuild(model, parts)
        return model
    except Exception as error:  # each library has its own exceptions
        raise ModelFileError(f"a {package} voter is corrupt ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    if isinstance(error, KeyError):
        lines = [f"missing {lines[0][:80]}"] if lines else []
    return lines[0][:200] if lines else type(error).__name__


# Settings.

WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,40}")
LIGHTGBM_ALSO = {
    *("bagging_fraction", "bagging_freq", "bagging_seed", "boost_from_average", "cat_l2"),
    *("cat_smooth", "data_random_seed", "deterministic", "drop_rate", "drop_seed"),
    *("early_stopping_min_delta", "early_stopping_round", "enable_bundle", "extra_seed"),
    *("extra_trees", "feature_fraction", "feature_fraction_bynode", "feature_pre_filter"),
    *("feature_fraction_seed", "first_metric_only", "force_col_wise", "force_row_wise"),
    *("is_unbalance", "lambda_l1", "lambda_l2", "max_bin", "max_cat_threshold", "metric"),
    *("max_cat_to_onehot", "max_delta_step", "max_drop", "min_data_in_bin", "sigmoid"),
    *("min_data_in_leaf", "min_data_per_group", "min_gain_to_split", "other_rate", "seed"),
    *("min_sum_hessian_in_leaf", "neg_bagging_fraction", "path_smooth", "scale_pos_weight"),
    *("pos_bagging_fraction", "skip_drop", "top_rate", "uniform_drop", "use_missing"),
    *("verbose", "verbosity", "xgboost_dart_mode", "zero_as_missing"),
} | THREADS
"""LightGBM options beyond the constructor's; none refers to a file or a machine."""


def check_booster_params(kind: str, params: dict[str, Any]) -> None:
    """Check the constructor parameters that affect predictions.

    LightGBM joins its parameters into one line of text, so a space in a value would inject
    another option.
    """
    check_threads(params)
    if kind == XGBOOST:
        missing = params.get("missing", math.nan)
        require(isinstance(missing, (int, float)), "missing is not a number")
        require(params.get("booster") in (None, "gbtree", "dart", "gblinear"), "booster")
        check_threads(params.get("kwargs") or {})
    if kind != LIGHTGBM:
        return
    from lightgbm import LGBMClassifier

    known = LGBMClassifier().get_params().keys() | LIGHTGBM_ALSO
    for name, value in params.items():
        require(name in known, f"unknown LightGBM parameter {name[:40]!r}")
        if name in ("class_weight", "random_state"):
            continue
        ok = isinstance(value, NUMBERS) or (
            isinstance(value, str) and WORD.fullmatch(value) is not None
        )
        require(ok, f"LightGBM parameter {name!r} is not a number or word")
        if isinstance(value, (int, np.integer)):
            require(abs(int(value)) < 2**31, f"parameter {name!r} is out of range")


# LightGBM: text with one line per column.

CATEGORICAL = 1
"""Bit of LightGBM's ``decision_type`` that marks a categorical split."""
LIGHTGBM_NODES: list[Column] = [
    ("split_feature", np.int32),
    ("split_gain", np.float64),
    ("threshold", np.float64),
    ("decision_type", np.uint8),
    ("left_child", np.int32),
    ("right_child", np.int32),
    ("internal_value", np.float64),
    ("internal_weight", np.float64),
    ("internal_count", np.int64),
]
LIGHTGBM_LEAVES: list[Column] = [
    ("leaf_value", np.float64),
    ("leaf_weight", np.float64),
    ("leaf_count", np.int64),
]
OBJECTIVES = ("binary", "multiclass", "multiclassova")
LIGHTGBM_NAME = re.compile(r'[^\s\x00-\x20\x7f",:\[\]{}]+')


def read_lightgbm(model: Any) -> Parts:
    """Return a fitted ``LGBMClassifier`` as columns; empty if it is not fitted."""
    booster = vars(model).get("_Booster")
    if booster is None:
        return {}
    # Save all rounds; the best one, from early stopping, is stored separately.
    text = booster.model_to_string(num_iteration=-1)
    head, *blocks = re.split(r"\n(?=Tree=[0-9]+\n)", text.partition("\nend of trees\n")[0])
    require("\naverage_output\n" not in head, "boosting type 'rf'")
    header = _lightgbm_fields(head.removeprefix("tree\n"))
    objective, *options = header["objective"].split(" ")
    known = dict(option.split(":") for option in options)
    trees = [_lightgbm_tree(_lightgbm_fields(block)) for block in blocks]
    parts = {
        "objective": objective,
        "sigmoid": float(known.get("sigmoid", 1)),
        "width": int(header["num_tree_per_iteration"]),
        "names": header["feature_names"].split(" "),
        "named": bool(vars(model).get("_fitted_with_feature_names", False)),
        "classes": np.asarray(model.classes_),
        "best_iteration": int(booster.best_iteration),
        "best_of_model": int(model.best_iteration_ or 0),
        "categories": booster.pandas_categorical,
        "n_leaves": np.array([len(tree["leaf_value"]) for tree in trees]),
        "n_sets": np.array([len(tree["cat_boundaries"]) - 1 for tree in trees]),
        "shrinkage": np.array([tree["shrinkage"] for tree in trees], dtype=np.float64),
    }
    sizes = [np.diff(tree["cat_boundaries"]) for tree in trees]
    parts["set_words"] = np.concatenate(sizes).astype(np.int64)
    parts |= _joined(trees, [*LIGHTGBM_NODES, *LIGHTGBM_LEAVES])
    return parts | _joined(trees, [("cat_threshold", np.uint32)])


def _lightgbm_fields(lines: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in lines.split("\n"):
        if line:
            name, equals, value = line.partition("=")
            require(equals and name not in fields, f"line {line[:40]!r}")
            fields[name] = value
    return fields


def _lightgbm_tree(fields: dict[str, str]) -> dict[str, Any]:
    """Return a tree's columns; absent ones are filled with zeros."""
    require(fields.get("is_linear", "0") == "0", "linear trees")
    n = int(fields["num_leaves"])
    tree: dict[str, Any] = {"shrinkage": float(fields["shrinkage"])}
    for columns, size in ((LIGHTGBM_NODES, n - 1), (LIGHTGBM_LEAVES, n)):
        for name, _ in columns:
            tree[name] = fields.get(name, "").split() or ["0"] * size
    sets = int(fields["num_cat"]) > 0
    bounds = fields["cat_boundaries"].split() if sets else ["0"]
    tree["cat_boundaries"] = np.array(bounds, dtype=np.int64)
    tree["cat_threshold"] = fields["cat_threshold"].split() if sets else []
    return tree


def _joined(trees: list[dict[str, Any]], columns: list[Column]) -> Parts:
    """Concatenate the columns of all trees, without loss of precision."""
    joined = {}
    for name, dtype in columns:
        wide = np.float64 if np.dtype(dtype).kind == "f" else np.int64
        parts = [np.asarray(tree[name], dtype=wide) for tree in trees]
        whole = np.concatenate(parts) if parts else np.zeros(0, wide)
        with np.errstate(over="ignore"):
            joined[name] = whole.astype(dtype)
        require(wide is np.float64 or (joined[name] == whole).all(), f"{name} too large")
    return joined


def lightgbm_children(parts: Parts) -> tuple[NDArray[Any], ...]:
    """Return children by global node index, with splits before leaves in each tree.

    Returns left and right children (-1 for leaves), which nodes are splits, and where trees
    start. In the columns, leaf k of a tree is stored as -k - 1.
    """
    leaves = parts["n_leaves"]
    roots = np.append(0, np.cumsum(2 * leaves - 1))
    inner = np.arange(roots[-1]) < np.repeat(roots[:-1] + leaves - 1, 2 * leaves - 1)
    tree = np.repeat(np.arange(len(leaves)), leaves - 1)
    sides = []
    for name in ("left_child", "right_child"):
        child = parts[name].astype(np.int64)
        ok = (child >= -leaves[tree]) & (child < leaves[tree] - 1)
        require(ok.all(), "children out of range")
        side = np.full(roots[-1], -1)
        side[inner] = roots[tree] + np.where(child < 0, leaves[tree] - 2 - child, child)
        sides.append(side)
    return *sides, inner, roots


def check_lightgbm(parts: Parts) -> None:
    """Check everything that LightGBM takes for granted."""
    require(parts["objective"] in OBJECTIVES, f"objective {parts['objective']!r:.60}")
    require(isinstance(parts["sigmoid"], float) and parts["sigmoid"] > 0, "sigmoid")
    width = require_int(parts["width"], 1, MAX_CLASSES, "number of classes:")
    require(
        (width == 1) == (parts["objective"] == "binary"), "an objective for other classes"
    )
    require(width != 2 or parts["objective"] == "multiclassova", "number of classes")
    require_labels(parts["classes"], max(width, 2))
    names, n_trees = parts["names"], len(parts["n_leaves"])
    require_names(names, len(names))
    n_features = require_int(len(names), 1, MOST_FEATURES, "features:")
    require(all(LIGHTGBM_NAME.fullmatch(name) for name in names), "feature names")
    require(len(set(names)) == n_features and type(parts["named"]) is bool, "names")
    n_leaves = len(parts["leaf_value"])
    require_counts(parts["n_leaves"], n_leaves, 1, "leaves")
    require(n_trees % width == 0, "missing trees of some classes")
    best = require_int(parts["best_iteration"], -1, n_trees // width, "best iteration")
    require_int(parts["best_of_model"], 0, max(best, 0), "best iteration")
    require_columns(parts, LIGHTGBM_NODES, n_leaves - n_trees, free=["threshold"])
    require(not np.isnan(parts["threshold"]).any(), "threshold has numbers out of range")
    require_columns(parts, LIGHTGBM_LEAVES, n_leaves)
    require_columns(parts, [("shrinkage", np.float64)], n_trees)
    feature = parts["split_feature"]
    require(((feature >= 0) & (feature < n_features)).all(), "features out of range")
    left, right, inner, roots = lightgbm_children(parts)
    require_family(left, right, inner, roots)
    require_depth(left, right, inner, roots)
    kinds = parts["decision_type"]
    require((kinds < 12).all(), "unknown kind of splits")
    n_sets = len(parts["set_words"])
    require_counts(parts["n_sets"], n_sets, 0, "sets")
    require(len(parts["n_sets"]) == n_trees, "missing sets")
    if n_sets:
        require_counts(parts["set_words"], len(parts["cat_threshold"]), 1, "set sizes")
    require_array(parts["cat_threshold"], np.uint32, (None,), "sets")
    by_set = (kinds & CATEGORICAL) != 0
    most = np.repeat(parts["n_sets"], parts["n_leaves"] - 1)[by_set]
    sets = parts["threshold"][by_set]
    require(((sets >= 0) & (sets < most)).all(), "sets out of range")
    require((sets == np.floor(sets)).all(), "sets out of range")
    check_categories(parts["categories"])


def check_categories(categories: Any) -> None:
    """Check the categories of a dataframe's columns."""
    require(categories is None or isinstance(categories, list), "categories")
    for column in categories or ():
        require(isinstance(column, list), "categories")
        require(all(isinstance(one, (str, *NUMBERS[1:])) for one in column), "categories")


def lightgbm_trees(parts: Parts) -> list[dict[str, NDArray[Any]]]:
    """Return the columns of each tree."""
    starts = np.append(0, np.cumsum(parts["n_leaves"]))
    nodes = starts - np.arange(len(starts))
    columns = {name: split(parts[name], nodes) for name, _ in LIGHTGBM_NODES}
    columns |= {name: split(parts[name], starts) for name, _ in LIGHTGBM_LEAVES}
    return [{name: own[k] for name, own in columns.items()} for k in range(len(nodes) - 1)]


def lightgbm_text(parts: Parts) -> str:
    """Return the columns as LightGBM's text format."""
    width, names = parts["width"], parts["names"]
    objective = parts["objective"]
    if width > 1:
        objective += f" num_class:{width}"
    if objective != f"multiclass num_class:{width}":
        objective += f" sigmoid:{parts['sigmoid']!r}"
    sets = np.append(0, np.cumsum(parts["n_sets"]))
    bounds = np.append(0, np.cumsum(parts["set_words"]))
    blocks = []
    for k, columns in enumerate(lightgbm_trees(parts)):
        n_leaves = len(columns["leaf_value"])
        lines = [f"Tree={k}", f"num_leaves={n_leaves}", f"num_cat={parts['n_sets'][k]}"]
        for name in columns if n_leaves > 1 else ("leaf_value",):
            lines.append(f"{name}={_line(columns[name])}")
        own = bounds[sets[k] : sets[k + 1] + 1]
        if len(own) > 1:
            lines.append(f"cat_boundaries={_line(own - own[0])}")
            words = parts["cat_threshold"][own[0] : own[-1]]
            lines.append(f"cat_threshold={_line(words)}")
        lines += ["is_linear=0", f"shrinkage={parts['shrinkage'][k]!s}", "", "", ""]
        blocks.append("\n".join(lines))
    header = [
        "tree",
        "version=v4",
        f"num_class={width}",
        f"num_tree_per_iteration={width}",
        "label_index=0",
        f"max_feature_idx={len(names) - 1}",
        f"objective={objective}",
        f"feature_names={' '.join(names)}",
        f"feature_infos={' '.join(['none'] * len(names))}",
        f"tree_sizes={' '.join(str(len(block.encode())) for block in blocks)}",
        "",
        "",
    ]
    return "\n".join(header) + "".join(blocks) + "end of trees\n\npandas_categorical:null\n"


def _line(numbers: NDArray[Any]) -> str:
    return " ".join(map(repr, numbers.tolist()))


def rebuild_lightgbm(model: Any, parts: Parts) -> None:
    from lightgbm import Booster
    from sklearn.preprocessing import LabelEncoder

    classes, n_features = parts["classes"], len(parts["names"])
    booster = Booster(model_str=lightgbm_text(parts))
    booster.best_iteration = parts["best_iteration"]
    booster.pandas_categorical = parts["categories"]
    encoder = LabelEncoder()
    encoder.classes_ = classes
    vars(model).update(
        _Booster=booster,
        _best_iteration=parts["best_of_model"],
        _best_score=defaultdict(OrderedDict),
        _class_map=dict(zip(classes, range(len(classes)), strict=True)),
        _class_weight=model.class_weight,
        _classes=classes,
        _evals_result={},
        _fitted_with_feature_names=parts["named"],
        _le=encoder,
        _n_classes=len(classes),
        _n_features=n_features,
        _n_features_in=n_features,
        _objective=parts["objective"],
        fitted_=True,
    )


# XGBoost: binary JSON with one array per column.

XGBOOST_NODES: list[Column] = [
    ("base_weights", np.float32),
    ("default_left", np.uint8),
    ("left_children", np.int32),
    ("loss_changes", np.float32),
    ("parents", np.int32),
    ("right_children", np.int32),
    ("split_conditions", np.float32),
    ("split_indices", np.int32),
    ("split_type", np.uint8),
    ("sum_hessian", np.float32),
]
XGBOOST_SETS: list[Column] = [
    ("categories_nodes", np.int32),
    ("categories_sizes", np.int64),
]
XGBOOST_OBJECTIVES = {
    "binary:logistic": "reg_loss_param",
    "binary:logitraw": "reg_loss_param",
    "binary:hinge": "",
    "multi:softmax": "softmax_multiclass_param",
    "multi:softprob": "softmax_multiclass_param",
}
NO_PARENT = 2**31 - 1
MOST_SET_BYTES = 2**24
FEATURE_TYPES = ("c", "float", "i", "int", "q")
INTEGERS = {
    "int8": (9, b"i"),
    "uint8": (10, b"U"),
    "int16": (11, b"I"),
    "int32": (13, b"l"),
    "int64": (15, b"L"),
}
"""By dtype: XGBoost's type code of an array, and the UBJSON marker."""


def read_xgboost(model: Any) -> Parts:
    """Return a fitted ``XGBClassifier`` as columns; empty if it is not fitted."""
    if "_Booster" not in vars(model):
        return {}
    booster = model.get_booster()
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    kind, params = learner["gradient_booster"]["name"], learner["learner_model_param"]
    require(kind == "gbtree", f"booster {kind!r}")
    content = learner["gradient_booster"]["model"]
    trees = content["trees"]
    for tree in trees:
        own = tree["tree_param"]
        require(own["size_leaf_vector"] in ("0", "1"), "vector-valued leaves")
        require(own["num_deleted"] == "0", "deleted nodes")
    start = params["base_score"].strip("[]").split(",")
    best, cats = booster.attr("best_iteration"), content.get("cats", {})
    parts = {
        "objective": learner["objective"]["name"],
        "start": np.array(start, dtype=np.float32),
        "n_classes": int(model.n_classes_),
        "width": max(int(params["num_class"]), 1),
        "n_features": int(params["num_feature"]),
        "names": learner["feature_names"],
        "types": learner["feature_types"],
        "best_iteration": None if best is None else int(best),
        "best_score": booster.attr("best_score"),
        "n_parallel": int(content["gbtree_model_param"]["num_parallel_tree"]),
        "of_class": np.array(content["tree_info"], dtype=np.int64),
        "n_nodes": np.array([len(tree["left_children"]) for tree in trees]),
        "n_sets": np.array([len(tree["categories_nodes"]) for tree in trees]),
        "known": [_xgboost_categories(one) for one in cats.get("enc", [])],
        "order": np.array(cats.get("sorted_idx", []), dtype=np.int32),
    }
    parts |= _joined(trees, [*XGBOOST_NODES, *XGBOOST_SETS])
    # Older releases store NaN for splits on a set of categories.
    parts["split_conditions"][parts["split_type"] == 1] = 0
    return parts | _joined(trees, [("categories", np.int32)])


def _xgboost_categories(column: dict[str, Any]) -> tuple[NDArray[Any], ...]:
    """Return integers, or offsets and bytes of strings; empty for other columns."""
    if "offsets" in column:
        ends, values = column["offsets"], column["values"]
        return np.array(ends, dtype=np.int32), np.array(values, dtype=np.int8)
    kinds = {number: name for name, (number, _) in INTEGERS.items()}
    require(column["type"] in kinds, "unknown kind of categories")
    return (np.array(column["values"], dtype=kinds[column["type"]]),)


def check_xgboost(parts: Parts) -> None:
    """Check everything that XGBoost takes for granted."""
    objective = parts["objective"]
    require(objective in XGBOOST_OBJECTIVES, f"objective {objective!r:.60}")
    width = require_int(parts["width"], 1, MAX_CLASSES, "number of classes:")
    n_classes = require_int(parts["n_classes"], 2, MAX_CLASSES, "number of classes:")
    require(
        width == (n_classes if objective[:5] == "multi" else 1), "wrong number of classes"
    )
    require_array(parts["start"], np.float32, (None,), "start")
    require(len(parts["start"]) in (1, width), "base scores for other classes")
    require(np.isfinite(parts["start"]).all(), "base scores are not finite")
    n_features = require_int(parts["n_features"], 1, MOST_FEATURES, "features:")
    for name in ("names", "types"):
        require_names(parts[name], n_features if parts[name] else 0)
    require(set(parts["types"]) <= set(FEATURE_TYPES), "feature types")
    n, n_trees = len(parts["left_children"]), len(parts["n_nodes"])
    roots = require_counts(parts["n_nodes"], n, 1, "nodes")
    n_parallel = require_int(parts["n_parallel"], 1, n_trees, "trees per round:")
    require(n_trees % (width * n_parallel) == 0, "missing trees of some classes")
    n_rounds, best = n_trees // (width * n_parallel), parts["best_iteration"]
    if best is not None:
        require_int(best, 0, n_rounds - 1, "best iteration")
    score = parts["best_score"]
    require(score is None or (type(score) is str and len(score) < 100), "best score")
    require_array(parts["of_class"], np.int64, (n_trees,), "classes of trees")
    expected = np.tile(np.repeat(np.arange(width), n_parallel), n_rounds)
    require((parts["of_class"] == expected).all(), "trees assigned to wrong classes")
    require_columns(parts, XGBOOST_NODES, n)
    left, right, feature = (
        parts[name].astype(np.int64)
        for name in ("left_children", "right_children", "split_indices")
    )
    inner = left != -1
    require(((right != -1) == inner).all(), "nodes with one child")
    first = np.repeat(roots[:-1], np.diff(roots))
    require(((left >= -1) & (right >= -1)).all(), "children before their parents")
    left, right = np.where(inner, left + first, -1), np.where(inner, right + first, -1)
    require_family(left, right, inner, roots)
    require_depth(left, right, inner, roots)
    parents = np.full(n, NO_PARENT)
    places = np.flatnonzero(inner)
    for side in (left, right):
        parents[side[places]] = places - first[places]
    require((parts["parents"] == parents).all(), "inconsistent parents")
    require(((feature >= 0) & (feature < n_features)).all(), "features out of range")
    require((parts["default_left"] <= 1).all(), "default_left is not 0 or 1")
    _check_xgboost_sets(parts, roots, inner)
    _check_xgboost_categories(parts["known"], parts["order"], n_features)


def _check_xgboost_categories(known: Any, order: Any, n_features: int) -> None:
    """Check the categories of a dataframe's columns, and their sort order."""
    require(isinstance(known, list) and len(known) in (0, n_features), "categories")
    require_array(order, np.int32, (None,), "order of categories")
    for column in known:
        arrays = isinstance(column, tuple) and len(column) in (1, 2)
        require(arrays and all(isinstance(one, np.ndarray) for one in column), "categories")
        if len(column) == 1:
            require(column[0].dtype.name in INTEGERS, "unknown kind of categories")
            require_array(column[0], column[0].dtype, (None,), "categories")
            continue
        ends, values = column
        require_array(ends, np.int32, (None,), "categories")
        require_array(values, np.int8, (None,), "categories")
        if len(ends):
            require(ends[0] == 0 and ends[-1] <= len(values), "categories do not add up")
            require((ends[1:] >= ends[:-1]).all(), "category offsets not increasing")
    sizes = [_n_categories(column) for column in known]
    require(len(order) == sum(sizes), "order of categories")
    for own in np.split(order, np.cumsum(sizes)[:-1]) if sizes else ():
        require((np.sort(own) == np.arange(len(own))).all(), "order of categories")


def _n_categories(column: tuple[NDArray[Any], ...]) -> int:
    return len(column[0]) if len(column) == 1 else max(len(column[0]) - 1, 0)


def _check_xgboost_sets(
    parts: Parts, roots: NDArray[np.int64], inner: NDArray[np.bool_]
) -> None:
    """Check categorical splits. A set takes one bit per code up to its largest."""
    n_sets = len(parts["categories_nodes"])
    sets = require_counts(parts["n_sets"], n_sets, 0, "sets")
    require(len(sets) == len(roots), "missing sets")
    require_columns(parts, XGBOOST_SETS, n_sets)
    require_array(parts["categories"], np.int32, (None,), "categories")
    by_set = np.zeros(len(inner), dtype=bool)
    if n_sets:
        require_counts(parts["categories_sizes"], len(parts["categories"]), 1, "set sizes")
        tree = np.repeat(np.arange(len(roots) - 1), np.diff(sets))
        nodes = parts["categories_nodes"] + roots[tree]
        ok = (parts["categories_nodes"] >= 0) & (nodes < roots[tree + 1])
        require(ok.all() and (nodes[1:] > nodes[:-1]).all(), "sets of wrong nodes")
        by_set[nodes] = True
        starts = np.append(0, np.cumsum(parts["categories_sizes"])[:-1])
        largest = np.maximum.reduceat(parts["categories"], starts)
        require((parts["categories"] >= 0).all(), "categories out of range")
        room = int((largest.astype(np.int64) // 8 + 1).sum())
        require(room <= MOST_SET_BYTES + 50 * len(inner), "categories out of range")
    require(
        ((parts["split_type"] == 1) == by_set).all(),
        "categorical splits without categories",
    )
    require((inner | ~by_set).all() and (parts["split_type"] <= 1).all(), "kind of splits")


def xgboost_document(parts: Parts) -> bytes:
    """Return the columns as XGBoost's binary JSON."""
    width, n_trees = parts["width"], len(parts["n_nodes"])
    roots, sets = (np.append(0, np.cumsum(parts[n])) for n in ("n_nodes", "n_sets"))
    columns = {name: split(parts[name], roots) for name, _ in XGBOOST_NODES}
    columns |= {name: split(parts[name], sets) for name, _ in XGBOOST_SETS}
    ends = np.append(0, np.cumsum(parts["categories_sizes"]))
    columns["categories"] = split(parts["categories"], ends[sets])
    trees = []
    for k in range(n_trees):
        tree: dict[str, Any] = {name: column[k] for name, column in columns.items()}
        tree["categories_segments"] = ends[sets[k] : sets[k + 1]] - ends[sets[k]]
        tree["id"] = k
        tree["tree_param"] = {
            "num_deleted": "0",
            "num_feature": str(parts["n_features"]),
            "num_nodes": str(int(parts["n_nodes"][k])),
            "size_leaf_vector": "1",
        }
        trees.append(tree)
    n_classes = str(width if width > 1 else 0)
    start = ",".join(str(one) for one in parts["start"])
    own = XGBOOST_OBJECTIVES[parts["objective"]]
    values = {
        "": {},
        "reg_loss_param": {"scale_pos_weight": "1"},
        "softmax_multiclass_param": {"num_class": n_classes},
    }
    encoded: list[dict[str, Any]] = []
    for column in parts["known"]:
        if len(column) == 2:
            encoded.append({"offsets": column[0], "values": column[1]})
        else:
            number, _ = INTEGERS[column[0].dtype.name]
            encoded.append({"type": number, "values": column[0]})
    segments = np.cumsum([0, *map(_n_categories, parts["known"])])
    attributes = {name: parts[name] for name in ("best_iteration", "best_score")}
    per_round = width * parts["n_parallel"]
    model = {
        "cats": {
            "enc": encoded,
            "feature_segments": np.array(segments if encoded else [], dtype=np.int32),
            "sorted_idx": parts["order"],
        },
        "gbtree_model_param": {
            "num_parallel_tree": str(parts["n_parallel"]),
            "num_trees": str(n_trees),
        },
        "iteration_indptr": list(range(0, n_trees + 1, per_round)),
        "tree_info": parts["of_class"].tolist(),
        "trees": trees,
    }
    return _binary_json(
        {
            "learner": {
                "attributes": {k: str(v) for k, v in attributes.items() if v is not None},
                "feature_names": parts["names"],
                "feature_types": parts["types"],
                "gradient_booster": {"model": model, "name": "gbtree"},
                "learner_model_param": {
                    "base_score": f"[{start}]" if len(parts["start"]) > 1 else start,
                    "boost_from_average": "1",
                    "num_class": n_classes,
                    "num_feature": str(parts["n_features"]),
                    "num_target": "1",
                },
                "objective": {"name": parts["objective"]}
                | ({own: values[own]} if own else {}),
            },
            "version": [3, 2, 0]
            if len(parts["start"]) > 1 or parts["known"]
            else [2, 1, 4],
        }
    )


def _binary_json(value: Any) -> bytes:
    """Encode as Universal Binary JSON (UBJSON), with length-prefixed strings and arrays."""

    def length(n: int) -> bytes:
        return b"L" + n.to_bytes(8, "big")

    match value:
        case dict():
            pairs = (_binary_json(k)[1:] + _binary_json(v) for k, v in value.items())
            return b"{" + b"".join(pairs) + b"}"
        case str():
            text = value.encode()
            return b"S" + length(len(text)) + text
        case int():
            return b"L" + value.to_bytes(8, "big", signed=True)
        case list():
            return b"[" + b"".join(map(_binary_json, value)) + b"]"
    letters = {name: letter for name, (_, letter) in INTEGERS.items()}
    letter = b"d" if value.dtype == np.float32 else letters[value.dtype.name]
    body = value.astype(value.dtype.newbyteorder(">")).tobytes()
    return b"[$" + letter + b"#" + length(len(value)) + body


def rebuild_xgboost(model: Any, parts: Parts) -> None:
    from xgboost import Booster

    booster = Booster(model_file=bytearray(xgboost_document(parts)))
    if model.n_jobs is not None:
        booster.set_param({"nthread": int(model.n_jobs)})
    model.n_classes_ = parts["n_classes"]
    vars(model)["_Booster"] = booster


Library = tuple[
    Callable[[Any], Parts], Callable[[Parts], None], Callable[[Any, Parts], None]
]
LIBRARIES: dict[str, Library] = {
    "lightgbm": (read_lightgbm, check_lightgbm, rebuild_lightgbm),
    "xgboost": (read_xgboost, check_xgboost, rebuild_xgboost),
    "catboost": (read_catboost, check_catboost, rebuild_catboost),
}
"""By package: functions to read a model as columns, check them, and rebuild it."""
