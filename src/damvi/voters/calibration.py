"""Soft votes put right: 2p - 1 such that p is the share of positives among its like.

The C-bound is a least-squares fit, so it wants honest probabilities. Each voter gets an
increasing function, learned from votes on rows that the voter has not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from .._blas import one_blas_thread
from .platt import Platt, fit_platt, log_odds

Method = Literal["auto", "isotonic", "platt"]
ENOUGH_FOR_ISOTONIC = 10_000
"""Rows of the rarer class, from which on steps are taken; see results/pools: with some
2,000 of them a curve still was better."""


@dataclass(frozen=True, eq=False)
class Isotonic:
    """A vote read off an increasing line through knots, flat beyond the ends."""

    votes: NDArray[np.float32]
    calibrated: NDArray[np.float64]

    def __call__(self, votes: NDArray[Any]) -> NDArray[np.float32]:
        right: NDArray[np.float64] = np.interp(votes, self.votes, self.calibrated)
        return right.astype(np.float32)


def calibrate(
    votes: NDArray[Any],
    signs: NDArray[Any],
    folds: NDArray[Any],
    *,
    method: Method = "auto",
    sample_weight: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float32], list[Platt | Isotonic]]:
    """Calibrate voters on their out-of-sample votes, each fold by what the others say.

    Parameters
    ----------
    votes : ndarray of shape (n, K)
        Soft votes in [-1, 1], on rows that the voters have not seen.
    signs : ndarray of shape (n,)
        +1 for the positives and -1 for the others.
    folds : ndarray of shape (n,)
        The fold of each row: 0, 1, ...
    method : {"auto", "isotonic", "platt"}, default="auto"
        Platt: a logistic curve in the log-odds of the vote, two numbers a voter.
        Isotonic: any increasing function, which takes more rows to learn. "auto" takes
        it from 10,000 rows of the rarer class on.
    sample_weight : ndarray of shape (n,), optional

    Returns
    -------
    calibrated : ndarray of float32, shape (n, K)
        The votes of each fold by functions fitted on the other folds. Its own labels
        have no part in them.
    calibrators : list of K functions
        Fitted on all rows, for votes to come.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0, 0.2, 4000)
    >>> signs = np.where(rng.random(4000) < p, 1, -1)
    >>> boasts = np.sqrt(p)[:, None]  # a voter that says a root of the truth
    >>> votes, calibrators = calibrate(2 * boasts - 1, signs, np.arange(4000) % 5)
    >>> float(abs((1 + votes[:, 0]) / 2 - p).max()) < 0.05
    True
    """
    votes, positive, weights = _check(votes, signs, folds, method, sample_weight)
    n, n_voters = votes.shape
    right = np.empty((n, n_voters), dtype=np.float32, order="F")
    parts = [np.flatnonzero(folds == fold) for fold in range(int(np.max(folds)) + 1)]
    others = [np.flatnonzero((folds != f) & (weights > 0)) for f in range(len(parts))]
    everyone = np.flatnonzero(weights > 0)
    calibrators = []
    with one_blas_thread():
        for k in range(n_voters):
            voter = _Voter(votes[:, k], positive, weights, method)
            for judged, rows in zip(parts, others, strict=True):
                if len(judged):
                    right[judged, k] = voter.fit(rows)(votes[judged, k])
            calibrators.append(voter.fit(everyone))
    return right, calibrators


class _Voter:
    """One voter's votes, sorted and in log-odds once for the fits on all folds."""

    def __init__(
        self,
        votes: NDArray[np.float32],
        positive: NDArray[np.bool_],
        weights: NDArray[np.float64],
        method: Method,
    ) -> None:
        self.votes, self.positive, self.weights = votes, positive, weights
        self.method = method
        self.place: NDArray[np.intp] | None = None
        self.scores: NDArray[np.float64] | None = None

    def fit(self, rows: NDArray[np.intp]) -> Platt | Isotonic:
        """The calibrator that these rows speak for."""
        if self._takes_steps(rows):
            return self._isotonic(rows)
        if self.scores is None:
            self.scores = log_odds(self.votes)
        return fit_platt(self.scores[rows], self.positive[rows], self.weights[rows])

    def _takes_steps(self, rows: NDArray[np.intp]) -> bool:
        if self.method != "auto":
            return self.method == "isotonic"
        # What these rows let expect of all, so that all folds take the same choice and
        # none by its own labels.
        share = self.positive[rows].mean() if len(rows) else 0.0
        return bool(min(share, 1 - share) * len(self.votes) >= ENOUGH_FOR_ISOTONIC)

    def _isotonic(self, rows: NDArray[np.intp]) -> Isotonic:
        if self.place is None:
            self.levels, self.place = np.unique(self.votes, return_inverse=True)
        place, weights = self.place[rows], self.weights[rows]
        size = len(self.levels)
        weight = np.bincount(place, weights, minlength=size)
        gain = np.bincount(place, weights * self.positive[rows], minlength=size)
        seen = weight > 0
        levels, weight = self.levels[seen], weight[seen]
        share = isotonic_regression(gain[seen] / weight, sample_weight=weight)
        # Between the ends of a flat stretch, knots say nothing.
        ends = np.ones(len(share), dtype=bool)
        ends[1:-1] = (share[1:-1] != share[:-2]) | (share[1:-1] != share[2:])
        return Isotonic(levels[ends], np.clip(2 * share[ends] - 1, -1, 1))


def _check(
    votes: Any, signs: Any, folds: Any, method: str, sample_weight: Any
) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.float64]]:
    votes = np.asarray(votes)
    if votes.dtype.kind != "f":
        raise ValueError(f"only soft votes can be calibrated; these are {votes.dtype}")
    if votes.ndim != 2 or not len(votes) == len(signs) == len(folds):
        raise ValueError(
            f"votes of shape {votes.shape}, {len(signs)} signs and {len(folds)} folds; "
            f"there must be one row, sign and fold for each"
        )
    if method not in ("auto", "isotonic", "platt"):
        raise ValueError(f"method={method!r} is none of 'auto', 'isotonic' and 'platt'")
    if not (np.abs(votes) <= 1).all():
        raise ValueError("votes must lie in [-1, 1]")
    if len(np.unique(folds)) < 2:
        raise ValueError("there is one fold only, and no other to learn from")
    weights = np.ones(len(votes)) if sample_weight is None else sample_weight
    votes = np.asfortranarray(votes, dtype=np.float32)
    return votes, np.asarray(signs) > 0, np.asarray(weights, dtype=np.float64)
