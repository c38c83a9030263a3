"""What the page of two classes needs beside the summary."""

from __future__ import annotations

from typing import Any

from . import words
from .charts import draw_all
from .tables import all_rows

RATIOS = (
    *(0.1, 0.2, 0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70),
    *(100, 150, 200, 300, 500, 700, 1000, 2000, 5000, 10_000),
)
"""What a miss may cost, in false alarms: the steps of the slider."""


def fill_two(said: dict[str, Any]) -> dict[str, Any]:
    """The values of the template."""
    values: dict[str, Any] = {"flagged_share": "", "promise_words": "", **all_rows(said)}
    cuts = None
    if said["labelled"]:
        decision = said["decision"]
        flagged = decision["found"] + decision["false_alarms"]
        values["flagged_share"] = words.percent(flagged / said["data"]["judged"])
        if not said["certificate"]["why"]:
            values["promise_words"] = words.promise_words(said)
        cuts = said["cuts"] | _slider(said["cost"])
    charts = dict.fromkeys(("pr", "roc", "calibration", "kappa", "hard"), "")
    return {
        **values,
        "live_id": "cuts",
        "live": cuts,
        "charts": charts | draw_all(said),
        "basis": words.basis(said),
        "lead": words.lead(said),
        "data_words": words.data_words(said),
        "hard_words": words.hard_words(said),
        "errors_words": "Errors count both classes alike.",
        "alone_words": "Strong: the voter alone would have flagged it.",
    }


def _slider(cost: list[float] | None) -> dict[str, Any]:
    """The steps of the cost slider; it starts where the model was fitted for, if known."""
    alarm, miss = cost if cost and cost[0] > 0 else (1.0, 10.0)
    ratio = miss / alarm
    ratios = sorted({*RATIOS, ratio})
    return {"ratios": ratios, "start": ratios.index(ratio), "unit": alarm}
