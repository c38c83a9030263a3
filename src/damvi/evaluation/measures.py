"""Scores on rows with known truth, how sure they are, and which of two models is better.

The intervals come from a bootstrap in which each class keeps its size. Figures of decisions
only need the table of decisions, so tables are drawn, from a multinomial, and never rows.
With two classes the same goes for rankings: a draw matters by how many rows of each class
fall into each cell of equal votes. With more classes a row has a place in the ranking of
each, and rows are drawn; very many are thinned, and then count for more. The figures
themselves always come from all rows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]
Mask = NDArray[np.bool_]

N_DRAWS = 300
LEVEL = 0.9
"""How much of the draws an interval holds."""
Z = 1.6448536269514722
"""Of a 90 % interval, as everywhere here."""
MOST_CELLS = 5000
"""Distinct votes that are told apart in the draws of two classes."""
MOST_WORK = 100_000_000
"""Rows times classes times draws, of the draws of rows."""
FEWEST_OF_CLASS = 200
"""Rows of a class that are always drawn from, if there are as many."""
BLOCK = 25
"""Draws of rows that are counted at a time."""

MEASURES = {
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "ap": "AP",
    "roc_auc": "ROC AUC",
    "macro_f1": "macro F1",
    "balanced_accuracy": "balanced accuracy",
    "macro_ap": "macro AP",
    "macro_roc_auc": "macro ROC AUC",
    "accuracy": "accuracy",
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
    def around(
        cls, value: float, draws: Floats, least: float = -np.inf, most: float = np.inf
    ) -> Figure:
        """A figure with what draws of the rows make of it, within what it can be."""
        low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        # Draws from few rows can all lie on one side of the figure.
        low, high = min(float(low), value), max(float(high), value)
        return cls(value, max(low, least), min(high, most), float(draws.std()))

    @classmethod
    def counted(cls, part: int, whole: int) -> Figure | None:
        """A share of counted rows, with Wilson's interval; None of nothing."""
        rate = share(part, whole)
        if not whole:
            return None
        spread = sqrt(rate["value"] * (1 - rate["value"]) / whole)
        return cls(rate["value"], rate["low"], rate["high"], spread)

    def as_dict(self) -> dict[str, float]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Figures:
    """How good decisions are.

    Attributes
    ----------
    overall : dict of str to Figure
        Those of :data:`damvi.evaluation.MEASURES` that can be had. Of two classes those
        of the positive one; of more, means over the classes that have rows.
    by_class : tuple of dict
        For each class reported "precision", "recall", "f1", "ap" and "roc_auc", against
        the rest; None where there are no rows to count.
    confusion : ndarray of int, shape (C, C)
        Rows by class (row) and decision (column).
    """

    overall: dict[str, Figure]
    by_class: tuple[dict[str, Figure | None], ...]
    confusion: NDArray[np.int64]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the cells as shares of their class's rows."""
        return {
            "overall": {name: figure.as_dict() for name, figure in self.overall.items()},
            "by_class": [
                {name: None if one is None else one.as_dict() for name, one in own.items()}
                for own in self.by_class
            ],
            "confusion": self.confusion.tolist(),
            "shares": [
                [share(count, sum(row)) for count in row] for row in self.confusion.tolist()
            ],
        }


def share(part: int, whole: int) -> dict[str, Any]:
    """``part / whole`` with Wilson's 90 % interval; None of nothing.

    Examples
    --------
    >>> from damvi.evaluation import share
    >>> {name: round(value, 3) for name, value in share(8, 10).items()}
    {'part': 8, 'whole': 10, 'value': 0.8, 'low': 0.541, 'high': 0.931}
    """
    if not whole:
        return {"part": 0, "whole": 0, "value": None, "low": None, "high": None}
    p, spread = part / whole, Z * Z / whole
    centre = (p + spread / 2) / (1 + spread)
    half = Z * sqrt(p * (1 - p) / whole + spread / (4 * whole)) / (1 + spread)
    return {
        "part": part,
        "whole": whole,
        "value": p,
        # At 0 and 1 it ends there, whatever the rounding.
        "low": min(max(0.0, centre - half), p),
        "high": max(min(1.0, centre + half), p),
    }


