"""The paper's test: Wilcoxon's rank-sum test, two-sided, at p < 0.05.

It is kept because the paper used it, and its limits are worth knowing:

- the splits of a dataset overlap, so their scores are not independent draws and the
  p-values are too small;
- with 5 splits a side the smallest p there is, when all of one side lies below the other,
  is .008; with 4 it is .029, with 3 it is .1, and nothing can be significant;
- that two methods saw the same splits is ignored, which costs power;
- nine tests a dataset are not corrected for being many.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LEVEL = 0.05


def rank_sum_p(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The two-sided p-value that both come from one distribution (1 if one is empty).

    Exact without ties, where the usual normal approximation is too quick to see a
    difference among so few.

    >>> round(rank_sum_p([0.1, 0.2, 0.3, 0.4, 0.5], [0.6, 0.7, 0.8, 0.9, 1.0]), 4)
    0.0079
    """
    from scipy.stats import mannwhitneyu

    if not len(ours) or not len(theirs):
        return 1.0
    # The rank-sum statistic but for a constant; "auto" is exact without ties.
    return float(mannwhitneyu(ours, theirs, method="auto").pvalue)


def significantly_lower(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether ``ours`` is lower in the mean, and the test says it is no accident."""
    if not len(ours) or not len(theirs) or not np.mean(ours) < np.mean(theirs):
        return False
    return rank_sum_p(ours, theirs) < LEVEL


def smallest_p(n_ours: int, n_theirs: int) -> float:
    """The p-value when the two do not overlap at all: the least these many can give."""
    return rank_sum_p(range(n_ours), range(n_ours, n_ours + n_theirs))
