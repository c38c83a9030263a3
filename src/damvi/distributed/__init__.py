"""Fit on a Dask cluster, on the workers that hold the rows.

The result is bit-identical to a fit in memory with ``bootstrap="poisson"``, regardless of
the partitions and the number of workers.
"""

from __future__ import annotations

try:
    import dask.array
    import dask.dataframe  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"damvi.distributed requires Dask ({error}): pip install 'damvi[dask]'"
    ) from error

from copy import copy
from os import PathLike
from typing import Any, TypeVar
from uuid import uuid4

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed
from distributed import Client, default_client
from sklearn.utils.validation import check_is_fitted

from ..classifier import DAMVIClassifier
from ..labels import vote_shape
from ..outofcore import BlockFit, PoolFit, Trained, TrainedPool
from ..outofcore.parquet import SAMPLE_ROWS
from ..voting import DAMVIVotingClassifier
from .cluster import Cluster
from .pool import train_pool_on_cluster
from .training import in_rows, read_partitions, train_on_cluster

__all__ = ["DaskTable", "decision_function", "fit", "predict", "predict_proba", "vote"]

Estimator = DAMVIClassifier | DAMVIVotingClassifier
Fitted = TypeVar("Fitted", DAMVIClassifier, DAMVIVotingClassifier)


class DaskTable:
    """A table on a Dask cluster, as an input of ``DAMVIClassifier.fit``.

    Parameters
    ----------
    X : dask.dataframe.DataFrame or dask.array.Array
    client : distributed.Client, optional
        Default: the current one.
    cache, sample_rows
        See :func:`fit`.
    """

    client: Client
    cache: str | PathLike[str] | None

    def __init__(
        self,
        X: Any,
        client: Client | None = None,
        *,
        cache: str | PathLike[str] | None = None,
        sample_rows: int = SAMPLE_ROWS,
    ) -> None:
        if client is None:
            try:
                client = default_client()
            except ValueError as error:
                raise ValueError(
                    "no Dask client; create one with client = "
                    "distributed.Client(address), or Client() for this machine"
                ) from error
        self.X, self.client, self.cache = X, client, cache
        self.sample_rows = sample_rows
        self._cluster = Cluster(client)

    def train(self, fit: BlockFit, y: Any, sample_weight: Any) -> Trained:
        """Step 1 of DAMVI; see :class:`~damvi.outofcore.BlockFit`."""
        table = read_partitions(self.X, y, sample_weight)
        self._cluster = Cluster(self.client)
        with self._cluster.cancelled_on_failure():
            return train_on_cluster(self._cluster, fit, table, self.cache)

    def train_pool(self, fit: PoolFit, y: Any, sample_weight: Any) -> TrainedPool:
        """Step 1 for a pool of different models; see :class:`~damvi.outofcore.PoolFit`."""
        table = read_partitions(self.X, y, sample_weight)
        self._cluster = Cluster(self.client)
        with self._cluster.cancelled_on_failure():
            return train_pool_on_cluster(self._cluster, fit, table, self.sample_rows)

    def cancel(self) -> None:
        """Release what the workers hold of the last fit."""
        self._cluster.cancel()


