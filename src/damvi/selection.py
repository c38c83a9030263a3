"""Selection of settings and of voters, on the votes of a fitted model.

No voter is trained here. Settings are selected by their out-of-sample votes. The score of
the selection itself is cross-fitted: for each fold, settings are selected again without it,
by weights that do not depend on it either, and then scored on the fold.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.metrics import average_precision_score
from sklearn.utils.validation import check_is_fitted

from ._kernels import one_blas_thread
from .decision import (
    Fixed,
    Flags,
    Objective,
    choose_threshold,
    parse_objective,
    recall_of_top,
)
from .decision.decision import AVERAGE_PRECISION, objective_for
from .decision.objectives import Rows, read_rows, search
from .folds import folds_to_learn_from
from .labels import Labels
from .moments import ClassMoments, Moments
from .solvers import INDEPENDENT, SOLVERS, uniform
from .weighting import (
    PlainVoteComparison,
    Settings,
    Weighting,
    crossfit_weights,
    crossfitted_vote,
    minimize_c_bound,
    set_fitted,
    sum_of_folds,
)

Numbers = NDArray[np.float64]

SHRINKAGES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)
EMPHASES = (0.0, 0.5, 1.0)


REWEIGHABLE = (
    "fit_intercept",
    "reweight",
    "shrinkage",
    "solver",
    "threshold",
    "unlabeled_weight",
)


def votes_of(model: Any) -> Any:
    """Votes of the last fit."""
    if not {"votes_", "weights_"} <= vars(model).keys():
        check_is_fitted(model, "weights_")
        raise AttributeError(
            "the votes on the training rows are not saved, pickled or copied with the "
            "model; fit it again"
        )
    return model.votes_


def reweigh(fitted: Any, settings: dict[str, Any], *, pool: bool) -> None:
    """Repeat steps 2 to 4 with other settings; on an error, the model is unchanged.

    For a ``pool``, also calibrate, and compare the weights with the plain vote.
    """
    votes_of(fitted)
    if not settings.keys() <= set(REWEIGHABLE):
        wrong = ", ".join(sorted(settings.keys() - set(REWEIGHABLE)))
        raise TypeError(f"reweigh accepts {', '.join(sorted(REWEIGHABLE))}, not {wrong}")
    before = {name: getattr(fitted, name) for name in settings}
    try:
        # Like set_params, which would first collect the parameters of all voters.
        vars(fitted).update(settings)
        fitted._validate_params()
        if (
            settings.get("unlabeled_weight")
            and getattr(fitted.votes_, "unlabeled", None) is None
        ):
            raise ValueError(
                "unlabeled_weight needs the votes on unlabelled rows, but the last fit had "
                "none, or ignored them; fit again with X_unlabeled and unlabeled_weight"
            )
        decision = _decide(fitted, _weighting(fitted, pool), pool)
    except Exception:
        vars(fitted).update(before)
        raise
    set_fitted(fitted, decision)


def _weighting(model: Any, pool: bool) -> Weighting:
    """Steps 2 and 3 with the model's settings, or the last result if it still applies."""
    settings = Settings.of(model)
    known: Any = getattr(model.decision_, "weighting", None)
    if known is not None and known.votes is model.votes_ and known.settings == settings:
        found: Weighting = known
        return found
    _refuse_refitted(model)
    moments = settings.moments_by_fold(model.votes_)
    found = minimize_c_bound(model.votes_, moments, settings, model.n_jobs)
    return keep_better_vote(found) if pool else found


def objective_of(model: Any) -> Objective:
    """The objective of a fitted estimator's threshold."""
    return objective_for(model.threshold, model.labels_)


def _decide(model: Any, weighting: Weighting, pool: bool) -> Any:
    order = model.labels_.target_order
    return choose_threshold(weighting, objective_of(model), order, calibrates=pool)


