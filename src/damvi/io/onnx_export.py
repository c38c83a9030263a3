"""Export a classifier as one ONNX graph, from inputs to label and probability.

A model of a table gets a JSON file beside the graph: how raw rows become its inputs.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from .._files import write_whole
from ..decision import Calibrator
from ..decision.calibration import (
    LARGEST_VOTE,
    TILT,
    BetaCurve,
    ClassCurves,
    Isotonic,
    Knots,
    Line,
    Platt,
    ProbabilityCurve,
)
from ..labels import TIE, vote_shape
from ..tables.encoding import LONGEST_TEXT, N_BUCKETS, Levels, Words
from ..tables.schema import OTHER, Column
from ..tables.values import MISSING, SAME, SINCE
from ..voters import BaggedVoters, PoolVoters
from ..voters.estimators import Relabelled
from ..voters.trees.estimators import TreeVoters
from .files import Estimator, Fitted, ModelParts, read_fitted
from .onnx_graph import (
    IR_VERSION,
    ML_OPSET,
    OPSET,
    Graph,
    clip,
    expit,
    interpolate,
    linear,
    shared_out,
    write_trees,
)
from .onnx_models import own_numbers, read_own_trees, write_model
from .onnx_table import Data, Matrix, Table, columns_of, input_names, without_infinities

if TYPE_CHECKING:
    from onnx import ModelProto

OUTPUTS = ("label", "probability", "vote")
FEEDER = "damvi feeder 1"
LARGEST_FILE = 2**31 - 1
STEP = 2.0**-53 * (1 + 2.0**-10)
"""Adding this multiple of a number to it rounds to the next double."""


def to_onnx(
    model: Estimator,
    *,
    labels: Sequence[str] | None = None,
    unknown: Mapping[str, str | None] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> ModelProto:
    """Export the model as an ONNX graph, for onnxruntime and other runtimes.

    Parameters
    ----------
    model : DAMVIClassifier or DAMVIVotingClassifier
        Fitted on dense or sparse arrays (the graph takes dense ones) or dataframes.
    labels : sequence of str, optional
        Names of ``classes_`` in the output; None keeps the labels.
    unknown : mapping, optional
        By column name, what an unknown category counts as: one of the known categories, or
        None for a missing value. Other columns treat unknown categories as the model does.
    categories : mapping, optional
        By column name, all categories of columns with so many that the model only knows
        their hashes, which a graph cannot compute.

    Returns
    -------
    onnx.ModelProto
        The input is ``X``, doubles (n, d). If the model was fitted on a dataframe, there is
        one input (n, 1) per column: doubles, or strings for categories. The outputs are
        ``label`` (n,), ``probability`` (n, 2) and ``vote`` (n,); with C > 2 classes, the
        last two are (n, C).

    Raises
    ------
    ValueError
        If a voter cannot be exported; the message names it.

    Notes
    -----
    See ``docs/export.md`` for which results are exact.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi import DAMVIClassifier
    >>> from damvi.io import to_onnx
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = DAMVIClassifier(n_estimators=10, random_state=0).fit(X, y)
    >>> graph = to_onnx(model)
    >>> [output.name for output in graph.graph.output]
    ['label', 'probability', 'vote']
    """
    try:
        from onnx import TensorProto, helper
    except ImportError as error:
        raise ImportError(
            "exporting to ONNX requires onnx: pip install 'damvi[export]'"
        ) from error
    fitted = read_fitted(model)
    names_of_classes = _read_labels(fitted.labels.classes, labels)
    categories = categories or {}
    names, kinds = columns_of(fitted, categories)
    inputs = input_names(names, OUTPUTS) if names else ("X",)
    graph = Graph({*inputs, *OUTPUTS})
    data: Data
    if names:
        data = Table(graph, names, inputs, kinds, unknown or {}, categories)
    else:
        data = Matrix(graph, without_infinities(graph, "X"), fitted.n_features)
    vote = _write_vote(graph, fitted, data)
    _write_answers(graph, fitted, vote, names_of_classes)
    graph.add("Identity", vote, to="vote")

    width = 1 if names else fitted.n_features
    strings, doubles = int(TensorProto.STRING), int(TensorProto.DOUBLE)
    of_labels = strings
    if names_of_classes.dtype.kind not in "OU":
        of_labels = int(helper.np_dtype_to_tensor_dtype(names_of_classes.dtype))
    of_vote = vote_shape(None, fitted.n_classes)
    tensor = helper.make_tensor_value_info
    given = [
        tensor(name, strings if kind == "text" else doubles, [None, width])
        for name, kind in zip(inputs, kinds if names else ("number",), strict=True)
    ]
    made = [
        tensor("label", of_labels, [None]),
        tensor("probability", doubles, [None, fitted.n_classes]),
        tensor("vote", doubles, of_vote),
    ]
    whole = helper.make_model(
        helper.make_graph(graph.nodes, "damvi", given, made, graph.constants),
        opset_imports=[
            helper.make_opsetid("", OPSET),
            helper.make_opsetid("ai.onnx.ml", ML_OPSET),
        ],
        ir_version=IR_VERSION,
        producer_name="damvi",
        producer_version=__version__,
    )
    if whole.ByteSize() > LARGEST_FILE:
        raise ValueError("the graph exceeds 2 GB, the limit of ONNX")
    columns = dict(zip(inputs, names, strict=True)) if names else {}
    helper.set_model_props(whole, {"damvi.columns": json.dumps(columns)})
    return whole


def _read_labels(classes: Any, labels: Sequence[str] | None) -> Any:
    """Return the names of the classes in the output."""
    named = classes if labels is None else np.array(labels, dtype=object)
    if len(named) != len(classes):
        raise ValueError(f"{len(named)} labels for {len(classes)} classes")
    if named.dtype.kind in "OU" and not all(isinstance(x, str) for x in named.tolist()):
        raise ValueError(
            f"ONNX does not support labels of mixed types ({named.tolist()}); pass "
            f"labels=('...', '...')"
        )
    return named


# The weighted vote: (n,) for the positive class of two, (n, C) for more.


def _write_vote(graph: Graph, fitted: Fitted, data: Data) -> str:
    """Write the vote of a fitted classifier, summed in the same order."""
    if isinstance(fitted.voters, TreeVoters):
        total = _vote_of_trees(graph, fitted, data)
    else:
        assert isinstance(fitted.voters, PoolVoters | BaggedVoters)
        total = _vote_of_models(graph, fitted, data)
    return clip(graph, total, *fitted.labels.vote_limits)


def _vote_of_trees(graph: Graph, fitted: Fitted, data: Data) -> str:
    asked = np.flatnonzero(fitted.weights)
    voters, weights = fitted.voters.take(asked), fitted.weights[asked]
    X = own_numbers(graph, voters.features, data)
    return _classes_of(fitted).sum_of_trees(graph, fitted, voters, weights, X)


def _vote_of_models(graph: Graph, fitted: Fitted, data: Data) -> str:
    total = ""
    for k in np.flatnonzero(fitted.weights).tolist():
        with _blaming_voter(fitted.voters, k):
            vote = _vote_of_model(graph, fitted, k, data)
        part = graph.add("Mul", graph.constant(fitted.weights[k]), vote)
        total = graph.add("Add", total, part) if total else part
    return total


@contextmanager
def _blaming_voter(voters: PoolVoters | BaggedVoters, k: int) -> Iterator[None]:
    """Name the voter in errors."""
    name = repr(voters.names[k]) if isinstance(voters, PoolVoters) else str(k)
    try:
        yield
    except ValueError as error:
        model = voters.estimators[k]
        model = model.estimator if isinstance(model, Relabelled) else model
        steps = getattr(model, "steps", None)
        kind = type(steps[-1][1] if steps else model).__name__
        raise ValueError(
            f"voter {name} ({kind}) cannot be exported to ONNX: {error}. Remove it from "
            f"the pool, or export to skops"
        ) from error


def _vote_of_model(graph: Graph, fitted: Fitted, k: int, data: Data) -> str:
    """Write the vote of voter k, calibrated if it has a calibrator."""
    voters = fitted.voters
    model = voters.estimators[k]
    if isinstance(voters, BaggedVoters) or voters.voting == "hard":
        return _hard_vote(graph, fitted, model, data)
    shares = write_model(graph, model, data).shares
    vote = _classes_of(fitted).soft_vote(graph, fitted, model, shares)
    if voters.calibrators is None:
        return vote
    return write_vote_calibrator(graph, vote, voters.calibrators[k])


def _hard_vote(graph: Graph, fitted: Fitted, model: Any, data: Data) -> str:
    """Write a lookup of the vote for each predicted class."""
    winner = write_model(graph, model, data).winner
    table = _classes_of(fitted).hard_votes(fitted, model)
    return graph.add("Gather", graph.constant(table), winner, axis=0)


# From the vote to labels and probabilities.


def _write_answers(graph: Graph, fitted: Fitted, vote: str, names: Any) -> None:
    """Write the label with the largest score, ties in order, and the probabilities."""
    scores, chances = _classes_of(fitted).answers(graph, fitted, vote)
    kind = object if names.dtype.kind in "OU" else names.dtype
    place = _winner(graph, scores, fitted.labels.order)
    graph.add("Gather", graph.constant(names, kind), place, to="label")
    graph.add("Identity", chances, to="probability")


def _winner(graph: Graph, scores: str, order: Any) -> str:
    """Write the index of the largest score; ties go to the first in order."""
    best = graph.first_largest(graph.column(scores, order))
    return graph.add("Gather", graph.constant(order, np.int64), best)


def _settled(graph: Graph, fitted: Fitted, vote: str) -> str:
    """Write votes (n, C) with ties resolved in favour of the first in order."""
    best = graph.add("Equal", vote, graph.largest(vote))
    rivals = graph.ordered_sum(graph.cast(best, np.float64), fitted.n_classes)
    tied = graph.add("Greater", graph.upright(rivals), graph.constant(1.0))
    winner = graph.upright(_winner(graph, vote, fitted.labels.order))
    places = graph.constant(np.arange(fitted.n_classes), np.int64)
    raised = graph.add("And", tied, graph.add("Equal", winner, places))
    step = graph.add("Mul", vote, graph.constant(STEP))
    return graph.add("Where", raised, graph.add("Add", vote, step), vote)


# Binary and multiclass votes: their shape, and how they are read.


class _OfTwo:
    """Two classes: one number per row, for the positive class."""

    def sum_of_trees(
        self, graph: Graph, fitted: Fitted, voters: TreeVoters, weights: Any, X: str
    ) -> str:
        votes = voters.forest.node_votes.astype(np.float64)
        votes *= np.repeat(weights, np.diff(voters.forest.roots))
        trees = read_own_trees(voters.forest, voters.features.binning, votes)
        return graph.ordered_sum(write_trees(graph, X, trees), len(trees))

    def hard_votes(self, fitted: Fitted, model: Any) -> Any:
        positive = fitted.voters.classes[1]
        return np.where(np.asarray(model.classes_) == positive, 1.0, -1.0)

    def soft_vote(self, graph: Graph, fitted: Fitted, model: Any, shares: str) -> str:
        n_own = len(model.classes_)
        if n_own != 2:
            raise ValueError(f"it has {n_own} classes, not two")
        sides = 1.0 if model.classes_[1] == fitted.voters.classes[1] else -1.0
        vote = linear(graph, shares, 2 * sides, -sides)
        return graph.single(clip(graph, vote, -1.0, 1.0))

    def answers(self, graph: Graph, fitted: Fitted, vote: str) -> tuple[str, str]:
        """Write scores (vote minus threshold) and probabilities, (n, 2) each."""
        excess = graph.add("Sub", vote, graph.constant(fitted.threshold))
        sides = [graph.add("Mul", vote, graph.constant(0.0)), excess]
        scores = graph.side_by_side(sides if fitted.positive == 1 else sides[::-1])
        one = graph.constant(1.0)
        if fitted.calibrator is None:
            tie = graph.constant(0.5 + TIE / 2 if fitted.labels.order[0] == 1 else 0.5)
            zero = graph.add("Equal", vote, graph.constant(0.0))
            half = linear(graph, vote, 0.5 if fitted.positive == 1 else -0.5, 0.5)
            last = graph.add("Where", zero, tie, half)
        else:
            last = write_calibrator(graph, vote, fitted.calibrator)
            last = last if fitted.positive == 1 else graph.add("Sub", one, last)
        return scores, graph.side_by_side([graph.add("Sub", one, last), last])


class _OfEach:
    """Three or more classes: a share of the vote for each."""

    def sum_of_trees(
        self, graph: Graph, fitted: Fitted, voters: TreeVoters, weights: Any, X: str
    ) -> str:
        votes = voters.forest.node_votes.astype(np.float64)  # class indices
        trees = read_own_trees(voters.forest, voters.features.binning, votes)
        leaves = write_trees(graph, X, trees)
        weight, nothing = graph.constant(weights), graph.constant(0.0)
        totals = []
        for c in range(fitted.n_classes):
            for_it = graph.add("Equal", leaves, graph.constant(float(c)))
            gain = graph.add("Where", for_it, weight, nothing)
            totals.append(graph.ordered_sum(gain, len(trees)))
        return graph.side_by_side(totals)

    def hard_votes(self, fitted: Fitted, model: Any) -> Any:
        return np.eye(fitted.n_classes)[self._places(fitted, model)]

    def soft_vote(self, graph: Graph, fitted: Fitted, model: Any, shares: str) -> str:
        n_own = len(model.classes_)
        if n_own == 2:
            first = graph.add("Sub", graph.constant(1.0), shares)
            shares = graph.side_by_side([first, shares])
        if n_own < fitted.n_classes:  # zero for classes it has not seen
            spread = graph.constant(self.hard_votes(fitted, model))
            shares = graph.add("MatMul", shares, spread)
        return graph.single(clip(graph, shares, 0.0, 1.0))

    def _places(self, fitted: Fitted, model: Any) -> Any:
        """Return the indices of a model's classes among all classes."""
        return np.searchsorted(fitted.voters.classes, np.asarray(model.classes_))

    def answers(self, graph: Graph, fitted: Fitted, vote: str) -> tuple[str, str]:
        """Write votes times factors, and probabilities (or votes), with ties resolved."""
        scores = graph.add("Mul", vote, graph.constant(fitted.threshold))
        if fitted.calibrator is None:
            return scores, _settled(graph, fitted, vote)
        return scores, write_calibrator(graph, vote, fitted.calibrator)


