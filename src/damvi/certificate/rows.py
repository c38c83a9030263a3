"""Training rows have no place in a certificate: how they are told from mere duplicates.

A fresh row may have the values of a training row by chance: tables hold default rows, small
integers, the same customer twice. How often is known from the training rows themselves
(Good and Turing): of N rows, let N_r be the number of values found r times. A fresh row
then has a value found r times with probability about (r + 1) N_{r+1} / N, since a training
row, taken out, has a value found r times among the others exactly when it is one of r + 1.
A row that *is* a training row has such a value with probability r N_r / N, which for
r = 1 usually is far more. So for each r two numbers are compared: how many values that
training has r times turn up in the n new rows, and N_{r+1}. The first should be no more
than (r + 1) n / N times the second, up to chance. A value so common that training has it
thousands of times weighs no more than any other.

What this cannot see: rows whose values were changed on the way (scaled, rounded, stored in
single precision), a part of the fit's rows in a table of so few distinct values that none
is rare, and so few training rows among fresh ones that chance may explain them.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.stats import binom

from ..hashing import LABEL, Hashes, without_labels

ALPHA = 1e-5
"""How rarely fresh rows may be taken for training rows, for each comparison."""


def refuse_training_rows(new: Hashes, trained: Hashes) -> None:
    """Raise if ``new`` holds training rows, warn if it holds duplicates of their values.

    All rows are compared by their values, then each class by values and label: a few
    positives copied into the new rows are few among all, but many among the positives.
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
            f"{shared} of the {len(new)} rows have the values of training rows, more "
            f"than chance explains: training rows are among them. A model is right "
            f"about rows it has seen, so they certify nothing; give rows kept apart"
        )
    warnings.warn(
        f"{shared} of the {len(new)} rows have the values of training rows. Chance "
        f"can explain that many, and fresh rows that only look the same do no harm; if "
        f"some are the very training rows, the certificate is void",
        UserWarning,
        stacklevel=3,
    )


def shared_rows(new: Hashes, trained: Hashes) -> int:
    """How many rows the two have in common, as multisets."""
    values, counts = np.unique(new, return_counts=True)
    first = np.searchsorted(trained, values, side="left")
    times = np.searchsorted(trained, values, side="right") - first
    return int(np.minimum(counts, times).sum())


def is_leak(new: Hashes, trained: Hashes) -> bool:
    """Whether more values of ``trained`` turn up in ``new`` than fresh rows explain."""
    values, times = np.unique(trained, return_counts=True)
    if not len(values) or not len(new):
        return False
    found = np.bincount(times[np.isin(values, new)], minlength=times.max() + 1)
    there = np.bincount(times, minlength=times.max() + 2)
    level = np.flatnonzero(found)
    # Two counts of rare events; their sum given, the first is binomial.
    ratio = (level + 1) * len(new) / len(trained)
    trials = found[level] + there[level + 1]
    chance = binom.sf(found[level] - 1, trials, ratio / (1 + ratio))
    return bool((chance < ALPHA).any())
