"""What a table shows beyond its columns: the order of its rows in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .schema import Schema, judge
from .values import dates_of_fit

if TYPE_CHECKING:
    import pandas as pd

IN_ORDER = 0.95
"""The rank correlation of dates with the row number, from which rows are in time order."""
ENOUGH_DATES = 0.99
"""The share of rows that must have a date."""
FEW_ROWS = 20
"""Below this, rows may be in order by chance."""


def time_order(frame: pd.DataFrame, schema: Schema) -> str | None:
    """The column of dates by which the rows are in order, if there is one.

    It is filled on 99 % of the rows, and its rank correlation with the row number is at
    least .95, in absolute value. Whether the model uses the column is no matter.

    Parameters
    ----------
    frame : DataFrame
        The table that the schema was inferred from, in the order of its file.
    schema : Schema

    Examples
    --------
    >>> import pandas as pd
    >>> days = pd.date_range("2024-01-01", periods=60).astype(str)
    >>> frame = pd.DataFrame({"day": days, "x": range(60), "y": [0, 1] * 30})
    >>> time_order(frame, Schema.infer(frame, "y"))
    'day'
    """
    best, most = None, 0.0
    for column in schema.columns:
        may_be = column.kind in ("date", "dropped")
        times = time_values(frame, column.name) if may_be else None
        if times is None or len(times) < FEW_ROWS:
            continue
        known = ~np.isnan(times)
        if known.mean() < ENOUGH_DATES:
            continue
        agreement = abs(_rank_correlation(times[known]))
        if agreement >= IN_ORDER and agreement > most:
            best, most = column.name, agreement
    return best


def notes_on(frame: pd.DataFrame, schema: Schema) -> list[str]:
    """What the user should know of a table, a line each.

    Parameters
    ----------
    frame : DataFrame
        The table that the schema was inferred from.
    schema : Schema
    """
    return [
        f"{column.name!r}: {column.doubt}." for column in schema.columns if column.doubt
    ]


def time_values(frame: pd.DataFrame, name: str) -> NDArray[np.float64] | None:
    """A column of dates as seconds, NaN where there is none; None if it holds no dates."""
    import pandas as pd

    values = frame[name]
    if values.isna().all():
        return None
    column = judge(name, values, keep=True)
    if column.kind != "date" or column.form.startswith("%H"):
        return None
    dates = dates_of_fit(values, column.form)
    seconds = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return np.asarray(seconds.to_numpy(np.float64, na_value=np.nan))


def _rank_correlation(times: NDArray[np.float64]) -> float:
    """Spearman's, of these with their own places; 0 if they are all alike."""
    from scipy.stats import rankdata

    ranks = rankdata(times)
    if np.ptp(ranks) == 0:
        return 0.0
    return float(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1])
