"""How well votes rank the rows of each class before the others, and how sure that is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .measures import N_DRAWS, Figure, Floats

Places = NDArray[np.intp]

MOST_WORK = 100_000_000
"""Rows times classes times draws, of the draws of whole rows."""
FEWEST_OF_CLASS = 200
"""Rows of a class that are always drawn from, if there are as many."""
BLOCK = 25
"""Draws that are counted at a time."""


def rankings(
    rng: np.random.RandomState, truth: Places, vote: Floats, errors: Floats | None
) -> tuple[dict[str, Figure], list[Figure | None], list[Figure | None]]:
    """Average precision and ROC AUC, each class against the rest, and their means."""
    n_classes = vote.shape[1]
    there = np.bincount(truth, minlength=n_classes) > 0
    exact = _rank(truth, vote, np.ones((1, len(truth))))[:, :, 0]
    rows, scale = _thinned(rng, truth, n_classes)
    some, votes = truth[rows], vote[rows]
    draws = np.empty((2, n_classes, N_DRAWS))
    faults = np.empty(N_DRAWS)
    for start in range(0, N_DRAWS, BLOCK):
        weight = _drawn(rng, some, min(BLOCK, N_DRAWS - start)) * scale
        draws[:, :, start : start + BLOCK] = _rank(some, votes, weight)
        if errors is not None:
            faults[start : start + BLOCK] = weight @ errors[rows] / len(truth)
    # A draw repeats rows, which flatters a ranking, and thinned rows are not all: what is
    # kept of the draws is how far they lie apart.
    draws += (exact - draws.mean(axis=2))[:, :, None]
    overall = {
        name: _share(float(exact[k, there].mean()), draws[k, there].mean(axis=0))
        for k, name in enumerate(("macro_ap", "macro_roc_auc"))
    }
    if errors is not None:
        value = float(errors.mean())
        found = Figure.around(value, faults + (value - faults.mean()))
        overall["brier"] = replace(found, low=max(found.low, 0.0))
    ap, auc = (
        [
            _share(float(exact[k, c]), draws[k, c]) if there[c] else None
            for c in range(n_classes)
        ]
        for k in (0, 1)
    )
    return overall, ap, auc


def _share(value: float, draws: Floats) -> Figure:
    """A figure from 0 to 1, beyond which moved draws may lie."""
    found = Figure.around(value, draws)
    return replace(found, low=max(found.low, 0.0), high=min(found.high, 1.0))


def _rank(truth: Places, vote: Floats, weight: Floats) -> Floats:
    """(2, C, draws): average precision and ROC AUC of each class by these row weights."""
    found = np.zeros((2, vote.shape[1], len(weight)))
    for c in np.unique(truth):
        order = np.argsort(-vote[:, c], kind="stable")
        ranked = vote[order, c]
        starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
        own = truth[order] == c
        mass = weight[:, order]
        up = np.add.reduceat(mass * own, starts, axis=1)
        down = np.add.reduceat(mass * ~own, starts, axis=1)
        ups, downs = up.cumsum(axis=1), down.cumsum(axis=1)
        flagged = ups + downs
        precision = np.divide(ups, flagged, out=np.zeros_like(ups), where=flagged > 0)
        found[0, c] = (up * precision).sum(axis=1) / ups[:, -1]
        pairs = (down * (ups - up / 2)).sum(axis=1)
        found[1, c] = pairs / (ups[:, -1] * downs[:, -1])
    return found


def _thinned(
    rng: np.random.RandomState, truth: Places, n_classes: int
) -> tuple[Places, Floats]:
    """Rows to draw from, and how many each stands for: rare classes keep all of theirs."""
    room = max(MOST_WORK // (N_DRAWS * n_classes), 1)
    groups = [np.flatnonzero(truth == c) for c in range(n_classes)]
    sizes = np.array([len(group) for group in groups])
    if len(truth) > room:
        part = np.maximum(np.ceil(sizes * (room / len(truth))), FEWEST_OF_CLASS)
        kept = np.minimum(sizes, part.astype(np.intp))
        groups = [
            rng.choice(group, size, replace=False)
            for group, size in zip(groups, kept, strict=True)
        ]
    rows = np.concatenate(groups)
    kept = np.array([len(group) for group in groups])
    scale = np.repeat(sizes / np.maximum(kept, 1), kept)
    return rows, scale


def _drawn(rng: np.random.RandomState, truth: Places, n: int) -> Floats:
    """(n, rows): how often each row is in a draw that keeps the sizes of the classes."""
    weight = np.empty((n, len(truth)))
    for c in np.unique(truth):
        rows = np.flatnonzero(truth == c)
        taken = rng.randint(len(rows), size=(n, len(rows)))
        taken += np.arange(n)[:, None] * len(rows)
        counts = np.bincount(taken.reshape(-1), minlength=n * len(rows))
        weight[:, rows] = counts.reshape(n, len(rows))
    return weight
