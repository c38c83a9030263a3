"""Store scikit-learn's trees, forests and histogram boosting in a model file.

A file holds columns with one entry per node, and a few numbers; the estimator is rebuilt
from them and its parameters. scikit-learn's compiled code checks no index, and its internal
objects could have any size, so none of them is read from a file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from .. import _compat
from ..labels import MAX_CLASSES
from .boosters import check_threads
from .checks import (
    ModelFileError,
    Parts,
    require,
    require_array,
    require_columns,
    require_counts,
    require_depth,
    require_family,
    require_labels,
)

TREES = (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
FORESTS: dict[type, Any] = {
    ExtraTreesClassifier: ExtraTreeClassifier,
    RandomForestClassifier: DecisionTreeClassifier,
}
KINDS: dict[str, Any] = {
    f"sklearn.{cls.__name__}": cls
    for cls in (*TREES, *FORESTS, HistGradientBoostingClassifier)
}
NODES = [
    ("left_child", np.int32),
    ("right_child", np.int32),
    ("feature", np.int32),
    ("threshold", np.float64),
    ("impurity", np.float64),
    ("n_node_samples", np.int64),
    ("weighted_n_node_samples", np.float64),
    ("missing_go_to_left", np.uint8),
]
BOOSTED_NODES = [
    ("value", np.float64),
    ("count", np.uint32),
    ("feature_idx", np.int32),
    ("num_threshold", np.float64),
    ("missing_go_to_left", np.uint8),
    ("left", np.uint32),
    ("right", np.uint32),
    ("gain", np.float64),
    ("depth", np.uint32),
    ("is_leaf", np.uint8),
    ("bin_threshold", np.uint8),
    ("is_categorical", np.uint8),
    ("bitset_idx", np.uint32),
]
SETS = ("binned_left_cat_bitsets", "raw_left_cat_bitsets")
SET_WORDS = 8
"""Number of 32-bit words in a set of up to 256 categories."""
MOST_FEATURES = 2**24
FREE = ("threshold", "num_threshold", "gain", "impurity")
"""Columns that may hold non-finite values; thresholds must not be NaN."""


def take_apart(model: Any) -> tuple[dict[str, Any], Parts]:
    """Return the parameters, and the trained model as columns."""
    params = model.get_params(deep=False)
    try:
        parts = _parts_of(model)
        if parts:
            _rebuild(type(model)(**params), dict(parts))
    except Exception as error:
        raise ModelFileError(
            f"model files do not support this {type(model).__name__} "
            f"({(str(error).splitlines() or [''])[0][:200]})"
        ) from error
    return params, parts


def put_together(kind: str, params: dict[str, Any], parts: Parts) -> Any:
    """Rebuild a model that was taken apart."""
    cls = KINDS[kind]
    if params.keys() != cls().get_params(deep=False).keys():
        odd = sorted(params.keys() ^ cls().get_params(deep=False).keys())
        raise ModelFileError(
            f"{cls.__name__} has different parameters ({', '.join(odd)[:200]})"
        )
    check_threads(params)
    model = cls(**params)
    if parts:
        _rebuild(model, parts)
    return model


def _parts_of(model: Any) -> Parts:
    if isinstance(model, HistGradientBoostingClassifier):
        return _boosting_parts(model) if "_predictors" in vars(model) else {}
    if isinstance(model, TREES):
        return _tree_parts(model, [model]) if "tree_" in vars(model) else {}
    return _tree_parts(model, model.estimators_) if "estimators_" in vars(model) else {}


def _rebuild(model: Any, parts: Parts) -> None:
    n_features = parts["n_features"]
    is_number = type(n_features) is int and 0 < n_features < MOST_FEATURES
    require(is_number, f"{str(n_features)[:40]} features")
    names = parts["names"]
    if names is not None:
        require_array(names, object, (n_features,), "feature names")
        require(all(type(name) is str for name in names), "feature names")
    if isinstance(model, HistGradientBoostingClassifier):
        _rebuild_boosting(model, parts)
        return
    trees = _make_trees(parts, regress="classes" not in parts)
    vars(model).update(n_features_in_=n_features, n_outputs_=1)
    if names is not None:
        model.feature_names_in_ = names
    if isinstance(model, TREES):
        require(len(trees) == 1, "more than one tree")
        vars(model).update(tree_=trees[0], max_features_=parts["max_features"])
        if isinstance(model, (DecisionTreeClassifier, ExtraTreeClassifier)):
            classes = parts["classes"]
            vars(model).update(classes_=classes, n_classes_=np.int64(len(classes)))
        return
    _rebuild_forest(model, parts, trees)


# Trees and forests.


def _tree_parts(model: Any, trees: list[Any]) -> Parts:
    require(model.n_outputs_ == 1, "more than one output")
    nodes = [tree.tree_.__getstate__()["nodes"] for tree in trees]
    values = [tree.tree_.__getstate__()["values"][:, 0] for tree in trees]
    parts = {
        "n_features": int(model.n_features_in_),
        "names": getattr(model, "feature_names_in_", None),
        "max_features": int(trees[0].max_features_),
        "n_nodes": np.array([len(own) for own in nodes]),
        "values": np.ascontiguousarray(np.concatenate(values)),
        **_joined(nodes, NODES),
    }
    if not isinstance(model, (DecisionTreeRegressor, ExtraTreeRegressor)):
        parts["classes"] = np.asarray(model.classes_)
    if type(model) in FORESTS:
        parts["seeds"] = np.array([tree.random_state for tree in trees], dtype=np.int64)
        parts["oob_score"] = getattr(model, "oob_score_", None)
    return parts


def _joined(tables: list[NDArray[Any]], columns: list[tuple[str, Any]]) -> Parts:
    joined = {}
    for name, dtype in columns:
        whole = np.concatenate([table[name] for table in tables])
        joined[name] = np.ascontiguousarray(whole.astype(dtype))
        require(np.array_equal(joined[name], whole, equal_nan=True), f"{name} out of range")
    return joined


def _make_trees(parts: Parts, *, regress: bool) -> list[Any]:
    """Rebuild scikit-learn's trees from columns, which are validated here."""
    n, n_features = len(parts["left_child"]), parts["n_features"]
    roots = require_counts(parts["n_nodes"], n, 1, "nodes")
    require_columns(parts, NODES, n, free=FREE)
    values, width = parts["values"], 1
    if not regress:
        width = len(parts["classes"])
        require_labels(parts["classes"], width)
    require(0 < width <= MAX_CLASSES, "number of classes out of range")
    require_array(values, np.float64, (n, width), "values")
    require(np.isfinite(values).all(), "values are not finite")
    if not regress:
        shares = (values >= 0).all() and (abs(values.sum(axis=1) - 1) < 1e-6).all()
        require(shares, "values are not class shares")
    left, right = parts["left_child"].astype(np.int64), parts["right_child"]
    inner = left != -1
    require(((right != -1) == inner).all(), "nodes with one child")
    first = np.repeat(roots[:-1], np.diff(roots))
    left, right = left + first, right + first
    require_family(left, right, inner, roots)
    depths = require_depth(left, right, inner, roots)
    feature = parts["feature"][inner]
    require(((feature >= 0) & (feature < n_features)).all(), "features out of range")
    require(not np.isnan(parts["threshold"][inner]).any(), "thresholds are NaN")
    most = parts["max_features"]
    require(type(most) is int and 0 < most <= n_features, "max_features_")
    nodes = np.zeros(n, dtype=_compat.NODE_DTYPE)
    for name, _ in NODES:
        nodes[name] = parts[name]
    own_values = values[:, np.newaxis, :]
    n_classes = np.array([width], dtype=np.intp)
    return [
        _compat.sklearn_tree(
            n_features, n_classes, nodes[a:b].copy(), own_values[a:b].copy(), int(depth)
        )
        for a, b, depth in zip(roots[:-1], roots[1:], depths, strict=True)
    ]


