"""Real AdaBoost, which scikit-learn had as SAMME.R before release 1.6."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from .._compat import Interval, fit_context
from ..reading import encode_labels, read_table

LEAST_SHARE = float(np.finfo(np.float64).eps)
"""Shares of a class in a leaf are kept off 0, whose logarithm is infinite."""


class RealAdaBoostClassifier(ClassifierMixin, BaseEstimator):
    """Boosted stumps that say how sure they are [1]_.

    Each stump answers with half the log-odds of its leaf, and rows gain weight as the
    answers so far are wrong about them. The easy ensembles of the paper's time were made
    of these; today's boost the stumps' plain votes.

    Parameters
    ----------
    n_estimators : int, default=50
        The number of stumps.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    estimators_ : list of DecisionTreeClassifier

    References
    ----------
    .. [1] J. Friedman, T. Hastie and R. Tibshirani (2000), Additive Logistic Regression,
       Annals of Statistics.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi.baselines import RealAdaBoostClassifier
    >>> X, y = make_classification(200, random_state=0)
    >>> RealAdaBoostClassifier(random_state=0).fit(X, y).predict(X[:3])
    array([0, 0, 1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(self, n_estimators: int = 50, *, random_state: Any = None) -> None:
        self.n_estimators = n_estimators
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: ArrayLike) -> RealAdaBoostClassifier:
        """Boost the stumps on ``X`` and the labels ``y`` of two classes."""
        X, y = read_table(self, X, y, keep_frame=False)
        self.classes_, positive, signs = encode_labels(y, None)
        if positive != self.classes_[1]:
            signs = -signs
        rng = check_random_state(self.random_state)
        weights = np.full(len(signs), 1 / len(signs))
        self.estimators_ = []
        for _ in range(self.n_estimators):
            seed = int(rng.randint(np.iinfo(np.int32).max))
            stump = DecisionTreeClassifier(max_depth=1, random_state=seed)
            self.estimators_.append(stump.fit(X, signs, weights))
            weights *= np.exp(-signs * _half_log_odds(stump, X))
            weights /= weights.sum()
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The mean answer of the stumps; above 0 means ``classes_[1]``."""
        check_is_fitted(self)
        X = read_table(self, X, keep_frame=False)
        return np.mean([_half_log_odds(stump, X) for stump in self.estimators_], axis=0)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class that the stumps lean to."""
        above = self.decision_function(X) > 0
        return self.classes_[above.astype(np.intp)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The mean answer through a logistic curve, for each class."""
        last = 1 / (1 + np.exp(-2 * self.decision_function(X)))
        return np.column_stack([1 - last, last])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _half_log_odds(stump: DecisionTreeClassifier, X: Any) -> NDArray[np.float64]:
    shares = np.clip(stump.predict_proba(X), LEAST_SHARE, None)
    if shares.shape[1] == 1:  # all the weight is on one class
        certain = 0.5 * np.log(1 / LEAST_SHARE)
        return np.full(len(shares), certain * stump.classes_[0])
    return 0.5 * (np.log(shares[:, 1]) - np.log(shares[:, 0]))