def _classes_of(fitted: Fitted) -> _OfTwo | _OfEach:
    return _OfTwo() if fitted.n_classes == 2 else _OfEach()


# Calibrators of voters and of the vote.


def write_vote_calibrator(graph: Graph, vote: str, calibrator: Any) -> str:
    """Write a voter's calibrator of single-precision soft votes, (n,) or (n, C)."""
    if isinstance(calibrator, ClassCurves):
        parts = []
        for c, curve in enumerate(calibrator.curves):
            # One class against the rest, as a binary soft vote.
            against = graph.single(linear(graph, graph.column(vote, c), 2.0, -1.0))
            right = write_vote_calibrator(graph, against, curve)
            parts.append(linear(graph, right, 0.5, 0.5))
        return graph.single(shared_out(graph, parts))
    if isinstance(calibrator, Isotonic):
        right, _ = _interpolate_one(graph, vote, calibrator.votes, calibrator.calibrated)
    elif isinstance(calibrator, Platt):
        inside = clip(graph, vote, -LARGEST_VOTE, LARGEST_VOTE)
        one = graph.constant(1.0)
        up, down = graph.add("Add", one, inside), graph.add("Sub", one, inside)
        log_odds = graph.add("Log", graph.add("Div", up, down))
        turned = linear(graph, log_odds, calibrator.slope, calibrator.intercept)
        right = linear(graph, expit(graph, turned), 2.0, -1.0)
    else:
        raise ValueError(f"its calibrator {type(calibrator).__name__} is not supported")
    return graph.single(right)


