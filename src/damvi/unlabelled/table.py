"""A table without labels: how it comes in, and how it joins the labelled one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from ..reading import read_table
from ..voters.trees.features import needs_reading


class Unlabeled:
    """A table that a grid search or a cross-validation leaves alone.

    scikit-learn cuts whatever has as many rows as X along with X. What is wrapped has no
    length and no shape, so it arrives whole in every fold.

    Parameters
    ----------
    X : array, sparse matrix or dataframe

    Examples
    --------
    >>> import numpy as np
    >>> import sklearn
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import GridSearchCV
    >>> from damvi import DAMVIClassifier, Unlabeled
    >>> X, y = make_classification(400, weights=[0.8], random_state=0)
    >>> model = DAMVIClassifier(
    ...     n_estimators=10, unlabeled="disagreement", random_state=0
    ... )
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     model = model.set_fit_request(X_unlabeled=True)
    ...     search = GridSearchCV(model, {"eta": [0.0, 0.5]}, cv=2)
    ...     search = search.fit(X[:200], y[:200], X_unlabeled=Unlabeled(X[200:]))
    >>> search.best_estimator_.predict(X[:3])
    array([0, 0, 0])
    """

    __slots__ = ("X",)

    def __init__(self, X: Any) -> None:
        self.X = X

    def __repr__(self) -> str:
        shape = getattr(self.X, "shape", None)
        size = "" if shape is None else f" of {shape[0]} rows"
        return f"<Unlabeled {type(self.X).__name__}{size}>"


def read_unlabelled(model: Any, given: Any, X: Any, *, keep_frame: bool) -> Any:
    """The unlabelled table, checked against the labelled one that ``model`` has read."""
    wrapped = isinstance(given, Unlabeled)
    table = given.X if wrapped else given
    if not hasattr(table, "shape"):
        table = np.asarray(table)
    if not table.shape:
        raise ValueError(
            f"X_unlabeled is a {type(given.X if wrapped else given).__name__}, and not a "
            f"table; read it first, and give its rows"
        )
    n = table.shape[0]
    if n == 0:
        raise ValueError(
            "X_unlabeled has 0 rows; leave it out if there are no unlabelled rows"
        )
    if not wrapped and n == X.shape[0]:
        raise ValueError(
            f"X_unlabeled has {n} rows, as many as X, and so cannot be told from a table "
            f"that a grid search or a cross-validation has cut along with X; say that it "
            f"is whole: X_unlabeled=damvi.Unlabeled(table)"
        )
    if keep_frame and hasattr(X, "columns") != hasattr(table, "columns"):
        raise ValueError(
            f"X is a {type(X).__name__} and X_unlabeled a {type(table).__name__}; give "
            f"both in the same form"
        )
    try:
        return read_table(model, table, keep_frame=keep_frame)
    except ValueError as error:
        raise ValueError(f"X_unlabeled does not go with X: {error}") from error


def stack_rows(X: Any, more: Any) -> Any:
    """Both tables in one, the columns as those of ``X``.

    Examples
    --------
    >>> stack_rows(np.zeros((1, 2)), np.ones((2, 2)))
    array([[0., 0.],
           [1., 1.],
           [1., 1.]])
    """
    if sparse.issparse(X) or sparse.issparse(more):
        return sparse.vstack([X, more]).tocsr()
    if not hasattr(X, "columns"):
        return np.concatenate([X, more])
    library = type(X).__module__.split(".")[0]
    for name in X.columns if library in ("pandas", "polars") else ():
        if needs_reading(more[[name]]) and not needs_reading(X[[name]]):
            raise ValueError(
                f"X_unlabeled does not go with X: column {name!r} holds no numbers, and in "
                f"X it does"
            )
    if library == "pandas":
        both = import_module(library).concat([X, more], ignore_index=True)
        # Of different categories, pandas makes plain objects.
        lost = both.dtypes[(X.dtypes == "category") & (both.dtypes != "category")]
        return both.astype(dict.fromkeys(lost.index, "category"))
    if library == "polars":
        return import_module(library).concat([X, more], how="vertical_relaxed")
    raise TypeError(
        f"voters cannot be trained on labelled and unlabelled rows of {library}; give "
        f"arrays, or dataframes of pandas or polars"
    )
