"""Trees as one node of a graph: the value of each row's leaf in each tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from .graph import Graph
from .trees import LEAF, LT, MEMBER, Trees


def write_trees(graph: Graph, X: str, trees: Trees) -> str:
    """The values (n, T) of the leaves that the rows of ``X``, doubles, come to.

    A target a tree, so that whoever adds them up says in what order. TreeEnsemble has no
    trees that are one leaf: such a tree gets a split, with two equal leaves. (One leaf as
    both children is misread by some releases of onnxruntime.)
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
    """Inner nodes and leaves are counted apart there."""
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
        if len(values) == 0:  # nothing goes left
            mode[k], threshold[k] = LT, -np.inf
            continue
        members.append(np.append(values, np.nan))  # NaN ends a set
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
