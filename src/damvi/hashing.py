"""Hash rows to one 64-bit number each, to recognize training rows.

Rows with equal values have equal hashes, whether they come from an array, a sparse matrix
or a dataframe. 0.0 equals -0.0, and all NaN are equal. The last bit is the row's class, so
that rows can be compared with or without their label.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Hashes = NDArray[np.uint64]

BLOCK_VALUES = 1 << 13
"""Values hashed at a time; small enough to stay in the CPU cache."""
BLOCK_HASHES = 1 << 20
HALF = np.uint64(32)
LABEL = np.uint64(1)
HASHES_TO_KEEP = 2**20
"""For more rows than this, only a sample of the hashes is stored for certificates."""


def hash_step(n_rows: int) -> int:
    """Return n if one in n rows of a large table is recorded."""
    return 1 << max(0, (n_rows // HASHES_TO_KEEP).bit_length())


def row_hashes(X: Any, targets: NDArray[Any]) -> Hashes:
    """Return the hash of each row: 63 bits of its values, and 1 bit for positive.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.hashing import row_hashes
    >>> one, other, same = row_hashes([[0.0, 2], [1, 2], [-0.0, 2]], np.array([1, 1, 1]))
    >>> bool(one == other), bool(one == same)
    (False, True)
    """
    if hasattr(X, "columns"):
        # For an Arrow table these are the columns, otherwise their names.
        arrow = hasattr(X, "column_names")
        columns = X.columns if arrow else [X[name] for name in X.columns]
        sums = _of_columns(columns, len(X))
    elif sparse.issparse(X):
        sums = _of_sparse(X.tocsr())
    else:
        sums = _of_array(np.asarray(X))
    return (_mix(sums) & ~LABEL) | (np.asarray(targets) > 0)


def training_hashes(X: Any, targets: NDArray[Any], unlabeled: Any = None) -> Hashes:
    """Return the hashes by which certificates recognize rows used in the fit."""
    hashes = row_hashes(X, targets)
    if unlabeled is not None:
        more = row_hashes(unlabeled.X, np.zeros(unlabeled.X.shape[0], np.int8))
        hashes = np.concatenate([hashes, more])
    return np.sort(hashes)


def without_labels(hashes: Hashes) -> Hashes:
    """Return the hashes of the rows' values alone."""
    return hashes & ~LABEL


def thinned(hashes: Hashes, step: int) -> Hashes:
    """Keep one hash in ``step``, chosen by value: all equal rows, or none."""
    return np.asarray(hashes) if step == 1 else np.asarray(hashes[kept(hashes, step)])


def kept(hashes: Hashes, step: int) -> NDArray[np.intp]:
    """Return the indices of these hashes, computed in blocks to save memory."""
    parts = [
        start + np.flatnonzero((block >> np.uint64(1)) % np.uint64(step) == 0)
        for start in range(0, len(hashes), BLOCK_HASHES)
        for block in [hashes[start : start + BLOCK_HASHES]]
    ]
    return np.concatenate([np.zeros(0, np.intp), *parts])


def _of_array(X: NDArray[Any]) -> Hashes:
    if X.dtype.kind not in "biuf":
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError):
            return _of_columns(list(X.T), len(X))
    n, n_features = X.shape
    factors = _factors(n_features)
    sums = np.empty(n, dtype=np.uint64)
    step = max(1, BLOCK_VALUES // max(n_features, 1))
    for start in range(0, n, step):
        bits = _bits(X[start : start + step])
        sums[start : start + step] = _scramble(bits, factors).sum(axis=1)
    return sums


def _of_sparse(X: Any) -> Hashes:
    # A zero adds nothing, so explicit and implicit zeros are equal.
    terms = _scramble(_bits(X.data), _factors(X.shape[1])[X.indices])
    ends = np.concatenate([[np.uint64(0)], np.cumsum(terms, dtype=np.uint64)])
    sums: Hashes = np.diff(ends[X.indptr])
    return sums


def _of_columns(columns: list[Any], n: int) -> Hashes:
    sums = np.zeros(n, dtype=np.uint64)
    for column, factor in zip(columns, _factors(len(columns)), strict=True):
        sums += _scramble(_bits_of_column(column), factor)
    return sums


def _bits_of_column(column: Any) -> Hashes:
    values = column if isinstance(column, np.ndarray) else column.to_numpy()
    if values.dtype.kind in "mM":
        values = values.astype(np.int64)
    if values.dtype.kind in "biuf":
        return _bits(values)
    objects = values.tolist()
    try:  # each distinct value once, since texts repeat
        known = {value: _bits_of_object(value) for value in set(objects)}
    except TypeError:  # unhashable, such as a list
        return np.array([_bits_of_object(value) for value in objects], dtype=np.uint64)
    return np.array([known[value] for value in objects], dtype=np.uint64)


def _bits_of_object(value: Any) -> int:
    """Return a number as in a numeric column, missing as NaN, and the rest as text."""
    if isinstance(value, Real):
        return int(_bits(np.array([float(value)]))[0])
    if value is None or str(value) in {"<NA>", "NaT"}:
        return int(_bits(np.array([np.nan]))[0])
    return int.from_bytes(blake2b(str(value).encode(), digest_size=8).digest(), "little")


def _bits(values: NDArray[Any]) -> Hashes:
    doubles = np.add(values, 0.0, dtype=np.float64)  # turns -0.0 into 0.0
    if doubles.size and np.isnan(doubles.min()):
        doubles[np.isnan(doubles)] = np.nan
    return doubles.view(np.uint64)


def _factors(n_features: int) -> Hashes:
    """Return an odd factor per column, so that the order of values matters."""
    steps = np.arange(1, n_features + 1, dtype=np.uint64)
    return _mix(steps * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)


def _scramble(bits: Hashes, factors: Any) -> Hashes:
    """Compute one term of a row's sum, in place of ``bits``; 0 for 0.

    The halves are folded before the product, since the low bits of short numbers are all
    zero, and after it, since its low bits do not depend on the high ones.
    """
    bits ^= bits >> HALF
    bits *= factors
    bits ^= bits >> HALF
    return bits


def _mix(sums: Hashes) -> Hashes:
    """Spread every bit over all others (the finalizer of splitmix64)."""
    sums = (sums ^ (sums >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    sums = (sums ^ (sums >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = sums ^ (sums >> np.uint64(31))
    return mixed


def label_text(value: Any) -> str:
    """Return a label as text, independent of its type: 1, 1.0 and "1" are "1"."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def text_hashes(labels: Sequence[Any]) -> Hashes:
    """Return a stable 64-bit hash of the text of each label.

    Examples
    --------
    >>> from damvi.hashing import text_hashes
    >>> one, same, other = text_hashes([1.0, "1", "one"])
    >>> bool(one == same), bool(one == other)
    (True, False)
    """
    texts = (label_text(label).encode("utf-8", "surrogatepass") for label in labels)
    digests = b"".join(blake2b(text, digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def find_hashes(known: Hashes, hashes: Hashes) -> NDArray[np.intp]:
    """Return the index of each hash in the sorted known ones; -1 if not found."""
    if not len(known):
        return np.full(len(hashes), -1, np.intp)
    places = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    return np.where(known[places] == hashes, places, -1)


def row_bits(rows: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Return 64 random bits for each row, a function of (seed, row index) only."""
    with np.errstate(over="ignore"):
        x = rows.astype(np.uint64) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x ^= x >> np.uint64(shift)
            x *= np.uint64(factor)
        x ^= x >> np.uint64(31)
    return x
