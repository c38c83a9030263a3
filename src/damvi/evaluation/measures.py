"""Scores on labelled rows, their confidence intervals, and comparisons of two models.

Intervals of proportions (precision, recall, accuracy) are Wilson's; the others come from a
bootstrap (``draws.py``). If rows are dependent in blocks, whole blocks are drawn, and
Wilson's interval uses the effective number of rows. The scores themselves always come from
all rows.

Votes have a column for each reported class: every one of three or more classes, or the
positive one (1) of two.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels import vote_columns
from ..messages import counted
from .draws import (
    N_DRAWS,
    class_means,
    confusion,
    draw,
    draw_gains,
    draw_pairs,
    draw_top,
    draw_top_gains,
    of_tables,
    rank_figures,
    widening,
)

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]
Mask = NDArray[np.bool_]

LEVEL = 0.9
"""The confidence level of all intervals."""
Z = 1.6448536269514722
"""The normal quantile of a 90% interval."""

N_BLOCKS = 12
"""Number of time blocks in a block bootstrap; see :func:`alike_blocks`."""
MOST_BLOCKS = 1000

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
    "cost": "cost per row",
}
"""Scores by key, and their display names."""
HEADLINES = (
    ("precision", "recall", "f1", "ap"),
    ("macro_f1", "balanced_accuracy", "macro_ap"),
)
"""The main scores: of the positive class, or macro means."""


@dataclass(frozen=True)
class Figure:
    """A score, its 90% interval and its standard error."""

    value: float
    low: float
    high: float
    spread: float

    @classmethod
    def around(
        cls, value: float, draws: Floats, least: float = -np.inf, most: float = np.inf
    ) -> Figure:
        """A score with an interval from bootstrap draws, clipped to its range."""
        draws = draws[~np.isnan(draws)]
        low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        # Draws of few rows can all lie on one side of the value.
        low, high = min(float(low), value), max(float(high), value)
        return cls(value, max(low, least), min(high, most), float(draws.std()))

    @classmethod
    def counted(cls, part: float, whole: float, effect: float = 1.0) -> Figure | None:
        """A proportion with its interval, as by :func:`share`; None if ``whole`` is 0."""
        rate = share(part, whole, effect)
        if not whole:
            return None
        spread = sqrt(rate["value"] * (1 - rate["value"]) * effect / whole)
        return cls(rate["value"], rate["low"], rate["high"], spread)

    def times(self, factor: float) -> Figure:
        """The same, multiplied by a factor."""
        return Figure(*(factor * value for value in asdict(self).values()))

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
        The available scores of :data:`damvi.evaluation.MEASURES`: for two classes those of
        the positive one, for more the means over classes that have rows.
    by_class : tuple of dict
        For each reported class "precision", "recall", "f1", "ap" and "roc_auc" against the
        rest; None if there are no rows to count.
    confusion : ndarray of int, shape (C, C)
        Counts by true class (row) and predicted class (column).
    effects : dict of str to tuple of float
        Design effects of "precision" and "recall" by class and of "accuracy": how many
        dependent rows count as one. 1 if rows are independent.
    """

    overall: dict[str, Figure]
    by_class: tuple[dict[str, Figure | None], ...]
    confusion: NDArray[np.int64]
    effects: dict[str, tuple[float, ...]]

    @property
    def chances(self) -> dict[str, float]:
        """Chance levels, for the scores that have one."""
        sizes = self.confusion.sum(axis=1)
        rates, there = sizes / sizes.sum(), sizes > 0
        levels = {
            "ap": float(rates[-1]),  # the positive class
            "roc_auc": 0.5,
            "balanced_accuracy": 1 / int(there.sum()),
            "macro_ap": float(rates[there].mean()),
            "macro_roc_auc": 0.5,
            "mcc": 0.0,
        }
        return {name: level for name, level in levels.items() if name in self.overall}

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, with confusion cells also as shares of a class."""
        return {
            "overall": {name: figure.as_dict() for name, figure in self.overall.items()},
            "chances": self.chances,
            "by_class": [
                {name: None if one is None else one.as_dict() for name, one in own.items()}
                for own in self.by_class
            ],
            "confusion": self.confusion.tolist(),
            "shares": [
                [share(count, sum(row), effect) for count in row]
                for row, effect in zip(
                    self.confusion.tolist(), self.effects["recall"], strict=True
                )
            ],
        }


def headlines(figures: Collection[str]) -> tuple[str, ...]:
    """The main scores among these.

    Examples
    --------
    >>> headlines({"macro_f1", "balanced_accuracy", "macro_ap", "mcc"})
    ('macro_f1', 'balanced_accuracy', 'macro_ap')
    """
    return next((names for names in HEADLINES if {*names} <= {*figures}), ())


def share(part: float, whole: float, effect: float = 1.0) -> dict[str, Any]:
    """``part / whole`` with Wilson's 90% interval; None if ``whole`` is 0.

    ``effect`` is the design effect: how many dependent rows count as one.

    Examples
    --------
    >>> from damvi.evaluation import share
    >>> {name: round(value, 3) for name, value in share(8, 10).items()}
    {'part': 8, 'whole': 10, 'value': 0.8, 'low': 0.541, 'high': 0.931}
    """
    if not whole:
        return {"part": 0, "whole": 0, "value": None, "low": None, "high": None}
    p, counted = part / whole, whole / effect
    spread = Z * Z / counted
    centre = (p + spread / 2) / (1 + spread)
    half = Z * sqrt(p * (1 - p) / counted + spread / (4 * counted)) / (1 + spread)
    return {
        "part": part,
        "whole": whole,
        "value": p,
        # At 0 and 1 the interval ends there, despite rounding.
        "low": min(max(0.0, centre - half), p),
        "high": max(min(1.0, centre + half), p),
    }


def alike_blocks(
    times: Any = None, groups: Any = None, *, n_blocks: int = N_BLOCKS
) -> NDArray[np.intp] | None:
    """Blocks of similar rows for a block bootstrap: stretches of time, or groups.

    Rows close in time may belong to the same campaign, fault or holiday, and so may rows of
    a group. The uncertainty of a score then depends on the number of such blocks rather
    than the number of rows.

    Parameters
    ----------
    times : array of shape (n,), optional
        Numbers or dates that increase with time. Blocks have about the same number of rows;
        rows with the same time share a block.
    groups : array of shape (n,), optional
        Each group is a block; if there are more than 1,000, they are merged into 1,000.
        With ``times``, a group belongs to the block of its first row.
    n_blocks : int, default=12
        Number of time blocks: few enough that a block outlasts whatever its rows share,
        and enough to measure how blocks differ. In simulated campaigns of very uneven size,
        90% intervals from 12 blocks covered the truth in 68 to 75 of 100 cases, those from
        single rows in 25 to 50; without campaigns, both did in 85
        (``results/promises/intervals.txt``).

    Returns
    -------
    blocks : ndarray of int of shape (n,) or None
        The block of each row; None if there are fewer than two blocks.

    Examples
    --------
    >>> from damvi.evaluation import alike_blocks
    >>> alike_blocks(times=[1, 2, 2, 3, 4, 5], n_blocks=3)
    array([0, 1, 1, 1, 2, 2])
    >>> alike_blocks(groups=["b", "a", "b"])
    array([1, 0, 1])
    """
    blocks = None
    if groups is not None:
        blocks = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
    if times is not None:
        moments = np.unique(np.asarray(times), return_inverse=True)[1].reshape(-1)
        if blocks is not None and len(blocks):
            first = np.full(int(blocks.max()) + 1, len(moments))
            np.minimum.at(first, blocks, moments)
            moments = first[blocks]
        sizes = np.bincount(moments)
        middle = np.cumsum(sizes) - sizes / 2
        blocks = (n_blocks * middle / max(len(moments), 1)).astype(np.intp)[moments]
    if blocks is None:
        return None
    numbers = np.unique(blocks, return_inverse=True)[1].reshape(-1) % MOST_BLOCKS
    return numbers.astype(np.intp) if len(np.unique(numbers)) > 1 else None


def measure(
    labels: ArrayLike,
    vote: ArrayLike,
    decided: ArrayLike,
    probability: ArrayLike | None = None,
    *,
    cost: tuple[float, float] | None = None,
    blocks: ArrayLike | None = None,
    seed: int = 0,
) -> Figures:
    """Score decisions between classes.

    Parameters
    ----------
    labels : array of int or bool, shape (n,)
        The true class of each row; at least two classes must occur.
    vote : array of shape (n,) or (n, 1) for two classes, (n, C) for more
        Ranks the rows for the positive class, or for each class.
    decided : array of int or bool, shape (n,)
        The predicted class.
    probability : array of the shape of ``vote``, optional
        For the Brier score.
    cost : (false alarm, miss), optional
        For the cost per row, with two classes.
    blocks : array of int, shape (n,), optional
        The block of dependent rows each row is in, from :func:`alike_blocks`. By
        default all rows are independent.
    seed : int, default=0
        Seed of the bootstrap.

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
    votes, reported, classes = vote_columns(vote)
    if len(np.unique(truth)) < 2:
        raise ValueError(
            f"scores need rows of at least two classes, but the {len(truth):,} rows that "
            f"can be scored have fewer; add rows, or use rows that are new to the model"
        )
    if np.isnan(votes).any():
        raise ValueError("some rows have no vote; drop them first")
    errors = None
    if probability is not None:
        chances, _, _ = vote_columns(probability)
        errors = ((chances - (truth[:, None] == reported)) ** 2).sum(axis=1)
    alike = None if blocks is None else np.asarray(blocks, np.intp)
    table = confusion(truth, named, len(classes))
    ranks = rank_figures(truth, votes, reported, np.ones((1, len(truth))))[:, :, 0]
    alone = len(reported) == 1
    made = draw(seed, truth, votes, classes, named, errors, ranks, alike)
    exact, drawn = of_tables(table[None].astype(float), cost), of_tables(made.tables, cost)
    effects = _effects(table, made.tables, alike)

    def around(value: Any, draws: Floats, least: float, most: float = np.inf) -> Figure:
        if alike is not None:
            # Only the spread of the draws is used; see draws.py.
            draws = value + widening(alike) * (draws - np.nanmean(draws))
        return Figure.around(float(value), draws, least, most)

    there = table.sum(axis=1)[reported] > 0
    by_class: list[dict[str, Figure | None]] = []
    for at, c in enumerate(reported):
        found, sure = int(table[c, c]), [effects[key][c] for key in ("precision", "recall")]
        own: dict[str, Figure | None] = {
            "precision": Figure.counted(found, int(table[:, c].sum()), sure[0]),
            "recall": Figure.counted(found, int(table[c].sum()), sure[1]),
            **dict.fromkeys(("f1", "ap", "roc_auc")),
        }
        if there[at]:
            own["f1"] = around(exact["f1"][0, c], drawn["f1"][:, c], 0.0, 1.0)
            for k, name in enumerate(("ap", "roc_auc")):
                own[name] = around(ranks[k, at], made.ranks[k, at], 0.0, 1.0)
        by_class.append(own)
    limits: dict[str, tuple[float, float]] = {
        "balanced_accuracy": (0.0, 1.0),
        "mcc": (-1.0, 1.0),
        **({"cost": (0.0, max(cost))} if cost else {}),
        **({} if alone else {"macro_f1": (0.0, 1.0)}),
    }
    figures: dict[str, Any] = {
        name: around(exact[name][0], drawn[name], *within)
        for name, within in limits.items()
    }
    if errors is not None and made.errors is not None:
        figures["brier"] = around(errors.mean(), made.errors, 0.0)
    if alone:  # the positive class stands for all
        # If nothing is flagged, precision is unknown.
        figures |= by_class[0] | {"precision": by_class[0]["precision"] or NONE_FLAGGED}
    else:
        for k, name in enumerate(("macro_ap", "macro_roc_auc")):
            mean, moved = ranks[k, there].mean(), class_means(made.ranks[k, there].T)
            figures[name] = around(mean, moved, 0.0, 1.0)
        right, (sure_of_all,) = int(np.trace(table)), effects["accuracy"]
        figures["accuracy"] = Figure.counted(right, len(truth), sure_of_all)
    overall = {name: figures[name] for name in MEASURES if name in figures}
    return Figures(overall, tuple(by_class), table, effects)