def _rebuild_forest(model: Any, parts: Parts, trees: list[Any]) -> None:
    classes, seeds, score = parts["classes"], parts["seeds"], parts["oob_score"]
    require_array(seeds, np.int64, (len(trees),), "seeds")
    require(((seeds >= 0) & (seeds < 2**32)).all(), "seeds out of range")
    require(score is None or isinstance(score, float), "oob_score_")
    cls, voters = FORESTS[type(model)], []
    params = {name: getattr(model, name) for name in model.estimator_params}
    numbers = np.arange(len(classes), dtype=np.float64)
    for tree, seed in zip(trees, seeds.tolist(), strict=True):
        voter = cls(**{**params, "random_state": seed})
        vars(voter).update(
            tree_=tree,
            classes_=numbers,
            max_features_=parts["max_features"],
            n_classes_=np.int64(len(classes)),
            n_features_in_=parts["n_features"],
            n_outputs_=1,
        )
        voters.append(voter)
    vars(model).update(
        classes_=classes, estimator_=cls(), estimators_=voters, n_classes_=len(classes)
    )
    if score is not None:
        model.oob_score_ = score


# Histogram boosting.


def _boosting_parts(model: Any) -> Parts:
    start, trees = _compat.boosted_trees(model)
    categories = _compat.boosting_categories(model)
    named = model.is_categorical_
    return {
        "n_features": int(model.n_features_in_),
        "names": getattr(model, "feature_names_in_", None),
        "classes": np.asarray(model.classes_),
        "start": np.array(start),
        "categorical": None if named is None else np.asarray(named, dtype=bool),
        "categories": [np.asarray(own) for own in categories],
        "n_nodes": np.array([len(tree.nodes) for tree in trees]),
        "n_sets": np.array([len(tree.raw_left_cat_bitsets) for tree in trees]),
        **_joined([tree.nodes for tree in trees], BOOSTED_NODES),
        **{name: np.concatenate([getattr(one, name) for one in trees]) for name in SETS},
        "train_score": np.asarray(model.train_score_, dtype=np.float64),
        "validation_score": np.asarray(model.validation_score_, dtype=np.float64),
        "stopping": bool(model.do_early_stopping_),
    }


