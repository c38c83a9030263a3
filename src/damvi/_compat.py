"""The only place that touches private names of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.tree._tree import NODE_DTYPE, Tree
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._metadata_requests import _raise_for_params as refuse_params
from sklearn.utils._metadata_requests import _routing_enabled as routing_enabled
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

fit_context = _fit_context

__all__ = [
    "HasMethods",
    "Interval",
    "StrOptions",
    "fit_context",
    "make_sklearn_tree",
    "refuse_params",
    "routing_enabled",
    "take_rows",
    "use_source_stamp",
]


def use_source_stamp(dispatcher: Any, stamp: str) -> None:
    """Have numba's cache of a kernel depend on ``stamp`` instead of its file's date."""
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = stamp


def make_sklearn_tree(
    *, left: Any, right: Any, value: Any, max_depth: int, n_features: int, **columns: Any
) -> Any:
    """scikit-learn's low-level tree from arrays with one entry a node."""
    nodes = np.zeros(len(left), dtype=NODE_DTYPE)
    columns |= {"left_child": left, "right_child": right}
    for name, column in columns.items():
        nodes[name] = column
    tree = Tree(n_features, np.array([value.shape[1]], dtype=np.intp), 1)
    tree.__setstate__(
        {
            "max_depth": max_depth,
            "node_count": len(nodes),
            "nodes": nodes,
            "values": np.ascontiguousarray(value, dtype=np.float64)[:, np.newaxis, :],
        }
    )
    return tree
