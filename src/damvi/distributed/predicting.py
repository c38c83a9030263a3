"""Answers of a fitted classifier on Dask collections, partition by partition, lazily."""

from __future__ import annotations

from copy import copy
from typing import Any
from uuid import uuid4

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed
from sklearn.utils.validation import check_is_fitted

from ..classifier import DAMVIClassifier
from .tables import in_rows


def predict(model: DAMVIClassifier, X: Any) -> Any:
    """The class of each row; see :meth:`damvi.DAMVIClassifier.predict`.

    Parameters
    ----------
    model : DAMVIClassifier
        Fitted, on a cluster or not.
    X : dask.dataframe.DataFrame or dask.array.Array

    Returns
    -------
    Series or Array
        Lazy, cut as ``X`` is, and with its index.
    """
    return _ask(model, "predict", X)


def predict_proba(model: DAMVIClassifier, X: Any) -> Any:
    """The chance of each class; see :meth:`damvi.DAMVIClassifier.predict_proba`.

    Parameters
    ----------
    model : DAMVIClassifier
    X : dask.dataframe.DataFrame or dask.array.Array

    Returns
    -------
    DataFrame or Array
        A column for each of ``model.classes_``, which are its names.
    """
    return _ask(model, "predict_proba", X)


def decision_function(model: DAMVIClassifier, X: Any) -> Any:
    """Vote less threshold; see :meth:`damvi.DAMVIClassifier.decision_function`.

    Parameters
    ----------
    model : DAMVIClassifier
    X : dask.dataframe.DataFrame or dask.array.Array

    Returns
    -------
    Series, DataFrame or Array
        With three or more classes, a column for each.
    """
    return _ask(model, "decision_function", X)


def vote(model: DAMVIClassifier, X: Any) -> Any:
    """The weighted vote on each row; see :meth:`damvi.DAMVIClassifier.vote`.

    Parameters
    ----------
    model : DAMVIClassifier
    X : dask.dataframe.DataFrame or dask.array.Array

    Returns
    -------
    Series, DataFrame or Array
        With three or more classes, a column for each.
    """
    return _ask(model, "vote", X)


def _ask(model: DAMVIClassifier, method: str, X: Any) -> Any:
    check_is_fitted(model, "weights_")
    wide = method == "predict_proba" or (method != "predict" and len(model.classes_) > 2)
    dtype = model.classes_.dtype if method == "predict" else np.dtype(np.float64)
    alone = copy(model).set_params(n_jobs=1)  # without the votes of the training rows
    # One task makes the model known to all others, which each would have it inside else.
    there = delayed(alone, name=f"damvi-model-{uuid4().hex}", traverse=False)
    if isinstance(X, dd.DataFrame):
        meta = _framed(_nothing(model, wide, dtype), model, X._meta)
        return X.map_partitions(_answer_frame, there, method, meta, meta=meta)
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X is a {type(X).__name__}, and must be a Dask DataFrame or Array; for a "
            f"table in memory use model.{method}(X)"
        )
    X = in_rows(X)
    nothing = _nothing(model, wide, dtype)
    shape: dict[str, Any] = {"drop_axis": 1}
    if wide:
        shape = {"chunks": (X.chunks[0], (len(model.classes_),))}
    return X.map_blocks(
        _answer_array, there, method, nothing, dtype=dtype, meta=nothing, **shape
    )


def _nothing(model: DAMVIClassifier, wide: bool, dtype: Any) -> Any:
    """The answer on no rows."""
    return np.empty((0, len(model.classes_)) if wide else 0, dtype)


def _framed(answer: Any, model: DAMVIClassifier, X: Any) -> Any:
    """An answer with the index of the rows, and the classes as names of columns."""
    if answer.ndim == 2:
        return pd.DataFrame(answer, index=X.index, columns=model.classes_)
    labels = pd.Series(model.classes_).dtype if answer.dtype.kind in "OU" else answer.dtype
    return pd.Series(answer, index=X.index, dtype=labels)


def _answer_frame(X: Any, model: DAMVIClassifier, method: str, nothing: Any) -> Any:
    if not len(X):
        return nothing
    return _framed(getattr(model, method)(X), model, X)


def _answer_array(X: Any, model: DAMVIClassifier, method: str, nothing: Any) -> Any:
    return getattr(model, method)(X) if len(X) else nothing
