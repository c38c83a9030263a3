"""What happens when the votes for one class count for more, or for less.

The page offers steps for one class at a time; the other classes count as they do in the
model. For each step there is the whole table of decisions, so that the page shows exact
counts and need not hold the votes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..decision import settle

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

TIMES = (1.2, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)
STEPS = (*(1 / times for times in TIMES[::-1]), 1.0, *TIMES)
"""How much more than in the model a vote for the class may count."""
OWN = STEPS.index(1.0)
MOST_CLASSES = 16
"""Of more classes the tables would take too much of the page."""


def offer_weights(
    vote: Floats, labels: Places, factors: Floats, order: Places
) -> list[NDArray[np.int64]]:
    """For each class the tables of decisions, (steps, C, C), by truth and decision.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.report.class_weights import OWN, offer_weights
    >>> vote = np.array([[0.6, 0.4, 0.0], [0.5, 0.3, 0.2]])
    >>> tables = offer_weights(vote, np.array([0, 1]), np.ones(3), np.arange(3))
    >>> tables[1][OWN].tolist()
    [[1, 0, 0], [1, 0, 0], [0, 0, 0]]
    >>> tables[1][-1].tolist()  # class 1 counts a hundredfold
    [[0, 1, 0], [0, 1, 0], [0, 0, 0]]
    """
    n_classes = len(factors)
    rank = np.empty(n_classes, np.intp)
    rank[order] = np.arange(n_classes)
    offered = []
    for c in range(n_classes):
        scores = vote * factors
        scores[:, c] = -np.inf
        rival = settle(scores, order).argmax(axis=1)
        against = scores[np.arange(len(vote)), rival]
        wins_ties = rank[c] < rank[rival]
        tables = []
        for step in STEPS:
            own = vote[:, c] * (factors[c] * step)
            turned = (own > against) | ((own == against) & wins_ties)
            decided = np.where(turned, c, rival)
            counts = np.bincount(labels * n_classes + decided, minlength=n_classes**2)
            tables.append(counts.reshape(n_classes, n_classes))
        offered.append(np.stack(tables))
    return offered


def as_plain(offered: list[NDArray[np.int64]], factors: Floats) -> dict[str, Any]:
    """The tables for the script: flat, line by line."""
    return {
        "steps": list(STEPS),
        "own": OWN,
        "factors": factors.tolist(),
        "tables": [[table.reshape(-1).tolist() for table in steps] for steps in offered],
    }
