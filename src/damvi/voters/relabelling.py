"""Models that have not met all classes: some insist on labels without gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if


def without_gaps(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The rows' classes numbered anew, 0, 1, ..., and the classes that there are."""
    present, numbers = np.unique(y, return_inverse=True)
    return numbers.astype(y.dtype), present


def with_gaps(model: Any, present: NDArray[Any]) -> Any:
    """A model that learned such numbers, under the labels that they stand for."""
    return model if present[-1] == len(present) - 1 else Relabelled(model, present)


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
    >>> X, y = np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([0, 0, 3, 3])
    >>> numbers, present = without_gaps(y)
    >>> with_gaps(GaussianNB().fit(X, numbers), present).predict(X)
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