def _effects(
    table: NDArray[np.int64], tables: Floats, blocks: Labels | None
) -> dict[str, tuple[float, ...]]:
    """Design effects of proportions, from their spread over draws of blocks."""
    counts, n_classes = table.astype(float), len(table)
    found, drawn_found = np.diagonal(counts), np.diagonal(tables, axis1=1, axis2=2)
    shares = {
        "precision": (found, counts.sum(axis=0), drawn_found, tables.sum(axis=1)),
        "recall": (found, counts.sum(axis=1), drawn_found, tables.sum(axis=2)),
        "accuracy": (
            found.sum(keepdims=True),
            counts.sum(keepdims=True)[0],
            drawn_found.sum(axis=1, keepdims=True),
            tables.sum(axis=(1, 2))[:, None],
        ),
    }
    if blocks is None:
        return {name: (1.0,) * len(parts[0]) for name, parts in shares.items()}
    wider, effects = widening(blocks), {}
    for name, (parts, wholes, drawn_parts, drawn_wholes) in shares.items():
        own = []
        for k, (part, whole) in enumerate(zip(parts, wholes, strict=True)):
            there = drawn_wholes[:, k] > 0
            plain = part / whole * (1 - part / whole) / whole if whole else 0.0
            # At 0 or 1 the draws have no spread.
            moved = np.std(drawn_parts[there, k] / drawn_wholes[there, k]) if plain else 0.0
            effect = (wider * moved) ** 2 / plain if plain else 1.0
            own.append(float(np.clip(effect, 1.0, max(whole, 1.0))))
        effects[name] = tuple(own)
    assert len(effects["recall"]) == n_classes
    return effects