def confusion(labels: ArrayLike, decided: ArrayLike, n_classes: int) -> NDArray[np.int64]:
    """Rows by class (row) and decision (column).

    Examples
    --------
    >>> confusion([1, 1, 0], [1, 0, 0], 2).tolist()
    [[1, 0], [1, 1]]
    """
    places = np.asarray(labels, np.intp) * n_classes + np.asarray(decided, np.intp)
    cells = np.bincount(places, minlength=n_classes**2).astype(np.int64)
    return cells.reshape(n_classes, n_classes)


def measure(
    labels: ArrayLike,
    vote: ArrayLike,
    decided: ArrayLike,
    probability: ArrayLike | None = None,
    *,
    cost: tuple[float, float] | None = None,
    seed: int = 0,
) -> Figures:
    """Judge decisions between classes.

    Parameters
    ----------
    labels : array of int or bool, shape (n,)
        The number of each row's class, of two classes at least.
    vote : array of shape (n,) for two classes, (n, C) for more
        Ranks the rows, for the positive class or class by class.
    decided : array of int or bool, shape (n,)
        The number of the class decided for.
    probability : array of the shape of ``vote``, optional
        For the Brier score.
    cost : (false alarm, miss), optional
        For the cost a row, of two classes.
    seed : int, default=0
        Of the bootstrap.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.choice(3, p=[0.7, 0.2, 0.1], size=1000)
    >>> vote = np.eye(3)[labels] + rng.normal(size=(1000, 3))
    >>> macro = measure(labels, vote, vote.argmax(axis=1)).overall["macro_f1"]
    >>> macro.low < macro.value < macro.high
    True
    >>> rare = measure(labels == 2, vote[:, 2], vote[:, 2] > 1, cost=(1, 10))
    >>> list(rare.overall)[:4]
    ['precision', 'recall', 'f1', 'ap']
    """
    truth, named = np.asarray(labels, np.intp), np.asarray(decided, np.intp)
    votes = np.asarray(vote, np.float64)
    two = votes.ndim == 1
    n_classes = 2 if two else votes.shape[1]
    if len(np.unique(truth)) < 2:
        raise ValueError(
            f"rows of two classes are needed to measure anything; all {len(truth):,} here "
            f"are of one"
        )
    if np.isnan(votes).any():
        raise ValueError("some rows have no vote; leave them out")
    errors = None
    if probability is not None:
        goal = truth if two else np.eye(n_classes)[truth]
        squares = (np.asarray(probability, np.float64) - goal) ** 2
        errors = squares if two else squares.sum(axis=1)
    table = confusion(truth, named, n_classes)
    ranks = _ranks(truth, votes, np.ones((1, len(truth))))[:, :, 0]
    rng = np.random.RandomState([seed, 11 if two else 17])
    if two:
        tables, drawn_ranks, drawn_errors = _draw_cells(rng, truth, votes, named, errors)
    else:
        tables = _draw_tables(rng, table)
        drawn_ranks, drawn_errors = _draw_rows(rng, truth, votes, errors, ranks)
    exact, drawn = _of_tables(table[None].astype(float), cost), _of_tables(tables, cost)
    there = table.sum(axis=1) > 0
    by_class: list[dict[str, Figure | None]] = []
    for at, c in enumerate([1] if two else range(n_classes)):
        own: dict[str, Figure | None] = {}
        for name in ("precision", "recall", "f1"):
            own[name] = Figure.around(float(exact[name][0, c]), drawn[name][:, c])
        for k, name in enumerate(("ap", "roc_auc")):
            own[name] = Figure.around(float(ranks[k, at]), drawn_ranks[k, at], 0.0, 1.0)
        if not there[c]:
            own = dict.fromkeys(own)
        if not two:
            own["precision"] = Figure.counted(int(table[c, c]), int(table[:, c].sum()))
            own["recall"] = Figure.counted(int(table[c, c]), int(table[c].sum()))
        by_class.append(own)
    means = ["balanced_accuracy", "mcc"]
    means += (["cost"] if cost else []) if two else ["macro_f1", "accuracy"]
    found: dict[str, Any] = dict(by_class[0]) if two else {}
    found |= {name: Figure.around(float(exact[name][0]), drawn[name]) for name in means}
    for k, name in enumerate(() if two else ("macro_ap", "macro_roc_auc")):
        mean, moved = float(ranks[k, there].mean()), drawn_ranks[k, there].mean(axis=0)
        found[name] = Figure.around(mean, moved, 0.0, 1.0)
    if errors is not None and drawn_errors is not None:
        found["brier"] = Figure.around(float(errors.mean()), drawn_errors, 0.0)
    overall = {name: found[name] for name in MEASURES if name in found}
    return Figures(overall, tuple(by_class), table)


