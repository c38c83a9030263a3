"""Cross-validation folds, in random or time order, with or without groups.

Votes on a fold come from models and weights that were learned without it. Groups are never
split between training and test rows. Rows in no test fold have fold -1.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, check_cv

from .hashing import row_bits

Rows = NDArray[np.intp]
"""Row numbers."""
FIRST_STRETCH = (0.4, 0.2)
"""Share of the rows, first in time order, that is used for training only. More would leave
few test rows; less would test models of far fewer rows than the final one. The second value
is used if the windows would lack a class with the first."""


def folds_to_learn_from(
    fold: int, known: int | Rows, forward: bool = False, least: int = 1
) -> Rows:
    """The folds that models and weights for a fold may be learned from.

    These are all other folds, or the earlier ones if folds are in time order (``forward``).
    The first fold has none before it, so the later ones are used: that avoids its own
    labels, but not its future. The same holds for folds with fewer than ``least`` before
    them, where a choice is made between folds. ``known`` is the number of folds, or an
    array of those available.

    Examples
    --------
    >>> [folds_to_learn_from(fold, 3, forward=True).tolist() for fold in range(3)]
    [[1, 2], [0], [0, 1]]
    """
    folds = np.arange(known) if isinstance(known, int) else known
    before = folds[folds < fold]
    return before if forward and len(before) >= least else folds[folds != fold]


def deal_folds(targets: NDArray[Any], seed: int, n_folds: int = 5) -> NDArray[np.int8]:
    """Assign the rows of each class to folds, at random and evenly.

    A fold short of positives would leave more of them to the other folds, and so reveal
    its labels to the weights learned there; hence the folds are stratified.
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
    """Assign rows to folds by their rank within their class alone.

    The parts of a table thus get the same folds as the whole. ``before`` is the number of
    rows of each class that precede these. Of every ``n_folds`` consecutive rows of a class,
    each fold gets one.
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


class Split(NamedTuple):
    """Training rows and test folds of a cross-validation.

    Attributes
    ----------
    train : list of ndarray
        The training rows of each fold.
    folds : ndarray of shape (n,)
        The fold in which each row is a test row, -1 for none.
    forward : bool
        Whether the folds are in time order: no training row is in the same or a later fold.
    """

    train: list[Rows]
    folds: NDArray[np.int32]
    forward: bool = False


def split_rows(
    cv: Any, X: Any, targets: NDArray[Any], groups: Any = None, *, seed: int
) -> Split:
    """Split rows into the folds of a cross-validation.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
            An integer is a number of stratified random folds, seeded by ``seed``; with
            ``groups``, stratified as far as possible with whole groups. Test sets must not
            overlap, and need not cover all rows.
    X : table
    targets : array of shape (n,)
        Class numbers of the rows.
    groups : array of shape (n,), optional
        Models are never tested on groups that they were trained on: if ``cv`` splits a
        group, its rows are removed from the training set.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import TimeSeriesSplit
    >>> targets = np.array([0, 0, 0, 0, 1, 1], dtype=np.int8)
    >>> train, folds, _ = split_rows(2, targets[:, None], targets, seed=0)
    >>> folds
    array([0, 0, 1, 1, 1, 0], dtype=int32)
    >>> train[0]
    array([2, 3, 4])
    >>> split_rows(TimeSeriesSplit(2), targets[:, None], targets, seed=0).folds
    array([-1, -1,  0,  0,  1,  1], dtype=int32)
    """
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if not 2 <= cv <= 100:
            raise ValueError(f"cv={cv} must be between 2 and 100 folds")
        if groups is None:
            folds = deal_folds(targets, seed, int(cv)).astype(np.int32)
            train = [np.flatnonzero(folds != fold) for fold in range(int(cv))]
            return Split(train, folds)
        cv = StratifiedGroupKFold(int(cv), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # Groups are respected below, whatever the splitter does.
        warnings.filterwarnings("ignore", "The groups parameter is ignored")
        parts = list(check_cv(cv, targets).split(X, targets, groups))
    splits = [_as_rows(*part) for part in parts]
    folds = _fold_of_each_row([test for _, test in splits], len(targets))
    for fold, (some, test) in enumerate(splits):
        if np.isin(test, some).any():
            raise ValueError(
                f"cv has the same rows in the training and the test set of fold {fold}; "
                f"use folds that do not overlap"
            )
    if len(np.unique(folds[folds >= 0])) < 2:
        raise ValueError(
            "cv has only one fold with test rows, but the weights and threshold for a fold "
            "are learned from the others; use two or more folds"
        )
    train = [_without_groups_of(test, some, groups) for some, test in splits]
    later = [folds[rows].max(initial=-1) >= fold for fold, rows in enumerate(train)]
    return Split(train, folds, not any(later))


def read_groups(groups: Any, targets: NDArray[Any]) -> tuple[Rows, NDArray[np.intp]]:
    """Number of each row's group, and the rarest class in each group.

    With these classes, groups can be sampled and split like stratified rows.
    """
    known, group_of = np.unique(np.asarray(groups), return_inverse=True)
    group_of = group_of.reshape(-1)
    if len(group_of) != len(targets):
        raise ValueError(
            f"groups has {len(group_of)} entries, but there are {len(targets)} rows"
        )
    if len(known) < 2:
        raise ValueError(
            "all rows are in one group, so no out-of-sample votes are possible; omit groups"
        )
    rarest_last = np.argsort(-np.bincount(targets), kind="stable")
    ranks = np.zeros(len(known), np.intp)
    np.maximum.at(ranks, group_of, np.argsort(rarest_last)[targets])
    return group_of, rarest_last[ranks]


def asks_for_groups(cv: Any) -> Any:
    """The splitter that requests ``groups`` in metadata routing: ``cv`` or a stand-in.

    Groups are respected with any ``cv``, even if it does not request them.
    """
    if hasattr(cv, "get_metadata_routing"):
        requests = cv.get_metadata_routing().split.requests
        if "groups" in requests:
            return cv
    return StratifiedGroupKFold()


def _as_rows(train: Any, test: Any) -> tuple[Rows, Rows]:
    """Row numbers, from row numbers or masks."""
    train, test = np.asarray(train), np.asarray(test)
    return (
        np.flatnonzero(train) if train.dtype == bool else train.astype(np.intp),
        np.flatnonzero(test) if test.dtype == bool else test.astype(np.intp),
    )


def _without_groups_of(test: Rows, train: Rows, groups: Any) -> Rows:
    """Remove rows from ``train`` whose group is in ``test``."""
    if groups is None:
        return train
    known = np.asarray(groups)
    return train[~np.isin(known[train], np.unique(known[test]))]


def _fold_of_each_row(tests: Sequence[Rows], n_rows: int) -> NDArray[np.int32]:
    folds = np.full(n_rows, -1, dtype=np.int32)
    times = np.zeros(n_rows, dtype=np.intp)
    for fold, rows in enumerate(tests):
        folds[rows] = fold
        np.add.at(times, rows, 1)
    if (times > 1).any():
        row = int(np.flatnonzero(times > 1)[0])
        raise ValueError(
            f"cv tests row {row} {times[row]} times, and {int((times > 1).sum())} of "
            f"{n_rows} rows more than once; each row may have only one out-of-fold vote, "
            f"so use a splitter with disjoint test sets, such as StratifiedKFold, "
            f"GroupKFold or TimeSeriesSplit"
        )
    return folds


def forward_splits(
    times: Any, y: Any, groups: Any = None, *, n_splits: int = 5
) -> list[tuple[Rows, Rows]]:
    """Split rows in time order: test windows, each trained on all rows before it.

    The first part of the rows is used for training only. Rows with the same time stay
    together. Windows have about the same share of each class; there are fewer of them if a
    window would lack positives.

    Parameters
    ----------
    times : array of shape (n,)
        Numbers or dates that increase with time. Rows need not be sorted.
    y : array of shape (n,)
        Class labels.
    groups : array of shape (n,), optional
        Rows whose group is in a test window are removed from its training rows.
    n_splits : int, default=5
        Maximum number of windows.

    Returns
    -------
    splits : list of (train, test)
        Row numbers, to be passed as ``cv``.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi import forward_splits
    >>> times, y = np.arange(20), np.arange(20) % 2
    >>> for train, test in forward_splits(times, y, n_splits=3):
    ...     print(len(train), test)
    8 [ 8  9 10 11]
    12 [12 13 14 15]
    16 [16 17 18 19]
    """
    moments, stretch = np.unique(np.asarray(times), return_inverse=True)
    classes, targets = np.unique(np.asarray(y), return_inverse=True)
    stretch, targets = stretch.reshape(-1), targets.reshape(-1)
    if not len(stretch) == len(targets):
        raise ValueError(f"times has {len(stretch)} entries, but y has {len(targets)}")
    if moments.dtype.kind in "fmM" and len(moments) and np.isnan(moments[-1]):
        raise ValueError("times has missing values; each row needs a time")
    if n_splits < 2:
        raise ValueError(f"n_splits={n_splits} must be at least 2")
    # Weight rows by their share of the class, so that windows have enough of each class.
    share = 1 / np.bincount(targets)[targets]
    before = np.cumsum(np.bincount(stretch, share)) / share.sum()
    for first, n_windows in product(FIRST_STRETCH, range(n_splits, 1, -1)):
        ends = first + (1 - first) * np.arange(n_windows) / n_windows
        # A window ends with the time at which its share is reached, up to rounding.
        window = np.searchsorted(ends, before - 1e-9, side="left")[stretch] - 1
        splits = [
            (np.flatnonzero(window < number), np.flatnonzero(window == number))
            for number in range(n_windows)
        ]
        splits = [(_without_groups_of(test, some, groups), test) for some, test in splits]
        parts = [rows for pair in splits for rows in pair]
        judged = np.unique(targets[window >= 0])
        if len(judged) == len(classes) and all(
            len(np.unique(targets[p])) > 1 for p in parts
        ):
            return splits
    raise ValueError(
        f"rows cannot be split in time order: the {len(moments):,} different times do not "
        f"allow two windows that contain the classes and have such rows before them; "
        f"shuffle the rows instead (--shuffle, shuffle=True), or add rows"
    )
