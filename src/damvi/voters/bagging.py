"""Any scikit-learn classifier as a voter, on samples of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import has_fit_parameter

from .._compat import take_rows
from .asking import AskPositive
from .class_asking import AskClasses
from .draws import AnyDraws
from .fitting import params_of_rows, seeded
from .interface import Progress
from .parallel import in_parallel
from .relabelling import with_gaps, without_gaps


@dataclass(frozen=True, eq=False)
class BaggedVoters:
    """Clones of a classifier, each trained on its own draw of the rows.

    The voters learn the labels 0 and 1, with 1 the positive class, or 0, 1, 2, ... of
    more classes.
    """

    estimators: list[Any]
    n_without_positive: int
    n_classes: int = 2
    missing: tuple[int, ...] = ()
    """For each of three or more classes, how many have seen none of it."""

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
        known: BaggedVoters | None = None,
        sample_weight: NDArray[np.float64] | None = None,
        fit_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[BaggedVoters, NDArray[Any]]:
        """See :meth:`damvi.voters.Voters.train`."""
        own_weight = None if draws.replace else sample_weight
        if own_weight is not None and not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(
                f"{type(estimator).__name__} does not accept sample_weight; use "
                f"bootstrap=True, which draws the rows by their weights, or another "
                f"estimator"
            )
        kept = [] if known is None else known.estimators
        read = asker_of(n_classes)
        work = [delayed(_ask)(voter, X, read) for voter in kept]
        work += [
            delayed(_train)(estimator, X, y, draws, k, own_weight, fit_params or {}, read)
            for k in range(len(kept), n_voters)
        ]
        results = in_parallel(work, n_jobs)
        votes = read.room(len(y), n_voters)
        voters = []
        without = np.zeros(n_classes, np.intp) if known is None else known.n_without_class
        for k, result in enumerate(progress(results, n_voters) if progress else results):
            voter, votes[:, k], present = result
            voters.append(voter)
            if present is not None:
                without = without + ~np.isin(np.arange(n_classes), present)
        missing = tuple(without.tolist())
        return cls(voters, missing[1], n_classes, missing if n_classes > 2 else ()), votes

    @property
    def n_without_class(self) -> NDArray[np.intp]:
        """For each class, how many have seen none of it (of two, the positives alone)."""
        return np.array(self.missing or (0, self.n_without_positive), np.intp)

    def take(self, some: NDArray[np.intp]) -> BaggedVoters:
        """These voters alone."""
        return replace(self, estimators=[self.estimators[k] for k in some.tolist()])

    def __len__(self) -> int:
        return len(self.estimators)

    def votes(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """The votes of all voters on ``X``, (n, K), +1 and -1, or numbers of classes."""
        read = asker_of(self.n_classes)
        work = [delayed(_ask)(voter, X, read) for voter in self.estimators]
        return np.column_stack([votes for _, votes, _ in in_parallel(work, n_jobs)])

    def weighted_vote(
        self, X: Any, weights: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Sum of the voters' votes on ``X``; voters of weight 0 are not asked.

        With more than two classes: the weight behind each, (n, C).
        """
        asked = np.flatnonzero(weights)
        read = asker_of(self.n_classes)
        work = [delayed(_ask)(self.estimators[k], X, read) for k in asked]
        total: Any = 0.0
        for k, (_, votes, _) in zip(asked, in_parallel(work, n_jobs), strict=True):
            total = total + weights[k] * read.spread(votes)
        return np.asarray(total)


def asker_of(n_classes: int) -> AskPositive | AskClasses:
    """How voters are asked for their decisions."""
    if n_classes == 2:
        return AskPositive("hard")
    return AskClasses("hard", np.arange(n_classes))


def _train(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    draws: AnyDraws,
    k: int,
    own_weight: NDArray[np.float64] | None,
    fit_params: dict[str, Any],
    read: AskPositive | AskClasses,
) -> tuple[Any, NDArray[Any], NDArray[Any]]:
    rows, times = draws.sample(k)
    if len(rows) == 0:  # who drew nothing knows nothing, and says what a tie would
        rows, times = np.flatnonzero(y == 0)[:1], np.ones(1, np.intp)
    voter = seeded(clone(estimator), draws.random_state(k))
    weights = times.astype(np.float64) if draws.replace else None
    if own_weight is not None:
        weights = own_weight[rows]
    if weights is not None and not has_fit_parameter(estimator, "sample_weight"):
        rows, weights = np.repeat(rows, times), None
    if np.ptp(y[rows]) == 0:
        # Many classifiers refuse a single class; a constant is all there is to learn.
        voter, fit_params = DummyClassifier(strategy="prior"), {}
    params = params_of_rows(fit_params, rows, len(y))
    if weights is not None:
        params["sample_weight"] = weights
    numbers, present = without_gaps(y[rows])
    voter.fit(take_rows(X, rows), numbers, **params)
    voter = with_gaps(voter, present)
    return voter, read(voter, X), present


def _ask(
    voter: Any, X: Any, read: AskPositive | AskClasses
) -> tuple[Any, NDArray[Any], None]:
    return voter, read(voter, X), None
