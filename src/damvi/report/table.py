"""The table of a report, with the model's out-of-sample votes on it.

The differences between two classes and more are handled here: scores relative to the
threshold, what the slider moves, and which rows are listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..evaluation import FittedVote, Judged, class_names, honest_rows, top_figures
from ..tables import label_texts
from .curves import MAX_CUTS, OWN, STEPS, offer_weights, standing

if TYPE_CHECKING:
    from ..io import ModelParts

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

BUDGETS = 80
"""Steps of the alert-budget slider, from one row to all."""
POINTS = 150
"""Points of a one-vs-rest curve; the corners of its hull are added."""
MOST_WEIGHED = 16
"""With more classes, the tables for the slider would be too large."""

UNCALIBRATED = (
    "This model's scores are not calibrated probabilities, just rescaled to 0 to 1. "
    "A pool of models (damvi fit --pool strong) gives calibrated ones."
)
PLAIN = "These are the model's probabilities."
CROSSFITTED = "Training rows are calibrated out of sample, on other rows."


@dataclass(frozen=True, eq=False)
class JudgedTable:
    """A table, with the model's out-of-sample votes on it.

    Attributes
    ----------
    model : ModelParts
    fitted : FittedVote
    target : str
        The column of true labels, if the table has it.
    frame : DataFrame
        The user's table as read, without unlabelled rows.
    numbers : ndarray of int, shape (n,)
        The row numbers in the file, from 1.
    without_truth : int
        How many unlabelled rows were left out.
    X : DataFrame
        The encoded rows.
    judged : Judged
    """

    model: ModelParts
    fitted: FittedVote
    target: str
    frame: Any
    numbers: Labels
    without_truth: int
    X: Any
    judged: Judged

    @classmethod
    def of(cls, model: ModelParts, frame: Any, target: str | None) -> JudgedTable:
        name = model.target.name if target is None else target
        kept = np.ones(len(frame), dtype=bool)
        if name in frame.columns:
            kept = label_texts(frame[name]).notna().to_numpy()
        if not kept.any():
            raise ValueError(f"the target {name!r} is missing in all rows")
        rows, fitted = frame[kept].reset_index(drop=True), FittedVote(model.classifier)
        kind = FlaggedTable if len(fitted.labels.reported) == 1 else cls
        return kind(
            model=model,
            fitted=fitted,
            target=name,
            frame=rows,
            numbers=np.flatnonzero(kept) + 1,
            without_truth=int((~kept).sum()),
            X=model.schema.encode(rows),
            judged=honest_rows(model, rows, target),
        )

    @property
    def names(self) -> tuple[str, ...]:
        return class_names(self.model.target)

    def score(self, rows: Labels, classes: Labels) -> Floats:
        """The vote on each row for its class; with two classes, for the positive one."""
        return _of_classes(self.judged.columns, rows, classes)

    def chance(self, rows: Labels, classes: Labels) -> Floats:
        """The probability of each row for its class, likewise."""
        columns = self.judged.probability.reshape(self.judged.columns.shape)
        return _of_classes(columns, rows, classes)

    @property
    def calibration_words(self) -> str:
        """How the probabilities were calibrated."""
        if not self.fitted.calibrates:
            return UNCALIBRATED
        learned = self.model.training.probability is not None
        return CROSSFITTED if learned and self.judged.of_fit.any() else PLAIN

    # FlaggedTable overrides what follows for two classes.

    found_as: ClassVar[str] = "named"
    """The key of the rows not predicted as the majority class."""
    most_cuts: ClassVar[int] = POINTS
    usual: ClassVar[int | None] = None
    """The negative class, if there are two."""

    def standing(self, at: int) -> tuple[Floats, float, Floats]:
        """How close each row is to the class in column ``at`` of the votes.

        Also returns the cut above which a row gets that class, and those of the slider.
        Training rows are measured against their own thresholds.
        """
        judged, order = self.judged, self.fitted.labels.target_order
        near = standing(judged.vote, judged.threshold, order, at)
        return near, 0.5, 1 / (1 + np.array(STEPS))

    def near(self, rows: Labels) -> Any:
        """How close rows are to being flagged, for the slider."""
        return None

    def slider(self, cuts: Any) -> Any:
        """The thresholds of the slider."""
        return None

    def charted(self, sizes: NDArray[Any], least: int) -> list[int]:
        """The columns to chart, rarest first; a class needs rows, and not all of them."""
        order = np.argsort(sizes, kind="stable").tolist()
        return [at for at in order if least <= sizes[at] < sizes.sum()]

    def budget(self, truth: Labels) -> list[dict[str, Any]]:
        """What is found by checking the top rows, from one row to all."""
        return []

    def weights(self, truth: Labels) -> dict[str, Any] | None:
        """Confusion tables when one class counts for more or less, for the slider."""
        labels, judged = self.fitted.labels, self.judged
        if len(labels.reported) > MOST_WEIGHED:
            return None
        known = judged.has_vote
        own = judged.vote[known], truth, judged.threshold[known]
        offered = offer_weights(*own, labels.target_order)
        return {
            "steps": list(STEPS),
            "own": OWN,
            "factors": self.fitted.threshold.tolist(),
            # Flat, line by line.
            "tables": [[each.reshape(-1).tolist() for each in steps] for steps in offered],
        }

    def mistakes(self, wrong: Labels, labels: Labels) -> dict[str, Labels]:
        """Wrong predictions: missed rows of rare classes first, then the most confident.

        Confident means many votes for the wrong class and few for the right one.
        """
        classes, truth = self.fitted.labels, labels[wrong]
        sure = self.score(wrong, self.judged.decided[wrong]) - self.score(wrong, truth)
        rare = classes.rare(np.bincount(labels, minlength=classes.n_classes))[truth]
        return {"mistakes": wrong[np.lexsort((-sure, ~rare))]}

    def found(self) -> Labels:
        """Rows not predicted as the majority class, highest votes first."""
        judged = self.judged
        taken = judged.decided != self.fitted.labels.usual
        rows = np.flatnonzero(judged.has_vote & taken)
        return rows[np.argsort(-self.score(rows, judged.decided[rows]), kind="stable")]


class FlaggedTable(JudgedTable):
    """The same for two classes, where rows are flagged or not."""

    found_as = "flagged"
    most_cuts = MAX_CUTS
    usual = 0

    def standing(self, at: int) -> tuple[Floats, float, Floats]:
        threshold = float(self.fitted.threshold)
        own = self.fitted.labels.flags_above(threshold)
        return self.judged.vote_to_cut(threshold, own), own, np.empty(0)

    def near(self, rows: Labels) -> Any:
        return self.standing(0)[0][rows].tolist()

    def slider(self, cuts: Any) -> Any:
        return cuts.as_dict()

    def charted(self, sizes: NDArray[Any], least: int) -> list[int]:
        return [0]

    def budget(self, truth: Labels) -> list[dict[str, Any]]:
        if not (truth == 1).any():
            return []
        steps = np.unique(np.geomspace(1, len(truth), BUDGETS).round())
        vote = self.judged.vote[self.judged.has_vote]
        found = top_figures(truth, vote, steps, blocks=self.judged.blocks)
        return [
            {
                "rows": int(one.rows),
                **{
                    name: [figure.value, figure.low, figure.high]
                    for name, figure in vars(one).items()
                    if name in ("hits", "precision", "recall")
                },
            }
            for one in found
        ]

    def weights(self, truth: Labels) -> dict[str, Any] | None:
        return None

    def mistakes(self, wrong: Labels, labels: Labels) -> dict[str, Labels]:
        """Missed positives and false alarms, the most confident first."""
        missed = labels[wrong] != self.usual
        score = self.score(wrong, self.judged.decided[wrong])
        low = wrong[missed][np.argsort(score[missed], kind="stable")]
        high = wrong[~missed][np.argsort(-score[~missed], kind="stable")]
        return {"missed": low, "false_alarms": high}

    def found(self) -> Labels:
        """All rows, for the slider to select from, or without labels the flagged ones."""
        judged = self.judged
        rows = np.flatnonzero(judged.has_vote)
        taken = judged.decided[rows] != self.usual
        order = np.argsort(-self.standing(0)[0][rows], kind="stable")
        return rows[order] if judged.labels is not None else rows[order][taken[order]]


def _of_classes(columns: Floats, rows: Labels, classes: Labels) -> Floats:
    return columns[rows, np.minimum(classes, columns.shape[1] - 1)]
