"""The target column of a table: which classes there are, and the class of each row."""

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
"""A vote for a class is one byte."""
FEW_VALUES = 20
"""Numbers that may be classes, whatever they are: grades, say."""
FEW_ROWS = 10
"""Rows of a number, on average, below which many numbers are amounts."""
LEAST_ROWS = 2
"""Of each class: one to learn from, one to judge by."""

LABEL_KINDS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "int": int,
    "float": float,
    "bool": {"False": False, "True": True}.__getitem__,
}
"""What labels may be, and how they are read from their texts."""


@dataclass(frozen=True)
class Target:
    """The column to predict, of two classes; of more it is a :class:`TargetOfMany`.

    Attributes
    ----------
    name : str
    negative, positive : str
        The labels of two classes, which the classifier learns as False and True.
        ``negative`` is empty where it stands for all other labels.
    classes : tuple of str
        The labels of three or more classes; the two others are empty then. The classifier
        learns their places, 0, 1, 2, ...
    kind : {"text", "int", "float", "bool"}
        What the labels were before they became texts.
    merged : bool
        Labels that differ in case or blanks alone are one.
    """

    name: str
    negative: str = ""
    positive: str = ""
    classes: tuple[str, ...] = ()
    kind: str = "text"
    merged: bool = False

    pos_label: ClassVar[bool | None] = True
    """The positive class as an estimator is given it."""
    label_type: ClassVar[type[np.bool_] | type[np.uint8]] = np.bool_
    """What a model file keeps of each row: whether it is positive, or its class."""
    usual_metric: ClassVar[str] = "f1"
    """What a model is tuned for and compared by if nothing else is asked for."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The labels of the classes, by their numbers; "" stands for all others."""
        return self.negative, self.positive

    @property
    def n_classes(self) -> int:
        return len(self.texts)

    def require_two(self, what: str, cure: str) -> None:
        """An error where three or more classes are asked for what only two have."""

    def require_many(self, what: str, cure: str) -> None:
        """An error where two classes are asked for what only three or more have."""
        raise ValueError(
            f"{what} for three or more classes, and here there are two; {cure}"
        )

    def told(self) -> dict[str, Any]:
        """The labels by the names that users read in JSON."""
        return {"positive": self.positive, "negative": self.negative}

    def sizes(self, counts: Sequence[int]) -> dict[str, Any]:
        """The rows of each class, as the scores of a model keep them."""
        return {"positives": counts[1]}

    def counts(self, scores: dict[str, Any]) -> list[int]:
        """The rows of each class, from the scores of a model."""
        return [scores["rows"] - scores["positives"], scores["positives"]]

    def summary(self, counts: Sequence[int]) -> dict[str, Any]:
        """Labels and rows, as plain values."""
        rows = sum(counts)
        rate = counts[1] / rows if rows else None
        return self.told() | {"positives": counts[1], "rate": rate}

    def prediction_columns(self) -> dict[str, tuple[str, int]]:
        """The columns of predictions: what each has, and of which class looked for."""
        return {what: (what, 0) for what in ("score", "probability", "decision")}

    def headline(self, scores: dict[str, Any]) -> str:
        """What a model tells apart, in words."""
        rest = repr(self.negative) if self.negative else "the rest"
        head = f"{self.positive!r} against {rest}"
        if not scores.get("rows"):
            return head
        n, positives = scores["rows"], scores["positives"]
        return f"{head} in {n:,} rows, {positives:,} of them positive ({positives / n:.2%})"

    def as_given(self) -> list[Any]:
        """The labels of the classes, by their numbers, as the user's table has them.

        Of one class against all others these have no label, and what stands for them is
        told in words.

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
    """The column to predict, of three or more classes: what is different with these."""

    pos_label = None
    label_type = np.uint8
    usual_metric = "macro_f1"

    @property
    def texts(self) -> tuple[str, ...]:
        return self.classes

    def require_two(self, what: str, cure: str) -> None:
        n = self.n_classes
        raise ValueError(f"{what} for two classes, and {self.name!r} has {n}; {cure}")

    def require_many(self, what: str, cure: str) -> None:
        """Here there are."""

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
    """Return a column, or an error that lists the near matches and what there is."""
    if column in frame.columns:
        return frame[column]
    columns = [str(name) for name in frame.columns]
    lowered = {name.lower(): name for name in reversed(columns)}
    near = [lowered[match] for match in get_close_matches(column.lower(), lowered)]
    hint = f" Did you mean {listed(near, 'or')}?" if near else ""
    raise ValueError(
        f"there is no {role} column {column!r}.{hint} The columns are {listed(columns)}"
    )


def read_classes(labels: pd.Series, positive: Any) -> tuple[NDArray[Any], Target]:
    """What is learned of the labels, and what they are called."""
    name = str(labels.name)
    if positive is None and labels.nunique() > 2:
        classes, places = many(labels)
        return places, TargetOfMany(name, classes=classes)
    found = binary(labels, positive, [])[0].astype(bool)
    for words, n in (("positive", int(found.sum())), ("negative", int((~found).sum()))):
        if n < LEAST_ROWS:
            raise ValueError(
                f"only {counted(n, 'row is', 'rows are')} {words} in {name!r}; at least "
                f"{LEAST_ROWS} are needed to learn and to judge, and dozens for figures to "
                f"rely on"
            )
    others = labels[~found].unique().tolist()
    return found, Target(name, others[0] if len(others) == 1 else "", labels[found].iloc[0])


def with_kind(target: Target, dtype: Any, column: pd.Series | None = None) -> Target:
    """The target, with what its labels were before they became texts.

    ``column`` tells more of columns of objects.
    """
    from pandas.api import types

    dtype = getattr(dtype, "categories", dtype)
    dtype = getattr(dtype, "dtype", dtype)  # of categories
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
    """Labels of a text file as whole numbers or booleans, if all are written as these.

    "01" is a code, and stays. The texts that a model learns from are the same.
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
    """A warning of classes that may be amounts, where there are rows enough for them."""
    if len(target.classes) <= FEW_VALUES or not all(map(_is_number, target.classes)):
        return []
    return [
        f"each of the {len(target.classes)} numbers of {target.name!r} is taken as a class "
        f"of its own. If they are amounts, make two or three classes of them"
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
    """Return the labels as 0/1, and which rows have one.

    The rarer of two values is the positive one, unless ``positive`` names a value; this
    one then stands against all others.
    """
    known = labels.notna().to_numpy()
    if not known.all():
        notes.append(
            f"Dropped {counted((~known).sum(), 'row')} whose {labels.name!r} is missing."
        )
    labels = labels[known]
    counts = _counts_of(labels)
    values = counts.index.tolist()
    if len(values) == 1:
        raise ValueError(
            f"the target {labels.name!r} has one class only: {_show(values[0])} in all "
            f"{counted(len(labels), 'row')}"
        )
    if positive is not None:
        chosen = _match(values, positive, labels.name)
    elif len(values) > 2:
        raise ValueError(
            f"the target {labels.name!r} has {len(values):,} values, not two: "
            f"{listed(values)}. Name the one to find with positive=..., as in "
            f"positive={_show(values[-1])}; the others become the negatives"
        )
    elif counts.iloc[0] == counts.iloc[1]:
        # As often as the other one: the greater value, as scikit-learn's pos_label is.
        chosen = in_order(values)[-1]
    else:
        chosen = values[-1]
    found = (labels == chosen).to_numpy(dtype=bool)
    others = [value for value in values if value != chosen]
    # 1 against 0 is what everybody expects.
    if [_order(value) for value in (chosen, *others)] != [_order(1), _order(0)]:
        why = "the rarer"
        if positive is not None:
            why = "as asked"
        elif counts.iloc[0] == counts.iloc[1]:
            why = "both are equally frequent"
        notes.append(
            f"Target {labels.name!r}: {_show(chosen)} is positive ({why}), against "
            f"{listed(others)}."
        )
    return found.astype(np.int8), known


def many(labels: pd.Series) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """The classes, numbers by size and texts in order, and the place of each row's.

    Parameters
    ----------
    labels : Series
        Of :func:`~damvi.tables.label_texts`, without gaps.

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
            f"the target {labels.name!r} has {len(classes):,} classes, and at most "
            f"{MOST_CLASSES} are told apart; merge the rarest, or name the one to find "
            f"with --positive"
        )
    tiny = in_order(counts.index[counts == 1].tolist())
    if tiny:
        these = "a class of one row" if len(tiny) == 1 else "classes of one row each"
        raise ValueError(
            f"the target {labels.name!r} has {these}: {listed(tiny)}. One row cannot both "
            f"teach and judge; add rows, merge such a class with another, leave the row "
            f"out, or name the class to find with --positive"
        )
    places = {label: place for place, label in enumerate(classes)}
    return classes, labels.map(places).to_numpy(np.intp)


def _refuse_amounts(labels: pd.Series, classes: tuple[str, ...]) -> None:
    """Where the target looks like something to be estimated, or like an id."""
    if len(classes) <= FEW_VALUES:
        return
    try:
        numbers = np.array([float(label) for label in classes])
    except ValueError:
        if len(classes) * 2 > len(labels):
            raise ValueError(
                f"the target {labels.name!r} has {len(classes):,} values in "
                f"{len(labels):,} rows, as an id or free text has; name a column of "
                f"classes, or the value to find with --positive"
            ) from None
        return
    fractions = (numbers != np.rint(numbers)).any()
    if fractions or len(labels) < FEW_ROWS * len(classes) or len(classes) > MOST_CLASSES:
        some = [classes[place] for place in (0, len(classes) // 2, -1)]
        raise ValueError(
            f"the target {labels.name!r} has {len(classes):,} different numbers, such as "
            f"{', '.join(some[:-1])} and {some[-1]}: these look like amounts or ids, and "
            f"damvi tells classes apart. Name a column of classes, or make one, such as "
            f"whether {labels.name!r} is above a limit; or name the number to find with "
            f"--positive"
        )


def _counts_of(labels: pd.Series) -> pd.Series:
    """How often each value is there, the most frequent first; an error without any."""
    counts = labels.value_counts()
    counts = counts[counts > 0]
    if not len(counts):
        raise ValueError(
            f"the target {labels.name!r} has no value in any row, so there is nothing to "
            f"learn from; label some rows of each class"
        )
    return counts


def label_texts(labels: pd.Series) -> pd.Series:
    """Labels as text, alike whatever file they come from: 1, 1.0 and "1.0" are "1".

    Spaces around a label are no part of it. An empty one is missing; "NA" is a label.
    """
    text = labels.astype("string").str.strip()
    text = text.str.replace(r"^([-+]?\d+)\.0+$", r"\1", regex=True)
    return text.mask(text == "")


def _folded(label: Any) -> str:
    return " ".join(str(label).casefold().split())


def spellings(labels: pd.Series) -> list[dict[str, int]]:
    """Labels that differ in case or blanks alone, and how often each is there.

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
    """A warning, loudly, of labels that may well be one."""
    warnings = []
    for some in spellings(labels):
        each = [f"{label!r} ({counted(n, 'row')})" for label, n in some.items()]
        warnings.append(
            f"LABELS: {' and '.join(each)} of {labels.name!r} differ in case or blanks "
            f"alone, and count as different. If they are the same, merge them with "
            f"--merge-labels"
        )
    return warnings


def merge_labels(labels: pd.Series, known: Collection[str] = ()) -> pd.Series:
    """The same; of labels that differ in case or blanks alone all become one.

    Parameters
    ----------
    labels : Series
        Of :func:`~damvi.tables.label_texts`.
    known : collection of str
        What they become, if it is among these; else the most frequent of them.
    """
    given = {_folded(label): label for label in known}
    counts = labels.value_counts()
    for label in counts[counts > 0].index:
        given.setdefault(_folded(label), label)
    return labels.map(lambda label: given[_folded(label)], na_action="ignore")


def _match(values: list[Any], positive: Any, name: Any) -> Any:
    for value in values:
        # A command line has strings only: "2" may stand for 2, or for 2.0.
        if str(value) == str(positive) or _order(value) == _order(positive):
            return value
    raise ValueError(
        f"positive={_show(positive)} is not a value of the target {name!r}, which has "
        f"{listed(values)}"
    )


def _order(value: Any) -> tuple[int, float, str]:
    """Numbers first, by size, then the rest as text."""
    try:
        return (0, float(value), "")
    except (TypeError, ValueError):
        return (1, 0.0, str(value))


def in_order(values: list[Any]) -> list[Any]:
    """Numbers by size, then the rest as text."""
    return sorted(values, key=_order)


def _show(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)


def listed(values: list[Any], last: str = "and") -> str:
    """The values as users read them, the last after ``last``; of many, the first."""
    shown = [_show(value) for value in values[:20]]
    shown = [text if len(text) <= 60 else f"{text[:57]}..." for text in shown]
    if len(values) > 20:
        return ", ".join(shown) + f" {last} {len(values) - 20:,} more"
    return f" {last} ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
