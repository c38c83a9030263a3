"""Labels for unlabelled rows, by a teacher that is sure of some: whom, and which rows."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from .._blas import one_blas_thread
from .._threads import one_openmp_thread

CLUSTERS = 8
"""At most, for each class."""
CONFIDENT = 0.5
"""The share of the unlabelled rows, of each class, that voters are trained on."""


class PseudoLabels(NamedTuple):
    """Some unlabelled rows, and whether they pass for positive."""

    rows: NDArray[np.intp]
    positive: NDArray[np.bool_]


def most_confident(
    scores: NDArray[np.float64], positive_rate: float, share: float = CONFIDENT
) -> PseudoLabels:
    """The rows that a teacher is most sure of, with the rate of positives held.

    Of the positives and of the negatives that are to be expected, this share: those with
    the highest scores, and those with the lowest. Of equal scores the first row counts.

    Examples
    --------
    >>> scores = np.array([0.9, -0.2, -0.8, 0.1, -0.9, -0.7, -0.6, -0.3, -0.5, -0.4])
    >>> most_confident(scores, 0.2)
    PseudoLabels(rows=array([0, 4, 2, 5, 6]), positive=array([ True, False, False, False, False]))
    """  # noqa: E501
    n = len(scores)
    n_up = min(max(1, round(share * positive_rate * n)), n)
    n_down = min(max(1, round(share * (1 - positive_rate) * n)), n - n_up)
    up = np.argsort(-scores, kind="stable")
    down = np.argsort(scores[up[n_up:]], kind="stable")
    rows = np.concatenate([up[:n_up], up[n_up:][down[:n_down]]])
    return PseudoLabels(rows, np.arange(len(rows)) < n_up)


def centroid_scores(
    X: Any, signs: NDArray[Any], fresh: Any, *, seed: int
) -> NDArray[np.float64]:
    """How much closer each row of ``fresh`` is to a centroid of the positives.

    K-means finds up to eight centroids for each class of the labelled rows ``X``; the
    score is the distance to the nearest of the negatives' less that to the nearest of the
    positives'. Columns should be on the same scale.

    Examples
    --------
    >>> X, signs = np.array([[0.0], [1.0], [9.0]]), np.array([-1, -1, 1])
    >>> centroid_scores(X, signs, np.array([[0.0], [8.0]]), seed=0)
    array([-9.,  6.])
    """
    from sklearn.cluster import KMeans  # slow to import
    from sklearn.metrics import pairwise_distances_argmin_min

    nearest = []
    with one_blas_thread(), one_openmp_thread(), warnings.catch_warnings():
        # Fewer distinct rows than clusters: fewer clusters do.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for sign in (-1, 1):
            own = X[signs == sign]
            means = KMeans(min(CLUSTERS, own.shape[0]), n_init=3, random_state=seed)
            centres = means.fit(own).cluster_centers_
            nearest.append(pairwise_distances_argmin_min(fresh, centres)[1])
    scores: NDArray[np.float64] = nearest[0] - nearest[1]
    return scores