def _refuse_refitted(model: Any) -> None:
    """Raise an error if the out-of-sample votes are those of refitted models."""
    if model.decision_.weighting.refitted is not None:
        raise ValueError(
            "with cv, out-of-sample votes come from refitted voters and weights, which are "
            "not kept, so only the threshold can be changed. Fit again with the other "
            "settings, or with cv=None to use out-of-bag votes"
        )


def choose(model: Any, metric: Any, **values: Any) -> Choice:
    """Score other settings; the model is not changed."""
    votes = votes_of(model)
    _refuse_refitted(model)
    if isinstance(metric, str) and metric == "auto":
        metric = model.decision_.metric
    return choose_settings(votes, Settings.of(model), metric, **values, n_jobs=model.n_jobs)


def prune(fitted: Any, max_voters: int, *, pool: bool) -> None:
    """Select voters, weight them again, and tune the threshold on cross-fitted votes."""
    votes_of(fitted)
    _refuse_refitted(fitted)
    weighting = _weighting(fitted, pool)
    settings = weighting.used
    tuned_for = fitted.labels_.tuned_for
    kept, pruning, chosen = prune_voters(weighting, max_voters, tuned_for)
    fitted.voters_, fitted.votes_ = fitted.voters_.take(kept), fitted.votes_.take(kept)
    moments = settings.moments_by_fold(fitted.votes_)
    found = minimize_c_bound(fitted.votes_, moments, settings, fitted.n_jobs)
    found = replace(
        found,
        settings=weighting.settings,
        fold_weights=chosen,
        chosen_from=weighting,
        comparison=weighting.comparison,
    )
    set_fitted(fitted, _decide(fitted, found, pool))
    fitted.pruning_ = pruning


@dataclass(frozen=True, eq=False)
class BestAlone:
    """The single best voter, with a cross-fitted vote.

    Attributes
    ----------
    voter : int
        Its number.
    by_fold : list of int
        The best voter for each fold, selected without it.
    vote : ndarray of shape (n,) or (n, C)
        Vote on each row by the voter selected for its fold.
    """

    voter: int
    by_fold: list[int]
    vote: Numbers


def best_alone(model: Any, metric: Any) -> BestAlone:
    """Select the single best voter of a fitted pool.

    Parameters
    ----------
    model : DAMVIVotingClassifier
    metric : str, dict or Objective
        "average_precision", or an objective of the threshold.
    """
    votes = votes_of(model)
    score, n_folds = Metric.of(votes, metric), votes.n_folds
    cast = np.asarray(votes.votes, np.float64)
    scores = np.empty((cast.shape[1], 1 + n_folds))
    for k in range(cast.shape[1]):
        own = [cast[:, k]] * n_folds
        scores[k] = [score(own)[1], *(score(own, fold)[1] for fold in range(n_folds))]
    best, *by_fold = np.argmax(scores, axis=0).tolist()
    # Rows in no fold have no vote.
    vote = np.full(cast[:, 0].shape, np.nan)
    for fold, k in enumerate(by_fold):
        here = votes.folds == fold
        vote[here] = cast[here, k]
    return BestAlone(best, by_fold, vote)


def take_alone(fitted: Any, chosen: BestAlone) -> None:
    """Reduce a pool to its best voter; threshold and scores use the cross-fitted vote."""
    weighting = _weighting(fitted, pool=True)
    one = np.eye(len(weighting.weights))
    kept = np.array([chosen.voter])
    fitted.voters_, fitted.votes_ = fitted.voters_.take(kept), fitted.votes_.take(kept)
    moments = weighting.settings.moments_by_fold(fitted.votes_)
    found = minimize_c_bound(fitted.votes_, moments, weighting.settings, fitted.n_jobs)
    found = replace(
        found, fold_weights=[one[k] for k in chosen.by_fold], chosen_from=weighting
    )
    set_fitted(fitted, _decide(fitted, found, pool=True))


# Removing slow voters.

PRICE = 0.02
"""Price of the prediction time of all voters: the relative increase of the C-bound that it
may cost to save it. Prices from .01 to .05 make no significant difference
(results/prefer_speed)."""