def _rebuild_boosting(model: Any, parts: Parts) -> None:
    classes, start = parts["classes"], parts["start"]
    require(isinstance(classes, np.ndarray) and classes.ndim == 1, "no classes")
    n_classes = len(classes)
    require_labels(classes, n_classes)
    require(2 <= n_classes <= MAX_CLASSES, "number of classes out of range")
    width = 1 if n_classes == 2 else n_classes  # the sums that it adds up
    require_array(start, np.float64, (width,), "start")
    require(np.isfinite(start).all(), "baseline is not finite")
    n, n_features = len(parts["left"]), parts["n_features"]
    roots = require_counts(parts["n_nodes"], n, 1, "nodes")
    require((len(roots) - 1) % width == 0, "wrong number of trees")
    require_columns(parts, BOOSTED_NODES, n, free=FREE)
    for name in SETS:
        require_array(parts[name], np.uint32, (None, SET_WORDS), "sets")
    sets = require_counts(parts["n_sets"], len(parts[SETS[0]]), 0, "sets")
    require(len(parts[SETS[1]]) == sets[-1] and len(sets) == len(roots), "missing sets")
    inner = parts["is_leaf"] == 0
    require((inner | (parts["is_leaf"] == 1)).all(), "is_leaf is not 0 or 1")
    sizes = np.diff(roots)
    first = np.repeat(roots[:-1], sizes)
    left, right = parts["left"] + first, parts["right"] + first
    require_family(left, right, inner, roots)
    require_depth(left, right, inner, roots)
    feature = parts["feature_idx"][inner]
    require(((feature >= 0) & (feature < n_features)).all(), "features out of range")
    require(not np.isnan(parts["num_threshold"][inner]).any(), "thresholds are NaN")
    by_set = parts["is_categorical"] != 0
    most = np.repeat(np.diff(sets), sizes)
    require((parts["bitset_idx"] < most)[by_set].all(), "sets out of range")
    _learn_columns(model, parts)
    n_known = [len(own) - _ends_missing(own) for own in parts["categories"]]
    # Categorical columns come first in HistGradientBoosting.
    require((parts["feature_idx"] < len(n_known))[by_set & inner].all(), "sets for numbers")
    nodes = np.zeros(n, dtype=_compat.boosting_nodes())
    for name, _ in BOOSTED_NODES:
        nodes[name] = parts[name]
    own_sets = [np.split(parts[name], sets[1:-1]) for name in SETS]
    trees = list(zip(np.split(nodes, roots[1:-1]), *own_sets, strict=True))
    _compat.set_boosted_trees(
        model, start=start, trees=trees, n_known=n_known, classes=classes
    )
    for name in ("train_score", "validation_score"):
        require_array(parts[name], np.float64, (None,), name)
    require(type(parts["stopping"]) is bool, "early stopping")
    vars(model).update(
        do_early_stopping_=parts["stopping"],
        train_score_=parts["train_score"],
        validation_score_=parts["validation_score"],
    )


def _ends_missing(categories: NDArray[Any]) -> bool:
    last = categories[-1] if len(categories) else None
    return isinstance(last, (float, np.floating)) and bool(np.isnan(last))


def _learn_columns(model: Any, parts: Parts) -> None:
    """Fit the model's column preprocessing on a table with all categories."""
    n_features, names = parts["n_features"], parts["names"]
    named, known = parts["categorical"], parts["categories"]
    if named is None:
        require(known == [], "categories without columns")
        _compat.fit_boosting_columns(model, None, None)
        model.n_features_in_ = n_features
        if names is not None:
            model.feature_names_in_ = names
        return
    require_array(named, bool, (n_features,), "categorical columns")
    require(isinstance(known, list) and len(known) == named.sum(), "missing categories")
    for own in known:
        one = isinstance(own, np.ndarray) and own.ndim == 1 and own.dtype.kind in "biufUO"
        require(one and 0 < len(own) <= 257, "unknown kind of categories")
        good = all(isinstance(item, (str, int, float, np.generic)) for item in own)
        require(good, "unknown kind of categories")
    n_rows = max([1, *map(len, known)])
    columns: list[Any] = [np.zeros(n_rows)] * n_features
    for place, own in zip(np.flatnonzero(named), known, strict=True):
        columns[place] = np.resize(own, n_rows)
    table: Any
    if names is not None:
        table = pd.DataFrame(dict(enumerate(columns)))
        table.columns = names
    elif any(own.dtype.kind in "UO" for own in known):
        table = np.column_stack([column.astype(object) for column in columns])
    else:
        table = np.column_stack(columns)
    _compat.fit_boosting_columns(model, table, named)
    for ours, theirs in zip(known, _compat.boosting_categories(model), strict=True):
        same = list(map(repr, ours.tolist())) == list(map(repr, theirs.tolist()))
        require(same, "categories out of order")
