"""The rows that decisions are learned on, checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels import vote_columns, vote_shape

Number = NDArray[np.float64]
"""One number, or many."""
Classes = NDArray[np.intp]
"""Numbers of classes."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Votes that count: out of sample (not NaN) and of a weight above 0.

    Attributes
    ----------
    index : ndarray of shape (n_kept,)
        Where the rows are among those given.
    vote : ndarray of shape (n_kept,), or (n_kept, C) for three or more classes
    targets : ndarray of shape (n_kept,)
        The number of each row's class; of two classes, 1 is the positive one.
    weight : ndarray of shape (n_kept,)
        Divided by a power of 2, which changes no ratio and no tie, so that sums stay
        finite.
    n_given : int
    """

    index: Classes
    vote: Number
    targets: Classes
    weight: Number
    n_given: int

    def __len__(self) -> int:
        return len(self.vote)

    @property
    def n_classes(self) -> int:
        return len(vote_columns(self.vote)[2])

    @cached_property
    def positive(self) -> NDArray[np.bool_]:
        return self.targets == 1

    @cached_property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.weight.sum())

    def take(self, part: NDArray[Any]) -> Rows:
        """Some of the rows, by a mask or by their places among those kept."""
        index, weight = self.index[part], self.weight[part]
        return Rows(index, self.vote[part], self.targets[part], weight, self.n_given)

    def against_the_rest(self) -> list[Rows]:
        """For each class that is looked for, the rows with a vote in [-1, 1] for it."""
        if self.n_classes == 2:
            return [self]
        return [
            replace(self, vote=2 * share - 1, targets=(self.targets == c).astype(np.intp))
            for c, share in enumerate(self.vote.T)
        ]


def read_rows(vote: ArrayLike, targets: ArrayLike, sample_weight: ArrayLike | None) -> Rows:
    """Check what was given, and keep the rows that count."""
    votes = np.asarray(vote, dtype=np.float64)
    columns, _, classes = vote_columns(votes)
    if votes.shape != vote_shape(len(columns), len(classes)):
        raise ValueError(
            f"vote has shape {votes.shape}; give one number a row (two classes), or one "
            f"for each of three or more classes"
        )
    if np.isinf(votes).any():
        raise ValueError("vote holds infinities; NaN is for rows that have no vote")
    missing = np.isnan(columns).any(axis=1)
    numbers = _read_targets(targets, len(votes), len(classes))
    weight = np.ones(len(votes))
    if sample_weight is not None:
        weight = _column(sample_weight, "sample_weight", len(votes)).astype(np.float64)
        if not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise ValueError("sample_weight must be finite and not negative")
    index = np.flatnonzero(~missing & (weight > 0))
    if not len(index):
        raise ValueError(
            "no row has both a vote and a weight above 0; votes are NaN where a row was "
            "never out of sample, and more voters or folds leave fewer of those"
        )
    weight = weight[index]
    weight = np.ldexp(weight, -np.frexp(weight.max())[1])
    return Rows(index, votes[index], numbers[index], weight, len(votes))


def _read_targets(targets: ArrayLike, n: int, n_classes: int) -> Classes:
    given = _column(targets, "targets", n)
    with np.errstate(invalid="ignore"):  # NaN is wrong, as what it becomes is
        numbers = given.astype(np.intp)
    wrong = (numbers != given) | (numbers < 0) | (numbers >= n_classes)
    if wrong.any():
        raise ValueError(
            f"targets are the numbers of the classes, 0 to {n_classes - 1}, but "
            f"{given[wrong][0]!r} is among them"
        )
    return numbers


def require_all_classes(rows: Rows) -> None:
    """Refuse rows that lack a class, of which nothing can be learned."""
    lacking = np.flatnonzero(np.bincount(rows.targets, minlength=rows.n_classes) == 0)
    if len(lacking):
        raise ValueError(
            f"none of the {len(rows)} rows that have a vote and a weight is of class "
            f"{lacking[-1]}; all classes are needed"
        )


def read_folds(folds: ArrayLike, rows: Rows) -> Classes:
    """The fold of each kept row, numbered from 0."""
    given = _column(folds, "folds", rows.n_given)[rows.index]
    known, numbers = np.unique(given, return_inverse=True)
    if len(known) < 2:
        raise ValueError("folds has a single fold; what is judged on it has no other rows")
    return numbers.reshape(-1)


def deal_folds(rows: Rows, n_folds: int, seed: int) -> Classes:
    """Deal the rows of each class over the folds, at random and evenly."""
    rng = np.random.RandomState([seed, 5])
    folds = np.empty(len(rows), dtype=np.intp)
    for c in reversed(range(rows.n_classes)):
        own = rng.permutation(np.flatnonzero(rows.targets == c))
        folds[own] = np.arange(len(own)) % n_folds
    return folds


def _column(values: ArrayLike, name: str, n: int) -> NDArray[Any]:
    """One value a row, or an error that says what was given."""
    array = np.asarray(values)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}, but vote has {n} rows")
    return array
