"""A fitted classifier as one ONNX graph."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..classifier import DAMVIClassifier
from .class_outputs import write_class_label, write_class_probability
from .class_voting import write_class_vote
from .graph import IR_VERSION, ML_OPSET, OPSET, Graph
from .inputs import columns_of, input_names
from .outputs import read_labels, write_label, write_probability
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
    labels : sequence of str, optional
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
        ``label`` (n,), ``probability`` (n, 2) and ``vote`` (n,); with C > 2 classes the
        two last are (n, C).

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
    said = read_labels(model.classes_, labels)
    names, kinds = columns_of(model)
    inputs = input_names(names, OUTPUTS) if names else ("X",)
    graph = Graph({*inputs, *OUTPUTS})
    data: Table | Matrix
    if names:
        data = Table(graph, names, inputs, kinds, unknown or {})
    else:
        data = Matrix(without_infinities(graph, "X"), model.n_features_in_)
    if len(model.classes_) == 2:
        vote = write_vote(graph, model, data)
        write_label(graph, model, vote, said)
        write_probability(graph, model, vote)
    else:
        vote = write_class_vote(graph, model, data)
        write_class_label(graph, model, vote, said)
        write_class_probability(graph, model, vote)
    graph.add("Identity", vote, to="vote")

    width = 1 if names else model.n_features_in_
    strings, doubles = helper.TensorProto.STRING, helper.TensorProto.DOUBLE
    given = [
        helper.make_tensor_value_info(
            name, strings if kind == "text" else doubles, [None, width]
        )
        for name, kind in zip(inputs, kinds if names else ("number",), strict=True)
    ]
    n_classes = len(model.classes_)
    of_vote = [None] if n_classes == 2 else [None, n_classes]
    made = [
        helper.make_tensor_value_info("label", _label_type(helper, said), [None]),
        helper.make_tensor_value_info("probability", doubles, [None, n_classes]),
        helper.make_tensor_value_info("vote", doubles, of_vote),
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
