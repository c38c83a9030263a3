"""What both estimators do alike: functions that take a model and what else they need."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from .decision import (
    Decision,
    Fixed,
    Objective,
    parse_objective,
    supports_many_classes,
)
from .hashing import row_hashes
from .labels import Labels
from .reweighting import emphasize_missed_positives
from .selection import Choice, choose_settings, prune_voters
from .unlabeled import Unlabeled
from .weighting import Settings, Weighting, minimize_c_bound

Model = TypeVar("Model")

JOINT = "joint"
"""The threshold that is fitted along with the weights."""
REWEIGHABLE = ("reweight", "shrinkage", "solver", "threshold", "unlabeled_weight")


def settings_of(model: Any) -> Settings:
    """How the model weights its voters."""
    return Settings(
        reweight=float(model.reweight),
        shrinkage=float(model.shrinkage),
        solver=model.solver,
        joint=_is_joint(model.threshold),
        unlabeled_weight=float(model.unlabeled_weight),
    )


def objective_of(threshold: Any, labels: Labels) -> Objective | None:
    """What the threshold is for, checked; None where it comes with the weights."""
    if _is_joint(threshold) and labels.is_binary:
        return None
    if isinstance(threshold, str) and threshold == "auto":
        threshold = labels.tuned_for
    return parse_objective(threshold, labels.n_classes)


def _is_joint(threshold: Any) -> bool:
    return isinstance(threshold, str) and threshold == JOINT


def choose_threshold(
    weighting: Weighting, threshold: Any, labels: Labels, *, calibrates: bool = False
) -> Decision:
    """Step 4: where to cut the vote, by out-of-sample votes; and what the vote means.

    ``calibrates`` turns votes into probabilities, once these are asked for.
    """
    objective = objective_of(threshold, labels) or Fixed(weighting.threshold)
    decision = Decision(weighting, objective, calibrates, labels.target_order)
    decision.threshold  # noqa: B018  (warns now of a floor that is out of reach)
    return decision


def keep(model: Model, decision: Decision) -> Model:
    """The fitted attributes that steps 2 to 4 give."""
    weighting, labels = decision.weighting, model.labels_  # type: ignore[attr-defined]
    vars(model).update(
        classes_=labels.classes,
        pos_label_=labels.pos_label,
        decision_=decision,
        threshold_=decision.threshold,
        weights_=weighting.weights,
        c_bound_=weighting.c_bound,
        gibbs_risk_=weighting.gibbs_risk,
        disagreement_=weighting.disagreement,
    )
    vars(model).pop("pruning_", None)
    return model


def votes_of(model: Any) -> Any:
    """The votes of the last fit."""
    check_is_fitted(model, "weights_")
    if not hasattr(model, "votes_"):
        raise AttributeError(
            "the votes of the training rows are not saved with a model; fit it again"
        )
    return model.votes_


def reweigh(model: Model, settings: dict[str, Any], *, calibrates: bool) -> Model:
    """Steps 2 to 4 once more, by other settings; nothing is changed if they fail."""
    fitted: Any = model
    votes_of(fitted)
    if not settings.keys() <= set(REWEIGHABLE):
        wrong = ", ".join(sorted(settings.keys() - set(REWEIGHABLE)))
        raise TypeError(f"reweigh takes {', '.join(sorted(REWEIGHABLE))}, and not {wrong}")
    before = {name: getattr(fitted, name) for name in settings}
    try:
        fitted.set_params(**settings)
        fitted._validate_params()
        known: Any = getattr(fitted.decision_, "weighting", None)
        same = known is not None and known.votes is fitted.votes_
        if not same or known.settings != settings_of(fitted):
            known = _weigh(fitted)
        decision = choose_threshold(
            known, fitted.threshold, fitted.labels_, calibrates=calibrates
        )
    except Exception:
        fitted.set_params(**before)
        raise
    return keep(model, decision)


def _weigh(model: Any) -> Weighting:
    settings = settings_of(model)
    moments = emphasize_missed_positives(
        model.votes_, settings.reweight, settings.unlabeled_weight
    )
    return minimize_c_bound(model.votes_, moments, settings, model.n_jobs)


def choose(model: Any, metric: Any, **values: Any) -> Choice:
    """What other settings would be worth; the model stays as it is."""
    votes = votes_of(model)
    if isinstance(metric, str) and metric == "auto":
        metric = model.decision_.metric
    return choose_settings(votes, settings_of(model), metric, **values, n_jobs=model.n_jobs)


def prune(model: Model, max_voters: int, *, calibrates: bool) -> Model:
    """Fewer voters, weighted anew, with a threshold that knows nothing of the choice."""
    fitted: Any = model
    kept, pruning, vote = prune_voters(
        votes_of(fitted), settings_of(fitted), max_voters, fitted.n_jobs
    )
    fitted.voters_, fitted.votes_ = fitted.voters_.take(kept), fitted.votes_.take(kept)
    weighting = _weigh(fitted).judged_by(vote)
    keep(
        model,
        choose_threshold(
            weighting, fitted.threshold, fitted.labels_, calibrates=calibrates
        ),
    )
    fitted.pruning_ = pruning
    return model


def new_seed(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def training_hashes(
    X: Any, targets: NDArray[Any], unlabeled: Unlabeled | None
) -> NDArray[np.uint64]:
    """By which certificates tell the rows that had a part in the fit."""
    hashes = row_hashes(X, targets)
    if unlabeled is not None:
        more = row_hashes(unlabeled.X, np.zeros(unlabeled.X.shape[0], np.int8))
        hashes = np.concatenate([hashes, more])
    return np.sort(hashes)


def warn_of_unseen_classes(labels: Labels, voters: Any, rows: NDArray[Any]) -> None:
    """Say so when samples had no row of a class; ``rows`` are those of each."""
    message = labels.unseen_class_warning(voters.n_without_class, len(voters), rows)
    if message:
        warnings.warn(message, UserWarning, stacklevel=5)


def take_many_classes(voters: Iterable[Any]) -> bool:
    """Whether all voters take three classes and more, as far as they say."""
    kinds = [get_tags(voter).classifier_tags for voter in voters]
    return all(kind is None or kind.multi_class for kind in kinds)


def check_many_classes(labels: Labels, voters: Iterable[Any]) -> None:
    if labels.n_classes > 2 and not take_many_classes(voters):
        raise ValueError(
            f"Only binary classification is supported by the voters given, and y has "
            f"{labels.n_classes} classes; take voters that know more than two, such as the "
            f"default, or name one class against the rest, as in "
            f"y == {labels.classes.tolist()[0]!r}"
        )


def voter_tags(tags: Tags, voters: Sequence[Any], model: Any) -> Tags:
    """What all voters take, the model takes."""
    inputs = [get_tags(voter).input_tags for voter in voters]
    tags.input_tags.sparse = all(one.sparse for one in inputs)
    tags.input_tags.allow_nan = all(one.allow_nan for one in inputs)
    tags.classifier_tags.multi_class = (
        take_many_classes(voters)
        and model.pos_label is None
        and supports_many_classes(model.threshold)
    )
    return tags


def weighted_importances(
    estimators: Sequence[Any], weights: NDArray[np.float64], *, scaled: bool
) -> NDArray[np.float64]:
    """The mean of the voters' feature importances, weighted as they vote.

    ``scaled``: models count in units of their own, so each is scaled to sum to 1, and
    those that have none are left out.
    """
    known = [getattr(voter, "feature_importances_", None) for voter in estimators]
    if all(importances is None for importances in known):
        kinds = ", ".join(sorted({type(voter).__name__ for voter in estimators}))
        raise AttributeError(f"the voters ({kinds}) have no feature_importances_")
    total: Any = 0.0
    asked = 0.0
    for weight, importances in zip(weights, known, strict=True):
        if importances is None:  # a constant voter (one class in its sample) uses none
            continue
        scale = float(np.sum(importances)) if scaled else 1.0
        total = total + weight * np.asarray(importances) / (scale or 1.0)
        asked += weight
    return np.asarray(total / asked if scaled and asked > 0 else total)
