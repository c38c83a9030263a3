"""Categories in an order for three or more classes, so that a split can be a prefix.

With two classes the order of the positive rates has the best of all subsets among its
prefixes [1]_. With more there is no such order. Along the first principal component of
the categories' class rates a good one is usually found, which is not claimed to be best
[2]_.

References
----------
.. [1] L. Breiman, J. Friedman, R. Olshen and C. Stone (1984), Classification and
   regression trees.
.. [2] D. Coppersmith, S. Hong and J. Hosking (1999), Partitioning nominal attributes in
   decision trees. Data Mining and Knowledge Discovery 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import kernel
from .class_splits import CLASS_MASK, CLASS_SHIFT, CODE_SHIFT, WEIGHT_MASK

ROUNDS = 30
"""Of power iteration: nearly the first component does as well."""


@kernel
def order_by_class_rates(keys: Any, n_classes: Any, out: Any) -> None:
    """Put the keys' categories in ``out`` along the first principal component."""
    n = len(keys)
    firsts = np.empty(257, np.int64)
    m = 0
    for i in range(n):
        if i == 0 or keys[i] >> CODE_SHIFT != keys[i - 1] >> CODE_SHIFT:
            firsts[m] = i
            m += 1
    firsts[m] = n
    rates, weights = np.zeros((m, n_classes)), np.zeros(m)
    for j in range(m):
        for i in range(firsts[j], firsts[j + 1]):
            rates[j, keys[i] >> CLASS_SHIFT & CLASS_MASK] += keys[i] & WEIGHT_MASK
        weights[j] = rates[j].sum()
        rates[j] /= weights[j]
    scores = first_component(rates, weights)
    order = np.argsort(scores, kind="mergesort")  # stable
    old, place = keys.copy(), 0
    for j in order:
        for i in range(firsts[j], firsts[j + 1]):
            out[place] = old[i]
            place += 1


@kernel
def first_component(rates: Any, weights: Any) -> Any:
    """Scores of the rows of ``rates`` (m, C) on their first weighted principal component.

    The last class that varies counts upwards, as the positives do where there are two.
    """
    m, n_classes = rates.shape
    total = weights.sum()
    centred = rates.copy()
    for c in range(n_classes):
        mean = 0.0
        for j in range(m):
            mean += weights[j] * rates[j, c]
        mean /= total
        for j in range(m):
            centred[j, c] -= mean
    # From the category farthest from the mean: never at a right angle to all of them.
    farthest, largest = 0, -1.0
    for j in range(m):
        length = 0.0
        for c in range(n_classes):
            length += centred[j, c] * centred[j, c]
        if length * weights[j] > largest:
            farthest, largest = j, length * weights[j]
    direction = centred[farthest].copy()
    following = np.empty(n_classes)
    for _ in range(ROUNDS):
        following[:] = 0.0
        for j in range(m):
            score = 0.0
            for c in range(n_classes):
                score += centred[j, c] * direction[c]
            for c in range(n_classes):
                following[c] += weights[j] * score * centred[j, c]
        length = 0.0
        for c in range(n_classes):
            length += following[c] * following[c]
        if length <= 0.0:  # all rates are alike
            break
        for c in range(n_classes):
            direction[c] = following[c] / np.sqrt(length)
    sign = 1.0
    for c in range(n_classes):
        if direction[c] != 0.0:
            sign = 1.0 if direction[c] > 0.0 else -1.0
    scores = np.zeros(m)
    for j in range(m):
        for c in range(n_classes):
            scores[j] += sign * direction[c] * rates[j, c]
    return scores