def without_slow_voters(
    weighting: Weighting, seconds: Numbers, price: float = PRICE
) -> NDArray[np.intp]:
    """Numbers of the voters to keep if prediction time has a price.

    The cost of a set of voters is its C-bound times 1 + ``price`` * its share of the
    prediction time. Voters are removed one at a time, each time the one whose removal gives
    the lowest cost, as long as the cost does not increase.

    Parameters
    ----------
    weighting : Weighting
        Weighting of all voters.
    seconds : ndarray of shape (K,)
        Prediction time of each voter.
    price : float
    """
    settings, total = weighting.settings, weighting.total
    moments, share = settings.moments(total), seconds / seconds.sum()

    def cost(voters: NDArray[np.intp]) -> float:
        weights = np.zeros(len(seconds))
        found = SOLVERS[settings.solver](moments.restricted(voters))
        weights[voters] = found.weights
        return settings.c_bound(total, weights) * (1 + price * float(share[voters].sum()))

    kept = np.arange(len(seconds))
    least = cost(kept)
    while len(kept) > 1:
        fewer = [np.delete(kept, place) for place in range(len(kept))]
        costs = [cost(voters) for voters in fewer]
        best = int(np.argmin(costs))
        if costs[best] > least:
            break
        kept, least = fewer[best], costs[best]
    return kept


# The plain vote, if the learned weights are worse.

N_GROUPS = 5
N_DRAWS = 200
MAX_BAGS = 2048
LEVELS = 256


def keep_better_vote(weighting: Weighting) -> Weighting:
    """Replace the learned weights by the plain vote if they are worse.

    The two are compared by out-of-sample average precision. The learned weights are worse
    if they are behind by more than one standard error, by a bootstrap of the rows.

    The out-of-sample vote accounts for this choice: for each fold, it is made without the
    fold, by weights that do not depend on it either; with folds in time order, from earlier
    folds. With fewer than three folds this is impossible, and the learned weights are kept.
    """
    votes, settings = weighting.votes, weighting.settings
    n_folds, n_voters = votes.n_folds, len(weighting.weights)
    even = np.full(n_voters, 1 / n_voters)
    if settings.solver == "uniform" or n_folds < 3 or n_voters == 1:
        return weighting

    def compare(
        others: Sequence[ClassMoments], known: NDArray[np.bool_]
    ) -> PlainVoteComparison:
        by_whom = [None, [even] * n_folds]
        pair = [
            crossfitted_vote(votes, others, settings, weighting.n_jobs, weights=Q)
            for Q in by_whom
        ]
        return _compare(votes, pair, known)

    whole = compare(weighting.others, np.ones(len(votes.folds), bool))
    fold_weights: list[Any] = [None] * n_folds
    # With many folds, several are left out at a time, to save time.
    n_groups = n_folds if votes.forward else min(n_folds, N_GROUPS)
    group = np.arange(n_folds) % n_groups
    for number in range(n_groups):
        left_out = np.flatnonzero(group == number).tolist()
        known = _folds_to_choose_by(votes, *left_out)
        others = _moments_by_choice(votes, weighting.moments_by_fold, known)
        chosen = compare(others, np.isin(votes.folds, known))
        for fold in left_out:
            fold_weights[fold] = even if chosen.plain_kept else None
    found = replace(weighting, comparison=whole)
    if whole.plain_kept:
        weights = uniform(weighting.moments).weights
        threshold = settings.threshold(weighting.total, weights)
        found = replace(found, weights=weights, threshold=threshold)
    if any(Q is not None for Q in fold_weights):
        solved = crossfit_weights(
            [settings.moments(one) for one in weighting.others], settings.solver
        )
        found = replace(
            found,
            fold_weights=[
                fold.weights / fold.weights.sum() if Q is None else Q
                for fold, Q in zip(solved, fold_weights, strict=True)
            ],
        )
    return found


