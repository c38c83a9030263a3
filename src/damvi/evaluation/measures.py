"""Scores on rows with known truth, how sure they are, and which of two models is better.

The intervals of counted shares (precision, recall, accuracy) are Wilson's. The others come
from a bootstrap in which each class keeps its size. Figures of decisions only need the
table of decisions, so tables are drawn, from a multinomial, and never rows. The same goes
for one ranking: a draw matters by how many rows of each class fall into each cell of equal
votes. In several rankings a row has a place in each, and rows are drawn; very many are
thinned, and then count for more. The figures themselves always come from all rows.

Votes are columns here, one for each class that is looked for: each of three or more, and of
two the positive one, which is 1.
"""

from __future__ import annotations

from collections.abc import Collection
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
"""Distinct votes that are told apart in the draws of one ranking."""
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
HEADLINES = (
    ("precision", "recall", "f1", "ap"),
    ("macro_f1", "balanced_accuracy", "macro_ap"),
)
"""The main figures: of one class, or means over several."""


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


NONE_FLAGGED = Figure(0.0, 0.0, 1.0, 0.0)


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

    @property
    def chances(self) -> dict[str, float]:
        """What scores without any skill would have, of the figures that depend on it."""
        sizes = self.confusion.sum(axis=1)
        rates, there = sizes / sizes.sum(), sizes > 0
        levels = {
            "ap": float(rates[-1]),  # the positive class, of two
            "roc_auc": 0.5,
            "balanced_accuracy": 1 / int(there.sum()),
            "macro_ap": float(rates[there].mean()),
            "macro_roc_auc": 0.5,
            "mcc": 0.0,
        }
        return {name: level for name, level in levels.items() if name in self.overall}

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the cells as shares of their class's rows."""
        return {
            "overall": {name: figure.as_dict() for name, figure in self.overall.items()},
            "chances": self.chances,
            "by_class": [
                {name: None if one is None else one.as_dict() for name, one in own.items()}
                for own in self.by_class
            ],
            "confusion": self.confusion.tolist(),
            "shares": [
                [share(count, sum(row)) for count in row] for row in self.confusion.tolist()
            ],
        }


def headlines(figures: Collection[str]) -> tuple[str, ...]:
    """Which of these figures are the main ones.

    Examples
    --------
    >>> headlines({"macro_f1", "balanced_accuracy", "macro_ap", "mcc"})
    ('macro_f1', 'balanced_accuracy', 'macro_ap')
    """
    return next((names for names in HEADLINES if {*names} <= {*figures}), ())


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
    vote : array of shape (n,) or (n, 1) for two classes, (n, C) for more
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
    votes, reported, classes = _columns(vote)
    if len(np.unique(truth)) < 2:
        raise ValueError(
            f"rows of two classes are needed to measure anything; all {len(truth):,} here "
            f"are of one"
        )
    if np.isnan(votes).any():
        raise ValueError("some rows have no vote; leave them out")
    errors = None
    if probability is not None:
        chances, _, _ = _columns(probability)
        errors = ((chances - (truth[:, None] == reported)) ** 2).sum(axis=1)
    table = confusion(truth, named, len(classes))
    ranks = _ranks(truth, votes, np.ones((1, len(truth))))[:, :, 0]
    alone = len(reported) == 1
    draw = _draw_cells if alone else _draw_rows
    tables, drawn_ranks, drawn_errors = draw(seed, truth, votes, named, errors, ranks)
    exact, drawn = _of_tables(table[None].astype(float), cost), _of_tables(tables, cost)
    there = table.sum(axis=1)[reported] > 0
    by_class: list[dict[str, Figure | None]] = []
    for at, c in enumerate(reported):
        own: dict[str, Figure | None] = {
            "precision": Figure.counted(int(table[c, c]), int(table[:, c].sum())),
            "recall": Figure.counted(int(table[c, c]), int(table[c].sum())),
            **dict.fromkeys(("f1", "ap", "roc_auc")),
        }
        if there[at]:
            own["f1"] = Figure.around(float(exact["f1"][0, c]), drawn["f1"][:, c])
            for k, name in enumerate(("ap", "roc_auc")):
                own[name] = Figure.around(float(ranks[k, at]), drawn_ranks[k, at], 0.0, 1.0)
        by_class.append(own)
    means = ["balanced_accuracy", "mcc", *(["cost"] if cost else [])]
    means += [] if alone else ["macro_f1"]
    found: dict[str, Any] = {
        name: Figure.around(float(exact[name][0]), drawn[name]) for name in means
    }
    if errors is not None and drawn_errors is not None:
        found["brier"] = Figure.around(float(errors.mean()), drawn_errors, 0.0)
    if alone:  # its figures stand for all
        # Of nothing flagged, nothing is known.
        found |= by_class[0] | {"precision": by_class[0]["precision"] or NONE_FLAGGED}
    else:
        for k, name in enumerate(("macro_ap", "macro_roc_auc")):
            mean, moved = float(ranks[k, there].mean()), drawn_ranks[k, there].mean(axis=0)
            found[name] = Figure.around(mean, moved, 0.0, 1.0)
        found["accuracy"] = Figure.counted(int(np.trace(table)), len(truth))
    overall = {name: found[name] for name in MEASURES if name in found}
    return Figures(overall, tuple(by_class), table)


