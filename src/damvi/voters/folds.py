"""Which rows are judged together, by models trained on the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, check_cv

from .hashing import row_hashes

Rows = NDArray[np.intp]


def deal_folds(signs: NDArray[Any], seed: int, n_folds: int = 5) -> NDArray[np.int8]:
    """Deal the rows of each class over the folds, at random and evenly.

    Even by class, since a fold short of positives would leave more of them to the
    others, and so tell its labels to the weights that judge it.
    """
    rng = np.random.RandomState([seed, 2**31])
    folds = np.empty(len(signs), dtype=np.int8)
    for side in np.unique(signs)[::-1]:
        rows = np.flatnonzero(signs == side)
        folds[rng.permutation(rows)] = np.arange(len(rows)) % n_folds
    return folds


def deal_folds_by_rank(
    labels: NDArray[Any], seed: int, before: Any = None, n_folds: int = 5
) -> NDArray[np.int8]:
    """The same, where a row's fold depends on nothing but its rank in its class.

    So the parts of a table deal their rows as the whole would. ``before`` is the number of
    rows of each class that come before these. Of each ``n_folds`` rows of a class in turn,
    every fold gets one.
    """
    folds = np.empty(len(labels), dtype=np.int8)
    for number in np.unique(labels).tolist():
        rows = np.flatnonzero(labels == number)
        first = 0 if before is None else int(before[number])
        rank = first + np.arange(len(rows), dtype=np.int64)
        lot = rank - rank % n_folds
        key = seed + 2**31 * (1 + number)
        own = row_hashes(rank, key)
        others = [row_hashes(lot + j, key) for j in range(n_folds)]
        folds[rows] = np.sum([other < own for other in others], axis=0)
    return folds


def split_rows(
    cv: Any, X: Any, y: NDArray[Any], groups: Any = None, *, seed: int
) -> tuple[list[Rows], NDArray[np.int32]]:
    """The rows that train for each fold, and the fold of each row.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        A number of folds is dealt evenly by class, with ``seed``; with ``groups``, as
        evenly as whole groups allow.
    X, y : table and array of the numbers of classes
    groups : array of shape (n,), optional
        Rows of a group are never split, if ``cv`` is a number or heeds groups.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 0, 0, 0, 1, 1], dtype=np.int8)
    >>> train, folds = split_rows(2, y[:, None], y, seed=0)
    >>> folds
    array([0, 0, 1, 1, 1, 0], dtype=int32)
    >>> train[0]
    array([2, 3, 4])
    """
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if not 2 <= cv <= 100:
            raise ValueError(f"cv={cv} must be a number of folds from 2 to 100")
        if groups is None:
            folds = deal_folds(y, seed, int(cv)).astype(np.int32)
            return [np.flatnonzero(folds != fold) for fold in range(int(cv))], folds
        cv = StratifiedGroupKFold(int(cv), shuffle=True, random_state=seed)
    splits = [_as_rows(*split) for split in check_cv(cv, y).split(X, y, groups)]
    folds = _fold_of_each_row([test for _, test in splits], len(y))
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


def check_classes(train: Sequence[Rows], y: NDArray[Any]) -> None:
    """Refuse to train on a single class."""
    for fold, rows in enumerate(train):
        present = np.unique(y[rows])
        if len(present) < 2 and y.max() > 1:
            raise ValueError(
                f"the models for fold {fold} would be trained on {len(rows)} rows of "
                f"one class only; use fewer folds, or a splitter that stratifies"
            )
        positives = int((y[rows] > 0).sum())
        if len(present) < 2:
            lacking = "positive" if positives == 0 else "negative"
            raise ValueError(
                f"the models for fold {fold} would be trained on {len(rows)} rows with "
                f"no {lacking} among them; use fewer folds, or a splitter that "
                f"stratifies"
            )
