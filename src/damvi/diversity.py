"""Diversity of the voters, pair by pair, and margins of their vote.

``votes`` is the (n, K) matrix of the voters' votes, +1 for the positive class and -1 for
the other, as returned by :meth:`damvi.DAMVIClassifier.cast_votes`; ``y`` is the truth, 0
and 1 or -1 and +1. :func:`pairwise_disagreement` and :func:`margins` also take soft votes
(floats in [-1, 1]). The other functions use decisions: a vote above 0 is +1, any other -1.

All measures follow from the exact sums of :class:`damvi.moments.Moments`, so a pair of
voters costs one pass over their votes, and rounding cannot hide that a count is 0. Only
ratios of ``sample_weight`` matter; weights below 2**-31 of the largest count as 0. With a
rare class, weights that balance the classes reveal what happens on the few positives.

References
----------
L. I. Kuncheva and C. J. Whitaker (2003), Measures of Diversity in Classifier Ensembles
and Their Relationship with the Ensemble Accuracy, Machine Learning 51.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import risks
from .moments import Moments

__all__ = [
    "decisions",
    "kappa",
    "kappa_error",
    "margins",
    "pairwise_disagreement",
    "q_statistic",
    "read_sample_weight",
    "read_signs",
    "read_votes",
    "read_weights",
    "voter_errors",
]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


def pairwise_disagreement(
    votes: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> Matrix:
    """Fraction of rows on which two voters differ, for each pair.

    For soft votes, it is the probability that two votes drawn from them differ, so a soft
    voter also differs from itself. With the voters' weights ``Q``, ``Q @ result @ Q`` is
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
    moments = _moments(H, np.ones(len(H), np.int8), sample_weight)
    # With soft votes, rounding may break symmetry and bounds in the last bit.
    M = (moments.M + moments.M.T) / 2
    return np.clip((moments.total - M) / (2 * moments.total), 0.0, 1.0)