def point_figures(
    labels: ArrayLike,
    vote: ArrayLike | None,
    decided: ArrayLike,
    reported: ArrayLike = (1,),
    *,
    cost: tuple[float, float] | None = None,
) -> dict[str, float]:
    """AP, F1 and the cost a row, without intervals.

    Parameters
    ----------
    labels, decided : array of int or bool, shape (n,)
    vote : array, optional
        As :func:`measure` takes it; by default the decisions are all there is to rank by.
    reported : array of int
        The classes over which AP and F1 are means: of two the positive one.
    cost : (false alarm, miss), optional
        Of two classes. By default any mistake costs 1.

    Examples
    --------
    >>> point_figures([1, 1, 0, 0], None, [1, 0, 0, 0], cost=(1, 20))
    {'AP': 0.75, 'F1': 0.6666666666666666, 'cost': 5.0}
    """
    truth, named = np.asarray(labels, np.intp), np.asarray(decided, np.intp)
    classes = np.asarray(reported, np.intp)
    table = confusion(truth, named, int(classes.max()) + 1).astype(float)
    sizes, total = table.sum(axis=1), max(table.sum(), 1.0)
    there = sizes[classes] > 0
    found = _of_tables(table[None], cost)
    if vote is None:
        # All that are named tie, and so do all that are not.
        recall, precision = found["recall"][0], found["precision"][0]
        ranks = (recall * precision + (1 - recall) * sizes / total)[classes]
    else:
        ranks = _ranks(truth, _columns(vote)[0], np.ones((1, len(truth))), only_ap=True)
        ranks = ranks[0, :, 0]
    return {
        "AP": float(ranks[there].mean()),
        "F1": float(found["f1"][0, classes[there]].mean()),
        "cost": float(1 - found["accuracy"][0] if cost is None else found["cost"][0]),
    }


