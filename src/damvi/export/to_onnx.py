"""A fitted classifier as one ONNX graph."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..classifier import TIE, DAMVIClassifier
from .classes import refuse_many_classes
from .curves import linear, write_calibrator
from .graph import IR_VERSION, ML_OPSET, OPSET, Graph
from .inputs import columns_of, input_names
from .table import Matrix, Table, without_infinities
from .voting import write_vote

if TYPE_CHECKING:
    from onnx import ModelProto

OUTPUTS = ("label", "probability", "vote")
LARGEST_FILE = 2**31 - 1


def to_onnx(
    model: DAMVIClassifier,
    *,
    labels: Sequence[str] | None = None,
    unknown: Mapping[str, str | None] | None = None,
) -> ModelProto:
    """The model as an ONNX graph, for onnxruntime and others, without Python.

    Parameters
    ----------
    model : DAMVIClassifier
        Fitted, on dense or sparse arrays (the graph takes dense ones) or dataframes.
    labels : sequence of two str, optional
        What to call ``classes_`` in the output; None keeps them.
    unknown : mapping, optional
        For columns of categories by name, what a text that is none of them counts as: one
        of them, or None for a missing value. Columns that are not named do with it what
        the model does with a category that it does not know.

    Returns
    -------
    onnx.ModelProto
        Its inputs are ``X``, doubles (n, d), or one (n, 1) for each column where the model
        was fitted on a dataframe: doubles, and texts for categories. Its outputs are
        ``label`` (n,), ``probability`` (n, 2) and ``vote`` (n,).

    Raises
    ------
    ValueError
        If a voter cannot be written; it is named.

    Notes
    -----
    See ``docs/export.md`` for what is exact.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi import DAMVIClassifier
    >>> from damvi.export import to_onnx
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = DAMVIClassifier(n_estimators=10, random_state=0).fit(X, y)
    >>> graph = to_onnx(model)
    >>> [output.name for output in graph.graph.output]
    ['label', 'probability', 'vote']
    """
    helper = _helper()
    check_is_fitted(model, "weights_")
    refuse_many_classes(model)
    names, kinds = columns_of(model)
    inputs = input_names(names, OUTPUTS) if names else ("X",)
    graph = Graph({*inputs, *OUTPUTS})
    data: Table | Matrix
    if names:
        data = Table(graph, names, inputs, kinds, unknown or {})
    else:
        data = Matrix(without_infinities(graph, "X"), model.n_features_in_)
    vote = write_vote(graph, model, data)
    graph.add("Identity", vote, to="vote")
    _write_label(graph, model, vote, labels)
    _write_probability(graph, model, vote)

    width = 1 if names else model.n_features_in_
    strings, doubles = helper.TensorProto.STRING, helper.TensorProto.DOUBLE
    given = [
        helper.make_tensor_value_info(
            name, strings if kind == "text" else doubles, [None, width]
        )
        for name, kind in zip(inputs, kinds if names else ("number",), strict=True)
    ]
    said = model.classes_ if labels is None else np.array(labels, dtype=object)
    made = [
        helper.make_tensor_value_info("label", _label_type(helper, said), [None]),
        helper.make_tensor_value_info("probability", doubles, [None, 2]),
        helper.make_tensor_value_info("vote", doubles, [None]),
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
        raise ValueError("the graph takes more than 2 GB, the most that ONNX can hold")
    columns = dict(zip(inputs, names, strict=True)) if names else {}
    helper.set_model_props(whole, {"damvi.columns": json.dumps(columns)})
    return whole


def _helper() -> Any:
    try:
        from onnx import helper
    except ImportError as error:
        raise ImportError(
            "ONNX graphs need the package onnx: pip install 'damvi[export]'"
        ) from error
    return helper


def _label_type(helper: Any, labels: Any) -> int:
    if labels.dtype.kind in "OU":
        return int(helper.TensorProto.STRING)
    return int(helper.np_dtype_to_tensor_dtype(labels.dtype))


def _write_label(graph: Graph, model: Any, vote: str, labels: Any) -> None:
    """The majority wins a tie; see :meth:`DAMVIClassifier.decision_function`."""
    said = model.classes_ if labels is None else np.array(labels, dtype=object)
    if said.dtype.kind in "OU" and not all(isinstance(x, str) for x in said.tolist()):
        raise ValueError(
            f"labels of mixed kinds ({said.tolist()}) are not known to ONNX; give "
            f"labels=('...', '...')"
        )
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
    kind = object if said.dtype.kind in "OU" else said.dtype
    graph.add("Gather", graph.constant(said, kind), place, to="label")


def _write_probability(graph: Graph, model: Any, vote: str) -> None:
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
    one = graph.constant([1], np.int64)
    columns = [
        graph.add("Unsqueeze", graph.add("Sub", graph.constant(1.0), last), one),
        graph.add("Unsqueeze", last, one),
    ]
    graph.add("Concat", *columns, axis=1, to="probability")
