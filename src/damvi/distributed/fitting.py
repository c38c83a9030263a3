"""A fit on a cluster, from Dask collections to an ordinary classifier."""

from __future__ import annotations

from typing import Any

from distributed import Client, default_client

from ..classifier import DAMVIClassifier
from . import tables
from .cluster import Cluster
from .electing import elect_on


def fit(
    estimator: DAMVIClassifier,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    client: Client | None = None,
) -> DAMVIClassifier:
    """Fit a classifier on a table that is spread over a Dask cluster.

    The result is that of ``estimator.fit`` on the whole table, with
    ``bootstrap="poisson"``, bit by bit: it depends neither on the partitions nor on the
    workers. It needs no Dask to predict, or to be saved and loaded.

    Parameters
    ----------
    estimator : DAMVIClassifier
        Fitted in place. Its voters must be the built-in trees.
    X : dask.dataframe.DataFrame or dask.array.Array
        Columns are numbers, or categories that are known (``X.categorize()``). It is read
        twice; ``X.persist()`` keeps it in the memory of the workers.
    y : Series, Array or str
        Labels, cut into partitions as ``X`` is, or the name of a column of it.
    sample_weight : Series, Array or str, optional
        Only ratios matter. Or the name of a column of ``X``.
    client : distributed.Client, optional
        The current one by default.

    Returns
    -------
    DAMVIClassifier
        The estimator. While the client lives, ``reweigh``, ``choose`` and
        ``oob_decision_function_`` go back to the rows' codes on the workers.

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
    if not isinstance(estimator, DAMVIClassifier):
        raise TypeError(
            f"a fit on a cluster takes a DAMVIClassifier, not a "
            f"{type(estimator).__name__}; of a pipeline, give the last step, and do the "
            f"others with Dask"
        )
    if client is None:
        try:
            client = default_client()
        except ValueError as error:
            raise ValueError(
                "there is no Dask client; make one, as in client = "
                "distributed.Client(address), or Client() for this machine"
            ) from error
    estimator._validate_params()
    estimator._check_blocks()
    table = tables.read(X, y, sample_weight)
    elected = elect_on(Cluster(client), estimator, table)
    return estimator._take_office(elected)
