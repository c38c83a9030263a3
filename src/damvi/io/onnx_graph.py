"""A builder for ONNX graphs: one node per call, tensors by name, arithmetic and trees."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

OPSET, ML_OPSET, IR_VERSION = 18, 5, 12
"""Operator versions; TreeEnsemble with doubles came with ai.onnx.ml 5.

onnxruntime 1.21 to 1.23 run it, but silently give wrong results for set membership splits
and some small trees. They reject IR version 12, which is supported from 1.24 on.
"""


LEQ, LT, MEMBER = 0, 1, 6
"""Split modes; rows go left if at most the threshold, below it, or in a set."""
LEAF = -1

Values = NDArray[np.float64]
Places = NDArray[np.int64]


class Graph:
    """Nodes and constants with unique names.

    Parameters
    ----------
    taken : collection of str
        Names reserved for inputs and outputs.
    """

    def __init__(self, taken: Collection[str] = ()) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._taken = set(taken)
        self._known: dict[tuple[Any, ...], str] = {}

    def fresh(self, hint: str) -> str:
        """Return an unused name."""
        name, number = hint, 0
        while name in self._taken:
            number += 1
            name = f"{hint}_{number}"
        self._taken.add(name)
        return name

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        """Add a constant tensor; equal constants are shared."""
        from onnx import numpy_helper

        array = np.ascontiguousarray(values, dtype=dtype).reshape(np.shape(values))
        if array.dtype.kind in "OU":
            array = array.astype(object)
        content = str(array.tolist()) if array.dtype == object else array.tobytes()
        key = (str(array.dtype), array.shape, content)
        if key not in self._known:
            self._known[key] = self.fresh("constant")
            self.constants.append(numpy_helper.from_array(array, self._known[key]))
        return self._known[key]

    def add(self, op: str, *inputs: str, to: str | None = None, **attributes: Any) -> str:
        """Add a node; its output is named ``to``, or gets a new name."""
        return self._node(op, inputs, to, "", attributes)

    def add_ml(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node of the ai.onnx.ml domain."""
        return self._node(op, inputs, None, "ai.onnx.ml", attributes)

    def _node(
        self,
        op: str,
        inputs: tuple[str, ...],
        to: str | None,
        domain: str,
        attributes: dict[str, Any],
    ) -> str:
        from onnx import helper

        name = to or self.fresh(op)
        node = helper.make_node(op, list(inputs), [name], domain=domain, **attributes)
        self.nodes.append(node)
        return name

    def cast(self, x: str, dtype: Any) -> str:
        """Cast ``x`` to another type."""
        from onnx import helper

        # The attribute is also called "to".
        name = self.fresh("Cast")
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.nodes.append(helper.make_node("Cast", [x], [name], to=kind))
        return name

    def single(self, x: str) -> str:
        """Round ``x`` to single precision, as doubles."""
        return self.cast(self.cast(x, np.float32), np.float64)

    def column(self, x: str, place: Any) -> str:
        """Return one column of a matrix as a vector, or several columns as a matrix."""
        return self.add("Gather", x, self.constant(place, np.int64), axis=1)

    def upright(self, x: str) -> str:
        """Reshape a vector to a matrix with one column."""
        return self.add("Unsqueeze", x, self.constant([1], np.int64))

    def side_by_side(self, columns: Sequence[str]) -> str:
        """Stack vectors as the columns of a matrix."""
        return self.add("Concat", *(self.upright(x) for x in columns), axis=1)

    def largest(self, x: str) -> str:
        """Return the maximum of each row, (n, 1)."""
        return self.add("ReduceMax", x, self.constant([1], np.int64), keepdims=1)

    def first_largest(self, x: str) -> str:
        """Return the index of the maximum of each row; the first of ties."""
        return self.add("ArgMax", x, axis=1, keepdims=0, select_last_index=0)

    def ordered_sum(self, x: str, width: int) -> str:
        """Sum each row of a matrix from left to right.

        ReduceSum has its own order of summation, and could break a tie with the threshold
        in the last bit.
        """
        if width == 1:
            return self.column(x, 0)
        return self.column(self.add("CumSum", x, self.constant(1, np.int64)), width - 1)


def expit(graph: Graph, x: str) -> str:
    """1 / (1 + exp(-x)); the Sigmoid operator is an approximation."""
    one = graph.constant(1.0)
    return graph.add(
        "Div", one, graph.add("Add", one, graph.add("Exp", graph.add("Neg", x)))
    )


