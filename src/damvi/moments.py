"""Moments of the votes: all that step 3 of DAMVI needs of the data.

With ``H`` the votes of K voters on n examples, ``y`` the true signs and ``D`` the
weights of the examples, the moments are the sums

    m = H'(D * y)        M = H' diag(D) H        total = sum(D)

They are additive: the moments of a table are the sum of the moments of its blocks, and
leaving out a fold is a subtraction. For hard votes (-1 or +1) the sums are exact integers,
so the result is the same, bit for bit, whatever the block size, the order of the blocks or
the number of BLAS threads.

With more than two classes, it only matters whether a vote is correct: y * H is +1 if it is
and -1 if not, and everything else stays the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._kernels import one_blas_thread

FRACTIONAL_BITS = 30
"""Example weights are rounded to multiples of 2**-30 ..."""
MAX_WEIGHT = 4.0
"""... and bounded, so that 2**20 of them (below 2**32 each) add exactly in a double."""
MAX_BLOCK_ROWS = 2**20
BLOCK_BYTES = 2**22
ROUNDING = 1e-12
"""A variance below this fraction of the mean square counts as 0."""
LEAST_EIGENVALUE = 1e-6
"""Smallest eigenvalue of out-of-bag second moments, relative to the mean eigenvalue, so
that the matrix is invertible."""


def _fixed_point(weights: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Example weights as integer multiples of 2**-30, in doubles for BLAS."""
    if weights is None:
        return np.full(n_rows, 2.0**FRACTIONAL_BITS)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"weights has shape {weights.shape}, but the votes have {n_rows} rows; give "
            f"one weight per row"
        )
    if n_rows and not (weights.min() >= 0 and weights.max() <= MAX_WEIGHT):
        raise ValueError(
            f"example weights must be in [0, {MAX_WEIGHT:g}], but are in "
            f"[{weights.min():g}, {weights.max():g}]; only ratios matter, so divide them "
            f"by their maximum"
        )
    return np.rint(np.ldexp(weights, FRACTIONAL_BITS))


