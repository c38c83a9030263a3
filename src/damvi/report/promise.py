"""The certificate of the rows, or why there is none."""

from __future__ import annotations

import warnings
from typing import Any

from numpy.typing import NDArray

from ..certificate import certify
from .material import Gathered

OF_THE_FIT = (
    "No promise can be made from rows that the model was fitted on. Keep some labelled "
    "rows apart, use them for nothing else, and make the report on these."
)


def promise(material: Gathered, truth: NDArray[Any]) -> dict[str, Any]:
    """What can be promised on rows to come: plain values, or a reason.

    Whether rows are of the fit, or merely look like some of it, is for
    :func:`damvi.certificate.certify` to judge.
    """
    if material.judged.of_fit.all():
        return {"why": OF_THE_FIT}
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = certify(material.model.classifier, material.X, truth)
    except ValueError as error:
        return {"why": f"{OF_THE_FIT} ({error}.)"}
    return {"why": None, "notes": [str(each.message) for each in caught], **found.as_dict()}
