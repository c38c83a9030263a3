"""The methods of the experiments by name: damvi's contenders, ablations and variants."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from damvi.contenders import make_contender

from .published import EXTRA_METHODS, PAPER_METHODS

LEAST_SHARE = float(np.finfo(np.float64).eps)
"""Shares of a class in a leaf are kept off 0, whose logarithm is infinite."""


class RealAdaBoostClassifier(ClassifierMixin, BaseEstimator):
    """Boosted stumps that answer with half the log-odds of their leaf.

    scikit-learn had it as SAMME.R before release 1.6, and the easy ensembles of the
    paper's time were made of it; today's boost the stumps' plain votes. See J. Friedman,
    T. Hastie and R. Tibshirani (2000), Additive Logistic Regression, Annals of Statistics.

    Parameters
    ----------
    n_estimators : int, default=50
        The number of stumps.
    random_state : int, RandomState instance or None, default=None
    """

    def __init__(self, n_estimators: int = 50, *, random_state: Any = None) -> None:
        self.n_estimators = n_estimators
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> RealAdaBoostClassifier:
        """Boost the stumps on ``X`` and the labels ``y`` of two classes."""
        X, y = validate_data(self, X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        signs = 2 * codes - 1
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
        X = validate_data(self, X, reset=False)
        return np.mean([_half_log_odds(stump, X) for stump in self.estimators_], axis=0)

    def predict(self, X: Any) -> NDArray[Any]:
        return self.classes_[(self.decision_function(X) > 0).astype(np.intp)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        last = 1 / (1 + np.exp(-2 * self.decision_function(X)))
        return np.column_stack([1 - last, last])


def _half_log_odds(stump: DecisionTreeClassifier, X: Any) -> NDArray[np.float64]:
    shares = np.clip(stump.predict_proba(X), LEAST_SHARE, None)
    if shares.shape[1] == 1:  # all the weight is on one class
        certain = 0.5 * np.log(1 / LEAST_SHARE)
        return np.full(len(shares), certain * stump.classes_[0])
    return 0.5 * (np.log(shares[:, 1]) - np.log(shares[:, 0]))


Make = Callable[[int], Any]


def _as(name: str, **changes: Any) -> Make:
    """A contender with other settings."""

    def make(seed: int) -> Any:
        return make_contender(name, random_state=seed).set_params(**changes)

    return make


def _tuned(make_booster: Make) -> Make:
    """A booster with the threshold of the best F1 on rows that its fold has not seen."""

    def make(seed: int) -> Any:
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        return TunedThresholdClassifierCV(make_booster(seed), scoring="f1", cv=folds)

    return make


def _plain_lightgbm(seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1)


METHODS: dict[str, Make] = {
    **{name: _as(name) for name in (*PAPER_METHODS, "uniform", "RF")},
    "LightGBM": _tuned(_as("LightGBM")),
    "XGBoost": _tuned(_as("XGBoost")),
    # DAMVI with a step left out or changed.
    "C-bound": _as("DAMVI", reweight=False),
    "SLSQP": _as("DAMVI", solver="slsqp"),
    # With the threshold of the best F1 out of bag, and weights about a free constant.
    "uniform-f1": _as("uniform", threshold="f1"),
    "DAMVI-f1": _as("DAMVI", threshold="f1"),
    "constant-f1": _as("DAMVI", threshold="f1", fit_intercept=True, shrinkage=0.5),
    # Baselines as the paper may have run them: samples of 20 % of the oversampled rows,
    # which are twice as many, or of all rows; the balanced forest by its defaults of 2020.
    "R-BG-os": _as("R-BG", max_samples=0.4),
    "S-BG-os": _as("S-BG", max_samples=0.4),
    "A-BG-os": _as("A-BG", max_samples=0.4),
    "R-BG-full": _as("R-BG", max_samples=1.0),
    "BRF-old": _as("BRF", sampling_strategy="auto", replacement=False, bootstrap=True),
    "EE-real": _as("EE", easyensembleclassifier__estimator=RealAdaBoostClassifier()),
    # The boosters from the class rate, their default.
    "LightGBM-rate": _tuned(_plain_lightgbm),
    "XGBoost-rate": _tuned(_as("XGBoost", base_score=None)),
}
"""Every method by name, from a seed to an estimator."""
USUAL = (*PAPER_METHODS, *EXTRA_METHODS)
"""The methods of the tables; the others take part when named."""
ON_TREES = {
    "DAMVI",
    "uniform",
    "C-bound",
    "SLSQP",
    "uniform-f1",
    "DAMVI-f1",
    "constant-f1",
}


def make_method(name: str, *, trees: str = "fast", random_state: int = 0) -> Any:
    """The estimator behind a name.

    ``trees`` are those that DAMVI and the bagging baselines are made of: the built-in
    ones ("fast"), or scikit-learn's ("cart").
    """
    if name not in METHODS:
        near = get_close_matches(name, METHODS, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(f"unknown method {name!r}.{hint} There are: {', '.join(METHODS)}")
    model = METHODS[name](random_state)
    if trees == "cart" and (name in ON_TREES or "-BG" in name):
        model.set_params(estimator=DecisionTreeClassifier())
    return model
