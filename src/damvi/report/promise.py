"""The certificate of the rows, or why there is none."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import certify
from .judged import Judged

OF_THE_FIT = (
    "No promise can be made from rows that the model was fitted on. Keep some labelled rows "
    "apart, use them for nothing else, and make the report on these."
)


def promise(judged: Judged, positive: NDArray[np.bool_]) -> dict[str, Any]:
    """What can be promised on rows to come: plain values, or a reason."""
    if judged.of_the_fit.any():
        return {"why": OF_THE_FIT}
    classifier = judged.model.classifier
    truth = np.where(positive, True, False)
    notes = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = certify(classifier, judged.X, truth).as_dict()
            notes = [str(each.message) for each in caught]
    except ValueError as error:
        return {"why": f"No certificate: {error}."}
    return {"why": None, "notes": notes, **found}
