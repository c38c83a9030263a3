"""Labels that are missing: which, and how to take their rows apart."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._compat import take_rows


def missing_labels(y: Any) -> NDArray[np.bool_]:
    """Where ``y`` has no label: None, NaN, or what pandas has for them."""
    if not hasattr(y, "dtype") or not isinstance(y, np.ndarray):
        # A list that mixes None and text has no array of its own.
        y = y.to_numpy() if hasattr(y, "to_numpy") else np.array(y, dtype=object)
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind != "O":
        return np.zeros(y.shape, dtype=bool)
    flat = [_is_missing(value) for value in y.ravel().tolist()]
    return np.array(flat, dtype=bool).reshape(y.shape)


def _is_missing(value: Any) -> bool:
    if isinstance(value, Real):
        return bool(np.isnan(float(value)))
    return value is None or str(value) in {"<NA>", "NaT"}


def refuse_missing_labels(y: Any) -> None:
    """An error that says where rows without a label belong."""
    if y is None:
        return  # the usual checks say more
    missing = missing_labels(y)
    if missing.ndim != 1 or not missing.any():
        return
    if missing.all():
        raise ValueError(
            f"y has no label at all: each of its {len(missing)} values is missing (NaN or "
            f"None), and there is nothing to learn from; label some rows of both classes"
        )
    first = int(np.flatnonzero(missing)[0])
    raise ValueError(
        f"y is missing (NaN or None) in {int(missing.sum())} of {len(missing)} rows, the "
        f"first is row {first}; leave them out, or learn from them as unlabelled rows: "
        f"X, y, X_unlabeled = damvi.unlabelled.split_unlabelled(X, y)"
    )


def split_unlabelled(X: Any, y: Any) -> tuple[Any, Any, Any]:
    """The rows with a label, their labels, and the rows without one.

    Parameters
    ----------
    X : array, sparse matrix or dataframe of shape (n, n_features)
    y : array of shape (n,)
        NaN, None or NA where there is no label.

    Returns
    -------
    X : the labelled rows
    y : ndarray
        Their labels, as whole numbers where they are.
    X_unlabeled : Unlabeled or None
        The others, to be given to ``fit``; None where all rows have a label.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.unlabelled import split_unlabelled
    >>> X, y = np.arange(6.0).reshape(3, 2), [0, None, 1]
    >>> X, y, X_unlabeled = split_unlabelled(X, y)
    >>> y, X_unlabeled.X
    (array([0, 1]), array([[2., 3.]]))
    """
    from .table import Unlabeled

    missing = missing_labels(y)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if len(missing) != n:
        raise ValueError(
            f"X has {n} rows and y {len(missing)}; give a label, or None, each"
        )
    if n and missing.all():
        refuse_missing_labels(y)
    values = y.to_numpy() if hasattr(y, "to_numpy") else np.array(y, dtype=object)
    known = np.array(np.asarray(values)[~missing].tolist())
    if known.dtype.kind == "f" and (known == np.rint(known)).all():
        known = known.astype(np.int64)  # NaN had made floats of them
    labelled = take_rows(X, np.flatnonzero(~missing))
    if not missing.any():
        return labelled, known, None
    return labelled, known, Unlabeled(take_rows(X, np.flatnonzero(missing)))
