"""Step 4 of DAMVI, as the estimators run it: where to cut the vote, and what it means.

The threshold is found at once. What else is learned from out-of-sample votes (how good
the threshold is, and the chance that a vote stands for) waits until it is asked for, so
that trying other weights is quick.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .calibration import Calibrator, calibrate_vote
from .objectives import Fixed, Objective, Untuned
from .rows import read_rows
from .threshold import tune_threshold
from .tuning import Tuning, tune

AVERAGE_PRECISION = "average_precision"


@dataclass(eq=False, repr=False)
class Decision:
    """A weighted vote, cut for an objective.

    Attributes
    ----------
    weighting : Weighting
        Its ``out_of_sample_vote`` on rows, and ``votes`` with their ``targets``, weights
        (``sample_weight``); ``folds``, and whether these are ``forward``.
    objective : Objective
    calibrates : bool
        Whether votes are turned into probabilities.
    order : ndarray of shape (C,)
        The classes by their claim to a tie.
    """

    weighting: Any
    objective: Objective
    calibrates: bool
    order: NDArray[np.intp]

    def __post_init__(self) -> None:
        self.threshold  # noqa: B018  (warns now of a floor that is out of reach)

    @classmethod
    def restored(cls, **known: Any) -> Self:
        """What a model file tells: the results, without the votes behind them."""
        decision = cls.__new__(cls)
        vars(decision).update(known)
        return decision

    def at(self, threshold: float) -> Decision:
        """The same vote, cut at a threshold that comes from other rows."""
        other = copy(self)
        vars(other).update(objective=Fixed(threshold), threshold=threshold, tuning=None)
        return other

    @cached_property
    def threshold(self) -> Any:
        """The vote above which a row is flagged, or the factor of each class."""
        if isinstance(self.objective, Untuned):
            return self.weighting.threshold
        if isinstance(self.objective, Fixed):
            return self.objective.threshold
        rows = self.weighting.votes
        return tune_threshold(
            self.out_of_sample_vote,
            rows.targets,
            self.objective,
            sample_weight=rows.sample_weight,
            order=self.order,
        )

    @cached_property
    def out_of_sample_vote(self) -> NDArray[np.float64]:
        if "weighting" not in vars(self):
            raise AttributeError(
                "the votes on the training rows of a table beyond memory are not saved "
                "with a model; fit it again"
            )
        weighting = self.weighting
        is_tuned = not isinstance(self.objective, Untuned)
        vote: NDArray[np.float64]
        vote = weighting.out_of_sample_vote if is_tuned else weighting.vote_to_cut
        return vote

    @property
    def vote_to_keep(self) -> NDArray[np.float64] | None:
        """The vote on unseen rows, unless they are as many as a table beyond memory has."""
        if "weighting" not in vars(self):
            return vars(self).get("out_of_sample_vote")
        return self.out_of_sample_vote if self.weighting.votes.in_memory else None

    @cached_property
    def comparison(self) -> Any:
        """The learned weights beside the plain vote, if they were compared."""
        return self.weighting.comparison

    @cached_property
    def tuning(self) -> Tuning | None:
        """What the threshold is worth, if it was tuned, and there are rows to tell by."""
        if isinstance(self.objective, Fixed):
            return None
        rows = self.weighting.votes
        judged = read_rows(self.out_of_sample_vote, rows.targets, rows.sample_weight)
        folds = self.weighting.folds
        if np.ptp(folds[judged.index]) == 0:  # of three rows, two may have no vote
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said when the threshold was found
            return tune(
                self.out_of_sample_vote,
                rows.targets,
                self.objective,
                folds=folds,
                forward=self.weighting.forward,
                sample_weight=rows.sample_weight,
                order=self.order,
            )

    @cached_property
    def calibrator(self) -> Calibrator | None:
        """From the vote to a probability."""
        if not self.calibrates:
            return None
        rows = self.weighting.votes
        return calibrate_vote(
            self.out_of_sample_vote, rows.targets, sample_weight=rows.sample_weight
        )

    @property
    def metric(self) -> Any:
        """What settings are chosen by: the threshold's objective, if it is tuned."""
        return AVERAGE_PRECISION if isinstance(self.objective, Fixed) else self.objective

    def __getstate__(self) -> dict[str, Any]:
        # The training rows' votes stay behind, so what they are good for is learned now.
        for name in ("threshold", "comparison", "tuning", "calibrator"):
            getattr(self, name)
        known = {name: value for name, value in vars(self).items() if name != "weighting"}
        known.pop("out_of_sample_vote", None)
        vote = self.vote_to_keep
        return known if vote is None else known | {"out_of_sample_vote": vote}


def choose_threshold(
    weighting: Any,
    objective: Objective,
    order: NDArray[np.intp],
    *,
    calibrates: bool = False,
) -> Decision:
    """Step 4: where to cut the vote, by out-of-sample votes, and what the vote means.

    Parameters
    ----------
    weighting : Weighting
    objective : Objective
        See :func:`parse_objective`.
    order : ndarray of shape (C,)
        The targets by their claim to a tie.
    calibrates : bool, default=False
        Whether votes are turned into probabilities, once these are asked for.
    """
    return Decision(weighting, objective, calibrates, order)
