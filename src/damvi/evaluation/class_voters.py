"""The voters on three or more classes: who carries the vote, how they differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .voters import (
    MAX_HARD,
    MAX_LISTED,
    MAX_ROWS,
    Mask,
    Vector,
    listed_pairs,
    plain,
    voter_names,
    votes_at,
    who_votes,
)

Places = NDArray[np.intp]

MOST_WORK = 400_000
"""Rows times classes that are looked at."""


def class_voter_figures(
    named: Places,
    labels: Places,
    weights: Vector,
    names: list[str],
    n_classes: int,
    *,
    hard: Mask,
    unseen: Mask | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """What the voters' choices of classes say of them, as plain values.

    Parameters
    ----------
    named : array of int, shape (n, K)
        The class that each voter would decide for, see :func:`classes_named`, on rows
        that it was not trained on.
    labels : array of int, shape (n,)
    weights : array of shape (K,)
    names : list of K str
    n_classes : int
    hard : array of bool, shape (n,)
        The rows to look at closely: of rare classes, missed by the vote.
    unseen : array of bool, shape (n, K), optional
        Which of the choices count. None: all.
    seed : int, default=0

    Notes
    -----
    Errors are means of the classes' errors, so that each class counts alike.
    """
    rng = np.random.default_rng(seed)
    hard_rows = np.flatnonzero(hard)
    shown = np.sort(rng.permutation(hard_rows)[:MAX_HARD])
    counts = np.ones(named.shape, dtype=bool) if unseen is None else unseen
    right = named == labels[:, None]
    errors = _errors(right, labels, counts, n_classes)
    kappas = _kappas(named, labels, counts, n_classes)
    order = np.argsort(-weights, kind="stable")
    heaviest = order[:MAX_LISTED]
    return {
        "known": True,
        "of_fit": False,
        "rows": len(labels),
        **who_votes(weights, names),
        "errors": {names[k]: plain(errors[k]) for k in order.tolist()},
        "pairs": listed_pairs(rng, kappas, errors, weights),
        "hard": {
            "shown": len(shown),
            "total": len(hard_rows),
            "found_by_none": int((~(right & counts)[hard_rows].any(axis=1)).sum()),
            "names": [names[k] for k in heaviest.tolist()],
            "says": [
                [int(right[row, k]) if counts[row, k] else None for row in shown.tolist()]
                for k in heaviest.tolist()
            ],
        },
    }


def classes_named(votes: NDArray[Any], factors: Vector) -> Places:
    """The class that each voter would decide for, counted by the model's factors."""
    if votes.ndim == 2:
        return votes.astype(np.intp)
    return np.asarray((votes * factors).argmax(axis=2), dtype=np.intp)


def class_rows_to_look_at(labels: Places, n_classes: int, seed: int = 0) -> Places:
    """Rows of every class, of each at most its even share of the room while others wait."""
    rng = np.random.default_rng(seed)
    room = min(MAX_ROWS, max(MOST_WORK // n_classes, n_classes))
    groups = [rng.permutation(np.flatnonzero(labels == c)) for c in range(n_classes)]
    taken: list[Places] = []
    for left, group in enumerate(sorted(groups, key=len)):
        taken.append(group[: room // (n_classes - left)])
        room -= len(taken[-1])
    return np.sort(np.concatenate(taken))


def rare_classes(labels: Places, n_classes: int) -> Mask:
    """The classes below their even share of the rows."""
    sizes = np.bincount(labels, minlength=n_classes)
    return np.asarray(sizes * n_classes < len(labels))


def class_voters_of_fit(classifier: Any) -> dict[str, Any]:
    """The voters' figures on the rows of the fit, from votes on rows unseen by each."""
    ballots = classifier._ballots
    labels, n_classes = ballots.labels, len(classifier.classes_)
    rows = class_rows_to_look_at(labels, n_classes)
    votes, unseen = votes_at(ballots, rows)
    decided = classifier.oob_decision_function_[rows].argmax(axis=1)
    figures = class_voter_figures(
        classes_named(votes, classifier.threshold_),
        labels[rows],
        classifier.weights_,
        voter_names(classifier),
        n_classes,
        hard=rare_classes(labels, n_classes)[labels[rows]] & (decided != labels[rows]),
        unseen=unseen,
    )
    return {**figures, "of_fit": True}


def _errors(right: Mask, labels: Places, counts: Mask, n_classes: int) -> Vector:
    """Each voter's error, the mean over the classes of which it was asked."""
    rates = np.full((n_classes, right.shape[1]), np.nan)
    for c in np.unique(labels):
        here = labels == c
        asked = counts[here].sum(axis=0)
        wrong = (~right[here] & counts[here]).sum(axis=0)
        np.divide(wrong, asked, out=rates[c], where=asked > 0)
    known = ~np.isnan(rates)
    total = np.where(known, rates, 0.0).sum(axis=0)
    errors: Vector = total / np.maximum(known.sum(axis=0), 1)
    return errors


def _kappas(named: Places, labels: Places, counts: Mask, n_classes: int) -> Vector:
    """Cohen's kappa of each pair, each class of rows counting alike.

    A pair is compared on the rows that count for both.
    """
    sizes = np.maximum(np.bincount(labels, minlength=n_classes), 1)
    D = (1.0 / sizes)[labels][:, None]
    asked = counts.astype(float)
    total = asked.T @ (D * asked)
    agreed, by_chance = np.zeros_like(total), np.zeros_like(total)
    for c in range(n_classes):
        said = ((named == c) & counts).astype(float)
        if not said.any():
            continue
        agreed += said.T @ (D * said)
        own = said.T @ (D * asked)
        by_chance += own * own.T
    known = total > 0
    whole = np.where(known, total, 1.0)
    seen, chance = agreed / whole, by_chance / whole**2
    below = 1 - chance
    kappa = np.where(below > 1e-12, (seen - chance) / np.where(below > 0, below, 1), 1.0)
    return np.where(known, kappa, np.nan)
