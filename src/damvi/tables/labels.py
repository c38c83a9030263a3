"""The target column of a table: its classes, and the class of each row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..messages import counted

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 256
"""A vote for a class is stored in one byte."""
FEW_VALUES = 20
"""Up to this many distinct numbers may be classes, such as grades."""
FEW_ROWS = 10
"""Minimum mean number of rows per value; below it, many numbers look like amounts."""
LEAST_ROWS = 2
"""Minimum number of rows per class: one to train on, one to evaluate on."""

LABEL_KINDS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "int": int,
    "float": float,
    "bool": {"False": False, "True": True}.__getitem__,
}
"""The original types of labels, and how to parse them from text."""


@dataclass(frozen=True)
class Target:
    """The column to predict, with two classes; see :class:`TargetOfMany` for more.

    Attributes
    ----------
    name : str
    negative, positive : str
        Labels of the two classes, which the classifier learns as False and True.
        ``negative`` is empty if it stands for all other labels.
    classes : tuple of str
        Labels of three or more classes; ``negative`` and ``positive`` are then empty. The
        classifier learns their indices, 0, 1, 2, ...
    kind : {"text", "int", "float", "bool"}
        The original type of the labels.
    merged : bool
        Whether labels that differ only in case or whitespace are merged.
    """

    name: str
    negative: str = ""
    positive: str = ""
    classes: tuple[str, ...] = ()
    kind: str = "text"
    merged: bool = False

    pos_label: ClassVar[bool | None] = True
    """The positive class as passed to an estimator."""
    label_type: ClassVar[type[np.bool_] | type[np.uint8]] = np.bool_
    """What a model file keeps of each row: whether it is positive, or its class."""
    usual_metric: ClassVar[str] = "f1"
    """What a model is tuned for and compared by if nothing else is asked for."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Labels of the classes by index; "" stands for all others."""
        return self.negative, self.positive

    @property
    def n_classes(self) -> int:
        return len(self.texts)

    def require_two(self, what: str, cure: str) -> None:
        """Raise an error if there are three or more classes."""

    def require_many(self, what: str, cure: str) -> None:
        """Raise an error if there are two classes."""
        raise ValueError(
            f"{what} for three or more classes, but {self.name!r} has two; {cure}"
        )

    def told(self) -> dict[str, Any]:
        """Return the labels under their JSON keys."""
        return {"positive": self.positive, "negative": self.negative}

    def sizes(self, counts: Sequence[int]) -> dict[str, Any]:
        """Return the rows per class as stored in a model's scores."""
        return {"positives": counts[1]}

    def counts(self, scores: dict[str, Any]) -> list[int]:
        """Return the rows per class from a model's scores."""
        return [scores["rows"] - scores["positives"], scores["positives"]]

    def summary(self, counts: Sequence[int]) -> dict[str, Any]:
        """Return labels and row counts as plain values."""
        rows = sum(counts)
        rate = counts[1] / rows if rows else None
        return self.told() | {"positives": counts[1], "rate": rate}

    def prediction_columns(self) -> dict[str, tuple[str, int]]:
        """Return, for each column of predictions, its content and its class index."""
        return {what: (what, 0) for what in ("score", "probability", "decision")}

    def headline(self, scores: dict[str, Any]) -> str:
        """Return a one-line description of the classes."""
        rest = repr(self.negative) if self.negative else "the rest"
        head = f"{self.positive!r} against {rest}"
        if not scores.get("rows"):
            return head
        n, positives = scores["rows"], scores["positives"]
        return f"{head} in {n:,} rows, {positives:,} of them positive ({positives / n:.2%})"

    def as_given(self) -> list[Any]:
        """Return the labels of the classes by index, with their original type.

        If one class stands against all others, these are called "not ...".

        Examples
        --------
        >>> Target("late", "0", "1", kind="int").as_given()
        [0, 1]
        >>> Target("colour", positive="red").as_given()
        ['not red', 'red']
        """
        if self.texts == ("", self.positive):
            return [f"not {self.positive}", self.positive]
        return [LABEL_KINDS[self.kind](text) for text in self.texts]


