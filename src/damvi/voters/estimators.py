"""scikit-learn's estimators as voters: how they are seeded, weighted and fitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel
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


def fit_on_rows(
    estimator: Any,
    X: Any,
    targets: NDArray[Any],
    rows: NDArray[np.intp],
    weights: NDArray[np.float64] | None,
    params: Mapping[str, Any],
) -> Any:
    """The estimator fitted on some rows, as a classifier of all the class numbers.

    ``weights`` has one entry for each of ``rows``. ``params`` go to ``fit``; values with
    one entry for each row of ``X`` are taken there.
    """
    own_params = {
        name: take_rows(value, rows) if _is_per_row(value, len(targets)) else value
        for name, value in params.items()
    }
    # Some models insist on labels 0, 1, ... without gaps, and not all classes are here.
    present, numbers = np.unique(targets[rows], return_inverse=True)
    numbers = numbers.astype(targets.dtype)
    _fit_weighted(estimator, take_rows(X, rows), numbers, weights, own_params)
    has_gaps = present[-1] != len(present) - 1
    return Relabelled(estimator, present) if has_gaps else estimator


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


def _fit_weighted(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    weights: NDArray[np.float64] | None,
    params: Mapping[str, Any],
) -> Any:
    name = weight_name(estimator)
    if weights is None or name is None:
        return estimator.fit(X, y, **params)
    if name == "sample_weight" or not routing_enabled():
        return estimator.fit(X, y, **{name: weights}, **params)
    if params:  # routed to the steps as they ask, and the weights with them
        return estimator.fit(X, y, sample_weight=weights, **params)
    with config_context(enable_metadata_routing=False):
        return estimator.fit(X, y, **{name: weights})


def _has(name: str) -> Any:
    return available_if(lambda self: hasattr(self.estimator, name))


class Relabelled(ClassifierMixin, BaseEstimator):
    """A fitted classifier of the labels 0, 1, ... that stand for ``classes``.

    Parameters
    ----------
    estimator : fitted classifier
    classes : array
        In the order of the estimator's own.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> model = GaussianNB().fit(X, [0, 0, 1, 1])
    >>> Relabelled(model, np.array([0, 3])).predict(X)
    array([0, 0, 3, 3])
    """

    def __init__(self, estimator: Any, classes: Any) -> None:
        self.estimator = estimator
        self.classes = classes
        self.classes_ = np.asarray(classes)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row."""
        numbers = np.asarray(self.estimator.predict(X)).ravel().astype(np.intp)
        return self.classes_[numbers]

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """The probabilities of ``classes_``."""
        return self.estimator.predict_proba(X)

    @_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """The scores of ``classes_``, or of the second of two."""
        return self.estimator.decision_function(X)

    @property
    def feature_importances_(self) -> Any:
        """Those of the estimator, if it has any."""
        return self.estimator.feature_importances_


def in_parallel(work: Iterable[Any], n_jobs: int | None) -> Iterator[Any]:
    """The results of joblib's ``delayed`` calls in order, by the backend in force."""
    try:
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    except ValueError:  # ray's backend, for one, only gives all results at once
        parallel = Parallel(n_jobs=n_jobs, prefer="threads")
    return iter(parallel(work))


def weighted_importances(
    estimators: Sequence[Any], weights: NDArray[np.float64], *, scaled: bool
) -> NDArray[np.float64]:
    """The mean of the voters' feature importances, weighted as they vote.

    ``scaled``: models count in units of their own, so each is scaled to sum to 1, and
    those that have none are left out.
    """
    known = [getattr(voter, "feature_importances_", None) for voter in estimators]
    if all(importances is None for importances in known):
        kinds = ", ".join(sorted({type(voter).__name__ for voter in estimators}))
        raise AttributeError(f"the voters ({kinds}) have no feature_importances_")
    total: Any = 0.0
    asked = 0.0
    for weight, importances in zip(weights, known, strict=True):
        if importances is None:  # a constant voter (one class in its sample) uses none
            continue
        scale = float(np.sum(importances)) if scaled else 1.0
        total = total + weight * np.asarray(importances) / (scale or 1.0)
        asked += weight
    return np.asarray(total / asked if scaled and asked > 0 else total)
