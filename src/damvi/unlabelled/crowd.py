"""How the voters agree on unlabelled rows, and what that says of the negatives.

The second moments need no labels. With p the rate of positives,

    M_U = p M+ + (1 - p) M-     so     M-' = (M_U - p M+) / (1 - p),

where M+ is that of positives as they come, without emphasis. It is mixed into the
moments of the labelled negatives with a weight eta; m and M+ stay those of labelled rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..moments import Moments
from ..solvers import exact
from ..unseen_moments import UnseenMoments, nearest_semi_definite

Matrix = NDArray[np.float64]
HALVINGS = 4
"""How often eta is tried and halved, before it is 0."""
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Crowd:
    """The second moments of the votes on unlabelled rows.

    Attributes
    ----------
    M : ndarray of shape (K, K)
        The mean of vote * vote' over the rows that neither voter has seen.
    positive_rate : float or None
        The share of positives among the rows. None: that of the labelled ones.
    """

    M: Matrix
    positive_rate: float | None = None

    @classmethod
    def count(
        cls,
        blocks: Iterable[tuple[NDArray[Any], NDArray[np.bool_] | None]],
        positive_rate: float | None = None,
    ) -> Crowd:
        """From blocks of votes (n, K) and what the voters have not seen (None: all).

        Examples
        --------
        >>> import numpy as np
        >>> votes = np.array([[1, 1], [1, -1], [-1, -1], [-1, -1]], dtype=np.int8)
        >>> Crowd.count([(votes[:3], None), (votes[3:], None)]).M
        array([[1. , 0.5],
               [0.5, 1. ]])
        """
        total: Any = None
        for votes, unseen in blocks:
            ones = np.ones(len(votes), np.int8)
            part: Any
            if unseen is None:
                part = Moments.of(votes, ones)
            else:
                folds = np.zeros(len(votes), np.int8)
                (part,) = UnseenMoments.by_fold(votes, unseen, ones, None, folds, 1)
            total = part if total is None else total + part
        M, known = second_moments(total)
        # A pair that shares no unseen row counts as one that knows nothing of each other.
        return cls(np.where(known, M, 0.0), positive_rate)

    def take(self, some: NDArray[np.intp]) -> Crowd:
        """Those of some voters."""
        return replace(self, M=self.M[np.ix_(some, some)])


@dataclass(frozen=True, eq=False)
class RefinedTally:
    """A tally of labelled rows whose negatives are put right by unlabelled ones.

    Attributes
    ----------
    labelled : Tally
    natural : Moments or UnseenMoments
        Of the positives as they come, without emphasis.
    crowd : Crowd
    eta : float in [0, 1)
        The weight of the unlabelled rows. It is lowered where the moments would promise
        what no votes can keep, a first moment above the root of the second.
    """

    labelled: Any
    natural: Any
    crowd: Crowd
    eta: float

    def __add__(self, other: RefinedTally) -> RefinedTally:
        return replace(
            self,
            labelled=self.labelled + other.labelled,
            natural=self.natural + other.natural,
        )

    def __sub__(self, other: RefinedTally) -> RefinedTally:
        return replace(
            self,
            labelled=self.labelled - other.labelled,
            natural=self.natural - other.natural,
        )

    def moments(self) -> Moments:
        """Of both classes, as a solver takes them."""
        return self._settled[1]

    moments_to_learn = moments

    def centre(self) -> tuple[Matrix, Matrix]:
        """See :meth:`damvi.ballots.Tally.centre`: unlabelled rows have no part in it."""
        means: tuple[Matrix, Matrix] = self.labelled.centre()
        return means

    def centred(self) -> Moments:
        """Moments about the means."""
        votes, signs = self.centre()
        m, M = self.moments().normalised()
        spread = nearest_semi_definite(M - np.outer(votes, votes))
        return Moments(m - signs * votes, spread, 1)

    @property
    def settled_eta(self) -> float:
        """The weight that was left."""
        return self._settled[0]

    @cached_property
    def _settled(self) -> tuple[float, Moments]:
        for halving in range(HALVINGS):
            eta = self.eta / 2**halving
            moments = self._mixed(eta)
            Q = exact(moments).weights
            if moments.mu1(Q) ** 2 <= moments.mu2(Q) * (1 + ROUNDING):
                return eta, moments
        return 0.0, self.labelled.moments()

    def negatives(self) -> tuple[Matrix, NDArray[np.bool_]]:
        """M-', and where it is known: on pairs that share unseen positives."""
        M, known = second_moments(self.natural)
        p = self.crowd.positive_rate
        if p is None:
            up, down = _weight(self.natural), _weight(self.labelled.negatives)
            p = up / (up + down)
        return (self.crowd.M - p * M) / (1 - p), known

    def _mixed(self, eta: float) -> Moments:
        side = self.labelled.negatives
        refined, known = self.negatives()
        is_plain = isinstance(side, Moments)
        sums = side if is_plain else side.sums
        rows = float(side.total) if is_plain else np.asarray(side.rows.M, np.float64)
        M = np.where(known, (1 - eta) * sums.M + eta * rows * refined, sums.M)
        sums = replace(sums, M=M)
        mixed = sums if is_plain else replace(side, sums=sums)
        both: Moments = replace(self.labelled, negatives=mixed).moments()
        # Means over unseen rows are made so already.
        return replace(both, M=nearest_semi_definite(both.M)) if is_plain else both


def second_moments(side: Moments | UnseenMoments) -> tuple[Matrix, NDArray[np.bool_]]:
    """The mean of vote * vote' for each pair, and for which there is one."""
    if isinstance(side, Moments):
        return side.M / max(side.total, 1), np.full(side.M.shape, side.total > 0)
    rows = np.asarray(side.rows.M, dtype=np.float64)
    known = rows > 0
    return np.divide(side.sums.M, rows, out=np.zeros(rows.shape), where=known), known


def _weight(side: Moments | UnseenMoments) -> float:
    return float(side.total if isinstance(side, Moments) else side.rows.total)
