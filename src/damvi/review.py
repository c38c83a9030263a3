"""Rows for human review: unlabelled ones worth labelling, and doubtful labels.

An unlabelled row is worth a look if it is likely positive. A labelled row is if the voters
that were not trained on it contradict its label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .evaluation import UNKNOWN, FittedVote, Judged, class_names, honest_rows
from .io import ModelParts
from .messages import counted
from .tables import check_carried, pick
from .validation import require_number_of_rows

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]

LEAST_SHARE = 0.05
"""The least share of the weight for a minority of voters to be mentioned."""
DOUBTS = ("missed", "any")
"""Which labels may be wrong: the most frequent class only, or any."""
OWN = ("row", "label", "score", "probability", "decision", "chance wrong", "why")
"""Columns of the table of rows to review."""


@dataclass(frozen=True, eq=False, repr=False)
class Review:
    """Rows to review. ``print`` it to read it.

    Attributes
    ----------
    rows : DataFrame
        The most urgent first: ``row`` (counted from 1), the requested columns, ``score``,
        ``probability`` and ``decision`` as from :meth:`damvi.model.Model.predict` (with
        three or more classes, of the predicted class), and ``why``. If the table has the
        target, also ``label`` and, for doubtful labels, ``chance wrong``; labelled rows
        come first.
    words : tuple of str
        How the rows were scored and selected, and what the chances assume.
    """

    rows: pd.DataFrame
    words: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"rows": self.rows.to_dict("records"), "words": list(self.words)}

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return "\n".join([self.rows.round(3).to_string(index=False), *self.words])

    def _repr_html_(self) -> str:
        told = "".join(f"<p>{escape(text)}</p>" for text in self.words)
        return self.rows.round(3).to_html(index=False) + told


def review(
    model: ModelParts,
    frame: pd.DataFrame,
    budget: int = 50,
    *,
    target: str | None = None,
    doubt: str = "missed",
    carried: Sequence[str] = (),
) -> Review:
    """Pick rows of a table; see :meth:`damvi.model.Model.review`."""
    import pandas as pd

    require_number_of_rows(budget, "budget")
    if doubt not in DOUBTS:
        raise ValueError(f"doubt={doubt!r} must be {' or '.join(map(repr, DOUBTS))}")
    check_carried(carried, list(frame.columns), OWN)
    if target is not None:
        pick(frame, target, "target")
    judged = honest_rows(model, frame, target, partly=True)
    labelled = np.zeros(len(frame), bool)
    if judged.labels is not None:
        labelled = judged.labels != UNKNOWN
    usual = FittedVote(model.classifier).labels.usual
    doubts = _doubts(model, judged, labelled, usual if doubt == "missed" else None)
    # Training rows that are unlabelled here had a label in the fit.
    others = np.flatnonzero(~labelled & judged.has_vote & ~judged.of_fit)
    # Each kind of row gets half of the budget, plus what the other does not use.
    n = min(len(doubts), max(budget // 2, budget - len(others)))
    doubts = doubts.first(n)
    worth = _worth(model, frame, judged, others, budget - n)
    words = [replace(judged, alike={}).words, *doubts.words, *worth.words]
    known = int((~labelled & judged.of_fit).sum())
    if known:
        skipped = counted(known, "training row was", "training rows were")
        words.append(f"{skipped} skipped: the label is known from the fit.")
    rows, why = np.concatenate([doubts.rows, worth.rows]), [*doubts.why, *worth.why]
    classes = pd.Series([*model.target.as_given(), None], dtype=object).to_numpy()
    own: dict[str, Any] = {"row": rows + 1}
    own |= {name: frame[name].to_numpy()[rows] for name in carried}
    if judged.labels is not None:
        own["label"] = classes[judged.labels[rows]]
    decided, places = judged.decided[rows], np.arange(len(rows))
    for what, values in (("score", judged.vote), ("probability", judged.probability)):
        columns = values.reshape(len(frame), -1)[rows]
        own[what] = columns[places, decided if columns.shape[1] > 1 else 0]
    own["decision"] = classes[decided]
    if judged.labels is not None:
        own["chance wrong"] = np.concatenate([doubts.chance, worth.chance])
    return Review(pd.DataFrame(own | {"why": why}), tuple(words))


@dataclass(frozen=True, eq=False)
class _Chosen:
    """Row indices, the chance that each label is wrong, and why each row was picked."""

    rows: Numbers
    chance: Floats
    why: list[str]
    words: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def first(self, n: int) -> _Chosen:
        return _Chosen(self.rows[:n], self.chance[:n], self.why[:n], self.words)


def _worth(
    model: ModelParts, frame: pd.DataFrame, judged: Judged, others: Numbers, n: int
) -> _Chosen:
    """Unlabelled rows worth a label: flagged ones first, then the next likeliest.

    Picking rows closest to the threshold on both sides, or by the voters' disagreement,
    teaches no more and finds fewer positives; see benchmarks/review.py.
    """
    fitted, names = FittedVote(model.classifier), class_names(model.target)
    usual, looked_for = fitted.labels.usual, fitted.labels.reported
    chance = judged.probability.reshape(len(frame), -1)
    likely = chance[:, looked_for != usual].sum(axis=1)
    rows = others[np.argsort(-likely[others], kind="stable")[:n]]
    if not len(rows):
        return _Chosen(rows, np.zeros(0), [])
    passed = rows[judged.decided[rows] == usual]
    shares = np.zeros((0, len(names)))
    if len(passed):
        votes = model.classifier.cast_votes(model.schema.encode(frame.iloc[passed]))
        each = fitted.decided_by_each(votes)
        shares = np.stack([(each == c) @ fitted.weights for c in range(len(names))], axis=1)
        shares[:, usual] = -1.0
    told, why = iter(shares), []
    for row in rows:
        if judged.decided[row] != usual:
            why.append(f"flagged as {names[judged.decided[row]]!r}")
            continue
        own = next(told)
        c = int(own.argmax())
        if own[c] >= LEAST_SHARE:
            why.append(f"below the threshold; {own[c]:.0%} of the vote is for {names[c]!r}")
        else:
            why.append("below the threshold; next most likely")
    words = f"Picked {len(rows):,} of {len(others):,} unlabelled rows, likeliest first."
    return _Chosen(rows, np.full(len(rows), np.nan), why, (words,))


def _doubts(
    model: ModelParts, judged: Judged, labelled: NDArray[np.bool_], only: int | None
) -> _Chosen:
    """Rows whose label the vote contradicts, likeliest errors first."""
    some = np.flatnonzero(labelled & judged.has_vote)
    if judged.labels is None or not len(some):
        return _Chosen(np.zeros(0, np.intp), np.zeros(0), [])
    labels, names = judged.labels[some], class_names(model.target)
    fitted = FittedVote(model.classifier).labels
    chances = np.zeros((len(some), len(names)))
    chances[:, fitted.reported] = judged.probability[some].reshape(len(some), -1)
    chances[:, fitted.usual] = 0.0  # the rest, whether reported or not
    chances[:, fitted.usual] = np.clip(1 - chances.sum(axis=1), 0.0, 1.0)
    wrong = chance_wrong(labels, chances, only)
    against = judged.decided[some] != labels
    if only is not None:
        against &= labels == only
    against = np.flatnonzero(against)
    order = against[np.lexsort((chances[against, labels[against]], -wrong[against]))]
    rows, decided = some[order], judged.decided[some[order]]
    why = [f"the vote says {names[c]!r}" for c in decided]
    asked = np.count_nonzero(labels == only) if only is not None else len(some)
    which = f" {names[only]!r}" if only is not None else ""
    words = (
        f"The vote contradicts {len(rows):,} of {asked:,} labels{which}. The chance that a "
        f"label is wrong is a rough estimate, and too high where classes overlap."
    )
    trusted = "Other labels are trusted; --doubt any (doubt='any') checks them too."
    return _Chosen(rows, wrong[order], why, (words, trusted)[: 1 if only is None else 2])


def chance_wrong(labels: Numbers, probability: Floats, only: int | None = None) -> Floats:
    """The chance that each label is wrong, by Bayes' rule.

    Combines each row's class probabilities with the label error rates estimated by
    :func:`label_noise`.

    Parameters
    ----------
    labels : array of int, shape (n,)
    probability : array of shape (n, C)
        Calibrated, out-of-sample probabilities.
    only : int, optional
        The only label that may be wrong. By default any may.

    Examples
    --------
    >>> labels = np.array([0] * 9 + [1] * 9)
    >>> surely = np.where(labels[:, None] == [0, 1], 0.9, 0.1)
    >>> surely[0] = [0.05, 0.95]
    >>> chance_wrong(labels, surely).round(2)[[0, 1, 9]]
    array([0.63, 0.01, 0.  ])
    """
    noise, rows = label_noise(labels, probability, only), np.arange(len(labels))
    evidence = noise[labels] * probability
    total = np.maximum(evidence.sum(axis=1), np.finfo(float).tiny)
    return np.asarray(np.clip(1 - evidence[rows, labels] / total, 0.0, 1.0))


def label_noise(labels: Numbers, probability: Floats, only: int | None = None) -> Floats:
    """Estimate how often rows of each class (column) have each label (row).

    This is confident learning (Northcutt, Jiang and Chuang, 2021): a row counts as of a
    class if its probability is at least the average among rows with that label. Where
    classes overlap, hard rows count as wrong labels, too. Parameters are those of
    :func:`chance_wrong`.
    """
    n_classes = probability.shape[1]
    known = np.bincount(labels, minlength=n_classes)
    usual = [
        probability[labels == c, c].mean() if known[c] else 2 for c in range(n_classes)
    ]
    above = np.where(probability >= usual, probability, -1.0)
    sure = above.max(axis=1) >= 0
    counts = np.eye(n_classes)  # start with one correct label per class
    np.add.at(counts, (labels[sure], above.argmax(axis=1)[sure]), 1.0)
    if only is not None:
        right = np.diag(counts.sum(axis=1))
        counts = np.where(np.arange(n_classes)[:, None] == only, counts, right)
    joint = counts / counts.sum(axis=1, keepdims=True) * np.maximum(known, 1)[:, None]
    return np.asarray(joint / joint.sum(axis=0))
