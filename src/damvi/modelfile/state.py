"""A fitted DAMVIClassifier as values: what predictions and certificates need of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..classifier import DAMVIClassifier
from ..deciding import Decision
from ..decision.calibration import Calibrator
from ..decision.tuning import Tuning
from ..voters import BaggedVoters, PoolVoters
from ..voters.trees.voters import TreeVoters
from .errors import ModelFileError
from .values import Json, Reader, Writer

ATTRIBUTES = (
    "classes_",
    "pos_label_",
    "n_features_in_",
    "feature_names_in_",
    "weights_",
    "threshold_",
    "eta_",
    "c_bound_",
    "gibbs_risk_",
    "disagreement_",
    "_voters",
    "_keeps_frames",
    "_majority",
    "_seed",
    "_fingerprint",
    "_row_prints",
)
"""All that ``fit`` leaves, but for the votes on the training rows, which are too many."""
DECIDED = ("threshold", "tuning", "unseen_vote", "calibrator")
"""Of the decision: what was learned from these votes."""
SOMETIMES = {"feature_names_in_", "_seed", "_fingerprint"}


def write_classifier(writer: Writer, model: DAMVIClassifier) -> dict[str, Json]:
    """Parameters and fitted attributes."""
    if type(model) is not DAMVIClassifier:
        raise ModelFileError(
            f"only a DAMVIClassifier can be saved, and this is a {type(model).__name__}"
        )
    if not hasattr(model, "weights_"):
        raise ModelFileError("the classifier is not fitted yet; call fit, then save it")
    if len(model.classes_) > 2:
        raise ModelFileError(
            f"model files hold two classes so far, and this classifier has "
            f"{len(model.classes_)}; pickle or skops can keep it"
        )
    # The voters come first: where one cannot be saved, it is named.
    known = vars(model)
    fitted = writer.state({name: known[name] for name in ATTRIBUTES if name in known})
    decided = writer.state({name: getattr(model._decision, name) for name in DECIDED})
    params = {}
    for name, value in model.get_params(deep=False).items():
        with writer.within(f"the parameter {name!r} of the classifier"):
            params[name] = writer.write(value)
    return {"fitted": fitted, "decided": decided, "params": params}


def read_classifier(reader: Reader, said: dict[str, Json]) -> DAMVIClassifier:
    """The classifier that was written."""
    fitted = reader.state(said["fitted"])
    params = reader.state(said["params"])
    model = DAMVIClassifier()
    if params.keys() != model.get_params(deep=False).keys():
        odd = sorted(params.keys() ^ model.get_params(deep=False).keys())
        raise ModelFileError(
            f"its parameters are not those of this damvi's classifier ({', '.join(odd)})"
        )
    for name, value in params.items():
        setattr(model, name, value)
    if not set(ATTRIBUTES) - SOMETIMES <= fitted.keys() <= set(ATTRIBUTES):
        odd = sorted(set(ATTRIBUTES) ^ fitted.keys())
        raise ModelFileError(f"the classifier is not whole ({', '.join(odd)})")
    decided = reader.state(said["decided"])
    if decided.keys() != set(DECIDED):
        raise ModelFileError("the classifier's decision is not whole")
    model.__dict__.update(fitted)
    model._decision = Decision.restored(**decided)
    _check(model)
    return model


def _check(model: DAMVIClassifier) -> None:
    """That the parts fit each other."""
    voters, weights = model._voters, model.weights_
    _need(isinstance(voters, (TreeVoters, BaggedVoters, PoolVoters)), "voters")
    _need(_is_array(weights, "f", 1) and len(weights) == len(voters), "weights_")
    _need(weights.dtype == np.float64 and bool((weights >= 0).all()), "weights_")
    _need(bool(abs(weights.sum() - 1) < 1e-6), "weights_")
    if isinstance(voters, PoolVoters):
        _need(isinstance(voters.names, tuple), "voters' names")
        _need(all(type(name) is str for name in voters.names), "voters' names")
        _need(voters.voting in ("hard", "soft"), "voting")
        known = voters.calibrators
        _need(known is None or len(known) == len(voters), "calibrators")
    if not isinstance(voters, TreeVoters):
        _need(isinstance(voters.estimators, list), "voters")
        _need(len(voters.estimators) == len(voters), "voters")
    else:
        _need(model.n_features_in_ == len(voters.features), "n_features_in_")
    classes = model.classes_
    _need(isinstance(classes, np.ndarray) and classes.shape == (2,), "classes_")
    _need(bool((classes == model.pos_label_).sum() == 1), "pos_label_")
    _need(type(model.n_features_in_) is int and model.n_features_in_ > 0, "n_features_in_")
    for name in ("threshold_", "eta_", "c_bound_", "gibbs_risk_", "disagreement_"):
        value = getattr(model, name)
        _need(isinstance(value, float) and not np.isnan(value), name)
    _check_decision(model)
    prints = model._row_prints
    _need(_is_array(prints, "u", 1) and prints.dtype == np.uint64, "prints")
    _need(bool((prints[1:] >= prints[:-1]).all()), "prints")
    _need(model._majority in (0, 1) and isinstance(model._keeps_frames, bool), "majority")


def _check_decision(model: DAMVIClassifier) -> None:
    decision = model._decision
    tuning, calibrator, vote = decision.tuning, decision.calibrator, decision.unseen_vote
    _need(decision.threshold == model.threshold_, "threshold_")
    _need(tuning is None or isinstance(tuning, Tuning), "tuning_")
    _need(calibrator is None or isinstance(calibrator, Calibrator), "calibrator")
    _need(_is_array(vote, "f", 1) and len(vote) == len(model._row_prints), "unseen vote")


def _is_array(value: Any, kind: str, n_dimensions: int) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.dtype.kind == kind
        and value.ndim == n_dimensions
    )


def _need(condition: bool, name: str) -> None:
    if not condition:
        raise ModelFileError(f"the classifier's {name} cannot be right")
