"""Fingerprints: of a file as it lies there, and of the table that it holds."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def table_sha256(X: NDArray[Any], y: NDArray[Any], ordered: bool = True) -> str:
    """Return the SHA-256 of a table's content, whatever file it came in.

    Values count in single precision, little-endian, row by row with the label last, so that
    copies in either precision agree. With ``ordered=False`` the rows count in any order.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.datasets.digests import table_sha256
    >>> X, y = np.array([[1.0, 2.0], [3.0, np.nan]]), np.array([0, 1])
    >>> table_sha256(X, y) == table_sha256(X[::-1], y[::-1])
    False
    >>> table_sha256(X, y, ordered=False) == table_sha256(X[::-1], y[::-1], ordered=False)
    True
    """
    rows = np.column_stack([X, y]).astype("<f4")
    # One form for each value: -0 is 0, and NaN has many.
    rows += np.float32(0)
    rows[np.isnan(rows)] = np.nan
    if not ordered:
        each = np.ascontiguousarray(rows).view(f"V{rows.shape[1] * 4}").ravel()
        rows = rows[np.argsort(each, kind="stable")]
    shape = f"{rows.shape[0]}x{rows.shape[1]}:".encode()
    return hashlib.sha256(shape + np.ascontiguousarray(rows).tobytes()).hexdigest()
