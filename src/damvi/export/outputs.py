"""From the vote to what a graph gives: label and probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..classifier import TIE
from .curves import linear, write_calibrator
from .graph import Graph


def read_labels(classes: Any, labels: Sequence[str] | None) -> Any:
    """What the classes are called in the output, checked."""
    said = classes if labels is None else np.array(labels, dtype=object)
    if len(said) != len(classes):
        raise ValueError(f"{len(said)} labels for {len(classes)} classes")
    if said.dtype.kind in "OU" and not all(isinstance(x, str) for x in said.tolist()):
        raise ValueError(
            f"labels of mixed kinds ({said.tolist()}) are not known to ONNX; give "
            f"labels=('...', '...')"
        )
    return said


def name_places(graph: Graph, place: str, said: Any) -> None:
    """The labels, from the places of the classes."""
    kind = object if said.dtype.kind in "OU" else said.dtype
    graph.add("Gather", graph.constant(said, kind), place, to="label")


def write_label(graph: Graph, model: Any, vote: str, said: Any) -> None:
    """The majority wins a tie; see :meth:`DAMVIClassifier.decision_function`."""
    excess = graph.add("Sub", vote, graph.constant(model.threshold_))
    positive = int(model.pos_label_ == model.classes_[1])
    side = graph.add(
        "Where",
        graph.add("Greater", excess, graph.constant(0.0)),
        graph.constant(positive, np.int64),
        graph.constant(1 - positive, np.int64),
    )
    tied = graph.add("Equal", excess, graph.constant(0.0))
    place = graph.add("Where", tied, graph.constant(model._majority, np.int64), side)
    name_places(graph, place, said)


def write_probability(graph: Graph, model: Any, vote: str) -> None:
    """The chances of both classes, or the vote on a scale from 0 to 1."""
    positive_is_last = bool(model.pos_label_ == model.classes_[1])
    if model._calibrator is None:
        sides = 0.5 if positive_is_last else -0.5
        tie = graph.constant(0.5 + TIE / 2 if model._majority == 1 else 0.5)
        zero = graph.add("Equal", vote, graph.constant(0.0))
        last = graph.add("Where", zero, tie, linear(graph, vote, sides, 0.5))
    else:
        last = write_calibrator(graph, vote, model._calibrator)
        if not positive_is_last:
            last = graph.add("Sub", graph.constant(1.0), last)
    first = graph.add("Sub", graph.constant(1.0), last)
    graph.add("Identity", graph.side_by_side([first, last]), to="probability")
