"""The target column of a table: which classes there are, and the class of each row."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

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
