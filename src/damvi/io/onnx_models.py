"""Write fitted classifiers as graph nodes: trees, boosters, linear models, networks.

The trees of all libraries are converted to :class:`~.onnx_graph.Trees`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._compat import boosted_trees
from ..voters.estimators import Relabelled
from ..voters.trees.binning import Binning, Features
from ..voters.trees.forest import N_CODES, Forest
from .boosters import CATEGORICAL, lightgbm_trees
from .boosters import read_lightgbm as columns_of_lightgbm
from .catboost_models import catboost_json
from .onnx_graph import (
    LEAF,
    LEQ,
    LT,
    MEMBER,
    Graph,
    Places,
    Trees,
    Values,
    expit,
    linear,
    single_expit,
    single_softmax,
    softmax,
    write_trees,
)
from .onnx_table import Data, Matrix, look_up, write_step

NOTHING = float(np.float32(1e-35))
"""LightGBM's kZeroThreshold."""
INFINITY = 1e300
"""LightGBM's value for infinity."""
DEFAULT_LEFT, MISSING_IS_ZERO, MISSING_IS_NAN = 2, 1, 2
"""Bits of LightGBM's ``decision_type``: a flag, and two values of the bits above it."""


@dataclass(frozen=True)
class Answer:
    """The output of a classifier.

    ``shares`` are the class probabilities, or the sigmoid of a decision function: (n, c),
    or for two classes those of the last, (n,). ``winner`` (n,) is the index of the
    predicted class.
    """

    shares: str
    winner: str


class _LastOfTwo:
    """How the libraries go about two classes: one share, or log-odds, of the last."""

    n_sums = 1
    lightgbm = "binary"
    xgboost = "binary:logistic"
    catboost: tuple[str, ...] = ("Logloss", "CrossEntropy")

    def by_share(self, graph: Graph, shares: str) -> Answer:
        """The largest share wins, of equal ones the first."""
        return self._by_side(graph, shares, shares, 0.5)

    def by_score(self, graph: Graph, scores: str) -> Answer:
        """The same of the scores of a linear model, a column each."""
        score = graph.column(scores, 0)
        return self._by_side(graph, expit(graph, score), score, 0.0)

    def _by_side(self, graph: Graph, shares: str, score: str, limit: float) -> Answer:
        above = graph.add("Greater", score, graph.constant(limit))
        return Answer(shares, graph.cast(above, np.int64))

    def same(self, graph: Graph, shares: Values, rows: str) -> str:
        """The same shares for all rows."""
        return graph.add("Expand", graph.constant(shares[1:]), rows)

    def mean(
        self, graph: Graph, X: str, trees: Trees, shares: Values, mean: Callable[[str], str]
    ) -> str:
        """The shares (nodes, c) of the leaves, taken together by ``mean``."""
        return mean(write_trees(graph, X, replace(trees, value=shares[:, 1])))

    def of_log_odds(self, graph: Graph, sums: list[str], single: bool) -> str:
        """The shares that sums stand for, which may be in single precision."""
        return (single_expit if single else expit)(graph, sums[0])

    def check_linear(self, model: Any) -> None:
        if getattr(model, "multi_class", None) == "multinomial":
            raise ValueError("multi_class='multinomial' is not known here; leave it alone")

    def xgboost_start(self, base: NDArray[np.float32]) -> NDArray[np.float32]:
        """The sums that XGBoost starts from, of its ``base_score``."""
        return -np.log(np.float32(1) / base - np.float32(1))


class _EachClass:
    """The same of three or more classes: a share, or a sum, of each."""

    lightgbm = "multiclass"
    xgboost = "multi:softprob"
    catboost: tuple[str, ...] = ("MultiClass",)

    def __init__(self, n_classes: int) -> None:
        self.n_sums = n_classes

    def by_share(self, graph: Graph, shares: str) -> Answer:
        return Answer(shares, graph.first_largest(shares))

    def by_score(self, graph: Graph, scores: str) -> Answer:
        return Answer(softmax(graph, scores, self.n_sums), graph.first_largest(scores))

    def same(self, graph: Graph, shares: Values, rows: str) -> str:
        columns = graph.constant([self.n_sums], np.int64)
        shape = graph.add("Concat", rows, columns, axis=0)
        return graph.add("Expand", graph.constant([shares]), shape)

    def mean(
        self, graph: Graph, X: str, trees: Trees, shares: Values, mean: Callable[[str], str]
    ) -> str:
        # The trees say in which leaf a row is; its shares are looked up by class.
        numbered = replace(trees, value=np.arange(len(shares), dtype=np.float64))
        leaves = graph.cast(write_trees(graph, X, numbered), np.int64)
        means = [mean(graph.add("Gather", graph.constant(own), leaves)) for own in shares.T]
        return graph.side_by_side(means)

    def of_log_odds(self, graph: Graph, sums: list[str], single: bool) -> str:
        even_out = single_softmax if single else softmax
        return even_out(graph, graph.side_by_side(sums), self.n_sums)

    def check_linear(self, model: Any) -> None:
        way = getattr(model, "multi_class", None)
        one_by_one = getattr(model, "solver", None) == "liblinear" or way == "ovr"
        if type(model).__name__ == "LogisticRegression" and one_by_one:
            raise ValueError("one model a class is not known here; leave multi_class alone")

    def xgboost_start(self, base: NDArray[np.float32]) -> NDArray[np.float32]:
        return base