def _columns(vote: ArrayLike) -> tuple[Floats, Labels, Labels]:
    """A vote as columns, the class of each column, and all classes, these first."""
    votes = np.asarray(vote, np.float64)
    votes = votes.reshape(len(votes), -1)
    n_columns = votes.shape[1]
    classes = np.roll(np.arange(max(n_columns, 2)), n_columns)
    return votes, classes[:n_columns], classes


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
    rng = np.random.RandomState([seed, 13])
    if measure in ("ap", "macro_ap"):
        value, draws = _gain_of_rows(rng, truth, ours[0], other[0])
    else:
        decided = [np.asarray(named, np.intp) for _, named in (ours, other)]
        n_classes = len(_columns(ours[0])[2])
        found = [
            _of_tables(tables, cost)[measure]
            for tables in _paired_tables(rng, truth, decided, n_classes)
        ]
        gain = found[1] - found[0] if measure == "cost" else found[0] - found[1]
        # One figure a table, or the last class's: that is the positive one.
        gain = gain.reshape(1 + N_DRAWS, -1)[:, -1]
        value, draws = float(gain[0]), gain[1:]
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Figure(value, float(low), float(high), float(draws.std()))


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

    For the class of each column of the votes; 0 for one without rows. A tie counts half in
    the ROC AUC.
    """
    votes, reported, _ = _columns(vote)
    ranks = np.zeros((2, len(reported), len(weight)))
    for at, c in enumerate(reported):
        column = votes[:, at]
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
    seed: int, truth: Labels, vote: Floats, named: Labels, errors: Any, ranks: Floats
) -> tuple[Floats, Floats, Floats | None]:
    """Tables, ranks and errors of draws of one ranking, by cells of rows that are alike.

    Rows of a cell share class, decision and vote; neighbouring votes, if there are more
    than ``MOST_CELLS``.
    """
    rng = np.random.RandomState([seed, 11])
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
    drawn = _ranks(kind, -(keys // 4).astype(np.float64), counts)
    if errors is None:
        return tables, drawn, None
    mean_error = np.bincount(cell.reshape(-1), errors) / members
    return tables, drawn, counts @ mean_error / len(truth)


def _draw_rows(
    seed: int, truth: Labels, vote: Floats, named: Labels, errors: Any, ranks: Floats
) -> tuple[Floats, Floats, Floats | None]:
    """Tables in which each class keeps its rows, and ranks and errors of draws of rows."""
    rng = np.random.RandomState([seed, 17])
    # In one order, so that a table has the same intervals however its rows are sorted.
    order = np.lexsort((*vote.T, named, truth))
    truth, vote, named = truth[order], vote[order], named[order]
    errors = None if errors is None else errors[order]
    table = confusion(truth, named, vote.shape[1])
    tables = np.zeros((N_DRAWS, *table.shape))
    for c, row in enumerate(table):
        if row.sum():
            tables[:, c] = rng.multinomial(row.sum(), row / row.sum(), size=N_DRAWS)
    classes = np.arange(vote.shape[1])
    rows, scale = _thinned(rng, truth, classes)
    some, votes = truth[rows], vote[rows]
    drawn = np.empty((*ranks.shape, N_DRAWS))
    faults = np.empty(N_DRAWS)
    for block, weight in _weights_of_rows(rng, some, classes, scale):
        drawn[:, :, block] = _ranks(some, votes, weight)
        if errors is not None:
            faults[block] = weight @ errors[rows] / len(truth)
    # A draw repeats rows, which flatters a ranking, and thinned rows are not all: what is
    # kept of the draws is how far they lie apart.
    drawn += (ranks - drawn.mean(axis=2))[:, :, None]
    if errors is None:
        return tables, drawn, None
    return tables, drawn, faults + (float(errors.mean()) - faults.mean())


def _thinned(
    rng: np.random.RandomState, truth: Labels, classes: Labels, n_votes: int = 1
) -> tuple[Labels, Floats]:
    """Rows to draw from, and how many each stands for: rare classes keep all of theirs."""
    room = max(MOST_WORK // (N_DRAWS * len(classes) * n_votes), 1)
    groups = [np.flatnonzero(truth == c) for c in classes]
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
    rng: np.random.RandomState, truth: Labels, classes: Labels, scale: Floats
) -> Any:
    """Blocks of draws: which they are, and how often each row is in them, (draws, rows)."""
    for start in range(0, N_DRAWS, BLOCK):
        n = min(BLOCK, N_DRAWS - start)
        weight = np.empty((n, len(truth)))
        for rows in (np.flatnonzero(truth == c) for c in classes):
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
    rng: np.random.RandomState, truth: Labels, ours: ArrayLike, other: ArrayLike
) -> tuple[float, Floats]:
    """The difference of the mean average precision, and draws of it."""
    votes, reported, classes = _columns(ours)
    others, _, _ = _columns(other)
    there = np.isin(reported, truth)

    def gain(some: Labels, weight: Floats) -> Floats:
        found, theirs = (
            _ranks(truth[some], vote[some], weight, only_ap=True)
            for vote in (votes, others)
        )
        return np.asarray((found - theirs)[0, there].mean(axis=0))

    rows, scale = _thinned(rng, truth, classes, 2)
    exact = float(gain(np.arange(len(truth)), np.ones((1, len(truth))))[0])
    plain = float(gain(rows, scale[None, :])[0])
    draws = np.empty(N_DRAWS)
    for block, weight in _weights_of_rows(rng, truth[rows], classes, scale):
        draws[block] = gain(rows, weight)
    # Around the figure of all rows, not of the thinned ones.
    return exact, draws + (exact - plain)