def single_expit(graph: Graph, x: str) -> str:
    """The same, rounded to single precision at each step, as in XGBoost."""
    fall = graph.add("Exp", graph.add("Neg", graph.cast(x, np.float64)))
    one = graph.constant(1.0, np.float32)
    whole = graph.add("Add", graph.cast(fall, np.float32), one)
    return graph.cast(graph.add("Div", one, whole), np.float64)


def clip(graph: Graph, x: str, low: float, high: float) -> str:
    """Clip ``x`` to bounds."""
    return graph.add("Clip", x, graph.constant(low), graph.constant(high))


def linear(graph: Graph, x: str, slope: float, intercept: float) -> str:
    """slope * x + intercept."""
    steep = graph.add("Mul", x, graph.constant(slope))
    return graph.add("Add", steep, graph.constant(intercept))


def softmax(graph: Graph, scores: str, width: int) -> str:
    """Softmax of scores."""
    largest = graph.largest(scores)
    high = graph.add("Exp", graph.add("Sub", scores, largest))
    return graph.add("Div", high, graph.upright(graph.ordered_sum(high, width)))


def single_softmax(graph: Graph, scores: str, width: int) -> str:
    """The same for single-precision scores, rounded as in XGBoost."""
    less = graph.add("Sub", scores, graph.largest(scores))
    high = graph.cast(graph.add("Exp", graph.cast(less, np.float64)), np.float32)
    total = graph.upright(graph.ordered_sum(graph.cast(high, np.float64), width))
    shares = graph.add("Div", high, graph.cast(total, np.float32))
    return graph.cast(shares, np.float64)


def shared_out(graph: Graph, parts: Sequence[str]) -> str:
    """Normalize nonnegative vectors to shares (n, C); uniform if all are 0."""
    whole = graph.side_by_side(parts)
    total = graph.upright(graph.ordered_sum(whole, len(parts)))
    some = graph.add("Greater", total, graph.constant(0.0))
    even = graph.constant(1 / len(parts))
    return graph.add("Where", some, graph.add("Div", whole, total), even)


@dataclass(frozen=True, eq=False)
class Trees:
    """T trees with concatenated nodes, and a value per leaf.

    Attributes
    ----------
    roots : ndarray of shape (T,)
    feature : ndarray of shape (nodes,)
    mode : ndarray of shape (nodes,)
        LEQ, LT or MEMBER.
    threshold : ndarray of shape (nodes,)
    left, right : ndarray of shape (nodes,)
        The children; ``left`` is LEAF for a leaf.
    missing_left : ndarray of bool, shape (nodes,)
        Where NaN goes; unused for set splits, whose features are codes.
    value : ndarray of shape (nodes,)
        Values of the leaves.
    sets : dict of ndarray
        For nodes of mode MEMBER, the codes that go left: nonnegative integers.
    """

    roots: Places
    feature: Places
    mode: NDArray[np.uint8]
    threshold: Values
    left: Places
    right: Places
    missing_left: NDArray[np.bool_]
    value: Values
    sets: dict[int, Values]

    @classmethod
    def of_nodes(
        cls,
        *,
        feature: Any,
        threshold: Any,
        left: Any,
        right: Any,
        missing_left: Any,
        value: Any,
        mode: int = LEQ,
    ) -> Trees:
        """Create one tree with splits of one mode, its root first."""
        size = len(feature)
        return cls(
            roots=np.zeros(1, dtype=np.int64),
            feature=np.asarray(feature, dtype=np.int64),
            mode=np.full(size, mode, dtype=np.uint8),
            threshold=np.asarray(threshold, dtype=np.float64),
            left=np.asarray(left, dtype=np.int64),
            right=np.asarray(right, dtype=np.int64),
            missing_left=np.asarray(missing_left, dtype=bool),
            value=np.asarray(value, dtype=np.float64),
            sets={},
        )

    @classmethod
    def join(cls, some: Sequence[Trees]) -> Trees:
        """Concatenate trees."""
        starts = np.cumsum([0, *(len(trees.feature) for trees in some)])[:-1].tolist()
        moved = [trees._moved(start) for trees, start in zip(some, starts, strict=True)]

        names = [field.name for field in fields(cls) if field.name != "sets"]
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(trees, name) for trees in moved])
            for name in names
        }
        sets = {node: values for trees in moved for node, values in trees.sets.items()}
        return cls(**arrays, sets=sets)

    def _moved(self, start: int) -> Trees:
        return replace(
            self,
            roots=self.roots + start,
            left=np.where(self.left == LEAF, LEAF, self.left + start),
            right=np.where(self.left == LEAF, LEAF, self.right + start),
            sets={node + start: values for node, values in self.sets.items()},
        )

    def __len__(self) -> int:
        return len(self.roots)


