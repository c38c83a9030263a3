"""Rows of the user's table explained, in the user's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..io import Model
from .class_table import ClassExplained, explain_classes
from .importances import Importances, importances
from .shapley import Contributions, contributions
from .telling import chosen_rows, notes_of, parts_of_row, texts_of


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
                    **parts_of_row(parts, i, self.values[i]),
                }
                for i, number in enumerate(self.numbers)
            ],
        }


def explain(
    model: Model,
    frame: Any,
    rows: Sequence[int] | None = None,
    *,
    label: str | None = None,
    voters: Sequence[str],
    seed: int = 0,
) -> Explained | ClassExplained:
    """Explain rows of a table: those asked for, or the highest scored.

    Parameters
    ----------
    model : Model
    frame : DataFrame
        See :func:`damvi.tables.read_table`. It also gives the rows to compare with.
    rows : sequence of int, optional
        Counted from 1. Default: the 20 with the highest votes.
    label : str, optional
        The class whose votes to explain, of three or more. Default: for each row the one
        that the model decides for.
    voters : sequence of str
        The voters' names.
    seed : int, default=0
    """
    classifier = model.classifier
    if label is not None or len(classifier.classes_) > 2:
        return explain_classes(model, frame, rows, label=label, voters=voters, seed=seed)
    X = model.schema.encode(frame)
    names = [column.name for column in model.schema.used for _ in column.features]
    chosen = chosen_rows(rows, classifier.vote(X))
    parts = contributions(classifier, X.iloc[chosen], X, names, voters, seed=seed)
    return Explained(
        numbers=chosen + 1,
        values=texts_of(frame, parts.columns, chosen),
        parts=parts,
        ranked=importances(classifier, X, names, seed=seed),
        flagged=classifier.predict(X.iloc[chosen]) == classifier.pos_label_,
        notes=notes_of(model, X.iloc[chosen]),
    )
