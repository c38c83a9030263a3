"""The votes for one of many classes, as if there were no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ForClass:
    """A fitted classifier that speaks of one class alone: its share of the vote.

    Attributes
    ----------
    classifier : DAMVIClassifier
        Of three or more classes.
    place : int
        Of the class in ``classes_``.
    """

    classifier: Any
    place: int

    @property
    def weights_(self) -> NDArray[np.float64]:
        weights: NDArray[np.float64] = self.classifier.weights_
        return weights

    def vote(self, X: Any) -> NDArray[np.float64]:
        """The share of the vote for the class, from 0 to 1."""
        votes: NDArray[np.float64] = self.classifier.vote(X)[:, self.place]
        return votes

    def cast_votes(self, X: Any) -> NDArray[np.float64]:
        """What each voter gives to the class, (n, K), from 0 to 1."""
        votes = self.classifier.cast_votes(X)
        if votes.ndim == 3:
            return np.asarray(votes[:, :, self.place], dtype=np.float64)
        return (votes == self.place).astype(np.float64)


def one_score(classifier: Any, X: Any) -> NDArray[np.float64]:
    """High where a rare class is likely: the vote, or what the largest class leaves."""
    vote: NDArray[np.float64] = classifier.vote(X)
    return vote if vote.ndim == 1 else 1 - vote[:, classifier._majority[0]]
