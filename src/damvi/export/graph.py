"""An ONNX graph as it grows: a node a call, tensors by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

OPSET, ML_OPSET, IR_VERSION = 18, 5, 12
"""The operators used: TreeEnsemble in doubles came with ai.onnx.ml 5.

onnxruntime 1.21 to 1.23 run it, and without a word give wrong values for splits by set and
for some small trees. They refuse files of IR version 12, which 1.24 is the first to take.
"""


class Graph:
    """Nodes and constants, with names of their own.

    Parameters
    ----------
    taken : collection of str
        Names that are not to be used, since inputs and outputs have them.
    """

    def __init__(self, taken: Collection[str] = ()) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._taken = set(taken)
        self._known: dict[tuple[Any, ...], str] = {}

    def fresh(self, hint: str) -> str:
        """A name that nothing has yet."""
        name, number = hint, 0
        while name in self._taken:
            number += 1
            name = f"{hint}_{number}"
        self._taken.add(name)
        return name

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        """A constant tensor; equal ones are stored once."""
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
        """A node; its output is ``to``, or gets a name."""
        return self._node(op, inputs, to, "", attributes)

    def add_ml(self, op: str, *inputs: str, **attributes: Any) -> str:
        """A node of the operators for machine learning."""
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

    # What is said often.

    def cast(self, x: str, dtype: Any) -> str:
        """``x`` as another type."""
        from onnx import helper

        # "to" is the name of the attribute, too.
        name = self.fresh("Cast")
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.nodes.append(helper.make_node("Cast", [x], [name], to=kind))
        return name

    def single(self, x: str) -> str:
        """``x`` rounded to single precision, in doubles again."""
        return self.cast(self.cast(x, np.float32), np.float64)

    def column(self, x: str, place: int) -> str:
        """One column of a matrix, as a vector."""
        return self.add("Gather", x, self.constant(place, np.int64), axis=1)

    def columns(self, x: str, places: Any) -> str:
        """Some columns of a matrix."""
        return self.add("Gather", x, self.constant(places, np.int64), axis=1)

    def upright(self, x: str) -> str:
        """A vector as a matrix of one column."""
        return self.add("Unsqueeze", x, self.constant([1], np.int64))

    def side_by_side(self, columns: Sequence[str]) -> str:
        """Vectors as the columns of a matrix."""
        return self.add("Concat", *(self.upright(x) for x in columns), axis=1)

    def largest(self, x: str) -> str:
        """The largest of each row of a matrix, (n, 1)."""
        return self.add("ReduceMax", x, self.constant([1], np.int64), keepdims=1)

    def first_largest(self, x: str) -> str:
        """The place of the largest of each row, of equal ones the first."""
        return self.add("ArgMax", x, axis=1, keepdims=0, select_last_index=0)

    def one_hot(self, place: str, width: int) -> str:
        """1 at the place and 0 elsewhere, (n, width)."""
        here = self.constant(np.arange(width), np.int64)
        return self.cast(self.add("Equal", self.upright(place), here), np.float64)

    def ordered_sum(self, x: str, width: int) -> str:
        """The sum of each row of a matrix, from left to right.

        ReduceSum adds in an order of its own, and a vote that is tied here could then miss
        the threshold by the last bit there.
        """
        if width == 1:
            return self.column(x, 0)
        return self.column(self.add("CumSum", x, self.constant(1, np.int64)), width - 1)
