"""What a table's columns hold and which of them a model uses."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

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
        Of a category, in order. If ``OTHER`` is the last of them, it stands for all
        others; else a category that is not among them counts as missing.
    reason : str
        Why a column is dropped, or what is special about its use; for the user to read.
    comma : {"", "thousands", "decimal"}
        What a comma means in numbers that are written as text.
    form : str
        How a date is written, in the words of ``strptime``, or "ISO8601".
    parts : tuple of str
        The numbers that a date gives: "day" (since 1970), "month", "weekday", "hour".
    """

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    reason: str = ""
    comma: Literal["", "thousands", "decimal"] = ""
    form: str = ""
    parts: tuple[str, ...] = ()

    @property
    def features(self) -> list[str]:
        """The names of the columns that this one becomes."""
        if self.kind == "dropped":
            return []
        if self.kind == "date":
            return [f"{self.name} ({part})" for part in self.parts]
        return [self.name]


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in the order of the file that the model was fitted on.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame(
    ...     {"amount": ["1,200", "15", "?"], "kind": ["a", "b", "a"], "fraud": [0, 1, 0]}
    ... )
    >>> schema = Schema.infer(frame, "fraud")
    >>> [(column.name, column.kind) for column in schema.columns]
    [('amount', 'number'), ('kind', 'category')]
    >>> schema.encode(pd.DataFrame({"kind": ["b", "new"], "amount": ["7", None]}))
       amount kind
    0     7.0    b
    1     NaN  NaN
    """

    columns: tuple[Column, ...]

    @classmethod
    def infer(
        cls,
        frame: pd.DataFrame,
        target: str,
        labels: NDArray[Any] | None = None,
        *,
        keep: Collection[str] = (),
        drop: Collection[str] = (),
    ) -> Schema:
        """Judge the columns of a table, all but the target.

        Parameters
        ----------
        frame : DataFrame
            See :func:`~damvi.tabular.read_table`.
        target : str
        labels : array, optional
            The class of each row; shows columns that are the target in disguise.
        keep, drop : collections of str
            Columns to use, or not to use, whatever they look like.
        """
        from .inferring import infer_column

        inferred = cls(
            tuple(
                Column(name, "dropped", reason="as asked")
                if name in drop
                else infer_column(name, frame[name], labels, name in keep)
                for name in frame.columns
                if name != target
            )
        )
        return inferred._with_distinct_features()

    def _with_distinct_features(self) -> Self:
        """Leave a part of a date out where another column bears its name."""
        names = {column.name for column in self.used}
        columns = []
        for column in self.columns:
            pairs = zip(column.parts, column.features, strict=False)
            parts = tuple(part for part, name in pairs if name not in names)
            if column.kind != "date" or parts == column.parts:
                columns.append(column)
            elif parts:
                said = column.reason.replace(", ".join(column.parts), ", ".join(parts))
                columns.append(replace(column, parts=parts, reason=said))
            else:
                said = "a date whose parts are columns already"
                columns.append(Column(column.name, "dropped", reason=said))
        return type(self)(tuple(columns))

    @property
    def used(self) -> list[Column]:
        """The columns that the model sees."""
        return [column for column in self.columns if column.kind != "dropped"]

    @property
    def features(self) -> list[str]:
        """The columns of the encoded table."""
        return [name for column in self.used for name in column.features]

    @property
    def text_columns(self) -> list[str]:
        """Columns that :func:`~damvi.tabular.read_table` should leave as text."""
        return [column.name for column in self.used if column.kind != "number"]

    def check(self, names: Collection[str]) -> None:
        """Refuse a table that lacks columns; others, in any order, are no matter."""
        lacking = [column.name for column in self.used if column.name not in names]
        if lacking:
            from .labels import listed

            many = "columns" if len(lacking) > 1 else "column"
            raise ValueError(
                f"the table lacks the {many} {listed(lacking)}, which the model uses; "
                f"it has {listed(list(names))}"
            )

    def encode(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table as the voters see it: doubles, and categories as such.

        Columns may come in any order, and others beside them. Infinite values count as
        missing, and so does text that is no number where numbers were.
        """
        from .encoding import encode

        self.check(list(frame.columns))
        return encode(self.used, frame)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {"columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, said: dict[str, Any]) -> Self:
        """The schema that :meth:`as_dict` wrote."""
        columns: list[dict[str, Any]] = [dict(column) for column in said["columns"]]
        for column in columns:
            for name in ("categories", "parts"):
                column[name] = tuple(column.get(name, ()))
        return cls(tuple(Column(**column) for column in columns))
