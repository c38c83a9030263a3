"""Transformers of a table's columns for voters: numbers, ranks, splines, pairs, rates."""

from __future__ import annotations

from dataclasses import dataclass
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
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..hashing import text_hashes
from ..validation import (
    Categories,
    FrameTable,
    is_categorical,
    labels_and_places,
    needs_reading,
    places_of,
)

Floats = NDArray[np.float64]

MOST_CATEGORIES = 100
"""Maximum number of categories per column in linear models; the rarest share one."""
KNOTS = (-1.0, 0.0, 1.0)
"""Knots of the splines, as normal scores."""
LEAST_VALUES = 10
"""Columns with at most this many distinct quantiles have no splines."""
MANY_CATEGORIES = 100
"""With more categories, voters of the strong pool see class rates instead."""
BINNED_ROWS = 50_000
"""Number of rows from which LightGBM finds its bins. It copies them, at 12 bytes a cell: by
its default of 200,000 rows, that is more than the table itself."""
MADE_AT_ONCE = 1024
"""Number of rows for which pairs of columns are made at a time."""
FOLDS = 5
"""Number of folds for cross-fitted rates."""


class NumberEncoder(TransformerMixin, BaseEstimator):
    """Convert dataframes (pandas, polars) to arrays, with categories as numbers.

    Categories that were not seen in ``fit`` become -1, missing values NaN. Columns without
    any value in ``fit`` become 0, since some models fail on them. Sparse tables become CSR
    matrices, which all models accept.

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
            needs_reading(X)  # raises an error for duplicate column names
        self.categories_: Categories | None = Categories.learn(X) if is_frame else None
        numbers = FrameTable(X, self.categories_)[:] if self.categories_ else X
        self.empty_: NDArray[np.bool_] = np.zeros(X.shape[1], dtype=bool)
        if not sparse.issparse(X):
            self.empty_ |= np.isnan(numbers).all(axis=0)
        return self

    def transform(self, X: Any) -> Any:
        """Convert the columns to numbers."""
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
    """The numeric columns."""
    if not hasattr(X, "columns"):
        return list(range(X.shape[1]))
    return [name for name in X.columns if not is_categorical(X[name])]


def categorical_columns(X: Any) -> list[Any]:
    """The categorical columns of a dataframe."""
    if not hasattr(X, "columns"):
        return []
    return [name for name in X.columns if is_categorical(X[name])]


class RankScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace numbers by the normal scores of their ranks, which are robust to outliers.

    Ranks are based on 100 quantiles of at most 10,000 rows. Missing values become 0, the
    median.

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
        """Compute the normal scores."""
        check_is_fitted(self)
        return self.scores(X)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Normal scores as an array, whatever output scikit-learn is configured for."""
        X = np.asarray(X, dtype=np.float64)
        scores = np.empty(X.shape)
        for j, (values, heights) in enumerate(self.knots_):
            scores[:, j] = np.interp(X[:, j], values, heights)
        return np.nan_to_num(scores, copy=False)


