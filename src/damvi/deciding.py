"""Step 4 of DAMVI, as the estimator runs it: where to cut the vote, and what it means.

The threshold is found at once. What else is learned from votes on unseen rows (how good
the threshold is, and the chance that a vote stands for) waits until it is asked for, so
that trying other weights is quick.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .decision import (
    Calibrator,
    Fixed,
    Tuning,
    calibrate,
    parse_objective,
    tune,
    tune_threshold,
)
from .weighing import Weighing

JOINT = "joint"
"""The threshold that is fitted along with the weights."""
AVERAGE_PRECISION = "average_precision"


@dataclass(eq=False, repr=False)
class Decision:
    """A weighed vote, cut for an aim.

    Attributes
    ----------
    weighing : Weighing
    aim : Objective or "joint"
    calibrates : bool
        Whether votes are turned into chances.
    """

    weighing: Weighing
    aim: Any
    calibrates: bool

    @classmethod
    def make(cls, weighing: Weighing, wanted: Any, *, calibrates: bool) -> Decision:
        """Check what is wanted of the threshold, and find it."""
        aim = JOINT if is_joint(wanted) else parse_objective(wanted)
        decision = cls(weighing, aim, calibrates)
        decision.threshold  # noqa: B018  (warns now of a floor that is out of reach)
        return decision

    @classmethod
    def restored(cls, **known: Any) -> Decision:
        """What a model file tells: the results, without the votes behind them."""
        decision = cls.__new__(cls)
        vars(decision).update(known)
        return decision

    @cached_property
    def threshold(self) -> float:
        """The vote above which a row is flagged."""
        if is_joint(self.aim):
            return self.weighing.threshold
        if isinstance(self.aim, Fixed):
            return self.aim.threshold
        ballots = self.weighing.ballots
        return tune_threshold(
            self.unseen_vote, ballots.signs, self.aim, sample_weight=ballots.base
        )

    @cached_property
    def unseen_vote(self) -> NDArray[np.float64]:
        if "weighing" not in vars(self):
            raise AttributeError(
                "the votes on the training rows of a table beyond memory are not saved "
                "with a model; fit it again"
            )
        return self.weighing.unseen_vote

    @property
    def vote_to_keep(self) -> NDArray[np.float64] | None:
        """The vote on unseen rows, unless they are as many as a table beyond memory has."""
        if "weighing" not in vars(self):
            return vars(self).get("unseen_vote")
        return self.unseen_vote if self.weighing.ballots.at_hand else None

    @cached_property
    def tuning(self) -> Tuning | None:
        """What the threshold is worth, if it was tuned."""
        if is_joint(self.aim) or isinstance(self.aim, Fixed):
            return None
        ballots = self.weighing.ballots
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said when the threshold was found
            return tune(
                self.unseen_vote,
                ballots.signs,
                self.aim,
                sample_weight=ballots.base,
                folds=ballots.folds,
            )

    @cached_property
    def calibrator(self) -> Calibrator | None:
        """From the vote to a chance."""
        if not self.calibrates:
            return None
        ballots = self.weighing.ballots
        return calibrate(self.unseen_vote, ballots.signs, sample_weight=ballots.base)

    @property
    def metric(self) -> Any:
        """What settings are chosen by: the threshold's aim, if it has one."""
        plain = isinstance(self.aim, str | Fixed | np.ndarray)
        return AVERAGE_PRECISION if plain else self.aim

    def __getstate__(self) -> dict[str, Any]:
        # The training rows' votes stay behind, so what they are good for is learned now.
        for name in ("threshold", "tuning", "calibrator"):
            getattr(self, name)
        known = {name: value for name, value in vars(self).items() if name != "weighing"}
        known.pop("unseen_vote", None)
        vote = self.vote_to_keep
        return known if vote is None else known | {"unseen_vote": vote}


def is_joint(wanted: Any) -> bool:
    """Whether the threshold is to be fitted along with the weights."""
    return isinstance(wanted, str) and wanted == JOINT