def _kind_of(classes: Any) -> _LastOfTwo | _EachClass:
    return _LastOfTwo() if len(classes) == 2 else _EachClass(len(classes))


def write_model(graph: Graph, model: Any, data: Data) -> Answer:
    """Write the output of a fitted classifier, in the order of its ``classes_``."""
    if isinstance(model, Relabelled):
        return write_model(graph, model.estimator, data)
    name = type(model).__name__
    if name == "Pipeline":
        for _, step in model.steps[:-1]:
            data = write_step(graph, step, data)
        return write_model(graph, model.steps[-1][1], data)
    if name not in WRITERS:
        known = ", ".join(sorted(WRITERS))
        raise ValueError(f"{name} is not supported; use one of {known}")
    return WRITERS[name](graph, model, data)


def _constant(graph: Graph, model: Any, data: Data) -> Answer:
    """Write a voter whose training sample had one class."""
    if model.strategy not in ("prior", "most_frequent"):
        raise ValueError(f"strategy={model.strategy!r} is random")
    prior = np.ravel(model.class_prior_)
    best = int(np.argmax(prior))
    shares = prior if model.strategy == "prior" else np.eye(len(prior))[best]
    rows = graph.add("Shape", data.any_input, end=1)
    winner = graph.add("Expand", graph.constant([best], np.int64), rows)
    return Answer(_kind_of(prior).same(graph, shares, rows), winner)


def _linear(graph: Graph, model: Any, data: Data) -> Answer:
    kind = _kind_of(model.classes_)
    kind.check_linear(model)
    weights = graph.constant(np.atleast_2d(model.coef_).T)
    product = graph.add("MatMul", data.numbers().name, weights)
    start = graph.constant(np.ravel(model.intercept_))
    return kind.by_score(graph, graph.add("Add", product, start))


def _networks(graph: Graph, model: Any, data: Data) -> Answer:
    kind, X = _kind_of(model.classes_), data.numbers().name

    def layer(x: str, weights: Values, intercepts: Values) -> str:
        product = graph.add("MatMul", x, graph.constant(weights))
        return graph.add("Add", product, graph.constant(intercepts))

    shares = []
    for into, start, out, end in zip(*model.hidden_, *model.output_, strict=True):
        hidden = graph.add("Relu", layer(X, into, start))
        scores = layer(hidden, out[:, -kind.n_sums :], end[-kind.n_sums :])
        shares.append(kind.by_score(graph, scores).shares)
    total = shares[0]
    for one in shares[1:]:
        total = graph.add("Add", total, one)
    mean = graph.add("Div", total, graph.constant(float(len(shares))))
    return kind.by_share(graph, mean)


def _category_boosting(graph: Graph, model: Any, data: Data) -> Answer:
    if model.categorical:
        raise ValueError(
            "CatBoost's tables of categories cannot be written as operators (fit again "
            "without a time limit, or with the list estimators_used_ without this voter)"
        )
    return write_model(graph, model.estimator_, write_step(graph, model.encoder_, data))


# Trees with averaged shares.


def _own_forest(graph: Graph, model: Any, data: Data) -> Answer:
    forest, features = model.trees_.forest, model.trees_.features
    X = own_numbers(graph, features, data)
    trees = read_own_trees(forest, features.binning, forest.shares[:, 1])
    return _mean_of_trees(graph, X, trees, forest.shares)


def _forest(graph: Graph, model: Any, data: Data) -> Answer:
    members = model.estimators_ if hasattr(model, "estimators_") else [model]
    # These trees read single precision.
    X = graph.single(data.numbers().name)
    shares = np.concatenate([tree.tree_.value[:, 0, :] for tree in members])
    return _mean_of_trees(graph, X, Trees.join([read_tree(t) for t in members]), shares)


