"""What stands before a model, as nodes of a graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .curves import interpolate
from .graph import Graph
from .table import Labels, Matrix, Table, as_matrix, is_missing, place_in_matrix

Data = Table | Matrix


def write_step(graph: Graph, step: Any, data: Data) -> Data:
    """What a fitted transformer makes of the data."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return data
    name = type(step).__name__
    if name not in WRITERS:
        known = ", ".join(sorted(WRITERS))
        raise ValueError(f"its step {name} is not known here; what is: {known}")
    return WRITERS[name](graph, step, data)


def _same(graph: Graph, step: Any, data: Data) -> Data:
    if step.func is not None:
        raise ValueError("its FunctionTransformer has a function, which could be any")
    return data


def _pipeline(graph: Graph, pipeline: Any, data: Data) -> Data:
    for _, step in pipeline.steps:
        data = write_step(graph, step, data)
    return data


def _numbers(graph: Graph, encoder: Any, data: Data) -> Matrix:
    categories = encoder.categories_
    if isinstance(data, Table) and categories is not None:
        matrix = data.numbers(categories.by_column)
    else:
        matrix = as_matrix(data)
    if not encoder.empty_.any():
        return matrix
    empty = graph.constant(encoder.empty_, bool)
    filled = graph.add("Where", empty, graph.constant(0.0), matrix.name)
    return Matrix(filled, matrix.width)


def _ranks(graph: Graph, scaler: Any, data: Data) -> Matrix:
    matrix = as_matrix(data)
    scores, _ = interpolate(graph, matrix.name, scaler.knots_)
    missing = graph.add("IsNaN", matrix.name)
    middle = graph.add("Where", missing, graph.constant(0.0), scores)
    return Matrix(middle, matrix.width)


def _fill(graph: Graph, imputer: Any, data: Data) -> Matrix:
    matrix = as_matrix(data)
    plain = np.isscalar(imputer.missing_values) and np.isnan(imputer.missing_values)
    if not plain or imputer.indicator_ is not None:
        raise ValueError("its SimpleImputer must fill in NaN alone, without an indicator")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no column names here
        values = imputer.transform(np.full((1, matrix.width), np.nan))
    if values.shape[1] != matrix.width:
        raise ValueError(
            "its SimpleImputer drops empty columns; give it keep_empty_features=True"
        )
    missing = graph.add("IsNaN", matrix.name)
    filled = graph.add("Where", missing, graph.constant(values), matrix.name)
    return Matrix(filled, matrix.width)


def _scale(graph: Graph, scaler: Any, data: Data) -> Matrix:
    matrix = as_matrix(data)
    name = matrix.name
    if scaler.with_mean:
        name = graph.add("Sub", name, graph.constant(scaler.mean_))
    if scaler.with_std:
        name = graph.add("Div", name, graph.constant(scaler.scale_))
    return Matrix(name, matrix.width)


def _columns(graph: Graph, transformer: Any, data: Data) -> Matrix:
    parts = []
    for step, places in parts_of(transformer):
        made = as_matrix(write_step(graph, step, _select(graph, data, places)))
        if made.width:
            parts.append(made)
    joined = graph.add("Concat", *(part.name for part in parts), axis=1)
    return Matrix(joined, sum(part.width for part in parts))


def parts_of(transformer: Any) -> Iterator[tuple[Any, list[int]]]:
    """The steps of a fitted ``ColumnTransformer`` and the places of their columns."""
    names = list(getattr(transformer, "feature_names_in_", []))
    for _, step, columns in transformer.transformers_:
        if isinstance(step, str) and step == "drop":
            continue
        if isinstance(columns, slice) or np.asarray(columns).dtype.kind == "b":
            columns = np.arange(transformer.n_features_in_)[columns]
        wanted = np.atleast_1d(np.asarray(columns, dtype=object)).tolist()
        if not wanted:
            continue
        yield (
            step,
            [names.index(c) if isinstance(c, str) else int(c) for c in wanted],
        )


def _select(graph: Graph, data: Data, places: list[int]) -> Data:
    if isinstance(data, Table):
        return data.select(places)
    some = graph.add("Gather", data.name, graph.constant(places, np.int64), axis=1)
    return Matrix(some, len(places))


def _indicators(graph: Graph, encoder: Any, data: Data) -> Matrix:
    if encoder.handle_unknown == "error":
        raise ValueError(
            "its OneHotEncoder refuses unknown categories, which a graph cannot; give it "
            "handle_unknown='ignore'"
        )
    parts, width = [], 0
    for f, (labels, rows) in enumerate(indicator_rows(encoder)):
        width += rows.shape[1]
        if isinstance(data, Table):
            place = data.place_of(f, labels)
        else:
            place = place_in_matrix(graph, data, f, labels)
        # -1 and -2, for unknown and missing, count from the end of the table.
        flat = graph.add("Squeeze", place, graph.constant([1], np.int64))
        parts.append(graph.add("Gather", graph.constant(rows), flat, axis=0))
    if width != len(encoder.get_feature_names_out()):
        raise ValueError(
            "its OneHotEncoder has columns that say nothing; lower its min_frequency"
        )
    return Matrix(graph.add("Concat", *parts, axis=1), width)


def indicator_rows(encoder: Any) -> Iterator[tuple[Labels, NDArray[np.float64]]]:
    """For each column of a ``OneHotEncoder`` its labels, and the indicators of each.

    The encoder itself is asked. The last two rows are for missing values and for labels
    that it does not know.
    """
    first = [labels[0] for labels in encoder.categories_]
    for f, known in enumerate(encoder.categories_):
        labels = [label for label in known.tolist() if not is_missing(label)]
        missing = next((x for x in known.tolist() if is_missing(x)), np.nan)
        unknown: Any = "\0unknown"
        if known.dtype.kind not in "OU":
            unknown = float(np.nanmax(np.append(known.astype(np.float64), 0.0))) + 1
        asked = [*labels, missing, unknown]
        rows = np.empty((len(asked), len(first)), dtype=object)
        rows[:] = first
        rows[:, f] = asked
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about unknown labels, and no column names
            said = encoder.transform(rows)
        said = np.asarray(said.toarray() if hasattr(said, "toarray") else said)
        # The columns of one feature follow those of the one before, and each of them is
        # set for some label and not for another.
        own = np.flatnonzero((said != said[0]).any(axis=0))
        yield labels, said[:, own].astype(np.float64)


WRITERS: dict[str, Callable[[Graph, Any, Data], Data]] = {
    "ColumnTransformer": _columns,
    "FunctionTransformer": _same,
    "NumberEncoder": _numbers,
    "OneHotEncoder": _indicators,
    "Pipeline": _pipeline,
    "RankScaler": _ranks,
    "SimpleImputer": _fill,
    "StandardScaler": _scale,
}
