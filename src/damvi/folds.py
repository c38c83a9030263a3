"""Folds: which rows are judged together, by models and weights learned on others.

Folds are dealt at random, or are windows in the order of time; groups of rows that belong
together are never on both sides. Rows that nobody judges have the fold -1.
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
"""Numbers of rows."""
FIRST_STRETCH = (0.4, 0.2)
"""The share of a table in the order of time that is trained on and judged by nobody: more
would leave few rows to judge, less would judge models of far fewer rows than the last has.
The second is for tables whose windows would lack a class with the first."""
N_BLOCKS = 12
"""Stretches of time that are drawn whole for an interval: see :func:`alike_blocks`."""
MOST_BLOCKS = 1000


def folds_to_learn_from(
    fold: int, known: int | Rows, forward: bool = False, least: int = 1
) -> Rows:
    """The folds that may tell how a fold is judged: all others, or those before it.

    In time (``forward``) the first window has none before it. What judges it is learned
    from those after it: not from its own labels, but from its future. So is that of windows
    with fewer than ``least`` before them, where a choice is made between folds. ``known``
    are the folds to take from, or their number.

    Examples
    --------
    >>> [folds_to_learn_from(fold, 3, forward=True).tolist() for fold in range(3)]
    [[1, 2], [0], [0, 1]]
    """
    folds = np.arange(known) if isinstance(known, int) else known
    before = folds[folds < fold]
    return before if forward and len(before) >= least else folds[folds != fold]


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


class Split(NamedTuple):
    """Who judges which rows: folds, or windows in the order of time.

    Attributes
    ----------
    train : list of ndarray
        For each fold, the rows that its models are trained on.
    folds : ndarray of shape (n,)
        The fold of each row, -1 for rows that nobody judges.
    forward : bool
        Whether no model is trained on rows of a later fold, as in time.
    """

    train: list[Rows]
    folds: NDArray[np.int32]
    forward: bool = False


def split_rows(
    cv: Any, X: Any, targets: NDArray[Any], groups: Any = None, *, seed: int
) -> Split:
    """The rows that train for each fold, and the fold of each row.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        A number of folds is dealt evenly by class, with ``seed``; with ``groups``, as
        evenly as whole groups allow. Others may leave rows unjudged, and judge no row
        twice. A :class:`Split` stays as it is.
    X : table
    targets : array of shape (n,)
        The class numbers of the rows.
    groups : array of shape (n,), optional
        No row is judged by models that were trained on a row of its group: where ``cv``
        splits a group, its rows are left out of the training.

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
    if isinstance(cv, Split):
        return cv
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if not 2 <= cv <= 100:
            raise ValueError(f"cv={cv} must be a number of folds from 2 to 100")
        if groups is None:
            folds = deal_folds(targets, seed, int(cv)).astype(np.int32)
            train = [np.flatnonzero(folds != fold) for fold in range(int(cv))]
            return Split(train, folds)
        cv = StratifiedGroupKFold(int(cv), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # They are heeded, whatever the splitter does: see below.
        warnings.filterwarnings("ignore", "The groups parameter is ignored")
        parts = list(check_cv(cv, targets).split(X, targets, groups))
    splits = [_as_rows(*part) for part in parts]
    folds = _fold_of_each_row([test for _, test in splits], len(targets))
    for fold, (some, test) in enumerate(splits):
        if np.isin(test, some).any():
            raise ValueError(f"cv trains on rows that it judges, in fold {fold}")
    if len(np.unique(folds[folds >= 0])) < 2:
        raise ValueError(
            "cv has a single fold with rows to judge; the weights and the threshold that "
            "judge a fold are learned on others, so give it two or more"
        )
    train = [_without_groups_of(test, some, groups) for some, test in splits]
    later = [folds[rows].max(initial=-1) >= fold for fold, rows in enumerate(train)]
    return Split(train, folds, not any(later))


def refuse_single_class(train: Sequence[Rows], targets: NDArray[Any]) -> None:
    """An error if there is nothing to learn for some fold."""
    for fold, rows in enumerate(train):
        if len(np.unique(targets[rows])) < 2:
            raise ValueError(
                f"the models for fold {fold} would be trained on {len(rows)} rows of "
                f"one class only; use fewer folds, or a splitter that stratifies"
            )


def read_groups(groups: Any, targets: NDArray[Any]) -> tuple[Rows, NDArray[np.intp]]:
    """The number of each row's group, and for each group the rarest class that is in it.

    So groups can be drawn and dealt evenly by class, as if they were rows.
    """
    known, group_of = np.unique(np.asarray(groups), return_inverse=True)
    group_of = group_of.reshape(-1)
    if len(group_of) != len(targets):
        raise ValueError(f"{len(group_of)} groups for {len(targets)} rows; give one a row")
    if len(known) < 2:
        raise ValueError(
            "all rows are of one group, and none is left to judge it by; leave out groups"
        )
    rarest_last = np.argsort(-np.bincount(targets), kind="stable")
    ranks = np.zeros(len(known), np.intp)
    np.maximum.at(ranks, group_of, np.argsort(rarest_last)[targets])
    return group_of, rarest_last[ranks]


def asks_for_groups(cv: Any) -> Any:
    """In metadata routing, the splitter that gets ``groups``: ``cv``, or another for it.

    Groups are heeded with any ``cv``, also with those that do not ask for them.
    """
    if hasattr(cv, "get_metadata_routing"):
        requests = cv.get_metadata_routing().split.requests
        if "groups" in requests:
            return cv
    return StratifiedGroupKFold()


def _as_rows(train: Any, test: Any) -> tuple[Rows, Rows]:
    """Numbers of rows, from numbers or masks."""
    train, test = np.asarray(train), np.asarray(test)
    return (
        np.flatnonzero(train) if train.dtype == bool else train.astype(np.intp),
        np.flatnonzero(test) if test.dtype == bool else test.astype(np.intp),
    )


def _without_groups_of(test: Rows, train: Rows, groups: Any) -> Rows:
    """The rows of ``train`` that belong to no group of ``test``."""
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
            f"cv judges row {row} {times[row]} times, and {int((times > 1).sum())} of "
            f"{n_rows} rows more than once; a row has one vote by models that have not "
            f"seen it, so use a splitter whose test rows do not overlap, such as "
            f"StratifiedKFold, GroupKFold or TimeSeriesSplit"
        )
    return folds


