"""The votes on labelled rows of three or more classes, and their moments by fold.

To the C-bound it only matters whether a vote is right: with c = +1 for right and -1 for
wrong (2p - 1 where a voter gives the true class the share p), c is sign times vote when
there are two classes, and all that follows is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .ballots import Sheet, Tally
from .crossfit import FoldWeights, out_of_bag_vote, out_of_fold_vote
from .moments import Moments
from .reweighting import class_margin, emphasis, uniform_class_vote
from .unseen_moments import UnseenMoments

Weights = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassBallots(Sheet):
    """Votes on labelled rows, and what the voters know of these rows.

    Attributes
    ----------
    votes : ndarray of shape (n, K) or (n, K, C)
        Numbers of classes (uint8), or shares of them (float32).
    labels : ndarray of shape (n,)
        The number of each row's class.
    base, folds, unseen, only_unseen
        As in :class:`~damvi.ballots.Ballots`.
    rare : ndarray of bool, shape (C,)
        The classes whose missed rows are leaned on.
    lean : ndarray of shape (C,)
        What a row of each class counts for when the weights are learned.
    plain : ndarray or None
        The margin of the plain vote on the rows of rare classes, if it is that of other
        voters than these.
    """

    votes: NDArray[Any]
    labels: NDArray[np.intp]
    base: Weights | None
    folds: NDArray[Any]
    unseen: NDArray[np.uint8] | None
    only_unseen: bool
    rare: NDArray[np.bool_]
    lean: Weights
    plain: Weights | None = None

    @property
    def targets(self) -> NDArray[np.intp]:
        return self.labels

    @property
    def n_classes(self) -> int:
        return len(self.rare)

    @cached_property
    def right(self) -> NDArray[Any]:
        """c, (n, K): +1 where a vote is right and -1 where it is wrong, or in between."""
        if self.votes.ndim == 3:
            own = self.votes[np.arange(len(self.labels)), :, self.labels]
            return np.asfortranarray(2 * own - 1)
        named = self.votes == self.labels[:, np.newaxis]
        return np.asfortranarray(np.where(named, np.int8(1), np.int8(-1)))

    def take(self, some: NDArray[np.intp]) -> ClassBallots:
        """The votes of some voters alone."""
        return replace(
            self,
            votes=self.votes[:, some],
            unseen=None if self.unseen is None else self.unseen[some],
            plain=self._margin,
        )

    def vote_by(self, found: Sequence[FoldWeights], n_jobs: int | None) -> Weights:
        """The vote (n, C) on each row by its fold's weights, and voters blind to it."""
        settings = self.folds, found, n_jobs, self.n_classes
        if self.unseen is None:
            return out_of_fold_vote(self.votes, *settings)
        return out_of_bag_vote(self.votes, self.unseen, *settings)

    def tallies(self, strength: float, eta: float = 0.0) -> list[Tally]:
        """The moments by fold, leaning on rare rows that the plain vote misses.

        ``eta`` is that of :class:`~damvi.ballots.Ballots`; no unlabelled rows come here.
        """
        D = self.base
        if strength != 0:
            D = np.ones(len(self.labels)) if D is None else D.copy()
            D[self._is_rare] *= emphasis(self._margin, strength)
        rare = self._moments(self._is_rare, D)
        pairs = zip(self._of_the_others, rare, strict=True)
        return [Tally(*both, self.n_classes) for both in pairs]

    @cached_property
    def _is_rare(self) -> NDArray[np.bool_]:
        return self.rare[self.labels]

    @cached_property
    def _of_the_others(self) -> list[Any]:
        """The moments of the frequent classes, which no emphasis changes, by fold."""
        return self._moments(~self._is_rare, self.base)

    @cached_property
    def _margin(self) -> Weights:
        if self.plain is not None:
            return self.plain
        some = self._is_rare
        mask = None if self.mask is None else self.mask[some]
        votes = self.votes[some]
        # Whole numbers before the division, so that it is the binary one bit for bit.
        margin = class_margin(
            uniform_class_vote(votes, self.n_classes, mask), self.labels[some]
        )
        counted = votes.shape[1] if mask is None else np.maximum(mask.sum(axis=1), 1)
        return margin / counted

    def _moments(self, some: NDArray[np.bool_], D: Weights | None) -> list[Any]:
        """By fold, of some rows; those of classes that lean alike are added up at once."""
        lean = self.lean[self.labels]
        found = [
            self._plain_moments(some & (lean == value), D, float(value))
            for value in np.unique(lean[some] if some.any() else lean[:1])
        ]
        return [sum(fold[1:], start=fold[0]) for fold in zip(*found, strict=True)]

    def _plain_moments(
        self, some: NDArray[np.bool_], D: Weights | None, factor: float
    ) -> list[Any]:
        rows = np.flatnonzero(some)
        votes = self.right[rows]
        ones = np.ones(len(rows), np.int8)
        settings = ones, None if D is None else D[rows], self.folds[rows], self.n_folds
        found: list[Any] = (
            Moments.by_fold(votes, *settings)
            if self.mask is None
            else UnseenMoments.by_fold(votes, self.mask[rows], *settings)
        )
        return found if factor == 1 else [fold * factor for fold in found]
