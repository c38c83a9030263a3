"""The vote for each of three or more classes, as nodes of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..voters.asking import FoldModels
from ..voters.bagging import BaggedVoters
from ..voters.pool import PoolVoters
from ..voters.trees.voters import TreeVoters
from .class_curves import write_class_curves
from .class_models import write_class_model
from .curves import clip
from .encoders import Data
from .graph import Graph
from .models import own_numbers
from .own_trees import read_own_trees
from .tree_writer import write_trees
from .voting import add_up, asked_trees, blamed


def write_class_vote(graph: Graph, model: Any, data: Data) -> str:
    """The votes (n, C) of a fitted classifier, summed up in the order it has itself."""
    voters, weights = model._voters, model.weights_
    if isinstance(voters, TreeVoters):
        total = _of_trees(graph, voters, weights, data)
    else:
        total = _of_models(graph, voters, weights, len(model.classes_), data)
    return clip(graph, total, 0.0, 1.0)


def _of_trees(graph: Graph, voters: TreeVoters, weights: Any, data: Data) -> str:
    forest, own_weights = asked_trees(voters, weights)
    ballot = forest.ballot.astype(np.float64)
    trees = read_own_trees(forest, voters.features.binning, ballot)
    said = write_trees(graph, own_numbers(graph, voters.features, data), trees)
    weight, nothing = graph.constant(own_weights), graph.constant(0.0)
    totals = []
    for c in range(voters.n_classes):
        for_it = graph.add("Equal", said, graph.constant(float(c)))
        gain = graph.add("Where", for_it, weight, nothing)
        totals.append(graph.ordered_sum(gain, len(trees)))
    return graph.side_by_side(totals)


def _of_models(
    graph: Graph, voters: PoolVoters | BaggedVoters, weights: Any, width: int, data: Data
) -> str:
    total = ""
    for k in np.flatnonzero(weights).tolist():
        with blamed(voters, k):
            vote = _vote(graph, voters, k, width, data)
        part = graph.add("Mul", graph.constant(weights[k]), vote)
        total = graph.add("Add", total, part) if total else part
    return total


def _vote(
    graph: Graph, voters: PoolVoters | BaggedVoters, k: int, width: int, data: Data
) -> str:
    model = voters.estimators[k]
    if isinstance(voters, BaggedVoters):
        return _hard_vote(graph, model, np.arange(width), data)
    classes: Any = voters.classes
    models = model.models if isinstance(model, FoldModels) else [model]
    if voters.voting == "hard":
        said = [_hard_vote(graph, one, classes, data) for one in models]
        if len(said) == 1:
            return said[0]
        return graph.one_hot(graph.first_largest(add_up(graph, said)), width)
    said = [_soft_vote(graph, one, classes, data) for one in models]
    if voters.calibrators is not None:
        curves: Any = voters.calibrators[k]
        said = [write_class_curves(graph, vote, curves) for vote in said]
    if len(said) == 1:
        return said[0]
    mean = graph.add("Div", add_up(graph, said), graph.constant(float(len(said))))
    return graph.single(mean)


def _places(model: Any, classes: Any) -> Any:
    """Where the classes of a voter are among all."""
    return np.searchsorted(classes, np.asarray(model.classes_))


def _hard_vote(graph: Graph, model: Any, classes: Any, data: Data) -> str:
    own = write_class_model(graph, model, data).winner
    places = graph.constant(_places(model, classes), np.int64)
    return graph.one_hot(graph.add("Gather", places, own), len(classes))


def _soft_vote(graph: Graph, model: Any, classes: Any, data: Data) -> str:
    shares = write_class_model(graph, model, data).shares
    places = _places(model, classes)
    if len(places) < len(classes):  # nothing for those it has never met
        spread = graph.constant(np.eye(len(classes))[places])
        shares = graph.add("MatMul", shares, spread)
    return graph.single(clip(graph, shares, 0.0, 1.0))