def compare(
    measure: str,
    labels: ArrayLike,
    ours: tuple[ArrayLike, ArrayLike],
    other: tuple[ArrayLike, ArrayLike],
    *,
    cost: tuple[float, float] = (1.0, 1.0),
    seed: int = 0,
) -> Figure:
    """How much better our model is than another, on the same draws of rows.

    Parameters
    ----------
    measure : str
        "f1", "precision", "recall", "ap" or "cost" of two classes, "macro_f1" or
        "macro_ap" of more. Positive differences are in our favour, also for the cost.
    labels : array of int or bool, shape (n,)
    ours, other : (vote, decided)
        As :func:`measure` takes them.
    cost : (false alarm, miss)
    seed : int, default=0

    Returns
    -------
    difference : Figure
        If its interval holds 0, the two are not told apart.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(1000) < 0.2
    >>> good, bad = positive + rng.normal(size=(2, 1000)) * [[0.3], [2.0]]
    >>> compare("ap", positive, (good, good > 0.5), (bad, bad > 0.5)).low > 0
    True
    """
    truth = np.asarray(labels, np.intp)
    two = np.ndim(ours[0]) == 1
    rng = np.random.RandomState([seed, 13 if two else 19])
    if measure in ("ap", "macro_ap"):
        votes = [np.asarray(vote, np.float64) for vote, _ in (ours, other)]
        value, draws = _gain_of_rows(rng, truth, votes)
    else:
        n_classes = 2 if two else np.shape(ours[0])[1]
        decided = [np.asarray(named, np.intp) for _, named in (ours, other)]
        found = [
            _of_tables(tables, cost)[measure]
            for tables in _paired_tables(rng, truth, decided, n_classes)
        ]
        gain = found[1] - found[0] if measure == "cost" else found[0] - found[1]
        gain = gain if gain.ndim == 1 else gain[:, 1]
        value, draws = float(gain[0]), gain[1:]
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Figure(value, float(low), float(high), float(draws.std()))


def rows_by_class(labels: Labels, n_classes: int) -> list[Labels]:
    """The rows of each class, in the order in which they are drawn: the positive first."""
    order = (1, 0) if n_classes == 2 else range(n_classes)
    return [np.flatnonzero(labels == c) for c in order]


def _of_tables(tables: Floats, cost: tuple[float, float] | None) -> dict[str, Floats]:
    """Figures of tables of decisions (draws, C, C): by class (draws, C), or one a table."""
    found = np.diagonal(tables, axis1=1, axis2=2)
    sizes, named = tables.sum(axis=2), tables.sum(axis=1)
    total, right = sizes[0].sum(), found.sum(axis=1)
    there = sizes[0] > 0
    recall, f1 = _part(found, sizes), _part(2 * found, sizes + named)
    # Gorodkin's correlation of decisions and truth; 0 where one of them is constant.
    spread = (total**2 - (named**2).sum(axis=1)) * (total**2 - (sizes**2).sum(axis=1))
    figures = {
        "precision": _part(found, named),
        "recall": recall,
        "f1": f1,
        "macro_f1": f1[:, there].mean(axis=1),
        "balanced_accuracy": recall[:, there].mean(axis=1),
        "accuracy": right / total,
        "mcc": _part(
            right * total - (named * sizes).sum(axis=1), np.sqrt(np.maximum(spread, 0.0))
        ),
    }
    if cost is not None:
        figures["cost"] = (cost[0] * tables[:, 0, 1] + cost[1] * tables[:, 1, 0]) / total
    return figures


