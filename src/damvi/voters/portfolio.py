"""A strong, diverse pool of models from what is installed, for any table."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import ndtri
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.pipeline import make_pipeline
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .rates import RateEncoder
from .trees.features import Categories, FrameTable, is_categorical, needs_reading

BOOSTERS = {"lightgbm": "lightgbm", "xgboost": "xgboost", "catboost": "catboost"}
"""Voters that join if their package is there."""
FEW = 5
"""Rows that a leaf of boosted trees needs; the usual 20 are many of a rare class."""
LEARNING_RATE = 0.05
"""Of boosted trees."""
RARE = 0.01
"""Below this share of the rarest class, LightGBM starts from even odds.

From a start at the class rate p, a tree's Newton step moves a leaf of positives by up to
1 / p in log-odds, times the learning rate: at 1 % by 5, past even odds in one tree, since
the start is log(1 / p) = 4.6 away. What few rows got wrong there is not made good again,
for their second derivative p (1 - p) is gone by then. The leaves of XGBoost and of
scikit-learn's boosting are bounded by an L2 penalty of 1, and CatBoost starts from even
odds always: none of them breaks down.
"""
LEAST_HESSIAN = 0.1
"""Sum of second derivatives, p (1 - p), that a leaf needs: a leaf's step is its sum of
first derivatives divided by it. LightGBM's default, 0.001, allows any step."""
MOST_CATEGORIES = 100
"""Of a column, that linear models tell apart; the rarest share a place."""


def strong_pool(
    random_state: int | None = None,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    sparse: bool = False,
    rates: bool = False,
) -> list[tuple[str, Any]]:
    """Models that are good alone and err in different ways, as (name, classifier).

    Forests of fast trees (plain, with splits on random features, and balanced), extra
    trees, boosted trees (scikit-learn's; LightGBM, XGBoost and CatBoost if they are
    installed), and linear models (plain, with balanced classes, and on ranks). All take
    missing values, and dataframes with categories.

    Parameters
    ----------
    random_state : int, optional
        A seed for each model.
    y : array of shape (n,), optional
        The labels to learn. Where a class is rarer than 1 %, LightGBM starts from even
        odds instead of the class rates, from which it would break down. Without it, no
        class is taken to be that rare.
    sample_weight : array of shape (n,), optional
        If rows count differently, so do classes.
    sparse : bool, default=False
        For sparse tables: leave out what needs dense ones (``"hist_boosting"`` and
        ``"rank_linear"``), and scale without centring.
    rates : bool, default=False
        For dataframes with columns of more than 100 categories: each model is a pipeline
        that learns, from its own training rows, the rates of the classes in them; see
        :class:`~damvi.voters.RateEncoder`.

    Returns
    -------
    list of (str, classifier)
        Each on one thread, so that several can be trained side by side.

    Notes
    -----
    The time of all of them grows with rows times columns (and a logarithm). Models that
    compare rows with rows, such as nearest neighbours and support vector machines, are
    left out for that; add your own to the list.

    Examples
    --------
    >>> from damvi.voters import strong_pool
    >>> pool = strong_pool(random_state=0)
    >>> dict(pool)["balanced_forest"]
    FastForestClassifier(balanced=True, n_estimators=200, n_jobs=1, random_state=0)
    >>> from sklearn.naive_bayes import GaussianNB
    >>> pool = [*pool, ("bayes", GaussianNB())]
    """
    is_rare = y is not None and _share_of_rarest(y, sample_weight) < RARE
    # The slow ones come first, so that none is left alone at the end.
    makers: dict[str, Callable[[int | None], Any]] = {
        "catboost": _catboost,
        "hist_boosting": _hist_boosting,
        "extra_trees": _extra_trees,
        "xgboost": _xgboost,
        "lightgbm": _lightgbm(is_rare),
        "forest": _forest(),
        "random_forest": _forest(max_features=1),
        "balanced_forest": _forest(balanced=True),
        "rank_linear": _linear(ranks=True),
        "linear": _linear(centre=not sparse),
        "balanced_linear": _linear(centre=not sparse, class_weight="balanced"),
    }
    left_out = {name for name, needs in BOOSTERS.items() if find_spec(needs) is None}
    if sparse:
        left_out |= {"hist_boosting", "rank_linear"}
    pool = [
        (name, make(random_state)) for name, make in makers.items() if name not in left_out
    ]
    return [(name, _with_rates(model)) for name, model in pool] if rates else pool


