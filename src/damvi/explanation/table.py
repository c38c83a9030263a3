"""Rows of the user's table explained, in the user's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fingerprint import row_prints, without_labels
from ..modelfile import Model
from .columns import as_text
from .importances import Importances, importances
from .shapley import Contributions, contributions

MOST_ROWS = 20

OWN_VOTE = (
    "Some of these rows were in the fit. What is explained is the vote of the model as it "
    "is, which knows them; how good it is, damvi evaluate says."
)


@dataclass(frozen=True, eq=False)
class Explained:
    """What a model makes of some rows of a table.

    Attributes
    ----------
    numbers : ndarray of int
        The rows explained, counted from 1 below the header.
    values : list of list of str
        Their values, by row and column of ``parts``.
    parts : Contributions
    ranked : Importances
        Of all columns, over the table.
    flagged : ndarray of bool
    notes : list of str
        What the user should know beside it.
    """

    numbers: NDArray[np.intp]
    values: list[list[str]]
    parts: Contributions
    ranked: Importances
    flagged: NDArray[np.bool_]
    notes: list[str]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON; NaN is None."""
        parts = self.parts
        return {
            "importances": self.ranked.as_dict(),
            "method": parts.words,
            "base": parts.base,
            "notes": self.notes,
            "rows": [
                {
                    "row": int(number),
                    "vote": float(parts.vote[i]),
                    "flagged": bool(self.flagged[i]),
                    "columns": [
                        {
                            "name": name,
                            "value": self.values[i][j],
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
                for i, number in enumerate(self.numbers)
            ],
        }


def explain(
    model: Model,
    frame: Any,
    rows: Sequence[int] | None = None,
    *,
    voters: Sequence[str],
    seed: int = 0,
) -> Explained:
    """Explain rows of a table: those asked for, or the highest scored.

    Parameters
    ----------
    model : Model
    frame : DataFrame
        See :func:`damvi.tabular.read_table`. It also gives the rows to compare with.
    rows : sequence of int, optional
        Counted from 1. Default: the 20 with the highest votes.
    voters : sequence of str
        The voters' names.
    seed : int, default=0
    """
    classifier = model.classifier
    X = model.schema.encode(frame)
    names = [column.name for column in model.schema.used for _ in column.features]
    vote = classifier.vote(X)
    if rows is None:
        chosen = np.argsort(-vote, kind="stable")[:MOST_ROWS]
    else:
        chosen = np.array(list(dict.fromkeys(rows)), dtype=np.intp) - 1
        beyond = [number for number in rows if not 1 <= number <= len(vote)]
        if beyond:
            raise ValueError(
                f"there is no row {beyond[0]:,}; the table has rows 1 to {len(vote):,}"
            )
    parts = contributions(classifier, X.iloc[chosen], X, names, voters, seed=seed)
    told = row_prints(X.iloc[chosen], np.zeros(len(chosen)))
    known = np.isin(without_labels(told), without_labels(model.training.prints))
    return Explained(
        numbers=chosen + 1,
        values=[[as_text(frame[name].iloc[i]) for name in parts.columns] for i in chosen],
        parts=parts,
        ranked=importances(classifier, X, names, seed=seed),
        flagged=classifier.predict(X.iloc[chosen]) == classifier.pos_label_,
        notes=[OWN_VOTE] if known.any() else [],
    )


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