def _folds_to_choose_by(votes: Any, *left_out: int) -> NDArray[np.intp]:
    """The folds, at least two, that a choice for these folds may be based on."""
    known = np.arange(votes.n_folds)
    for fold in left_out:
        known = folds_to_learn_from(fold, known, votes.forward, least=2)
    return known


def _moments_by_choice(
    votes: Any, by_fold: Sequence[ClassMoments], known: NDArray[np.intp]
) -> list[ClassMoments]:
    """For each fold, the moments of those ``known`` that its weights are learned from."""
    return [
        sum_of_folds(by_fold, folds_to_learn_from(fold, known, votes.forward))
        for fold in range(votes.n_folds)
    ]


def _compare(
    votes: Any, pair: Sequence[Numbers], known: NDArray[np.bool_]
) -> PlainVoteComparison:
    """Compare learned and plain votes on the ``known`` rows."""
    rows = [
        read_rows(_only(vote, known), votes.targets, votes.sample_weight) for vote in pair
    ]
    learned, plain = (_average_precision(one) for one in rows)
    if learned >= plain:
        return PlainVoteComparison(learned, plain, None, plain_kept=False)
    error = _error_of_difference(*rows)
    return PlainVoteComparison(learned, plain, error, plain_kept=plain - learned > error)


def _error_of_difference(first: Rows, second: Rows) -> float:
    """Standard error of the difference in average precision, by bootstrap.

    Each draw counts every row a Poisson number of times, for both votes alike. To bound the
    time for large tables, more than ``MAX_BAGS`` rows are drawn in random bags, and votes
    are binned at ``LEVELS`` quantiles of the votes on the class; this affects the standard
    error only.
    """
    rng = np.random.RandomState(13)
    n = len(first)
    n_bags = min(n, MAX_BAGS)
    bags = np.arange(n) if n == n_bags else rng.permutation(n) % n_bags
    times = rng.poisson(1.0, (N_DRAWS, n_bags)).astype(np.float64)
    differences = np.zeros(N_DRAWS)
    of_classes = list(zip(_by_class(first), _by_class(second), strict=True))
    for pair in of_classes:
        drawn = [
            _drawn_average_precision(positive, vote, first.weight, bags, times)
            for positive, vote in pair
        ]
        differences += (drawn[0] - drawn[1]) / len(of_classes)
    return float(differences.std(ddof=1))


def _drawn_average_precision(
    positive: NDArray[np.bool_],
    vote: Numbers,
    weight: Numbers,
    bags: NDArray[np.intp],
    times: Numbers,
) -> Numbers:
    """Average precision of each draw; ``times`` (draws, bags) counts each bag."""
    edges = np.unique(vote[positive])
    if len(edges) > LEVELS:
        edges = edges[np.linspace(0, len(edges) - 1, LEVELS).round().astype(np.intp)]
    level = np.searchsorted(edges, vote, side="right")
    n_bags, n_levels = times.shape[1], len(edges) + 1
    above = []
    for side in (positive, ~positive):
        cell = bags[side] * n_levels + level[side]
        table = np.bincount(cell, weight[side], minlength=n_bags * n_levels)
        with one_blas_thread():
            drawn = times @ table.reshape(n_bags, n_levels)
        above.append(drawn[:, ::-1].cumsum(axis=1))
    found, alarms = above
    gained = np.diff(found, axis=1, prepend=0.0)
    precision = found / np.maximum(found + alarms, np.finfo(float).tiny)
    total = np.maximum(found[:, -1], np.finfo(float).tiny)
    return np.asarray((gained * precision).sum(axis=1) / total)


