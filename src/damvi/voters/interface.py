"""What the algorithm asks of voters, whoever they are, and what a vote is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from .sampling import Sampling

Voting = Literal["hard", "soft"]
Progress = Callable[[Iterable[Any], int], Iterable[Any]]


class Voters(Protocol):
    """A set of trained voters of one kind: trees, bagged classifiers, ...

    Votes for the positive one of two classes are +1 and -1 (int8). Of three classes or
    more, they are class numbers (uint8). :class:`VoteReader` has soft votes, too.
    """

    @classmethod
    def train(
        cls,
        estimator: Any,
        X: Any,
        targets: NDArray[Any],
        sampling: Sampling,
        n_voters: int,
        /,
        *,
        n_classes: int = 2,
        known: Any = None,
        sample_weight: NDArray[np.float64] | None = None,
        fit_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[Self, Any]:
        """The ``known`` voters and new ones up to ``n_voters``, with all votes on ``X``.

        ``targets`` are class numbers, from 0; of two classes, 1 is the positive one. With
        replacement, voters see how often each row was drawn; without, they see the rows'
        own ``sample_weight``.
        """

    def __len__(self) -> int: ...

    @property
    def takes_frames(self) -> bool:
        """Whether dataframes are left as they are, for their names and categories."""

    def take(self, some: NDArray[np.intp]) -> Self:
        """These voters alone, by their numbers."""

    @property
    def estimators(self) -> list[Any]:
        """The voters as classifiers, trained on class numbers."""

    @property
    def n_without_class(self) -> NDArray[np.intp]:
        """For each class, how many voters have seen none of it, and never vote for it."""

    def votes(self, X: Any, n_jobs: int | None = None) -> Any:
        """The votes of all K voters on ``X``, (n, K)."""

    def weighted_vote(
        self, X: Any, weights: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """The weighted sum of the votes on ``X``; voters of weight 0 are not asked.

        Of three classes or more: the weight behind each, (n, C).
        """


@dataclass(frozen=True, eq=False)
class VoteReader:
    """The votes of fitted classifiers, whatever they answer with.

    A hard vote is a decision, in a byte: of two classes +1 or -1, of more the class
    number. A soft vote is, of two classes, 2p - 1, where p is the probability of the
    second class; of more, the probability of each. A class that the model has never met
    gets none. The scores of a model that only has a ``decision_function`` are read as
    log-odds, which keeps its ranking and is what Platt's calibration starts from. A model
    with neither casts its hard vote.

    Attributes
    ----------
    classes : ndarray of shape (C,)
        What the models call the classes, in the order of their numbers. Of two classes,
        the second is the positive one; three or more are sorted.
    voting : {"hard", "soft"}

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> model = GaussianNB().fit(X, ["a", "a", "c", "c"])
    >>> VoteReader(np.array(["a", "c"]), "hard")(model, X)
    array([-1, -1,  1,  1], dtype=int8)
    >>> VoteReader(np.array(["a", "b", "c"]), "soft")(model, X).round(2)[[0, 3]]
    array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """

    classes: NDArray[Any]
    voting: Voting

    @property
    def is_binary(self) -> bool:
        return len(self.classes) == 2

    def __call__(self, model: Any, X: Any) -> NDArray[Any]:
        """The votes of one model: (n,), or (n, C) where they are soft and C > 2."""
        if self.voting == "hard":
            return self._decisions(model, X)
        if hasattr(model, "predict_proba") or hasattr(model, "decision_function"):
            votes = self._probabilities(model, X)
            missing = np.isnan(votes.reshape(len(votes), -1)).any(axis=1)
            if missing.any():
                raise ValueError(f"its vote is NaN on {int(missing.sum())} rows")
            return np.clip(votes, -1 if self.is_binary else 0, 1).astype(np.float32)
        return self._as_numbers(self._decisions(model, X)).astype(np.float32)

    def _decisions(self, model: Any, X: Any) -> NDArray[Any]:
        labels = np.asarray(model.predict(X)).ravel()
        if self.is_binary:
            return np.where(labels == self.classes[1], 1, -1).astype(np.int8)
        return np.searchsorted(self.classes, labels).astype(np.uint8)

    def _probabilities(self, model: Any, X: Any) -> NDArray[np.float64]:
        known = np.asarray(getattr(model, "classes_", np.sort(self.classes)))
        if hasattr(model, "predict_proba"):
            shares = np.asarray(model.predict_proba(X), dtype=np.float64)
        else:
            scores = np.asarray(model.decision_function(X), dtype=np.float64)
            if self.is_binary:
                half = np.tanh(scores.ravel() / 2)
                return half if known[1] == self.classes[1] else -half
            if len(known) == 2:
                last = expit(scores.ravel())
                shares = np.column_stack([1 - last, last])
            else:
                shares = softmax(scores, axis=1)
        if self.is_binary:
            place = known.tolist().index(self.classes.tolist()[1])
            return np.asarray(2 * shares[:, place] - 1)
        found = np.zeros((len(shares), len(self.classes)))
        found[:, np.searchsorted(self.classes, known)] = shares
        return found

    def empty(self, n_rows: int, n_voters: int) -> NDArray[Any]:
        """Room for the votes of all voters, voter by voter in memory if (n, K)."""
        if self.voting == "soft" and not self.is_binary:
            return np.empty((n_rows, n_voters, len(self.classes)), np.float32)
        hard = np.int8 if self.is_binary else np.uint8
        dtype = hard if self.voting == "hard" else np.float32
        return np.empty((n_rows, n_voters), dtype, order="F")

    def weighted_sum(
        self, votes: Iterable[NDArray[Any]], weights: Iterable[float]
    ) -> NDArray[np.float64]:
        """The sum of several voters' votes; of C > 2 classes, what each gets, (n, C)."""
        total: Any = 0.0
        for weight, vote in zip(weights, votes, strict=True):
            total = total + weight * self._as_numbers(vote)
        return np.asarray(total)

    def _as_numbers(self, votes: NDArray[Any]) -> NDArray[np.float64]:
        """Votes to add up: as they are, or for each class 1 where it was voted for."""
        if self.is_binary or votes.ndim == 2:
            return votes.astype(np.float64)
        return np.equal.outer(votes, np.arange(len(self.classes))).astype(np.float64)
