"""Graph inputs for the columns of a table, and the transformers applied to them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hashing import find_hashes, text_hashes
from ..validation import UNKNOWN as CODE_OF_UNKNOWN
from ..validation import Categories, HashedCategories
from ..voters import FastForestClassifier, FastTreeClassifier
from ..voters.columns import KNOTS
from ..voters.estimators import Relabelled
from ..voters.trees.estimators import TreeVoters
from .files import Fitted
from .onnx_graph import Graph, interpolate

MISSING_TEXTS = ("", "nan", "None", "<NA>")
"""Strings that stand for a missing category, unless they are categories."""
UNKNOWN, MISSING = -1, -2

Labels = Sequence[Any]


@dataclass(frozen=True, eq=False)
class Matrix:
    """A tensor of doubles (n, width), with the interface of :class:`Table`."""

    graph: Graph
    name: str
    width: int

    @property
    def any_input(self) -> str:
        return self.name

    def select(self, places: Sequence[int]) -> Matrix:
        return Matrix(self.graph, self.graph.column(self.name, places), len(places))

    def place_of(self, f: int, labels: Labels) -> str:
        return _place_of_number(self.graph, self.graph.column(self.name, [f]), labels)

    def row_of(self, f: int, labels: Labels, rows: NDArray[np.float64]) -> str:
        return _row_at(self.graph, self.place_of(f, labels), rows)

    def numbers(self, categories: Any = None) -> Matrix:
        return self


@dataclass(frozen=True, eq=False)
class Table:
    """Columns that are separate inputs (n, 1): doubles or strings.

    Attributes
    ----------
    graph : Graph
    names : tuple of str
        Column names, for messages.
    inputs : tuple of str
    kinds : tuple of {"number", "text", "numbered"}
        A category is "text", or "numbered" if its labels are numbers.
    unknown : mapping of column names
        By column, what an unknown category counts as: a category, or None for missing.
    categories : mapping of column names
        By column, the categories of which voters only know the hashes.
    """

    graph: Graph
    names: tuple[str, ...]
    inputs: tuple[str, ...]
    kinds: tuple[str, ...]
    unknown: Mapping[str, str | None] = field(default_factory=dict)
    categories: Mapping[str, Labels] = field(default_factory=dict)

    @property
    def width(self) -> int:
        return len(self.names)

    @property
    def any_input(self) -> str:
        return self.inputs[0]

    def select(self, places: Sequence[int]) -> Table:
        """Select columns."""

        def some(values: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(values[f] for f in places)

        return replace(
            self,
            names=some(self.names),
            inputs=some(self.inputs),
            kinds=some(self.kinds),
        )

    def place_of(self, f: int, labels: Labels) -> str:
        """Return the index of each row's category among the labels, (n, 1)."""
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

    def numbers(self, categories: Categories | None = None) -> Matrix:
        """Return all columns as numbers, with categories as their indices."""
        graph, columns = self.graph, []
        for f, kind in enumerate(self.kinds):
            labels = None if categories is None else categories.by_column[f]
            if isinstance(labels, HashedCategories):
                columns.append(self._bucket(f, labels))
            elif labels is not None:
                columns.append(self._code(f, sorted(labels, key=labels.__getitem__)))
            elif kind == "number":
                columns.append(without_infinities(graph, self.inputs[f]))
            else:
                raise ValueError(
                    f"its own encoding of the categories in column {self.names[f]!r} is "
                    f"not supported; put damvi.voters.NumberEncoder before it"
                )
        return Matrix(graph, graph.add("Concat", *columns, axis=1), self.width)

    def _bucket(self, f: int, hashed: HashedCategories) -> str:
        labels = list(self.known(self.names[f]))
        numbers = hashed.numbers(labels, np.arange(len(labels)))
        rows = np.append(numbers, [np.nan, CODE_OF_UNKNOWN])[:, np.newaxis]
        return self.row_of(f, labels, rows)

    def row_of(self, f: int, labels: Labels, rows: NDArray[np.float64]) -> str:
        """Return a row per label; the last two are for missing and unknown values."""
        return _row_at(self.graph, self.place_of(f, labels), rows)

    def known(self, name: str) -> Labels:
        """Return the categories of a column of which voters only know the hashes."""
        if name not in self.categories:
            raise _hashed(name)
        return self.categories[name]

    def _code(self, f: int, labels: Labels) -> str:
        graph, place = self.graph, self.place_of(f, labels)
        missing = graph.add("Equal", place, graph.constant(MISSING, np.int64))
        number = graph.cast(place, np.float64)
        return graph.add("Where", missing, graph.constant(np.nan), number)


