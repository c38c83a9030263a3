"""Votes of K voters on n labelled rows, and their moments by class and fold.

Votes on two classes are signed: int8, +1 for the positive class and -1 for the other, or
float32 in [-1, 1]. Votes on three or more classes are class numbers (uint8), or shares of
each class (float32, of shape (n, K, C)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ._compat import take_rows
from .moments import ClassMoments, ClassShares, Moments, OutOfBagMoments
from .unlabeled import Unlabeled, UnlabeledMoments, refine

if TYPE_CHECKING:
    from .weighting import FoldWeights

Numbers = NDArray[np.float64]
Signed = tuple[NDArray[Any], NDArray[np.int8]]
"""Votes, and what they are multiplied with, row by row."""

BLOCK_ROWS = 1 << 16
"""Number of unlabelled rows voted on at a time."""


class AnyVotes(Protocol):
    """Interface of votes to steps 2 to 4, in memory or not."""

    @property
    def in_memory(self) -> bool:
        """Whether all votes are in memory."""

    @property
    def n_classes(self) -> int: ...

    @property
    def targets(self) -> NDArray[Any]: ...

    @property
    def sample_weight(self) -> Numbers | None: ...

    @property
    def folds(self) -> NDArray[Any]: ...

    @property
    def n_folds(self) -> int: ...

    @property
    def forward(self) -> bool: ...

    def moments_by_fold(
        self, strength: float, unlabeled_weight: float = 0.0, fit_intercept: bool = False
    ) -> list[ClassMoments]:
        """Moments of each fold, with more weight on missed positives (step 2)."""

    def vote_by(self, found: Sequence[FoldWeights], n_jobs: int | None) -> Numbers:
        """Vote on each row by voters not trained on it, with its fold's weights."""

    def out_of_sample(self) -> AnyVotes:
        """Votes on rows that the voters were not trained on, with equal class weights."""

    def of_class(self, target: int, reweighted: bool) -> AnyVotes:
        """Votes on rows of one class, which step 2 may reweight."""


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes on labelled rows, and which voters were trained on which of these rows.

    Attributes
    ----------
    votes : ndarray of shape (n, K) or (n, K, C)
    targets : ndarray of shape (n,)
        Class numbers of the rows; of two classes, 1 is the positive one.
    folds : ndarray of shape (n,)
        Out-of-sample votes on a fold use weights learned on the other folds. Rows of fold
        -1 have no out-of-sample vote, and their ``votes`` are ignored.
    sample_weight : ndarray of shape (n,) or None
        Sample weights, at most 1.
    out_of_bag : ndarray of uint8, shape (K, n / 8), or None
        One bit for each voter and row, set if the row is not in the voter's sample (see
        :func:`numpy.packbits`). None if voters only vote on rows they were not trained on.
    only_out_of_bag : bool
        Whether the weights are learned from out-of-bag votes alone.
    class_weight : ndarray of shape (C,)
        Weight of a row of each class when the voters' weights are learned.
    reweighted : ndarray of bool, shape (C,)
        The classes whose missed rows gain weight in step 2.
    margin : ndarray or None
        Margin of the plain vote on the rows of these classes, if other voters count in it.
    unlabeled : UnlabeledMoments or None
        Agreement of the voters on unlabelled rows.
    forward : bool
        Whether the folds are in time order, so that out-of-sample votes on a fold use
        weights learned on earlier folds; see :func:`~damvi.folds.folds_to_learn_from`.

    Examples
    --------
    >>> import numpy as np
    >>> hard = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]], dtype=np.int8)
    >>> votes = Votes(hard, np.array([1, 1, 0, 0]), np.array([0, 1, 0, 1]))
    >>> first, second = votes.moments_by_fold(strength=0)
    >>> (first + second).moments().gibbs_risk([0.5, 0.5])
    0.25
    """

    votes: NDArray[Any]
    targets: NDArray[Any]
    folds: NDArray[Any]
    sample_weight: Numbers | None = None
    out_of_bag: NDArray[np.uint8] | None = None
    only_out_of_bag: bool = False
    class_weight: Numbers = field(default_factory=lambda: np.ones(2))
    reweighted: NDArray[np.bool_] = field(default_factory=lambda: np.array([False, True]))
    margin: Numbers | None = None
    unlabeled: UnlabeledMoments | None = None
    forward: bool = False

    in_memory: ClassVar[bool] = True

    @property
    def n_classes(self) -> int:
        return len(self.class_weight)

    @property
    def n_voters(self) -> int:
        return self.votes.shape[1]

    @property
    def n_folds(self) -> int:
        return int(self.folds.max()) + 1

    @cached_property
    def counted(self) -> NDArray[np.bool_] | None:
        """Mask (n, K) of the votes that count; None if all do."""
        if not self.only_out_of_bag or self.out_of_bag is None:
            return None
        n = len(self.folds)
        return np.unpackbits(self.out_of_bag, axis=1, count=n).astype(bool).T

    def take(self, voters: NDArray[np.intp]) -> Votes:
        """Votes of these voters alone."""
        votes = self.votes[:, voters]
        return replace(
            self,
            votes=by_voter(votes),
            out_of_bag=None if self.out_of_bag is None else self.out_of_bag[voters],
            margin=self._margin,
            unlabeled=None if self.unlabeled is None else self.unlabeled.take(voters),
        )

    def out_of_sample(self) -> Votes:
        """Votes on rows that the voters were not trained on, with equal class weights."""
        return replace(
            self,
            only_out_of_bag=self.out_of_bag is not None,
            class_weight=np.ones(self.n_classes),
            margin=None,
            unlabeled=None,
        )

    def of_class(self, target: int, reweighted: bool) -> Votes:
        """Votes on rows of one class, which step 2 may reweight.

        Trailing folds without such rows have no moments.
        """
        leaning = self.reweighted.copy()
        leaning[target] |= reweighted
        folds = np.where(self.targets == target, self.folds, -1)
        return replace(self, folds=folds, reweighted=leaning)

    def with_unlabeled(
        self, voters: Any, unlabeled: Unlabeled | None, n_jobs: int | None
    ) -> Votes:
        """Add the votes on unlabelled rows, if there are any.

        The weights are then learned from out-of-bag votes alone: next to votes on new rows,
        those on training rows would be too optimistic.
        """
        if unlabeled is None:
            return self
        rows = range(unlabeled.X.shape[0])
        blocks = (
            voters.votes(
                take_rows(unlabeled.X, np.array(rows[start : start + BLOCK_ROWS])), n_jobs
            )
            for start in rows[::BLOCK_ROWS]
        )
        return replace(
            self,
            only_out_of_bag=self.out_of_bag is not None,
            unlabeled=UnlabeledMoments.of(blocks, unlabeled.positive_rate),
        )

    def fit_succeeded(self) -> None:
        """Nothing to clean up after a fit in memory."""

    def vote_by(self, found: Sequence[FoldWeights], n_jobs: int | None) -> Numbers:
        """Vote on each row by voters not trained on it, with its fold's weights."""
        from .crossfit import out_of_bag_vote, out_of_fold_vote  # which imports this

        settings = self.folds, found, self.n_classes, n_jobs
        if self.out_of_bag is None:
            vote = out_of_fold_vote(self.votes, *settings)
        else:
            vote = out_of_bag_vote(self.votes, self.out_of_bag, *settings)
        vote[self.folds < 0] = np.nan
        return vote

    def moments_by_fold(
        self, strength: float, unlabeled_weight: float = 0.0, fit_intercept: bool = False
    ) -> list[ClassMoments]:
        """Moments of each fold, with more weight on missed positives (step 2).

        With ``fit_intercept``, they include the sums for central moments.
        """
        positives = self._reweighted_moments(strength, self.class_weight)
        shares: list[Any] = [None] * self.n_folds
        if fit_intercept and self.n_classes > 2:
            shares = self._class_shares(strength)
        labelled = [
            ClassMoments(negatives, reweighted, self.n_classes, voted)
            for negatives, reweighted, voted in zip(
                self._other_moments, positives, shares, strict=True
            )
        ]
        if self.unlabeled is None or unlabeled_weight == 0:
            return labelled
        natural = self._reweighted_moments(0.0, np.ones(self.n_classes))
        return refine(labelled, natural, self.unlabeled, unlabeled_weight)

    @cached_property
    def _is_reweighted(self) -> NDArray[np.bool_]:
        """Mask of the rows of classes that step 2 reweights."""
        return self.reweighted[self.targets]

    @cached_property
    def _signed(self) -> Signed:
        return signed_votes(self.votes, self.targets)

    @cached_property
    def _margin(self) -> Numbers:
        """Margin of the plain vote on the rows of classes that step 2 reweights."""
        if self.margin is not None:
            return self.margin
        rows = self._is_reweighted
        counted = None if self.counted is None else self.counted[rows]
        votes = np.ascontiguousarray(self.votes[rows])
        return plain_margin(votes, self.targets[rows], self.n_classes, counted)

    @cached_property
    def _other_moments(self) -> list[Any]:
        """Moments by fold of the rows that step 2 does not reweight."""
        folds = np.where(self._is_reweighted, -1, self.folds)
        rows = _Rows(*self._signed, self.targets, folds, self.counted)
        return self._moments(rows, self.sample_weight, self.class_weight)

    @cached_property
    def _reweighted_rows(self) -> _Rows:
        """The rows that step 2 reweights, copied since they are few."""
        rows, (votes, signs) = np.flatnonzero(self._is_reweighted), self._signed
        counted = None if self.counted is None else self.counted[rows]
        votes = np.ascontiguousarray(votes[rows])
        return _Rows(votes, signs[rows], self.targets[rows], self.folds[rows], counted)

    def _reweighted_moments(self, strength: float, class_weight: Numbers) -> list[Any]:
        D = self.sample_weight
        D = None if D is None else D[self._is_reweighted]
        if strength != 0:
            D = emphasis(self._margin, strength) * (1.0 if D is None else D)
        return self._moments(self._reweighted_rows, D, class_weight)

    def _class_shares(self, strength: float) -> list[ClassShares]:
        """Shares of the vote for each of three or more classes, by fold."""
        D = np.ones(len(self.targets)) if self.sample_weight is None else self.sample_weight
        if strength != 0:
            D = D.copy()
            D[self._is_reweighted] *= emphasis(self._margin, strength)
        own = self.class_weight[self.targets]
        found = []
        for fold in range(self.n_folds):
            parts = []
            for weight in np.unique(own).tolist():
                rows = np.flatnonzero((self.folds == fold) & (own == weight))
                counted = None if self.counted is None else self.counted[rows]
                some = self.votes[rows], self.targets[rows], self.n_classes, D[rows]
                part = ClassShares.of(*some, counted)
                parts.append(part if weight == 1 else part * weight)
            found.append(sum(parts[1:], start=parts[0]))
        return found

    def _moments(self, rows: _Rows, D: Numbers | None, class_weight: Numbers) -> list[Any]:
        """Moments by fold; classes of equal weight are summed together."""
        own = class_weight[rows.targets]
        taken = own[rows.folds >= 0]
        parts = []
        for weight in np.unique(taken if len(taken) else own[:1]).tolist() or [1.0]:
            folds = np.where(own == weight, rows.folds, -1)
            part = self._plain_moments(rows._replace(folds=folds), D)
            parts.append(part if weight == 1 else [fold * weight for fold in part])
        return [sum(fold[1:], start=fold[0]) for fold in zip(*parts, strict=True)]

    def _plain_moments(self, rows: _Rows, D: Numbers | None) -> list[Any]:
        settings = rows.signs, D, rows.folds, self.n_folds
        if rows.counted is None:
            return Moments.by_fold(rows.votes, *settings)
        return OutOfBagMoments.by_fold(rows.votes, rows.counted, *settings)


