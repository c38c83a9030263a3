"""What the whole report is made of: a table, and what the model honestly says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..decision import crossfit_probability
from ..evaluation import Judged, honest_rows
from ..io import Model
from ..tables import label_texts

Mask = NDArray[np.bool_]
N_FOLDS = 5

NO_CHANCES = (
    "This model's score ranks rows and is no probability: here it is put on a scale from 0 "
    "to 1. A pool of models (damvi fit --pool strong) gives probabilities."
)


@dataclass(frozen=True, eq=False)
class Gathered:
    """A table with its honest votes, of two classes or of many.

    Attributes
    ----------
    model : Model
    target : str
        The column of the truth, where the table has it.
    frame : DataFrame
        The user's table, as it was read, without the rows whose truth is missing.
    numbers : ndarray of int, shape (n,)
        Which row of the file each is, from 1.
    without_truth : int
        How many rows were left out since their truth is missing.
    X : DataFrame
        The same rows as the classifier sees them.
    judged : Judged or ClassJudged
    """

    model: Model
    target: str
    frame: Any
    numbers: NDArray[np.intp]
    without_truth: int
    X: Any
    judged: Any

    @classmethod
    def gather(cls, model: Model, frame: Any, target: str | None = None) -> Self:
        """Judge the rows of ``frame``; see :func:`damvi.evaluation.honest_rows`."""
        name = model.target.name if target is None else target
        kept = np.ones(len(frame), dtype=bool)
        if name in frame.columns:
            kept = label_texts(frame[name]).notna().to_numpy()
        if not kept.any():
            raise ValueError(f"the target {name!r} has no value in any row")
        rows = frame[kept].reset_index(drop=True)
        return cls(
            model=model,
            target=name,
            frame=rows,
            numbers=np.flatnonzero(kept) + 1,
            without_truth=int((~kept).sum()),
            X=model.schema.encode(rows),
            judged=honest_rows(model, rows, target),
        )

    @property
    def feature_columns(self) -> list[str]:
        """For each feature, the column of the table that it comes from."""
        return [column.name for column in self.model.schema.used for _ in column.features]


@dataclass(frozen=True, eq=False)
class Material(Gathered):
    """A table of two classes with its honest votes."""

    judged: Judged

    @property
    def threshold(self) -> float:
        """The votes above it are flagged, strictly."""
        own = float(self.model.classifier.threshold_)
        # Where the positives are the majority, they win a tie.
        tied = self.model.classifier._majority == 1
        return float(np.nextafter(own, -np.inf)) if tied else own

    def chances(self) -> tuple[NDArray[np.float64], str]:
        """A probability for each row, and what it is.

        A calibrator flatters the votes it was learned on, so rows of the fit get theirs
        from one that was learned on other rows.
        """
        judged = self.judged
        if self.model.classifier._calibrator is None:
            return judged.probability, NO_CHANCES
        known = judged.of_fit & judged.has_vote
        if judged.positive is None or not known.any():
            return judged.probability, "The model's probabilities on these rows."
        truth = judged.positive[known]
        if truth.all() or not truth.any() or len(truth) < N_FOLDS:
            return judged.probability, "The model's probabilities on these rows."
        folds = np.random.default_rng(0).permutation(len(truth)) % N_FOLDS
        chance = judged.probability.copy()
        chance[known] = crossfit_probability(judged.vote[known], truth, folds)
        return chance, (
            "Rows of the fit have theirs from a calibration that was learned on other rows."
        )
