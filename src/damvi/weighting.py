"""Steps 2 and 3 of DAMVI on any votes, whoever cast them, and the vote they give.

Step 2 leans on the positives that the plain vote misses. The weight of each positive is
multiplied by exp(-margin), once, where the margin is that of the plain vote: a real number,
so a positive that every voter misses gains a factor e, and one that all find loses it. With
three or more classes this holds for the rows of each class below its even share.

Nothing here trains a voter, so other settings on the same votes cost milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .folds import folds_to_learn_from
from .moments import ClassMoments, Moments, c_bound_with_constant, threshold_of
from .solvers import SOLVERS, shrink, solve

if TYPE_CHECKING:
    from .votes import AnyVotes

Numbers = NDArray[np.float64]


def emphasize_missed_positives(
    votes: AnyVotes,
    strength: float = 1.0,
    unlabeled_weight: float = 0.0,
    fit_intercept: bool = False,
) -> list[ClassMoments]:
    """The moments of the votes, fold by fold, with more weight on missed positives.

    The votes multiply the weights themselves, where their rows are (``emphasis`` of
    ``votes.py``). The paper's normalisation is left out: nothing that follows depends on
    the scale.

    Parameters
    ----------
    votes : Votes
        In memory, on disk or on a cluster.
    strength : float, default=1
        A factor of the exponent: 1 is the paper's step 2, 0 leaves all weights alone.
    unlabeled_weight : float, default=0
        How much the disagreement of the voters on unlabelled rows counts.
    fit_intercept : bool, default=False
        Whether a constant will be fitted along with the weights, which takes the mean votes
        for each of three or more classes.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.votes import Votes
    >>> hard = np.array([[-1, -1], [1, 1], [1, -1], [-1, -1]], dtype=np.int8)
    >>> votes = Votes(hard, targets=np.array([1, 1, 0, 0]), folds=np.array([0, 1, 0, 1]))
    >>> first, second = emphasize_missed_positives(votes, strength=0)
    >>> float((first + second).moments().gibbs_risk([0.5, 0.5]))
    0.375
    >>> first, second = emphasize_missed_positives(votes, strength=1)
    >>> float(round((first + second).moments().gibbs_risk([0.5, 0.5]), 3))
    0.633
    """
    return votes.moments_by_fold(strength, unlabeled_weight, fit_intercept)


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
    fit_intercept : bool, default=False
        Fit a constant along with the weights: the C-bound is that of a vote in which a
        constant has its say, for each class its own.
    unlabeled_weight : float in [0, 1), default=0
        The weight of unlabelled rows in the moments of the negatives.
    """

    reweight: float = 1.0
    shrinkage: float = 0.0
    solver: str = "exact"
    fit_intercept: bool = False
    unlabeled_weight: float = 0.0

    @classmethod
    def of(cls, model: Any) -> Settings:
        """The parameters of an estimator."""
        return cls(
            reweight=float(model.reweight),
            shrinkage=float(model.shrinkage),
            solver=model.solver,
            fit_intercept=bool(model.fit_intercept),
            unlabeled_weight=float(model.unlabeled_weight),
        )

    def moments_by_fold(self, votes: Any) -> list[ClassMoments]:
        """Step 2."""
        return emphasize_missed_positives(
            votes, self.reweight, self.unlabeled_weight, self.fit_intercept
        )

    def moments(self, moments: ClassMoments) -> Moments:
        """What the solver is given: no voter beats a coin where there are no rows.

        A fold has no others if all rows that count are its own.
        """
        if moments.total <= 0:
            n_voters = moments.means()[0].size
            return Moments(np.zeros(n_voters), np.zeros((n_voters, n_voters)), 1)
        whole = moments.centred() if self.fit_intercept else moments.moments_to_learn()
        return shrink(whole, self.shrinkage)

    def threshold(self, moments: ClassMoments, weights: Numbers) -> float:
        """Where the vote is cut if nobody tunes it: at 0, or where the constant tips it."""
        if not self.fit_intercept or moments.total <= 0:
            return 0.0
        return threshold_of(moments, weights)

    def c_bound(self, moments: ClassMoments, weights: Numbers) -> float:
        """The C-bound of the vote, the constant's say included."""
        if self.fit_intercept:
            return c_bound_with_constant(moments, weights)
        return moments.moments().c_bound(weights)