# The kinds of votes. Each says how it lies in memory, how it becomes signs that are right
# or wrong, and by how many votes the true class of a row is ahead in the plain vote.


class Signs:
    """On two classes: (n, K), from -1 to 1, for the positive one."""

    def by_voter(self, votes: NDArray[Any]) -> NDArray[Any]:
        return np.asfortranarray(votes)

    def signed(self, votes: NDArray[Any], targets: NDArray[Any]) -> Signed:
        return votes, np.where(targets == 1, np.int8(1), np.int8(-1))

    def lead(
        self, votes: NDArray[Any], targets: NDArray[Any], n_classes: int, counted: Any
    ) -> NDArray[Any]:
        """Of rows of the positive class."""
        dtype = np.int64 if votes.dtype.kind == "i" else np.float64
        taken = votes if counted is None else np.where(counted, votes, 0)
        return np.asarray(taken.sum(axis=1, dtype=dtype))


class ClassNumbers:
    """On three or more classes: (n, K), the number of the one voted for."""

    def by_voter(self, votes: NDArray[Any]) -> NDArray[Any]:
        return np.asfortranarray(votes)

    def signed(self, votes: NDArray[Any], targets: NDArray[Any]) -> Signed:
        named = votes == targets[:, np.newaxis]
        own = np.where(named, np.int8(1), np.int8(-1))
        return np.asfortranarray(own), np.ones(len(targets), np.int8)

    def lead(
        self, votes: NDArray[Any], targets: NDArray[Any], n_classes: int, counted: Any
    ) -> NDArray[Any]:
        vote = np.empty((len(votes), n_classes))
        for c in range(n_classes):
            named = votes == c
            vote[:, c] = (named if counted is None else named & counted).sum(axis=1)
        return _lead(vote, targets)


