"""What a fitted classifier says, as a vote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

Voting = Literal["hard", "soft"]


def ask(model: Any, X: Any, voting: Voting, positive: Any = 1) -> NDArray[Any]:
    """The vote of one classifier for the label ``positive``, row by row.

    A hard vote is its decision: +1 or -1, in a byte. A soft one is 2p - 1, where p is its
    probability; a model with a ``decision_function`` only has it read as log-odds, which
    keeps its ranking and is what Platt's calibration starts from; a model with neither
    casts its hard vote.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = LogisticRegression().fit(X, ["no", "no", "yes", "yes"])
    >>> ask(model, X, "hard", positive="yes")
    array([-1, -1,  1,  1], dtype=int8)
    >>> ask(model, X, "soft", positive="yes").round(2)
    array([-0.62, -0.24,  0.24,  0.62], dtype=float32)
    """
    if voting == "soft":
        if hasattr(model, "predict_proba"):
            shares = np.asarray(model.predict_proba(X), dtype=np.float64)
            return _soft(2 * shares[:, _place(model, positive)] - 1)
        if hasattr(model, "decision_function"):
            scores = np.asarray(model.decision_function(X), dtype=np.float64).ravel()
            sides = 1.0 if _place(model, positive) == 1 else -1.0
            return _soft(sides * np.tanh(scores / 2))
    said = np.asarray(model.predict(X)).ravel() == positive
    return np.where(said, 1, -1).astype(np.int8 if voting == "hard" else np.float32)


def _soft(votes: NDArray[np.float64]) -> NDArray[np.float32]:
    if np.isnan(votes).any():
        raise ValueError(f"its vote is NaN on {int(np.isnan(votes).sum())} rows")
    return np.clip(votes, -1, 1).astype(np.float32)


def _place(model: Any, positive: Any) -> int:
    """The place of the positive class among the model's."""
    classes = list(getattr(model, "classes_", [0, 1]))
    return int(classes.index(positive))


@dataclass(frozen=True, eq=False)
class AskPositive:
    """How voters are asked when there are two classes; see :func:`ask`.

    Attributes
    ----------
    voting : {"hard", "soft"}
    positive : label
        What the models call the positive class.
    """

    voting: Voting
    positive: Any = 1

    def __call__(self, model: Any, X: Any) -> NDArray[Any]:
        return ask(model, X, self.voting, self.positive)

    def room(self, n_rows: int, n_voters: int) -> NDArray[Any]:
        """Where the votes of all voters go."""
        dtype = np.int8 if self.voting == "hard" else np.float32
        return np.empty((n_rows, n_voters), dtype=dtype, order="F")

    def spread(self, said: NDArray[Any]) -> NDArray[np.float64]:
        """One voter's votes, to be weighted and added up."""
        return said.astype(np.float64)

    def together(self, said: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The vote of the models of several folds; -1 in a tie."""
        if self.voting == "hard":
            total = np.sum(said, axis=0, dtype=np.intp)
            return np.where(total > 0, 1, -1).astype(np.int8)
        return np.asarray(np.mean(said, axis=0, dtype=np.float64), dtype=np.float32)

    def as_one(self, models: list[Any]) -> FoldModels:
        """The models of a voter's folds, as a classifier."""
        return FoldModels(models)


class FoldModels(ClassifierMixin, BaseEstimator):
    """The models of a voter's folds, as one: the mean of their votes.

    Parameters
    ----------
    models : list of fitted classifiers
        On the labels 0 and 1.
    """

    def __init__(self, models: list[Any]) -> None:
        self.models = models
        self.classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> NDArray[np.intp]:
        """The class that most of the models decide for; 0 in a tie."""
        votes = [ask(model, X, "hard").astype(np.intp) for model in self.models]
        return (np.sum(votes, axis=0) > 0).astype(np.intp)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The mean of their probabilities."""
        votes = [ask(model, X, "soft") for model in self.models]
        last = (1 + np.mean(votes, axis=0, dtype=np.float64)) / 2
        return np.column_stack([1 - last, last])