def write_calibrator(graph: Graph, vote: str, calibrator: Calibrator) -> str:
    """Write the probability of the positive class, or of all classes, (n, C)."""
    if len(calibrator.curves) == 1:
        return _write_curve(graph, vote, calibrator.curves[0])
    chances = []
    for c, curve in enumerate(calibrator.curves):
        against = linear(graph, graph.column(vote, c), 2.0, -1.0)
        chances.append(_write_curve(graph, against, curve))
    return shared_out(graph, chances)


def _write_curve(graph: Graph, vote: str, curve: ProbabilityCurve) -> str:
    shifted = linear(graph, _log_odds(graph, vote, curve.log_odds), 1.0, curve.shift)
    chance = expit(graph, clip(graph, shifted, -700.0, 700.0))
    # Votes stay within the scale, which is at least 1.
    tilt = linear(graph, vote, TILT / curve.scale, 1 - 1.6 * TILT)
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


def _interpolate_one(graph: Graph, x: str, at: Any, height: Any) -> tuple[str, str]:
    knots = [(np.asarray(at), np.asarray(height))]
    line, ceiling = interpolate(graph, graph.upright(x), knots)
    return graph.column(line, 0), graph.column(ceiling, 0)


# From raw rows to a graph's inputs.
#
# A graph takes numbers and categories, but raw tables hold amounts, dates, text and
# high-cardinality categories. ``examples/service/onnx_reader.py`` implements this
# specification with numpy alone; it is short, so that a service can copy or port it.