class Shares:
    """On three or more classes: (n, K, C), a share for each."""

    def by_voter(self, votes: NDArray[Any]) -> NDArray[Any]:
        return votes

    def signed(self, votes: NDArray[Any], targets: NDArray[Any]) -> Signed:
        own = votes[np.arange(len(targets)), :, targets]
        return np.asfortranarray(2 * own - 1), np.ones(len(targets), np.int8)

    def lead(
        self, votes: NDArray[Any], targets: NDArray[Any], n_classes: int, counted: Any
    ) -> NDArray[Any]:
        return _lead(votes.sum(axis=1, dtype=np.float64), targets)


def _lead(vote: Numbers, targets: NDArray[Any]) -> Numbers:
    """What the true class has (n, C) more than the best of the others."""
    rows, others = np.arange(len(vote)), vote.copy()
    others[rows, targets] = -np.inf
    return np.asarray(vote[rows, targets] - others.max(axis=1))


SIGNS, CLASS_NUMBERS, SHARES = Signs(), ClassNumbers(), Shares()


def kind_of(votes: NDArray[Any]) -> Signs | ClassNumbers | Shares:
    """Which of the three kinds of votes these are."""
    if votes.ndim == 3:
        return SHARES
    return CLASS_NUMBERS if votes.dtype.kind == "u" else SIGNS


