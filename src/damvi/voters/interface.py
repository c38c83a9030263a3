"""What the algorithm asks of voters, whoever they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from .draws import AnyDraws

Votes = NDArray[np.int8]
Progress = Callable[[Iterable[Any], int], Iterable[Any]]


class Voters(Protocol):
    """A set of trained voters. Each family (trees, bagged estimators, ...) is a class."""

    @classmethod
    def train(
        cls,
        estimator: Any,
        X: Any,
        y: NDArray[Any],
        draws: AnyDraws,
        n_voters: int,
        *,
        n_classes: int = 2,
        known: Any = None,
        sample_weight: NDArray[np.float64] | None = None,
        fit_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[Self, Any]:
        """The ``known`` voters and new ones up to ``n_voters``, with all votes on ``X``.

        ``y`` is 1 for the positives and 0 for the others; the votes, of shape (n, K),
        are +1 and -1. With more than two classes, both are their numbers, from 0. With a
        bootstrap the voters see how often each row was drawn; without, they see the
        rows' own ``sample_weight``.
        """

    def __len__(self) -> int: ...

    def take(self, some: NDArray[np.intp]) -> Self:
        """These voters alone, by their numbers."""

    @property
    def estimators(self) -> list[Any]:
        """The voters as classifiers, trained on the labels 0 and 1."""

    @property
    def n_without_positive(self) -> int:
        """How many have seen no positive, and so never vote for one."""

    @property
    def n_without_class(self) -> NDArray[np.intp]:
        """For each class, how many have seen none of it."""

    def votes(self, X: Any, n_jobs: int | None = None) -> Any:
        """The votes of all voters on ``X``, (n, K), +1 and -1, or numbers of classes."""

    def weighted_vote(
        self, X: Any, weights: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Sum of the voters' votes on ``X``; voters of weight 0 are not asked.

        With more than two classes: the weight behind each, (n, C).
        """
