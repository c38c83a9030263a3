"""Step 4 of DAMVI for three or more classes: how much a vote for each of them counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .deciding import Decision
from .decision import (
    ClassCalibrator,
    ClassTuning,
    calibrate_classes,
    tune_classes,
    tune_factors,
)

VOTE = "vote"
MACRO_F1 = "macro_f1"


def knows_many(wanted: Any) -> bool:
    """Whether such a threshold can be had with three or more classes."""
    if isinstance(wanted, str):
        return wanted in ("auto", VOTE, MACRO_F1)
    listed = isinstance(wanted, (list, tuple, np.ndarray))
    return listed and all(isinstance(one, Real) for one in wanted)


def parse_factors(wanted: Any, n_classes: int) -> str | NDArray[np.float64]:
    """What ``threshold`` may be with three or more classes, checked."""
    if knows_many(wanted):
        if isinstance(wanted, str):
            return wanted
        factors = np.asarray(wanted, dtype=np.float64)
        if len(factors) == n_classes and (np.isfinite(factors) & (factors > 0)).all():
            return factors
        raise ValueError(
            f"threshold={wanted!r}: of {n_classes} classes each has a factor, in the order "
            f"of classes_; give {n_classes} finite numbers above 0"
        )
    raise ValueError(
        f"Only binary classification is supported with threshold={wanted!r}, and y has "
        f"{n_classes} classes; give {VOTE!r} (the largest vote decides), {MACRO_F1!r} "
        f"(votes count by factors that are tuned) or these factors, {n_classes} numbers "
        f"above 0; or name one class against the rest, as in y == label"
    )


@dataclass(eq=False)
class ClassDecision(Decision):
    """A weighed vote on many classes, decided by the largest vote times factor.

    Attributes
    ----------
    aim : "vote", "macro_f1" or ndarray of shape (C,)
    order : ndarray of shape (C,)
        The classes by their claim to a tie.
    """

    order: NDArray[np.intp]

    @cached_property
    def threshold(self) -> Any:
        """The factor of each class."""
        if not isinstance(self.aim, str):
            return self.aim
        if self.aim == VOTE:
            return np.ones(len(self.order))
        ballots = self.weighing.ballots
        return tune_factors(
            self.unseen_vote,
            ballots.labels,
            sample_weight=ballots.base,
            order=self.order,
        )

    @cached_property
    def tuning(self) -> ClassTuning | None:  # type: ignore[override]
        """What the factors are worth, if they were tuned."""
        if not isinstance(self.aim, str) or self.aim == VOTE:
            return None
        ballots = self.weighing.ballots
        return tune_classes(
            self.unseen_vote,
            ballots.labels,
            ballots.folds,
            sample_weight=ballots.base,
            order=self.order,
        )

    @cached_property
    def calibrator(self) -> ClassCalibrator | None:  # type: ignore[override]
        """From the votes to chances."""
        if not self.calibrates:
            return None
        ballots = self.weighing.ballots
        return calibrate_classes(
            self.unseen_vote, ballots.labels, sample_weight=ballots.base
        )

    @property
    def metric(self) -> Any:
        tuned = isinstance(self.aim, str) and self.aim == MACRO_F1
        return MACRO_F1 if tuned else super().metric