def look_up(
    graph: Graph, column: str, keys: Any, values: NDArray[np.int64], default: int
) -> str:
    """Look up the value of each number in a column by keys."""
    from onnx import numpy_helper

    if len(keys) == 0:  # not supported by the operator
        keys, values = np.array([np.nan]), np.array([default])
    return graph.add_ml(
        "LabelEncoder",
        column,
        keys_tensor=numpy_helper.from_array(np.asarray(keys, dtype=np.float64)),
        values_tensor=numpy_helper.from_array(values),
        default_tensor=numpy_helper.from_array(np.array([default])),
    )


def _row_at(graph: Graph, place: str, rows: NDArray[np.float64]) -> str:
    # -1 (unknown) and -2 (missing) index from the end.
    flat = graph.column(place, 0)
    return graph.add("Gather", graph.constant(rows), flat, axis=0)


def _place_of_number(graph: Graph, column: str, labels: Labels) -> str:
    places = np.append(np.arange(len(labels)), MISSING)
    return look_up(graph, column, [*labels, np.nan], places, UNKNOWN)


def without_infinities(graph: Graph, x: str) -> str:
    """Replace infinities by NaN; Python rejects them, but a graph cannot."""
    return graph.add("Where", graph.add("IsInf", x), graph.constant(np.nan), x)


def _kind_of_labels(labels: Labels, name: str) -> str:
    """Return whether categories are strings or numbers."""
    if all(isinstance(label, str) for label in labels):
        return "text"
    if all(isinstance(label, int | float | np.number) for label in labels):
        return "numbered"
    odd = next(x for x in labels if not isinstance(x, str | int | float | np.number))
    raise ValueError(
        f"column {name!r} has a category {odd!r}, which is neither a string nor a number; "
        f"to export the model, fit on X[{name!r}].astype(str).astype('category')"
    )


def _is_missing(label: Any) -> bool:
    """Whether a label learned by an encoder stands for missing values."""
    return label is None or (isinstance(label, float | np.floating) and math.isnan(label))


Data = Table | Matrix


# The inputs of a fitted model.


