"""Tables with categories and holes, for models that want plain numbers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .trees.features import Categories, FrameTable, is_categorical, needs_reading

MOST_CATEGORIES = 100
"""Of a column, that linear models tell apart; the rarest share a place."""


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


def scaled_table(*, centre: bool = True, ranks: bool = False) -> ColumnTransformer:
    """Amounts filled in and scaled, and an indicator for each category.

    Examples
    --------
    >>> scaled_table().fit_transform(np.array([[1.0], [np.nan], [3.0]])).round(2)
    array([[-1.22],
           [ 0.  ],
           [ 1.22]])
    """
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
