"""Rows for the eye: missed positives, false alarms, flagged rows, as the user has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..explanation.columns import as_text
from .material import Gathered, Material

MAX_ROWS = 50
MAX_COLUMNS = 12


def wrong_rows(
    material: Material, positive: NDArray[np.bool_], ranked: list[str], *, missed: bool
) -> dict[str, Any]:
    """The missed positives, surest first, or the false alarms, likewise."""
    judged = material.judged
    known = judged.has_vote
    if missed:
        chosen = np.flatnonzero(known & positive & ~judged.flagged)
        order = np.argsort(judged.vote[chosen], kind="stable")
    else:
        chosen = np.flatnonzero(known & ~positive & judged.flagged)
        order = np.argsort(-judged.vote[chosen], kind="stable")
    return table_of(material, chosen[order], ranked, _score(material))


def flagged_rows(material: Material, ranked: list[str]) -> dict[str, Any]:
    """The flagged rows, highest score first."""
    judged = material.judged
    chosen = np.flatnonzero(judged.has_vote & judged.flagged)
    order = np.argsort(-judged.vote[chosen], kind="stable")
    return table_of(material, chosen[order], ranked, _score(material))


def _score(material: Material) -> Callable[[int], dict[str, Any]]:
    return lambda i: {"score": float(material.judged.vote[i])}


def table_of(
    material: Gathered,
    rows: NDArray[np.intp],
    ranked: list[str],
    tell: Callable[[int], dict[str, Any]],
) -> dict[str, Any]:
    """Rows with what there is to ``tell`` of each, and their values.

    Row numbers count from 1, as in the file below its header.

    The columns that matter most come first; others, such as ids, follow while there is
    room.
    """
    shown = rows[:MAX_ROWS]
    frame = material.frame
    others = [str(name) for name in frame.columns if name != material.target]
    ids = [
        column.name
        for column in material.model.schema.columns
        if column.kind == "dropped" and column.name in others
    ]
    matter = [name for name in ranked if name in others]
    columns = list(
        dict.fromkeys([*matter[: MAX_COLUMNS - min(len(ids), 2)], *ids, *others])
    )
    columns = columns[:MAX_COLUMNS]
    return {
        "total": len(rows),
        "columns": columns,
        "left_out": max(0, len(others) - len(columns)),
        "rows": [
            {
                "row": int(material.numbers[i]),
                **tell(i),
                "values": [as_text(frame[name].iloc[i]) for name in columns],
            }
            for i in shown.tolist()
        ],
    }
