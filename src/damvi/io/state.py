"""A fitted estimator: what of it is stored, how it is put back, and what exports read.

All that this package knows of the estimator's attributes is in this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..classifier import DAMVIClassifier
from ..decision import Calibrator, Decision, Tuning
from ..decision.calibration import ClassCurves, ProbabilityCurve
from ..voters import BaggedVoters, PoolVoters
from ..voters.trees.estimators import MAX_CLASSES
from ..voters.trees.voters import TreeVoters
from .container import ModelFileError
from .trees import has_shape
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
    "_print_step",
)
"""All that ``fit`` leaves, but for the votes on the training rows, which are too many."""
SOMETIMES = {"feature_names_in_", "_seed", "_fingerprint"}
VOTE = "unseen_vote"
DECIDED = ("threshold", "tuning", VOTE, "calibrator")
"""Of the decision: what was learned from these votes."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """What exports and summaries read of a fitted estimator.

    Attributes
    ----------
    voters : TreeVoters, BaggedVoters or PoolVoters
    weights : ndarray of shape (K,)
    classes : ndarray of shape (C,)
    positive : int
        The place of the positive class, of two; the vote is for it. -1 for C > 2.
    order : ndarray of shape (C,)
        The places of the classes, by their claim to a tie.
    threshold : float, or ndarray of shape (C,) for C > 2
    calibrator : function or None
        From votes to probabilities of the positive class, or of all C > 2.
    n_features : int
    feature_names : ndarray of str or None
    sampled_rows : bool
        Whether only some of the training rows are remembered, since there are very many.
    """

    voters: Any
    weights: NDArray[np.float64]
    classes: NDArray[Any]
    positive: int
    order: NDArray[np.intp]
    threshold: Any
    calibrator: Any
    n_features: int
    feature_names: Any
    sampled_rows: bool

    @property
    def n_classes(self) -> int:
        return len(self.classes)


def read_fitted(model: DAMVIClassifier) -> Fitted:
    """The parts of a fitted estimator, by name."""
    check_is_fitted(model, "weights_")
    two = len(model.classes_) == 2
    first = model._majority
    return Fitted(
        voters=model._voters,
        weights=model.weights_,
        classes=model.classes_,
        positive=int(model.pos_label_ == model.classes_[1]) if two else -1,
        order=np.array([first, 1 - first]) if two else first,
        threshold=model.threshold_,
        calibrator=model._decision.calibrator,
        n_features=model.n_features_in_,
        feature_names=getattr(model, "feature_names_in_", None),
        sampled_rows=model._print_step > 1,
    )


def write_estimator(writer: Writer, model: DAMVIClassifier) -> dict[str, Json]:
    """Parameters and fitted attributes."""
    if type(model) is not DAMVIClassifier:
        raise ModelFileError(
            f"only a DAMVIClassifier can be saved, and this is a {type(model).__name__}"
        )
    if not hasattr(model, "weights_"):
        raise ModelFileError("the classifier is not fitted yet; call fit, then save it")
    # The voters come first: where one cannot be saved, it is named.
    known, decision = vars(model), model._decision
    fitted = writer.state({name: known[name] for name in ATTRIBUTES if name in known})
    learned = {name: getattr(decision, name) for name in DECIDED if name != VOTE}
    decided = writer.state(learned | {VOTE: decision.vote_to_keep})
    params = {}
    for name, value in model.get_params(deep=False).items():
        with writer.within(f"the parameter {name!r} of the classifier"):
            params[name] = writer.write(value)
    return {"fitted": fitted, "decided": decided, "params": params}


def read_estimator(reader: Reader, stored: dict[str, Json]) -> DAMVIClassifier:
    """The classifier that was written."""
    model = DAMVIClassifier()
    fitted, params = reader.state(stored["fitted"]), reader.state(stored["params"])
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
    decided = reader.state(stored["decided"])
    if decided.keys() != set(DECIDED):
        raise ModelFileError("the classifier's decision is not whole")
    if decided[VOTE] is None:  # the table was beyond memory
        del decided[VOTE]
    model.__dict__.update(fitted)
    _check_classes(model)
    model._decision = Decision.restored(**decided)
    _check_fitted(model)
    _check_voters(model, model._voters)
    _check_decision(model)
    return model


def _check_classes(model: DAMVIClassifier) -> None:
    """The classes, and what decides between them."""
    classes, first, threshold = model.classes_, model._majority, model.threshold_
    _require(isinstance(classes, np.ndarray) and classes.ndim == 1, "classes_")
    n = len(classes)
    _require(2 <= n <= MAX_CLASSES and len(np.unique(classes)) == n, "classes_")
    if n == 2:
        _require((classes == model.pos_label_).sum() == 1, "pos_label_")
        _require(first in (0, 1), "majority")
        _require(_is_number(threshold), "threshold_")
    else:
        _require(model.pos_label_ is None, "pos_label_")
        _require(_is_array(first, np.intp, (n,)), "majority")
        _require(np.array_equal(np.sort(first), np.arange(n)), "majority")
        _require(_is_array(threshold, np.float64, (n,)), "threshold_")
        _require((np.isfinite(threshold) & (threshold > 0)).all(), "threshold_")


def _check_fitted(model: DAMVIClassifier) -> None:
    voters, weights = model._voters, model.weights_
    _require(isinstance(voters, (TreeVoters, BaggedVoters, PoolVoters)), "voters")
    _require(_is_array(weights, np.float64, (len(voters),)), "weights_")
    _require((weights >= 0).all() and abs(weights.sum() - 1) < 1e-6, "weights_")
    width = model.n_features_in_
    _require(type(width) is int and width > 0, "n_features_in_")
    for name in ("eta_", "c_bound_", "gibbs_risk_", "disagreement_"):
        _require(_is_number(getattr(model, name)), name)
    prints, step = model._row_prints, model._print_step
    _require(_is_array(prints, np.uint64, (None,)), "prints")
    _require((prints[1:] >= prints[:-1]).all(), "prints")
    _require(type(step) is int and 1 <= step < 2**62, "prints")
    _require(isinstance(model._keeps_frames, bool), "frames")


def _check_voters(model: DAMVIClassifier, voters: Any) -> None:
    n_classes = len(model.classes_)
    if isinstance(voters, TreeVoters):
        _require(model.n_features_in_ == len(voters.features), "n_features_in_")
        _require(voters.n_classes == n_classes, "voters' classes")
        return
    _require(isinstance(voters.estimators, list), "voters")
    _require(len(voters.estimators) == len(voters), "voters")
    if isinstance(voters, BaggedVoters):
        missed = voters.n_without_class
        _require(_is_array(missed, np.intp, (n_classes,)), "voters' classes")
        return
    _require(isinstance(voters.names, tuple), "voters' names")
    _require(all(type(name) is str for name in voters.names), "voters' names")
    _require(voters.voting in ("hard", "soft"), "voting")
    curves = voters.calibrators
    _require(curves is None or len(curves) == len(voters), "calibrators")
    known = voters.classes
    _require(
        isinstance(known, np.ndarray) and known.shape == (n_classes,), "voters' classes"
    )
    if n_classes == 2:
        _require(known[0] != known[1], "voters' classes")
        return
    _require((known[1:] > known[:-1]).all(), "voters' classes")
    for voter in voters.estimators:
        own = np.asarray(getattr(voter, "classes_", known))
        _require(np.isin(own, known).all(), "voters' classes")
    for curve in curves or ():
        _require(isinstance(curve, ClassCurves), "calibrators")
        _require(isinstance(curve.curves, tuple), "calibrators")
        _require(len(curve.curves) == n_classes, "calibrators")


def _check_decision(model: DAMVIClassifier) -> None:
    decision, n_classes = model._decision, len(model.classes_)
    tuning, vote = decision.tuning, decision.vote_to_keep
    calibrator: Any = decision.calibrator
    many = n_classes > 2
    _require(np.array_equal(decision.threshold, model.threshold_), "threshold_")
    if vote is not None:
        shape = (None, n_classes) if many else (None,)
        _require(_is_array(vote, np.float64, shape), "unseen vote")
        # Prints are kept of the unlabelled rows too.
        _require(len(vote) <= len(model._row_prints), "unseen vote")
    if tuning is not None:
        _require(isinstance(tuning, Tuning), "tuning_")
        for values in (tuning.threshold, tuning.honest_f1):
            listed: Any = values if many else (values,)
            _require(isinstance(listed, tuple), "tuning_")
            _require(len(listed) == (n_classes if many else 1), "tuning_")
            _require(all(map(_is_number, listed)), "tuning_")
        _require(np.array_equal(tuning.threshold, model.threshold_), "tuning_")
    if calibrator is not None:
        _require(isinstance(calibrator, Calibrator), "calibrator")
        curves = calibrator.curves
        _require(isinstance(curves, tuple), "calibrator")
        _require(len(curves) == (n_classes if many else 1), "calibrator")
        _require(all(isinstance(one, ProbabilityCurve) for one in curves), "calibrator")


def _is_array(value: Any, dtype: Any, shape: tuple[int | None, ...]) -> bool:
    """Whether it is an array of this type and shape; None is any number."""
    if not isinstance(value, np.ndarray) or value.dtype != dtype:
        return False
    return has_shape(value, shape)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) and not np.isnan(value)


def _require(condition: Any, name: str) -> None:
    """Refuse the file unless the condition holds."""
    if not condition:
        raise ModelFileError(f"the classifier's {name} cannot be right")
