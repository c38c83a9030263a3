"""A graph run by onnxruntime, and trees walked step by step."""

import json

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from damvi.io import to_onnx
from damvi.io.onnx_graph import (
    IR_VERSION,
    LEAF,
    LEQ,
    MEMBER,
    ML_OPSET,
    OPSET,
    Graph,
    write_trees,
)
from damvi.io.onnx_models import read_own_trees, with_codes
from damvi.io.onnx_table import Matrix


def run(graph, feed):
    """The outputs of a graph by name."""
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


def feed_of(graph, X):
    """What to give to a graph for a table."""
    if not hasattr(X, "columns"):
        return {"X": np.asarray(X, dtype=np.float64)}
    columns = json.loads({p.key: p.value for p in graph.metadata_props}["damvi.columns"])
    feed = {}
    for tensor in graph.graph.input:
        column = X[columns[tensor.name]]
        if tensor.type.tensor_type.elem_type == TensorProto.STRING:
            values = np.array([_text(value) for value in column.to_list()], dtype=object)
        else:
            values = np.array(
                [np.nan if v is None else v for v in column.to_list()], dtype=np.float64
            )
        feed[tensor.name] = values[:, np.newaxis]
    return feed


def _text(value):
    return value if isinstance(value, str) else ""


def agree(model, X, atol=1e-12, **options):
    """Assert that the graph says what the model does; the outputs of the graph."""
    graph = to_onnx(model, **options)
    said = run(graph, feed_of(graph, X))
    np.testing.assert_allclose(said["vote"], model.vote(X), rtol=0, atol=atol)
    np.testing.assert_allclose(
        said["probability"], model.predict_proba(X), rtol=0, atol=atol
    )
    if not options:
        assert said["label"].tolist() == model.predict(X).tolist()
    return said


def weighted(model, weights):
    """The model with other weights."""
    model.weights_ = np.asarray(weights, dtype=np.float64)
    return model


def run_trees(trees, X):
    """The values of the leaves (n, T), by onnxruntime."""
    return run_written(lambda graph, X: write_trees(graph, X, trees), X, len(trees))


def run_own_forest(model, X):
    """What each tree of a fitted forest says (n, T), by onnxruntime."""
    forest, features = model.trees_.forest, model.trees_.features
    trees = read_own_trees(forest, features.binning, forest.shares[:, 1])
    width = X.shape[1]

    def write(graph, X):
        return write_trees(
            graph, with_codes(graph, Matrix(graph, X, width), features.binning), trees
        )

    return run_written(write, X, len(trees))


def run_written(write, X, width):
    """What nodes make of an array, doubles (n, width)."""
    graph = Graph({"X", "Y"})
    graph.add("Identity", write(graph, "X"), to="Y")
    double = TensorProto.DOUBLE
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "nodes",
            [helper.make_tensor_value_info("X", double, [None, X.shape[1]])],
            [helper.make_tensor_value_info("Y", double, [None, width])],
            graph.constants,
        ),
        opset_imports=[
            helper.make_opsetid("", OPSET),
            helper.make_opsetid("ai.onnx.ml", ML_OPSET),
        ],
        ir_version=IR_VERSION,
    )
    return run(model, {"X": X})["Y"]


def walk_trees(trees, X):
    """The same, step by step."""
    values = np.empty((len(X), len(trees)))
    for i, row in enumerate(X):
        for t, k in enumerate(trees.roots):
            while trees.left[k] != LEAF:
                left = _goes_left(trees, k, row[trees.feature[k]])
                k = trees.left[k] if left else trees.right[k]
            values[i, t] = trees.value[k]
    return values


def _goes_left(trees, k, value):
    if trees.mode[k] == MEMBER:
        return value in trees.sets[k].tolist()
    if np.isnan(value):
        return trees.missing_left[k]
    limit = trees.threshold[k]
    return value <= limit if trees.mode[k] == LEQ else value < limit


def near(thresholds):
    """Values at the thresholds, and next to them on either side."""
    at = np.unique(thresholds[np.isfinite(thresholds)])
    with np.errstate(over="ignore"):
        below, above = np.nextafter(at, -np.inf), np.nextafter(at, np.inf)
    values = np.concatenate([at, below, above])
    return values[np.isfinite(values)]
