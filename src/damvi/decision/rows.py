"""The rows that decisions are tuned on, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Rows:
    """Votes that count: out of sample (not NaN) and of a weight above 0.

    Attributes
    ----------
    index : ndarray of shape (n_kept,)
        Where the rows are among those given.
    vote : ndarray of shape (n_kept,)
    positive : ndarray of bool of shape (n_kept,)
    weight : ndarray of shape (n_kept,)
        Divided by a power of 2, which changes no ratio and no tie, so that sums stay
        finite.
    n_given : int
    """

    index: NDArray[np.intp]
    vote: NDArray[np.float64]
    positive: NDArray[np.bool_]
    weight: NDArray[np.float64]
    n_given: int

    def __len__(self) -> int:
        return len(self.vote)

    def take(self, part: NDArray[Any]) -> Rows:
        """Some of the rows, by a mask or by their places among those kept."""
        return Rows(
            self.index[part],
            self.vote[part],
            self.positive[part],
            self.weight[part],
            self.n_given,
        )


def read_rows(vote: ArrayLike, signs: ArrayLike, sample_weight: ArrayLike | None) -> Rows:
    """Check what was given, and keep the rows that count."""
    votes = np.asarray(vote, dtype=np.float64)
    if votes.ndim != 1:
        raise ValueError(f"vote has shape {votes.shape}; give one number a row")
    if np.isinf(votes).any():
        raise ValueError("vote holds infinities; NaN is for rows that have no vote")
    truth = column(signs, "signs", len(votes))
    if not np.isin(truth, (-1, 1)).all():
        odd = truth[~np.isin(truth, (-1, 1))][0]
        raise ValueError(f"signs are +1 (positive) and -1, but {odd!r} is among them")
    weight = np.ones(len(votes))
    if sample_weight is not None:
        weight = column(sample_weight, "sample_weight", len(votes)).astype(np.float64)
        if not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise ValueError("sample_weight must be finite and not negative")
    index = np.flatnonzero(~np.isnan(votes) & (weight > 0))
    if not len(index):
        raise ValueError(
            "no row has both a vote and a weight above 0; votes are NaN where a row was "
            "never out of sample, and more voters or folds leave fewer of those"
        )
    weight = weight[index]
    weight = np.ldexp(weight, -np.frexp(weight.max())[1])
    return Rows(index, votes[index], truth[index] > 0, weight, len(votes))


def need_both_classes(rows: Rows) -> None:
    """Refuse rows of one class, from which nothing can be learned."""
    for name, some in (("positive", rows.positive), ("negative", ~rows.positive)):
        if not some.any():
            raise ValueError(
                f"none of the {len(rows)} rows that have a vote and a weight is "
                f"{name}; both classes are needed"
            )


def read_folds(folds: ArrayLike, rows: Rows) -> NDArray[np.intp]:
    """The fold of each kept row, numbered from 0."""
    given = column(folds, "folds", rows.n_given)[rows.index]
    known, numbers = np.unique(given, return_inverse=True)
    if len(known) < 2:
        raise ValueError("folds has a single fold; what is judged on it has no other rows")
    return numbers.reshape(-1)


def deal_folds(rows: Rows, n_folds: int, seed: int) -> NDArray[np.intp]:
    """Deal the rows of each class over the folds, at random and evenly."""
    rng = np.random.RandomState([seed, 5])
    folds = np.empty(len(rows), dtype=np.intp)
    for side in (rows.positive, ~rows.positive):
        folds[rng.permutation(np.flatnonzero(side))] = np.arange(side.sum()) % n_folds
    return folds


def column(values: ArrayLike, name: str, n: int) -> NDArray[Any]:
    """One value a row, or an error that says what was given."""
    array = np.asarray(values)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}, but vote has {n} rows")
    return array