@dataclass(frozen=True)
class TargetOfMany(Target):
    """The column to predict, with three or more classes."""

    pos_label = None
    label_type = np.uint8
    usual_metric = "macro_f1"

    @property
    def texts(self) -> tuple[str, ...]:
        return self.classes

    def require_two(self, what: str, cure: str) -> None:
        n = self.n_classes
        raise ValueError(f"{what} for two classes, but {self.name!r} has {n}; {cure}")

    def require_many(self, what: str, cure: str) -> None:
        """Three or more: nothing to refuse."""

    def told(self) -> dict[str, Any]:
        return {"classes": list(self.classes)}

    def sizes(self, counts: Sequence[int]) -> dict[str, Any]:
        return {"classes": dict(zip(self.classes, counts, strict=True))}

    def counts(self, scores: dict[str, Any]) -> list[int]:
        return [scores["classes"][label] for label in self.classes]

    def summary(self, counts: Sequence[int]) -> dict[str, Any]:
        sizes = zip(self.classes, counts, strict=True)
        return {"classes": [{"label": label, "rows": n} for label, n in sizes]}

    def prediction_columns(self) -> dict[str, tuple[str, int]]:
        columns = {"decision": ("decision", 0)}
        for what in ("probability", "score"):
            for c, label in enumerate(self.classes):
                columns[f"{what} {label}"] = what, c
        return columns

    def headline(self, scores: dict[str, Any]) -> str:
        return f"{self.n_classes} classes"


def pick(frame: pd.DataFrame, column: str, role: str) -> pd.Series:
    """Return a column, or raise an error that lists close matches and all columns."""
    if column in frame.columns:
        return frame[column]
    columns = [str(name) for name in frame.columns]
    lowered = {name.lower(): name for name in reversed(columns)}
    near = [lowered[match] for match in get_close_matches(column.lower(), lowered)]
    hint = f" Did you mean {listed(near, 'or')}?" if near else ""
    raise ValueError(
        f"no {role} column {column!r}.{hint} The columns are {listed(columns)}"
    )


def read_classes(labels: pd.Series, positive: Any) -> tuple[NDArray[Any], Target]:
    """Return the class of each row, and the target."""
    name = str(labels.name)
    if positive is None and labels.nunique() > 2:
        classes, places = many(labels)
        return places, TargetOfMany(name, classes=classes)
    found = binary(labels, positive, [])[0].astype(bool)
    for words, n in (("positive", int(found.sum())), ("negative", int((~found).sum()))):
        if n < LEAST_ROWS:
            raise ValueError(
                f"only {counted(n, 'row is', 'rows are')} {words} in {name!r}; at least "
                f"{LEAST_ROWS} are needed to train and evaluate, and dozens for reliable "
                f"scores"
            )
    others = labels[~found].unique().tolist()
    return found, Target(name, others[0] if len(others) == 1 else "", labels[found].iloc[0])


def with_kind(target: Target, dtype: Any, column: pd.Series | None = None) -> Target:
    """Return the target with the original type of its labels.

    ``column`` is needed to infer the type of object columns.
    """
    from pandas.api import types

    dtype = getattr(dtype, "categories", dtype)
    dtype = getattr(dtype, "dtype", dtype)  # the dtype of the categories
    if column is not None and types.is_object_dtype(dtype):
        found = types.infer_dtype(column)
        kinds = {"boolean": "bool", "integer": "int", "floating": "float"}
        return replace(target, kind=kinds.get(found, "text"))
    is_kind = {
        "bool": types.is_bool_dtype,
        "int": types.is_integer_dtype,
        "float": types.is_float_dtype,
    }
    kind = next((name for name, asks in is_kind.items() if asks(dtype)), "text")
    return replace(target, kind=kind)


def typed_labels(column: pd.Series) -> pd.Series:
    """Convert labels read from text to integers or booleans, if all have that form.

    "01" is a code and stays text. The label texts that a model learns do not change.
    """
    texts = column.dropna().astype("string").str.strip()
    texts = texts[texts != ""]
    if len(texts) and texts.isin(["True", "False"]).all():
        return column.astype("string").str.strip().map({"True": True, "False": False})
    if len(texts) and texts.str.fullmatch(r"0|-?[1-9]\d{0,17}").all():
        plain = column.astype("string").str.strip()
        return plain.mask(plain == "").astype("Int64")
    return column


