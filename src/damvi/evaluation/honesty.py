"""The vote on each row of a table: for rows of the fit, the one that was out of sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..fingerprint import kept, row_prints, without_labels
from ..io import Model
from ..tables import label_texts
from .class_honesty import class_truth_of, decide_classes
from .judged import ClassJudged, Judged
from .matching import places_of

if TYPE_CHECKING:
    import pandas as pd

Prints = NDArray[np.uint64]

LEAST_TOLD = 10
"""Rows that must turn out new, where few can be told, for all of them to count as new."""
STEP = np.uint64(0x9E3779B97F4A7C15)
"""What a label adds to a print; odd, so that no two labels add the same."""


def honest_rows(
    model: Model, frame: pd.DataFrame, target: str | None = None
) -> Judged | ClassJudged:
    """Judge a table, with out-of-sample votes for the rows that the model knows.

    Parameters
    ----------
    model : Model
    frame : DataFrame
        As :func:`~damvi.tables.read_table` reads it, with
        ``schema=model.schema, as_text=[model.target.name]``.
    target : str, optional
        The column that has the truth. By default the model's own, if it is there.

    Returns
    -------
    judged : Judged, or ClassJudged of three or more classes
        Rows whose truth is missing raise a ValueError; drop them first.
    """
    name = model.target.name if target is None else target
    many = len(model.classifier.classes_) > 2
    truth: Any = None
    if target is not None or name in frame.columns:
        truth = (class_truth_of if many else truth_of)(model, frame, name)
    vote, of_fit, untold = honest_votes(model, model.schema.encode(frame), truth)
    about: dict[str, Any] = {"untold": untold, "step": model.classifier._print_step}
    if many:
        decided = decide_classes(model.classifier, vote)
        return ClassJudged(vote, of_fit, *decided, truth, **about)
    return Judged(vote, of_fit, *decide(model.classifier, vote), truth, **about)


def honest_votes(
    model: Model, encoded: Any, truth: NDArray[Any] | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_], int]:
    """The votes, stored ones for the rows that are known, and which rows these are.

    Of a fit on very many rows only a sample is known. Where rows of that are met, all rows
    that the sample cannot tell count as rows of the fit, without a vote; the last result
    is their number.
    """
    training = model.training
    values = without_labels(row_prints(encoded, np.zeros(len(encoded))))
    known = without_labels(training.prints)
    if truth is None:
        place = places_of(values, values, known, known)
    else:
        keys = _labelled(values, truth), _labelled(known, training.labels)
        place = places_of(keys[0], values, keys[1], known)
    of_fit = place >= 0
    found = np.flatnonzero(of_fit)
    step, untold = model.classifier._print_step, 0
    if step > 1 and truth is not None and _are_some_of_fit(len(found), values, step):
        of_fit[:] = True
        of_fit[kept(values, step)] = False
        untold = int(of_fit.sum())
        of_fit[found] = True
    vote = np.full((len(values), *training.vote.shape[1:]), np.nan)
    vote[found] = training.vote[place[found]]
    if not of_fit.all():
        new = np.flatnonzero(~of_fit)
        vote[new] = model.classifier.vote(encoded.iloc[new])
    return vote, of_fit, untold


def _are_some_of_fit(n_found: int, values: Prints, step: int) -> bool:
    """Whether there are rows of the fit among these, by those that are remembered."""
    if n_found:
        return True
    told = len(kept(values, step))
    if told < LEAST_TOLD:
        raise ValueError(
            f"the model remembers one in {step} of the rows that it was fitted on, so it "
            f"can tell for {told} of these {len(values):,} rows whether they are among "
            f"them, and {LEAST_TOLD} are needed; give it at least "
            f"{2 * step * LEAST_TOLD:,} rows at a time"
        )
    return False


def _labelled(values: Prints, truth: NDArray[Any]) -> Prints:
    """Prints that also tell labels apart."""
    labelled: Prints = values + truth.astype(np.uint64) * STEP
    return labelled


def truth_of(model: Model, frame: pd.DataFrame, column: str) -> NDArray[np.bool_]:
    """Which rows are positive; labels that the model does not know are refused."""
    from ..tables import pick
    from ..tables.labels import listed

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
