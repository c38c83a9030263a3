"""What is told of an explained row, of two classes or of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fingerprint import row_prints, without_labels
from ..io import Model
from .columns import as_text
from .shapley import Contributions

MOST_ROWS = 20

OWN_VOTE = (
    "Some of these rows were in the fit. What is explained is the vote of the model as it "
    "is, which knows them; how good it is, damvi evaluate says."
)
MAY_KNOW = OWN_VOTE.replace("Some of these rows were", "These rows may have been")


def chosen_rows(rows: Sequence[int] | None, score: NDArray[np.float64]) -> NDArray[np.intp]:
    """Places of the rows asked for, counted from 1, or of the highest scores."""
    if rows is None:
        return np.argsort(-score, kind="stable")[:MOST_ROWS]
    beyond = [number for number in rows if not 1 <= number <= len(score)]
    if beyond:
        raise ValueError(
            f"there is no row {beyond[0]:,}; the table has rows 1 to {len(score):,}"
        )
    return np.array(list(dict.fromkeys(rows)), dtype=np.intp) - 1


def texts_of(frame: Any, columns: Sequence[str], rows: NDArray[np.intp]) -> list[list[str]]:
    """The values of the rows as their user would write them."""
    return [[as_text(frame[name].iloc[i]) for name in columns] for i in rows]


def notes_of(model: Model, X: Any) -> list[str]:
    """What should be known beside the explanation of these rows."""
    told = row_prints(X, np.zeros(len(X)))
    known = np.isin(without_labels(told), without_labels(model.training.prints))
    if known.any():
        return [OWN_VOTE]
    # Of a fit on very many rows, few are remembered.
    return [MAY_KNOW] if model.classifier._print_step > 1 else []


def parts_of_row(parts: Contributions, i: int, values: Sequence[str]) -> dict[str, Any]:
    """What the columns and the voters add to the vote on a row, as plain values."""
    return {
        "columns": [
            {
                "name": name,
                "value": values[j],
                "contribution": float(parts.by_column[i, j]),
                "standard_error": _or_none(parts.error[i, j]),
            }
            for j, name in enumerate(parts.columns)
        ],
        "voters": [
            {"name": name, "contribution": float(parts.by_voter[i, k])}
            for k, name in enumerate(parts.voters)
            if parts.by_voter[i, k] != 0
        ],
    }


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
