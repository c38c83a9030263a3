"""Voters that were tried for the strong pool; benchmarks/portfolio.py weighs them.

Each is made from a seed and the labels, as the voters of ``damvi.voters.strong_pool`` are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from damvi.voters import FastForestClassifier, NetworksClassifier, NumberEncoder
from damvi.voters.columns import (
    PairColumns,
    RankScaler,
    RankSplines,
    scaled_table,
)
from damvi.voters.portfolio import FEW, LEAST_HESSIAN, RARE

Make = Callable[[int | None, NDArray[Any]], Any]


def _lightgbm(*steps: Any, sqrt: bool = False, even: bool = False, **options: Any) -> Make:
    def make(seed: int | None, y: NDArray[Any]) -> Any:
        from lightgbm import LGBMClassifier

        rate = float(np.mean(y))
        told: dict[str, Any] = {
            "n_estimators": 100,
            "learning_rate": 0.1,
            "num_leaves": 31,
            "min_child_samples": FEW,
            "min_child_weight": LEAST_HESSIAN,
            "subsample": 0.8,
            "subsample_freq": 1,
            "colsample_bytree": 0.8,
            "max_bin": 63,
            "n_jobs": 1,
            "random_state": seed,
            "verbose": -1,
            **({"boost_from_average": False} if rate < RARE else {}),
            **({"scale_pos_weight": ((1 - rate) / rate) ** 0.5} if sqrt else {}),
            **options,
        }
        told = {name: value for name, value in told.items() if value is not None}
        if even:
            told |= {
                "subsample": 1.0,
                "pos_bagging_fraction": 0.95,
                "neg_bagging_fraction": float(np.clip(5 * rate, 0.1, 0.8)),
            }
        return make_pipeline(NumberEncoder(), *steps, LGBMClassifier(**told))

    return make


def _xgboost(**options: Any) -> Make:
    def make(seed: int | None, y: NDArray[Any]) -> Any:
        from xgboost import XGBClassifier

        told = {
            "n_estimators": 100,
            "learning_rate": 0.1,
            "max_depth": 6,
            "min_child_weight": LEAST_HESSIAN,
            "subsample": 0.8,
            "colsample_bytree": 0.8,
            "max_bin": 64,
            "n_jobs": 1,
            "random_state": seed,
            **options,
        }
        return make_pipeline(NumberEncoder(), XGBClassifier(**told))

    return make


def _catboost(**options: Any) -> Make:
    def make(seed: int | None, y: NDArray[Any]) -> Any:
        from catboost import CatBoostClassifier

        told: dict[str, Any] = {
            "iterations": 150,
            "learning_rate": 0.1,
            "depth": 6,
            "boosting_type": "Plain",
            "border_count": 32,
            "thread_count": 1,
            "random_state": 0 if seed is None else seed,
            "verbose": False,
            "allow_writing_files": False,
            **options,
        }
        told = {name: value for name, value in told.items() if value is not None}
        return make_pipeline(NumberEncoder(), CatBoostClassifier(**told))

    return make


def _hist(**options: Any) -> Make:
    def make(seed: int | None, y: NDArray[Any]) -> Any:
        told = {
            "learning_rate": 0.1,
            "max_iter": 100,
            "max_leaf_nodes": 15,
            "max_bins": 63,
            "max_features": 0.7,
            "min_samples_leaf": FEW,
            "l2_regularization": 1.0,
            "early_stopping": False,
            "random_state": seed,
            **options,
        }
        return make_pipeline(NumberEncoder(), HistGradientBoostingClassifier(**told))

    return make


def _forest(n_trees: int = 100, **options: Any) -> Make:
    def make(seed: int | None, y: NDArray[Any]) -> Any:
        return FastForestClassifier(n_trees, n_jobs=1, random_state=seed, **options)

    return make


def _extra(n_trees: int, **options: Any) -> Make:
    def make(seed: int | None, y: NDArray[Any]) -> Any:
        model = ExtraTreesClassifier(n_trees, n_jobs=1, random_state=seed, **options)
        return make_pipeline(NumberEncoder(), model)

    return make


def _on_ranks(*steps: Callable[[int | None, int], Any]) -> Make:
    def make(seed: int | None, y: NDArray[Any]) -> Any:
        return make_pipeline(
            scaled_table(RankScaler()), *(step(seed, len(y)) for step in steps)
        )

    return make


def _logistic(C: float, max_iter: int = 300) -> Callable[[int | None, int], Any]:
    return lambda seed, n: LogisticRegression(C=C, max_iter=max_iter, random_state=seed)


def _network(width: int, **options: Any) -> Callable[[int | None, int], Any]:
    def make(seed: int | None, n: int) -> Any:
        # About a thousand steps, whatever the number of rows; a tolerance that nothing
        # passes ends training after these epochs, with no warning.
        epochs = int(np.clip(1000 * 200 / n, 10, 60))
        told = {"alpha": 0.01, "learning_rate_init": 0.005, **options}
        return MLPClassifier(
            (width,), n_iter_no_change=epochs, tol=1e6, random_state=seed, **told
        )

    return make


class Landmarks(TransformerMixin, BaseEstimator):
    """How near a row is to some training rows, as many of each class.

    Gaussian kernels at the landmarks, whitened (the Nystroem method): a linear model of
    them is a smooth function of all columns at once. Rare classes have as many landmarks as
    others, or all their rows.
    """

    def __init__(self, n_landmarks: int = 200, random_state: int | None = None) -> None:
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        rng = np.random.default_rng(self.random_state)
        classes, numbers = np.unique(y, return_inverse=True)
        each = max(1, self.n_landmarks // len(classes))
        drawn = [
            rng.permutation(np.flatnonzero(numbers == c))[:each]
            for c in range(len(classes))
        ]
        self.rows_ = X[np.sort(np.concatenate(drawn))]
        values, vectors = np.linalg.eigh(self._near(self.rows_))
        self.whitening_ = (vectors / np.sqrt(np.maximum(values, 1e-6))) @ vectors.T
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        near: NDArray[np.float64] = self._near(X) @ self.whitening_
        return near

    def _near(self, X: Any) -> NDArray[np.float64]:
        near: NDArray[np.float64] = rbf_kernel(X, self.rows_)  # gamma is 1 / columns
        return near


def _linear(ranks: bool = False, **options: Any) -> Make:
    def make(seed: int | None, y: NDArray[Any]) -> Any:
        model = LogisticRegression(max_iter=1000, random_state=seed, **options)
        return make_pipeline(scaled_table(RankScaler() if ranks else None), model)

    return make


def _again(make: Make, times: int = 1) -> Make:
    """The same by another seed."""
    return lambda seed, y: make(None if seed is None else seed + times, y)


BEFORE: dict[str, Make] = {
    "lightgbm": _lightgbm(
        n_estimators=200, learning_rate=0.05, colsample_bytree=0.8, max_bin=None
    ),
    "xgboost": _xgboost(
        n_estimators=200, learning_rate=0.05, colsample_bytree=0.8, max_bin=None
    ),
    "catboost": _catboost(
        iterations=300, learning_rate=0.05, boosting_type=None, border_count=None
    ),
    "hist_boosting": _hist(
        learning_rate=0.05, max_iter=200, max_bins=255, max_features=1.0
    ),
    "extra_trees*": _extra(100, min_samples_leaf=2),
    "forest": _forest(200),
    "random_forest": _forest(200, max_features=1),
    "balanced_forest": _forest(200, balanced=True),
    "linear": _linear(),
    "balanced_linear": _linear(class_weight="balanced"),
    "rank_linear": _linear(ranks=True),
}
"""The pool of results/pools/again, whose votes are in the same folder. The extra-trees with
a star are scikit-learn's."""
CANDIDATES: dict[str, Make] = {
    "lgb_fast": _lightgbm(),
    "lgb_regular": _lightgbm(n_estimators=150, learning_rate=0.07, reg_lambda=1.0),
    "lgb_even": _lightgbm(even=True, n_estimators=150, learning_rate=0.07),
    "lgb_stumps": _lightgbm(n_estimators=300, num_leaves=2, colsample_bytree=0.5),
    "lgb_small": _lightgbm(n_estimators=200, num_leaves=7),
    "lgb_extra": _lightgbm(
        extra_trees=True, num_leaves=63, colsample_bytree=1.0, learning_rate=0.15
    ),
    "lgb_sqrt": _lightgbm(sqrt=True, num_leaves=15),
    "lgb_deep": _lightgbm(
        num_leaves=63, feature_fraction_bynode=0.5, min_child_samples=2, reg_lambda=1.0
    ),
    "lgb_again": _again(_lightgbm(n_estimators=200, learning_rate=0.05, max_bin=None)),
    "lgb_narrow": _again(
        _lightgbm(
            n_estimators=400,
            learning_rate=0.03,
            num_leaves=15,
            colsample_bytree=0.5,
            max_bin=None,
        )
    ),
    "lgb_wide": _again(
        _lightgbm(
            n_estimators=300,
            learning_rate=0.04,
            num_leaves=63,
            colsample_bytree=0.6,
            reg_lambda=1.0,
            max_bin=None,
        ),
        2,
    ),
    "lgb_pairs": _lightgbm(PairColumns()),
    "lgb_pairs_again": _again(
        _lightgbm(PairColumns(), n_estimators=200, learning_rate=0.05, max_bin=None)
    ),
    "lgb_pairs_slow": _lightgbm(
        PairColumns(), n_estimators=200, learning_rate=0.05, max_bin=None
    ),
    "xgb_fast": _xgboost(),
    "xgb_shallow": _xgboost(n_estimators=150, learning_rate=0.15, max_depth=3),
    "xgb_again": _again(
        _xgboost(
            n_estimators=400,
            learning_rate=0.03,
            max_depth=4,
            colsample_bytree=0.5,
            max_bin=None,
        )
    ),
    "xgb_deep": _xgboost(max_depth=10, colsample_bynode=0.5, reg_lambda=5.0),
    "cat_fast": _catboost(rsm=0.7),
    "cat_again": _again(
        _catboost(iterations=300, learning_rate=0.05, boosting_type=None, border_count=None)
    ),
    "cat_default": _catboost(
        iterations=None,
        learning_rate=None,
        depth=None,
        boosting_type=None,
        border_count=None,
    ),
    "cat_plain": _catboost(iterations=300, learning_rate=0.05, border_count=64),
    "hist_fast": _hist(),
    "forest_100": _forest(),
    "fast_extra": _forest(100, splitter="random", bootstrap=False, min_samples_leaf=2),
    "extra_50": _extra(50, min_samples_leaf=2),
    "bayes": _on_ranks(lambda seed, n: GaussianNB()),
    "splines": _on_ranks(
        lambda seed, n: SplineTransformer(n_knots=4, degree=2, sparse_output=True),
        _logistic(0.3),
    ),
    "nystroem": _on_ranks(
        lambda seed, n: Nystroem(n_components=200, random_state=seed), _logistic(10)
    ),
    "kernel": _on_ranks(lambda seed, n: Landmarks(300, random_state=seed), _logistic(10)),
    "kernel_30": _on_ranks(
        lambda seed, n: Landmarks(300, random_state=seed), _logistic(30)
    ),
    "kernel_linear": _on_ranks(
        lambda seed, n: Landmarks(300, random_state=seed), _logistic(10.0, max_iter=1000)
    ),
    "bends": lambda seed, y: make_pipeline(
        NumberEncoder(), RankSplines(), _logistic(0.3)(seed, len(y))
    ),
    "fourier": _on_ranks(
        lambda seed, n: RBFSampler(gamma="scale", n_components=300, random_state=seed),
        _logistic(10),
    ),
    "network": _on_ranks(_network(32)),
    "networks_10": _on_ranks(lambda seed, n: NetworksClassifier(10, random_state=seed)),
    "scaled_network": lambda seed, y: make_pipeline(
        scaled_table(), _network(32)(seed, len(y))
    ),
}