def _with_rates(model: Any) -> Any:
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    return make_pipeline(RateEncoder(), *steps)


def _share_of_rarest(y: ArrayLike, sample_weight: ArrayLike | None) -> float:
    _, numbers = np.unique(y, return_inverse=True)
    weight = np.bincount(numbers.ravel(), sample_weight)
    return float(weight[weight > 0].min() / weight.sum())


def _forest(**options: Any) -> Callable[[int | None], Any]:
    def make(seed: int | None) -> Any:
        from .trees.estimators import FastForestClassifier

        return FastForestClassifier(200, n_jobs=1, random_state=seed, **options)

    return make


def _on_numbers(model: Any) -> Any:
    return make_pipeline(NumberEncoder(), model)


def _extra_trees(seed: int | None) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    model = ExtraTreesClassifier(100, min_samples_leaf=2, n_jobs=1, random_state=seed)
    return _on_numbers(model)


def _hist_boosting(seed: int | None) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Without early stopping, whose held-out rows would cost too many rare positives.
    return _on_numbers(
        HistGradientBoostingClassifier(
            learning_rate=LEARNING_RATE,
            max_iter=200,
            max_leaf_nodes=15,
            min_samples_leaf=FEW,
            l2_regularization=1.0,
            early_stopping=False,
            random_state=seed,
        )
    )


def _lightgbm(is_rare: bool) -> Callable[[int | None], Any]:
    start: dict[str, Any] = {"boost_from_average": False} if is_rare else {}

    def make(seed: int | None) -> Any:
        from lightgbm import LGBMClassifier

        return _on_numbers(
            LGBMClassifier(
                n_estimators=200,
                learning_rate=LEARNING_RATE,
                num_leaves=31,
                min_child_samples=FEW,
                min_child_weight=LEAST_HESSIAN,
                subsample=0.8,
                subsample_freq=1,
                colsample_bytree=0.8,
                n_jobs=1,
                random_state=seed,
                verbose=-1,
                **start,
            )
        )

    return make


def _xgboost(seed: int | None) -> Any:
    from xgboost import XGBClassifier

    return _on_numbers(
        XGBClassifier(
            n_estimators=200,
            learning_rate=LEARNING_RATE,
            max_depth=6,
            min_child_weight=LEAST_HESSIAN,
            subsample=0.8,
            colsample_bytree=0.8,
            n_jobs=1,
            random_state=seed,
        )
    )


def _catboost(seed: int | None) -> Any:
    from catboost import CatBoostClassifier

    return _on_numbers(
        CatBoostClassifier(
            iterations=300,
            learning_rate=LEARNING_RATE,
            depth=6,
            thread_count=1,
            random_state=0 if seed is None else seed,  # None would hide it from set_params
            verbose=False,
            allow_writing_files=False,
        )
    )


def _linear(
    *, centre: bool = True, ranks: bool = False, **options: Any
) -> Callable[[int | None], Any]:
    def make(seed: int | None) -> Any:
        from sklearn.linear_model import LogisticRegression

        table = scaled_table(centre=centre, ranks=ranks)
        model = LogisticRegression(max_iter=1000, random_state=seed, **options)
        return make_pipeline(table, model)

    return make