def _part(part: Floats, whole: Floats) -> Floats:
    """One by the other; 0 of nothing."""
    return np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)


def _ranks(truth: Labels, vote: Floats, weight: Floats, only_ap: bool = False) -> Floats:
    """Average precision and ROC AUC (2, classes, draws) by these weights of the rows.

    For the positive class of a vote (n,), or for each class of votes (n, C); 0 for a class
    without rows. A tie counts half in the ROC AUC.
    """
    votes = {1: vote} if vote.ndim == 1 else dict(enumerate(vote.T))
    ranks = np.zeros((2, len(votes), len(weight)))
    for at, (c, column) in enumerate(votes.items()):
        if not (truth == c).any():
            continue
        order = np.argsort(-column, kind="stable")
        ranked = column[order]
        starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
        mass = weight[:, order]
        both = np.add.reduceat(mass, starts, axis=1)
        up = np.add.reduceat(mass * (truth[order] == c), starts, axis=1)
        ups, flagged = up.cumsum(axis=1), both.cumsum(axis=1)
        ranks[0, at] = (up * _part(ups, flagged)).sum(axis=1) / ups[:, -1]
        if not only_ap:
            pairs = ((both - up) * (ups - up / 2)).sum(axis=1)
            ranks[1, at] = pairs / (ups[:, -1] * (flagged - ups)[:, -1])
    return ranks


