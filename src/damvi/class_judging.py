"""What votes on three or more classes are worth: the mean over the classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from .class_ballots import ClassBallots
from .decision import MacroF1, decide, tune_threshold
from .decision.decision import AVERAGE_PRECISION
from .decision.objectives import confusion, f1_by_class

Votes = NDArray[np.float64]
MACRO_F1 = "macro_f1"


@dataclass(frozen=True, eq=False)
class ClassJudge:
    """What votes are worth by a metric, each fold decided by what the others say."""

    ballots: ClassBallots
    tunes: bool
    """Macro F1, by factors that are tuned; else average precision."""

    @classmethod
    def of(cls, ballots: ClassBallots, metric: Any) -> ClassJudge:
        """``metric`` is "average_precision" or "macro_f1"."""
        if isinstance(metric, MacroF1):
            metric = MACRO_F1
        if not isinstance(metric, str) or metric not in (AVERAGE_PRECISION, MACRO_F1):
            raise ValueError(
                f"metric={metric!r} does not go with {ballots.n_classes} classes; give "
                f"{AVERAGE_PRECISION!r} or {MACRO_F1!r}, which are means over the classes"
            )
        return cls(ballots, metric == MACRO_F1)

    @property
    def name(self) -> str:
        return "macro F1" if self.tunes else "macro average precision"

    def __call__(
        self, votes: Sequence[Votes], left_out: int | None = None
    ) -> tuple[float, float]:
        """The value, twice, of a vote for each fold; see :class:`~damvi.choosing.Judge`."""
        ballots = self.ballots
        n, n_classes = len(ballots.labels), ballots.n_classes
        weight = np.ones(n) if ballots.base is None else ballots.base
        known = ballots.folds != (-1 if left_out is None else left_out)
        order = np.argsort(-np.bincount(ballots.labels), kind="stable")
        vote, decided = np.full((n, n_classes), np.nan), np.zeros(n, np.intp)
        for fold in range(ballots.n_folds):
            here = ballots.folds == fold
            vote[here] = votes[fold][here]
            if self.tunes and fold != left_out:
                rest = known & ~here
                factors = tune_threshold(
                    votes[fold][rest],
                    ballots.labels[rest],
                    MACRO_F1,
                    sample_weight=weight[rest],
                    order=order,
                )
                decided[here] = decide(vote[here], factors, order)
        kept = known & (weight > 0) & ~np.isnan(vote).any(axis=1)
        labels, weight = ballots.labels[kept], weight[kept]
        if self.tunes:
            table = confusion(labels, decided[kept], weight, n_classes)
            value = float(f1_by_class(table).mean())
        else:
            value = float(np.mean([*_precisions(vote[kept], labels, weight)]))
        return value, value


def _precisions(vote: Votes, labels: NDArray[np.intp], weight: Votes) -> Any:
    """The average precision of each class that is there, against the rest."""
    for c in np.unique(labels):
        yield average_precision_score(labels == c, vote[:, c], sample_weight=weight)
