"""The table that a model asks for, as inputs of a graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .graph import Graph

MISSING_TEXTS = ("", "nan", "None", "<NA>")
"""Texts that stand for a missing category, unless they are categories themselves."""
UNKNOWN, MISSING = -1, -2

Labels = Sequence[Any]


@dataclass(frozen=True, eq=False)
class Matrix:
    """A tensor of doubles (n, width)."""

    name: str
    width: int


@dataclass(frozen=True, eq=False)
class Table:
    """Columns that are inputs of their own, (n, 1): doubles, or texts.

    Attributes
    ----------
    graph : Graph
    names : tuple of str
        Of the columns, for messages.
    inputs : tuple of str
    kinds : tuple of {"number", "text", "numbered"}
        A category is "text", or "numbered" where its labels are numbers.
    unknown : mapping of column names
        What a text that is no category counts as: a category, or None, for missing.
    """

    graph: Graph
    names: tuple[str, ...]
    inputs: tuple[str, ...]
    kinds: tuple[str, ...]
    unknown: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def width(self) -> int:
        return len(self.names)

    def select(self, places: Sequence[int]) -> Table:
        """Some of the columns."""

        def some(values: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(values[f] for f in places)

        return replace(
            self,
            names=some(self.names),
            inputs=some(self.inputs),
            kinds=some(self.kinds),
        )

    def place_of(self, f: int, labels: Labels) -> str:
        """Where among the labels each row's category is: (n, 1), whole numbers."""
        if self.kinds[f] == "text":
            known = {str(label): place for place, label in enumerate(labels)}
            texts = {text: MISSING for text in MISSING_TEXTS if text not in known} | known
            other = UNKNOWN
            if self.names[f] in self.unknown:
                label = self.unknown[self.names[f]]
                other = MISSING if label is None else known.get(label, UNKNOWN)
            return self.graph.add_ml(
                "LabelEncoder",
                self.inputs[f],
                keys_strings=list(texts),
                values_int64s=list(texts.values()),
                default_int64=other,
            )
        return _place_of_number(self.graph, self.inputs[f], labels)

    def numbers(self, by_column: Sequence[dict[Any, int] | None] | None) -> Matrix:
        """All columns as numbers, a category as its place, given these categories."""
        columns = []
        for f, kind in enumerate(self.kinds):
            labels = by_column[f] if by_column is not None else None
            if labels is not None:
                columns.append(self._code(f, sorted(labels, key=labels.__getitem__)))
            elif kind == "number":
                columns.append(without_infinities(self.graph, self.inputs[f]))
            else:
                raise ValueError(
                    f"it reads the categories of column {self.names[f]!r} in its own way, "
                    f"which is not known here; put damvi.voters.NumberEncoder before it"
                )
        graph = self.graph
        return Matrix(graph.add("Concat", *columns, axis=1), self.width)

    def _code(self, f: int, labels: Labels) -> str:
        graph, place = self.graph, self.place_of(f, labels)
        missing = graph.add("Equal", place, graph.constant(MISSING, np.int64))
        number = graph.cast(place, np.float64)
        return graph.add("Where", missing, graph.constant(np.nan), number)


def look_up(
    graph: Graph, column: str, keys: Any, values: NDArray[np.int64], default: int
) -> str:
    """The value of each number in a column, by keys."""
    from onnx import numpy_helper

    if len(keys) == 0:  # which the operator does not take
        keys, values = np.array([np.nan]), np.array([default])
    return graph.add_ml(
        "LabelEncoder",
        column,
        keys_tensor=numpy_helper.from_array(np.asarray(keys, dtype=np.float64)),
        values_tensor=numpy_helper.from_array(values),
        default_tensor=numpy_helper.from_array(np.array([default])),
    )


def _place_of_number(graph: Graph, column: str, labels: Labels) -> str:
    places = np.append(np.arange(len(labels)), MISSING)
    return look_up(graph, column, [*labels, np.nan], places, UNKNOWN)


def place_in_matrix(graph: Graph, data: Matrix, f: int, labels: Labels) -> str:
    """As :meth:`Table.place_of`, for a column of numbers."""
    column = graph.add("Gather", data.name, graph.constant([f], np.int64), axis=1)
    return _place_of_number(graph, column, labels)


def without_infinities(graph: Graph, x: str) -> str:
    """Infinities as missing values: Python refuses them, and a graph cannot."""
    return graph.add("Where", graph.add("IsInf", x), graph.constant(np.nan), x)


def as_matrix(data: Table | Matrix) -> Matrix:
    """The numbers of a table without categories."""
    return data.numbers(None) if isinstance(data, Table) else data


def kind_of_labels(labels: Labels, name: str) -> str:
    """How a category comes in: as a text or as a number."""
    if all(isinstance(label, str) for label in labels):
        return "text"
    if all(isinstance(label, int | float | np.number) for label in labels):
        return "numbered"
    odd = next(x for x in labels if not isinstance(x, str | int | float | np.number))
    raise ValueError(
        f"column {name!r} has a category {odd!r}, which is neither a text nor a number; "
        f"fit on X[{name!r}].astype(str).astype('category') to export the model"
    )


def is_missing(label: Any) -> bool:
    """Whether a label that an encoder has learned stands for missing values."""
    return label is None or (isinstance(label, float | np.floating) and math.isnan(label))
