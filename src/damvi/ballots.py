"""The votes on labelled rows, and their moments by class and fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .crossfit import FoldWeights, out_of_bag_vote, out_of_fold_vote
from .moments import Moments
from .reweighting import emphasis, uniform_vote
from .unlabelled.crowd import Crowd, RefinedTally
from .unseen_moments import UnseenMoments, nearest_semi_definite


@dataclass(frozen=True, eq=False)
class Tally:
    """The moments of some rows, class by class. Tallies add and subtract.

    Of three or more classes the rarer ones are the positives, all others the negatives,
    and a vote is +1 where it is right.
    """

    negatives: Any
    positives: Any
    n_classes: int = 2

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.negatives + other.negatives,
            self.positives + other.positives,
            self.n_classes,
        )

    def __sub__(self, other: Tally) -> Tally:
        return Tally(
            self.negatives - other.negatives,
            self.positives - other.positives,
            self.n_classes,
        )

    def moments(self) -> Moments:
        """Of all classes, as the C-bound takes them."""
        return self._at(2)

    def moments_to_learn(self) -> Moments:
        """As a solver takes them: better than a guess among all classes counts for."""
        return self._at(self.n_classes)

    def _at(self, omega: int) -> Moments:
        both = self.negatives + self.positives
        return both.at(omega) if isinstance(both, Moments) else both.moments(omega)

    def centre(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The mean vote of each voter, and the mean sign of the rows it counts on."""
        # m is a sum of sign * vote, so the votes themselves are m+ less m-.
        up, n_up = _sums_and_rows(self.positives)
        down, n_down = _sums_and_rows(self.negatives)
        rows = np.maximum(n_up + n_down, np.finfo(np.float64).tiny)
        return (up - down) / rows, (n_up - n_down) / rows

    def centred(self) -> Moments:
        """Moments about the means: a constant is fitted along with the weights."""
        votes, signs = self.centre()
        m, M = self.moments().normalised()
        spread = M - np.outer(votes, votes)
        if not isinstance(self.positives, Moments):  # means over different rows
            spread = nearest_semi_definite(spread)
        return Moments(m - signs * votes, spread, 1)