@dataclass(frozen=True)
class TopFigures:
    """What is found by checking the ``rows`` highest votes out of ``of`` rows.

    Attributes
    ----------
    rows, of : float
    hits : Figure
        Expected positives among them. A single batch will have a few more or fewer.
    precision, recall : Figure
        The share of these rows that are positive, and the share of all positives that
        are among them.
    is_counted : bool
        Whether the hits were counted, as opposed to scaled from another number of rows.
    """

    rows: float
    of: float
    hits: Figure
    precision: Figure
    recall: Figure
    is_counted: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def per(self, rows: float, of: float) -> TopFigures:
        """The same share, scaled to another number of rows."""
        hits = self.precision.times(rows)
        return replace(self, rows=float(rows), of=float(of), hits=hits, is_counted=False)

    @property
    def words(self) -> str:
        """A sentence with the scores."""
        were = "were" if self.is_counted else "should be"
        hits, precision, recall = (
            f"{form(one.value)}{verb} (90% CI: {form(one.low)} to {form(one.high)})"
            for one, form, verb in (
                (self.hits, "{:,.3g}".format, f" {were} hits"),
                (self.precision, "{:.3f}".format, ""),
                (self.recall, "{:.3f}".format, ""),
            )
        )
        return (
            f"Of the {counted(self.rows, 'highest vote')} in {self.of:,.10g} rows, {hits}. "
            f"Precision {precision}, recall {recall}."
        )


