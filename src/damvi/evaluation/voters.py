"""The voters: who carries the vote, how they differ, and what they say of hard cases."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .measures import rows_by_class
from .rows import FittedVote

MAX_ROWS = 20_000
MOST_WORK = 400_000
"""Rows times classes that are looked at."""
MAX_PAIRS = 600
MAX_LISTED = 20
MAX_HARD = 40

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]
Mask = NDArray[np.bool_]


def voters_of_fit(classifier: Any) -> dict[str, Any]:
    """The voters' figures on the training rows, from votes on rows unseen by each.

    For a classifier that was fitted just now, since the votes are not saved with it.
    """
    fitted = FittedVote(classifier)
    labels = fitted.training_labels()
    decided, has_vote = fitted.training_decisions()
    rare = rare_classes(labels, fitted.n_classes)[labels]
    rows = rows_to_look_at(labels, fitted.n_classes)
    votes, unseen = fitted.training_votes(rows)
    figures = voter_figures(
        fitted.decided_by_each(votes),
        labels[rows],
        fitted.weights,
        fitted.names,
        fitted.n_classes,
        hard=(rare & has_vote & (decided != labels))[rows],
        unseen=unseen,
    )
    return {**figures, "of_fit": True}


def voters_on(
    classifier: Any, X: Any, labels: Labels, decided: Labels, new: Mask
) -> dict[str, Any] | None:
    """The voters' figures on the ``new`` rows of a table; None where these are too few."""
    fitted = FittedVote(classifier)
    rows = np.flatnonzero(new)
    if 2 * len(rows) <= len(labels) or len(np.unique(labels[rows])) < 2:
        return None
    rows = rows[rows_to_look_at(labels[rows], fitted.n_classes)]
    rare = rare_classes(labels, fitted.n_classes)[labels]
    return voter_figures(
        fitted.decided_by_each(classifier.cast_votes(X.iloc[rows])),
        labels[rows],
        fitted.weights,
        fitted.names,
        fitted.n_classes,
        hard=(rare & (decided != labels))[rows],
    )


