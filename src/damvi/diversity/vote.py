"""How good the voters are one by one, in pairs, and together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import risks
from .ballots import decisions, read_signs, read_votes, read_weights, sums
from .pairs import kappa

Vector = NDArray[np.float64]


def voter_errors(
    votes: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> Vector:
    """Share of the rows that each voter gets wrong.

    Parameters
    ----------
    votes : array of shape (n, K)
        Hard votes; soft ones count by their sign.
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
    moments = sums(H, read_signs(y, len(H)), sample_weight)
    return (moments.total - moments.m) / (2 * moments.total)


def kappa_error(
    votes: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> tuple[Vector, Vector]:
    """The kappa-error diagram: for each pair, its kappa and its mean error.

    Pairs to the left differ more, pairs at the bottom err less.

    Parameters
    ----------
    votes : array of shape (n, K)
        Hard votes; soft ones count by their sign.
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
    """How sure the weighted vote is of the truth: y times the vote, in [-1, 1].

    Parameters
    ----------
    votes : array of shape (n, K)
        Hard or soft votes.
    y : array of shape (n,)
    weights : array of shape (K,), optional
        The voters' weights, scaled here to sum to 1. None: the plain vote.

    Returns
    -------
    margins : ndarray of shape (n,)
        Above 0 where the vote is right. Those of one class are ``margins[y == 1]``.

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
    # Adding 0 makes a tie plain 0, whatever the sign.
    return np.clip(risks.margins(H, read_signs(y, len(H)), Q), -1.0, 1.0) + 0.0
