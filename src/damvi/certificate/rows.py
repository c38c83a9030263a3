"""Detect training rows among the rows for a certificate, and tell them from duplicates.

A new row may have the values of a training row by chance: tables contain default rows,
small integers, or the same customer twice. How often can be estimated from the training
rows (Good and Turing): of N rows, let N_r be the number of values found r times. A new row
then has a value found r times with probability about (r + 1) N_{r+1} / N, since a training
row, taken out, has a value found r times among the others exactly if it is one of r + 1.
A row that *is* a training row has such a value with probability r N_r / N, which for r = 1
is usually far more. So for each r, two numbers are compared: how many values found r times
in training occur in the n new rows, and N_{r+1}. The first should be at most (r + 1) n / N
times the second, up to chance. A value found thousands of times in training counts no more
than any other.

Not detected are rows whose values were changed (scaled, rounded, stored in single
precision), part of the training rows in a table with so few distinct values that none is
rare, and so few training rows that chance may explain them.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.stats import binom

from ..hashing import LABEL, Hashes, without_labels

ALPHA = 1e-5
"""Significance level of each comparison."""


def refuse_training_rows(new: Hashes, trained: Hashes) -> None:
    """Raise an error if ``new`` contains training rows; warn if it has duplicates of them.

    All rows are compared by their values, then each class by values and label: a few
    copied positives are few among all rows, but many among the positives.
    """
    shared = shared_rows(without_labels(new), without_labels(trained))
    if not shared:
        return
    pairs = [
        (without_labels(new), without_labels(trained)),
        (new[new & LABEL == 1], trained[trained & LABEL == 1]),
        (new[new & LABEL == 0], trained[trained & LABEL == 0]),
    ]
    if np.array_equal(np.sort(new), trained) or any(is_leak(*pair) for pair in pairs):
        raise ValueError(
            f"{shared} of the {len(new)} rows have the same values as training rows, more "
            f"than chance explains: they include training rows, which the model has seen, "
            f"so they certify nothing; use held-out rows"
        )
    warnings.warn(
        f"{shared} of the {len(new)} rows have the same values as training rows. Chance "
        f"can explain that many, and duplicates of values do no harm; but if any are "
        f"training rows, the certificate is void",
        UserWarning,
        stacklevel=3,
    )


def shared_rows(new: Hashes, trained: Hashes) -> int:
    """Return the number of rows in common, as multisets."""
    values, counts = np.unique(new, return_counts=True)
    first = np.searchsorted(trained, values, side="left")
    times = np.searchsorted(trained, values, side="right") - first
    return int(np.minimum(counts, times).sum())


def is_leak(new: Hashes, trained: Hashes) -> bool:
    """Whether more values of ``trained`` occur in ``new`` than new rows explain."""
    values, times = np.unique(trained, return_counts=True)
    if not len(values) or not len(new):
        return False
    found = np.bincount(times[np.isin(values, new)], minlength=times.max() + 1)
    there = np.bincount(times, minlength=times.max() + 2)
    level = np.flatnonzero(found)
    # Two counts of rare events; given their sum, the first is binomial.
    ratio = (level + 1) * len(new) / len(trained)
    trials = found[level] + there[level + 1]
    chance = binom.sf(found[level] - 1, trials, ratio / (1 + ratio))
    return bool((chance < ALPHA).any())
