"""Votes, truth and weights that a user hands over, checked for the measures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..moments import Moments


def read_votes(votes: ArrayLike) -> NDArray[Any]:
    """The votes of K voters on n rows, as integers -1 and +1 or floats in [-1, 1]."""
    H = np.asarray(votes)
    if H.ndim != 2 or 0 in H.shape:
        raise ValueError(
            f"votes must be of shape (n, K), a column for each voter, found {H.shape}"
        )
    if H.dtype.kind not in "if" or (H.dtype.kind == "i" and not (abs(H) == 1).all()):
        raise ValueError(
            "votes must be -1 or +1 (or floats in [-1, 1]); of predictions 0 and 1 they "
            "are np.where(predictions == 1, 1, -1)"
        )
    if not (abs(H) <= 1).all():
        raise ValueError("soft votes must lie in [-1, 1]; of probabilities they are 2p - 1")
    return H


def decisions(votes: ArrayLike) -> NDArray[np.int8]:
    """Hard votes: those above 0 are +1, all others -1."""
    return np.where(read_votes(votes) > 0, 1, -1).astype(np.int8)


def read_signs(y: ArrayLike, n_rows: int, pos_label: Any = None) -> NDArray[np.int8]:
    """+1 for the rows of the positive class, -1 for the others."""
    truth = np.asarray(y)
    if truth.shape != (n_rows,):
        raise ValueError(f"y has shape {truth.shape}, the votes have {n_rows} rows")
    labels = set(np.unique(truth).tolist())
    if pos_label is None and not (labels <= {0, 1} or labels <= {-1, 1}):
        raise ValueError(
            "y must be 0 and 1, or -1 and +1; of other labels, say which is positive: "
            "y == 'fraud', or pos_label where there is one"
        )
    if len(labels) > 2:
        raise ValueError(f"y has {len(labels)} classes, and votes are about two")
    positive = truth == (1 if pos_label is None else pos_label)
    return np.where(positive, 1, -1).astype(np.int8)


def read_weights(weights: ArrayLike | None, n_voters: int) -> NDArray[np.float64]:
    """The voters' weights, scaled to sum to 1; even ones when there are none."""
    Q = np.ones(n_voters) if weights is None else np.asarray(weights, dtype=np.float64)
    if Q.shape != (n_voters,):
        raise ValueError(f"weights has shape {Q.shape}, the votes have {n_voters} voters")
    if not ((Q >= 0) & np.isfinite(Q)).all() or not Q.any():
        raise ValueError("weights must be 0 or more, finite, and not all 0")
    # A model's weights lie on a grid where ties are exact; dividing would leave it.
    return Q if abs(Q.sum() - 1) < 1e-9 else Q / Q.sum()


def read_sample_weight(
    sample_weight: ArrayLike | None, n_rows: int
) -> NDArray[np.float64] | None:
    """The rows' weights, scaled to a maximum of 1; None when there are none."""
    if sample_weight is None:
        return None
    D = np.asarray(sample_weight, dtype=np.float64)
    if D.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {D.shape}, the votes have {n_rows} rows")
    if not ((D >= 0) & np.isfinite(D)).all() or not D.any():
        raise ValueError("sample_weight must be 0 or more, finite, and not all 0")
    return D / D.max()


def sums(
    H: NDArray[Any], signs: NDArray[np.int8], sample_weight: ArrayLike | None
) -> Moments:
    """What all measures are made of."""
    return Moments.of(H, signs, read_sample_weight(sample_weight, len(H)))