@dataclass(frozen=True)
class PlainVoteComparison:
    """The learned weights beside the plain vote. ``print`` it to read it.

    Attributes
    ----------
    learned, plain : float
        Average precision on rows that the voters and the weights do not know; with three
        or more classes its mean over them.
    error : float or None
        The standard error of the difference, by bootstrap of the same rows for both; None
        where the learned weights are not behind.
    plain_kept : bool
        Whether all voters weigh the same, since the learned weights are behind by more
        than that error.
    """

    learned: float
    plain: float
    error: float | None
    plain_kept: bool

    def __str__(self) -> str:
        figures = f"average precision {self.learned:.3f} with learned weights"
        behind = "" if self.error is None else f" (± {self.error:.3f} between the two)"
        kept = "plain vote" if self.plain_kept else "learned weights"
        return f"{figures}, {self.plain:.3f} with equal ones{behind}: {kept} kept"


class Refitted(NamedTuple):
    """The vote on rows by voters and weights that were both fitted anew on other rows.

    Attributes
    ----------
    vote : ndarray of shape (n,) or (n, C)
        NaN where nobody judged.
    folds : ndarray of shape (n,)
    forward : bool
        See :class:`~damvi.votes.Votes`.
    thresholds : ndarray of shape (folds,)
        Where each fit's vote is cut, if nobody tunes it.
    plain : ndarray of the shape of ``vote``
        The same voters' plain vote.
    """

    vote: Numbers
    folds: NDArray[Any]
    forward: bool
    thresholds: Numbers
    plain: Numbers


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
        Where the vote is cut, if nobody tunes it: where the fitted constant tips it, or 0.
    fold_weights : list of ndarray of shape (K,), optional
        The weights that each fold is judged by, if they are not those that the other folds
        lead to: where voters were chosen, these know nothing of the fold either.
    chosen_from : Weighting, optional
        Of the voters that these were chosen from; ``fold_weights`` are then for them.
    comparison : PlainVoteComparison, optional
        The learned weights beside the plain vote.
    refitted : Refitted, optional
        What the rows are judged by, if not by these voters.
    """

    votes: Any
    moments_by_fold: list[ClassMoments]
    settings: Settings
    weights: Numbers
    threshold: float
    n_jobs: int | None = None
    fold_weights: Sequence[Numbers] | None = None
    chosen_from: Weighting | None = None
    comparison: PlainVoteComparison | None = None
    refitted: Refitted | None = None

    @property
    def folds(self) -> NDArray[Any]:
        """The fold of each row that has a vote out of sample."""
        folds: NDArray[Any]
        folds = self.votes.folds if self.refitted is None else self.refitted.folds
        return folds

    @property
    def forward(self) -> bool:
        """Whether these folds are windows in the order of time."""
        return bool((self.votes if self.refitted is None else self.refitted).forward)

    @property
    def used(self) -> Settings:
        """The settings by which the weights can be found again."""
        if self.comparison is not None and self.comparison.plain_kept:
            return self.settings._replace(solver="uniform")
        return self.settings

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
        """Each row's vote by voters and weights that do not know its label."""
        return self._vote() if self.refitted is None else self.refitted.vote

    @cached_property
    def vote_to_cut(self) -> Numbers:
        """The same, comparable with ``threshold`` where a fold has one of its own.

        Where positives are few it ranks rows of different folds less well than the vote as
        it is, which a threshold that is tuned does better with.
        """
        if not self.settings.fit_intercept:
            return self.out_of_sample_vote
        if self.refitted is None:
            return self._vote(self.threshold)
        moved = (self.threshold - self.refitted.thresholds)[self.refitted.folds]
        return (self.refitted.vote.T + moved).T

    @cached_property
    def others(self) -> list[ClassMoments]:
        """For each fold, the moments of those that its weights are learned from."""
        return moments_of_others(self.moments_by_fold, self.votes.forward)

    def _vote(self, threshold: float | None = None) -> Numbers:
        judge = self.chosen_from or self
        return crossfitted_vote(
            judge.votes,
            judge.others,
            self.settings,
            self.n_jobs,
            weights=self.fold_weights,
            threshold=threshold,
        )


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


