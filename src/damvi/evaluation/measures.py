"""Scores on rows with known truth, and how sure they are.

The intervals come from a bootstrap, class by class. A draw only matters by how many rows of
each class fall into each cell of equal votes and decisions, so the counts of the cells are
drawn at once, from a multinomial, and never row by row. With very many distinct votes,
neighbouring ones share a cell; the figures themselves never do.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

N_DRAWS = 300
LEVEL = 0.9
"""How much of the draws an interval holds."""
MOST_CELLS = 5000
"""Distinct votes of a class that are told apart in the draws."""

MEASURES = {
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "ap": "AP",
    "roc_auc": "ROC AUC",
    "balanced_accuracy": "balanced accuracy",
    "mcc": "MCC",
    "brier": "Brier",
    "cost": "cost a row",
}
"""The names of the figures, and what to call them."""


@dataclass(frozen=True)
class Figure:
    """A figure, the 90 % interval around it and its standard error."""

    value: float
    low: float
    high: float
    spread: float

    @classmethod
    def around(cls, value: float, draws: Floats) -> Figure:
        """A figure with what draws of the rows make of it."""
        low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        # Draws from few rows can all lie on one side of the figure.
        return cls(
            value, min(float(low), value), max(float(high), value), float(draws.std())
        )

    def as_dict(self) -> dict[str, float]:
        """Plain values, ready for JSON."""
        return asdict(self)


def measure(
    positive: ArrayLike,
    vote: ArrayLike,
    flagged: ArrayLike,
    probability: ArrayLike | None = None,
    *,
    cost: tuple[float, float] | None = None,
    seed: int = 0,
) -> dict[str, Figure]:
    """All figures of :data:`MEASURES` that can be had.

    Parameters
    ----------
    positive : array of bool, shape (n,)
        The truth; both classes must be there.
    vote : array of shape (n,)
        Ranks the rows.
    flagged : array of bool, shape (n,)
        The decisions.
    probability : array of shape (n,), optional
        For the Brier score.
    cost : (false alarm, miss), optional
        For the cost a row.
    seed : int, default=0
        Of the bootstrap.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(2000) < 0.1
    >>> vote = positive + rng.normal(size=2000)
    >>> figures = measure(positive, vote, vote > 1.5, cost=(1, 10))
    >>> recall = figures["recall"]
    >>> recall.low < recall.value < recall.high
    True
    """
    truth, votes, flags = (
        np.asarray(positive, bool),
        np.asarray(vote, np.float64),
        np.asarray(flagged, bool),
    )
    chance = None if probability is None else np.asarray(probability, np.float64)
    if not len(truth) or truth.all() or not truth.any():
        kind = "positive" if truth.any() else "negative"
        raise ValueError(
            f"rows of both classes are needed to measure anything; all {len(truth):,} here "
            f"are {kind}"
        )
    if np.isnan(votes).any():
        raise ValueError("some rows have no vote; leave them out")
    all_votes = _Cells.of(truth, votes, flags, chance, len(truth))
    exact = _figures(all_votes, cost, all_votes.members[None, :].astype(np.float64))
    del all_votes  # as many as there are rows
    cells = _Cells.of(truth, votes, flags, chance, MOST_CELLS)
    rng = np.random.RandomState([seed, 11])
    draws = _figures(cells, cost, cells.draw(rng, N_DRAWS))
    return {name: Figure.around(float(exact[name][0]), draws[name]) for name in exact}


def confusion(positive: ArrayLike, flagged: ArrayLike) -> dict[str, int]:
    """How many rows were found, missed, flagged in vain and rightly passed.

    Examples
    --------
    >>> confusion([True, True, False], [True, False, False])
    {'found': 1, 'missed': 1, 'false_alarms': 0, 'passed': 1}
    """
    truth, flags = np.asarray(positive, bool), np.asarray(flagged, bool)
    return {
        "found": int((truth & flags).sum()),
        "missed": int((truth & ~flags).sum()),
        "false_alarms": int((~truth & flags).sum()),
        "passed": int((~truth & ~flags).sum()),
    }


@dataclass(frozen=True, eq=False)
class _Cells:
    """Rows that no figure tells apart, from the highest vote to the lowest.

    ``level`` numbers the distinct votes; cells of one level differ in class or decision.
    """

    members: NDArray[np.int64]
    positive: Bools
    flagged: Bools
    level: NDArray[np.intp]
    squared_error: Floats | None

    @classmethod
    def of(
        cls, truth: Bools, vote: Floats, flags: Bools, chance: Floats | None, most: int
    ) -> _Cells:
        distinct, level = np.unique(-vote, return_inverse=True)
        level = level.reshape(-1)
        if len(distinct) > most:
            # The positives' votes set the steps, as far as there is room.
            own = np.unique(level[truth])
            take = np.linspace(0, len(own) - 1, min(len(own), most // 2)).round()
            even = np.linspace(0, len(distinct) - 1, most // 2).round()
            steps = np.union1d(own[take.astype(np.intp)], even.astype(np.intp))
            level = np.searchsorted(steps, level)
        key = (level * 2 + truth) * 2 + flags
        keys, cell, members = np.unique(key, return_inverse=True, return_counts=True)
        errors = None
        if chance is not None:
            errors = np.bincount(cell.reshape(-1), (chance - truth) ** 2) / members
        return cls(members, keys // 2 % 2 == 1, keys % 2 == 1, keys // 4, errors)

    def draw(self, rng: np.random.RandomState, n: int) -> Floats:
        """Counts of the cells, (n, cells), in which each class keeps its size."""
        counts = np.empty((n, len(self.members)))
        for side in (self.positive, ~self.positive):
            size = self.members[side].sum()
            counts[:, side] = rng.multinomial(size, self.members[side] / size, size=n)
        return counts


def _figures(
    cells: _Cells, cost: tuple[float, float] | None, counts: Floats
) -> dict[str, Floats]:
    ups, flags = cells.positive, cells.flagged
    found, missed = counts[:, ups & flags].sum(axis=1), counts[:, ups & ~flags].sum(axis=1)
    alarms, passed = (
        counts[:, ~ups & flags].sum(axis=1),
        counts[:, ~ups & ~flags].sum(axis=1),
    )
    positives, negatives = found + missed, alarms + passed
    total = positives + negatives
    recall = found / positives
    figures = {
        "precision": _share(found, found + alarms),
        "recall": recall,
        "f1": _share(2 * found, positives + found + alarms),
        **_ranking(cells, counts),
        "balanced_accuracy": (recall + passed / negatives) / 2,
        "mcc": _share(
            found * passed - alarms * missed,
            np.sqrt(positives * negatives * (found + alarms) * (missed + passed)),
        ),
    }
    if cells.squared_error is not None:
        figures["brier"] = counts @ cells.squared_error / total
    if cost is not None:
        figures["cost"] = (cost[0] * alarms + cost[1] * missed) / total
    return figures


def _ranking(cells: _Cells, counts: Floats) -> dict[str, Floats]:
    """Average precision and the area under the ROC curve; a tie counts half in it."""
    starts = np.flatnonzero(np.diff(cells.level, prepend=-1))
    up = np.add.reduceat(counts * cells.positive, starts, axis=1)
    down = np.add.reduceat(counts * ~cells.positive, starts, axis=1)
    found, alarms = up.cumsum(axis=1), down.cumsum(axis=1)
    positives, negatives = found[:, -1], alarms[:, -1]
    ap = (up * _share(found, found + alarms)).sum(axis=1) / positives
    pairs = (down * (found - up / 2)).sum(axis=1)
    return {"ap": ap, "roc_auc": pairs / (positives * negatives)}


def _share(part: Any, whole: Any) -> Any:
    return np.divide(part, whole, out=np.zeros_like(part * 1.0), where=whole > 0)