def q_statistic(
    votes: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> Matrix:
    """Yule's Q for each pair: whether two voters are right on the same rows.

    With ``a`` the rows on which both are right, ``d`` both wrong, ``b`` and ``c`` only one
    of them right, it is (ad - bc) / (ad + bc): 1 if one errs only where the other does,
    0 if their errors are independent, -1 if they are never both right, or never both
    wrong.

    Parameters
    ----------
    votes : array of shape (n, K)
        Hard votes; soft votes count by their sign.
    y : array of shape (n,)
    sample_weight : array of shape (n,), optional

    Returns
    -------
    Q : ndarray of shape (K, K)
        Symmetric, between -1 and 1. If a voter is always right or always wrong, it is 0/0
        and set to 1 if the two never differ, and to 0 (independent) if they do.

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
    """Cohen's kappa for each pair: agreement beyond chance.

    With a rare class, all voters agree on most rows. Kappa removes the agreement expected
    from their rates of positive votes, and so remains informative.

    Parameters
    ----------
    votes : array of shape (n, K)
        Hard votes; soft votes count by their sign.
    sample_weight : array of shape (n,), optional

    Returns
    -------
    kappa : ndarray of shape (K, K)
        Symmetric, between -1 and 1; 1 for voters that never differ, even if both are
        constant and kappa is 0/0.

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
    """Count, for each pair, rows where H * signs is (+, +), (+, -), (-, +) and (-, -).

    Counts are integers, so an empty cell is exactly 0.
    """
    moments = _moments(H, signs, sample_weight)
    first, second, both = moments.m[:, np.newaxis], moments.m, moments.M
    return (
        (moments.total + first + second + both) / 4.0,
        (moments.total + first - second - both) / 4.0,
        (moments.total - first + second - both) / 4.0,
        (moments.total - first - second + both) / 4.0,
    )


def _ratio(above: Matrix, below: Matrix, differ: Matrix) -> Matrix:
    """``above / below``; 0/0 is 1 for pairs that never differ and 0 for others."""
    undefined = below == 0
    ratio = above / np.where(undefined, 1.0, below)
    return np.where(undefined, differ == 0, ratio)


def voter_errors(
    votes: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> Vector:
    """Error rate of each voter.

    Parameters
    ----------
    votes : array of shape (n, K)
        Hard votes; soft votes count by their sign.
    y : array of shape (n,)
    sample_weight : array of shape (n,), optional

    Returns
    -------
    errors : ndarray of shape (K,)

    References
    ----------
    A. Goyal and J. Khiari (2020), Diversity-Aware Weighted Majority Vote Classifier for
    Imbalanced Data, IJCNN. Their mean under the voters' weights is the Gibbs risk.

    Examples
    --------
    >>> from damvi.diversity import voter_errors
    >>> voter_errors([[1, 1], [1, -1], [-1, -1], [1, -1]], [1, 0, 0, 0])
    array([0.5, 0. ])
    """
    H = decisions(votes)
    moments = _moments(H, read_signs(y, len(H)), sample_weight)
    return (moments.total - moments.m) / (2 * moments.total)


def kappa_error(
    votes: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> tuple[Vector, Vector]:
    """The kappa-error diagram: kappa and mean error of each pair.

    Pairs on the left are more diverse, pairs at the bottom more accurate.

    Parameters
    ----------
    votes : array of shape (n, K)
        Hard votes; soft votes count by their sign.
    y : array of shape (n,)
    sample_weight : array of shape (n,), optional

    Returns
    -------
    kappa, error : ndarrays of shape (K * (K - 1) / 2,)
        In the order of ``np.triu_indices(K, 1)``: (0, 1), (0, 2), ...

    References
    ----------
    D. Margineantu and T. G. Dietterich (1997), Pruning Adaptive Boosting, ICML.

    Examples
    --------
    >>> from damvi.diversity import kappa_error
    >>> kappa_error([[1, 1, -1], [1, -1, -1], [-1, -1, 1], [-1, -1, 1]], [1, 0, 0, 0])
    (array([ 0.5, -1. , -0.5]), array([0.125, 0.5  , 0.375]))
    """
    errors = voter_errors(votes, y, sample_weight=sample_weight)
    j, k = np.triu_indices(len(errors), 1)
    return kappa(votes, sample_weight=sample_weight)[j, k], (errors[j] + errors[k]) / 2


def margins(votes: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None) -> Vector:
    """Margins of the weighted vote: y times the vote, in [-1, 1].

    Parameters
    ----------
    votes : array of shape (n, K)
        Hard or soft votes.
    y : array of shape (n,)
    weights : array of shape (K,), optional
        The voters' weights, normalized to sum to 1. None: equal weights.

    Returns
    -------
    margins : ndarray of shape (n,)
        Above 0 if the vote is right. Those of one class are ``margins[y == 1]``.

    References
    ----------
    R. E. Schapire, Y. Freund, P. Bartlett and W. S. Lee (1998), Boosting the Margin,
    Annals of Statistics 26.

    Examples
    --------
    >>> from damvi.diversity import margins
    >>> margins([[1, 1, -1], [1, -1, -1]], [1, 0], [0.5, 0.25, 0.25])
    array([0.5, 0. ])
    """
    H = read_votes(votes)
    Q = read_weights(weights, H.shape[1])
    # Adding 0 turns -0.0 into 0.0.
    return np.clip(risks.margins(H, read_signs(y, len(H)), Q), -1.0, 1.0) + 0.0


def read_votes(votes: ArrayLike) -> NDArray[Any]:
    """Validate votes of shape (n, K): integers -1 and +1, or floats in [-1, 1]."""
    H = np.asarray(votes)
    if H.ndim != 2 or 0 in H.shape:
        raise ValueError(
            f"votes must have shape (n, K), one column per voter, got {H.shape}"
        )
    if H.dtype.kind not in "if" or (H.dtype.kind == "i" and not (abs(H) == 1).all()):
        raise ValueError(
            "votes must be -1 or +1 (or floats in [-1, 1]); convert predictions of 0 and 1 "
            "with np.where(predictions == 1, 1, -1)"
        )
    if not (abs(H) <= 1).all():
        raise ValueError(
            "soft votes must be in [-1, 1]; convert probabilities with 2 * p - 1"
        )
    return H


def decisions(votes: ArrayLike) -> NDArray[np.int8]:
    """Return hard votes: +1 above 0, else -1."""
    return np.where(read_votes(votes) > 0, 1, -1).astype(np.int8)


def read_signs(y: ArrayLike, n_rows: int, pos_label: Any = None) -> NDArray[np.int8]:
    """Return +1 for rows of the positive class, -1 for the others."""
    truth = np.asarray(y)
    if truth.shape != (n_rows,):
        raise ValueError(f"y has shape {truth.shape}, but votes has {n_rows} rows")
    labels = set(np.unique(truth).tolist())
    if pos_label is None and not (labels <= {0, 1} or labels <= {-1, 1}):
        raise ValueError(
            "y must be 0 and 1, or -1 and +1; for other labels, choose the positive one: "
            "y == 'fraud', or pos_label where available"
        )
    if len(labels) > 2:
        raise ValueError(f"y has {len(labels)} classes, but must have two")
    positive = truth == (1 if pos_label is None else pos_label)
    return np.where(positive, 1, -1).astype(np.int8)


def read_weights(weights: ArrayLike | None, n_voters: int) -> NDArray[np.float64]:
    """Return the voters' weights, normalized to sum to 1; equal if None."""
    Q = np.ones(n_voters) if weights is None else np.asarray(weights, dtype=np.float64)
    if Q.shape != (n_voters,):
        raise ValueError(f"weights has shape {Q.shape}, but votes has {n_voters} voters")
    if not ((Q >= 0) & np.isfinite(Q)).all() or not Q.any():
        raise ValueError("weights must be finite, nonnegative and not all 0")
    # A model's weights lie on a grid on which ties are exact; dividing would leave it.
    return Q if abs(Q.sum() - 1) < 1e-9 else Q / Q.sum()


def read_sample_weight(
    sample_weight: ArrayLike | None, n_rows: int
) -> NDArray[np.float64] | None:
    """Return the rows' weights, scaled to a maximum of 1; None if None."""
    if sample_weight is None:
        return None
    D = np.asarray(sample_weight, dtype=np.float64)
    if D.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {D.shape}, but votes has {n_rows} rows")
    if not ((D >= 0) & np.isfinite(D)).all() or not D.any():
        raise ValueError("sample_weight must be finite, nonnegative and not all 0")
    return D / D.max()


def _moments(
    H: NDArray[Any], signs: NDArray[np.int8], sample_weight: ArrayLike | None
) -> Moments:
    """Return the moments that all measures are computed from."""
    return Moments.of(H, signs, read_sample_weight(sample_weight, len(H)))
