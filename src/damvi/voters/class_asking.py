"""What a fitted classifier says of three or more classes, as a vote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from .asking import FoldModels, Voting


@dataclass(frozen=True, eq=False)
class AskClasses:
    """The vote of a classifier on each row: a class, or a share for each of them.

    A hard vote is the number of the class, in a byte. A soft one is the model's
    probabilities (n, C), with 0 for classes that it has never met; the scores of a model
    with a ``decision_function`` only are read as log-odds; a model with neither puts all
    on the class it decides for.

    Attributes
    ----------
    voting : {"hard", "soft"}
    classes : ndarray of shape (C,)
        What the models call the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> model = GaussianNB().fit(X, ["a", "a", "c", "c"])
    >>> AskClasses("soft", np.array(["a", "b", "c"]))(model, X).round(2)[[0, 3]]
    array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """

    voting: Voting
    classes: NDArray[Any]

    def __call__(self, model: Any, X: Any) -> NDArray[Any]:
        if self.voting == "soft":
            shares = self._shares(model, X)
            if shares is not None:
                return shares
        said = np.asarray(model.predict(X)).ravel()
        numbers = np.searchsorted(self.classes, said)
        if self.voting == "hard":
            return numbers.astype(np.uint8)
        return self.spread(numbers).astype(np.float32)

    def _shares(self, model: Any, X: Any) -> NDArray[np.float32] | None:
        known: NDArray[Any] = np.asarray(getattr(model, "classes_", self.classes))
        if hasattr(model, "predict_proba"):
            shares = np.asarray(model.predict_proba(X), dtype=np.float64)
        elif hasattr(model, "decision_function"):
            scores = np.asarray(model.decision_function(X), dtype=np.float64)
            if len(known) == 2:
                last = expit(scores.ravel())
                shares = np.column_stack([1 - last, last])
            else:
                shares = softmax(scores, axis=1)
        else:
            return None
        if np.isnan(shares).any():
            rows = int(np.isnan(shares).any(axis=1).sum())
            raise ValueError(f"its vote is NaN on {rows} rows")
        found = np.zeros((len(shares), len(self.classes)), np.float32)
        found[:, np.searchsorted(self.classes, known)] = np.clip(shares, 0, 1)
        return found

    def room(self, n_rows: int, n_voters: int) -> NDArray[Any]:
        """Where the votes of all voters go."""
        if self.voting == "soft":
            return np.empty((n_rows, n_voters, len(self.classes)), np.float32)
        return np.empty((n_rows, n_voters), np.uint8, order="F")

    def spread(self, said: NDArray[Any]) -> NDArray[np.float64]:
        """One voter's votes as what each class gets, (n, C)."""
        if said.ndim == 2:
            return said.astype(np.float64)
        return np.equal.outer(said, np.arange(len(self.classes))).astype(np.float64)

    def together(self, said: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The vote of the models of several folds; of classes that tie, the first."""
        total = np.sum([self.spread(one) for one in said], axis=0)
        if self.voting == "hard":
            return total.argmax(axis=1).astype(np.uint8)
        return np.asarray(total / len(said), dtype=np.float32)

    def as_one(self, models: list[Any]) -> FoldModels:
        """The models of a voter's folds, as a classifier."""
        return ClassFoldModels(models, self.classes)


class ClassFoldModels(FoldModels):
    """The models of a voter's folds, as one: the mean of their probabilities.

    Parameters
    ----------
    models : list of fitted classifiers
    classes : array of shape (C,)
        All their labels; a model need not have met each.
    """

    def __init__(self, models: list[Any], classes: Any) -> None:
        self.models = models
        self.classes = classes
        self.classes_ = np.asarray(classes)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class that most of the models decide for; of those that tie, the first."""
        ask = AskClasses("hard", self.classes_)
        winners = ask.together([ask(model, X) for model in self.models])
        return self.classes_[winners]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The mean of their probabilities."""
        ask = AskClasses("soft", self.classes_)
        said = ask.together([ask(model, X) for model in self.models])
        return said.astype(np.float64)
