"""Steps 2 and 3 of DAMVI on any votes: emphasis, weights, and the vote on unseen rows.

Nothing here trains a voter, so other settings on the same votes cost milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .ballots import Ballots, Tally
from .class_ballots import ClassBallots
from .crossfit import crossfit_weights
from .moments import Moments
from .shrinkage import shrink
from .solvers import solve


class Rule(NamedTuple):
    """How weights are found.

    Attributes
    ----------
    emphasis : float in [0, 1], default=1
        How much to lean on the positives that the plain vote misses: 1 is the paper's
        step 2, 0 leaves it out.
    shrinkage : float in [0, 1), default=0
        How far the weights are drawn towards equal ones.
    solver : {"exact", "slsqp", "uniform"}, default="exact"
    jointly : bool, default=False
        Fit a threshold along with the weights: the C-bound is that of a vote in which a
        constant has its say.
    eta : float in [0, 1), default=0
        The weight of unlabelled rows in the moments of the negatives.
    """

    emphasis: float = 1.0
    shrinkage: float = 0.0
    solver: str = "exact"
    jointly: bool = False
    eta: float = 0.0

    def moments(self, tally: Tally) -> Moments:
        """What the solver is given."""
        moments = tally.centred() if self.jointly else tally.moments_to_learn()
        return shrink(moments, self.shrinkage)

    def threshold(self, tally: Tally, weights: NDArray[np.float64]) -> float:
        """Where the vote is cut: at 0, or where the constant tips it."""
        if not self.jointly:
            return 0.0
        votes, signs = tally.centre()
        centred = tally.centred()
        mu1, mu2 = centred.mu1(weights), centred.mu2(weights)
        if mu1 <= 0:  # nothing was learned
            return 0.0
        return float(weights @ votes - weights @ signs * mu2 / mu1)

    def c_bound(self, tally: Tally, weights: NDArray[np.float64]) -> float:
        """The C-bound of the vote, the constant's say included."""
        if not self.jointly:
            return tally.moments().c_bound(weights)
        # The constant alone explains the square of the mean sign.
        _, signs = tally.centre()
        rest = tally.centred().c_bound(weights)
        return max(rest - float(weights @ signs) ** 2, 0.0)


@dataclass(frozen=True, eq=False)
class Weighing:
    """The weights, what they promise, and the vote that they give on unseen rows."""

    ballots: Any  # Ballots or ClassBallots
    rule: Rule
    by_fold: list[Tally]
    weights: NDArray[np.float64]
    threshold: float
    n_jobs: int | None = None

    @cached_property
    def whole(self) -> Tally:
        return sum(self.by_fold[1:], start=self.by_fold[0])

    @cached_property
    def moments(self) -> Moments:
        """Of the votes as they are."""
        return self.whole.moments()

    @property
    def c_bound(self) -> float:
        return self.rule.c_bound(self.whole, self.weights)

    @property
    def gibbs_risk(self) -> float:
        return self.moments.gibbs_risk(self.weights)

    @property
    def disagreement(self) -> float:
        return self.moments.disagreement(self.weights)

    def known_by(self, unseen_vote: NDArray[np.float64]) -> Weighing:
        """The same, judged by other votes on unseen rows, relative to a threshold of 0.

        Where rules or voters were chosen, these votes know nothing of the choice.
        """
        other = replace(self)
        vars(other)["unseen_vote"] = unseen_vote + self.threshold
        return other

    @cached_property
    def unseen_vote(self) -> NDArray[np.float64]:
        """Each row's vote by voters and weights that do not know its label.

        It can be compared with ``threshold``, also where the weights of a fold came with
        a threshold of their own.
        """
        others = [self.whole - fold for fold in self.by_fold]
        return honest_vote(self.ballots, others, self.rule, self.threshold, self.n_jobs)


def weigh(
    ballots: Ballots | ClassBallots, rule: Rule | None = None, n_jobs: int | None = None
) -> Weighing:
    """Weight the voters by their votes."""
    rule = Rule() if rule is None else rule
    by_fold = ballots.tallies(rule.emphasis, rule.eta)
    whole = sum(by_fold[1:], start=by_fold[0])
    weights = solve(rule.moments(whole), rule.solver).weights
    threshold = rule.threshold(whole, weights)
    return Weighing(ballots, rule, by_fold, weights, threshold, n_jobs)


def honest_vote(
    ballots: Ballots | ClassBallots,
    known: Sequence[Tally],
    rule: Rule,
    threshold: float = 0.0,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """The vote on each row by weights learned from ``known``, a tally for each fold."""
    found = crossfit_weights([rule.moments(tally) for tally in known], rule.solver)
    vote = ballots.vote_by(found, n_jobs)
    if rule.jointly:
        own = [
            rule.threshold(tally, fold.weights / fold.weights.sum())
            for tally, fold in zip(known, found, strict=True)
        ]
        vote += threshold - np.array(own)[ballots.folds]
    return vote
