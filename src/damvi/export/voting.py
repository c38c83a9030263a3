"""The weighted vote of all voters, as nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..voters.asking import FoldModels
from ..voters.bagging import BaggedVoters
from ..voters.pool import PoolVoters
from ..voters.relabelling import Relabelled
from ..voters.trees.forest import Forest
from ..voters.trees.voters import TreeVoters
from .curves import clip, linear, write_vote_calibrator
from .encoders import Data
from .graph import Graph
from .models import own_numbers, write_model
from .own_trees import read_own_trees
from .tree_writer import write_trees


def write_vote(graph: Graph, model: Any, data: Data) -> str:
    """The vote of a fitted classifier, (n,), summed up in the order that it has itself."""
    voters, weights = model._voters, model.weights_
    if isinstance(voters, TreeVoters):
        total = _of_trees(graph, voters, weights, data)
    else:
        assert isinstance(voters, PoolVoters | BaggedVoters)
        total = _of_models(graph, voters, weights, data)
    return clip(graph, total, -1.0, 1.0)


def _of_trees(graph: Graph, voters: TreeVoters, weights: Any, data: Data) -> str:
    forest, own_weights = asked_trees(voters, weights)
    weight = np.repeat(own_weights, np.diff(forest.roots))
    trees = read_own_trees(forest, voters.features.binning, weight * forest.ballot)
    X = own_numbers(graph, voters.features, data)
    return graph.ordered_sum(write_trees(graph, X, trees), len(trees))


def asked_trees(voters: TreeVoters, weights: Any) -> tuple[Forest, Any]:
    """The trees that have a weight, and their weights."""
    asked = np.flatnonzero(weights)
    return Forest.join([voters.forest.tree(k) for k in asked.tolist()]), weights[asked]


def _of_models(
    graph: Graph, voters: PoolVoters | BaggedVoters, weights: Any, data: Data
) -> str:
    total = ""
    for k in np.flatnonzero(weights).tolist():
        with blamed(voters, k):
            vote = _vote(graph, voters, k, data)
        part = graph.add("Mul", graph.constant(weights[k]), vote)
        total = graph.add("Add", total, part) if total else part
    return total


@contextmanager
def blamed(voters: PoolVoters | BaggedVoters, k: int) -> Iterator[None]:
    """Name the voter in errors."""
    name = repr(voters.names[k]) if isinstance(voters, PoolVoters) else str(k)
    try:
        yield
    except ValueError as error:
        raise ValueError(
            f"voter {name} ({_kind(voters.estimators[k])}) cannot be written as ONNX: "
            f"{error}. Leave it out of the pool, or export to skops"
        ) from error


def _kind(model: Any) -> str:
    if isinstance(model, Relabelled):
        return _kind(model.estimator)
    steps = getattr(model, "steps", None)
    return type(steps[-1][1] if steps else model).__name__


def _vote(graph: Graph, voters: PoolVoters | BaggedVoters, k: int, data: Data) -> str:
    model = voters.estimators[k]
    if isinstance(voters, BaggedVoters):
        return _hard_vote(graph, model, 1, data)
    models = model.models if isinstance(model, FoldModels) else [model]
    if voters.voting == "hard":
        said = [_hard_vote(graph, one, voters.positive, data) for one in models]
        total = add_up(graph, said)
        return _sign(graph, graph.add("Greater", total, graph.constant(0.0)))
    said = [_soft_vote(graph, one, voters.positive, data) for one in models]
    if voters.calibrators is not None:
        calibrator = voters.calibrators[k]
        said = [write_vote_calibrator(graph, vote, calibrator) for vote in said]
    if len(said) == 1:
        return said[0]
    mean = graph.add("Div", add_up(graph, said), graph.constant(float(len(said))))
    return graph.single(mean)


def add_up(graph: Graph, votes: list[str]) -> str:
    """From left to right."""
    total = votes[0]
    for vote in votes[1:]:
        total = graph.add("Add", total, vote)
    return total


def _hard_vote(graph: Graph, model: Any, positive: Any, data: Data) -> str:
    if type(model).__name__ == "DummyClassifier":  # a sample of one class
        return _constant_vote(graph, model, positive, data)
    decided = write_model(graph, model, data).decided
    if model.classes_[1] != positive:
        decided = graph.add("Not", decided)
    return _sign(graph, decided)


def _constant_vote(graph: Graph, model: Any, positive: Any, data: Data) -> str:
    if model.strategy not in ("prior", "most_frequent"):
        raise ValueError(f"strategy={model.strategy!r} draws at random")
    label = model.classes_[int(np.argmax(model.class_prior_))]
    any_input = data.inputs[0] if not hasattr(data, "name") else data.name
    shape = graph.add("Shape", any_input, end=1)
    return graph.add("Expand", graph.constant([1.0 if label == positive else -1.0]), shape)


def _soft_vote(graph: Graph, model: Any, positive: Any, data: Data) -> str:
    chance = write_model(graph, model, data).chance
    sides = 1.0 if model.classes_[1] == positive else -1.0
    return graph.single(clip(graph, linear(graph, chance, 2 * sides, -sides), -1.0, 1.0))


def _sign(graph: Graph, decided: str) -> str:
    return graph.add("Where", decided, graph.constant(1.0), graph.constant(-1.0))