@dataclass(frozen=True, eq=False)
class Metric:
    """Score of votes, with a threshold for each fold learned on the other folds.

    Attributes
    ----------
    votes : Votes
    objective : Objective or None
        None is average precision, which needs no threshold; with three or more classes,
        the mean over them.
    """

    votes: Any
    objective: Objective | None

    @classmethod
    def of(cls, votes: Any, metric: Any) -> Metric:
        """``metric`` is "average_precision" or an objective of the threshold."""
        if isinstance(metric, str) and metric == AVERAGE_PRECISION:
            return cls(votes, None)
        try:
            objective: Objective = parse_objective(metric, votes.n_classes)
            if isinstance(objective, Fixed) and objective is not metric:
                raise ValueError("it is a threshold")
        except ValueError as error:
            raise ValueError(
                f"metric={metric!r} is not available for {votes.n_classes} classes; use "
                f"{AVERAGE_PRECISION!r}, or an objective of the threshold: 'f1' or "
                f"{{'recall': 0.9}}, for example, with two classes, 'macro_f1' with more"
            ) from error
        return cls(votes, objective)

    @property
    def name(self) -> str:
        if self.objective is not None:
            return self.objective.name
        averaged = Labels.kind(self.votes.n_classes).averaged.replace("_", " ")
        return f"{averaged}average precision"

    def __call__(
        self, votes: Sequence[Numbers], left_out: int | None = None
    ) -> tuple[float, float]:
        """The score, and the value to maximise, given one vote for each fold.

        The vote for a fold is used on its rows, with the threshold that is best for the
        same vote on all others (in time order, on earlier folds); for a budget of flags,
        with the threshold that flags as many rows as asked for. The rows of ``left_out``
        are not used at all, nor, in time order, those after it.
        """
        folds, targets = self.votes.folds, self.votes.targets
        weight, some = self.votes.sample_weight, np.arange(self.votes.n_folds)
        if left_out is not None:
            some = _folds_to_choose_by(self.votes, left_out)
        order = np.argsort(-np.bincount(targets), kind="stable")
        is_budget = isinstance(self.objective, Flags)
        vote, thresholds = np.full((2, *votes[0].shape), np.nan)
        for fold in some.tolist():
            here = folds == fold
            vote[here] = votes[fold][here]
            if self.objective is not None and not is_budget:
                others = folds_to_learn_from(fold, some, self.votes.forward)
                known = np.isin(folds, others)
                rows = read_rows(_only(votes[fold], known), targets, weight)
                # Not smoothed: many settings are compared, and calibrations take time.
                thresholds[here] = search(rows, self.objective, order)
        rows = read_rows(vote, targets, weight)
        if self.objective is None:
            value = _average_precision(rows)
            return value, value
        if isinstance(self.objective, Flags):
            # Compare votes at the same number of flags: thresholds learned on other rows
            # would flag more or fewer rows here.
            top, weights = self.objective.among(rows.n_given).share, rows.weight[None]
            value = float(recall_of_top(rows.vote, rows.positive, weights, top)[0])
            return value, value
        decided = rows.decided(thresholds[rows.index], order)
        return self.objective.judge(rows, decided)


def _only(vote: Numbers, some: NDArray[np.bool_]) -> Numbers:
    """The vote, with NaN on all other rows."""
    kept = np.full(vote.shape, np.nan)
    kept[some] = vote[some]
    return kept


def _by_class(rows: Rows) -> list[tuple[NDArray[np.bool_], Numbers]]:
    """Positives and votes of each class of interest that occurs in the rows."""
    return [(positive, vote) for positive, vote in rows.by_class() if positive.any()]


def _average_precision(rows: Rows) -> float:
    """Average precision of the positive class, or the mean over three or more classes."""
    found = [
        average_precision_score(*pair, sample_weight=rows.weight)
        for pair in _by_class(rows)
    ]
    return float(np.mean(found)) if found else 0.0


