"""Steps 2 and 3 of DAMVI on any votes, and the resulting weighted vote.

Step 2 gives more weight to the positives that the plain (equally weighted) vote misses.
The weight of each positive is multiplied, once, by exp(-margin), where the margin is that
of the plain vote: a positive that all voters miss gains a factor e, and one that all find
loses it. With three or more classes, this holds for the rows of each class with less weight
than average.

No voter is trained here, so trying other settings on the same votes takes milliseconds.
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
    """Step 2: moments of the votes by fold, with more weight on missed positives.

    The votes apply the weights themselves, wherever their rows are (see ``emphasis`` in
    ``votes.py``). The paper's normalisation is omitted, since the scale does not matter for
    the steps that follow.

    Parameters
    ----------
    votes : Votes
        In memory, on disk or on a cluster.
    strength : float, default=1
        Factor of the exponent: 1 is the paper's step 2, 0 leaves all weights unchanged.
    unlabeled_weight : float, default=0
        Weight of the voters' disagreement on unlabelled rows.
    fit_intercept : bool, default=False
        Whether an intercept will be fitted along with the weights; with three or more
        classes, this needs the mean votes for each class.

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
    """How the weights are learned from the votes.

    Attributes
    ----------
    reweight : float in [0, 1], default=1
        Strength of the weight on positives that the plain vote misses: 1 is the paper's
        step 2, 0 skips it.
    shrinkage : float in [0, 1), default=0
        How far the weights are shrunk towards equal weights.
    solver : {"exact", "slsqp", "uniform"}, default="exact"
    fit_intercept : bool, default=False
        Whether to fit an intercept along with the weights, one for each class. The C-bound
        is then that of the vote including the intercept.
    unlabeled_weight : float in [0, 1), default=0
        Weight of unlabelled rows in the moments of the negatives.
    """

    reweight: float = 1.0
    shrinkage: float = 0.0
    solver: str = "exact"
    fit_intercept: bool = False
    unlabeled_weight: float = 0.0

    @classmethod
    def of(cls, model: Any) -> Settings:
        """Settings from the parameters of an estimator."""
        return cls(
            reweight=float(model.reweight),
            shrinkage=float(model.shrinkage),
            solver=model.solver,
            fit_intercept=bool(model.fit_intercept),
            unlabeled_weight=float(model.unlabeled_weight),
        )

    def moments_by_fold(self, votes: Any) -> list[ClassMoments]:
        """Step 2 with these settings."""
        return emphasize_missed_positives(
            votes, self.reweight, self.unlabeled_weight, self.fit_intercept
        )

    def moments(self, moments: ClassMoments) -> Moments:
        """The moments that the solver is given; 0 if there are no rows.

        A fold has no other rows to learn from if all rows of positive weight are its own.
        """
        if moments.total <= 0:
            n_voters = moments.means()[0].size
            return Moments(np.zeros(n_voters), np.zeros((n_voters, n_voters)), 1)
        whole = moments.centred() if self.fit_intercept else moments.moments_to_learn()
        return shrink(whole, self.shrinkage)

    def threshold(self, moments: ClassMoments, weights: Numbers) -> float:
        """The threshold if it is not tuned: 0, or that of the fitted intercept."""
        if not self.fit_intercept or moments.total <= 0:
            return 0.0
        return threshold_of(moments, weights)

    def c_bound(self, moments: ClassMoments, weights: Numbers) -> float:
        """The C-bound of the vote, including the intercept."""
        if self.fit_intercept:
            return c_bound_with_constant(moments, weights)
        return moments.moments().c_bound(weights)


@dataclass(frozen=True)
class PlainVoteComparison:
    """The learned weights compared with the plain vote. ``print`` shows a summary.

    Attributes
    ----------
    learned, plain : float
        Out-of-sample average precision; with three or more classes, the mean over them.
    error : float or None
        Standard error of the difference, by a bootstrap of the same rows for both; None if
        the learned weights are not worse.
    plain_kept : bool
        Whether the plain vote was kept, because the learned weights are worse by more than
        the standard error.
    """

    learned: float
    plain: float
    error: float | None
    plain_kept: bool

    def __str__(self) -> str:
        figures = f"average precision {self.learned:.3f} with learned weights"
        behind = "" if self.error is None else f" (± {self.error:.3f} between the two)"
        kept = "plain vote" if self.plain_kept else "learned weights"
        return f"{figures}, {self.plain:.3f} with equal weights{behind}: {kept} kept"


class Refitted(NamedTuple):
    """Vote on each fold by voters and weights that were refitted on other rows.

    Attributes
    ----------
    vote : ndarray of shape (n,) or (n, C)
        NaN for rows in no fold.
    folds : ndarray of shape (n,)
    forward : bool
        See :class:`~damvi.votes.Votes`.
    thresholds : ndarray of shape (folds,)
        The threshold of each refit, if it is not tuned.
    plain : ndarray of the shape of ``vote``
        The plain vote of the same voters.
    """

    vote: Numbers
    folds: NDArray[Any]
    forward: bool
    thresholds: Numbers
    plain: Numbers


