"""From the votes on three or more classes to label and probability."""

from __future__ import annotations

from typing import Any

import numpy as np

from .class_curves import write_class_calibrator
from .graph import Graph
from .outputs import name_places

STEP = 2.0**-53 * (1 + 2.0**-10)
"""Of a number: what, added to it, rounds to the next double, whatever its last bits."""


def write_class_label(graph: Graph, model: Any, vote: str, said: Any) -> None:
    """The largest vote times factor; see :meth:`DAMVIClassifier.decision_function`."""
    scores = graph.add("Mul", vote, graph.constant(model.threshold_))
    name_places(graph, _winner(graph, scores, model._majority), said)


def write_class_probability(graph: Graph, model: Any, vote: str) -> None:
    """The chances of all classes, or the votes, with ties settled."""
    if model._calibrator is not None:
        found = write_class_calibrator(graph, vote, model._calibrator)
    else:
        best = graph.add("Equal", vote, graph.largest(vote))
        rivals = graph.ordered_sum(graph.cast(best, np.float64), len(model.classes_))
        tied = graph.add("Greater", graph.upright(rivals), graph.constant(1.0))
        winner = graph.upright(_winner(graph, vote, model._majority))
        places = graph.constant(np.arange(len(model.classes_)), np.int64)
        raised = graph.add("And", tied, graph.add("Equal", winner, places))
        step = graph.add("Mul", vote, graph.constant(STEP))
        found = graph.add("Where", raised, graph.add("Add", vote, step), vote)
    graph.add("Identity", found, to="probability")


def _winner(graph: Graph, scores: str, order: Any) -> str:
    """The place of the largest score; of equal ones, of that which is first in order."""
    best = graph.first_largest(graph.columns(scores, order))
    return graph.add("Gather", graph.constant(order, np.int64), best)