def amount_warnings(target: Target) -> list[str]:
    """Warn if the classes may be amounts, though each has enough rows."""
    if len(target.classes) <= FEW_VALUES or not all(map(_is_number, target.classes)):
        return []
    return [
        f"each of the {len(target.classes)} numbers in {target.name!r} is treated as a "
        f"class. If they are amounts, group them into two or three classes"
    ]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def binary(
    labels: pd.Series, positive: Any, notes: list[str]
) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """Return the labels as 0/1, and a mask of the rows that have one.

    The rarer of two values is positive, unless ``positive`` names a value; all others are
    then negative.
    """
    known = labels.notna().to_numpy()
    if not known.all():
        notes.append(
            f"Dropped {counted((~known).sum(), 'row')} with missing {labels.name!r}."
        )
    labels = labels[known]
    counts = _counts_of(labels)
    values = counts.index.tolist()
    if len(values) == 1:
        raise ValueError(
            f"the target {labels.name!r} has only one class: {_show(values[0])} in all "
            f"{counted(len(labels), 'row')}; add rows of another class"
        )
    if positive is not None:
        chosen = _match(values, positive, labels.name)
    elif len(values) > 2:
        raise ValueError(
            f"the target {labels.name!r} has {len(values):,} values, not two: "
            f"{listed(values)}. Choose the positive one, as in "
            f"positive={_show(values[-1])}; the others become negative"
        )
    elif counts.iloc[0] == counts.iloc[1]:
        # A tie: take the greater value, like scikit-learn's pos_label.
        chosen = in_order(values)[-1]
    else:
        chosen = values[-1]
    found = (labels == chosen).to_numpy(dtype=bool)
    others = [value for value in values if value != chosen]
    # No note for 1 against 0, which everybody expects.
    if [_order(value) for value in (chosen, *others)] != [_order(1), _order(0)]:
        why = "the rarer"
        if positive is not None:
            why = "as asked"
        elif counts.iloc[0] == counts.iloc[1]:
            why = "equally frequent"
        notes.append(
            f"Target {labels.name!r}: {_show(chosen)} is positive ({why}), against "
            f"{listed(others)}."
        )
    return found.astype(np.int8), known


def many(labels: pd.Series) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """Return the classes in order, and the class index of each row.

    Parameters
    ----------
    labels : Series
        Output of :func:`~damvi.tables.label_texts`, without missing values.

    Examples
    --------
    >>> import pandas as pd
    >>> from damvi.tables import many
    >>> classes, places = many(pd.Series(["10", "2", "x", "2", "x", "10"], name="kind"))
    >>> classes, places.tolist()
    (('2', '10', 'x'), [1, 0, 2, 0, 2, 1])
    """
    counts = _counts_of(labels)
    classes = tuple(in_order(counts.index.tolist()))
    _refuse_amounts(labels, classes)
    if len(classes) > MOST_CLASSES:
        raise ValueError(
            f"the target {labels.name!r} has {len(classes):,} classes, but at most "
            f"{MOST_CLASSES} are supported; merge the rarest, or choose one with "
            f"--positive"
        )
    tiny = in_order(counts.index[counts == 1].tolist())
    if tiny:
        these = "a class with one row" if len(tiny) == 1 else "classes with one row each"
        raise ValueError(
            f"the target {labels.name!r} has {these}: {listed(tiny)}. One row cannot be "
            f"used to both train and evaluate; add rows, merge the class with another, "
            f"drop the row, or choose a positive class with --positive"
        )
    places = {label: place for place, label in enumerate(classes)}
    return classes, labels.map(places).to_numpy(np.intp)