def columns_of(
    fitted: Fitted, categories: Mapping[str, Labels]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names and kinds of a dataframe's columns; empty for an array.

    ``categories`` are those of columns of which voters only know the hashes.
    """
    known: list[dict[Any, None]] = [{} for _ in range(fitted.n_features)]
    for f, labels in _categories_of(fitted):
        if labels is None:
            name = f if fitted.feature_names is None else fitted.feature_names[f]
            if name not in categories:
                raise _hashed(name)
            labels = categories[str(name)]
        known[f] |= dict.fromkeys(labels)
    if fitted.feature_names is None and not any(known):
        return (), ()
    named = range(len(known)) if fitted.feature_names is None else fitted.feature_names
    names = tuple(map(str, named))
    kinds = tuple(
        _kind_of_labels(list(labels), name) if labels else "number"
        for labels, name in zip(known, names, strict=True)
    )
    return names, kinds


def _categories_of(fitted: Fitted) -> Iterator[tuple[int, Labels | None]]:
    """Yield the learned categories by column; None if only their hashes are known."""
    voters = fitted.voters
    if isinstance(voters, TreeVoters):
        yield from _by_column(voters.features.categories)
        return
    for k in np.flatnonzero(fitted.weights).tolist():
        yield from _in_steps(voters.estimators[k], fitted.feature_names)


def _hashed(name: Any) -> ValueError:
    return ValueError(
        f"column {name!r} has so many categories that the model only stores their hashes, "
        f"which an ONNX graph cannot compute; to export the model, drop the column or "
        f"merge rare categories, and fit again"
    )


def _in_steps(step: Any, names: Any = None) -> Iterator[tuple[int, Labels | None]]:
    """Yield the categories of the first step of a pipeline, and of column transformers."""
    if isinstance(step, Relabelled):
        yield from _in_steps(step.estimator, names)
    elif hasattr(step, "steps") and type(step.steps[0][1]).__name__ == "RateEncoder":
        rates, kept = step.steps[0][1].rates_, []
        for f, name in enumerate(() if names is None else names):
            if name in rates:
                yield f, None
            else:
                kept.append(f)
        for f, labels in _in_steps(step.steps[1][1]):
            if f < len(kept):  # the rest are rates
                yield kept[f], labels
    elif hasattr(step, "steps"):
        yield from _in_steps(step.steps[0][1])
    elif hasattr(step, "transformers_"):
        for part, places in _parts_of(step):
            for f, labels in _in_steps(part):
                yield places[f], labels
    elif isinstance(step, FastTreeClassifier | FastForestClassifier):
        yield from _by_column(step.trees_.features.categories)
    elif type(step).__name__ == "NumberEncoder":
        yield from _by_column(step.categories_)
    elif type(step).__name__ == "OneHotEncoder":
        for f, labels in enumerate(step.categories_):
            yield f, [label for label in labels.tolist() if not _is_missing(label)]


def _by_column(categories: Any) -> Iterator[tuple[int, Labels | None]]:
    for f, labels in enumerate(() if categories is None else categories.by_column):
        if labels is not None:
            yield f, None if isinstance(labels, HashedCategories) else list(labels)


def input_names(names: Sequence[str], outputs: Sequence[str]) -> tuple[str, ...]:
    """Return the column names, made unique and distinct from the outputs."""
    taken = {*outputs, ""}
    inputs: list[str] = []
    for name in names:
        while name in taken or (name != names[len(inputs)] and name in names):
            name += "_"
        taken.add(name)
        inputs.append(name)
    return tuple(inputs)


# Transformers before a model in a pipeline.


def write_step(graph: Graph, step: Any, data: Data) -> Data:
    """Write a fitted transformer."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return data
    name = type(step).__name__
    if name not in WRITERS:
        known = ", ".join(sorted(WRITERS))
        raise ValueError(f"its step {name} is not supported; use one of {known}")
    return WRITERS[name](graph, step, data)


def _same(graph: Graph, step: Any, data: Data) -> Data:
    if step.func is not None:
        raise ValueError("a FunctionTransformer with a function is not supported")
    return data


def _pipeline(graph: Graph, pipeline: Any, data: Data) -> Data:
    for _, step in pipeline.steps:
        data = write_step(graph, step, data)
    return data


def _numbers(graph: Graph, encoder: Any, data: Data) -> Matrix:
    matrix = data.numbers(encoder.categories_)
    if not encoder.empty_.any():
        return matrix
    empty = graph.constant(encoder.empty_, bool)
    filled = graph.add("Where", empty, graph.constant(0.0), matrix.name)
    return Matrix(graph, filled, matrix.width)


def _ranks(graph: Graph, scaler: Any, data: Data) -> Matrix:
    matrix = data.numbers()
    scores, _ = interpolate(graph, matrix.name, scaler.knots_)
    missing = graph.add("IsNaN", matrix.name)
    middle = graph.add("Where", missing, graph.constant(0.0), scores)
    return Matrix(graph, middle, matrix.width)


def _splines(graph: Graph, splines: Any, data: Data) -> Matrix:
    scores = _ranks(graph, splines.ranks_, data)
    parts, bent = [scores.name], np.flatnonzero(splines.bent_).tolist()
    if bent:
        some = graph.column(scores.name, bent)
        for knot in KNOTS:
            above = graph.add("Sub", some, graph.constant(knot))
            parts.append(graph.add("Max", above, graph.constant(0.0)))
    width = scores.width + len(KNOTS) * len(bent)
    return Matrix(graph, graph.add("Concat", *parts, axis=1), width)


def _pairs(graph: Graph, model: Any, data: Data) -> Matrix:
    X = data.numbers()
    if len(model.pairs_) == 0:
        return X
    first, second = (graph.column(X.name, own.tolist()) for own in model.pairs_.T)
    made = [graph.add(kind, first, second) for kind in ("Sub", "Mul", "Div")]
    joined = without_infinities(graph, graph.add("Concat", *made, axis=1))
    width = X.width + 3 * len(model.pairs_)
    return Matrix(graph, graph.add("Concat", X.name, joined, axis=1), width)


def _fill(graph: Graph, imputer: Any, data: Data) -> Matrix:
    matrix = data.numbers()
    plain = np.isscalar(imputer.missing_values) and np.isnan(imputer.missing_values)
    if not plain or imputer.indicator_ is not None:
        raise ValueError("its SimpleImputer must only fill in NaN, without an indicator")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no column names here
        values = imputer.transform(np.full((1, matrix.width), np.nan))
    if values.shape[1] != matrix.width:
        raise ValueError(
            "its SimpleImputer drops empty columns; set keep_empty_features=True"
        )
    missing = graph.add("IsNaN", matrix.name)
    filled = graph.add("Where", missing, graph.constant(values), matrix.name)
    return Matrix(graph, filled, matrix.width)


def _scale(graph: Graph, scaler: Any, data: Data) -> Matrix:
    matrix = data.numbers()
    name = matrix.name
    if scaler.with_mean:
        name = graph.add("Sub", name, graph.constant(scaler.mean_))
    if scaler.with_std:
        name = graph.add("Div", name, graph.constant(scaler.scale_))
    return Matrix(graph, name, matrix.width)


def _columns(graph: Graph, transformer: Any, data: Data) -> Matrix:
    parts = []
    for step, places in _parts_of(transformer):
        made = write_step(graph, step, data.select(places)).numbers()
        if made.width:
            parts.append(made)
    joined = graph.add("Concat", *(part.name for part in parts), axis=1)
    return Matrix(graph, joined, sum(part.width for part in parts))


def _parts_of(transformer: Any) -> Iterator[tuple[Any, list[int]]]:
    """Yield the steps of a fitted ``ColumnTransformer`` and their column indices."""
    names = list(getattr(transformer, "feature_names_in_", []))
    for _, step, columns in transformer.transformers_:
        if isinstance(step, str) and step == "drop":
            continue
        if isinstance(columns, slice) or np.asarray(columns).dtype.kind == "b":
            columns = np.arange(transformer.n_features_in_)[columns]
        wanted = np.atleast_1d(np.asarray(columns, dtype=object)).tolist()
        if not wanted:
            continue
        yield step, [names.index(c) if isinstance(c, str) else int(c) for c in wanted]


def _rates(graph: Graph, encoder: Any, data: Data) -> Data:
    """Write the other columns, followed by the rates."""
    if not encoder.rates_:
        return data
    assert isinstance(data, Table)
    made = data.select(
        [f for f, name in enumerate(data.names) if name not in encoder.rates_]
    )
    for name, known in encoder.rates_.items():
        labels = data.known(name)
        places = find_hashes(known.hashes, text_hashes(labels))
        every = np.concatenate([known.rates[places], known.rates[-2:]])
        rates = data.row_of(data.names.index(name), labels, every)
        width = every.shape[1]
        made = replace(
            made,
            names=made.names + tuple(f"{name} (rate {c + 1})" for c in range(width)),
            inputs=made.inputs + tuple(graph.column(rates, [c]) for c in range(width)),
            kinds=made.kinds + ("number",) * width,
        )
    return made


def _indicators(graph: Graph, encoder: Any, data: Data) -> Matrix:
    if encoder.handle_unknown == "error":
        raise ValueError(
            "its OneHotEncoder rejects unknown categories, which a graph cannot; set "
            "handle_unknown='ignore'"
        )
    parts, width = [], 0
    for f, (labels, rows) in enumerate(_indicator_rows(encoder)):
        width += rows.shape[1]
        parts.append(data.row_of(f, labels, rows))
    if width != len(encoder.get_feature_names_out()):
        raise ValueError("its OneHotEncoder has constant columns; lower its min_frequency")
    return Matrix(graph, graph.add("Concat", *parts, axis=1), width)


def _indicator_rows(encoder: Any) -> Iterator[tuple[Labels, NDArray[np.float64]]]:
    """Yield the labels and indicators for each column of a ``OneHotEncoder``.

    They are obtained from the encoder itself. The last two rows are for missing and unknown
    values.
    """
    first = [labels[0] for labels in encoder.categories_]
    for f, known in enumerate(encoder.categories_):
        labels = [label for label in known.tolist() if not _is_missing(label)]
        missing = next((x for x in known.tolist() if _is_missing(x)), np.nan)
        unknown: Any = "\0unknown"
        if known.dtype.kind not in "OU":
            unknown = float(np.nanmax(np.append(known.astype(np.float64), 0.0))) + 1
        asked = [*labels, missing, unknown]
        rows = np.empty((len(asked), len(first)), dtype=object)
        rows[:] = first
        rows[:, f] = asked
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown labels, and missing column names
            coded = encoder.transform(rows)
        coded = np.asarray(coded.toarray() if hasattr(coded, "toarray") else coded)
        # Columns of one feature are contiguous, and each is set for some label and not for
        # another.
        own = np.flatnonzero((coded != coded[0]).any(axis=0))
        yield labels, coded[:, own].astype(np.float64)


WRITERS: dict[str, Callable[[Graph, Any, Data], Data]] = {
    "ColumnTransformer": _columns,
    "FunctionTransformer": _same,
    "NumberEncoder": _numbers,
    "OneHotEncoder": _indicators,
    "PairColumns": _pairs,
    "Pipeline": _pipeline,
    "RankScaler": _ranks,
    "RankSplines": _splines,
    "RateEncoder": _rates,
    "SimpleImputer": _fill,
    "StandardScaler": _scale,
}
