"""How much two voters differ: disagreement, Yule's Q, Cohen's kappa."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .ballots import decisions, read_signs, read_votes, sums

Matrix = NDArray[np.float64]


def pairwise_disagreement(
    votes: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> Matrix:
    """Share of the rows on which two voters differ, for each pair.

    Of soft votes it is the chance that two ballots drawn from them differ, so that a soft
    voter also differs from itself. With ``Q`` the voters' weights, ``Q @ result @ Q`` is
    the paper's disagreement, :func:`damvi.risks.disagreement`.

    Parameters
    ----------
    votes : array of shape (n, K)
        Hard or soft votes.
    sample_weight : array of shape (n,), optional

    Returns
    -------
    disagreement : ndarray of shape (K, K)
        Symmetric, between 0 and 1.

    References
    ----------
    D. B. Skalak (1996), The Sources of Increased Accuracy for Two Proposed Boosting
    Algorithms, AAAI Workshop on Integrating Multiple Learned Models.

    Examples
    --------
    >>> from damvi.diversity import pairwise_disagreement
    >>> pairwise_disagreement([[1, 1, -1], [1, -1, -1], [-1, -1, 1], [1, 1, -1]])
    array([[0.  , 0.25, 1.  ],
           [0.25, 0.  , 0.75],
           [1.  , 0.75, 0.  ]])
    """
    H = read_votes(votes)
    moments = sums(H, np.ones(len(H), np.int8), sample_weight)
    # The rounding of soft votes may leave the triangles, and the bounds, a last bit apart.
    M = (moments.M + moments.M.T) / 2
    return np.clip((moments.total - M) / (2 * moments.total), 0.0, 1.0)


def q_statistic(
    votes: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> Matrix:
    """Yule's Q for each pair: whether two voters are right on the same rows.

    With ``a`` the rows on which both are right, ``d`` both wrong, ``b`` and ``c`` only one
    of them right, it is (ad - bc) / (ad + bc): 1 when one errs only where the other does,
    0 when their errors are independent, -1 when they never are right, or never wrong,
    together.

    Parameters
    ----------
    votes : array of shape (n, K)
        Hard votes; soft ones count by their sign.
    y : array of shape (n,)
    sample_weight : array of shape (n,), optional

    Returns
    -------
    Q : ndarray of shape (K, K)
        Symmetric, between -1 and 1. It is 0/0 when a voter is always right or always
        wrong; it then counts as 1 if the two never differ, and as 0 (independent) if
        they do.

    References
    ----------
    G. U. Yule (1900), On the Association of Attributes in Statistics, Philosophical
    Transactions of the Royal Society A 194.

    Examples
    --------
    >>> from damvi.diversity import q_statistic
    >>> votes = [[1, 1, 1], [1, 1, -1], [-1, -1, 1], [1, 1, 1], [1, -1, -1], [-1, 1, -1]]
    >>> q_statistic(votes, [1, 1, 0, 0, 0, 0]).round(2)
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    H = decisions(votes)
    a, b, c, d = _tables(H, read_signs(y, len(H)), sample_weight)
    return _ratio(a * d - b * c, a * d + b * c, b + c)


def kappa(votes: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Matrix:
    """Cohen's kappa for each pair: agreement beyond what chance would give.

    With a rare class all voters agree on most rows. Kappa takes out the agreement that
    their rates of positive votes alone would bring, and so stays telling.

    Parameters
    ----------
    votes : array of shape (n, K)
        Hard votes; soft ones count by their sign.
    sample_weight : array of shape (n,), optional

    Returns
    -------
    kappa : ndarray of shape (K, K)
        Symmetric, between -1 and 1; 1 for voters that never differ, even where both
        always say the same and kappa is 0/0.

    References
    ----------
    J. Cohen (1960), A Coefficient of Agreement for Nominal Scales, Educational and
    Psychological Measurement 20.

    Examples
    --------
    >>> from damvi.diversity import kappa
    >>> kappa([[1, 1, -1], [1, -1, -1], [-1, -1, 1], [-1, -1, 1]])
    array([[ 1. ,  0.5, -1. ],
           [ 0.5,  1. , -0.5],
           [-1. , -0.5,  1. ]])
    """
    H = decisions(votes)
    a, b, c, d = _tables(H, np.ones(len(H), np.int8), sample_weight)
    return _ratio(2 * (a * d - b * c), (a + b) * (b + d) + (a + c) * (c + d), b + c)


def _tables(
    H: NDArray[np.int8], signs: NDArray[np.int8], sample_weight: ArrayLike | None
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Rows of each pair where H * signs is (+, +), (+, -), (-, +) and (-, -).

    They are whole numbers, so an empty cell is exactly 0.
    """
    moments = sums(H, signs, sample_weight)
    first, second, both = moments.m[:, np.newaxis], moments.m, moments.M
    return (
        (moments.total + first + second + both) / 4.0,
        (moments.total + first - second - both) / 4.0,
        (moments.total - first + second - both) / 4.0,
        (moments.total - first - second + both) / 4.0,
    )


def _ratio(above: Matrix, below: Matrix, differ: Matrix) -> Matrix:
    """``above / below``; of 0/0, 1 for pairs that never differ and 0 for others."""
    undefined = below == 0
    ratio = above / np.where(undefined, 1.0, below)
    return np.where(undefined, differ == 0, ratio)