def _refuse_amounts(labels: pd.Series, classes: tuple[str, ...]) -> None:
    """Raise an error if the target looks numeric or like an id."""
    if len(classes) <= FEW_VALUES:
        return
    try:
        numbers = np.array([float(label) for label in classes])
    except ValueError:
        if len(classes) * 2 > len(labels):
            raise ValueError(
                f"the target {labels.name!r} has {len(classes):,} values in "
                f"{len(labels):,} rows, like an id or free text; use a column of classes, "
                f"or choose a value with --positive"
            ) from None
        return
    fractions = (numbers != np.rint(numbers)).any()
    if fractions or len(labels) < FEW_ROWS * len(classes) or len(classes) > MOST_CLASSES:
        some = [classes[place] for place in (0, len(classes) // 2, -1)]
        raise ValueError(
            f"the target {labels.name!r} has {len(classes):,} different numbers, such as "
            f"{', '.join(some[:-1])} and {some[-1]}. These look like amounts or ids, but "
            f"damvi predicts classes. Use a column of classes, or make one, such as "
            f"whether {labels.name!r} is above a limit; or choose a number with "
            f"--positive"
        )


def _counts_of(labels: pd.Series) -> pd.Series:
    """Count the values, the most frequent first; raise an error if there are none."""
    counts = labels.value_counts()
    counts = counts[counts > 0]
    if not len(counts):
        raise ValueError(
            f"the target {labels.name!r} is missing in every row; label some rows of each "
            f"class"
        )
    return counts


def label_texts(labels: pd.Series) -> pd.Series:
    """Return labels as text, independent of the file type: 1, 1.0 and "1.0" are "1".

    Whitespace around a label is stripped. An empty label is missing; "NA" is a label.
    """
    text = labels.astype("string").str.strip()
    text = text.str.replace(r"^([-+]?\d+)\.0+$", r"\1", regex=True)
    return text.mask(text == "")


def _folded(label: Any) -> str:
    return " ".join(str(label).casefold().split())


def spellings(labels: pd.Series) -> list[dict[str, int]]:
    """Return the counts of labels that differ only in case or whitespace.

    Examples
    --------
    >>> import pandas as pd
    >>> spellings(pd.Series(["fraud", "Fraud", "ok", "fraud"]))
    [{'fraud': 2, 'Fraud': 1}]
    """
    counts = labels.value_counts()
    together: dict[str, dict[str, int]] = {}
    for label, n in counts[counts > 0].items():
        together.setdefault(_folded(label), {})[str(label)] = int(n)
    return [some for some in together.values() if len(some) > 1]


def spelling_warnings(labels: pd.Series) -> list[str]:
    """Warn about labels that are probably the same."""
    warnings = []
    for some in spellings(labels):
        each = [f"{label!r} ({counted(n, 'row')})" for label, n in some.items()]
        warnings.append(
            f"LABELS: {' and '.join(each)} in {labels.name!r} differ only in case or "
            f"whitespace, but count as different. If they are the same, merge them with "
            f"--merge-labels"
        )
    return warnings


def merge_labels(labels: pd.Series, known: Collection[str] = ()) -> pd.Series:
    """Merge labels that differ only in case or whitespace.

    Parameters
    ----------
    labels : Series
        Output of :func:`~damvi.tables.label_texts`.
    known : collection of str
        Preferred spellings; otherwise the most frequent one is used.
    """
    given = {_folded(label): label for label in known}
    counts = labels.value_counts()
    for label in counts[counts > 0].index:
        given.setdefault(_folded(label), label)
    return labels.map(lambda label: given[_folded(label)], na_action="ignore")


def _match(values: list[Any], positive: Any, name: Any) -> Any:
    for value in values:
        # Command-line values are strings: "2" may stand for 2 or 2.0.
        if str(value) == str(positive) or _order(value) == _order(positive):
            return value
    raise ValueError(
        f"positive={_show(positive)} is not a value of the target {name!r}, which has "
        f"{listed(values)}"
    )


def _order(value: Any) -> tuple[int, float, str]:
    """Sort key: numbers by size, then the rest as text."""
    try:
        return (0, float(value), "")
    except (TypeError, ValueError):
        return (1, 0.0, str(value))


def in_order(values: list[Any]) -> list[Any]:
    """Sort numbers by size, then the rest as text."""
    return sorted(values, key=_order)


def _show(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)


def listed(values: list[Any], last: str = "and") -> str:
    """Return the values as text for messages; long lists are shortened."""
    shown = [_show(value) for value in values[:20]]
    shown = [text if len(text) <= 60 else f"{text[:57]}..." for text in shown]
    if len(values) > 20:
        return ", ".join(shown) + f" {last} {len(values) - 20:,} more"
    return f" {last} ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
