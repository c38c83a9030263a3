"""Schema inference and encoding as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .schema import Schema

if TYPE_CHECKING:
    import pandas as pd

NO_TARGET = "\0"
"""No column has this name."""


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a raw table as numbers and categories, as ``damvi.fit`` does.

    Amounts and dates are parsed as people write them. Ids and constants are dropped.
    High-cardinality categories and free text become numbers; their text is not stored.
    The schema is inferred at fit; see ``docs/tables.md``.

    Parameters
    ----------
    keep, drop : collections of str, default=()
        Columns to use or to drop, regardless of their content.
    categories : {"category", "number"}, default="category"
        Output of categories: as a pandas categorical, or as codes (NaN if missing or
        unknown) for models that only take numbers.

    Attributes
    ----------
    schema_ : Schema
        The inferred schema.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> import pandas as pd
    >>> from damvi.tables import TableEncoder
    >>> X = pd.DataFrame(
    ...     {"paid": ["1.200,50 €", "15,00 €", "7,10 €"], "shop": ["web", "north", "web"]}
    ... )
    >>> encoder = TableEncoder(categories="number")
    >>> encoder.fit_transform(X)
         paid  shop
    0  1200.5   1.0
    1    15.0   0.0
    2     7.1   1.0
    >>> encoder.get_feature_names_out().tolist()
    ['paid', 'shop']
    """

    def __init__(
        self,
        keep: Collection[str] = (),
        drop: Collection[str] = (),
        categories: str = "category",
    ) -> None:
        self.keep = keep
        self.drop = drop
        self.categories = categories

    def fit(self, X: Any, y: Any = None) -> Self:
        """Infer the schema of a dataframe.

        Parameters
        ----------
        X : pandas or polars DataFrame, Arrow table, or 2-d array
        y : ignored
            Labels are not used.
        """
        if self.categories not in ("category", "number"):
            raise ValueError(f"categories={self.categories!r}; use 'category' or 'number'")
        frame = self._read(X, at_fit=True)
        for name in (*self.keep, *self.drop):
            if name not in frame.columns:
                raise ValueError(f"no column {name!r} in X")
        frame = frame.reset_index(drop=True)
        schema = Schema.infer(frame, NO_TARGET, keep=self.keep, drop=self.drop)
        if not schema.used:
            if len(frame) == 1:
                raise ValueError("X has 1 sample, in which nothing varies; pass more rows")
            reasons = "; ".join(f"{c.name!r}: {c.reason}" for c in schema.columns[:20])
            raise ValueError(f"no usable column in X. {reasons}")
        self.schema_ = schema
        return self

    def transform(self, X: Any) -> pd.DataFrame:
        """Encode a table with the fitted schema; other columns are ignored."""
        check_is_fitted(self)
        frame = self._read(X, at_fit=False)
        encoded = self.schema_.encode(frame.reset_index(drop=True))
        if self.categories == "number":
            for name in encoded.columns:
                if hasattr(encoded[name], "cat"):
                    codes = encoded[name].cat.codes.to_numpy(np.float64)
                    encoded[name] = np.where(codes < 0, np.nan, codes)
        encoded.index = frame.index
        return encoded

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the output columns."""
        check_is_fitted(self)
        return np.array(self.schema_.features, dtype=object)

    def _read(self, X: Any, *, at_fit: bool) -> pd.DataFrame:
        import pandas as pd

        if hasattr(X, "columns") and not isinstance(X, pd.DataFrame):
            X = X.to_pandas()  # polars, Arrow
        if not isinstance(X, pd.DataFrame):
            X = validate_data(self, X, dtype=None, ensure_all_finite=False, reset=at_fit)
            return pd.DataFrame(X, columns=[f"x{f}" for f in range(X.shape[1])])
        if at_fit:
            if X.shape[0] == 0:
                raise ValueError("X has 0 rows; pass some rows to infer the schema from")
            validate_data(self, X, skip_check_array=True, reset=True)
        return X.rename(columns=str)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags
