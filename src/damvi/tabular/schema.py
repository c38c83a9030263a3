"""What a table's columns hold and which of them a model uses."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

Kind = Literal["number", "category", "date", "dropped"]


@dataclass(frozen=True)
class Column:
    """A column of the user's table.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "date", "dropped"}
        A date gives several numbers; a dropped column is not used.
    categories : tuple of str
        Of a category, in order.
    reason : str
        Why a column is dropped, or what is special about its use; for the user to read.
    """

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in the order of the file that the model was fitted on."""

    columns: tuple[Column, ...]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {"columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, said: dict[str, Any]) -> Self:
        """The schema that :meth:`as_dict` wrote."""
        return cls(
            tuple(
                Column(**{**column, "categories": tuple(column["categories"])})
                for column in said["columns"]
            )
        )