def fit(
    estimator: Fitted,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    client: Client | None = None,
    *,
    cache: str | PathLike[str] | None = None,
    sample_rows: int = SAMPLE_ROWS,
) -> Fitted:
    """Fit a classifier on a table distributed over a Dask cluster.

    The result depends neither on the partitions nor on the workers. With trees, it is
    bit-identical to ``estimator.fit`` on the whole table with ``bootstrap="poisson"``; with
    a pool, to ``estimator.fit`` on the same rows in parquet files. The fitted estimator can
    predict, be saved and be loaded without Dask.

    Parameters
    ----------
    estimator : DAMVIClassifier or DAMVIVotingClassifier
        Fitted in place. Voters of a DAMVIClassifier must be the built-in trees.
    X : dask.dataframe.DataFrame or dask.array.Array
        Columns must be numbers, or known categories (``X.categorize()``). It is read twice;
        ``X.persist()`` keeps it in the workers' memory.
    y : Series, Array or str
        Labels, partitioned like ``X``, or the name of a column of ``X``.
    sample_weight : Series, Array or str, optional
        Partitioned like ``X``, or the name of a column. Only ratios matter.
    client : distributed.Client, optional
        Default: the current one.
    cache : path, optional
        A folder on the client for finished voters. A fit that ends early (an error, Ctrl-C,
        a lost client) leaves them there, and a fit on the same rows with the same
        ``random_state`` resumes from them. The folder is kept for fits with other weights
        and thresholds. By default a temporary folder, which is removed after a successful
        fit. Pools are not cached.
    sample_rows : int, default=200_000
        Rows that the models of a pool are trained on; see :class:`~damvi.ParquetTable`.

    Returns
    -------
    DAMVIClassifier or DAMVIVotingClassifier
        The estimator. While the client is alive, ``reweigh``, ``choose`` and
        ``oob_decision_function_`` of trees use the codes on the workers.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from damvi import DAMVIClassifier
    >>> from damvi.distributed import fit, predict
    >>> with Client(n_workers=2) as client:  # doctest: +SKIP
    ...     X = da.random.default_rng(0).normal(size=(100_000, 10), chunks=(10_000, 10))
    ...     y = X[:, 0] + X[:, 1] > 3
    ...     model = fit(DAMVIClassifier(random_state=0), X, y)
    ...     flagged = predict(model, X).sum().compute()
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(
            f"estimator must be a DAMVIClassifier or DAMVIVotingClassifier, not "
            f"{type(estimator).__name__}; for a pipeline, pass the last step, and apply "
            f"the others with Dask"
        )
    table = DaskTable(X, client, cache=cache, sample_rows=sample_rows)
    try:
        estimator.fit(table, y, sample_weight)
        return estimator
    except BaseException:  # also on Ctrl-C: stop the workers
        table.cancel()
        raise


def predict(model: Estimator, X: Any) -> Any:
    """Predict the class of each row; see :meth:`damvi.DAMVIClassifier.predict`.

    Parameters
    ----------
    model : DAMVIClassifier or DAMVIVotingClassifier
        Fitted, on a cluster or not.
    X : dask.dataframe.DataFrame or dask.array.Array

    Returns
    -------
    Series or Array
        Lazy, partitioned like ``X``, with its index.
    """
    return _ask(model, "predict", X)


def predict_proba(model: Estimator, X: Any) -> Any:
    """Predict class probabilities; see :meth:`damvi.DAMVIClassifier.predict_proba`.

    Parameters
    ----------
    model : DAMVIClassifier or DAMVIVotingClassifier
    X : dask.dataframe.DataFrame or dask.array.Array

    Returns
    -------
    DataFrame or Array
        A column for each of ``model.classes_``, named after it.
    """
    return _ask(model, "predict_proba", X)


def decision_function(model: Estimator, X: Any) -> Any:
    """Return vote minus threshold; see :meth:`damvi.DAMVIClassifier.decision_function`.

    Parameters
    ----------
    model : DAMVIClassifier or DAMVIVotingClassifier
    X : dask.dataframe.DataFrame or dask.array.Array

    Returns
    -------
    Series, DataFrame or Array
        With three or more classes, a column for each.
    """
    return _ask(model, "decision_function", X)


def vote(model: Estimator, X: Any) -> Any:
    """Return the weighted vote on each row; see :meth:`damvi.DAMVIClassifier.vote`.

    Parameters
    ----------
    model : DAMVIClassifier or DAMVIVotingClassifier
    X : dask.dataframe.DataFrame or dask.array.Array

    Returns
    -------
    Series, DataFrame or Array
        With three or more classes, a column for each.
    """
    return _ask(model, "vote", X)


def _ask(model: Estimator, method: str, X: Any) -> Any:
    check_is_fitted(model, "weights_")
    n_classes = len(model.classes_)
    shapes = {"predict": (0,), "predict_proba": (0, n_classes)}
    dtype = model.classes_.dtype if method == "predict" else np.dtype(np.float64)
    nothing = np.empty(shapes.get(method, vote_shape(0, n_classes)), dtype)
    alone = copy(model).set_params(n_jobs=1)  # without the training votes
    # Send the model once as a task, instead of with each task.
    there = delayed(alone, name=f"damvi-model-{uuid4().hex}", traverse=False)
    if isinstance(X, dd.DataFrame):
        meta = _framed(nothing, model, X._meta)
        return X.map_partitions(_answer_frame, there, method, meta, meta=meta)
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X must be a Dask DataFrame or Array, not {type(X).__name__}; for a table in "
            f"memory, use model.{method}(X)"
        )
    X = in_rows(X)
    shape: dict[str, Any] = {"drop_axis": 1}
    if nothing.ndim == 2:
        shape = {"chunks": (X.chunks[0], (n_classes,))}
    return X.map_blocks(
        _answer_array, there, method, nothing, dtype=dtype, meta=nothing, **shape
    )


def _framed(answer: Any, model: Estimator, X: Any) -> Any:
    """Return an answer with the index of the rows, and the classes as column names."""
    if answer.ndim == 2:
        return pd.DataFrame(answer, index=X.index, columns=model.classes_)
    labels = pd.Series(model.classes_).dtype if answer.dtype.kind in "OU" else answer.dtype
    return pd.Series(answer, index=X.index, dtype=labels)


def _answer_frame(X: Any, model: Estimator, method: str, nothing: Any) -> Any:
    if not len(X):
        return nothing
    return _framed(getattr(model, method)(X), model, X)


def _answer_array(X: Any, model: Estimator, method: str, nothing: Any) -> Any:
    return getattr(model, method)(X) if len(X) else nothing
