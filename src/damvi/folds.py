"""Folds: which rows are judged together, by models or weights learned on the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, check_cv

Rows = NDArray[np.intp]


def deal_folds(targets: NDArray[Any], seed: int, n_folds: int = 5) -> NDArray[np.int8]:
    """Deal the rows of each class over the folds, at random and evenly.

    Even by class, since a fold short of positives would leave more of them to the
    others, and so tell its labels to the weights that judge it.
    """
    rng = np.random.RandomState([seed, 2**31])
    folds = np.empty(len(targets), dtype=np.int8)
    for number in np.unique(targets)[::-1]:
        rows = np.flatnonzero(targets == number)
        folds[rng.permutation(rows)] = np.arange(len(rows)) % n_folds
    return folds


def deal_folds_by_rank(
    targets: NDArray[Any], seed: int, before: Any = None, n_folds: int = 5
) -> NDArray[np.int8]:
    """The same, where a row's fold depends on nothing but its rank in its class.

    So the parts of a table deal their rows as the whole would. ``before`` is the number of
    rows of each class that come before these. Of each ``n_folds`` rows of a class in turn,
    every fold gets one.
    """
    folds = np.empty(len(targets), dtype=np.int8)
    for number in np.unique(targets).tolist():
        rows = np.flatnonzero(targets == number)
        first = 0 if before is None else int(before[number])
        rank = first + np.arange(len(rows), dtype=np.int64)
        lot = rank - rank % n_folds
        key = seed + 2**31 * (1 + number)
        own = row_bits(rank, key)
        others = [row_bits(lot + j, key) for j in range(n_folds)]
        folds[rows] = np.sum([other < own for other in others], axis=0)
    return folds


def row_bits(rows: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """64 random bits for each row, a function of (seed, row number) alone."""
    with np.errstate(over="ignore"):
        x = rows.astype(np.uint64) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x ^= x >> np.uint64(shift)
            x *= np.uint64(factor)
        x ^= x >> np.uint64(31)
    return x


def split_rows(
    cv: Any, X: Any, targets: NDArray[Any], groups: Any = None, *, seed: int
) -> tuple[list[Rows], NDArray[np.int32]]:
    """The rows that train for each fold, and the fold of each row.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        A number of folds is dealt evenly by class, with ``seed``; with ``groups``, as
        evenly as whole groups allow.
    X : table
    targets : array of shape (n,)
        The class numbers of the rows.
    groups : array of shape (n,), optional
        Rows of a group are never split, if ``cv`` is a number or heeds groups.

    Examples
    --------
    >>> import numpy as np
    >>> targets = np.array([0, 0, 0, 0, 1, 1], dtype=np.int8)
    >>> train, folds = split_rows(2, targets[:, None], targets, seed=0)
    >>> folds
    array([0, 0, 1, 1, 1, 0], dtype=int32)
    >>> train[0]
    array([2, 3, 4])
    """
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if not 2 <= cv <= 100:
            raise ValueError(f"cv={cv} must be a number of folds from 2 to 100")
        if groups is None:
            folds = deal_folds(targets, seed, int(cv)).astype(np.int32)
            return [np.flatnonzero(folds != fold) for fold in range(int(cv))], folds
        cv = StratifiedGroupKFold(int(cv), shuffle=True, random_state=seed)
    splits = [_as_rows(*split) for split in check_cv(cv, targets).split(X, targets, groups)]
    folds = _fold_of_each_row([test for _, test in splits], len(targets))
    for fold, (some, test) in enumerate(splits):
        if np.isin(test, some).any():
            raise ValueError(f"cv trains on rows that it judges, in fold {fold}")
    return [some for some, _ in splits], folds


def _as_rows(train: Any, test: Any) -> tuple[Rows, Rows]:
    """Numbers of rows, from numbers or masks."""
    train, test = np.asarray(train), np.asarray(test)
    return (
        np.flatnonzero(train) if train.dtype == bool else train.astype(np.intp),
        np.flatnonzero(test) if test.dtype == bool else test.astype(np.intp),
    )


def _fold_of_each_row(tests: Sequence[Rows], n_rows: int) -> NDArray[np.int32]:
    folds = np.full(n_rows, -1, dtype=np.int32)
    times = np.zeros(n_rows, dtype=np.intp)
    for fold, rows in enumerate(tests):
        folds[rows] = fold
        np.add.at(times, rows, 1)
    if (times != 1).any():
        row = int(np.flatnonzero(times != 1)[0])
        raise ValueError(
            f"cv judges row {row} {times[row]} times, and {int((times != 1).sum())} of "
            f"{n_rows} rows not exactly once; each row needs one vote by models that "
            f"have not seen it, so use a splitter that partitions the rows, such as "
            f"StratifiedKFold or GroupKFold"
        )
    return folds