@dataclass(frozen=True, eq=False)
class Moments:
    """First and second moments of votes, summed over weighted examples.

    Create them with :meth:`of` or :meth:`by_fold`; they can be added and subtracted.

    Attributes
    ----------
    m : ndarray of shape (K,)
        Sum over the examples of weight * sign * vote.
    M : ndarray of shape (K, K)
        Sum over the examples of weight * vote * vote'.
    total : int or float
        Sum of the weights. All three are in units of 2**-30 (int64 for hard votes, float64
        for soft ones); all derived quantities are ratios of them.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.moments import Moments
    >>> votes = np.array([[1, 1, -1], [-1, 1, -1], [-1, -1, -1]], dtype=np.int8)
    >>> signs = np.array([1, -1, -1])
    >>> moments = Moments.of(votes[:2], signs[:2]) + Moments.of(votes[2:], signs[2:])
    >>> bool(moments == Moments.of(votes, signs))
    True
    >>> round(moments.gibbs_risk([0.5, 0.25, 0.25]), 4)
    0.1667
    """

    m: NDArray[Any]
    M: NDArray[Any]
    total: float

    @classmethod
    def of(
        cls, votes: ArrayLike, signs: ArrayLike, weights: ArrayLike | None = None
    ) -> Moments:
        """Moments of ``votes`` (n, K) against ``signs`` (n,), under ``weights`` (n,).

        Hard votes are integers -1 or +1, soft votes floats in [-1, 1]. Weights need not be
        normalised (their maximum should be near 1), and default to 1 for each row.
        """
        votes, signs = _check_votes(votes, signs)
        fixed = _fixed_point(weights, len(votes))
        return cls._of_rows(votes, signs, fixed, np.arange(len(votes)))

    @classmethod
    def by_fold(
        cls,
        votes: ArrayLike,
        signs: ArrayLike,
        weights: ArrayLike | None,
        folds: ArrayLike,
        n_folds: int,
        abstain: bool = False,
    ) -> list[Moments]:
        """Moments of each fold; ``folds`` is the fold (0, 1, ...) of each row.

        Their sum is the total, and ``total - fold`` are the moments of the other folds.
        With ``abstain``, hard votes may also be 0.
        """
        votes, signs = _check_votes(votes, signs)
        fixed, folds = _fixed_point(weights, len(votes)), np.asarray(folds)
        return [
            cls._of_rows(votes, signs, fixed, np.flatnonzero(folds == fold), abstain)
            for fold in range(n_folds)
        ]

    @classmethod
    def _of_rows(
        cls,
        votes: NDArray[Any],
        signs: NDArray[Any],
        fixed: NDArray[np.float64],
        rows: NDArray[np.intp],
        abstain: bool = False,
    ) -> Moments:
        if votes.dtype.kind == "f" or abstain:
            return _by_products(votes, signs, fixed, rows)
        # With a rare class, nearly all rows have weight 1, and bit counts suffice for them.
        plain = fixed[rows] == 2.0**FRACTIONAL_BITS
        return _by_bits(votes, signs, rows[plain]) + _by_products(
            votes, signs, fixed, rows[~plain]
        )

    @property
    def n_voters(self) -> int:
        return len(self.m)

    def __add__(self, other: object) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        return Moments(self.m + other.m, self.M + other.M, self.total + other.total)

    def __radd__(self, other: object) -> Moments:
        # sum() starts from 0.
        return self if other == 0 else NotImplemented

    def __sub__(self, other: object) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        return Moments(self.m - other.m, self.M - other.M, self.total - other.total)

    def __mul__(self, factor: float) -> Moments:
        return Moments(self.m * factor, self.M * factor, self.total * factor)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Moments):
            return NotImplemented
        return (
            np.array_equal(self.m, other.m)
            and np.array_equal(self.M, other.M)
            and self.total == other.total
        )

    def restricted(self, voters: NDArray[np.intp]) -> Moments:
        """Moments of a subset of the voters."""
        return Moments(self.m[voters], self.M[np.ix_(voters, voters)], self.total)

    def at(self, omega: float) -> Moments:
        """Moments of 1[correct] - 1/omega, from those of +1 for correct, -1 for wrong.

        Both are the same votes on different scales: a = c/2 + 1/2 - 1/omega. With omega 2
        only the scale differs, which cancels in all ratios, so nothing is changed.
        """
        if omega == 2:
            return self
        shift = 0.5 - 1 / omega
        across = np.add.outer(self.m, self.m) * (shift / 2)
        return Moments(
            self.m / 2 + shift * self.total,
            self.M / 4 + across + shift**2 * self.total,
            self.total,
        )

    def normalised(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``m`` and ``M`` under D scaled to a distribution."""
        if self.total <= 0:
            raise ValueError("the moments have no example of positive weight")
        return self.m / self.total, self.M / self.total

    def mu1(self, Q: ArrayLike) -> float:
        """First moment of the margin: 1 - 2 * Gibbs risk."""
        return float(self.normalised()[0] @ np.asarray(Q, dtype=np.float64))

    def mu2(self, Q: ArrayLike) -> float:
        """Second moment of the margin: 1 - 2 * disagreement (hard votes)."""
        Q = np.asarray(Q, dtype=np.float64)
        return float(Q @ self.normalised()[1] @ Q)

    def gibbs_risk(self, Q: ArrayLike) -> float:
        """Mean error of one voter drawn from Q."""
        return (1 - self.mu1(Q)) / 2

    def disagreement(self, Q: ArrayLike) -> float:
        """Probability that two voters drawn from Q disagree: the diversity."""
        return (1 - self.mu2(Q)) / 2

    def c_bound(self, Q: ArrayLike) -> float:
        """Upper bound on the risk of the Q-weighted vote; 1 if mu1 <= 0."""
        return c_bound_of(self.mu1(Q), self.mu2(Q))


def _by_products(
    votes: NDArray[Any],
    signs: NDArray[Any],
    fixed: NDArray[np.float64],
    rows: NDArray[np.intp],
) -> Moments:
    """Moments by matrix products, in blocks of rows that are summed exactly."""
    n_voters = votes.shape[1]
    dtype = np.int64 if votes.dtype.kind == "i" else np.float64
    m, M, total = np.zeros(n_voters, dtype), np.zeros((n_voters, n_voters), dtype), 0
    step = int(np.clip(BLOCK_BYTES // (8 * max(n_voters, 1)), 1, MAX_BLOCK_ROWS))
    with one_blas_thread():
        for start in range(0, len(rows), step):
            take = rows[start : start + step]
            H, D = votes[take].astype(np.float64), fixed[take]
            m += (H.T @ (D * signs[take])).astype(dtype)
            M += (H.T @ (H * D[:, np.newaxis])).astype(dtype)
            total += int(D.sum())
    return Moments(m, M, total)


def _by_bits(votes: NDArray[Any], signs: NDArray[Any], rows: NDArray[np.intp]) -> Moments:
    """Moments of hard votes on rows of weight 1: agreements minus disagreements.

    A vote is one bit, and 64 are compared at a time, which is much faster than matrix
    products.
    """
    n, n_voters = len(rows), votes.shape[1]
    unit = 2**FRACTIONAL_BITS
    bits = np.stack([_pack(votes[rows, k] > 0) for k in range(n_voters)])
    truth = _pack(signs[rows] > 0)
    m = n - 2 * _differences(bits, truth)
    M = np.empty((n_voters, n_voters), dtype=np.int64)
    for k in range(n_voters):
        M[k, k:] = M[k:, k] = n - 2 * _differences(bits[k:], bits[k])
    return Moments(m * unit, M * unit, n * unit)


def _pack(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    packed = np.zeros(-(-len(flags) // 64) * 8, dtype=np.uint8)
    packed[: -(-len(flags) // 8)] = np.packbits(flags)
    return packed.view(np.uint64)


def _differences(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.int64]:
    return np.bitwise_count(a ^ b).sum(axis=-1, dtype=np.int64)


def c_bound_of(mu1: float, mu2: float) -> float:
    """The C-bound 1 - mu1**2 / mu2, or 1 (no guarantee) if mu1 <= 0.

    If mu1 > 0, mu2 is positive except for rounding.
    """
    return 1 - min(mu1**2 / mu2, 1.0) if min(mu1, mu2) > 0 else 1.0


def _check_votes(votes: ArrayLike, signs: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    votes, signs = np.asarray(votes), np.asarray(signs)
    if votes.ndim != 2 or signs.shape != votes.shape[:1]:
        raise ValueError(
            f"votes must have shape (n, K) and signs shape (n,), but have "
            f"{votes.shape} and {signs.shape}"
        )
    if votes.dtype.kind not in "if":
        raise ValueError(f"votes must be signed integers or floats, not {votes.dtype}")
    return votes, signs


@dataclass(frozen=True, eq=False)
class OutOfBagMoments:
    """Moments of votes on the rows outside each voter's sample.

    Each entry of m and M is a mean over the rows that are out of bag for the voter, or for
    both voters. Numerators and denominators are sums over rows, so folds can still be added
    and subtracted. Unlike second moments over common rows, a matrix of such means need not
    be positive semi-definite; solvers are given the nearest one that is.

    Attributes
    ----------
    sums : Moments
        Moments of the votes, with 0 for rows in the voter's sample.
    rows : Moments
        Moments of ones in place of the votes: ``rows.M`` has the denominators of
        ``sums.M``, and its diagonal those of ``sums.m``.
    """

    sums: Moments
    rows: Moments

    @classmethod
    def by_fold(
        cls,
        votes: NDArray[Any],
        out_of_bag: NDArray[np.bool_],
        signs: NDArray[Any],
        weights: NDArray[np.float64] | None,
        folds: NDArray[Any],
        n_folds: int,
    ) -> list[OutOfBagMoments]:
        """Moments of each fold; ``out_of_bag`` (n, K) masks the votes that count."""
        masked = np.where(out_of_bag, votes, votes.dtype.type(0))
        sums = Moments.by_fold(masked, signs, weights, folds, n_folds, abstain=True)
        ones = out_of_bag.astype(np.int8)
        rows = Moments.by_fold(ones, signs, weights, folds, n_folds, abstain=True)
        return [cls(a, b) for a, b in zip(sums, rows, strict=True)]

    def __add__(self, other: OutOfBagMoments) -> OutOfBagMoments:
        return OutOfBagMoments(self.sums + other.sums, self.rows + other.rows)

    def __sub__(self, other: OutOfBagMoments) -> OutOfBagMoments:
        return OutOfBagMoments(self.sums - other.sums, self.rows - other.rows)

    def __mul__(self, factor: float) -> OutOfBagMoments:
        return OutOfBagMoments(self.sums * factor, self.rows * factor)

    @property
    def total(self) -> float:
        return self.rows.total

    def at(self, omega: float) -> Moments:
        """The means, projected to be positive semi-definite. Voters that share no row count
        as independent. See :meth:`Moments.at` for ``omega``."""
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
        floor = LEAST_EIGENVALUE * max(float(np.trace(M)) / len(M), 0.0)
        if values[0] >= floor:
            return M
        return (vectors * np.maximum(values, floor)) @ vectors.T


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Moments of rows, separately for negatives and positives. They add and subtract.

    With three or more classes, those that step 2 reweights are the positives and all others
    the negatives, and a vote is +1 if it is correct.
    """

    negatives: Moments | OutOfBagMoments
    positives: Moments | OutOfBagMoments
    n_classes: int = 2
    shares: ClassShares | None = None
    """Needed to fit an intercept with three or more classes."""

    def __add__(self, other: ClassMoments) -> ClassMoments:
        negatives: Any = self.negatives + other.negatives
        positives: Any = self.positives + other.positives
        shares: Any = self.shares and self.shares + other.shares  # type: ignore[operator]
        return ClassMoments(negatives, positives, self.n_classes, shares)

    def __sub__(self, other: ClassMoments) -> ClassMoments:
        negatives: Any = self.negatives - other.negatives  # type: ignore[operator]
        positives: Any = self.positives - other.positives  # type: ignore[operator]
        shares: Any = self.shares and self.shares - other.shares  # type: ignore[operator]
        return ClassMoments(negatives, positives, self.n_classes, shares)

    @property
    def total(self) -> float:
        """Total weight of the rows; 0 if there are none."""
        return self.negatives.total + self.positives.total

    def moments(self) -> Moments:
        """Moments of all classes, for the C-bound."""
        return self._at(2)

    def moments_to_learn(self) -> Moments:
        """Moments of all classes, for the solver; random guessing among them counts 0."""
        return self._at(self.n_classes)

    def _at(self, omega: float) -> Moments:
        both: Any = self.negatives + self.positives
        found: Moments = both.at(omega)
        return found

    def means(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean vote of each voter, and mean sign of the rows that it votes on."""
        # m is a sum of sign * vote, so the sum of votes is m+ minus m-.
        up, n_up = _sums_and_rows(self.positives)
        down, n_down = _sums_and_rows(self.negatives)
        rows = np.maximum(n_up + n_down, np.finfo(np.float64).tiny)
        return (up - down) / rows, (n_up - n_down) / rows

    def centred(self) -> Moments:
        """Central moments, which fit an intercept along with the weights.

        With three or more classes, each has its own intercept: the mean vote of a voter for
        a class is subtracted from its votes on rows of this class.
        """
        if self.shares is not None:
            own = self.shares.centred(self._at(math.inf))
            return own if isinstance(self.positives, Moments) else _made_definite(own)
        votes, signs = self.means()
        m, M = self.moments().normalised()
        own = Moments(m - signs * votes, M - np.outer(votes, votes), 1)
        own = _without_rounding(own, M)
        return own if isinstance(self.positives, Moments) else _made_definite(own)


def _without_rounding(centred: Moments, M: NDArray[np.float64]) -> Moments:
    """Set the moments of voters with constant votes to 0, without rounding errors."""
    varies = centred.M.diagonal() > ROUNDING * M.diagonal()
    if varies.all():
        return centred
    spread = np.where(np.logical_and.outer(varies, varies), centred.M, 0.0)
    return Moments(np.where(varies, centred.m, 0.0), spread, centred.total)


def _made_definite(moments: Moments) -> Moments:
    """Make second moments that are means over different rows positive semi-definite."""
    return Moments(moments.m, nearest_semi_definite(moments.M), moments.total)


def threshold_of(moments: Any, weights: NDArray[np.float64]) -> float:
    """Threshold on the vote that corresponds to the fitted intercept.

    With three or more classes, the largest vote decides, and intercepts only affect the
    weights: factors of the votes cannot represent them.
    """
    if moments.shares is not None:
        return 0.0
    votes, signs = moments.means()
    centred = moments.centred()
    mu1, mu2 = centred.mu1(weights), centred.mu2(weights)
    if mu1 <= 0:  # no voter is better than chance
        return 0.0
    return float(weights @ votes - weights @ signs * mu2 / mu1)


def c_bound_with_constant(moments: Any, weights: NDArray[np.float64]) -> float:
    """The C-bound of the vote including the intercept, if there is one."""
    if moments.shares is not None:
        return float(moments.moments().c_bound(weights))
    # The intercept alone explains the square of the mean sign.
    _, signs = moments.means()
    rest = moments.centred().c_bound(weights)
    return max(rest - float(weights @ signs) ** 2, 0.0)


@dataclass(frozen=True, eq=False)
class ClassShares:
    """Sums of the votes for each class, on its own rows and on all rows. They add up.

    Attributes
    ----------
    own : ndarray of shape (C, K)
        Sum over the rows of a class of weight * the voter's vote for it, in [0, 1].
    every : ndarray of shape (C, K)
        The same sum over all rows.
    rows : ndarray of shape (C, K)
        Total weight of the rows of each class on which the voter's vote counts.
    """

    own: NDArray[Any]
    every: NDArray[Any]
    rows: NDArray[Any]

    @classmethod
    def of(
        cls,
        votes: NDArray[Any],
        targets: NDArray[Any],
        n_classes: int,
        weights: NDArray[np.float64] | None = None,
        counted: NDArray[np.bool_] | None = None,
    ) -> ClassShares:
        """Sums of class numbers (n, K), which are exact, or of shares (n, K, C)."""
        n, n_voters = votes.shape[:2]
        fixed = _fixed_point(weights, n)
        sums = np.zeros((3, n_classes, n_voters))
        soft = votes.dtype.kind == "f"
        whole = np.zeros(sums.shape, np.float64 if soft else np.int64)
        step = int(np.clip(BLOCK_BYTES // (8 * n_voters), 1, MAX_BLOCK_ROWS))
        with one_blas_thread():
            for start in range(0, n, step):
                take = slice(start, start + step)
                H, D, truth = votes[take], fixed[take], targets[take]
                there = None if counted is None else counted[take].astype(np.float64)
                for c in range(n_classes):
                    named = H[:, :, c] if soft else np.equal(H, c)
                    named = named.astype(np.float64)
                    own = D * (truth == c)
                    if there is not None:
                        named *= there
                    sums[0, c], sums[1, c] = own @ named, D @ named
                    sums[2, c] = own.sum() if there is None else own @ there
                whole += sums.astype(whole.dtype)
        return cls(*whole)

    def __add__(self, other: ClassShares) -> ClassShares:
        return ClassShares(
            self.own + other.own, self.every + other.every, self.rows + other.rows
        )

    def __sub__(self, other: ClassShares) -> ClassShares:
        return ClassShares(
            self.own - other.own, self.every - other.every, self.rows - other.rows
        )

    def __mul__(self, factor: float) -> ClassShares:
        return ClassShares(self.own * factor, self.every * factor, self.rows * factor)

    def centred(self, moments: Moments) -> Moments:
        """Central moments of the vote for a row's class.

        ``moments`` are those of this vote, in [0, 1]. With p the vote of a voter for class
        c, P its mean and R the rate of the class, the target of a row of the class is
        1 - R: this is the least-squares fit of ``[y = c]`` by votes for c and an intercept,
        evaluated on rows of class c. With two classes, it is the usual one.
        """
        rows = np.maximum(self.rows.sum(axis=0), np.finfo(np.float64).tiny)
        rate = self.rows / rows
        mean = self.every / rows
        own = self.own / rows
        _, M = moments.normalised()
        across = own.T @ mean
        common = rate.mean(axis=1)
        spread = M - across - across.T + (mean.T * common) @ mean
        return _without_rounding(
            Moments(((1 - rate) * (own - rate * mean)).sum(axis=0), spread, 1), M
        )


def _sums_and_rows(
    side: Moments | OutOfBagMoments,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if isinstance(side, Moments):
        return side.m.astype(np.float64), np.full(side.n_voters, float(side.total))
    return side.sums.m.astype(np.float64), np.diag(side.rows.M).astype(np.float64)
