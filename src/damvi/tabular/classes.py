"""The target column of a table of three or more classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .labels import in_order, listed, values_of

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 256
"""A vote for a class is one byte."""
FEW_VALUES = 20
"""Numbers that may be classes, whatever they are: grades, say."""
FEW_ROWS = 10
"""Rows of a number, on average, below which many numbers are amounts."""


def many(labels: pd.Series) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """The classes, numbers by size and texts in order, and the place of each row's.

    Parameters
    ----------
    labels : Series
        Of :func:`~damvi.tabular.label_texts`, without gaps.

    Examples
    --------
    >>> import pandas as pd
    >>> from damvi.tabular import many
    >>> classes, places = many(pd.Series(["10", "2", "x", "2", "x", "10"], name="kind"))
    >>> classes, places.tolist()
    (('2', '10', 'x'), [1, 0, 2, 0, 2, 1])
    """
    counts = values_of(labels)
    classes = tuple(in_order(counts.index.tolist()))
    _refuse_amounts(labels, classes)
    if len(classes) > MOST_CLASSES:
        raise ValueError(
            f"the target {labels.name!r} has {len(classes):,} classes, and at most "
            f"{MOST_CLASSES} are told apart; merge the rarest, or name the one to find "
            f"with --positive"
        )
    alone = in_order(counts.index[counts == 1].tolist())
    if alone:
        these = "a class of one row" if len(alone) == 1 else "classes of one row each"
        raise ValueError(
            f"the target {labels.name!r} has {these}: {listed(alone)}. One row cannot both "
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
