"""Votes of K voters on n labelled rows: their moments by fold, and their vote on each row.

Votes on two classes are signed: int8, +1 for the positive class and -1 for the other, or
float32 in [-1, 1]. Votes on three or more classes are class numbers (uint8), or shares of
each class (float32, of shape (n, K, C)).

The vote on a row is out of sample: neither voters nor weights depend on the row's label,
which affects the weights in two ways. First, the weights are learned on the row itself; so
each row is given weights learned on the other folds, which takes one more solve of (total -
fold), since moments are additive. Second, voters trained on the row vote its label on its
neighbours too, and if it is wrong there, the weights of the other voters compensate; so the
voters trained on the row are removed, and the others weighted again. With random labels,
the first leak scores well above chance, and the second alone below it (AUC .47 with
balanced classes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ._compat import take_rows
from ._kernels import in_threads, kernel
from .moments import ClassMoments, ClassShares, Moments, OutOfBagMoments
from .unlabeled import Unlabeled, UnlabeledMoments, refine

if TYPE_CHECKING:
    from .weighting import FoldWeights

Numbers = NDArray[np.float64]
Signed = tuple[NDArray[Any], NDArray[np.int8]]
"""Votes, and what they are multiplied with, row by row."""

UNLABELED_ROWS = 1 << 16
"""Number of unlabelled rows voted on at a time."""
BLOCK_ROWS = 1 << 13
"""Number of rows voted on at a time, so that the sums stay in the cache."""
MAX_SWEEPS = 10
"""Maximum sweeps of coordinate descent over the out-of-bag voters of a row."""
SETTLED = 1e-3
"""Convergence tolerance for the change of a weight (weights sum to about 1)."""


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
        weights learned on earlier folds; see ``damvi.folds.folds_to_learn_from``.
    n_classes, n_folds : int

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

    n_classes: int = field(init=False)
    n_folds: int = field(init=False)

    in_memory: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_classes", len(self.class_weight))
        object.__setattr__(self, "n_folds", _n_folds(self.folds))

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
        parts = (rows[start : start + UNLABELED_ROWS] for start in rows[::UNLABELED_ROWS])
        blocks = (
            voters.votes(take_rows(unlabeled.X, np.array(part)), n_jobs) for part in parts
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
# or wrong, by how many votes the true class of a row is ahead in the plain vote, and which
# shape a weighted vote has.


class Signs:
    """On two classes: (n, K), from -1 to 1, for the positive one."""

    def vote_shape(self, n_rows: int, n_classes: int) -> tuple[int, ...]:
        return (n_rows,)

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

    def vote_shape(self, n_rows: int, n_classes: int) -> tuple[int, ...]:
        return (n_rows, n_classes)

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

    def vote_shape(self, n_rows: int, n_classes: int) -> tuple[int, ...]:
        return (n_rows, n_classes)

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
    """Factor of a row's weight in step 2, given the margin of the plain vote.

    It applies to positives, and with three or more classes to the rows of those that
    ``Labels.reweighted`` names.
    """
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


def _n_folds(folds: NDArray[Any]) -> int:
    return int(folds.max()) + 1 if len(folds) else 0


class _Rows(NamedTuple):
    votes: NDArray[Any]
    signs: NDArray[np.int8]
    targets: NDArray[Any]
    folds: NDArray[Any]
    """-1 for rows to skip."""
    counted: NDArray[np.bool_] | None


# The vote on each row.


def out_of_fold_vote(
    votes: NDArray[Any],
    folds: NDArray[Any],
    fold_weights: Sequence[FoldWeights],
    n_classes: int,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Vote on each row with the weights of its fold; no voter was trained on the row.

    With two classes, votes are signed (n, K) and the vote is (n,). With more, votes are
    class numbers (n, K) or shares (n, K, C), and the vote is (n, C).
    """
    kind = kind_of(votes)
    kernels = KERNELS[kind]
    weights = np.stack([fold.weights for fold in fold_weights], axis=1)
    weights = weights / weights.sum(axis=0)
    vote, asked = np.zeros(kind.vote_shape(len(votes), n_classes)), _asked(weights)
    calls = (
        partial(kernels.by_fold, votes, folds, weights, asked, start, stop, vote)
        for start, stop in _blocks(len(votes))
    )
    for _ in in_threads(calls, n_jobs):
        pass
    return vote


