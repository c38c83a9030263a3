"""Moments of the votes on rows that the voters have not been trained on.

Each entry of m and M is a mean over its own rows: those out of bag for the voter, or for
both. Numerators and denominators are sums over rows, so folds still add and subtract. A
matrix of such means need not be positive semi-definite, as the second moments of any
votes are; the nearest one that is takes its place before a solver sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._blas import one_blas_thread
from .moments import Moments

FLOOR = 1e-6
"""Least eigenvalue, relative to the mean one: a matrix that can be inverted."""


@dataclass(frozen=True, eq=False)
class UnseenMoments:
    """Sums over the rows that voters have not seen, and the weight of these rows.

    Attributes
    ----------
    sums : Moments
        Of the votes, with 0 where a voter has seen the row.
    rows : Moments
        Of ones in their place: ``rows.M`` is what each entry of ``sums.M`` is divided by,
        and its diagonal what those of ``sums.m`` are.
    """

    sums: Moments
    rows: Moments

    @classmethod
    def by_fold(
        cls,
        votes: NDArray[Any],
        unseen: NDArray[np.bool_],
        signs: NDArray[Any],
        weights: NDArray[np.float64] | None,
        folds: NDArray[Any],
        n_folds: int,
    ) -> list[UnseenMoments]:
        """``unseen`` (n, K) says which votes count."""
        masked = np.where(unseen, votes, votes.dtype.type(0))
        sums = Moments.by_fold(masked, signs, weights, folds, n_folds, abstain=True)
        ones = unseen.astype(np.int8)
        rows = Moments.by_fold(ones, signs, weights, folds, n_folds, abstain=True)
        return [cls(a, b) for a, b in zip(sums, rows, strict=True)]

    def __add__(self, other: UnseenMoments) -> UnseenMoments:
        return UnseenMoments(self.sums + other.sums, self.rows + other.rows)

    def __sub__(self, other: UnseenMoments) -> UnseenMoments:
        return UnseenMoments(self.sums - other.sums, self.rows - other.rows)

    def __mul__(self, factor: float) -> UnseenMoments:
        return UnseenMoments(self.sums * factor, self.rows * factor)

    def moments(self, omega: int = 2) -> Moments:
        """The means, made positive semi-definite; a pair that shares no row counts as
        independent. See :meth:`damvi.moments.Moments.at` for ``omega``."""
        weight = np.asarray(self.rows.M, dtype=np.float64)
        alone = np.diag(weight)
        m = np.divide(self.sums.m, alone, out=np.zeros(len(alone)), where=alone > 0)
        M = np.divide(self.sums.M, weight, out=np.outer(m, m), where=weight > 0)
        means = Moments(m, M, 1).at(omega)
        return Moments(means.m, nearest_semi_definite(means.M), 1)


def nearest_semi_definite(M: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest matrix with no eigenvalue below a small floor."""
    with one_blas_thread():
        values, vectors = np.linalg.eigh((M + M.T) / 2)
        floor = FLOOR * max(float(np.trace(M)) / len(M), 0.0)
        if values[0] >= floor:
            return M
        return (vectors * np.maximum(values, floor)) @ vectors.T
