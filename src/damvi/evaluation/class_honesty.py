"""The truth and the decisions of rows of three or more classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..io import Model
from ..tables import label_texts, pick

if TYPE_CHECKING:
    import pandas as pd

MOST_NAMED = 10


def class_truth_of(model: Model, frame: pd.DataFrame, column: str) -> NDArray[np.intp]:
    """The place of each row's class; labels that the model does not know are refused."""
    labels = label_texts(pick(frame, column, "target"))
    if labels.isna().any():
        raise ValueError(
            f"the target {column!r} is missing in {int(labels.isna().sum()):,} rows; drop "
            f"them first"
        )
    known = {label: place for place, label in enumerate(model.target.classes)}
    places = labels.map(known)
    strange = labels[places.isna().to_numpy()]
    if len(strange):
        named = [repr(label) for label in list(known)[:MOST_NAMED]]
        more = f" and {len(known) - MOST_NAMED:,} more" if len(known) > MOST_NAMED else ""
        raise ValueError(
            f"the target {column!r} has {len(strange):,} rows of classes such as "
            f"{strange.iloc[0]!r}, but the model knows {', '.join(named)}{more}"
        )
    return places.to_numpy(dtype=np.intp)


def decide_classes(
    classifier: Any, vote: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The probabilities and the place of the class decided for."""
    contest = classifier._contest
    decided = contest.winners(contest.scores(vote, classifier.threshold_))
    return contest.chances(vote, classifier._calibrator), decided
