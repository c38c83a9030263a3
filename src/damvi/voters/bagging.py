"""Bagging of any scikit-learn classifier."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import has_fit_parameter

from .estimators import Progress, VoteReader, fit_on_rows, in_parallel, seeded_clone
from .sampling import Sampling


@dataclass(frozen=True, eq=False)
class BaggedVoters:
    """Clones of a classifier, each trained on its own sample of the rows.

    Attributes
    ----------
    estimators : list of K classifiers
        Trained on class numbers; of two classes, 1 is the positive one.
    n_without_class : ndarray of shape (C,)
        For each class, the number of samples without it.
    """

    estimators: list[Any]
    n_without_class: NDArray[np.intp]

    @classmethod
    def train(
        cls,
        estimator: Any,
        X: Any,
        targets: NDArray[Any],
        sampling: Sampling,
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
        own_weight = None if sampling.replace else sample_weight
        if own_weight is not None and not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(
                f"{type(estimator).__name__} does not accept sample_weight; use "
                f"bootstrap=True, which samples rows by weight, or another estimator"
            )
        if known is None:
            known = cls([], np.zeros(n_classes, np.intp))
        read = known._read
        work = [delayed(_ask)(voter, X, read) for voter in known.estimators]
        work += [
            delayed(_train)(
                estimator, X, targets, sampling, k, own_weight, fit_params or {}, read
            )
            for k in range(len(known), n_voters)
        ]
        results = in_parallel(work, n_jobs)
        votes = read.empty(len(targets), n_voters)
        voters = []
        without = known.n_without_class
        for k, result in enumerate(progress(results, n_voters) if progress else results):
            voter, votes[:, k], absent = result
            voters.append(voter)
            without = without + absent
        return cls(voters, without), votes

    @property
    def classes(self) -> NDArray[np.intp]:
        """The labels of the models: class numbers."""
        return np.arange(len(self.n_without_class))

    @property
    def _read(self) -> VoteReader:
        return VoteReader(self.classes, "hard")

    @property
    def takes_frames(self) -> bool:
        """Whether the models receive dataframes as they are."""
        return True

    def __len__(self) -> int:
        return len(self.estimators)

    def take(self, some: NDArray[np.intp]) -> BaggedVoters:
        """Return these voters alone."""
        return replace(self, estimators=[self.estimators[k] for k in some.tolist()])

    def votes(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """Votes of all voters on ``X``, (n, K): +1 and -1, or class numbers."""
        work = [delayed(self._read)(voter, X) for voter in self.estimators]
        return np.column_stack(list(in_parallel(work, n_jobs)))

    def weighted_vote(
        self, X: Any, weights: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """See :meth:`damvi.voters.Voters.weighted_vote`."""
        asked = np.flatnonzero(weights)
        work = [delayed(self._read)(self.estimators[k], X) for k in asked]
        return self._read.weighted_sum(in_parallel(work, n_jobs), weights[asked])


def _train(
    estimator: Any,
    X: Any,
    targets: NDArray[Any],
    sampling: Sampling,
    k: int,
    own_weight: NDArray[np.float64] | None,
    fit_params: dict[str, Any],
    read: VoteReader,
) -> tuple[Any, NDArray[Any], NDArray[np.bool_]]:
    """Train a voter; return it with its votes and a mask of classes not in its sample."""
    rows, times = sampling.sample(k)
    if len(rows) == 0:  # an empty sample: vote for class 0
        rows, times = np.flatnonzero(targets == 0)[:1], np.ones(1, np.intp)
    voter = seeded_clone(estimator, sampling.random_state(k))
    weights = times.astype(np.float64) if sampling.replace else None
    if own_weight is not None:
        weights = own_weight[rows]
    if weights is not None and not has_fit_parameter(estimator, "sample_weight"):
        rows, weights = np.repeat(rows, times), None
    absent = np.bincount(targets[rows], minlength=len(read.classes)) == 0
    if absent.sum() == len(absent) - 1:
        # Many classifiers refuse a single class; use a constant instead.
        voter, fit_params = DummyClassifier(strategy="prior"), {}
    voter = fit_on_rows(voter, X, targets, rows, weights, fit_params)
    return voter, read(voter, X), absent


def _ask(voter: Any, X: Any, read: VoteReader) -> tuple[Any, NDArray[Any], bool]:
    return voter, read(voter, X), False
