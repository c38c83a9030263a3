"""Rows of a table with their honest votes: what the whole report is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..decision import crossfit_probability
from ..modelfile import Model

Mask = NDArray[np.bool_]
N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Judged:
    """A table, judged by a model without looking at answers that it was taught.

    Attributes
    ----------
    model : Model
    frame : dataframe
        The user's table, as it was read.
    X : dataframe or array
        The same rows as the classifier sees them.
    vote : ndarray of shape (n,)
        For rows of the fit, by voters and weights that do not know the row; NaN where
        there is none.
    positive : ndarray of bool, shape (n,), or None
        The truth, if the table has it.
    of_the_fit : ndarray of bool, shape (n,)
    """

    model: Model
    frame: Any
    X: Any
    vote: NDArray[np.float64]
    positive: Mask | None
    of_the_fit: Mask

    @cached_property
    def has_vote(self) -> Mask:
        return ~np.isnan(self.vote)

    @cached_property
    def flagged(self) -> Mask:
        """Rows that the model flags; of equal votes and threshold, none."""
        above: Mask = self.vote > self.model.classifier.threshold_
        return above

    @property
    def feature_columns(self) -> list[str]:
        """For each feature, the column of the table that it comes from."""
        return [str(name) for name in self.X.columns]

    def chances(self) -> tuple[NDArray[np.float64], str]:
        """A probability for each row, and what it is.

        Rows of the fit get theirs by a calibration learned on other rows.
        """
        calibrator = self.model.classifier._calibrator
        if calibrator is None:
            words = (
                "This model's score ranks rows and is no probability. Here the score, put on "
                "a scale from 0 to 1, is compared with what came true. A pool of models "
                "(damvi fit --pool strong) gives probabilities."
            )
            return (1 + self.vote) / 2, words
        if self.positive is None or not self.of_the_fit.any():
            return calibrator(self.vote), "The model's probabilities on these rows."
        known = self.has_vote
        folds = np.random.default_rng(0).permutation(int(known.sum())) % N_FOLDS
        chance = np.full(len(self.vote), np.nan)
        signs = np.where(self.positive[known], 1, -1)
        chance[known] = crossfit_probability(self.vote[known], signs, folds)
        words = (
            "Each row's probability here comes from a calibration learned on other rows of "
            "the fit."
        )
        return chance, words

    def scores(self) -> list[dict[str, Any]]:
        """Scores with their intervals."""
        from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

        assert self.positive is not None
        known = self.has_vote
        truth, vote, flagged = self.positive[known], self.vote[known], self.flagged[known]
        return [
            {"name": "F1", "value": float(f1_score(truth, flagged)), "low": None, "high": None},
            {
                "name": "average precision",
                "value": float(average_precision_score(truth, vote)),
                "low": None,
                "high": None,
            },
            {
                "name": "ROC AUC",
                "value": float(roc_auc_score(truth, vote)),
                "low": None,
                "high": None,
            },
        ]


def judge(model: Model, frame: Any, target: str | None = None) -> Judged:
    """Rows of ``frame`` with honest votes."""
    from ..fingerprint import row_prints

    name = model.target.name if target is None else target
    used = [c.name for c in model.schema.columns if c.kind != "dropped" and c.name != name]
    X = frame[used]
    positive = None
    if name in frame.columns:
        positive = (frame[name].astype(str) == model.target.positive).to_numpy()
    prints = row_prints(X, np.zeros(len(X)) if positive is None else positive)
    of_the_fit = np.isin(prints, model.training.prints)
    vote = model.classifier.vote(X)
    place = {int(p): i for i, p in enumerate(model.training.prints)}
    for i in np.flatnonzero(of_the_fit).tolist():
        vote[i] = model.training.vote[place[int(prints[i])]]
    return Judged(model, frame, X, vote, positive, of_the_fit)