@dataclass(frozen=True)
class Choice:
    """The best settings, and the score of each. ``print`` shows a summary.

    Attributes
    ----------
    metric : str
    settings : tuple of Settings
    values : tuple of float
        The out-of-sample score of each. The best of them is optimistic.
    chosen : Settings
    honest_value : float
        The cross-fitted score, for which each fold's settings were chosen on the others.
    best : dict
        The chosen parameters, to be passed to :meth:`~damvi.DAMVIClassifier.reweigh`.
    """

    metric: str
    settings: tuple[Settings, ...]
    values: tuple[float, ...]
    chosen: Settings
    honest_value: float

    @property
    def best(self) -> dict[str, float]:
        return {"reweight": self.chosen.reweight, "shrinkage": self.chosen.shrinkage}

    def __str__(self) -> str:
        lines = [f"reweight  shrinkage  {self.metric}"]
        for one, value in zip(self.settings, self.values, strict=True):
            mark = "  <- chosen" if one == self.chosen else ""
            lines.append(f"{one.reweight:8g}  {one.shrinkage:9g}  {value:.4f}{mark}")
        lines.append(f"{self.honest_value:.4f} if settings are chosen on other folds")
        return "\n".join(lines)


def choose_settings(
    votes: Any,
    now: Settings,
    metric: Any,
    *,
    reweight: Iterable[float] = EMPHASES,
    shrinkage: Iterable[float] = SHRINKAGES,
    n_jobs: int | None = None,
) -> Choice:
    """Choose the settings with the best out-of-sample votes, the first of equally good."""
    tried = [
        now._replace(reweight=strength, shrinkage=share)
        for share, strength in product(
            _read("shrinkage", shrinkage, below=1), _read("reweight", reweight)
        )
    ]
    if votes.n_folds < 3:
        raise ValueError(
            f"choosing settings needs at least three folds, but there are "
            f"{votes.n_folds}; fit with cv=5, for example"
        )
    score, folds = Metric.of(votes, metric), range(votes.n_folds)
    values, scores = np.empty(len(tried)), np.empty((len(tried), 1 + len(folds)))
    blind: list[list[Numbers]] = []
    for number, settings in enumerate(tried):
        by_fold = settings.moments_by_fold(votes)
        # Entry [fold][rows of other] is by weights that know neither of the two folds.
        blind.append(
            [
                crossfitted_vote(
                    votes,
                    _moments_by_choice(votes, by_fold, _folds_to_choose_by(votes, fold)),
                    settings,
                    n_jobs,
                )
                for fold in folds
            ]
        )
        # The entry of a fold on its own rows is by weights learned on all other folds.
        own = _own(blind[-1], votes.folds)
        values[number], scores[number, 0] = score([own] * len(folds))
        for fold in folds:
            scores[number, 1 + fold] = score([blind[-1][fold]] * len(folds), fold)[1]
    best, *of_folds = np.argmax(scores, axis=0).tolist()
    honest, _ = score([blind[chosen][fold] for fold, chosen in enumerate(of_folds)])
    return Choice(score.name, tuple(tried), tuple(values.tolist()), tried[best], honest)


def _own(votes: Sequence[Numbers], folds: NDArray[Any]) -> Numbers:
    """The vote on each row from its fold's entry."""
    return np.stack(votes)[folds, np.arange(len(folds))]


def _read(name: str, values: Any, below: float = np.inf) -> list[float]:
    """Check the values to compare."""
    listed = [values] if isinstance(values, (int, float)) else list(values)
    for value in listed:
        if not (isinstance(value, (int, float, np.number)) and 0 <= value <= 1):
            raise ValueError(f"{name}={value!r} must be a number from 0 to 1")
        if value >= below:
            raise ValueError(f"{name}={value!r} must be below {below}")
    if not listed:
        raise ValueError(f"{name} is empty; give at least one value")
    return [float(value) for value in listed]


@dataclass(frozen=True)
class Pruning:
    """The effect of pruning on the scores. ``print`` shows a summary.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of voters, from all that have a weight down to those kept.
    c_bound : tuple of float
        The C-bound for each number of voters.
    average_precision, f1 : tuple of float
        Cross-fitted scores, for which neither voters, weights nor the selection of voters
        depend on a row; with three or more classes, means over the classes.
    """

    sizes: tuple[int, ...]
    c_bound: tuple[float, ...]
    average_precision: tuple[float, ...]
    f1: tuple[float, ...]

    def __str__(self) -> str:
        lines = ["voters  C-bound  average precision     F1"]
        for row in zip(
            self.sizes, self.c_bound, self.average_precision, self.f1, strict=True
        ):
            lines.append("{:6d}  {:7.4f}  {:17.4f}  {:5.4f}".format(*row))
        return "\n".join(lines)