@dataclass(frozen=True, eq=False)
class Weighting:
    """The weights of the voters, and their out-of-sample vote.

    Attributes
    ----------
    votes : Votes
        In memory, on disk or on a cluster.
    moments_by_fold : list of ClassMoments
    settings : Settings
    weights : ndarray of shape (K,)
        The weights Q, non-negative with sum 1.
    threshold : float
        The threshold if it is not tuned: that of the fitted intercept, or 0.
    fold_weights : list of ndarray of shape (K,), optional
        The weights for the out-of-sample vote on each fold, if they are not simply learned
        from the other folds: where voters were selected, the selection must not depend on
        the fold either.
    chosen_from : Weighting, optional
        The weighting of the voters that these were selected from; ``fold_weights`` then
        refers to those.
    comparison : PlainVoteComparison, optional
        The learned weights compared with the plain vote.
    refitted : Refitted, optional
        The out-of-sample vote of refitted models, if it is not that of these voters.
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
        """The fold of each row in the out-of-sample vote."""
        folds: NDArray[Any]
        folds = self.votes.folds if self.refitted is None else self.refitted.folds
        return folds

    @property
    def forward(self) -> bool:
        """Whether these folds are in time order."""
        return bool((self.votes if self.refitted is None else self.refitted).forward)

    @property
    def used(self) -> Settings:
        """The settings that reproduce the weights."""
        if self.comparison is not None and self.comparison.plain_kept:
            return self.settings._replace(solver="uniform")
        return self.settings

    @cached_property
    def total(self) -> ClassMoments:
        return sum(self.moments_by_fold[1:], start=self.moments_by_fold[0])

    @cached_property
    def moments(self) -> Moments:
        """Moments of the votes of all rows, which are not centred."""
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
        """Vote on each row by voters and weights that do not depend on its label."""
        return self._vote() if self.refitted is None else self.refitted.vote

    @property
    def plain_vote(self) -> Numbers:
        """The out-of-sample vote of the same voters with equal weights."""
        if self.refitted is not None:
            return self.refitted.plain
        even = np.full(len(self.weights), 1 / len(self.weights))
        return crossfitted_vote(
            self.votes,
            self.others,
            self.settings,
            self.n_jobs,
            weights=[even] * len(self.others),
        )

    @cached_property
    def aligned_vote(self) -> Numbers:
        """The out-of-sample vote, shifted so that ``threshold`` applies to all folds.

        Each fold has its own intercept. With few positives, the shifted vote ranks rows of
        different folds less well than the original one, which is therefore used to tune
        thresholds.
        """
        if not self.settings.fit_intercept:
            return self.out_of_sample_vote
        if self.refitted is None:
            return self._vote(self.threshold)
        moved = (self.threshold - self.refitted.thresholds)[self.refitted.folds]
        return (self.refitted.vote.T + moved).T

    @cached_property
    def others(self) -> list[ClassMoments]:
        """For each fold, the moments that its weights are learned from."""
        return moments_of_others(self.moments_by_fold, self.votes.forward)

    def _vote(self, threshold: float | None = None) -> Numbers:
        source = self.chosen_from or self
        return crossfitted_vote(
            source.votes,
            source.others,
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
    """Step 3: find the weights that minimise the C-bound.

    They are found by :func:`damvi.solvers.solve`; if no voter is better than chance, they
    are equal, with a warning.
    """
    total = sum(moments_by_fold[1:], start=moments_by_fold[0])
    weights = solve(settings.moments(total), settings.solver).weights
    threshold = settings.threshold(total, weights)
    return Weighting(votes, moments_by_fold, settings, weights, threshold, n_jobs)


def moments_of_others(
    by_fold: Sequence[ClassMoments], forward: bool = False
) -> list[ClassMoments]:
    """For each fold, the moments that its weights are learned from."""
    if not forward:
        total = sum(by_fold[1:], start=by_fold[0])
        return [total - fold for fold in by_fold]
    n_folds = len(by_fold)
    return [
        sum_of_folds(by_fold, folds_to_learn_from(fold, n_folds, forward))
        for fold in range(n_folds)
    ]


def sum_of_folds(by_fold: Sequence[ClassMoments], folds: NDArray[np.intp]) -> ClassMoments:
    """Sum of the moments of some folds; 0 for none."""
    kept = [by_fold[fold] for fold in folds.tolist()]
    return sum(kept[1:], start=kept[0]) if kept else by_fold[0] - by_fold[0]


@dataclass(frozen=True, eq=False)
class FoldWeights:
    """Weights for a fold, and the moments that they were learned from.

    ``weights`` are on the scale that minimises w'Mw - 2 m'w.
    """

    weights: NDArray[np.float64]
    m: NDArray[np.float64]
    M: NDArray[np.float64]


def crossfit_weights(
    others: Sequence[Moments],
    solver: str,
    known: Sequence[NDArray[np.float64]] | None = None,
) -> list[FoldWeights]:
    """Weights for each fold, learned from the moments of the others unless ``known``."""
    if known is None:
        return [fold_weights(moments, _solved(moments, solver)) for moments in others]
    return [fold_weights(m, Q) for m, Q in zip(others, known, strict=True)]


def fold_weights(others: Moments, Q: NDArray[np.float64] | None) -> FoldWeights:
    """Weights ``Q`` on the scale that best fits ``others``; None is the plain vote."""
    if Q is not None and min(others.mu1(Q), others.mu2(Q)) > 0:
        m, M = others.normalised()
        return FoldWeights(Q * (m @ Q) / (Q @ M @ Q), m, M)
    # Nothing was learned: with M = I and equal m, the optimum on any voters is uniform.
    even = np.full(others.n_voters, 1 / others.n_voters)
    return FoldWeights(even, even, np.eye(others.n_voters))


def _solved(others: Moments, solver: str) -> NDArray[np.float64] | None:
    """Weights, or None if no voter is better than chance; the fit on all rows warns."""
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
    """Vote on each fold with weights learned from the moments in ``others``.

    ``weights`` are those of each fold, if they are known. If a ``threshold`` is given and
    an intercept is fitted, the votes of each fold are shifted by the difference between its
    own threshold and this one.
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
    """Set the fitted attributes of an estimator, after step 4."""
    weighting: Weighting = decision.weighting
    if not np.isfinite(weighting.weights).all():
        raise RuntimeError(
            "the weights are not finite, which should be impossible; please report it, "
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
