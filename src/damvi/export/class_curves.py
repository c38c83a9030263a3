"""What is done to numbers of many classes, (n, C), as nodes of a graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..decision import ClassCalibrator
from ..voters.class_calibration import ClassCurves
from .curves import linear, write_calibrator, write_vote_calibrator
from .graph import Graph


def softmax(graph: Graph, scores: str, width: int) -> str:
    """Shares in proportion to exp(score)."""
    largest = graph.largest(scores)
    high = graph.add("Exp", graph.add("Sub", scores, largest))
    return graph.add("Div", high, _row_sums(graph, high, width))


def single_softmax(graph: Graph, scores: str, width: int) -> str:
    """The same from scores in single precision, and rounded to it as XGBoost does."""
    less = graph.add("Sub", scores, graph.largest(scores))
    high = graph.cast(graph.add("Exp", graph.cast(less, np.float64)), np.float32)
    total = _row_sums(graph, graph.cast(high, np.float64), width)
    shares = graph.add("Div", high, graph.cast(total, np.float32))
    return graph.cast(shares, np.float64)


def shared_out(graph: Graph, parts: Sequence[str]) -> str:
    """Vectors of numbers of 0 or more as shares (n, C); even where all are 0."""
    whole = graph.side_by_side(parts)
    total = _row_sums(graph, whole, len(parts))
    some = graph.add("Greater", total, graph.constant(0.0))
    even = graph.constant(1 / len(parts))
    return graph.add("Where", some, graph.add("Div", whole, total), even)


def write_class_curves(graph: Graph, votes: str, curves: ClassCurves) -> str:
    """A voter's calibrator, on shares in single precision; (n, C) to (n, C)."""
    parts = []
    for c, curve in enumerate(curves.curves):
        # One class against the rest, as a soft vote of two classes.
        vote = graph.single(linear(graph, graph.column(votes, c), 2.0, -1.0))
        right = write_vote_calibrator(graph, vote, curve)
        parts.append(linear(graph, right, 0.5, 0.5))
    return graph.single(shared_out(graph, parts))


def write_class_calibrator(graph: Graph, vote: str, calibrator: ClassCalibrator) -> str:
    """The chance of each class, (n, C), of votes in [0, 1]."""
    chances = []
    for c, own in enumerate(calibrator.of_class):
        against = linear(graph, graph.column(vote, c), 2.0, -1.0)
        chances.append(write_calibrator(graph, against, own))
    return shared_out(graph, chances)


def _row_sums(graph: Graph, x: str, width: int) -> str:
    """(n, 1)."""
    return graph.upright(graph.ordered_sum(x, width))
