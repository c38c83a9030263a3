"""That the parts of a classifier from a file fit each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..classifier import DAMVIClassifier
from ..decision import Calibrator, ClassCalibrator, ClassTuning, Tuning
from ..voters import BaggedVoters, PoolVoters
from ..voters.class_calibration import ClassCurves
from ..voters.trees.estimators import MAX_CLASSES
from ..voters.trees.voters import TreeVoters
from .errors import ModelFileError


def check_classes(model: DAMVIClassifier) -> int:
    """How many classes there are, once these and what decides between them make sense."""
    classes = model.classes_
    need(isinstance(classes, np.ndarray) and classes.ndim == 1, "classes_")
    n = len(classes)
    need(2 <= n <= MAX_CLASSES and len(np.unique(classes)) == n, "classes_")
    if n == 2:
        need(bool((classes == model.pos_label_).sum() == 1), "pos_label_")
        need(model._majority in (0, 1), "majority")
        need(_is_number(model.threshold_), "threshold_")
    else:
        order, factors = model._majority, model.threshold_
        need(model.pos_label_ is None, "pos_label_")
        need(_is_array(order, np.intp, (n,)), "majority")
        need(np.array_equal(np.sort(order), np.arange(n)), "majority")
        need(_is_array(factors, np.float64, (n,)), "threshold_")
        need(bool((np.isfinite(factors) & (factors > 0)).all()), "threshold_")
    return n


def check_classifier(model: DAMVIClassifier) -> None:
    """All the rest."""
    voters, weights = model._voters, model.weights_
    need(isinstance(voters, (TreeVoters, BaggedVoters, PoolVoters)), "voters")
    need(_is_array(weights, np.float64, (len(voters),)), "weights_")
    need(bool((weights >= 0).all() and abs(weights.sum() - 1) < 1e-6), "weights_")
    need(type(model.n_features_in_) is int and model.n_features_in_ > 0, "n_features_in_")
    for name in ("eta_", "c_bound_", "gibbs_risk_", "disagreement_"):
        need(_is_number(getattr(model, name)), name)
    prints = model._row_prints
    need(_is_array(prints, np.uint64, (None,)), "prints")
    need(bool((prints[1:] >= prints[:-1]).all()), "prints")
    need(isinstance(model._keeps_frames, bool), "frames")
    _check_voters(model, voters)
    _check_decision(model)


def _check_voters(model: DAMVIClassifier, voters: Any) -> None:
    n_classes = len(model.classes_)
    if isinstance(voters, TreeVoters):
        need(model.n_features_in_ == len(voters.features), "n_features_in_")
        need(voters.n_classes == n_classes, "voters' classes")
        return
    need(isinstance(voters.estimators, list), "voters")
    need(len(voters.estimators) == len(voters), "voters")
    if isinstance(voters, BaggedVoters):
        need(voters.n_classes == n_classes, "voters' classes")
        missing = voters.missing
        need(isinstance(missing, tuple), "voters' classes")
        need(len(missing) == (0 if n_classes == 2 else n_classes), "voters' classes")
        return
    need(isinstance(voters.names, tuple), "voters' names")
    need(all(type(name) is str for name in voters.names), "voters' names")
    need(voters.voting in ("hard", "soft"), "voting")
    curves = voters.calibrators
    need(curves is None or len(curves) == len(voters), "calibrators")
    if n_classes == 2:
        need(voters.classes is None, "voters' classes")
        return
    known = voters.classes
    need(isinstance(known, np.ndarray) and known.shape == (n_classes,), "voters' classes")
    need(bool((known[1:] > known[:-1]).all()), "voters' classes")
    for voter in voters.estimators:
        own = np.asarray(getattr(voter, "classes_", known))
        need(bool(np.isin(own, known).all()), "voters' classes")
    for curve in curves or ():
        need(isinstance(curve, ClassCurves), "calibrators")
        need(isinstance(curve.curves, tuple), "calibrators")
        need(len(curve.curves) == n_classes, "calibrators")


def _check_decision(model: DAMVIClassifier) -> None:
    decision, n_classes = model._decision, len(model.classes_)
    tuning, vote = decision.tuning, decision.vote_to_keep
    calibrator: Any = decision.calibrator
    need(np.array_equal(decision.threshold, model.threshold_), "threshold_")
    many = n_classes > 2
    if vote is not None:  # else the table was beyond memory
        shape = (None, n_classes) if many else (None,)
        need(_is_array(vote, np.float64, shape), "unseen vote")
        # Prints are kept of the unlabelled rows too.
        need(len(vote) <= len(model._row_prints), "unseen vote")
    step = model._print_step
    need(type(step) is int and 1 <= step < 2**62, "prints")
    need(tuning is None or isinstance(tuning, ClassTuning if many else Tuning), "tuning_")
    if not many:
        need(calibrator is None or isinstance(calibrator, Calibrator), "calibrator")
        return
    if isinstance(tuning, ClassTuning):
        need(tuning.factors == tuple(model.threshold_.tolist()), "tuning_")
        need(_are_numbers(tuning.honest_f1, n_classes), "tuning_")
    if calibrator is not None:
        need(isinstance(calibrator, ClassCalibrator), "calibrator")
        curves = calibrator.of_class
        need(isinstance(curves, tuple) and len(curves) == n_classes, "calibrator")
        need(all(isinstance(curve, Calibrator) for curve in curves), "calibrator")


def _is_array(value: Any, dtype: Any, shape: tuple[int | None, ...]) -> bool:
    """Whether it is an array of this type and shape; None is any number."""
    if not isinstance(value, np.ndarray) or value.dtype != dtype:
        return False
    wanted = zip(shape, value.shape, strict=False)
    return value.ndim == len(shape) and all(a in (None, b) for a, b in wanted)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) and not np.isnan(value)


def _are_numbers(values: Any, n: int) -> bool:
    return isinstance(values, tuple) and len(values) == n and all(map(_is_number, values))


def need(condition: bool, name: str) -> None:
    """Refuse the file unless the condition holds."""
    if not condition:
        raise ModelFileError(f"the classifier's {name} cannot be right")