def _sums_and_rows(
    side: Moments | UnseenMoments,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if isinstance(side, Moments):
        return side.m.astype(np.float64), np.full(side.n_voters, float(side.total))
    return side.sums.m.astype(np.float64), np.diag(side.rows.M).astype(np.float64)


class _Positives(NamedTuple):
    votes: NDArray[Any]
    mask: NDArray[np.bool_] | None
    base: NDArray[np.float64] | None
    folds: NDArray[Any]
    plain: NDArray[np.float64]


class Sheet:
    """What all votes on labelled rows have: who has seen which row, and folds."""

    folds: NDArray[Any]
    unseen: NDArray[np.uint8] | None
    only_unseen: bool

    at_hand: ClassVar[bool] = True
    """Whether all votes are in memory."""

    @cached_property
    def mask(self) -> NDArray[np.bool_] | None:
        """Which votes count (n, K), when not all do."""
        if not self.only_unseen or self.unseen is None:
            return None
        n = len(self.folds)
        return np.unpackbits(self.unseen, axis=1, count=n).astype(bool).T

    @property
    def n_folds(self) -> int:
        return int(self.folds.max()) + 1


@dataclass(frozen=True, eq=False)
class Ballots(Sheet):
    """Votes on labelled rows, and what the voters know of these rows.

    Attributes
    ----------
    votes : ndarray of shape (n, K)
        int8 (-1 and +1), or float32 in [-1, 1].
    signs : ndarray of shape (n,)
    base : ndarray of shape (n,) or None
        The rows' own weights.
    folds : ndarray of shape (n,)
        Each row is judged by weights that were learned on the other folds.
    unseen : ndarray of uint8, shape (K, n / 8), or None
        A bit for each voter and row that the voter was not trained on (see
        :func:`numpy.packbits`). None: no voter has seen a row that it votes on.
    only_unseen : bool
        Whether the weights are learned from the votes on unseen rows alone.
    lean : float
        How many negatives a positive counts for when the weights are learned.
    plain : ndarray or None
        The plain vote on the positives, if it is that of other voters than these.
    crowd : Crowd or None
        How the voters agree on unlabelled rows.
    """

    votes: NDArray[Any]
    signs: NDArray[np.int8]
    base: NDArray[np.float64] | None
    folds: NDArray[Any]
    unseen: NDArray[np.uint8] | None = None
    only_unseen: bool = False
    lean: float = 1.0
    plain: NDArray[np.float64] | None = None
    crowd: Crowd | None = None

    n_classes: ClassVar[int] = 2

    @property
    def targets(self) -> NDArray[np.intp]:
        """The number of each row's class; 1 is the positive one."""
        return (self.signs > 0).astype(np.intp)

    def vote_by(
        self, found: Sequence[FoldWeights], n_jobs: int | None
    ) -> NDArray[np.float64]:
        """The vote on each row by its fold's weights and voters that do not know it."""
        if self.unseen is None:
            return out_of_fold_vote(self.votes, self.folds, found, n_jobs)
        return out_of_bag_vote(self.votes, self.unseen, self.folds, found, n_jobs)

    def on_unseen(self) -> Ballots:
        """The votes on labelled rows that the voters do not know, all counting alike."""
        only = self.unseen is not None
        return replace(self, only_unseen=only, lean=1.0, plain=None, crowd=None)

    def take(self, some: NDArray[np.intp]) -> Ballots:
        """The votes of some voters alone."""
        return replace(
            self,
            votes=np.asfortranarray(self.votes[:, some]),
            unseen=None if self.unseen is None else self.unseen[some],
            plain=self._of_positives.plain,
            crowd=None if self.crowd is None else self.crowd.take(some),
        )

    @cached_property
    def negatives(self) -> list[Any]:
        """The moments of the negatives, which no emphasis changes, by fold."""
        return self._moments(self.signs < 0, self.base)

    @cached_property
    def _of_positives(self) -> _Positives:
        """The positives alone, since all that emphasis needs is in them."""
        up = self.signs > 0
        votes = np.ascontiguousarray(self.votes[up])
        mask = None if self.mask is None else self.mask[up]
        return _Positives(
            votes,
            mask,
            None if self.base is None else self.base[up],
            self.folds[up],
            uniform_vote(votes, mask) if self.plain is None else self.plain,
        )

    def tallies(self, strength: float, eta: float = 0.0) -> list[Any]:
        """The moments by fold, leaning on the positives that the plain vote misses.

        ``eta`` is the weight of unlabelled rows in the moments of the negatives.
        """
        positives = self._positives(strength)
        if self.lean != 1:
            positives = [fold * self.lean for fold in positives]
        labelled = [Tally(*both) for both in zip(self.negatives, positives, strict=True)]
        if self.crowd is None or eta == 0:
            return labelled
        return [
            RefinedTally(tally, natural, self.crowd, eta)
            for tally, natural in zip(labelled, self._positives(0.0), strict=True)
        ]

    def _positives(self, strength: float) -> list[Any]:
        """The moments of the positives, by fold."""
        votes, mask, D, folds, plain = self._of_positives
        if strength != 0:
            D = emphasis(plain, strength) * (1.0 if D is None else D)
        settings = np.ones(len(votes), np.int8), D, folds, self.n_folds
        if mask is None:
            return Moments.by_fold(votes, *settings)
        return UnseenMoments.by_fold(votes, mask, *settings)

    def _moments(
        self, taken: NDArray[np.bool_], weights: NDArray[np.float64] | None
    ) -> list[Any]:
        folds = np.where(taken, self.folds, -1)
        settings = self.signs, weights, folds, self.n_folds
        if self.mask is None:
            return Moments.by_fold(self.votes, *settings)
        return UnseenMoments.by_fold(self.votes, self.mask, *settings)