def prune_voters(
    weighting: Weighting, max_voters: Any, tuned_for: str = "f1"
) -> tuple[NDArray[np.intp], Pruning, list[Numbers]]:
    """Select at most this many voters, those that matter most for the C-bound.

    Returns their numbers, the scores for each number of voters on the way, and the weights
    of the voters selected without each fold.
    """
    votes, settings = weighting.votes, weighting.used
    if not isinstance(max_voters, (int, np.integer)) or max_voters < 1:
        raise ValueError(f"max_voters={max_voters!r} must be an integer, at least 1")
    if not votes.in_memory:
        raise ValueError(
            "prune needs all votes in memory, which is impossible for a table beyond "
            "memory; train fewer voters (n_estimators), or fit and prune on a sample"
        )
    total, others = weighting.total, weighting.others
    found = _path(settings.moments(total), settings.solver)
    others_found = [_path(settings.moments(one), settings.solver) for one in others]
    sizes = _halved(max(found), max(n for n in found if n <= max_voters))
    metrics = [Metric.of(votes, metric) for metric in (AVERAGE_PRECISION, tuned_for)]
    scores = []
    for size in sizes:
        chosen = [_at_most(one, size) for one in others_found]
        vote = crossfitted_vote(votes, others, settings, weighting.n_jobs, weights=chosen)
        scores.append([metric([vote] * len(others))[0] for metric in metrics])
    bounds = [settings.c_bound(total, _at_most(found, size)) for size in sizes]
    ap, f1 = zip(*scores, strict=True)
    kept = np.flatnonzero(_at_most(found, int(max_voters)))
    return kept, Pruning(tuple(sizes), tuple(bounds), ap, f1), chosen


def _path(moments: Moments, solver: str) -> dict[int, Numbers]:
    """Weights for each number of voters, from the solver's support downwards.

    Each time, the voter whose removal increases the residual least (ignoring the constraint
    that the other weights stay non-negative) is removed, and the rest are weighted again.
    """
    weights = SOLVERS[solver](moments).weights
    found = {}
    while True:
        kept = np.flatnonzero(weights)
        found[len(kept)] = weights
        if len(kept) == 1:
            return found
        inner = moments.restricted(kept)
        _, M = inner.normalised()
        rises = weights[kept] ** 2 / np.diag(_inverse(M))
        stays = np.delete(np.arange(len(kept)), int(np.argmin(rises)))
        weights = np.zeros_like(weights)
        weights[kept[stays]] = SOLVERS[solver](inner.restricted(stays)).weights


def _inverse(M: Numbers) -> Numbers:
    """Inverse of M with a tiny ridge, or with a larger one if M is still singular."""
    # The trace is 0 if all voters are constant; then any of them may go.
    trace = float(np.trace(M)) or 1.0
    for share in (1e-12, INDEPENDENT):
        ridge = share * trace / len(M)
        with warnings.catch_warnings(), suppress(linalg.LinAlgError):
            warnings.simplefilter("ignore", linalg.LinAlgWarning)
            inverse = np.asarray(linalg.inv(M + ridge * np.eye(len(M))))
            if (np.diag(inverse) > 0).all():
                return inverse
    return np.eye(len(M))


def _at_most(found: dict[int, Numbers], size: int) -> Numbers:
    """The weights for the largest number of voters up to ``size``."""
    return found[max((n for n in found if n <= size), default=min(found))]


def _halved(most: int, fewest: int) -> list[int]:
    """Numbers of voters from ``most`` down to ``fewest``, halved each time."""
    sizes = [most]
    while sizes[-1] // 2 > fewest:
        sizes.append(sizes[-1] // 2)
    return sizes if fewest == most else [*sizes, fewest]
