"""How a classifier is fitted as a voter: its seeds, its weights, its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from .._compat import routing_enabled, take_rows


def seeded(estimator: Any, seed: int) -> Any:
    """The estimator with every random state, nested ones too, set to ``seed``."""
    names = [
        name
        for name in estimator.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    ]
    return estimator.set_params(**dict.fromkeys(names, seed))


def params_of_rows(
    params: Mapping[str, Any], rows: NDArray[np.intp], n_rows: int
) -> dict[str, Any]:
    """Parameters of ``fit`` for some rows; values with one entry a row are taken there."""
    return {
        name: take_rows(value, rows) if _is_per_row(value, n_rows) else value
        for name, value in params.items()
    }


def _is_per_row(value: Any, n_rows: int) -> bool:
    return (
        hasattr(value, "__len__")
        and not isinstance(value, (str, dict))
        and len(value) == n_rows
    )


def weight_name(estimator: Any) -> str | None:
    """What ``fit`` calls the rows' weights, in a pipeline those of its last step."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if isinstance(estimator, Pipeline):
        last, step = estimator.steps[-1]
        inner = weight_name(step)
        return None if inner is None else f"{last}__{inner}"
    return None


def fit_weighted(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    weights: NDArray[np.float64] | None,
    params: Mapping[str, Any],
) -> Any:
    """Fit with weights under the name that they go by."""
    name = weight_name(estimator)
    if weights is None or name is None:
        return estimator.fit(X, y, **params)
    if name == "sample_weight" or not routing_enabled():
        return estimator.fit(X, y, **{name: weights}, **params)
    if params:  # routed to the steps as they ask, and the weights with them
        return estimator.fit(X, y, sample_weight=weights, **params)
    with config_context(enable_metadata_routing=False):
        return estimator.fit(X, y, **{name: weights})
