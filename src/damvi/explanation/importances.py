"""How much a model relies on each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import replace_columns, take_rows
from .one_class import one_score

MAX_ROWS = 1000
MAX_CELLS = 4_000_000
"""Of the tables that a permutation asks the model about, all together."""

OWN = (
    "The trees' own importances: how much the splits on a column cleared up the classes, "
    "each tree counted by its weight. They sum to 1."
)
SHUFFLED = (
    "How far the vote moves, on average, when a column's values are shuffled over {rows:,} "
    "rows (half of them the highest scored); the vote runs from -1 to 1. It says what the "
    "model relies on, not what causes what; columns that say the same share their part."
)
SHUFFLED_CLASSES = (
    "What part of the vote goes to other classes, on average, when a column's values are "
    "shuffled over {rows:,} rows (half of them those with the least vote for the most "
    "frequent class). It says what the model relies on, not what causes what; columns that "
    "say the same share their part."
)


@dataclass(frozen=True)
class Importances:
    """Columns with what they count for, the largest first.

    Attributes
    ----------
    names : tuple of str
    values : tuple of float
    method : {"own", "shuffled"}
    words : str
        What was measured, for the user to read.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    method: str
    words: str

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {**asdict(self), "names": list(self.names), "values": list(self.values)}


def importances(
    classifier: Any,
    X: Any,
    names: Sequence[str],
    *,
    seed: int = 0,
) -> Importances:
    """What the columns count for in a fitted model.

    Trees of one kind have importances of their own. In a pool of different models these
    are on different scales, or not there, so the vote itself is asked: columns are
    shuffled one by one.

    Parameters
    ----------
    classifier : DAMVIClassifier
    X : array or dataframe of shape (n, n_features)
        Rows to shuffle; not used where the trees have importances.
    names : sequence of str
        Of the features. Features of the same name are shuffled together, and summed.
    seed : int, default=0

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi import DAMVIClassifier
    >>> from damvi.explanation import importances
    >>> X, y = make_classification(500, 3, n_informative=1, n_redundant=0,
    ...     n_clusters_per_class=1, weights=[0.9], shuffle=False, random_state=0)
    >>> model = DAMVIClassifier(random_state=0).fit(X, y)
    >>> importances(model, X, ["signal", "noise", "more noise"]).names[0]
    'signal'
    """
    own = None if classifier._is_pool else _own(classifier)
    if own is not None:
        summed = dict.fromkeys(names, 0.0)
        for name, value in zip(names, own.tolist(), strict=True):
            summed[name] += value
        return _ranked(summed, "own", OWN)
    rows = _rows_to_ask(classifier, X, len(names), seed)
    moved = _shuffled(classifier, take_rows(X, rows), names, seed)
    many = classifier.vote(take_rows(X, rows[:1])).ndim > 1
    words = SHUFFLED_CLASSES if many else SHUFFLED
    return _ranked(moved, "shuffled", words.format(rows=len(rows)))


def _ranked(found: dict[str, float], method: str, words: str) -> Importances:
    order = sorted(found, key=lambda name: -found[name])
    values = tuple(found[name] for name in order)
    return Importances(tuple(order), values, method, words)


def _own(classifier: Any) -> NDArray[np.float64] | None:
    try:
        values: NDArray[np.float64] = classifier.feature_importances_
    except AttributeError:
        return None
    total = values.sum()
    return values / total if total > 0 else values


def _rows_to_ask(classifier: Any, X: Any, n_names: int, seed: int) -> NDArray[np.intp]:
    """Half at random, half the highest scored: the rare class is there."""
    n = X.shape[0]
    most = int(np.clip(MAX_CELLS // max(1, n_names * X.shape[1]), 20, MAX_ROWS))
    if n <= most:
        return np.arange(n)
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(n)[: 20 * MAX_ROWS]
    highest = np.argsort(-one_score(classifier, take_rows(X, drawn)), kind="stable")
    top, others = drawn[highest[: most // 2]], drawn[np.sort(highest[most // 2 :])]
    others = others[: most - len(top)]
    return np.sort(np.concatenate([top, others]))


def _shuffled(classifier: Any, X: Any, names: Sequence[str], seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    n = X.shape[0]
    before = classifier.vote(X)
    moved = {}
    for name in dict.fromkeys(names):
        columns = np.array([other == name for other in names])
        others = take_rows(X, rng.permutation(n))
        swapped = np.broadcast_to(columns, (n, len(columns)))
        after = classifier.vote(replace_columns(X, others, swapped))
        apart = np.abs(after - before)
        # What one class loses another gains: of many, half of it all.
        moved[name] = float((apart if apart.ndim == 1 else apart.sum(axis=1) / 2).mean())
    return moved
