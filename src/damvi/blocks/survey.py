"""The labels of a table, and the weights of its rows, met a part at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from ..census import Census
from ..contest import ManyClasses, TwoClasses, contest_from

Contest = TwoClasses | ManyClasses


@dataclass(frozen=True, eq=False)
class Survey:
    """The labels seen, how often, and the largest weight. Surveys of parts add up."""

    labels: NDArray[Any]
    counts: NDArray[np.intp]
    heaviest: float = 0.0

    @classmethod
    def of(cls, y: NDArray[Any], weights: NDArray[Any] | None, where: str) -> Survey:
        """Of some rows; ``where`` says in an error which they are."""
        gaps = _gaps(y)
        if gaps.any():
            raise ValueError(
                f"{where}: {int(gaps.sum())} of {len(y)} rows have no label; leave them out"
            )
        labels, counts = np.unique(y, return_counts=True)
        if weights is None:
            return cls(labels, counts)
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError(
                f"{where}: some weights are missing, infinite or negative; weights must be "
                f"finite, and 0 or more"
            )
        return cls(labels, counts, float(weights.max(initial=0.0)))

    def __add__(self, other: Survey) -> Survey:
        if not len(self.labels) or not len(other.labels):
            known, heaviest = (self, other)[not len(self.labels)], self.heaviest
            return Survey(known.labels, known.counts, max(heaviest, other.heaviest))
        labels, places = np.unique(
            np.concatenate([self.labels, other.labels]), return_inverse=True
        )
        counts = np.zeros(len(labels), np.intp)
        np.add.at(counts, places, np.concatenate([self.counts, other.counts]))
        return Survey(labels, counts, max(self.heaviest, other.heaviest))

    def contest(self, pos_label: Any) -> Contest:
        """What is voted on."""
        if not len(self.labels):
            raise ValueError("the table has 0 rows; at least one of each class is needed")
        check_classification_targets(self.labels)
        contest: Contest = contest_from(self.labels, self.counts, pos_label)
        return contest

    def scaled(self, weights: NDArray[Any] | None) -> NDArray[np.float64] | None:
        """Weights of some rows, to a maximum of 1 in the whole table."""
        if weights is None:
            return None
        return np.asarray(weights, np.float64) / (self.heaviest or 1.0)


def number(contest: Contest, y: NDArray[Any]) -> NDArray[np.uint8]:
    """The number of each row's class: of two, 1 for the positive one."""
    if isinstance(contest, TwoClasses):
        return (y == contest.pos_label).astype(np.uint8)
    return np.searchsorted(contest.classes, y).astype(np.uint8)


def check_census(contest: Contest, census: Census, weighted: bool) -> None:
    """That all classes have rows that count."""
    if not weighted:
        return
    if not census.units.any():
        raise ValueError("the weights are zero on every row; give some a positive weight")
    if not census.units.all():
        names = contest.classes
        if isinstance(contest, TwoClasses):  # negatives come first in a census
            names = names if contest.pos_label == names[1] else names[::-1]
        name = names.tolist()[int(census.units.argmin())]
        raise ValueError(
            f"the weights leave nothing of class {name!r}: on every row of it they are 0, "
            f"or below 2**-31 of the largest; give one a weight that counts, or leave "
            f"these rows out"
        )


def _gaps(y: NDArray[Any]) -> NDArray[np.bool_]:
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind == "O":
        return np.array([value is None or value != value for value in y.tolist()], np.bool_)
    return np.zeros(len(y), np.bool_)
