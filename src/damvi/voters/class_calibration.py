"""Soft votes for three or more classes put right: one against the rest, then evened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .calibration import Method, calibrate


@dataclass(frozen=True, eq=False)
class ClassCurves:
    """One voter's shares (n, C), each read off the curve of its class; rows sum to 1."""

    curves: tuple[Any, ...]

    def __call__(self, votes: NDArray[Any]) -> NDArray[np.float32]:
        right = [curve(2 * votes[:, c] - 1) for c, curve in enumerate(self.curves)]
        return _evened(np.stack(right, axis=-1))


def calibrate_classes(
    votes: NDArray[np.float32],
    labels: NDArray[np.intp],
    folds: NDArray[Any],
    *,
    method: Method = "auto",
    sample_weight: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float32], list[ClassCurves]]:
    """Calibrate voters' shares (n, K, C), each fold by what the others say.

    ``labels`` are the numbers of the rows' classes; the rest is as for
    :func:`~damvi.voters.calibration.calibrate`, which sees one class against the rest.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([4, 1, 1], size=4000)
    >>> labels = (rng.random((4000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> boasts = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> votes, _ = calibrate_classes(boasts[:, None], labels, np.arange(4000) % 5)
    >>> bool(abs(votes[:, 0] - p).mean() < abs(boasts - p).mean() / 2)
    True
    """
    right = np.empty(votes.shape, np.float32)
    by_class = []
    for c in range(votes.shape[2]):
        signs = np.where(labels == c, 1, -1)
        right[:, :, c], curves = calibrate(
            2 * votes[:, :, c].astype(np.float32) - 1,
            signs,
            folds,
            method=method,
            sample_weight=sample_weight,
        )
        by_class.append(curves)
    return _evened(right), [ClassCurves(curves) for curves in zip(*by_class, strict=True)]


def _evened(votes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Soft votes 2p - 1 of the classes as shares that add up to 1."""
    shares = (1 + votes.astype(np.float64)) / 2
    total = shares.sum(axis=-1, keepdims=True)
    even = np.full(shares.shape, 1 / shares.shape[-1])
    np.divide(shares, total, out=even, where=total > 0)
    return even.astype(np.float32)