def write_trees(graph: Graph, X: str, trees: Trees) -> str:
    """Write the values (n, T) of the leaves that the rows of ``X`` reach.

    There is one target per tree, so that the caller controls the order of summation.
    TreeEnsemble has no single-leaf trees: they get a split with two equal leaves. (Some
    releases of onnxruntime misread one leaf as both children.)
    """
    from onnx import numpy_helper

    attributes, members = _as_attributes(trees)
    tensors = {
        name: numpy_helper.from_array(attributes.pop(name), name)
        for name in ("nodes_splits", "nodes_modes", "leaf_weights")
    }
    if len(members):
        tensors["membership_values"] = numpy_helper.from_array(members, "members")
    lists = {name: values.tolist() for name, values in attributes.items()}
    return graph.add_ml(
        "TreeEnsemble",
        X,
        n_targets=len(trees),
        aggregate_function=1,
        post_transform=0,
        **lists,
        **tensors,
    )


def _as_attributes(trees: Trees) -> tuple[dict[str, Any], Any]:
    """Return node attributes; inner nodes and leaves are counted separately."""
    is_leaf = trees.left == LEAF
    alone = is_leaf[trees.roots]
    inner = np.flatnonzero(~is_leaf)
    n_inner, stumps = len(inner), trees.roots[alone]
    place = np.empty(len(is_leaf), dtype=np.int64)
    place[inner] = np.arange(n_inner)
    leaves = np.flatnonzero(is_leaf)
    place[leaves] = np.arange(len(leaves))

    def with_stumps(values: Any, of_stumps: Any) -> Any:
        extra = np.broadcast_to(np.asarray(of_stumps, values.dtype), len(stumps))
        return np.concatenate([values, extra])

    mode, threshold = trees.mode[inner], trees.threshold[inner]
    members = []
    for k in np.flatnonzero(mode == MEMBER).tolist():
        values = trees.sets[int(inner[k])]
        if len(values) == 0:  # no code goes left
            mode[k], threshold[k] = LT, -np.inf
            continue
        members.append(np.append(values, np.nan))  # NaN terminates a set
    roots = place[trees.roots]
    roots[alone] = n_inner + np.arange(len(stumps))
    left, right = trees.left[inner], trees.right[inner]
    attributes = {
        "tree_roots": roots,
        "nodes_featureids": with_stumps(trees.feature[inner], 0),
        "nodes_splits": with_stumps(threshold, 0.0),
        "nodes_modes": with_stumps(mode, 0),
        "nodes_truenodeids": with_stumps(place[left], place[stumps]),
        "nodes_trueleafs": with_stumps(is_leaf[left].astype(np.int64), 1),
        "nodes_falsenodeids": with_stumps(
            place[right], len(leaves) + np.arange(len(stumps))
        ),
        "nodes_falseleafs": with_stumps(is_leaf[right].astype(np.int64), 1),
        "nodes_missing_value_tracks_true": with_stumps(
            trees.missing_left[inner].astype(np.int64), 0
        ),
        "leaf_targetids": _tree_of_each_node(trees)[np.append(leaves, stumps)],
        "leaf_weights": trees.value[np.append(leaves, stumps)],
    }
    return attributes, np.concatenate(members) if members else np.empty(0)


def _tree_of_each_node(trees: Trees) -> Any:
    order = np.argsort(trees.roots, kind="stable")
    sizes = np.diff(np.append(trees.roots[order], len(trees.left)))
    return np.repeat(order, sizes)


def interpolate(
    graph: Graph, X: str, knots: Sequence[tuple[NDArray[Any], NDArray[Any]]]
) -> tuple[str, str]:
    """Interpolate each column of ``X`` (n, d) with its own knots, as ``numpy.interp``.

    A small tree per column finds the interval. The second output is the height of the
    interval's right knot. The result for NaN is undefined.
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
    """Return a balanced tree with the index of the last knot at or below a value."""
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
