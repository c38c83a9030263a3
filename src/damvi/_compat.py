"""The only module that uses private names of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.tree._tree import NODE_DTYPE, Tree
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._metadata_requests import _raise_for_params as refuse_params
from sklearn.utils._metadata_requests import _routing_enabled as routing_enabled
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition

F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "NODE_DTYPE",
    "BaseComposition",
    "HasMethods",
    "Interval",
    "StrOptions",
    "Tree",
    "boosted_trees",
    "boosting_categories",
    "boosting_nodes",
    "fit_boosting_columns",
    "fit_context",
    "is_compiled",
    "make_sklearn_tree",
    "refuse_params",
    "routing_enabled",
    "set_boosted_trees",
    "sklearn_tree",
    "take_rows",
    "use_source_stamp",
    "with_leaf_values",
]


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[F], F]:
    """Validate parameters before a fit, as scikit-learn does; typed as the identity."""
    return _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)


def use_source_stamp(dispatcher: Any, stamp: str) -> None:
    """Make numba's cache of a kernel depend on ``stamp`` instead of its file's date."""
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = stamp


def is_compiled(kernel: Any) -> bool:
    """Whether numba has compiled a kernel of these sources, in memory or on disk."""
    dispatcher = kernel.compiled
    signatures = getattr(dispatcher, "signatures", None)
    if signatures is None or signatures:  # plain Python, or compiled in this process
        return True
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    return hasattr(cache_file, "_load_index") and bool(cache_file._load_index())


def make_sklearn_tree(
    *, left: Any, right: Any, value: Any, max_depth: int, n_features: int, **columns: Any
) -> Any:
    """Create scikit-learn's low-level tree from arrays with one entry per node."""
    nodes = np.zeros(len(left), dtype=NODE_DTYPE)
    columns |= {"left_child": left, "right_child": right}
    for name, column in columns.items():
        nodes[name] = column
    values = np.ascontiguousarray(value, dtype=np.float64)[:, np.newaxis, :]
    n_classes = np.array([value.shape[1]], np.intp)
    return sklearn_tree(n_features, n_classes, nodes, values, max_depth)


def sklearn_tree(
    n_features: int, n_classes: Any, nodes: Any, values: Any, max_depth: int
) -> Any:
    """Create scikit-learn's low-level tree from its state."""
    tree = Tree(n_features, n_classes, 1)
    tree.__setstate__(
        {
            "max_depth": max_depth,
            "node_count": len(nodes),
            "nodes": nodes,
            "values": values,
        }
    )
    return tree


def boosting_nodes() -> Any:
    """Return the dtype of a node of histogram boosting."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    return PREDICTOR_RECORD_DTYPE


def fit_boosting_columns(model: Any, X: Any, categorical: Any) -> None:
    """Fit the column preprocessing of histogram boosting on ``X``, but no trees.

    Without ``X``, columns are unnamed numbers.
    """
    if X is None:
        model.is_categorical_ = model._preprocessor = model._is_categorical_remapped = None
        return
    asked, model.categorical_features = model.categorical_features, categorical
    try:
        model._preprocess_X(X, reset=True)
    finally:
        model.categorical_features = asked


def boosting_categories(model: Any) -> list[Any]:
    """Return the categories of its categorical columns, in order."""
    if model._preprocessor is None:
        return []
    return list(model._preprocessor.named_transformers_["encoder"].categories_)


def set_boosted_trees(
    model: Any, *, start: Any, trees: list[Any], n_known: list[int], classes: Any
) -> None:
    """Set the baseline and the trees, each (nodes, two tables of sets).

    ``n_known`` is the number of categories of each of the leading columns.
    """
    from sklearn._loss.loss import HalfBinomialLoss, HalfMultinomialLoss
    from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
    from sklearn.preprocessing import LabelEncoder

    n_features, width = model.n_features_in_, len(start)
    n_numbers = n_features - len(n_known)
    bins = _BinMapper()
    bins.is_categorical_ = np.array([1] * len(n_known) + [0] * n_numbers, dtype=np.uint8)
    bins.bin_thresholds_ = [np.arange(n, dtype=np.float64) for n in n_known]
    bins.missing_values_bin_idx_ = bins.n_bins - 1
    encoder = LabelEncoder()
    encoder.classes_ = classes
    predictors = [TreePredictor(*tree) for tree in trees]
    vars(model).update(
        _baseline_prediction=np.array(start)[np.newaxis],
        _bin_mapper=bins,
        _label_encoder=encoder,
        _loss=HalfBinomialLoss() if width == 1 else HalfMultinomialLoss(n_classes=width),
        _n_features=n_features,
        _predictors=[predictors[i : i + width] for i in range(0, len(trees), width)],
        classes_=classes,
        n_trees_per_iteration_=width,
    )


def with_leaf_values(tree: Any, value: Any) -> Any:
    """Copy scikit-learn's low-level tree with other values (nodes, classes)."""
    new = Tree(tree.n_features, np.array([value.shape[1]], dtype=np.intp), 1)
    values = np.ascontiguousarray(value, dtype=np.float64)[:, np.newaxis, :]
    new.__setstate__(tree.__getstate__() | {"values": values})
    return new


def boosted_trees(model: Any) -> tuple[tuple[float, ...], list[Any]]:
    """Return the baseline and the trees of a ``HistGradientBoostingClassifier``."""
    start = tuple(map(float, np.ravel(model._baseline_prediction)))
    return start, [tree for step in model._predictors for tree in step]
