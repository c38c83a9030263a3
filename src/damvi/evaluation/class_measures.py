"""Scores on rows of three or more classes, and how sure they are.

A class is judged against the rest; the means over the classes count each alike, however
rare. The intervals come from a bootstrap, class by class: figures of decisions from tables
of decisions drawn anew, figures of rankings from rows drawn anew. Very many rows are
thinned for the second, and then count for more; the figures themselves come from all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..decision.objectives import f1_by_class
from .class_rankings import rankings
from .measures import N_DRAWS, Figure, Floats
from .rates import share

Places = NDArray[np.intp]

CLASS_MEASURES = {
    "macro_f1": "macro F1",
    "balanced_accuracy": "balanced accuracy",
    "macro_ap": "macro AP",
    "macro_roc_auc": "macro ROC AUC",
    "accuracy": "accuracy",
    "mcc": "MCC",
    "brier": "Brier",
}
"""The names of the figures of all classes, and what to call them."""


@dataclass(frozen=True, eq=False)
class ClassFigures:
    """What decisions between classes are worth.

    Attributes
    ----------
    overall : dict of str to Figure
        Those of :data:`damvi.evaluation.CLASS_MEASURES` that can be had. Means are over
        the classes that have rows.
    by_class : tuple of dict
        For each class "precision", "recall", "f1", "ap" and "roc_auc", against the rest;
        None where there are no rows to count.
    confusion : ndarray of int, shape (C, C)
        Rows by class (row) and decision (column).
    """

    overall: dict[str, Figure]
    by_class: tuple[dict[str, Figure | None], ...]
    confusion: NDArray[np.int64]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the shares of each class's rows with intervals."""
        return {
            "overall": {name: figure.as_dict() for name, figure in self.overall.items()},
            "by_class": [
                {name: None if one is None else one.as_dict() for name, one in own.items()}
                for own in self.by_class
            ],
            "confusion": self.confusion.tolist(),
            "shares": shares_of(self.confusion),
        }


def measure_classes(
    labels: ArrayLike,
    vote: ArrayLike,
    decided: ArrayLike,
    probability: ArrayLike | None = None,
    *,
    seed: int = 0,
) -> ClassFigures:
    """Judge decisions between classes.

    Parameters
    ----------
    labels : array of int, shape (n,)
        The place of each row's class; rows of two classes at least.
    vote : array of shape (n, C)
        Ranks the rows, class by class.
    decided : array of int, shape (n,)
        The place of the class decided for.
    probability : array of shape (n, C), optional
        For the Brier score.
    seed : int, default=0
        Of the bootstrap.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.choice(3, p=[0.7, 0.2, 0.1], size=1000)
    >>> vote = np.eye(3)[labels] + rng.normal(size=(1000, 3))
    >>> found = measure_classes(labels, vote, vote.argmax(axis=1))
    >>> macro = found.overall["macro_f1"]
    >>> macro.low < macro.value < macro.high
    True
    """
    truth, named = np.asarray(labels, np.intp), np.asarray(decided, np.intp)
    votes = np.asarray(vote, np.float64)
    if len(np.unique(truth)) < 2:
        raise ValueError("rows of two classes are needed to measure anything")
    if np.isnan(votes).any():
        raise ValueError("some rows have no vote; leave them out")
    n_classes = votes.shape[1]
    table = np.bincount(truth * n_classes + named, minlength=n_classes**2)
    table = table.reshape(n_classes, n_classes)
    rng = np.random.RandomState([seed, 17])
    errors = None
    if probability is not None:
        errors = ((np.asarray(probability) - np.eye(n_classes)[truth]) ** 2).sum(axis=1)
    means, f1 = _of_decisions(rng, table)
    ranked, ap, auc = rankings(rng, truth, votes, errors)
    overall = means | ranked
    return ClassFigures(
        {name: overall[name] for name in CLASS_MEASURES if name in overall},
        tuple(
            {
                "precision": _counted(int(table[c, c]), int(table[:, c].sum())),
                "recall": _counted(int(table[c, c]), int(table[c].sum())),
                "f1": f1[c],
                "ap": ap[c],
                "roc_auc": auc[c],
            }
            for c in range(n_classes)
        ),
        table.astype(np.int64),
    )


def shares_of(table: NDArray[Any]) -> list[list[dict[str, Any]]]:
    """Each cell of a confusion table as a share of its class's rows, with an interval."""
    counts = np.asarray(table)
    return [[share(int(count), int(row.sum())) for count in row.tolist()] for row in counts]


def _counted(part: int, whole: int) -> Figure | None:
    found = share(part, whole)
    if found["value"] is None:
        return None
    spread = np.sqrt(found["value"] * (1 - found["value"]) / whole)
    return Figure(found["value"], found["low"], found["high"], float(spread))


def _of_decisions(
    rng: np.random.RandomState, table: NDArray[Any]
) -> tuple[dict[str, Figure], list[Figure | None]]:
    """Figures of a table of decisions, from tables in which each class keeps its rows."""
    sizes = table.sum(axis=1)
    there = sizes > 0
    drawn = np.zeros((1 + N_DRAWS, *table.shape))
    drawn[0] = table
    for c in np.flatnonzero(there):
        drawn[1:, c] = rng.multinomial(sizes[c], table[c] / sizes[c], size=N_DRAWS)
    scores = f1_by_class(drawn)
    found = np.diagonal(drawn, axis1=1, axis2=2)
    total, right = table.sum(), found.sum(axis=1)
    means = {
        "macro_f1": scores[:, there].mean(axis=1),
        "balanced_accuracy": (found[:, there] / sizes[there]).mean(axis=1),
        "accuracy": right / total,
        "mcc": _correlation(right * total, drawn.sum(axis=1), sizes, total),
    }
    f1 = [
        Figure.around(float(scores[0, c]), scores[1:, c]) if there[c] else None
        for c in range(len(table))
    ]
    return {name: Figure.around(float(v[0]), v[1:]) for name, v in means.items()}, f1


def _correlation(right: Floats, named: Floats, sizes: NDArray[Any], total: int) -> Floats:
    """Gorodkin's correlation of decisions and truth; 0 where one of them is constant."""
    above = right - named @ sizes
    squared = (total**2 - (named**2).sum(axis=1)) * (total**2 - (sizes**2.0).sum())
    below = np.sqrt(np.maximum(squared, 0.0))
    return np.divide(above, below, out=np.zeros(len(above)), where=below > 0)