def export_onnx(model: ModelParts, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Export a model as an ONNX graph, with a specification of its inputs next to it.

    Parameters
    ----------
    model : Model
    path : path
        Path of the graph; the specification gets ``.json`` appended.

    Returns
    -------
    written : dict
        The paths ``graph`` and ``feeder``, and the names of ``inputs`` and ``outputs``.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pandas as pd, damvi
    >>> from damvi.io import export_onnx
    >>> table = pd.DataFrame({"size": np.arange(400.0) % 37, "shop": list("abcd") * 100})
    >>> late = table["size"] + 9 * np.random.default_rng(0).normal(size=400) > 36
    >>> table["late"] = np.where(late, "yes", "no")
    >>> model = damvi.fit(table, "late", pool="trees", random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_onnx(model, f"{folder}/model.onnx")["inputs"]
    ['size', 'shop']
    """
    graph = to_onnx(
        model.classifier,
        labels=model.target.texts,
        unknown={
            column.name: _other(column)
            for column in model.schema.used
            if column.kind == "category"
        },
        categories={
            name: range(len(encoder) + 1)
            for name, encoder in model.schema.encoders.items()
            if isinstance(encoder, Levels)
        },
    )
    columns = {prop.key: prop.value for prop in graph.metadata_props}["damvi.columns"]
    spec = feeder(model, {name: tensor for tensor, name in json.loads(columns).items()})
    content, beside = graph.SerializeToString(), Path(f"{os.fspath(path)}.json")
    spec["graph"] = sha256(content).hexdigest()  # detects a mismatched pair
    write_whole(Path(path), content)
    write_whole(beside, json.dumps(spec, ensure_ascii=False, indent=1).encode())
    return {
        "graph": str(path),
        "feeder": str(beside),
        "inputs": [tensor.name for tensor in graph.graph.input],
        "outputs": [tensor.name for tensor in graph.graph.output],
    }


def feeder(model: ModelParts, inputs: Mapping[str, str]) -> dict[str, Any]:
    """Return the specification as plain values, ready for JSON.

    ``inputs`` maps encoded columns to the graph's input names.
    """
    target = model.target
    return {
        "format": FEEDER,
        "target": target.name,
        "decisions": dict(zip(target.texts, target.as_given(), strict=True)),
        "missing": list(MISSING),
        "columns": [_column(column, inputs) for column in model.schema.used],
    }


def _other(column: Column) -> str | None:
    """Return the schema's category for unknown values."""
    return OTHER if column.categories[-1:] == (OTHER,) else None


def _column(column: Column, inputs: Mapping[str, str]) -> dict[str, Any]:
    named = [inputs[name] for name in column.features]
    told: dict[str, Any] = {"name": column.name, "kind": column.kind}
    encoder = column.encoder
    if column.kind == "number":
        units = [column.unit] if column.unit else []
        units += [name for name, unit in SAME.items() if unit == column.unit]
        told |= {"input": named[0], "decimal": column.decimal, "group": column.group}
        told["units"] = units
    elif column.kind == "category":
        known = [text for text in column.categories if text != OTHER]
        told |= {"input": named[0], "categories": known, "other": _other(column) or ""}
    elif isinstance(encoder, Levels):
        told |= {"input": named[0], "frequency": named[1:], "hash": "blake2b, 8 bytes"}
        told["hashes"] = _packed(encoder.hashes.astype("<u8"))
        told["counts"] = _packed(encoder.counts.astype("<u4"))
    elif isinstance(encoder, Words):
        told |= {"inputs": named, "longest": LONGEST_TEXT, "buckets": N_BUCKETS}
        told |= {"hash": "murmur3, 32 bits", "letters": [3, 5], "words": [1, 2]}
        places = [encoder.parts.index(part) for part in column.parts]
        told["weights"] = _packed(encoder.weights.astype("<f4"))
        told["directions"] = _packed(encoder.directions[:, places].astype("<f4"))
    else:
        parts = zip(named, column.parts, strict=True)
        told["form"] = column.form or "ISO8601"
        told["parts"] = [
            {"input": name, "since": part.removeprefix(SINCE)}
            if part.startswith(SINCE)
            else {"input": name, "part": part}
            for name, part in parts
        ]
    return told


def _packed(values: NDArray[Any]) -> str:
    """Encode an array as base64, row-major and little-endian."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()