def _mean_of_trees(graph: Graph, X: str, trees: Trees, shares: Values) -> Answer:
    """The mean of the shares (nodes, c) over the trees."""
    n_trees, kind = len(trees), _kind_of(range(shares.shape[1]))

    def mean(values: str) -> str:
        total = graph.ordered_sum(values, n_trees)
        return graph.add("Div", total, graph.constant(float(n_trees)))

    return kind.by_share(graph, kind.mean(graph, X, trees, shares, mean))


def own_numbers(graph: Graph, features: Features, data: Data) -> str:
    """Write the table as the built-in trees read it; see :func:`read_own_trees`."""
    return with_codes(graph, data.numbers(features.categories), features.binning)


def with_codes(graph: Graph, X: Matrix, binning: Binning) -> str:
    """Write the features, followed by the codes of categorical features.

    onnxruntime only supports sets of integers, but categories can be anything.
    """
    columns = [X.name]
    for f in np.flatnonzero(binning.categorical).tolist():
        own = slice(int(binning.starts[f]), int(binning.starts[f + 1]))
        codes = look_up(
            graph,
            graph.column(X.name, [f]),
            binning.cuts[own],
            binning.category_codes[own].astype(np.int64),
            default=0,
        )
        columns.append(graph.cast(codes, np.float64))
    return graph.add("Concat", *columns, axis=1) if len(columns) > 1 else X.name


def read_own_trees(forest: Forest, binning: Binning, value: NDArray[Any]) -> Trees:
    """Convert the built-in trees, with a value per node, from codes back to thresholds.

    A code is the number of cuts below a value plus one, so the last code on the left gives
    the threshold; 0 is missing. Categorical splits remain splits on codes, in the columns
    that :func:`with_codes` adds.
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
    trees = Trees(
        roots=forest.roots[:-1].copy(),
        feature=forest.feature.astype(np.int64),
        mode=np.where(last > 0, LEQ, LT).astype(np.uint8),
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


def read_tree(model: Any) -> Trees:
    """Convert a scikit-learn decision tree; leaf values are the last class's share."""
    tree = model.tree_
    left = tree.children_left
    return Trees.of_nodes(
        feature=np.where(left == LEAF, 0, tree.feature),
        threshold=tree.threshold,
        left=left,
        right=tree.children_right,
        missing_left=tree.missing_go_to_left,
        value=tree.value[:, 0, -1],
    )


# Boosted trees, whose values are summed.


@dataclass(frozen=True, eq=False)
class Boosted:
    """Trees whose sum is the log-odds of the last class, or of each of C > 2 classes.

    Sums begin at ``start`` and are transformed with ``slope`` and ``bias`` at the end;
    start and bias have one entry per sum. ``of_class`` is the sum that each tree adds to.
    With ``single_values``, features are compared in single precision; with ``single_sum``,
    trees are summed in it.
    """

    trees: Trees
    start: tuple[float, ...]
    bias: tuple[float, ...]
    of_class: Places
    slope: float = 1.0
    single_values: bool = False
    single_sum: bool = False


def _boosted(read: Callable[[Any], Boosted]) -> Callable[[Graph, Any, Data], Answer]:
    def write(graph: Graph, model: Any, data: Data) -> Answer:
        boosted, kind = read(model), _kind_of(model.classes_)
        sums = _write_sums(graph, boosted, data)
        return kind.by_share(graph, kind.of_log_odds(graph, sums, boosted.single_sum))

    return write


def _write_sums(graph: Graph, boosted: Boosted, data: Data) -> list[str]:
    """Write the sums of boosted trees, (n,) each: one, or one per class."""
    X = data.numbers().name
    if boosted.single_values:
        X = graph.single(X)
    values = write_trees(graph, X, boosted.trees)
    shape = graph.add("Shape", values, end=1)
    rows = graph.add("Concat", shape, graph.constant([1], np.int64), axis=0)
    sums = []
    for c, first in enumerate(boosted.start):
        places = np.flatnonzero(boosted.of_class == c)
        own = values if len(boosted.start) == 1 else graph.column(values, places)
        # Add the start first, as the library does.
        start = graph.add("Expand", graph.constant([[first]]), rows)
        terms = graph.add("Concat", start, own, axis=1)
        if boosted.single_sum:
            terms = graph.cast(terms, np.float32)
        total = graph.ordered_sum(terms, len(places) + 1)
        if not boosted.single_sum:
            total = linear(graph, total, boosted.slope, boosted.bias[c])
        sums.append(total)
    return sums


