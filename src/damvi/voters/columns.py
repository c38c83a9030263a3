"""A table's columns as voters take them: numbers, ranks, splines, pairs."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
)
from sklearn.pipeline import make_pipeline
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .trees.features import Categories, FrameTable, is_categorical, needs_reading

MOST_CATEGORIES = 100
"""Of a column, that linear models tell apart; the rarest share a place."""
KNOTS = (-1.0, 0.0, 1.0)
"""Normal scores at which a spline may bend."""
LEAST_VALUES = 10
"""A column with no more has no splines."""


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
        self.categories_: Categories | None = Categories.learn(X) if is_frame else None
        numbers = FrameTable(X, self.categories_)[:] if self.categories_ else X
        self.empty_: NDArray[np.bool_] = np.zeros(X.shape[1], dtype=bool)
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
        return self.scores(X)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """The same, as an array whatever scikit-learn is told to hand out."""
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


class RankSplines(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Normal scores of ranks, and how far they are above some knots.

    A linear model of these is a sum of curves, one for each column, which bend at the
    knots.

    Examples
    --------
    >>> amounts = np.arange(100.0)[:, np.newaxis]
    >>> RankSplines().fit(amounts).transform(amounts[[0, 50, 99]]).round(1)
    array([[-2.3,  0. ,  0. ,  0. ],
           [ 0. ,  1. ,  0. ,  0. ],
           [ 2.3,  3.3,  2.3,  1.3]])
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the quantiles, and which columns have enough of them."""
        self.ranks_: RankScaler = RankScaler().fit(X)
        self.bent_: NDArray[np.bool_] = np.array(
            [len(values) > LEAST_VALUES for values, _ in self.ranks_.knots_], dtype=bool
        )
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The scores of all columns, then knot by knot what is above it."""
        check_is_fitted(self)
        scores = self.ranks_.scores(X)
        bent = scores[:, self.bent_]
        # In its place, since the parts together would take as much memory again.
        made = np.empty((len(scores), self._n_features_out))
        made[:, : scores.shape[1]] = scores
        for number, knot in enumerate(KNOTS):
            start = scores.shape[1] + number * bent.shape[1]
            place = made[:, start : start + bent.shape[1]]
            np.maximum(np.subtract(bent, knot, out=place), 0.0, out=place)
        return made

    @property
    def _n_features_out(self) -> int:
        return len(self.bent_) + len(KNOTS) * int(self.bent_.sum())


class PairColumns(TransformerMixin, BaseEstimator):
    """The columns, and the differences, products and ratios of pairs of the useful ones.

    Trees cut one column at a time, and find such pairs only by many cuts. Useful is what
    20 small trees of LightGBM gain most by, on the training rows alone.

    Parameters
    ----------
    n_columns : int, default=6
        So many are paired, each with each.
    random_state : int, optional
    """

    def __init__(self, n_columns: int = 6, random_state: int | None = None) -> None:
        self.n_columns = n_columns
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Choose the columns."""
        from lightgbm import LGBMClassifier

        trees = LGBMClassifier(
            n_estimators=20,
            learning_rate=0.2,
            num_leaves=15,
            min_child_samples=5,
            min_child_weight=0.1,
            max_bin=63,
            colsample_bytree=0.5,
            importance_type="gain",
            n_jobs=1,
            random_state=self.random_state,
            verbose=-1,
        )
        gain = trees.fit(X, y).feature_importances_
        order = np.argsort(-gain, kind="stable")[: self.n_columns]
        self.n_features_in_: int = X.shape[1]
        self.pairs_: NDArray[np.int64] = np.array(
            list(combinations(np.sort(order[gain[order] > 0]).tolist(), 2)), dtype=np.int64
        ).reshape(-1, 2)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The columns, then all differences, all products and all ratios."""
        check_is_fitted(self)
        first, second = X[:, self.pairs_[:, 0]], X[:, self.pairs_[:, 1]]
        with np.errstate(all="ignore"):
            made = np.hstack([first - second, first * second, first / second])
        made[~np.isfinite(made)] = np.nan
        return np.hstack([X, made])


def scaled_table(amounts: Any = None, *, centre: bool = True) -> Any:
    """Amounts by a transformer, or filled in and scaled; an indicator for each category.

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

    if amounts is None:
        fill = SimpleImputer(strategy="median", keep_empty_features=True)
        amounts = make_pipeline(fill, StandardScaler(with_mean=centre))
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
