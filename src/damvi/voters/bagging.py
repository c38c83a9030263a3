"""Any scikit-learn classifier as a voter, on samples of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from .._compat import take_rows
from .draws import Draws
from .fitting import params_of_rows, seeded
from .interface import Progress, Votes


@dataclass(frozen=True, eq=False)
class BaggedVoters:
    """Clones of a classifier, each trained on its own draw of the rows.

    The voters learn the labels 0 and 1, with 1 the positive class.
    """

    estimators: list[Any]
    n_without_positive: int

    @classmethod
    def train(
        cls,
        estimator: Any,
        X: Any,
        y: NDArray[np.int8],
        draws: Draws,
        n_voters: int,
        *,
        known: BaggedVoters | None = None,
        sample_weight: NDArray[np.float64] | None = None,
        fit_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[BaggedVoters, Votes]:
        """See :meth:`damvi.voters.Voters.train`."""
        own_weight = None if draws.replace else sample_weight
        if own_weight is not None and not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(
                f"{type(estimator).__name__} does not accept sample_weight; use "
                f"bootstrap=True, which draws the rows by their weights, or another "
                f"estimator"
            )
        kept = [] if known is None else known.estimators
        work = [delayed(_ask)(voter, X) for voter in kept]
        work += [
            delayed(_train)(estimator, X, y, draws, k, own_weight, fit_params or {})
            for k in range(len(kept), n_voters)
        ]
        results = _parallel(work, n_jobs)
        votes: Votes = np.empty((len(y), n_voters), dtype=np.int8, order="F")
        voters, without_positive = [], 0 if known is None else known.n_without_positive
        for k, result in enumerate(progress(results, n_voters) if progress else results):
            voter, votes[:, k], has_positive = result
            voters.append(voter)
            without_positive += not has_positive
        return cls(voters, without_positive), votes

    def take(self, some: NDArray[np.intp]) -> BaggedVoters:
        """These voters alone."""
        return replace(self, estimators=[self.estimators[k] for k in some.tolist()])

    def __len__(self) -> int:
        return len(self.estimators)

    def votes(self, X: Any, n_jobs: int | None = None) -> Votes:
        """The votes of all voters on ``X``, (n, K), +1 and -1."""
        work = [delayed(_ask)(voter, X) for voter in self.estimators]
        return np.column_stack([votes for _, votes, _ in _parallel(work, n_jobs)])

    def weighted_vote(
        self, X: Any, weights: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Sum of the voters' votes on ``X``; voters of weight 0 are not asked."""
        asked = np.flatnonzero(weights)
        work = [delayed(_ask)(self.estimators[k], X) for k in asked]
        total: Any = 0.0
        for k, (_, votes, _) in zip(asked, _parallel(work, n_jobs), strict=True):
            total = total + weights[k] * votes
        return np.asarray(total)


def _parallel(work: list[Any], n_jobs: int | None) -> Iterator[Any]:
    results: Iterator[Any] = Parallel(
        n_jobs=n_jobs, prefer="threads", return_as="generator"
    )(work)
    return results


def _train(
    estimator: Any,
    X: Any,
    y: NDArray[np.int8],
    draws: Draws,
    k: int,
    own_weight: NDArray[np.float64] | None,
    fit_params: dict[str, Any],
) -> tuple[Any, Votes, bool]:
    rows, times = draws.sample(k)
    voter = seeded(clone(estimator), draws.random_state(k))
    weights = times.astype(np.float64) if draws.replace else None
    if own_weight is not None:
        weights = own_weight[rows]
    if weights is not None and not has_fit_parameter(estimator, "sample_weight"):
        rows, weights = np.repeat(rows, times), None
    has_positive = bool(y[rows].any())
    if not has_positive or y[rows].all():
        # Many classifiers refuse a single class; a constant is all there is to learn.
        voter, fit_params = DummyClassifier(strategy="prior"), {}
    params = params_of_rows(fit_params, rows, len(y))
    if weights is not None:
        params["sample_weight"] = weights
    voter.fit(take_rows(X, rows), y[rows], **params)
    return voter, _votes(voter, X), has_positive


def _ask(voter: Any, X: Any) -> tuple[Any, Votes, bool]:
    return voter, _votes(voter, X), True


def _votes(voter: Any, X: Any) -> Votes:
    return np.where(np.asarray(voter.predict(X)) == 1, 1, -1).astype(np.int8)
