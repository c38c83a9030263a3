"""From a vote to a decision: thresholds for different objectives, and probabilities.

These functions know nothing of estimators or voters, only of arrays: the out-of-sample
vote on each training row, the targets and, optionally, weights and folds. Targets are class
numbers; of two classes, 1 is the positive one. The vote has shape (n,), for the positive
class, or (n, C) for three or more classes; it is NaN for rows that were never out of
sample. A row is flagged (predicted positive) if its vote is strictly above the threshold;
with three or more classes, the largest vote times factor decides.
"""

from ..labels import decide
from .calibration import Calibrator, calibrate_vote, calibrate_votes, crossfit_probability
from .decision import (
    Decision,
    Tuning,
    choose_threshold,
    crossfit_decisions,
    crossfit_thresholds,
    tune,
    tune_threshold,
)
from .guarantees import Guarantee, guarantee, promising_cuts
from .objectives import (
    Cost,
    Factors,
    FBeta,
    Fixed,
    Flags,
    Floor,
    MacroF1,
    Objective,
    Untuned,
    parse_objective,
    recall_of_top,
)

__all__ = [
    "Calibrator",
    "Cost",
    "Decision",
    "FBeta",
    "Factors",
    "Fixed",
    "Flags",
    "Floor",
    "Guarantee",
    "MacroF1",
    "Objective",
    "Tuning",
    "Untuned",
    "calibrate_vote",
    "calibrate_votes",
    "choose_threshold",
    "crossfit_decisions",
    "crossfit_probability",
    "crossfit_thresholds",
    "decide",
    "guarantee",
    "parse_objective",
    "promising_cuts",
    "recall_of_top",
    "tune",
    "tune_threshold",
]
