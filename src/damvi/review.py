"""Which rows a person should look at: those whose label is worth having, or in doubt.

A row without a label is worth a look if it is likely one of those that are looked for. A
row with a label is, if those voters say otherwise that were not trained on it.
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
"""Of the weight of the voters, for these to disagree."""
DOUBTS = ("missed", "any")
"""Which labels may be wrong: those of the most frequent class, or all."""
OWN = ("row", "label", "score", "probability", "decision", "chance wrong", "why")
"""The columns of the rows to look at."""


@dataclass(frozen=True, eq=False, repr=False)
class Review:
    """Rows to look at. ``print`` it to read it.

    Attributes
    ----------
    rows : DataFrame
        The most worth a look first: ``row`` (counted from 1), the columns that were asked
        for, ``score``, ``probability`` and ``decision`` as of
        :meth:`damvi.model.Model.predict` (of three or more classes those of the class
        decided for), and ``why``. Where the table has the target also ``label``, and the
        ``chance wrong`` of those in doubt: rows with a label come first.
    words : tuple of str
        By whom rows were judged, how many were to be chosen from, and what the chances
        rest on.
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
    """Choose rows of a table; see :meth:`damvi.model.Model.review`."""
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
    # Training rows without a label here had one when the model was fitted.
    others = np.flatnonzero(~labelled & judged.has_vote & ~judged.of_fit)
    # Each kind of row has half of the budget, and what the other leaves of its own.
    n = min(len(doubts), max(budget // 2, budget - len(others)))
    doubts = doubts.first(n)
    worth = _worth(model, frame, judged, others, budget - n)
    words = [replace(judged, alike={}).words, *doubts.words, *worth.words]
    known = int((~labelled & judged.of_fit).sum())
    if known:
        out = (
            "training row is left out: its label is",
            "training rows are left out: their labels are",
        )
        words.append(f"{counted(known, *out)} known.")
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
    """Places of rows, the chance that the label of each is wrong, and why it is chosen."""

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
    """Rows without a label that are worth one: the likeliest, those flagged and the next.

    Rows closest to the threshold on both sides, or spread by how the voters part on them,
    teach no more and find less: see benchmarks/review.py.
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
            some = f"{own[c]:.0%} of their weight is for {names[c]!r}"
            why.append(f"below the threshold: the voters disagree, {some}")
        else:
            why.append("below the threshold, the next likeliest")
    words = f"{len(rows):,} of {len(others):,} rows without a label, the likeliest first."
    return _Chosen(rows, np.full(len(rows), np.nan), why, (words,))


def _doubts(
    model: ModelParts, judged: Judged, labelled: NDArray[np.bool_], only: int | None
) -> _Chosen:
    """Rows whose label the vote contradicts, by the chance that it is wrong."""
    some = np.flatnonzero(labelled & judged.has_vote)
    if judged.labels is None or not len(some):
        return _Chosen(np.zeros(0, np.intp), np.zeros(0), [])
    labels, names = judged.labels[some], class_names(model.target)
    fitted = FittedVote(model.classifier).labels
    chances = np.zeros((len(some), len(names)))
    chances[:, fitted.reported] = judged.probability[some].reshape(len(some), -1)
    chances[:, fitted.usual] = 0.0  # told, or not, it is what the others leave
    chances[:, fitted.usual] = np.clip(1 - chances.sum(axis=1), 0.0, 1.0)
    wrong = chance_wrong(labels, chances, only)
    against = judged.decided[some] != labels
    if only is not None:
        against &= labels == only
    against = np.flatnonzero(against)
    order = against[np.lexsort((chances[against, labels[against]], -wrong[against]))]
    rows, decided = some[order], judged.decided[some[order]]
    why = [
        f"the vote is for {names[c]!r}, not {names[label]!r}"
        for label, c in zip(labels[order], decided, strict=True)
    ]
    asked = np.count_nonzero(labels == only) if only is not None else len(some)
    which = f" {names[only]!r}" if only is not None else ""
    words = (
        f"The vote contradicts {len(rows):,} of the {asked:,} labels{which}. The chance "
        f"that one is wrong takes labels to be wrong by the class of the row alone, as "
        f"often as these votes suggest: it is rough, and too high where classes overlap."
    )
    trusted = "Other labels are taken to be right; --doubt any (doubt='any') doubts all."
    return _Chosen(rows, wrong[order], why, (words, trusted)[: 1 if only is None else 2])


def chance_wrong(labels: Numbers, probability: Floats, only: int | None = None) -> Floats:
    """The chance that each label is wrong, by Bayes' rule.

    A row is of each class by its probability, and rows of that class have this label as
    often as :func:`label_noise` finds.

    Parameters
    ----------
    labels : array of int, shape (n,)
    probability : array of shape (n, C)
        Calibrated, and of each row by what has not seen its label.
    only : int, optional
        The one label that may be wrong. By default each may.

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
    """How often rows of each class (column) have each label (row): an estimate.

    As confident learning does (Northcutt, Jiang and Chuang, 2021): a row counts as of the
    class whose probability is as high as it is for the rows with that label on average.
    Where classes overlap, as most do, hard rows count as wrong labels too. Parameters are
    those of :func:`chance_wrong`.
    """
    n_classes = probability.shape[1]
    known = np.bincount(labels, minlength=n_classes)
    usual = [
        probability[labels == c, c].mean() if known[c] else 2 for c in range(n_classes)
    ]
    above = np.where(probability >= usual, probability, -1.0)
    sure = above.max(axis=1) >= 0
    counts = np.eye(n_classes)  # one right label of each class, as a start
    np.add.at(counts, (labels[sure], above.argmax(axis=1)[sure]), 1.0)
    if only is not None:
        right = np.diag(counts.sum(axis=1))
        counts = np.where(np.arange(n_classes)[:, None] == only, counts, right)
    joint = counts / counts.sum(axis=1, keepdims=True) * np.maximum(known, 1)[:, None]
    return np.asarray(joint / joint.sum(axis=0))
