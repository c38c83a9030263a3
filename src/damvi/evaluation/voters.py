"""The voters: who carries the vote, how they differ, and what they say of hard cases."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_ROWS = 20_000
MAX_PAIRS = 600
MAX_LISTED = 20
MAX_HARD = 40

Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]


def voter_figures(
    votes: NDArray[Any],
    positive: Mask,
    weights: Vector,
    names: list[str],
    *,
    threshold: float,
    hard: Mask,
    unseen: Mask | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """What these votes say of the voters, as plain values.

    Parameters
    ----------
    votes : array of shape (n, K)
        On rows that the voters were not trained on, see :func:`rows_to_look_at`; hard or
        soft.
    positive : array of bool, shape (n,)
    weights : array of shape (K,)
    names : list of K str
    threshold : float
        Where the model cuts the vote; each voter is judged by the same cut.
    hard : array of bool, shape (n,)
        The positives that the weighted vote misses.
    unseen : array of bool, shape (n, K), optional
        Which of the votes count. None: all.
    seed : int, default=0
        Of the pairs, and the hard cases, that are listed where there are too many.

    Notes
    -----
    Errors are means of the two classes' errors, so that the rare class counts as much as
    the other: else never flagging anything would look best.
    """
    rng = np.random.default_rng(seed)
    hard_rows = np.flatnonzero(hard)
    shown = np.sort(rng.permutation(hard_rows)[:MAX_HARD])
    yes = np.asarray(votes) > threshold
    counts = np.ones(yes.shape, dtype=bool) if unseen is None else unseen
    kappas, errors = _pairs(yes, positive, counts)
    order = np.argsort(-weights, kind="stable")
    heaviest = order[: min(len(order), MAX_LISTED)]
    return {
        "known": True,
        "of_fit": False,
        "rows": len(positive),
        **who_votes(weights, names),
        "errors": {names[k]: plain(errors[k]) for k in order.tolist()},
        "pairs": listed_pairs(rng, kappas, errors, weights),
        "hard": {
            "shown": len(shown),
            "total": len(hard_rows),
            "found_by_none": int((~(yes & counts)[hard_rows].any(axis=1)).sum()),
            "names": [names[k] for k in heaviest.tolist()],
            "says": [
                [int(yes[row, k]) if counts[row, k] else None for row in shown.tolist()]
                for k in heaviest.tolist()
            ],
        },
    }


def who_votes(weights: Vector, names: list[str]) -> dict[str, Any]:
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


def voter_names(classifier: Any) -> list[str]:
    """The names of a pool's voters; trees are numbered from 1."""
    named = getattr(classifier._voters, "names", None)
    return list(named or (f"tree {k + 1}" for k in range(len(classifier.weights_))))


def rows_to_look_at(positive: Mask, seed: int = 0) -> NDArray[np.intp]:
    """Up to ``MAX_ROWS`` rows, of each class at most half where both have more."""
    rng = np.random.default_rng(seed)
    sides = [np.flatnonzero(positive), np.flatnonzero(~positive)]
    room = MAX_ROWS // 2
    few = min(len(side) for side in sides)
    caps = [room if len(side) == few else MAX_ROWS - min(few, room) for side in sides]
    taken = [rng.permutation(side)[:cap] for side, cap in zip(sides, caps, strict=True)]
    return np.sort(np.concatenate(taken))


def _pairs(yes: Mask, positive: Mask, counts: Mask) -> tuple[Vector, Vector]:
    """Kappa of each pair, and each voter's error, on the votes that count."""
    sizes = np.array([max((~positive).sum(), 1), max(positive.sum(), 1)])
    D = (1.0 / sizes[positive.astype(np.intp)])[:, None]
    said, denied = (yes & counts).astype(float), (~yes & counts).astype(float)
    a, b, d = said.T @ (D * said), said.T @ (D * denied), denied.T @ (D * denied)
    c = b.T
    below = (a + b) * (b + d) + (a + c) * (c + d)
    kappa = np.where(
        below > 0, 2 * (a * d - b * c) / np.where(below > 0, below, 1), b + c == 0
    )
    wrong = (denied * positive[:, None], said * ~positive[:, None])
    judged = (counts & positive[:, None], counts & ~positive[:, None])
    rates = [
        w.sum(axis=0) / np.maximum(n.sum(axis=0), 1)
        for w, n in zip(wrong, judged, strict=True)
    ]
    return kappa, (rates[0] + rates[1]) / 2


def listed_pairs(
    rng: np.random.Generator, kappas: Vector, errors: Vector, weights: Vector
) -> dict[str, Any]:
    """Points of the kappa-error diagram: pairs with weight first, the others drawn."""
    j, k = np.triu_indices(len(weights), 1)
    both = (weights[j] > 0) & (weights[k] > 0)
    shown = rng.permutation(len(j))
    shown = np.sort(shown[np.argsort(~both[shown], kind="stable")][:MAX_PAIRS])
    mean = kappas[j, k].mean() if len(j) else None
    among = kappas[j, k][both].mean() if both.any() else None
    return {
        "total": len(j),
        "mean_kappa": plain(mean),
        "mean_kappa_weighted": plain(among),
        "kappa": [plain(value) for value in kappas[j, k][shown]],
        "error": [plain(value) for value in (errors[j] + errors[k])[shown] / 2],
        "weighted": both[shown].tolist(),
    }


def plain(value: Any) -> float | None:
    """Rounded for the page; None where there is none."""
    return None if value is None or np.isnan(value) else round(float(value), 4)


def voters_of_fit(classifier: Any) -> dict[str, Any]:
    """The voters' figures on the rows of the fit, from votes on rows unseen by each.

    For a classifier that was fitted just now, since the votes are not saved with it.
    """
    if len(classifier.classes_) > 2:
        from .class_voters import class_voters_of_fit

        return class_voters_of_fit(classifier)
    ballots = classifier._ballots
    positive = ballots.signs > 0
    rows = rows_to_look_at(positive)
    votes, unseen = votes_at(ballots, rows)
    # Turned back to the vote for the positives, whatever their place among the classes.
    vote = classifier.oob_decision_function_
    if classifier.pos_label_ != classifier.classes_[1]:
        vote = -vote
    figures = voter_figures(
        votes,
        positive[rows],
        classifier.weights_,
        voter_names(classifier),
        threshold=float(classifier.threshold_),
        hard=(positive & (vote <= 0))[rows],
        unseen=unseen,
    )
    return {**figures, "of_fit": True}


def votes_at(ballots: Any, rows: NDArray[np.intp]) -> tuple[NDArray[Any], Mask | None]:
    """The votes on some rows of the fit, and which of them count; None for all."""
    if not ballots.at_hand:  # cast again
        votes, counts = ballots.votes_at(rows)
        return votes, counts
    if ballots.unseen is None:
        return ballots.votes[rows], None
    n = len(ballots.votes)
    known = [np.unpackbits(bits, count=n)[rows] for bits in ballots.unseen]
    return ballots.votes[rows], np.stack(known, axis=1).astype(bool)
