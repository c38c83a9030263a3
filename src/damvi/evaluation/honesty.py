"""The vote on each row of a table: for rows of the fit, the one that was out of sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..fingerprint import row_prints, without_labels
from ..modelfile import Model
from ..tabular import label_texts

if TYPE_CHECKING:
    import pandas as pd

Prints = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Judged:
    """Rows with what the model says of them, honestly.

    Attributes
    ----------
    vote : ndarray of shape (n,)
        NaN for rows of the fit that every voter was trained on.
    probability : ndarray of shape (n,)
    flagged : ndarray of bool, shape (n,)
    positive : ndarray of bool, shape (n,), or None
        The truth, if the table has the target.
    of_fit : ndarray of bool, shape (n,)
        Rows that the model was fitted on, or that have the same values as one of them:
        their votes are the stored ones, out of sample.
    """

    vote: NDArray[np.float64]
    probability: NDArray[np.float64]
    flagged: NDArray[np.bool_]
    positive: NDArray[np.bool_] | None
    of_fit: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.vote)

    @property
    def has_vote(self) -> NDArray[np.bool_]:
        """Rows that can be judged."""
        return ~np.isnan(self.vote)

    @property
    def words(self) -> str:
        """Where the votes come from, for the user to read."""
        n, known = len(self), int(self.of_fit.sum())
        if known == 0:
            said = f"All {n:,} rows are new to the model."
        else:
            which = f"All {n:,} rows" if known == n else f"{known:,} of {n:,} rows"
            said = (
                f"{which} are rows of the fit: for these the stored out-of-sample votes "
                f"are used, never the model's own."
            )
        unknown = int((~self.has_vote).sum())
        if unknown:
            said += f" {unknown:,} rows have none and are left out."
        return said


def honest_rows(model: Model, frame: pd.DataFrame, target: str | None = None) -> Judged:
    """Judge a table, with out-of-sample votes for the rows that the model knows.

    Parameters
    ----------
    model : Model
    frame : DataFrame
        As :func:`~damvi.tabular.read_table` reads it, with
        ``as_text=[*model.schema.text_columns, model.target.name]``.
    target : str, optional
        The column that has the truth. By default the model's own, if it is there.

    Returns
    -------
    judged : Judged
        Rows whose truth is missing raise a ValueError; drop them first.
    """
    name = model.target.name if target is None else target
    positive = None
    if target is not None or name in frame.columns:
        positive = truth_of(model, frame, name)
    encoded = model.schema.encode(frame)
    stored, of_fit = _stored_votes(model, encoded, positive)
    vote = np.where(of_fit, stored, np.nan)
    if not of_fit.all():
        new = np.flatnonzero(~of_fit)
        vote[new] = model.classifier.vote(encoded.iloc[new])
    return Judged(vote, *decide(model.classifier, vote), positive, of_fit)


def truth_of(model: Model, frame: pd.DataFrame, column: str) -> NDArray[np.bool_]:
    """Which rows are positive; labels that the model does not know are refused."""
    from ..tabular import pick
    from ..tabular.labels import listed

    labels = label_texts(pick(frame, column, "target"))
    if labels.isna().any():
        raise ValueError(
            f"the target {column!r} is missing in {int(labels.isna().sum()):,} rows; drop "
            f"them first"
        )
    positive = (labels == model.target.positive).to_numpy(dtype=bool)
    # A model of one class against several others takes any of them as negative.
    if model.target.negative:
        strange = labels[~positive & (labels != model.target.negative).to_numpy(bool)]
        if len(strange):
            others = listed(strange.unique().tolist())
            raise ValueError(
                f"the target {column!r} has {len(strange):,} rows of {others}, "
                f"but the model knows {model.target.positive!r} (positive) and "
                f"{model.target.negative!r}"
            )
    return positive


def decide(
    classifier: Any, vote: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The probability and the decision that a vote stands for; none without a vote."""
    calibrator = classifier._calibrator
    probability = (1 + vote) / 2 if calibrator is None else calibrator(vote)
    with np.errstate(invalid="ignore"):
        flagged = vote > classifier.threshold_
        if classifier._majority == 1:  # the majority class wins a tie
            flagged |= vote == classifier.threshold_
    return probability, flagged


def _stored_votes(
    model: Model, encoded: Any, positive: NDArray[np.bool_] | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The votes of the rows that are known from the fit, and which rows these are.

    Of rows with the same values and label, the first goes with the first of the fit, and
    so on. A row with the values of a known one, but another label, or once too often, gets
    the vote of the first: the model has seen these values, so its own vote would flatter.
    """
    known = model.training.prints
    signs = np.zeros(len(encoded)) if positive is None else positive
    prints = row_prints(encoded, signs)
    place = np.full(len(prints), -1)
    if positive is not None:
        place = _match_in_turn(prints, known)
    left = np.flatnonzero(place < 0)
    place[left] = _match_in_turn(without_labels(prints[left]), without_labels(known))
    left = np.flatnonzero(place < 0)
    place[left] = _match_first(without_labels(prints[left]), without_labels(known))
    of_fit = place >= 0
    return np.where(of_fit, model.training.vote[place], np.nan), of_fit


def _match_in_turn(prints: Prints, known: Prints) -> NDArray[np.intp]:
    """For each print its place among the known, the k-th with the k-th; -1 for none."""
    order = np.argsort(known, kind="stable")
    ranked = known[order]
    first = np.searchsorted(ranked, prints, side="left")
    count = np.searchsorted(ranked, prints, side="right") - first
    turn = _turns(prints)
    found = turn < count
    place = np.full(len(prints), -1)
    place[found] = order[(first + turn)[found]]
    return place


def _match_first(prints: Prints, known: Prints) -> NDArray[np.intp]:
    distinct, first = np.unique(known, return_index=True)
    at = np.searchsorted(distinct, prints)
    there = at < len(distinct)
    there[there] = distinct[at[there]] == prints[there]
    place = np.full(len(prints), -1)
    place[there] = first[at[there]]
    return place


def _turns(prints: Prints) -> NDArray[np.intp]:
    """How many of the same came before each."""
    order = np.argsort(prints, kind="stable")
    ranked = prints[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    lengths = np.diff(np.append(starts, len(ranked)))
    turns = np.empty(len(prints), dtype=np.intp)
    turns[order] = np.arange(len(prints)) - np.repeat(starts, lengths)
    return turns