def voter_figures(
    decided: Labels,
    labels: Labels,
    weights: Floats,
    names: list[str],
    n_classes: int,
    *,
    hard: Mask,
    unseen: Mask | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """What the voters' decisions say of them, as plain values.

    Parameters
    ----------
    decided : array of int, shape (n, K)
        The class that each voter alone would decide for.
    labels : array of int, shape (n,)
    weights : array of shape (K,)
    names : list of K str
    n_classes : int
    hard : array of bool, shape (n,)
        The rows to look at closely: of rare classes, missed by the weighted vote.
    unseen : array of bool, shape (n, K), optional
        Which of the decisions count: those on rows that the voter was not trained on.
        None: all.
    seed : int, default=0
        Of the pairs, and the hard cases, that are listed where there are too many.

    Notes
    -----
    Errors are means of the classes' errors, so that each class counts alike: else never
    naming a rare one would look best.
    """
    rng = np.random.default_rng(seed)
    hard_rows = np.flatnonzero(hard)
    shown = np.sort(rng.permutation(hard_rows)[:MAX_HARD])
    counts = np.ones(decided.shape, dtype=bool) if unseen is None else unseen
    right = decided == labels[:, None]
    errors = _errors(right, labels, counts)
    kappas = _kappas(decided, labels, counts, n_classes)
    order = np.argsort(-weights, kind="stable").tolist()
    heaviest = order[:MAX_LISTED]
    return {
        "known": True,
        "of_fit": False,
        "rows": len(labels),
        **voter_weights(weights, names),
        "errors": {names[k]: _rounded(errors[k]) for k in order},
        "pairs": _pairs(rng, kappas, errors, weights),
        "hard": {
            "shown": len(shown),
            "total": len(hard_rows),
            "found_by_none": int((~(right & counts)[hard_rows].any(axis=1)).sum()),
            "names": [names[k] for k in heaviest],
            "says": [
                [int(right[row, k]) if counts[row, k] else None for row in shown.tolist()]
                for k in heaviest
            ],
        },
    }


def voter_weights(weights: Floats, names: list[str]) -> dict[str, Any]:
    """The weights alone: who survived, and how few hold half of the vote."""
    order = np.argsort(-weights, kind="stable")
    total = np.cumsum(weights[order])
    return {
        "voters": len(weights),
        "survived": int((weights > 0).sum()),
        "half": int(np.searchsorted(total, total[-1] / 2 * (1 - 1e-12))) + 1,
        "weights": [
            {"name": names[k], "weight": float(weights[k])} for k in order.tolist()
        ],
    }


def rows_to_look_at(labels: Labels, n_classes: int, seed: int = 0) -> Labels:
    """Rows of every class, of each at most its even share of the room while others wait."""
    rng = np.random.default_rng(seed)
    room = min(MAX_ROWS, max(MOST_WORK // n_classes, n_classes))
    groups = [rng.permutation(group) for group in rows_by_class(labels, n_classes)]
    taken: list[Labels] = []
    for left, group in enumerate(sorted(groups, key=len)):
        taken.append(group[: room // (n_classes - left)])
        room -= len(taken[-1])
    return np.sort(np.concatenate(taken))


def rare_classes(labels: Labels, n_classes: int) -> Mask:
    """The classes below their even share of the rows; of two, the positive one."""
    if n_classes == 2:
        return np.array([False, True])
    sizes = np.bincount(labels, minlength=n_classes)
    return np.asarray(sizes * n_classes < len(labels))


def _errors(right: Mask, labels: Labels, counts: Mask) -> Floats:
    """Each voter's error, the mean over the classes of which it was asked."""
    total, known = np.zeros(right.shape[1]), np.zeros(right.shape[1])
    for c in np.unique(labels):
        here = labels == c
        asked = counts[here].sum(axis=0)
        total += (~right[here] & counts[here]).sum(axis=0) / np.maximum(asked, 1)
        known += asked > 0
    return np.asarray(total / np.maximum(known, 1))


def _kappas(decided: Labels, labels: Labels, counts: Mask, n_classes: int) -> Floats:
    """Cohen's kappa of each pair, each class of rows counting alike.

    A pair is compared on the rows that count for both.
    """
    sizes = np.maximum(np.bincount(labels, minlength=n_classes), 1)
    D = (1.0 / sizes)[labels][:, None]
    asked = counts.astype(float)
    total = asked.T @ (D * asked)
    agreed, by_chance = np.zeros_like(total), np.zeros_like(total)
    for c in range(n_classes):
        named = (decided == c) & counts
        # Of many classes, most are named by nobody on most rows.
        rows = np.flatnonzero(named.any(axis=1))
        if not len(rows):
            continue
        votes = named[rows].astype(float)
        agreed += votes.T @ (D[rows] * votes)
        own = votes.T @ (D[rows] * asked[rows])
        by_chance += own * own.T
    known = total > 0
    whole = np.where(known, total, 1.0)
    seen, chance = agreed / whole, by_chance / whole**2
    below = 1 - chance
    kappa = np.where(below > 1e-12, (seen - chance) / np.where(below > 0, below, 1), 1.0)
    return np.where(known, kappa, np.nan)


def _pairs(
    rng: np.random.Generator, kappas: Floats, errors: Floats, weights: Floats
) -> dict[str, Any]:
    """Points of the kappa-error diagram: pairs with weight first, the others drawn."""
    j, k = np.triu_indices(len(weights), 1)
    both = (weights[j] > 0) & (weights[k] > 0)
    shown = rng.permutation(len(j))
    shown = np.sort(shown[np.argsort(~both[shown], kind="stable")][:MAX_PAIRS])
    kappa = kappas[j, k]
    return {
        "total": len(j),
        "mean_kappa": _rounded(kappa.mean() if len(j) else None),
        "mean_kappa_weighted": _rounded(kappa[both].mean() if both.any() else None),
        "kappa": [_rounded(value) for value in kappa[shown]],
        "error": [_rounded(value) for value in (errors[j] + errors[k])[shown] / 2],
        "weighted": both[shown].tolist(),
    }


def _rounded(value: Any) -> float | None:
    """For the page; None where there is none."""
    return None if value is None or np.isnan(value) else round(float(value), 4)
