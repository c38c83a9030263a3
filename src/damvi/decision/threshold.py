"""The best threshold among all: one sort, then a look at every way to cut the votes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .counts import Number, all_cuts, counts_of
from .objectives import SLACK, Fixed, Floor, Objective, parse_objective
from .rows import Rows, need_both_classes, read_rows

LARGEST = float(np.finfo(np.float64).max)


def tune_threshold(
    vote: ArrayLike,
    signs: ArrayLike,
    objective: Any,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The threshold that is best for an objective on these rows.

    Every way to cut the votes is looked at, so no better one exists. Rows of equal vote
    are decided together. The threshold lies in the middle between two neighbouring
    votes; where all rows, or none, are best flagged, it is the next float outside their
    range. Of neighbouring cuts that are equally good, the middle one is taken; of
    several such runs the longest, then the one that flags fewest. So the decisions depend
    on the order of the votes alone, and a weight of 2 is the same as the row twice.

    Parameters
    ----------
    vote : array of shape (n,)
        Out-of-sample votes; rows with NaN are left out.
    signs : array of shape (n,), -1 or +1
    objective : str, number, tuple, dict or Objective
        See :func:`parse_objective`.
    sample_weight : array of shape (n,), optional

    Returns
    -------
    threshold : float
        Finite. Rows with a vote above it, strictly, are to be flagged.

    Warns
    -----
    UserWarning
        If no threshold reaches a precision floor. The closest is returned.

    Examples
    --------
    >>> from damvi.decision import tune_threshold
    >>> vote, signs = [-0.9, -0.4, -0.2, 0.1, 0.3], [-1, -1, 1, -1, 1]
    >>> round(tune_threshold(vote, signs, "f1"), 3)
    -0.3
    >>> round(tune_threshold(vote, signs, {"precision": 0.9}), 3)
    0.2
    """
    aim = parse_objective(objective)
    rows = read_rows(vote, signs, sample_weight)
    need_both_classes(rows)
    threshold = search(rows, aim)
    warn_if_out_of_reach(rows, aim, threshold)
    return threshold


def search(rows: Rows, aim: Objective) -> float:
    """The best threshold; above all votes if no positive is known."""
    if isinstance(aim, Fixed):
        return aim.threshold
    total = float(rows.weight.sum())
    votes, counts = all_cuts(rows.vote, rows.positive, aim.mass(rows), total)
    if not rows.positive.any():
        return _threshold_at(len(votes), votes)
    good = np.flatnonzero(best(aim.preference(counts)))
    breaks = np.flatnonzero(np.diff(good) > 1)
    first = good[np.append(0, breaks + 1)]
    last = good[np.append(breaks, len(good) - 1)]
    length = last - first
    run = np.flatnonzero(length == length.max())[-1]
    return _threshold_at(int(first[run] + last[run] + 1) // 2, votes)


def best(preference: tuple[Number, ...]) -> NDArray[np.bool_]:
    """Where the preference is highest, along the last axis; rounding makes no winner."""
    good = np.ones(preference[0].shape, dtype=np.bool_)
    for level in preference:
        slack = SLACK * np.abs(level).max(axis=-1, keepdims=True)
        ranked = np.where(good, level, -np.inf)
        good = ranked >= ranked.max(axis=-1, keepdims=True) - slack
    return good


def _threshold_at(cut: int, votes: Number) -> float:
    if cut == 0:
        return max(float(np.nextafter(votes[0], -np.inf)), -LARGEST)
    if cut == len(votes):
        return min(float(np.nextafter(votes[-1], np.inf)), LARGEST)
    below, above = float(votes[cut - 1]), float(votes[cut])
    middle = below / 2 + above / 2
    # Between neighbouring floats there is no middle, and "above" must stay above.
    return middle if below <= middle < above else below


def warn_if_out_of_reach(rows: Rows, aim: Objective, threshold: float) -> None:
    """Say so if a floor was not reached."""
    if not isinstance(aim, Floor):
        return
    counts = counts_of(rows.vote > threshold, rows.positive, rows.weight, 1.0)
    if not aim.reached(counts):
        warnings.warn(
            f"no threshold reaches the {aim.rate} floor of {aim.floor:g} on these rows; "
            f"the closest has {float(aim.kept(counts)):.3g}. Lower the floor, or improve "
            f"the model",
            UserWarning,
            stacklevel=3,
        )
