"""Curves, calibration and scores of each class against the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation.rates import share
from .class_material import ClassMaterial
from .curves import calibration, curves, distribution
from .cuts import offer_cuts

MOST_VIEWS = 20
"""Classes that have charts of their own: the rarest, if there are more."""
POINTS = 150
"""Of a curve; the corners of its hull are kept beside."""


def views_of(
    material: ClassMaterial,
    truth: NDArray[np.intp] | None,
    chance: NDArray[np.float64] | None,
) -> list[dict[str, Any]]:
    """For each class what its charts show, the rarest first.

    A view has the entries of the two-class summary that the charts read, so that the
    same charts draw both. ``truth`` and ``chance`` are those of the rows with a vote.
    """
    judged = material.judged
    known = judged.has_vote
    vote, decided = judged.vote[known], judged.decided[known]
    counted = decided if truth is None else truth
    sizes = np.bincount(counted, minlength=len(material.names))
    order = [int(c) for c in np.argsort(sizes, kind="stable") if sizes[c] < len(counted)]
    there = [c for c in order if truth is None or sizes[c]]
    views = []
    for c in there[:MOST_VIEWS]:
        own = None if truth is None else truth == c
        view: dict[str, Any] = {
            "class": c,
            "name": material.names[c],
            "threshold": None,
            "distribution": distribution(vote[:, c], own, (0.0, 1.0)),
        }
        if own is not None and chance is not None:
            view |= _judged_view(vote[:, c], own, decided == c, chance[:, c])
        views.append(view)
    return views


def _judged_view(
    vote: NDArray[np.float64],
    own: NDArray[np.bool_],
    named: NDArray[np.bool_],
    chance: NDArray[np.float64],
) -> dict[str, Any]:
    # No vote is above 1: the model's decision is no cut of this vote alone.
    cuts = offer_cuts(vote, own, 1.0, POINTS)
    found, alarms = int((own & named).sum()), int((~own & named).sum())
    return {
        "data": {"rate": float(own.mean())},
        "decision": {
            "precision": share(found, found + alarms),
            "recall": share(found, cuts.positives),
            "false_alarms": alarms,
            "passed": cuts.negatives - alarms,
        },
        "curves": curves(cuts),
        "calibration": {"bins": calibration(chance, own)},
    }
