"""One tree from rows, weights and classes: two, or more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .class_keys import CLASS_SHIFT, MAX_TOTAL_BITS
from .features import Features
from .forest import Forest
from .grow import grow
from .grow_classes import grow_classes
from .homes import NEAR_CELLS

if TYPE_CHECKING:
    from .classifier import FastTreeClassifier

WEIGHT_BITS = 30
"""Sample weights of two classes are whole multiples of 2**-30 of the largest."""


def signs_that_count(
    labels: NDArray[Any],
    n_classes: int,
    sample_weight: NDArray[Any] | None,
    sizes: NDArray[Any] | None = None,
) -> NDArray[np.int16]:
    """-1 for the first of two classes, or the largest of more; 1, 2, ... for the others.

    The rarest come first; rows of weight 0 have a 0. ``sizes`` are the rows of each class
    that count in a table of which these rows are a part.
    """
    counts = np.ones(len(labels), bool) if sample_weight is None else sample_weight > 0
    order = np.arange(n_classes)[::-1]
    if n_classes > 2:
        if sizes is None:
            sizes = np.bincount(labels[counts], minlength=n_classes)
        order = np.argsort(sizes, kind="stable")
    signs = np.empty(n_classes, np.int16)
    signs[order] = [*range(1, n_classes), -1]
    return np.where(counts, signs[labels], np.int16(0))


def fixed_point(weights: NDArray[np.float64], n_classes: int = 2) -> NDArray[np.int64]:
    """Weights as whole numbers, the largest 2**30 (or, if classes are many, their sum).

    Only those below 2**-31 of the largest become 0.
    """
    shares = weights / weights.max()
    if n_classes == 2:
        return np.rint(np.ldexp(shares, WEIGHT_BITS)).astype(np.int64)
    bits = MAX_TOTAL_BITS - int(np.ceil(np.log2(shares.sum())))
    numbers = np.rint(np.ldexp(shares, bits)).astype(np.int64)
    return np.where(shares >= 2.0 ** (-WEIGHT_BITS - 1), np.maximum(numbers, 1), 0)


def grow_tree(
    estimator: FastTreeClassifier,
    features: Features,
    n_classes: int,
    codes: NDArray[np.uint8],
    weights: NDArray[np.int64],
    labels: NDArray[Any],
    seed: int,
) -> Forest:
    """One tree on all the rows of ``codes``."""
    if len(codes) == 0:
        # A voter that drew nothing knows nothing, and says what a tie would.
        codes = np.zeros((1, len(features)), np.uint8)
        weights, labels = np.ones(1, np.int64), np.zeros(1, np.uint8)
    options = (
        features.binning.histogram_starts,
        features.binning.categorical,
        estimator.max_depth or 0,
        estimator.min_samples_leaf,
        estimator.features_to_try(len(features)),
        np.uint64(seed + 1),
        NEAR_CELLS // len(features),
    )
    if n_classes == 2:
        negatives, positives = np.flatnonzero(labels == 0), np.flatnonzero(labels)
        rows = negatives.astype(np.uint32), positives.astype(np.uint32)
        return Forest.of_tree(grow(codes, weights, *rows, *options))
    tags = labels.astype(np.int64) << CLASS_SHIFT | weights
    by_class = np.argsort(labels, kind="stable").astype(np.uint32)
    return Forest.of_tree(grow_classes(codes, tags, by_class, n_classes, *options))
