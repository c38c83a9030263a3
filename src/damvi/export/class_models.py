"""Fitted classifiers of three or more classes as nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..voters.relabelling import Relabelled
from .boosters import Boosted, read_catboost, read_lightgbm, read_xgboost
from .class_curves import single_softmax, softmax
from .encoders import Data, write_step
from .graph import Graph
from .models import own_numbers, refuse_unknown, write_model, write_sums
from .own_trees import read_own_trees
from .sklearn_trees import read_hist_boosting, read_tree
from .table import as_matrix
from .tree_writer import write_trees
from .trees import Trees


@dataclass(frozen=True)
class ClassSaid:
    """What a classifier says about each row.

    ``shares`` (n, c) are the probabilities of its classes, in doubles, or what a decision
    function stands for, read as log-odds; ``winner`` (n,) is the place of the class that
    it predicts.
    """

    shares: str
    winner: str


def write_class_model(graph: Graph, model: Any, data: Data) -> ClassSaid:
    """What a fitted classifier says about the data, in the order of its ``classes_``."""
    if isinstance(model, Relabelled):
        return write_class_model(graph, model.estimator, data)
    name = type(model).__name__
    if name == "Pipeline":
        for _, step in model.steps[:-1]:
            data = write_step(graph, step, data)
        return write_class_model(graph, model.steps[-1][1], data)
    if name == "DummyClassifier":  # a sample of one class
        return _constant(graph, model, data)
    refuse_unknown(name, WRITERS)
    if len(model.classes_) == 2:
        return _of_two(graph, model, data)
    return WRITERS[name](graph, model, data)


def _of_two(graph: Graph, model: Any, data: Data) -> ClassSaid:
    """A voter that has met two classes only."""
    said = write_model(graph, model, data)
    first = graph.add("Sub", graph.constant(1.0), said.chance)
    shares = graph.side_by_side([first, said.chance])
    return ClassSaid(shares, graph.cast(said.decided, np.int64))


def _constant(graph: Graph, model: Any, data: Data) -> ClassSaid:
    if model.strategy not in ("prior", "most_frequent"):
        raise ValueError(f"strategy={model.strategy!r} draws at random")
    prior = np.ravel(model.class_prior_)
    best = np.argmax(prior)
    shares = prior if model.strategy == "prior" else np.eye(len(prior))[best]
    any_input = data.inputs[0] if not hasattr(data, "name") else data.name
    rows = graph.add("Shape", any_input, end=1)
    width = graph.constant([len(prior)], np.int64)
    shape = graph.add("Concat", rows, width, axis=0)
    return ClassSaid(
        graph.add("Expand", graph.constant([shares]), shape),
        graph.add("Expand", graph.constant([best], np.int64), rows),
    )


def _largest_share(graph: Graph, shares: str) -> ClassSaid:
    return ClassSaid(shares, graph.first_largest(shares))


def _own_forest(graph: Graph, model: Any, data: Data) -> ClassSaid:
    forest, features = model.trees_.forest, model.trees_.features
    X = own_numbers(graph, features, data)
    trees = read_own_trees(forest, features.binning, np.zeros(len(forest.nodes)))
    return _mean_of_trees(graph, X, trees, forest.shares)


def _forest(graph: Graph, model: Any, data: Data) -> ClassSaid:
    members = model.estimators_ if hasattr(model, "estimators_") else [model]
    # They read single precision, whatever they are given.
    X = graph.single(as_matrix(data).name)
    values = np.concatenate([tree.tree_.value[:, 0, :] for tree in members])
    return _mean_of_trees(graph, X, Trees.join([read_tree(t) for t in members]), values)


def _mean_of_trees(graph: Graph, X: str, trees: Trees, shares: Any) -> ClassSaid:
    """The trees say in which leaf a row is; what that is worth is looked up by class."""
    numbered = replace(trees, value=np.arange(len(trees.value), dtype=np.float64))
    leaves = graph.cast(write_trees(graph, X, numbered), np.int64)
    means = []
    for c in range(shares.shape[1]):
        said = graph.add("Gather", graph.constant(shares[:, c]), leaves)
        total = graph.ordered_sum(said, len(trees))
        means.append(graph.add("Div", total, graph.constant(float(len(trees)))))
    return _largest_share(graph, graph.side_by_side(means))


def _boosted(read: Callable[[Any], Boosted]) -> Callable[[Graph, Any, Data], ClassSaid]:
    def write(graph: Graph, model: Any, data: Data) -> ClassSaid:
        boosted = read(model)
        scores = graph.side_by_side(write_sums(graph, boosted, data))
        even_out = single_softmax if boosted.single_sum else softmax
        shares = even_out(graph, scores, len(model.classes_))
        return _largest_share(graph, shares)

    return write


def _linear(graph: Graph, model: Any, data: Data) -> ClassSaid:
    name, solver = type(model).__name__, getattr(model, "solver", None)
    one_by_one = solver == "liblinear" or getattr(model, "multi_class", None) == "ovr"
    if name == "LogisticRegression" and one_by_one:
        raise ValueError("one model a class is not known here; leave multi_class alone")
    product = graph.add("MatMul", as_matrix(data).name, graph.constant(model.coef_.T))
    scores = graph.add("Add", product, graph.constant(np.ravel(model.intercept_)))
    shares = softmax(graph, scores, len(model.classes_))
    return ClassSaid(shares, graph.first_largest(scores))


WRITERS: dict[str, Callable[[Graph, Any, Data], ClassSaid]] = {
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