def read_lightgbm(model: Any) -> Boosted:
    """A fitted ``LGBMClassifier``."""
    kind, parts = _kind_of(model.classes_), columns_of_lightgbm(model)
    if parts["objective"] != kind.lightgbm:
        raise ValueError(
            f"LightGBM can be exported with the objective {kind.lightgbm!r}, not "
            f"{parts['objective']!r}"
        )
    best = max(parts["best_iteration"], 0) * parts["width"]
    found = lightgbm_trees(parts)[: best or None]
    trees = Trees.join([_lightgbm_tree(columns) for columns in found])
    return Boosted(
        trees,
        start=(0.0,) * kind.n_sums,
        bias=(0.0,) * kind.n_sums,
        of_class=np.arange(len(found)) % kind.n_sums,
        slope=parts["sigmoid"] if kind.n_sums == 1 else 1.0,
    )


def _lightgbm_tree(columns: dict[str, NDArray[Any]]) -> Trees:
    n_leaves = len(columns["leaf_value"])
    if n_leaves == 1:
        nothing = np.zeros(1)
        return Trees.of_nodes(
            feature=nothing,
            threshold=nothing,
            left=[LEAF],
            right=[LEAF],
            missing_left=nothing,
            value=columns["leaf_value"],
        )
    kinds = columns["decision_type"]
    missing = kinds >> 2
    if ((kinds & CATEGORICAL) != 0).any() or (missing == MISSING_IS_ZERO).any():
        raise ValueError(
            "categorical splits and zero_as_missing are not supported; put "
            "damvi.voters.NumberEncoder before it, and leave zero_as_missing off"
        )
    # LightGBM treats values up to NOTHING as 0, so thresholds next to 0 are moved.
    threshold = columns["threshold"]
    beside = np.where(threshold < 0, np.nextafter(-NOTHING, -np.inf), NOTHING)
    near = np.where(np.abs(threshold) <= NOTHING, beside, threshold)
    exact = np.where(np.abs(near) >= INFINITY, np.copysign(np.inf, near), near)
    # If no value was missing at fit, missing counts as 0.
    default_left = (kinds & DEFAULT_LEFT) != 0
    missing_left = np.where(missing == MISSING_IS_NAN, default_left, exact >= 0)
    # Leaf k is stored as -k - 1, and comes after all splits here.
    n_splits, none = n_leaves - 1, np.full(n_leaves, LEAF)
    left, right = (
        np.append(np.where(side < 0, n_splits - side - 1, side), none)
        for side in (columns["left_child"], columns["right_child"])
    )
    pad = np.zeros(n_leaves)
    return Trees.of_nodes(
        feature=np.append(columns["split_feature"], pad),
        threshold=np.append(exact, pad),
        left=left,
        right=right,
        missing_left=np.append(missing_left, pad),
        value=np.append(np.zeros(n_leaves - 1), columns["leaf_value"]),
    )


def read_xgboost(model: Any) -> Boosted:
    """Convert a fitted ``XGBClassifier``."""
    booster = model.get_booster()
    learner = json.loads(booster.save_raw("json"))["learner"]
    booster_name, objective = (
        learner[part]["name"] for part in ("gradient_booster", "objective")
    )
    kind = _kind_of(model.classes_)
    if booster_name != "gbtree" or objective != kind.xgboost:
        raise ValueError(
            f"XGBoost can be exported with booster 'gbtree' and objective "
            f"{kind.xgboost!r}, not {booster_name!r} and {objective!r}"
        )
    if not np.isnan(model.missing):
        raise ValueError(f"missing={model.missing!r} is not supported; leave it at NaN")
    content = learner["gradient_booster"]["model"]
    trees = content["trees"]
    if (best := booster.attr("best_iteration")) is not None:
        trees = trees[: content["iteration_indptr"][int(best) + 1]]
    given = learner["learner_model_param"]["base_score"].strip("[]").split(",")
    base = kind.xgboost_start(np.array(given, dtype=np.float32))
    return Boosted(
        Trees.join([_xgboost_tree(tree) for tree in trees]),
        start=tuple(np.broadcast_to(base, kind.n_sums).tolist()),
        bias=(0.0,) * kind.n_sums,
        of_class=np.array(content["tree_info"][: len(trees)], dtype=np.int64),
        single_values=True,
        single_sum=True,
    )


def _xgboost_tree(tree: dict[str, Any]) -> Trees:
    if tree["tree_param"]["size_leaf_vector"] not in ("0", "1"):
        raise ValueError(
            "vector-valued leaves are not supported; leave multi_strategy unset"
        )
    if any(tree["split_type"]):
        raise ValueError(
            "categorical splits (enable_categorical) are not supported; put "
            "damvi.voters.NumberEncoder before it"
        )
    left = np.array(tree["left_children"])
    conditions = np.array(tree["split_conditions"], dtype=np.float32)
    return Trees.of_nodes(
        feature=np.where(left == LEAF, 0, tree["split_indices"]),
        threshold=conditions,
        left=left,
        right=tree["right_children"],
        missing_left=tree["default_left"],
        value=conditions,
        mode=LT,
    )