def out_of_bag_vote(
    votes: NDArray[Any],
    out_of_bag: NDArray[np.uint8],
    folds: NDArray[Any],
    fold_weights: Sequence[FoldWeights],
    n_classes: int,
    n_jobs: int | None = None,
    n_rows: int | None = None,
) -> NDArray[np.float64]:
    """Vote on each row by out-of-bag voters, with weights that do not know its label.

    ``out_of_bag`` has one bit for each voter and row (see :func:`numpy.packbits`). The vote
    is NaN if no voter is out of bag. The voters trained on a row are left out, and the
    weights of the others are adapted (``weigh_without``) unless rows outnumber voters
    by far. ``n_rows`` is the number of rows that the weights were learned from, if more
    than are given here. For the rest, see :func:`out_of_fold_vote`.
    """
    kind = kind_of(votes)
    kernels = KERNELS[kind]
    n, n_voters = votes.shape
    # The influence of one row on the weights vanishes as rows outnumber voters.
    sweeps = min(MAX_SWEEPS, round(200 * n_voters / (n_rows or n)))
    vote, rows = np.zeros(kind.vote_shape(n, n_classes)), np.arange(n)
    if sweeps == 0:
        # Only leave out voters trained on the row; NaN if no weight remains.
        weights = np.stack([fold.weights for fold in fold_weights], axis=1)
        mass = np.zeros(n)
        settings = votes, out_of_bag, folds, weights, _asked(weights)
        calls = (
            partial(kernels.out_of_bag, *settings, start, stop, vote, mass)
            for start, stop in _blocks(n)
        )
        for _ in in_threads(calls, n_jobs):
            pass
        mass[mass <= 0] = np.nan
        by_class = np.atleast_2d(vote.T)
        by_class /= mass
        rows = np.flatnonzero(np.isnan(by_class[0]))
    else:
        vote.fill(np.nan)
    if len(rows):  # each of them gets its own weights
        judge = (
            partial(
                kernels.without,
                rows[folds[rows] == number],
                votes,
                out_of_bag,
                fold.weights,
                fold.m,
                fold.M,
                sweeps,
                vote,
            )
            for number, fold in enumerate(fold_weights)
        )
        for _ in in_threads(judge, n_jobs):
            pass
    return vote


def _asked(weights: NDArray[np.float64]) -> NDArray[np.intp]:
    """Voters with a positive weight in some fold."""
    return np.flatnonzero(weights.any(axis=1))


def _blocks(n: int) -> list[tuple[int, int]]:
    return [(start, min(start + BLOCK_ROWS, n)) for start in range(0, n, BLOCK_ROWS)]


# The kernels, one for each kind of votes in :func:`out_of_fold_vote`.


@kernel
def vote_by_fold(
    votes: Any, folds: Any, weights: Any, asked: Any, start: Any, stop: Any, vote: Any
) -> None:
    """Sum the votes of the voters ``asked``; ``weights`` is (K, folds), ``vote`` zeros."""
    for k in asked:
        for i in range(start, stop):
            vote[i] += weights[k, folds[i]] * votes[i, k]


@kernel
def class_vote_by_fold(
    votes: Any, folds: Any, weights: Any, asked: Any, start: Any, stop: Any, vote: Any
) -> None:
    """As :func:`vote_by_fold`, for votes that are class numbers; ``vote`` is (n, C)."""
    for k in asked:
        for i in range(start, stop):
            vote[i, votes[i, k]] += weights[k, folds[i]]


@kernel
def share_vote_by_fold(
    votes: Any, folds: Any, weights: Any, asked: Any, start: Any, stop: Any, vote: Any
) -> None:
    """As :func:`class_vote_by_fold`, for votes that are shares (n, K, C)."""
    for i in range(start, stop):
        for k in asked:
            weight = weights[k, folds[i]]
            for c in range(vote.shape[1]):
                vote[i, c] += weight * votes[i, k, c]


@kernel
def out_of_bag_vote_by_fold(
    votes: Any,
    out_of_bag: Any,
    folds: Any,
    weights: Any,
    asked: Any,
    start: Any,
    stop: Any,
    vote: Any,
    mass: Any,
) -> None:
    """Sum the votes of voters not trained on the row, and their weights in ``mass``.

    ``start`` must be a multiple of 8.
    """
    for k in asked:
        own = weights[k]
        for place in range(start >> 3, stop >> 3):
            byte = out_of_bag[k, place]
            for j in range(8):
                i = 8 * place + j
                weight = own[folds[i]] * ((byte >> (7 - j)) & 1)
                vote[i] += weight * votes[i, k]
                mass[i] += weight
        for i in range(8 * (stop >> 3), stop):
            weight = own[folds[i]] * ((out_of_bag[k, i >> 3] >> (7 - (i & 7))) & 1)
            vote[i] += weight * votes[i, k]
            mass[i] += weight