class NumberEncoder(TransformerMixin, BaseEstimator):
    """Dataframes (pandas, polars) as arrays, a category as its number.

    Categories that were not there at fit become -1, missing values NaN. A column without
    any value at fit becomes 0, since some models stumble over it. Of sparse tables it
    makes the one kind that all models know.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"size": [3.0, None], "colour": pd.Categorical(["red", "blue"])})
    >>> NumberEncoder().fit_transform(X)
    array([[ 3.,  1.],
           [nan,  0.]])
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the categories."""
        is_frame = hasattr(X, "columns")
        if is_frame:
            needs_reading(X)  # refuses columns of the same name
        self.categories_ = Categories.learn(X) if is_frame else None
        numbers = FrameTable(X, self.categories_)[:] if self.categories_ else X
        self.empty_ = np.zeros(X.shape[1], dtype=bool)
        if not sparse.issparse(X):
            self.empty_ |= np.isnan(numbers).all(axis=0)
        return self

    def transform(self, X: Any) -> Any:
        """The numbers."""
        check_is_fitted(self)
        if sparse.issparse(X):
            return sparse.csr_matrix(X)
        numbers = FrameTable(X, self.categories_)[:] if self.categories_ else X
        if self.empty_.any():
            numbers = np.where(self.empty_, 0.0, numbers)
        return numbers

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags


def numeric_columns(X: Any) -> list[Any]:
    """The columns that hold amounts."""
    if not hasattr(X, "columns"):
        return list(range(X.shape[1]))
    return [name for name in X.columns if not is_categorical(X[name])]


def categorical_columns(X: Any) -> list[Any]:
    """The columns of a dataframe that hold categories."""
    if not hasattr(X, "columns"):
        return []
    return [name for name in X.columns if is_categorical(X[name])]


class RankScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Amounts as normal scores of their ranks, which no outlier can stretch.

    Ranks come from 100 quantiles, of at most 10,000 rows. Missing values become 0, the
    middle.

    Examples
    --------
    >>> RankScaler().fit_transform(np.array([[1.0], [1e9], [np.nan]])).round(1)
    array([[-2.3],
           [ 2.3],
           [ 0. ]])
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the quantiles."""
        X = np.asarray(X, dtype=np.float64)
        some = X[:: -(-len(X) // 10_000)]
        self.knots_ = [_knots(column[~np.isnan(column)]) for column in some.T]
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The scores."""
        check_is_fitted(self)
        X = np.asarray(X, dtype=np.float64)
        scores = np.empty(X.shape)
        for j, (values, heights) in enumerate(self.knots_):
            scores[:, j] = np.interp(X[:, j], values, heights)
        return np.nan_to_num(scores, copy=False)


def _knots(column: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values in order, and their normal scores; equal quantiles share a mean score."""
    ranks = np.linspace(0.01, 0.99, 100)
    if len(column) == 0:
        return np.zeros(1), np.zeros(1)
    values, place = np.unique(
        np.quantile(column, np.linspace(0, 1, 100)), return_inverse=True
    )
    return values, ndtri(np.bincount(place, ranks) / np.bincount(place))


def scaled_table(*, centre: bool = True, ranks: bool = False) -> Any:
    """Amounts filled in and scaled, and an indicator for each category.

    Examples
    --------
    >>> scaled_table().fit_transform(np.array([[1.0], [np.nan], [3.0]])).round(2)
    array([[-1.22],
           [ 0.  ],
           [ 1.22]])
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    fill = SimpleImputer(strategy="median", keep_empty_features=True)
    scale = StandardScaler(with_mean=centre)
    amounts = RankScaler() if ranks else make_pipeline(fill, scale)
    names = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        max_categories=MOST_CATEGORIES,
        dtype=np.float64,
    )
    table = ColumnTransformer(
        [("amounts", amounts, numeric_columns), ("names", names, categorical_columns)]
    )
    # Whatever scikit-learn is told to hand out elsewhere.
    return table.set_output(transform="default")