def top_figures(
    labels: ArrayLike,
    vote: ArrayLike,
    rows: ArrayLike,
    *,
    blocks: ArrayLike | None = None,
    seed: int = 0,
) -> list[TopFigures]:
    """Hits, precision and recall among the highest votes, for given numbers of rows.

    The intervals allow for other rows having other positives and another cut: the wider of
    a bootstrap, each draw cut anew, and Wilson's interval with a design effect.

    Parameters
    ----------
    labels : array of int or bool, shape (n,)
        1 for the positive class.
    vote : array of shape (n,)
        Ties are averaged over all orders.
    rows : array of numbers above 0
        Capped at n.
    blocks : array of int, shape (n,), optional
        As for :func:`measure`.
    seed : int, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.evaluation import top_figures
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(5000) < 0.02
    >>> (top,) = top_figures(positive, rng.normal(size=5000) + 3 * positive, [100])
    >>> print(top.words.partition(". Precision")[0])
    Of the 100 highest votes in 5,000 rows, 75 were hits (90% CI: 64.6 to 84)
    """
    positive, votes = np.asarray(labels, np.intp) == 1, np.asarray(vote, np.float64)
    if votes.shape != positive.shape or np.isnan(votes).any() or not len(votes):
        raise ValueError(
            f"vote has shape {votes.shape} and labels {positive.shape}; give one vote per "
            f"row, for two classes, and drop rows without one"
        )
    n, n_positive = len(votes), int(positive.sum())
    numbers = np.minimum(np.asarray(rows, np.float64), n)
    if numbers.ndim != 1 or not (numbers > 0).all():
        raise ValueError(f"rows={rows!r} must be numbers above 0")
    hits = hits_in_top(positive, votes, numbers)
    alike = None if blocks is None else np.asarray(blocks, np.intp)
    drawn = draw_top(seed, positive, votes, numbers / n, alike)
    wider = 1.0 if alike is None else widening(alike)
    told = []
    for k, (number, hit) in enumerate(zip(numbers.tolist(), hits.tolist(), strict=True)):
        figures = []
        for whole, draws in ((number, drawn[0][:, k]), (n_positive, drawn[1][:, k])):
            part = hit / max(whole, 1)
            plain = part * (1 - part) / max(whole, 1)
            effect = (wider * float(draws.std())) ** 2 / plain if plain > 0 else 1.0
            effect = min(max(effect, 1.0), max(whole, 1.0))
            one = Figure.counted(hit, whole, effect) or NONE_FLAGGED
            # With about as many rows as positives, draws are one-sided.
            moved = Figure.around(part, part + wider * (draws - part), 0.0, 1.0)
            low, high = min(one.low, moved.low), max(one.high, moved.high)
            figures.append(replace(one, low=low, high=high))
        precision, recall = figures
        told.append(TopFigures(number, n, precision.times(number), precision, recall))
    return told