def read_catboost(model: Any) -> Boosted:
    """Convert a fitted ``CatBoostClassifier``."""
    content = json.loads(catboost_json(model))
    features = content["features_info"]
    if "oblivious_trees" not in content or set(features) - {"float_features"}:
        raise ValueError(
            "only symmetric trees on numeric features are supported; use the default "
            "grow_policy, and damvi.voters.NumberEncoder instead of cat_features"
        )
    objective = model.get_all_params()["loss_function"]
    known = _kind_of(model.classes_).catboost
    if objective not in known:
        raise ValueError(f"only loss_function {known[0]!r} is supported, not {objective!r}")
    columns = {feature["feature_index"]: feature for feature in features["float_features"]}
    scale, bias = content["scale_and_bias"]
    trees = [
        # One tree per class; they differ only in their leaves.
        _catboost_tree(tree, own, columns)
        for tree in content["oblivious_trees"]
        for own in np.reshape(tree["leaf_values"], (-1, len(bias))).T
    ]
    return Boosted(
        Trees.join(trees),
        start=(0.0,) * len(bias),
        of_class=np.arange(len(trees)) % len(bias),
        slope=float(scale),
        bias=tuple(map(float, bias)),
        single_values=True,
    )


def _catboost_tree(
    tree: dict[str, Any], values: NDArray[Any], columns: dict[int, dict[str, Any]]
) -> Trees:
    """Convert a table of leaves, with one index bit per split, to a tree."""
    splits = tree["splits"] or []
    depth = len(splits)
    inner = 2**depth - 1
    nodes = np.arange(2 * inner + 1)
    level = np.floor(np.log2(nodes + 1)).astype(np.int64)
    own: list[Any] = [splits[depth - 1 - step] for step in level[:inner]]
    column = [columns[split["float_feature_index"]] for split in own]
    pad = [0] * (inner + 1)
    return Trees.of_nodes(
        feature=[c["flat_feature_index"] for c in column] + pad,
        threshold=np.array([split["border"] for split in own] + pad, dtype=np.float32),
        left=np.where(nodes < inner, 2 * nodes + 1, LEAF),
        right=np.where(nodes < inner, 2 * nodes + 2, LEAF),
        missing_left=[c["nan_value_treatment"] != "AsTrue" for c in column] + pad,
        # Read the bits of a leaf's index from last to first.
        value=np.concatenate([np.zeros(inner), values]),
    )


def read_hist_boosting(model: Any) -> Boosted:
    """Convert a fitted ``HistGradientBoostingClassifier``."""
    start, predictors = boosted_trees(model)
    trees = []
    for nodes in (tree.nodes for tree in predictors):
        leaf = nodes["is_leaf"].astype(bool)
        if nodes["is_categorical"].any():
            raise ValueError(
                "categorical splits are not supported; put damvi.voters.NumberEncoder "
                "before it instead of using categorical_features"
            )
        trees.append(
            Trees.of_nodes(
                feature=np.where(leaf, 0, nodes["feature_idx"]),
                threshold=nodes["num_threshold"],
                left=np.where(leaf, LEAF, nodes["left"].astype(np.int64)),
                right=np.where(leaf, LEAF, nodes["right"].astype(np.int64)),
                missing_left=nodes["missing_go_to_left"],
                value=nodes["value"],
            )
        )
    of_class = np.arange(len(trees)) % len(start)
    return Boosted(Trees.join(trees), start, (0.0,) * len(start), of_class)


WRITERS: dict[str, Callable[[Graph, Any, Data], Answer]] = {
    "CatBoostClassifier": _boosted(read_catboost),
    "CategoryBoostingClassifier": _category_boosting,
    "DecisionTreeClassifier": _forest,
    "DummyClassifier": _constant,
    "ExtraTreeClassifier": _forest,
    "ExtraTreesClassifier": _forest,
    "FastForestClassifier": _own_forest,
    "FastTreeClassifier": _own_forest,
    "HistGradientBoostingClassifier": _boosted(read_hist_boosting),
    "LGBMClassifier": _boosted(read_lightgbm),
    "LinearSVC": _linear,
    "LogisticRegression": _linear,
    "NetworksClassifier": _networks,
    "RandomForestClassifier": _forest,
    "RidgeClassifier": _linear,
    "XGBClassifier": _boosted(read_xgboost),
}
