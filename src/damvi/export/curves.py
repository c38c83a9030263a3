"""Curves as nodes of a graph: interpolation, log-odds and what calibrators do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..decision.calibration import TILT, Calibrator
from ..decision.curves import BetaCurve, Knots, Line
from ..voters.calibration import Isotonic
from ..voters.platt import LARGEST_VOTE, Platt
from .graph import Graph
from .tree_writer import write_trees
from .trees import LEAF, LT, Trees

KnotPair = tuple[NDArray[Any], NDArray[Any]]


def expit(graph: Graph, x: str) -> str:
    """1 / (1 + exp(-x)); the operator Sigmoid is an approximation."""
    one = graph.constant(1.0)
    return graph.add(
        "Div", one, graph.add("Add", one, graph.add("Exp", graph.add("Neg", x)))
    )


def clip(graph: Graph, x: str, low: float, high: float) -> str:
    """``x`` within bounds."""
    return graph.add("Clip", x, graph.constant(low), graph.constant(high))


def linear(graph: Graph, x: str, slope: float, intercept: float) -> str:
    """slope * x + intercept."""
    steep = graph.add("Mul", x, graph.constant(slope))
    return graph.add("Add", steep, graph.constant(intercept))


def interpolate(graph: Graph, X: str, knots: Sequence[KnotPair]) -> tuple[str, str]:
    """As ``numpy.interp``, each column of ``X`` (n, d) by its own knots.

    The stretch that a value lies in is found by a small tree a column. The second output
    is the height of the knot at its end. NaN comes out as anything.
    """
    starts = np.cumsum([0, *(len(at) for at, _ in knots)])[:-1]
    at = np.concatenate([np.asarray(values, dtype=np.float64) for values, _ in knots])
    height = np.concatenate([np.asarray(ys, dtype=np.float64) for _, ys in knots])
    last = np.append(starts[1:], len(at)) - 1
    is_last = np.isin(np.arange(len(at)), last)
    after = np.where(is_last, np.arange(len(at)), np.arange(len(at)) + 1)
    rise, run = height[after] - height, at[after] - at
    slope = np.divide(rise, run, out=np.zeros(len(at)), where=run > 0)

    low, high = graph.constant(at[starts]), graph.constant(at[last])
    inside = graph.add("Min", graph.add("Max", X, low), high)
    trees = [
        _stretches(f, np.asarray(values, dtype=np.float64), int(start))
        for f, ((values, _), start) in enumerate(zip(knots, starts, strict=True))
    ]
    place = graph.cast(write_trees(graph, inside, Trees.join(trees)), np.int64)

    def look_up(values: NDArray[np.float64]) -> str:
        return graph.add("Gather", graph.constant(values), place)

    along = graph.add("Mul", graph.add("Sub", inside, look_up(at)), look_up(slope))
    return graph.add("Add", along, look_up(height)), look_up(height[after])


def _stretches(feature: int, at: NDArray[np.float64], start: int) -> Trees:
    """A balanced tree whose leaves are the places of the last knot at or below a value."""
    left, right, threshold, value = [LEAF], [LEAF], [0.0], [0.0]
    todo = [(0, 0, len(at))]
    while todo:
        node, low, high = todo.pop()
        if high - low == 1:
            value[node] = start + low
            continue
        middle = (low + high) // 2
        threshold[node], left[node] = float(at[middle]), len(left)
        right[node] = len(left) + 1
        todo += [(left[node], low, middle), (right[node], middle, high)]
        for values, new in ((left, LEAF), (right, LEAF), (threshold, 0.0), (value, 0.0)):
            values += [new, new]
    return Trees.of_nodes(
        feature=np.full(len(left), feature),
        threshold=threshold,
        left=left,
        right=right,
        missing_left=np.zeros(len(left), dtype=bool),
        value=value,
        mode=LT,
    )


def _interpolate_one(graph: Graph, x: str, at: Any, height: Any) -> tuple[str, str]:
    column = graph.add("Unsqueeze", x, graph.constant([1], np.int64))
    lines = interpolate(graph, column, [(np.asarray(at), np.asarray(height))])
    return graph.column(lines[0], 0), graph.column(lines[1], 0)


def write_vote_calibrator(graph: Graph, vote: str, calibrator: Any) -> str:
    """A voter's calibrator, on soft votes in single precision; (n,) to (n,)."""
    if isinstance(calibrator, Isotonic):
        right, _ = _interpolate_one(graph, vote, calibrator.votes, calibrator.calibrated)
    elif isinstance(calibrator, Platt):
        inside = clip(graph, vote, -LARGEST_VOTE, LARGEST_VOTE)
        one = graph.constant(1.0)
        odds = graph.add(
            "Div", graph.add("Add", one, inside), graph.add("Sub", one, inside)
        )
        turned = linear(
            graph, graph.add("Log", odds), calibrator.slope, calibrator.intercept
        )
        right = linear(graph, expit(graph, turned), 2.0, -1.0)
    else:
        raise ValueError(f"its calibrator {type(calibrator).__name__} is not known here")
    return graph.single(right)


def write_calibrator(graph: Graph, vote: str, calibrator: Calibrator) -> str:
    """The chance of the positive class, of votes in [-1, 1]."""
    shifted = linear(graph, _log_odds(graph, vote, calibrator.curve), 1.0, calibrator.shift)
    chance = expit(graph, clip(graph, shifted, -700.0, 700.0))
    # Votes stay within the scale, which is 1 at least.
    tilt = linear(graph, vote, TILT / calibrator.scale, 1 - 1.6 * TILT)
    return graph.add("Mul", chance, tilt)


def _log_odds(graph: Graph, vote: str, curve: Line | BetaCurve | Knots) -> str:
    if isinstance(curve, Line):
        return linear(graph, vote, curve.slope, curve.intercept)
    if isinstance(curve, Knots):
        line, ceiling = _interpolate_one(graph, vote, curve.votes, curve.log_odds)
        return graph.add("Min", line, ceiling)
    half = 0.5 / curve.scale
    up = clip(graph, linear(graph, vote, half, 0.5), curve.low, 1.0)
    down = clip(graph, linear(graph, vote, -half, 0.5), curve.high, 1.0)
    for_votes = linear(graph, graph.add("Log", up), curve.for_votes, curve.intercept)
    against = graph.add("Mul", graph.add("Log", down), graph.constant(-curve.against))
    return graph.add("Add", for_votes, against)
