"""Columns of very many categories as rates of the classes, learned from a voter's own rows.

A rate is shrunk towards that of all rows: the fewer rows a category has, and the less the
categories differ beyond chance, the more. Where labels are coin flips nothing is left of
it. The rows that a rate is learned from do not see it: ``fit_transform``, which pipelines
call, gives each row the rates of the other folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..hashing import text_hashes
from .trees.features import (
    MANY_CATEGORIES,
    is_categorical,
    labels_and_codes,
    places_of,
)

FOLDS = 5
Floats = NDArray[np.float64]


def many_categories(X: Any) -> list[Any]:
    """The columns of a dataframe that have more categories than can be told apart."""
    if not hasattr(X, "columns") or hasattr(X, "column_names"):  # an Arrow table
        return []
    return [
        name
        for name in X.columns
        if is_categorical(X[name]) and len(labels_and_codes(X[name])[0]) > MANY_CATEGORIES
    ]


@dataclass(frozen=True, eq=False)
class Rates:
    """The rates of classes in the categories of a column.

    Attributes
    ----------
    hashes : ndarray of uint64, shape (K,)
        Of the categories, in order; the categories themselves are not kept.
    rates : ndarray of shape (K + 2, R)
        Of each category; of missing values; and of all rows, for categories that were not
        there. R is the number of classes but one: the first has what is left.
    """

    hashes: NDArray[np.uint64]
    rates: Floats

    def __call__(self, column: Any) -> Floats:
        """The rates of each row, (n, R)."""
        labels, codes = labels_and_codes(column, column.name)
        places = places_of(self.hashes, labels, codes)
        return self.rates[np.append(places, len(self.hashes))[codes]]


class RateEncoder(TransformerMixin, BaseEstimator):
    """Each column of more than 100 categories as the rates of the classes in them.

    All others stay as they are. There is a rate for each class but the first; a category
    that was not there at fit has those of all rows.

    Parameters
    ----------
    random_state : int, optional
        Of the five folds in which ``fit_transform`` learns the rates of the others.

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
        """Learn the rates of all rows."""
        shares = _class_shares(y)
        self.rates_: dict[str, Rates] = {}
        for name in many_categories(X):
            labels, codes = labels_and_codes(X[name])
            hashes, order = np.unique(text_hashes(labels), return_index=True)
            rates = _rates(codes, len(labels), shares)
            places = np.append(order, [len(labels), len(labels) + 1])
            self.rates_[name] = Rates(hashes, rates[places])
        return self

    def fit_transform(self, X: Any, y: Any, **params: Any) -> Any:
        """Learn the rates, and give each row those that the other folds have."""
        self.fit(X, y)
        if not self.rates_:
            return X
        shares, made = _class_shares(y), {}
        splits = _splits(np.asarray(y), self.random_state)
        for name in self.rates_:
            labels, codes = labels_and_codes(X[name])
            made[name] = np.empty((len(codes), shares.shape[1]))
            for train, test in splits:
                rates = _rates(codes[train], len(labels), shares[train])
                made[name][test] = rates[:-1][codes[test]]  # -1 is the last: missing
        return _replaced(X, made)

    def transform(self, X: Any) -> Any:
        """The table with rates in the place of these columns."""
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
    """A column of 0 and 1 for each class but the first, whose rate the others tell."""
    classes, places = np.unique(np.asarray(y), return_inverse=True)
    return np.asarray(np.eye(len(classes))[places][:, 1:])


def _rates(codes: NDArray[Any], n_labels: int, shares: Floats) -> Floats:
    """Of each label, of missing values (code -1), and of all rows: (n_labels + 2, R).

    The labels' true rates are taken to vary around that of all rows by a variance t, which
    is what the observed ones vary beyond chance (the moments of DerSimonian and Laird). A
    label of n rows is then trusted by n t / (n t + p (1 - p)).
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
    """Folds that know as much of each class as they can."""
    least = np.unique(y, return_counts=True)[1].min()
    if least < 2:
        n_folds = min(FOLDS, len(y))
        return list(KFold(n_folds, shuffle=True, random_state=seed).split(y))
    n_folds = min(FOLDS, int(least))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    return list(folds.split(np.zeros((len(y), 1)), y))


def _replaced(X: Any, made: dict[Any, Floats]) -> Any:
    """The dataframe without these columns, and with their rates at its end."""
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
    others.columns = others.columns.map(str)  # names of one kind, as scikit-learn asks for
    return others.assign(**columns)


def rate_names(columns: list[str], widths: dict[Any, int]) -> dict[Any, list[str]]:
    """What the rates of some columns are called; none has the name of another column."""
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
