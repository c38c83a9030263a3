"""Rows of the user's table explained, class by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..io import Model
from .importances import Importances, importances
from .one_class import ForClass, one_score
from .shapley import Contributions, contributions
from .telling import chosen_rows, notes_of, parts_of_row, texts_of


@dataclass(frozen=True, eq=False)
class ClassRow:
    """One row, and what its votes for a class are made of.

    Attributes
    ----------
    number : int
        Counted from 1 below the header.
    values : list of str
        By column of ``parts``.
    label : str
        The class that is explained.
    decided : str
        The class that the model decides for.
    parts : Contributions
        Of this row alone.
    """

    number: int
    values: list[str]
    label: str
    decided: str
    parts: Contributions

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "row": self.number,
            "class": self.label,
            "decided": self.decided,
            "vote": float(self.parts.vote[0]),
            "base": self.parts.base,
            **parts_of_row(self.parts, 0, self.values),
        }


@dataclass(frozen=True, eq=False)
class ClassExplained:
    """What a model of three or more classes makes of some rows of a table.

    Attributes
    ----------
    rows : list of ClassRow
    ranked : Importances
        Of all columns, over the table.
    notes : list of str
        What the user should know beside it.
    """

    rows: list[ClassRow]
    ranked: Importances
    notes: list[str]

    @property
    def words(self) -> str:
        """The method, for the user to read."""
        behind = self.rows[0].parts.background
        return (
            f"The score is the share of the vote for the class. Columns: Shapley values "
            f"sampled against {behind} rows of the data ({2 * behind} orders of the "
            f"columns); they sum to the score less its mean on these rows. Voters: weight "
            f"times what each gives to the class; they sum to the score. Both say what the "
            f"model does, not what causes what."
        )

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {
            "importances": self.ranked.as_dict(),
            "method": self.words,
            "notes": self.notes,
            "rows": [row.as_dict() for row in self.rows],
        }


def explain_classes(
    model: Model,
    frame: Any,
    rows: Sequence[int] | None,
    *,
    label: str | None,
    voters: Sequence[str],
    seed: int,
) -> ClassExplained:
    """Explain rows by the votes for ``label``, or for the class that each is given.

    Without ``rows``: the 20 with the highest votes for ``label``, or with the least votes
    for the most frequent class.
    """
    classifier, names = model.classifier, model.target.classes
    place = None if label is None else place_of(model, label)
    X = model.schema.encode(frame)
    features = [column.name for column in model.schema.used for _ in column.features]
    score = (
        one_score(classifier, X) if place is None else ForClass(classifier, place).vote(X)
    )
    chosen = chosen_rows(rows, score)
    contest = classifier._contest
    decided = contest.winners(classifier.decision_function(X.iloc[chosen]))
    told = decided if place is None else np.full(len(chosen), place)
    parts = _by_class(classifier, X, chosen, told, features, voters, seed)
    values = texts_of(frame, parts[0].columns, chosen)
    return ClassExplained(
        rows=[
            ClassRow(int(at) + 1, values[i], names[told[i]], names[decided[i]], parts[i])
            for i, at in enumerate(chosen)
        ],
        ranked=importances(classifier, X, features, seed=seed),
        notes=notes_of(model, X.iloc[chosen]),
    )


def place_of(model: Model, label: str) -> int:
    """Where a class is among those of the model."""
    names = model.target.classes
    if not names:
        raise ValueError(
            f"the model has two classes, and its scores are those of "
            f"{model.target.positive!r} already; leave the class out"
        )
    if label not in names:
        known = ", ".join(repr(name) for name in names[:10])
        raise ValueError(f"there is no class {label!r}; the model knows {known}")
    return names.index(label)


def _by_class(
    classifier: Any,
    X: Any,
    chosen: NDArray[np.intp],
    told: NDArray[np.intp],
    features: list[str],
    voters: Sequence[str],
    seed: int,
) -> list[Contributions]:
    """The parts of each row's votes for its class, in the order of the rows."""
    found: dict[int, Contributions] = {}
    for place in np.unique(told):
        one = ForClass(classifier, int(place))
        here = np.flatnonzero(told == place)
        parts = contributions(one, X.iloc[chosen[here]], X, features, voters, seed=seed)
        found |= {int(i): parts.row(at) for at, i in enumerate(here)}
    return [found[i] for i in range(len(chosen))]
