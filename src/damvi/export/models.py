"""Fitted classifiers as nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .boosters import Boosted, read_catboost, read_lightgbm, read_xgboost
from .curves import expit, linear
from .encoders import Data, write_step
from .graph import Graph
from .own_trees import read_own_trees, with_codes
from .sklearn_trees import read_hist_boosting, read_tree
from .table import Table, as_matrix
from .tree_writer import write_trees
from .trees import Trees


@dataclass(frozen=True)
class Said:
    """What a classifier says about each row, (n,).

    ``chance`` is the probability of the last class, in doubles, or what a decision function
    stands for, read as log-odds; ``decided`` is whether that class is predicted.
    """

    chance: str
    decided: str


def write_model(graph: Graph, model: Any, data: Data) -> Said:
    """What a fitted classifier says about the data."""
    name = type(model).__name__
    if name == "Pipeline":
        for _, step in model.steps[:-1]:
            data = write_step(graph, step, data)
        return write_model(graph, model.steps[-1][1], data)
    refuse_unknown(name, WRITERS)
    if len(model.classes_) != 2:
        raise ValueError(f"it knows {len(model.classes_)} classes, and not two")
    return WRITERS[name](graph, model, data)


def refuse_unknown(name: str, writers: Mapping[str, Any]) -> None:
    """Say what is known, where a model is not."""
    if name not in writers:
        known = ", ".join(sorted(writers))
        raise ValueError(f"{name} is not known here; what is: {known}")


def _larger_half(graph: Graph, chance: str) -> Said:
    return Said(chance, graph.add("Greater", chance, graph.constant(0.5)))


def _own_forest(graph: Graph, model: Any, data: Data) -> Said:
    forest, features = model.trees_.forest, model.trees_.features
    X = own_numbers(graph, features, data)
    trees = read_own_trees(forest, features.binning, forest.shares[:, 1])
    return _mean_of_trees(graph, X, trees)


def own_numbers(graph: Graph, features: Any, data: Data) -> str:
    """The table as :func:`read_own_trees` has it."""
    if features.categories is not None and isinstance(data, Table):
        matrix = data.numbers(features.categories.by_column)
    else:
        matrix = as_matrix(data)
    return with_codes(graph, matrix, features.binning)


def _forest(graph: Graph, model: Any, data: Data) -> Said:
    members = model.estimators_ if hasattr(model, "estimators_") else [model]
    # They read single precision, whatever they are given.
    X = graph.single(as_matrix(data).name)
    return _mean_of_trees(graph, X, Trees.join([read_tree(tree) for tree in members]))


def _mean_of_trees(graph: Graph, X: str, trees: Trees) -> Said:
    total = graph.ordered_sum(write_trees(graph, X, trees), len(trees))
    return _larger_half(graph, graph.add("Div", total, graph.constant(float(len(trees)))))


def _boosted(read: Callable[[Any], Boosted]) -> Callable[[Graph, Any, Data], Said]:
    def write(graph: Graph, model: Any, data: Data) -> Said:
        boosted = read(model)
        (score,) = write_sums(graph, boosted, data)
        turn = _single_expit if boosted.single_sum else expit
        return _larger_half(graph, turn(graph, score))

    return write


def write_sums(graph: Graph, boosted: Boosted, data: Data) -> list[str]:
    """The sums of boosted trees, (n,) each: one, or one for each class."""
    X = as_matrix(data).name
    if boosted.single_values:
        X = graph.single(X)
    values = write_trees(graph, X, boosted.trees)
    shape = graph.add("Shape", values, end=1)
    rows = graph.add("Concat", shape, graph.constant([1], np.int64), axis=0)
    sums = []
    for c, (first, bias) in enumerate(zip(boosted.start, boosted.bias, strict=True)):
        own, width = values, len(boosted.trees)
        if boosted.of_class is not None:
            places = np.flatnonzero(boosted.of_class == c)
            own, width = graph.columns(values, places), len(places)
        # The start goes first, as it does there.
        start = graph.add("Expand", graph.constant([[first]]), rows)
        terms = graph.add("Concat", start, own, axis=1)
        if boosted.single_sum:
            sums.append(graph.ordered_sum(graph.cast(terms, np.float32), width + 1))
            continue
        total = graph.ordered_sum(terms, width + 1)
        sums.append(linear(graph, total, boosted.slope, bias))
    return sums


def _single_expit(graph: Graph, x: str) -> str:
    """The logistic function rounded to single precision at each step, in doubles."""
    fall = graph.add("Exp", graph.add("Neg", graph.cast(x, np.float64)))
    one = graph.constant(1.0, np.float32)
    whole = graph.add("Add", graph.cast(fall, np.float32), one)
    return graph.cast(graph.add("Div", one, whole), np.float64)


def _linear(graph: Graph, model: Any, data: Data) -> Said:
    if getattr(model, "multi_class", None) == "multinomial":
        raise ValueError("multi_class='multinomial' is not known here; leave it alone")
    weights = np.ravel(model.coef_)[:, np.newaxis]
    product = graph.add("MatMul", as_matrix(data).name, graph.constant(weights))
    score = linear(
        graph, graph.column(product, 0), 1.0, float(np.ravel(model.intercept_)[0])
    )
    decided = graph.add("Greater", score, graph.constant(0.0))
    return Said(expit(graph, score), decided)


WRITERS: dict[str, Callable[[Graph, Any, Data], Said]] = {
    "CatBoostClassifier": _boosted(read_catboost),
    "DecisionTreeClassifier": _forest,
    "ExtraTreeClassifier": _forest,
    "ExtraTreesClassifier": _forest,
    "FastForestClassifier": _own_forest,
    "FastTreeClassifier": _own_forest,
    "HistGradientBoostingClassifier": _boosted(read_hist_boosting),
    "LGBMClassifier": _boosted(read_lightgbm),
    "LinearSVC": _linear,
    "LogisticRegression": _linear,
    "RandomForestClassifier": _forest,
    "RidgeClassifier": _linear,
    "XGBClassifier": _boosted(read_xgboost),
}