def by_voter(votes: NDArray[Any]) -> NDArray[Any]:
    """Votes (n, K) voter by voter in memory; shares (n, K, C) as they are, row by row."""
    return kind_of(votes).by_voter(votes)


def signed_votes(votes: NDArray[Any], targets: NDArray[Any]) -> Signed:
    """Votes and signs whose product is +1 where a vote is right, -1 where it is wrong.

    A share p for the true class becomes 2p - 1.
    """
    return kind_of(votes).signed(votes, targets)


def emphasis(margin: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
    """Factor of a positive's weight in step 2, given the margin of the plain vote."""
    factor: NDArray[np.float64] = np.exp(-strength * margin)
    return factor


def plain_margin(
    votes: NDArray[Any],
    targets: NDArray[Any],
    n_classes: int,
    counted: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Margin of the plain vote on rows of the classes that step 2 reweights.

    ``votes`` are signed votes on positives for two classes, otherwise class numbers (n, K)
    or shares (n, K, C). ``counted`` (n, K) masks the votes that count; the margin is 0 if
    none does. Hard votes are summed exactly.

    Examples
    --------
    >>> import numpy as np
    >>> plain_margin(np.array([[1, 1, -1]], dtype=np.int8), np.array([1]), 2)
    array([0.33333333])
    >>> plain_margin(np.array([[2, 2, 0]], dtype=np.uint8), np.array([2]), 3)
    array([0.33333333])
    """
    n_counted: Any = votes.shape[1]
    if counted is not None:
        n_counted = np.maximum(counted.sum(axis=1), 1)
    lead = kind_of(votes).lead(votes, targets, n_classes, counted)
    return np.asarray(lead / n_counted)


class _Rows(NamedTuple):
    votes: NDArray[Any]
    signs: NDArray[np.int8]
    targets: NDArray[Any]
    folds: NDArray[Any]
    """-1 for rows to skip."""
    counted: NDArray[np.bool_] | None
