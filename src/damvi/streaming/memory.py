"""What a stream remembers: sums over the rows so far, each fading as others come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._blas import one_blas_thread
from ..ballots import Tally
from ..moments import FRACTIONAL_BITS, Moments
from ..reweighting import emphasis, uniform_vote
from .drift import Margins

Numbers = NDArray[np.float64]
ROOM = 2**62
"""Sums of whole numbers up to here; beyond it they go on as floats."""


@dataclass(frozen=True, eq=False)
class Memory:
    """Sums over rows. Those of two blocks of rows add up to those of both.

    Attributes
    ----------
    tally : Tally
        The moments of each class, with the emphasis of step 2.
    margins : Margins
        Of the votes by weights that had not seen the rows.
    rows : ndarray of shape (2,)
        Negatives and positives that count, faded.
    mass : ndarray of shape (2,)
        Their weight, without emphasis.
    """

    tally: Tally
    margins: Margins
    rows: Numbers
    mass: Numbers

    @classmethod
    def none(cls, n_voters: int) -> Memory:
        zero = Moments(np.zeros(n_voters, np.int64), np.zeros((n_voters,) * 2, np.int64), 0)
        return cls(Tally(zero, zero), Margins.none(), np.zeros(2), np.zeros(2))

    @classmethod
    def of(
        cls,
        votes: NDArray[Any],
        signs: NDArray[np.int8],
        vote: Numbers,
        *,
        weights: Numbers | None = None,
        fade: Numbers | None = None,
        strength: float = 1.0,
    ) -> Memory:
        """Of the rows of a batch, ``vote`` being that of weights that have not seen it."""
        sides = [np.flatnonzero(signs < 0), np.flatnonzero(signs > 0)]
        base = np.ones(len(signs)) if weights is None else weights
        counted = base > 0
        faded = np.ones(len(signs)) if fade is None else fade
        plain = weights is None and fade is None
        negatives, positives = [
            _moments(votes[some], sign, None if plain else (base * faded)[some], by)
            for some, sign, by in zip(sides, (-1, 1), (0.0, strength), strict=True)
        ]
        return cls(
            Tally(negatives, positives),
            Margins.of(signs * vote, signs > 0, base * faded),
            np.array([(faded * counted)[some].sum() for some in sides]),
            np.array([(faded * base)[some].sum() for some in sides]),
        )

    def __add__(self, other: Memory) -> Memory:
        tally = self.tally + other.tally
        return Memory(
            Tally(_roomy(tally.negatives), _roomy(tally.positives)),
            self.margins + other.margins,
            self.rows + other.rows,
            self.mass + other.mass,
        )

    def faded(self, factor: float) -> Memory:
        """The same rows, each counting for ``factor`` times as much."""
        if factor == 1:
            return self  # whole numbers stay whole
        return Memory(
            Tally(self.tally.negatives * factor, self.tally.positives * factor),
            self.margins.faded(factor),
            self.rows * factor,
            self.mass * factor,
        )


def _moments(
    votes: NDArray[Any], sign: int, weights: Numbers | None, strength: float
) -> Moments:
    """Of rows of one class."""
    lean = emphasis(uniform_vote(votes), strength) if strength else None
    if weights is None:
        return Moments.of(votes, np.full(len(votes), sign), lean)
    # Not in the fixed point of other moments, whose rounding would tell small batches,
    # where each row starts at full weight, from large ones.
    D = np.ldexp(weights if lean is None else weights * lean, FRACTIONAL_BITS)
    H = votes.astype(np.float64)
    with one_blas_thread():
        m = H.T @ D * sign
        H *= np.sqrt(D)[:, np.newaxis]
        M = H.T @ H
    return Moments(m, M, float(D.sum()))


def _roomy(side: Moments) -> Moments:
    return side * 1.0 if side.total > ROOM else side
