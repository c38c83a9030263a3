"""From a vote to a decision: thresholds that fit what errors cost, and probabilities.

It knows nothing of estimators or voters, only of arrays: the out-of-sample vote on each
training row (any real scale, NaN where a row was never out of sample), the signs (+1 for
the positive class, -1 for the other) and, optionally, weights and folds. A row is flagged
when its vote is above the threshold, strictly.
"""

from .calibration import Calibrator, calibrate, crossfit_probability
from .class_calibration import ClassCalibrator, calibrate_classes
from .class_factors import tune_factors
from .class_tuning import ClassTuning, crossfit_classes, tune_classes
from .objectives import Cost, FBeta, Fixed, Floor, Objective, parse_objective
from .threshold import tune_threshold
from .tuning import Tuning, crossfit_decisions, tune

__all__ = [
    "Calibrator",
    "ClassCalibrator",
    "ClassTuning",
    "Cost",
    "FBeta",
    "Fixed",
    "Floor",
    "Objective",
    "Tuning",
    "calibrate",
    "calibrate_classes",
    "crossfit_classes",
    "crossfit_decisions",
    "crossfit_probability",
    "parse_objective",
    "tune",
    "tune_classes",
    "tune_factors",
    "tune_threshold",
]