def _draw_cells(
    rng: np.random.RandomState, truth: Labels, vote: Floats, named: Labels, errors: Any
) -> tuple[Floats, Floats, Floats | None]:
    """Tables, ranks and errors of draws of two classes, by cells of rows that are alike.

    Rows of a cell share class, decision and vote; neighbouring votes, if there are more
    than ``MOST_CELLS``.
    """
    distinct, level = np.unique(-vote, return_inverse=True)
    level = level.reshape(-1)
    if len(distinct) > MOST_CELLS:
        # The positives' votes set the steps, as far as there is room.
        own = np.unique(level[truth == 1])
        room = MOST_CELLS // 2
        take = np.linspace(0, len(own) - 1, min(len(own), room)).round().astype(np.intp)
        even = np.linspace(0, len(distinct) - 1, room).round().astype(np.intp)
        level = np.searchsorted(np.union1d(own[take], even), level)
    keys, cell, members = np.unique(
        (level * 2 + truth) * 2 + named, return_inverse=True, return_counts=True
    )
    kind, decided = keys // 2 % 2, keys % 2
    counts = np.empty((N_DRAWS, len(keys)))
    for side in (kind == 1, kind == 0):
        size = members[side].sum()
        counts[:, side] = rng.multinomial(size, members[side] / size, size=N_DRAWS)
    tables = np.zeros((N_DRAWS, 2, 2))
    for y, c in np.ndindex(2, 2):
        tables[:, y, c] = counts[:, (kind == y) & (decided == c)].sum(axis=1)
    ranks = _ranks(kind, -(keys // 4).astype(np.float64), counts)
    if errors is None:
        return tables, ranks, None
    mean_error = np.bincount(cell.reshape(-1), errors) / members
    return tables, ranks, counts @ mean_error / len(truth)


def _draw_tables(rng: np.random.RandomState, table: NDArray[np.int64]) -> Floats:
    """Tables of decisions in which each class keeps its rows."""
    drawn = np.zeros((N_DRAWS, *table.shape))
    for c, row in enumerate(table):
        if row.sum():
            drawn[:, c] = rng.multinomial(row.sum(), row / row.sum(), size=N_DRAWS)
    return drawn


def _draw_rows(
    rng: np.random.RandomState, truth: Labels, vote: Floats, errors: Any, ranks: Floats
) -> tuple[Floats, Floats | None]:
    """Ranks and errors of draws of rows, around those of all rows."""
    rows, scale = _thinned(rng, truth, vote.shape[1])
    some, votes = truth[rows], vote[rows]
    drawn = np.empty((*ranks.shape, N_DRAWS))
    faults = np.empty(N_DRAWS)
    for block, weight in _weights_of_rows(rng, some, vote.shape[1], scale):
        drawn[:, :, block] = _ranks(some, votes, weight)
        if errors is not None:
            faults[block] = weight @ errors[rows] / len(truth)
    # A draw repeats rows, which flatters a ranking, and thinned rows are not all: what is
    # kept of the draws is how far they lie apart.
    drawn += (ranks - drawn.mean(axis=2))[:, :, None]
    if errors is None:
        return drawn, None
    return drawn, faults + (float(errors.mean()) - faults.mean())


def _thinned(
    rng: np.random.RandomState, truth: Labels, n_classes: int, n_votes: int = 1
) -> tuple[Labels, Floats]:
    """Rows to draw from, and how many each stands for: rare classes keep all of theirs."""
    room = max(MOST_WORK // (N_DRAWS * n_classes * n_votes), 1)
    groups = rows_by_class(truth, n_classes)
    sizes = np.array([len(group) for group in groups])
    kept = sizes
    if len(truth) > room:
        part = np.maximum(np.ceil(sizes * (room / len(truth))), FEWEST_OF_CLASS)
        kept = np.minimum(sizes, part.astype(np.intp))
        groups = [
            rng.choice(group, size, replace=False)
            for group, size in zip(groups, kept, strict=True)
        ]
    return np.concatenate(groups), np.repeat(sizes / np.maximum(kept, 1), kept)


def _weights_of_rows(
    rng: np.random.RandomState, truth: Labels, n_classes: int, scale: Floats
) -> Any:
    """Blocks of draws: which they are, and how often each row is in them, (draws, rows)."""
    for start in range(0, N_DRAWS, BLOCK):
        n = min(BLOCK, N_DRAWS - start)
        weight = np.empty((n, len(truth)))
        for rows in rows_by_class(truth, n_classes):
            if not len(rows):
                continue
            taken = rng.randint(len(rows), size=(n, len(rows)))
            taken += np.arange(n)[:, None] * len(rows)
            counts = np.bincount(taken.reshape(-1), minlength=n * len(rows))
            weight[:, rows] = counts.reshape(n, len(rows))
        yield slice(start, start + n), weight * scale


def _paired_tables(
    rng: np.random.RandomState, truth: Labels, decided: list[Labels], n_classes: int
) -> list[Floats]:
    """Tables of both models, the true ones and then draws of pairs of decisions."""
    tables = [np.zeros((1 + N_DRAWS, n_classes, n_classes)) for _ in decided]
    for c in np.unique(truth):
        rows = truth == c
        pairs = decided[0][rows] * n_classes + decided[1][rows]
        cells, counts = np.unique(pairs, return_counts=True)
        size = counts.sum()
        drawn = rng.multinomial(size, counts / size, size=N_DRAWS)
        drawn = np.concatenate([counts[None, :], drawn])
        for table, named in zip(tables, divmod(cells, n_classes), strict=True):
            table[:, c] = drawn @ np.eye(n_classes)[named]
    return tables


def _gain_of_rows(
    rng: np.random.RandomState, truth: Labels, votes: list[Floats]
) -> tuple[float, Floats]:
    """The difference of the mean average precision, and draws of it."""
    two = votes[0].ndim == 1
    n_classes = 2 if two else votes[0].shape[1]
    there = np.array([0]) if two else np.unique(truth)

    def gain(some: Labels, weight: Floats) -> Floats:
        found = [_ranks(truth[some], vote[some], weight, only_ap=True) for vote in votes]
        return np.asarray((found[0] - found[1])[0, there].mean(axis=0))

    rows, scale = _thinned(rng, truth, n_classes, len(votes))
    exact = float(gain(np.arange(len(truth)), np.ones((1, len(truth))))[0])
    plain = float(gain(rows, scale[None, :])[0])
    draws = np.empty(N_DRAWS)
    for block, weight in _weights_of_rows(rng, truth[rows], n_classes, scale):
        draws[block] = gain(rows, weight)
    # Around the figure of all rows, not of the thinned ones.
    return exact, draws + (exact - plain)