@kernel
def out_of_bag_class_vote_by_fold(
    votes: Any,
    out_of_bag: Any,
    folds: Any,
    weights: Any,
    asked: Any,
    start: Any,
    stop: Any,
    vote: Any,
    mass: Any,
) -> None:
    """As :func:`out_of_bag_vote_by_fold`, for class numbers; ``vote`` is (n, C)."""
    for k in asked:
        own = weights[k]
        for place in range(start >> 3, (stop + 7) >> 3):
            byte = out_of_bag[k, place]
            for j in range(8):
                i = 8 * place + j
                if i < stop:
                    weight = own[folds[i]] * ((byte >> (7 - j)) & 1)
                    vote[i, votes[i, k]] += weight
                    mass[i] += weight


@kernel
def weigh_without(
    row: Any,
    out_of_bag: Any,
    start: Any,
    m: Any,
    M: Any,
    sweeps: Any,
    w: Any,
    gradient: Any,
    asked: Any,
) -> Any:
    """Minimise w'Mw - 2 m'w over w >= 0 on the voters that were not trained on the row.

    ``out_of_bag`` has one bit for each voter and row (see :func:`numpy.packbits`). The
    optimum over all voters, ``start``, is close; coordinate descent from there sets one
    weight at a time to its best value, until the weights converge or for ``sweeps`` sweeps.
    The voters are written to ``asked`` and their weights to ``w``; these are equal if no
    voter is better than chance. Returns the number of voters and the sum of their weights.
    """
    n_voters = len(m)
    n_asked = 0
    for j in range(n_voters):
        gradient[j], w[j] = m[j], 0.0
        if (out_of_bag[j, row >> 3] >> (7 - (row & 7))) & 1:
            asked[n_asked] = j
            n_asked += 1
    for i in range(n_asked):
        j = asked[i]
        w[j] = start[j]
        if sweeps > 0 and w[j] > 0:
            for k in range(n_voters):
                gradient[k] -= M[j, k] * w[j]
    for _ in range(sweeps):
        furthest = 0.0
        for i in range(n_asked):
            j = asked[i]
            if w[j] == 0 and gradient[j] <= 0:
                continue
            step = max(gradient[j] / M[j, j], -w[j])
            w[j] += step
            furthest = max(furthest, abs(step))
            for k in range(n_voters):
                gradient[k] -= M[j, k] * step
        if furthest < SETTLED:
            break
    weight_sum = 0.0
    for i in range(n_asked):
        weight_sum += w[asked[i]]
    if weight_sum == 0:  # none of them is better than chance: the plain vote
        for i in range(n_asked):
            w[asked[i]] = 1.0
        weight_sum = float(n_asked)
    return n_asked, weight_sum


@kernel
def vote_without(
    rows: Any,
    votes: Any,
    out_of_bag: Any,
    start: Any,
    m: Any,
    M: Any,
    sweeps: Any,
    vote: Any,
) -> None:
    """Vote on each row with its own weights; see :func:`weigh_without`."""
    w, gradient, asked = np.empty(len(m)), np.empty(len(m)), np.empty(len(m), np.int64)
    for row in rows:
        n_asked, weight_sum = weigh_without(
            row, out_of_bag, start, m, M, sweeps, w, gradient, asked
        )
        if weight_sum > 0:
            total = 0.0
            for i in range(n_asked):
                total += w[asked[i]] * votes[row, asked[i]]
            vote[row] = total / weight_sum


@kernel
def class_vote_without(
    rows: Any,
    votes: Any,
    out_of_bag: Any,
    start: Any,
    m: Any,
    M: Any,
    sweeps: Any,
    vote: Any,
) -> None:
    """As :func:`vote_without`, for votes that are class numbers; ``vote`` is (n, C)."""
    w, gradient, asked = np.empty(len(m)), np.empty(len(m)), np.empty(len(m), np.int64)
    for row in rows:
        n_asked, weight_sum = weigh_without(
            row, out_of_bag, start, m, M, sweeps, w, gradient, asked
        )
        if weight_sum > 0:
            vote[row] = 0.0
            for i in range(n_asked):
                vote[row, votes[row, asked[i]]] += w[asked[i]] / weight_sum


class Kernels(NamedTuple):
    """What adds up votes of one kind."""

    by_fold: Any
    out_of_bag: Any
    without: Any


KERNELS = {
    SIGNS: Kernels(vote_by_fold, out_of_bag_vote_by_fold, vote_without),
    CLASS_NUMBERS: Kernels(
        class_vote_by_fold, out_of_bag_class_vote_by_fold, class_vote_without
    ),
    SHARES: Kernels(share_vote_by_fold, None, None),
}
"""A model that votes by shares is out of fold."""