def moments_of_others(
    by_fold: Sequence[ClassMoments], forward: bool = False
) -> list[ClassMoments]:
    """For each fold, the moments of those that its weights are learned from."""
    if not forward:
        total = sum(by_fold[1:], start=by_fold[0])
        return [total - fold for fold in by_fold]
    n_folds = len(by_fold)
    return [
        sum_of_folds(by_fold, folds_to_learn_from(fold, n_folds, forward))
        for fold in range(n_folds)
    ]


def sum_of_folds(by_fold: Sequence[ClassMoments], folds: NDArray[np.intp]) -> ClassMoments:
    """The moments of some folds together; those of no row, if there is none."""
    kept = [by_fold[fold] for fold in folds.tolist()]
    return sum(kept[1:], start=kept[0]) if kept else by_fold[0] - by_fold[0]


@dataclass(frozen=True, eq=False)
class FoldWeights:
    """Weights for a fold, learned on the others, and what they were learned from.

    ``weights`` are on the scale at which they minimise w'Mw - 2 m'w.
    """

    weights: NDArray[np.float64]
    m: NDArray[np.float64]
    M: NDArray[np.float64]


def crossfit_weights(
    others: Sequence[Moments],
    solver: str,
    known: Sequence[NDArray[np.float64]] | None = None,
) -> list[FoldWeights]:
    """Weights for each fold, from the moments of the other folds, unless they are known."""
    if known is None:
        return [fold_weights(moments, _solved(moments, solver)) for moments in others]
    return [fold_weights(m, Q) for m, Q in zip(others, known, strict=True)]


def fold_weights(others: Moments, Q: NDArray[np.float64] | None) -> FoldWeights:
    """Weights ``Q`` on the scale that fits ``others`` best; None is the plain vote."""
    if Q is not None and min(others.mu1(Q), others.mu2(Q)) > 0:
        m, M = others.normalised()
        return FoldWeights(Q * (m @ Q) / (Q @ M @ Q), m, M)
    # Nothing was learned: with M = 1 and m equal, the optimum on any voters is even.
    even = np.full(others.n_voters, 1 / others.n_voters)
    return FoldWeights(even, even, np.eye(others.n_voters))


def _solved(others: Moments, solver: str) -> NDArray[np.float64] | None:
    """Weights, or None where no voter beats a coin: of that, the fit of all rows warns."""
    if solver == "uniform" or others.total <= 0:
        return None
    solution = SOLVERS[solver](others)
    return solution.weights if solution.informative else None


def crossfitted_vote(
    votes: Any,
    others: Sequence[ClassMoments],
    settings: Settings,
    n_jobs: int | None = None,
    *,
    weights: Sequence[Numbers] | None = None,
    threshold: float | None = None,
) -> Numbers:
    """The vote on each fold by what was learned from its ``others``.

    ``weights`` are those of each fold, if they are known; else they are solved for. Where
    a constant is fitted along with them and a ``threshold`` is given, the votes of a fold
    are moved by what its own threshold differs from it.
    """
    learned = [settings.moments(moments) for moments in others]
    found: list[FoldWeights] = crossfit_weights(learned, settings.solver, weights)
    vote: Numbers = votes.vote_by(found, n_jobs)
    if threshold is not None:
        own = [
            settings.threshold(moments, fold.weights / fold.weights.sum())
            for moments, fold in zip(others, found, strict=True)
        ]
        moved = threshold - np.array(own)
        vote = vote + moved[votes.folds] if moved.any() else vote
    return vote


def set_fitted(model: Any, decision: Any) -> None:
    """Give an estimator the attributes that steps 2 to 4 lead to."""
    weighting: Weighting = decision.weighting
    if not np.isfinite(weighting.weights).all():
        raise RuntimeError(
            "the weights are not numbers, which no votes can lead to; please report it, "
            "with the parameters and the shape of the table"
        )
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