def forward_splits(
    times: Any, y: Any, groups: Any = None, *, n_splits: int = 5
) -> list[tuple[Rows, Rows]]:
    """Windows in the order of time, each with all rows before it to train on.

    The first stretch only trains. Rows of the same time are never split. Stretches are
    made so that they hold about the same share of each class, and where one would have
    none of the positives there are fewer of them.

    Parameters
    ----------
    times : array of shape (n,)
        Numbers or dates that grow with time, in any order of the rows.
    y : array of shape (n,)
        The class of each row.
    groups : array of shape (n,), optional
        Rows of a group that is judged in a window are left out of its training.
    n_splits : int, default=5
        The number of windows, at most.

    Returns
    -------
    splits : list of (train, test)
        Numbers of rows, for ``cv``.

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
        raise ValueError(f"{len(stretch)} times for {len(targets)} rows")
    if moments.dtype.kind in "fmM" and len(moments) and np.isnan(moments[-1]):
        raise ValueError("times holds missing values; each row needs a time")
    if n_splits < 2:
        raise ValueError(f"n_splits={n_splits}; give two windows or more")
    # A row counts for what share of its class it is, so that a window has enough of all.
    share = 1 / np.bincount(targets)[targets]
    before = np.cumsum(np.bincount(stretch, share)) / share.sum()
    for first, n_windows in product(FIRST_STRETCH, range(n_splits, 1, -1)):
        ends = first + (1 - first) * np.arange(n_windows) / n_windows
        # A stretch ends with the time at which its share is full, or as good as full.
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
        f"rows cannot be judged in the order of time: of {len(moments):,} different times "
        f"no two windows can be made that have rows of the classes, with such rows before "
        f"them. Judge shuffled rows instead (--shuffle, shuffle=True), or give more rows"
    )


def alike_blocks(
    times: Any = None, groups: Any = None, *, n_blocks: int = N_BLOCKS
) -> NDArray[np.intp] | None:
    """Rows that are alike, as blocks: stretches of time, or whole groups.

    Neighbours in time may be of one campaign, one fault or one week of holidays, and so
    may rows of a group: how sure a figure is depends on how many of these there are, and
    not on how many rows.

    Parameters
    ----------
    times : array of shape (n,), optional
        Numbers or dates that grow with time. Blocks are stretches of about as many rows
        each; rows of the same time are in one.
    groups : array of shape (n,), optional
        Each group is a block; more than a thousand are put together in a thousand. With
        ``times``, a group is in the stretch of its first row.
    n_blocks : int, default=12
        The stretches of time. They must be few to be longer than what rows share, which
        nobody knows, and many enough to tell how they differ. In simulations of campaigns
        of very uneven size 90 % intervals by 12 stretches held the truth in 68 to 75 of
        100, and those by single rows in 25 to 50; without campaigns both did in 85
        (``results/promises/intervals.txt``).

    Returns
    -------
    blocks : ndarray of int of shape (n,) or None
        The number of each row's block; None if there are not two blocks.

    Examples
    --------
    >>> from damvi.folds import alike_blocks
    >>> alike_blocks(times=[1, 2, 2, 3, 4, 5], n_blocks=3)
    array([0, 1, 1, 1, 2, 2])
    >>> alike_blocks(groups=["b", "a", "b"])
    array([1, 0, 1])
    """
    blocks = None
    if groups is not None:
        blocks = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
    if times is not None:
        moments = np.unique(np.asarray(times), return_inverse=True)[1].reshape(-1)
        if blocks is not None and len(blocks):
            first = np.full(int(blocks.max()) + 1, len(moments))
            np.minimum.at(first, blocks, moments)
            moments = first[blocks]
        sizes = np.bincount(moments)
        middle = np.cumsum(sizes) - sizes / 2
        blocks = (n_blocks * middle / max(len(moments), 1)).astype(np.intp)[moments]
    if blocks is None:
        return None
    numbers = np.unique(blocks, return_inverse=True)[1].reshape(-1) % MOST_BLOCKS
    return numbers.astype(np.intp) if len(np.unique(numbers)) > 1 else None
