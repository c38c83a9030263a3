"""A fitted vote as reports see it, and its voters: their weights and disagreement."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..classifier import DAMVIClassifier
from ..decision import decide
from ..labels import Labels
from ..voting import DAMVIVotingClassifier

MAX_ROWS = 20_000
MOST_WORK = 400_000
"""Limit on rows times classes."""
MAX_PAIRS = 600
MAX_LISTED = 20
MAX_HARD = 40

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]
"""Numbers of classes or rows."""
Mask = NDArray[np.bool_]


class FittedVote:
    """What scores, explanations and reports need of a fitted classifier.

    Labels and decisions are class numbers; of two, the positive one is 1. Votes and
    probabilities have the classifier's shape: (n,) for two classes, (n, C) for more.

    Attributes
    ----------
    classifier : DAMVIClassifier or DAMVIVotingClassifier
    labels : Labels
    n_classes : int
    reported : ndarray of int
        The classes that have votes and scores: with two, the positive one.
    weights : ndarray of shape (K,)
    is_pool : bool
    names : list of str
        The names of a pool's voters; trees are numbered from 1.
    """

    def __init__(self, classifier: DAMVIClassifier | DAMVIVotingClassifier) -> None:
        self.classifier: Any = classifier
        self.labels: Labels = classifier.labels_
        self.n_classes: int = self.labels.n_classes
        self.reported: Numbers = self.labels.reported
        self.weights: Floats = classifier.weights_
        self.is_pool: bool = isinstance(classifier, DAMVIVotingClassifier)
        named = getattr(classifier.voters_, "names", None)
        trees = (f"tree {k + 1}" for k in range(len(self.weights)))
        self.names: list[str] = list(named or trees)

    @property
    def calibrates(self) -> bool:
        """Whether probabilities are calibrated, not just the rescaled vote."""
        return self.classifier.decision_.calibrator is not None

    @property
    def remembers(self) -> int:
        """One in this many training rows is remembered: 1, unless there were very many."""
        return int(self.classifier.row_hash_step_)

    @property
    def threshold(self) -> Any:
        """The threshold of the vote, or the factors of three or more classes."""
        return self.classifier.threshold_

    def decide(self, vote: Floats) -> tuple[Floats, Numbers]:
        """The probabilities and decisions for these votes; NaN without a vote."""
        chance = self.labels.chances(vote, self.classifier.decision_.calibrator)
        return chance, decide(vote, self.threshold, self.labels.target_order)

    def decided_by_each(self, votes: NDArray[Any]) -> Numbers:
        """The class that each voter alone would predict, (n, K)."""
        return self.labels.decided_by_each(votes, self.threshold)

    def training_labels(self) -> Numbers:
        """The labels of the training rows, right after a fit."""
        targets: Numbers = self.classifier.votes_.targets.astype(np.intp)
        return targets

    def training_decisions(self, threshold: Any = None) -> tuple[Numbers, Mask]:
        """Out-of-sample decisions on the training rows, and which rows have one.

        ``threshold`` has one threshold per row; by default the model's own is used.
        """
        vote = self.classifier.decision_.out_of_sample_vote
        has_vote = ~np.isnan(vote.reshape(len(vote), -1)).any(axis=1)
        cut = self.threshold if threshold is None else threshold
        return decide(vote, cut, self.labels.target_order), has_vote

    def training_votes(self, rows: Numbers) -> tuple[NDArray[Any], Mask | None]:
        """Votes on some training rows, and which are out of sample; None if all are."""
        votes = self.classifier.votes_
        if not votes.in_memory:  # cast again
            return votes.votes_at(rows)
        if votes.out_of_bag is None:
            judged = votes.folds[rows] >= 0
            every = np.repeat(judged[:, None], votes.votes.shape[1], axis=1)
            return votes.votes[rows], None if judged.all() else every
        n = len(votes.targets)
        known = [np.unpackbits(bits, count=n)[rows] for bits in votes.out_of_bag]
        return votes.votes[rows], np.stack(known, axis=1).astype(bool)


def voters_of_fit(classifier: Any, threshold: Any = None) -> dict[str, Any]:
    """Voter statistics on the training rows, from out-of-sample votes.

    For a freshly fitted classifier, since the votes are not saved with it. ``threshold``
    has one threshold per row; by default the model's own is used.
    """
    fitted = FittedVote(classifier)
    labels = fitted.training_labels()
    decided, has_vote = fitted.training_decisions(threshold)
    rare = fitted.labels.rare(np.bincount(labels, minlength=fitted.n_classes))[labels]
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
    classifier: Any, X: Any, labels: Numbers, decided: Numbers, new: Mask
) -> dict[str, Any] | None:
    """Voter statistics on the ``new`` rows of a table; None if they are too few."""
    fitted = FittedVote(classifier)
    rows = np.flatnonzero(new)
    if 2 * len(rows) <= len(labels) or len(np.unique(labels[rows])) < 2:
        return None
    rows = rows[rows_to_look_at(labels[rows], fitted.n_classes)]
    rare = fitted.labels.rare(np.bincount(labels, minlength=fitted.n_classes))[labels]
    return voter_figures(
        fitted.decided_by_each(classifier.cast_votes(X.iloc[rows])),
        labels[rows],
        fitted.weights,
        fitted.names,
        fitted.n_classes,
        hard=(rare & (decided != labels))[rows],
    )


def voter_figures(
    decided: Numbers,
    labels: Numbers,
    weights: Floats,
    names: list[str],
    n_classes: int,
    *,
    hard: Mask,
    unseen: Mask | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Voter statistics from their decisions, as plain values.

    Parameters
    ----------
    decided : array of int, shape (n, K)
        The class that each voter alone would predict.
    labels : array of int, shape (n,)
    weights : array of shape (K,)
    names : list of K str
    n_classes : int
    hard : array of bool, shape (n,)
        Rows of rare classes that the weighted vote misses.
    unseen : array of bool, shape (n, K), optional
        Which decisions count: those on rows that the voter was not trained on. Default:
        all.
    seed : int, default=0
        Seed for sampling pairs and hard cases if there are too many.

    Notes
    -----
    Errors are averaged over the classes; otherwise never predicting a rare class would
    look best.
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
    """The weights: how many voters have any, and how few hold half of the vote."""
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


def rows_to_look_at(labels: Numbers, n_classes: int, seed: int = 0) -> Numbers:
    """A sample of rows, shared out evenly between the classes."""
    rng = np.random.default_rng(seed)
    room = min(MAX_ROWS, max(MOST_WORK // n_classes, n_classes))
    groups = [
        rng.permutation(np.flatnonzero(labels == c)) for c in reversed(range(n_classes))
    ]
    taken: list[Numbers] = []
    for left, group in enumerate(sorted(groups, key=len)):
        taken.append(group[: room // (n_classes - left)])
        room -= len(taken[-1])
    return np.sort(np.concatenate(taken))


def _errors(right: Mask, labels: Numbers, counts: Mask) -> Floats:
    """Each voter's error, averaged over the classes it has votes on."""
    total, known = np.zeros(right.shape[1]), np.zeros(right.shape[1])
    for c in np.unique(labels):
        here = labels == c
        asked = counts[here].sum(axis=0)
        total += (~right[here] & counts[here]).sum(axis=0) / np.maximum(asked, 1)
        known += asked > 0
    return np.asarray(total / np.maximum(known, 1))


def _kappas(decided: Numbers, labels: Numbers, counts: Mask, n_classes: int) -> Floats:
    """Cohen's kappa of each pair, with all classes weighted equally.

    A pair is compared on the rows that count for both.
    """
    sizes = np.maximum(np.bincount(labels, minlength=n_classes), 1)
    D = (1.0 / sizes)[labels][:, None]
    asked = counts.astype(float)
    total = asked.T @ (D * asked)
    agreed, by_chance = np.zeros_like(total), np.zeros_like(total)
    for c in range(n_classes):
        named = (decided == c) & counts
        # With many classes, most rows have no votes for a given one.
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
    """Points of the kappa-error diagram: pairs with weight first, others sampled."""
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
    """Rounded for the report; None if missing."""
    return None if value is None or np.isnan(value) else round(float(value), 4)