def hits_in_top(
    positive: NDArray[np.bool_], vote: NDArray[np.float64], rows: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Positives among the given numbers of highest votes; ties are averaged.

    Examples
    --------
    >>> import numpy as np
    >>> hits_in_top(np.array([True, False, True]), np.array([0.9, 0.5, 0.5]), np.arange(4))
    array([0. , 1. , 1.5, 2. ])
    """
    order = np.argsort(-vote, kind="stable")
    ends = np.append(0, np.flatnonzero(np.append(np.diff(vote[order]) != 0, True)) + 1)
    found = np.append(0, np.cumsum(positive[order]))[ends]
    return np.asarray(np.interp(rows, ends, found))


def point_figures(
    labels: ArrayLike,
    vote: ArrayLike | None,
    decided: ArrayLike,
    reported: ArrayLike = (1,),
    *,
    cost: tuple[float, float] | None = None,
) -> dict[str, float]:
    """AP, F1 and cost per row, without intervals.

    Parameters
    ----------
    labels, decided : array of int or bool, shape (n,)
    vote : array, optional
        As for :func:`measure`; by default rows are ranked by their decisions.
    reported : array of int
        The classes AP and F1 are averaged over: with two, the positive one.
    cost : (false alarm, miss), optional
        For two classes. By default every error costs 1.

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
    found = of_tables(table[None], cost)
    if vote is None:
        # All flagged rows tie, and so do all others.
        recall, precision = found["recall"][0], found["precision"][0]
        ranks = (recall * precision + (1 - recall) * sizes / total)[classes]
    else:
        votes, those, _ = vote_columns(vote)
        ranks = rank_figures(truth, votes, those, np.ones((1, len(truth))), only_ap=True)
        ranks = ranks[0, :, 0]
    return {
        "AP": float(ranks[there].mean()),
        "F1": float(found["f1"][0, classes[there]].mean()),
        "cost": float(1 - found["accuracy"][0] if cost is None else found["cost"][0]),
    }


def compare(
    measure: str,
    labels: ArrayLike,
    ours: tuple[ArrayLike, ArrayLike],
    other: tuple[ArrayLike, ArrayLike],
    *,
    cost: tuple[float, float] = (1.0, 1.0),
    top: float | None = None,
    blocks: ArrayLike | None = None,
    seed: int = 0,
) -> Figure:
    """How much better our model is than another, by a paired bootstrap.

    Parameters
    ----------
    measure : str
        "f1", "precision", "recall", "ap" or "cost" for two classes, "macro_f1" or
        "macro_ap" for more. Positive differences are in our favour, also for costs.
    labels : array of int or bool, shape (n,)
    ours, other : (vote, decided)
        As for :func:`measure`.
    cost : (false alarm, miss)
    top : float, optional
        For two classes: compare recall in this share of the rows, those with the highest
        votes, so that both models flag the same number.
    blocks : array of int, shape (n,), optional
        As for :func:`measure`.
    seed : int, default=0

    Returns
    -------
    difference : Figure
        If its interval contains 0, there is no clear difference.

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
    alike = None if blocks is None else np.asarray(blocks, np.intp)
    rng = np.random.RandomState([seed, 13])
    if top is not None:
        if not 0 < top <= 1:
            raise ValueError(f"top={top!r} must be a share of the rows: above 0, at most 1")
        one, two = (np.asarray(vote, np.float64).reshape(-1) for vote, _ in (ours, other))
        value, draws = draw_top_gains(rng, truth, one, two, top, alike)
    elif measure in ("ap", "macro_ap"):
        (votes, _, classes), (others, _, _) = vote_columns(ours[0]), vote_columns(other[0])
        value, draws = draw_gains(rng, truth, votes, others, classes, alike)
    else:
        decided = [np.asarray(named, np.intp) for _, named in (ours, other)]
        n_classes = len(vote_columns(ours[0])[2])
        found = [
            of_tables(tables, cost)[measure]
            for tables in draw_pairs(rng, truth, decided, n_classes, alike)
        ]
        gain = found[1] - found[0] if measure == "cost" else found[0] - found[1]
        # One value per table, or that of the last (positive) class.
        gain = gain.reshape(1 + N_DRAWS, -1)[:, -1]
        value, draws = float(gain[0]), gain[1:]
    draws = draws[~np.isnan(draws)]
    if alike is not None:
        draws = value + widening(alike) * (draws - draws.mean())
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Figure(value, float(low), float(high), float(draws.std()))
