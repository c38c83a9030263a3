"""Step 3 of DAMVI on the moments of any votes, whoever cast them, and the vote it gives.

Nothing here trains a voter, so other settings on the same votes cost milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .crossfit import FoldWeights, crossfit_weights
from .moments import ClassMoments, Moments
from .solvers import shrink, solve

Numbers = NDArray[np.float64]


class Settings(NamedTuple):
    """How weights are found from votes.

    Attributes
    ----------
    reweight : float in [0, 1], default=1
        How much to lean on the positives that the plain vote misses: 1 is the paper's
        step 2, 0 leaves it out.
    shrinkage : float in [0, 1), default=0
        How far the weights are drawn towards equal ones.
    solver : {"exact", "slsqp", "uniform"}, default="exact"
    joint : bool, default=False
        Fit a threshold along with the weights: the C-bound is that of a vote in which a
        constant has its say.
    unlabeled_weight : float in [0, 1), default=0
        The weight of unlabelled rows in the moments of the negatives.
    """

    reweight: float = 1.0
    shrinkage: float = 0.0
    solver: str = "exact"
    joint: bool = False
    unlabeled_weight: float = 0.0

    @classmethod
    def of(cls, model: Any) -> Settings:
        """The parameters of an estimator."""
        threshold = model.threshold
        return cls(
            reweight=float(model.reweight),
            shrinkage=float(model.shrinkage),
            solver=model.solver,
            joint=isinstance(threshold, str) and threshold == "joint",
            unlabeled_weight=float(model.unlabeled_weight),
        )

    def moments(self, moments: ClassMoments) -> Moments:
        """What the solver is given."""
        whole = moments.centred() if self.joint else moments.moments_to_learn()
        return shrink(whole, self.shrinkage)

    def threshold(self, moments: ClassMoments, weights: Numbers) -> float:
        """Where the vote is cut: at 0, or where the constant tips it."""
        if not self.joint:
            return 0.0
        votes, signs = moments.means()
        centred = moments.centred()
        mu1, mu2 = centred.mu1(weights), centred.mu2(weights)
        if mu1 <= 0:  # nothing was learned
            return 0.0
        return float(weights @ votes - weights @ signs * mu2 / mu1)

    def c_bound(self, moments: ClassMoments, weights: Numbers) -> float:
        """The C-bound of the vote, the constant's say included."""
        if not self.joint:
            return moments.moments().c_bound(weights)
        # The constant alone explains the square of the mean sign.
        _, signs = moments.means()
        rest = moments.centred().c_bound(weights)
        return max(rest - float(weights @ signs) ** 2, 0.0)


@dataclass(frozen=True, eq=False)
class Weighting:
    """The weights, what they promise, and the vote that they give out of sample.

    Attributes
    ----------
    votes : Votes
        In memory, on disk or on a cluster.
    moments_by_fold : list of ClassMoments
    settings : Settings
    weights : ndarray of shape (K,)
        On the simplex.
    threshold : float
        Where the vote is cut, if that was fitted along with the weights; else 0.
    """

    votes: Any
    moments_by_fold: list[ClassMoments]
    settings: Settings
    weights: Numbers
    threshold: float
    n_jobs: int | None = None

    @cached_property
    def total(self) -> ClassMoments:
        return sum(self.moments_by_fold[1:], start=self.moments_by_fold[0])

    @cached_property
    def moments(self) -> Moments:
        """Of the votes as they are."""
        return self.total.moments()

    @property
    def c_bound(self) -> float:
        return self.settings.c_bound(self.total, self.weights)

    @property
    def gibbs_risk(self) -> float:
        return self.moments.gibbs_risk(self.weights)

    @property
    def disagreement(self) -> float:
        return self.moments.disagreement(self.weights)

    @cached_property
    def out_of_sample_vote(self) -> Numbers:
        """Each row's vote by voters and weights that do not know its label.

        It can be compared with ``threshold``, also where the weights of a fold came with
        a threshold of their own.
        """
        others = [self.total - fold for fold in self.moments_by_fold]
        return crossfitted_vote(
            self.votes, others, self.settings, self.n_jobs, threshold=self.threshold
        )

    def judged_by(self, vote: Numbers) -> Weighting:
        """The same, judged by another out-of-sample vote, relative to a threshold of 0.

        Where voters were chosen, this vote knows nothing of the choice.
        """
        other = replace(self)
        vars(other)["out_of_sample_vote"] = vote + self.threshold
        return other


def minimize_c_bound(
    votes: Any,
    moments_by_fold: list[ClassMoments],
    settings: Settings,
    n_jobs: int | None = None,
) -> Weighting:
    """Step 3: the weights that trade accuracy for diversity as the C-bound says.

    :func:`damvi.solvers.solve` finds them; they are equal, with a warning, where no voter
    beats a coin.
    """
    total = sum(moments_by_fold[1:], start=moments_by_fold[0])
    weights = solve(settings.moments(total), settings.solver).weights
    threshold = settings.threshold(total, weights)
    return Weighting(votes, moments_by_fold, settings, weights, threshold, n_jobs)


def crossfitted_vote(
    votes: Any,
    others: Sequence[ClassMoments],
    settings: Settings,
    n_jobs: int | None = None,
    *,
    weights: Sequence[Numbers] | None = None,
    threshold: float = 0.0,
) -> Numbers:
    """The vote on each fold by what was learned from its ``others``.

    ``weights`` are those of each fold, if they are known; else they are solved for. Where
    a threshold is fitted along with them, the votes of all folds are made comparable with
    ``threshold``.
    """
    learned = [settings.moments(moments) for moments in others]
    found: list[FoldWeights] = crossfit_weights(learned, settings.solver, weights)
    vote: Numbers = votes.vote_by(found, n_jobs)
    if settings.joint:
        cuts = [
            settings.threshold(moments, fold.weights / fold.weights.sum())
            for moments, fold in zip(others, found, strict=True)
        ]
        vote = vote + (threshold - np.array(cuts))[votes.folds]
    return vote


def set_fitted(model: Any, decision: Any) -> None:
    """Give an estimator the attributes that steps 2 to 4 lead to."""
    weighting: Weighting = decision.weighting
    vars(model).update(
        classes_=model.labels_.classes,
        pos_label_=model.labels_.pos_label,
        decision_=decision,
        threshold_=decision.threshold,
        weights_=weighting.weights,
        c_bound_=weighting.c_bound,
        gibbs_risk_=weighting.gibbs_risk,
        disagreement_=weighting.disagreement,
    )
    vars(model).pop("pruning_", None)
