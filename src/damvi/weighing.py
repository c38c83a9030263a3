"""Steps 2 and 3 of DAMVI on any votes: emphasis, weights, and the vote on unseen rows.

Nothing here trains a voter, so other settings on the same votes cost milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .crossfit import FoldWeights, crossfit_weights, out_of_bag_vote
from .moments import Moments
from .reweighting import emphasize_missed_positives
from .shrinkage import shrink
from .solvers import solve
from .unseen_moments import UnseenMoments


@dataclass(frozen=True, eq=False)
class Ballots:
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
    """

    votes: NDArray[Any]
    signs: NDArray[np.int8]
    base: NDArray[np.float64] | None
    folds: NDArray[Any]
    unseen: NDArray[np.uint8] | None = None
    only_unseen: bool = False

    @cached_property
    def mask(self) -> NDArray[np.bool_] | None:
        """Which votes count (n, K), when not all do."""
        if not self.only_unseen or self.unseen is None:
            return None
        n = len(self.signs)
        return np.unpackbits(self.unseen, axis=1, count=n).astype(bool).T

    @property
    def n_folds(self) -> int:
        return int(self.folds.max()) + 1

    @cached_property
    def negatives(self) -> list[Any]:
        """The moments of the negatives, which no emphasis changes, by fold."""
        return self.moments(self.signs < 0, self.base)

    def moments(
        self, taken: NDArray[np.bool_], weights: NDArray[np.float64] | None
    ) -> list[Any]:
        """The moments of the rows ``taken``, by fold."""
        folds = np.where(taken, self.folds, -1)
        settings = self.signs, weights, folds, self.n_folds
        if self.mask is None:
            return Moments.by_fold(self.votes, *settings)
        return UnseenMoments.by_fold(self.votes, self.mask, *settings)


@dataclass(frozen=True, eq=False)
class Weighing:
    """The weights, what they promise, and the vote that they give on unseen rows."""

    weights: NDArray[np.float64]
    c_bound: float
    gibbs_risk: float
    disagreement: float
    unseen_vote: NDArray[np.float64]


def weigh(
    ballots: Ballots,
    *,
    emphasis: float = 1.0,
    shrinkage: float = 0.0,
    solver: str = "exact",
    n_jobs: int | None = None,
) -> Weighing:
    """Weight the voters by their votes.

    Parameters
    ----------
    ballots : Ballots
    emphasis : float in [0, 1], default=1
        How much to lean on the positives that the plain vote misses: 1 is the paper's
        step 2, 0 leaves it out.
    shrinkage : float in [0, 1), default=0
        How far the weights are drawn towards equal ones.
    solver : {"exact", "slsqp", "uniform"}, default="exact"
    n_jobs : int, optional
    """
    D = emphasize_missed_positives(
        ballots.votes, ballots.signs, ballots.base, emphasis, ballots.mask
    )
    positives = ballots.moments(ballots.signs > 0, D)
    by_fold = [a + b for a, b in zip(ballots.negatives, positives, strict=True)]
    whole = sum(by_fold[1:], start=by_fold[0])
    moments = _settled(whole)
    weights = solve(shrink(moments, shrinkage), solver).weights
    others = [shrink(_settled(whole - fold), shrinkage) for fold in by_fold]
    return Weighing(
        weights=weights,
        c_bound=moments.c_bound(weights),
        gibbs_risk=moments.gibbs_risk(weights),
        disagreement=moments.disagreement(weights),
        unseen_vote=_unseen_vote(ballots, crossfit_weights(others, solver), n_jobs),
    )


def _settled(moments: Moments | UnseenMoments) -> Moments:
    return moments if isinstance(moments, Moments) else moments.moments()


def _unseen_vote(
    ballots: Ballots, fold_weights: list[FoldWeights], n_jobs: int | None
) -> NDArray[np.float64]:
    if ballots.unseen is not None:
        return out_of_bag_vote(
            ballots.votes, ballots.unseen, ballots.folds, fold_weights, n_jobs
        )
    vote = np.empty(len(ballots.signs))
    for number, fold in enumerate(fold_weights):
        rows = ballots.folds == number
        vote[rows] = ballots.votes[rows] @ (fold.weights / fold.weights.sum())
    return vote
