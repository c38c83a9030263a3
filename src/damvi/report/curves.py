"""Precision-recall and ROC curves, calibration, and where the scores lie."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation.rates import share
from .cuts import Cuts

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

N_BINS = 10
N_BARS = 40


def curves(cuts: Cuts) -> dict[str, Any]:
    """Points of both curves, at the cuts that the page offers."""
    found, alarms = cuts.found, cuts.alarms
    flagged = found + alarms
    some = flagged > 0
    return {
        "recall": (found / max(cuts.positives, 1)).tolist(),
        "alarm_rate": (alarms / max(cuts.negatives, 1)).tolist(),
        "precision": [
            float(f / n) if kept else None
            for f, n, kept in zip(found, flagged, some, strict=True)
        ],
    }


def calibration(chance: Vector, positive: Mask) -> list[dict[str, Any]]:
    """Bins of equally many rows: mean probability said, and the share that came true.

    With rare positives most rows share a bin near 0, so the highest bin is split again
    and again until it holds a tenth of the positives or so.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.report.curves import calibration
    >>> bins = calibration(np.linspace(0, 1, 100), np.arange(100) >= 50)
    >>> len(bins), bins[0]["rows"], bins[-1]["seen"]
    (10, 10, 1.0)
    """
    order = np.argsort(chance, kind="stable")
    ranked = chance[order]
    edges = _equal_mass(len(order), int(positive.sum()))
    # Rows of the same probability stay together.
    edges = np.unique(np.searchsorted(ranked, ranked[edges[1:-1]], side="left"))
    edges = np.unique(np.concatenate([[0], edges, [len(order)]]))
    bins = []
    for start, stop in pairwise(edges.tolist()):
        rows = order[start:stop]
        seen = share(int(positive[rows].sum()), len(rows))
        bins.append(
            {
                "rows": len(rows),
                "positives": seen["part"],
                "said": float(chance[rows].mean()),
                "from": float(ranked[start]),
                "to": float(ranked[stop - 1]),
                "seen": seen["value"],
                "low": seen["low"],
                "high": seen["high"],
            }
        )
    return bins


def _equal_mass(n: int, positives: int) -> NDArray[np.intp]:
    """Tenths of the rows; then tenths of the top tenth, while it is worth splitting."""
    edges = np.linspace(0, n, N_BINS + 1)
    enough = max(20.0, positives / N_BINS)
    while n - edges[-2] > 2 * enough and 2 * positives < n:
        edges = np.append(edges[:-1], [(edges[-2] + n) / 2, n])
    return np.unique(edges.round().astype(np.intp))


def distribution(
    vote: Vector, positive: Mask | None, span: tuple[float, float] = (-1.0, 1.0)
) -> dict[str, Any]:
    """How many rows of each class have their vote in each of 40 bars over their range."""
    low, high = min(float(vote.min()), span[0]), max(float(vote.max()), span[1])
    edges = np.linspace(low, high, N_BARS + 1)
    groups = {"all": np.ones(len(vote), dtype=bool)}
    if positive is not None:
        groups = {"positive": positive, "negative": ~positive}
    counted = {name: np.histogram(vote[rows], edges)[0] for name, rows in groups.items()}
    return {
        "edges": edges.tolist(),
        **{name: counts.tolist() for name, counts in counted.items()},
    }
