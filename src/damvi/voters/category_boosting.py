"""CatBoost as a voter, with its own handling of categories."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .columns import NumberEncoder

N_HASHES = 2**53
"""Categories are known by their hashes below this, all of which are exact as doubles."""
MISSING = -1
"""The category of missing values."""


class CategoryBoostingClassifier(ClassifierMixin, BaseEstimator):
    """CatBoost, with the categories of dataframes (pandas, polars) as its own.

    CatBoost replaces categories, and combinations of them, by smoothed class rates, which
    it learns in a random order of the rows: each row only sees the rates of those before.
    There may be any number of categories. New ones have the rates of no rows, and missing
    values are a category. Arrays, sparse tables and dataframes without categories are
    tables of numbers. One thread is used.

    Parameters
    ----------
    iterations : int, default=300
        Number of trees.
    learning_rate : float, default=0.05
    depth : int, default=6
    random_state : int, optional

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    encoder_ : NumberEncoder
        Encodes the columns as numbers, and categories as hashes.
    estimator_ : catboost.CatBoostClassifier

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"shop": ["north", "south", "east"] * 100})
    >>> y = X["shop"] == "south"
    >>> model = CategoryBoostingClassifier(20).fit(X, y)
    >>> model.predict(pd.DataFrame({"shop": ["north", "south", "new", None]}))
    array([False,  True, False, False])
    """

    def __init__(
        self,
        iterations: int = 300,
        learning_rate: float = 0.05,
        depth: int = 6,
        random_state: int | None = None,
    ) -> None:
        self.iterations = iterations
        self.learning_rate = learning_rate
        self.depth = depth
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the trees."""
        from catboost import CatBoostClassifier

        self.encoder_: NumberEncoder = NumberEncoder().fit(X)
        if self.encoder_.categories_ is not None:
            self.encoder_.categories_ = self.encoder_.categories_.hashed(N_HASHES)
        model = CatBoostClassifier(
            iterations=self.iterations,
            learning_rate=self.learning_rate,
            depth=self.depth,
            thread_count=1,
            random_state=0 if self.random_state is None else self.random_state,
            verbose=False,
            allow_writing_files=False,
        )
        model.fit(
            self._table(self.encoder_.transform(X)),
            y,
            cat_features=self.categorical or None,
            sample_weight=sample_weight,
        )
        self.estimator_: Any = model
        self.classes_: NDArray[Any] = model.classes_
        return self

    @property
    def categorical(self) -> list[int]:
        """Positions of the columns with categories."""
        known = self.encoder_.categories_
        return [] if known is None else np.flatnonzero(known.mask).tolist()

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, (n, C)."""
        check_is_fitted(self)
        return self.shares(self.encoder_.transform(X))

    def shares(self, numbers: Any) -> NDArray[np.float64]:
        """The same for rows that are encoded already."""
        shares: NDArray[np.float64] = self.estimator_.predict_proba(self._table(numbers))
        return shares

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest probability."""
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]

    def _table(self, numbers: Any) -> Any:
        """Encoded rows as CatBoost takes them: categories must be whole numbers."""
        if not self.categorical:
            return numbers
        import pandas as pd  # which CatBoost needs, too

        table = pd.DataFrame(numbers)
        for f in self.categorical:
            table[f] = np.nan_to_num(numbers[:, f], nan=MISSING).astype(np.int64)
        return table

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags
