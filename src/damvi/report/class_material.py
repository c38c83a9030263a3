"""What the report on three or more classes is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..decision import crossfit_probability
from ..evaluation import ClassJudged
from .material import N_FOLDS, NO_CHANCES, Gathered


@dataclass(frozen=True, eq=False)
class ClassMaterial(Gathered):
    """A table with its honest votes for each class."""

    judged: ClassJudged

    @property
    def names(self) -> list[str]:
        """What the classes are called."""
        return list(self.model.target.classes)

    @property
    def factors(self) -> NDArray[np.float64]:
        """What a vote for each class counts by."""
        return np.asarray(self.model.classifier.threshold_)

    def chances(self) -> tuple[NDArray[np.float64], str]:
        """A probability of each class for each row, and what it is.

        Rows of the fit get theirs from calibrators that were learned on other rows.
        """
        judged = self.judged
        if self.model.classifier._calibrator is None:
            return judged.probability, NO_CHANCES
        known = judged.of_fit & judged.has_vote
        plain = "The model's probabilities on these rows."
        if judged.labels is None or not known.any():
            return judged.probability, plain
        labels, vote = judged.labels[known], judged.vote[known]
        sizes = np.bincount(labels, minlength=vote.shape[1])
        # Each calibrator needs rows of its class, and others.
        if sizes.min() < N_FOLDS:
            return judged.probability, (
                f"{plain} Those of rows of the fit are from a calibration that knows them: "
                f"some class has too few rows to learn it on others."
            )
        folds = np.empty(len(labels), np.intp)
        rng = np.random.default_rng(0)
        for c in range(len(sizes)):
            folds[rng.permutation(np.flatnonzero(labels == c))] = (
                np.arange(sizes[c]) % N_FOLDS
            )
        chance = judged.probability.copy()
        chance[known] = crossfit_probability(vote, labels, folds)
        return chance, (
            "Rows of the fit have theirs from a calibration that was learned on other rows."
        )