def _knots(column: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sorted values and their normal scores; equal quantiles share their mean score."""
    ranks = np.linspace(0.01, 0.99, 100)
    if len(column) == 0:
        return np.zeros(1), np.zeros(1)
    values, place = np.unique(
        np.quantile(column, np.linspace(0, 1, 100)), return_inverse=True
    )
    return values, ndtri(np.bincount(place, ranks) / np.bincount(place))


class RankSplines(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Normal scores of ranks, and their excess over some knots.

    A linear model of these is a sum of curves, one for each column, that bend at the knots.

    Examples
    --------
    >>> amounts = np.arange(100.0)[:, np.newaxis]
    >>> RankSplines().fit(amounts).transform(amounts[[0, 50, 99]]).round(1)
    array([[-2.3,  0. ,  0. ,  0. ],
           [ 0. ,  1. ,  0. ,  0. ],
           [ 2.3,  3.3,  2.3,  1.3]])
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the quantiles, and which columns have enough distinct ones."""
        self.ranks_: RankScaler = RankScaler().fit(X)
        self.bent_: NDArray[np.bool_] = np.array(
            [len(values) > LEAST_VALUES for values, _ in self.ranks_.knots_], dtype=bool
        )
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The scores of all columns, then their excess over each knot."""
        check_is_fitted(self)
        scores = self.ranks_.scores(X)
        bent = scores[:, self.bent_]
        # Write in place, since concatenating the parts would double the memory.
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
    """The columns, with differences, products and ratios of pairs of the useful ones.

    Trees split one column at a time, and need many splits for such pairs. The useful
    columns are those with the largest gain in 20 small LightGBM trees on the training rows.

    Parameters
    ----------
    n_columns : int, default=6
        Number of columns to pair with each other.
    random_state : int, optional
    """

    def __init__(self, n_columns: int = 6, random_state: int | None = None) -> None:
        self.n_columns = n_columns
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Select the columns."""
        from lightgbm import LGBMClassifier

        trees = LGBMClassifier(
            n_estimators=20,
            learning_rate=0.2,
            num_leaves=15,
            min_child_samples=5,
            min_child_weight=0.1,
            max_bin=63,
            subsample_for_bin=BINNED_ROWS,
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
        first = self._with_pairs(X[:MADE_AT_ONCE])
        if len(first) == len(X):
            return first
        # Block by block: differences, products and ratios of the whole table would
        # together take as much memory as the result.
        made = np.empty((len(X), first.shape[1]), first.dtype)
        for start in range(0, len(X), MADE_AT_ONCE):
            rows = slice(start, start + MADE_AT_ONCE)
            made[rows] = self._with_pairs(X[rows])
        return made

    def _with_pairs(self, X: Any) -> NDArray[np.float64]:
        first, second = X[:, self.pairs_[:, 0]], X[:, self.pairs_[:, 1]]
        with np.errstate(all="ignore"):
            made = np.hstack([first - second, first * second, first / second])
        made[~np.isfinite(made)] = np.nan
        return np.hstack([X, made])


def scaled_table(amounts: Any = None, *, centre: bool = True) -> Any:
    """Transform or scale numeric columns, and one-hot encode categorical ones.

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
    # Whatever output scikit-learn is configured for.
    return table.set_output(transform="default")


# Columns with very many categories as class rates, learned from a voter's own rows.
#
# Rates are shrunk towards the overall rate: the more so, the fewer rows a category has, and
# the less the categories differ beyond chance. With random labels nothing is left of them.
# Rates are cross-fitted: in ``fit_transform``, which pipelines call, each row gets the
# rates of the other folds.


def many_categories(X: Any) -> list[Any]:
    """Columns of a dataframe with more than 100 categories."""
    if not hasattr(X, "columns") or hasattr(X, "column_names"):  # an Arrow table
        return []
    return [
        name
        for name in X.columns
        if is_categorical(X[name]) and len(labels_and_places(X[name])[0]) > MANY_CATEGORIES
    ]


@dataclass(frozen=True, eq=False)
class Rates:
    """Class rates by category of a column.

    Attributes
    ----------
    hashes : ndarray of uint64, shape (K,)
        Sorted hashes of the categories, which are not stored themselves.
    rates : ndarray of shape (K + 2, R)
        Rates of each category, of missing values, and of all rows, for unknown categories.
        R is the number of classes minus one: the first class has the rest.
    """

    hashes: NDArray[np.uint64]
    rates: Floats

    def __call__(self, column: Any) -> Floats:
        """Rates for each row, (n, R)."""
        labels, codes = labels_and_places(column, column.name)
        places = places_of(self.hashes, labels, codes)
        return self.rates[np.append(places, len(self.hashes))[codes]]


class RateEncoder(TransformerMixin, BaseEstimator):
    """Replace columns with more than 100 categories by the class rates of the categories.

    All other columns are unchanged. There is a rate for each class but the first; unknown
    categories get the rates of all rows.

    Parameters
    ----------
    random_state : int, optional
        Seed of the five folds by which ``fit_transform`` cross-fits the rates.

    Examples
    --------
    >>> import pandas as pd
    >>> shops = [f"shop {number}" for number in range(200)]
    >>> X = pd.DataFrame({"shop": shops * 10, "size": 1.0})
    >>> y = X["shop"].str.endswith("7").astype(int)
    >>> encoder = RateEncoder(random_state=0).fit(X, y)
    >>> new = pd.DataFrame({"shop": ["shop 17", "shop 18", "another"], "size": 1.0})
    >>> encoder.transform(new).round(2)["shop (rate)"].tolist()
    [0.91, 0.01, 0.1]
    """

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the rates from all rows."""
        shares = _class_shares(y)
        self.rates_: dict[str, Rates] = {}
        for name in many_categories(X):
            labels, codes = labels_and_places(X[name])
            hashes, order = np.unique(text_hashes(labels), return_index=True)
            rates = _rates(codes, len(labels), shares)
            places = np.append(order, [len(labels), len(labels) + 1])
            self.rates_[name] = Rates(hashes, rates[places])
        return self

    def fit_transform(self, X: Any, y: Any, **params: Any) -> Any:
        """Learn the rates, and give each row those learned on the other folds."""
        self.fit(X, y)
        if not self.rates_:
            return X
        shares, made = _class_shares(y), {}
        splits = _splits(np.asarray(y), self.random_state)
        for name in self.rates_:
            labels, codes = labels_and_places(X[name])
            made[name] = np.empty((len(codes), shares.shape[1]))
            for train, test in splits:
                rates = _rates(codes[train], len(labels), shares[train])
                made[name][test] = rates[:-1][codes[test]]  # -1 is the last: missing
        return _replaced(X, made)

    def transform(self, X: Any) -> Any:
        """Replace the columns by rates."""
        check_is_fitted(self)
        if not self.rates_:
            return X
        return _replaced(X, {name: known(X[name]) for name, known in self.rates_.items()})

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags


def _class_shares(y: Any) -> Floats:
    """Indicators of each class but the first, whose rate follows from the others."""
    classes, places = np.unique(np.asarray(y), return_inverse=True)
    return np.asarray(np.eye(len(classes))[places][:, 1:])


def _rates(codes: NDArray[Any], n_labels: int, shares: Floats) -> Floats:
    """Rates of each label, of missing values (code -1) and of all rows: (n_labels + 2, R).

    The true rates of the labels are assumed to vary around the overall rate with variance
    t, estimated by how much the observed rates vary beyond chance (DerSimonian and Laird).
    The rate of a label with n rows then has weight n t / (n t + p (1 - p)).
    """
    places = np.where(codes < 0, n_labels, codes)
    counts = np.bincount(places, minlength=n_labels + 2).astype(np.float64)
    total, n_known = counts.sum(), np.count_nonzero(counts)
    rates = np.empty((n_labels + 2, shares.shape[1]))
    for c, own in enumerate(shares.T):
        sums = np.bincount(places, own, minlength=n_labels + 2)
        overall = own.mean()
        variance = overall * (1 - overall)
        means = np.divide(sums, counts, out=np.full(len(sums), overall), where=counts > 0)
        spread = counts @ (means - overall) ** 2 - (n_known - 1) * variance
        between = max(spread, 0.0) / max(total - (counts @ counts) / total, 1.0)
        trust = np.zeros(len(counts))
        if between > 0:
            trust = counts * between / (counts * between + variance)
        rates[:, c] = overall + trust * (means - overall)
    return rates


def _splits(y: NDArray[Any], seed: int | None) -> list[tuple[Any, Any]]:
    """Stratified folds, as far as possible."""
    least = np.unique(y, return_counts=True)[1].min()
    if least < 2:
        n_folds = min(FOLDS, len(y))
        return list(KFold(n_folds, shuffle=True, random_state=seed).split(y))
    n_folds = min(FOLDS, int(least))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    return list(folds.split(np.zeros((len(y), 1)), y))


def _replaced(X: Any, made: dict[Any, Floats]) -> Any:
    """Remove these columns from a dataframe, and append their rates."""
    names = rate_names(list(map(str, X.columns)), {n: r.shape[1] for n, r in made.items()})
    columns = {
        name: rates[:, c]
        for old, rates in made.items()
        for c, name in enumerate(names[old])
    }
    if hasattr(X, "with_columns"):
        import polars as pl

        parts = [pl.Series(name, column) for name, column in columns.items()]
        return X.drop(list(made)).with_columns(parts)
    others = X.drop(columns=list(made))
    others.columns = others.columns.map(str)  # scikit-learn needs names of one type
    return others.assign(**columns)


def rate_names(columns: list[str], widths: dict[Any, int]) -> dict[Any, list[str]]:
    """Names of the rate columns, different from all other columns."""
    taken: set[str] = set(columns)
    names: dict[Any, list[str]] = {}
    for name, width in widths.items():
        names[name] = []
        for c in range(width):
            what = f"{name} (rate)" if width == 1 else f"{name} (rate {c + 1})"
            while what in taken:
                what += "'"
            taken.add(what)
            names[name].append(what)
    return names
