"""What a table shows beyond its columns: time order, ids, sentinels and near-copies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..messages import counted
from .schema import REPEATS, Schema, judge
from .values import dates_in, dates_of_fit, find_date_format, is_time

if TYPE_CHECKING:
    import pandas as pd

IN_ORDER = 0.95
"""The rank correlation of dates with the row number, from which rows are in time order."""
ENOUGH_DATES = 0.99
"""The share of rows that must have a date."""
FEW_ROWS = 20
"""Below this, rows may be in order, or columns alike, by chance."""
MOST_ROWS = 4000
"""By which the worth of an id is judged."""
N_FOLDS = 4
NINES = re.compile(r"-?9{2,8}|-?(?:1e\+?0?9|2147483648|2147483647|32768|32767)")
"""What people, and their programs, write for a missing number."""
FEW_MARKS = 5
COMPARED_ROWS = 2000
MOST_PAIRS = 500
NEARLY = 0.9995
"""The correlation of columns that are nearly the same."""
MOST_PAIRS_OF_ROWS = 5000
NEIGHBOURLY, SURE = 0.2, 6.0
"""The rank correlation of a column with itself one row on, from which neighbours are alike,
and how many standard errors it must be."""
SOME_REAL, SOME_OTHERS = 500, 1500
"""Rows by which it is judged what neighbours are worth."""
FLATTERED = 0.03
"""The average precision by which neighbours must flatter to be spoken of, which must be
four standard errors too."""
N_DRAWS = 100
TIME_NAME = re.compile(
    r"(?i)time|date|day|week|month|year|hour|minute|second|stamp|tick|epoch|^(?:t|ts)$"
)
"""What a column of numbers is called that says when a row was."""
MOST = 1e30
"""What scikit-learn's trees can take for a number."""


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


def notes_on(
    frame: pd.DataFrame, schema: Schema, X: pd.DataFrame, y: NDArray[Any]
) -> list[str]:
    """What the user should know of a table, a line each: doubts, ids, sentinels, copies.

    Parameters
    ----------
    frame : DataFrame
        The table that the schema was inferred from.
    schema : Schema
    X : DataFrame
        The table, encoded.
    y : ndarray
        The class of each row, by number.
    """
    doubts = [f"{c.name!r}: {c.doubt}." for c in schema.columns if c.doubt]
    return [
        *doubts,
        *_notes_on_ids(frame, schema, X, np.asarray(y)),
        *_notes_on_sentinels(schema, X),
        *_notes_on_copies(X),
    ]


def note_on_neighbours(schema: Schema, X: pd.DataFrame, y: NDArray[Any]) -> list[str]:
    """A line on rows that are like their neighbours in the file, where that flatters.

    Rows as they came in time, without a date, look so; folds at random then judge a row by
    its neighbours. A file that is sorted by its target does not: only rows of the most
    frequent class are looked at; and one that is sorted by a column is passed over, unless
    that is named like a time. Whether it matters is told by a small forest, judged by
    folds at random and by stretches of the file, without columns that sort the file.

    Parameters
    ----------
    schema : Schema
    X : DataFrame
        The table, encoded, in the order of its file.
    y : ndarray
        The class of each row, by number.
    """
    if any(column.reason.startswith(REPEATS) for column in schema.columns):
        return []  # neighbours may be of one id, and ids are spoken of
    usual = np.flatnonzero(y == np.bincount(y.astype(np.intp)).argmax())
    numbers = [column.name for column in schema.used if column.kind == "number"]
    likeness = {name: _likeness(X[name].to_numpy()[usual]) for name in numbers}
    if not likeness or max(likeness.values()) < NEIGHBOURLY:
        return []
    most = max(likeness, key=lambda name: likeness[name])
    sorted_by = [name for name in X.columns if _sorts(X[name])]
    times = [name for name in sorted_by if TIME_NAME.search(str(name))]
    if sorted_by and not times:
        return []  # neighbours are alike since somebody sorted them
    worth = _worth_of_neighbours(X.drop(columns=sorted_by), y)
    if worth is None:
        return []
    apart, together = worth
    cure = "number the rows as they are in the file, and give that column as --time"
    if times:
        cure = f"if {times[0]!r}, by which they are sorted, says when, give it as --time"
    return [
        f"Rows are like their neighbours in the file ({most!r} above all). In a quick "
        f"test, by at most {SOME_REAL:,} rows of the rarest class and {SOME_OTHERS:,} "
        f"others, a small forest has an AP of {together:.3f} with rows dealt at random, "
        f"and of {apart:.3f} with neighbours kept together. If new rows come later than "
        f"these, the scores promise too much: {cure}."
    ]


def _sorts(column: pd.Series) -> bool:
    """Whether the rows are sorted by a column: in its order, or each value in one place."""
    known = column.dropna()
    if len(known) < FEW_ROWS:
        return False
    codes, values = known.factorize()
    if 1 < len(values) < len(known) / 2:
        return int(np.count_nonzero(np.diff(codes))) == len(values) - 1
    places = np.linspace(0, len(known) - 1, min(len(known), MOST_ROWS)).astype(np.intp)
    numbers = (known.cat.codes if hasattr(known, "cat") else known).to_numpy(np.float64)
    return abs(_rank_correlation(numbers[places])) >= IN_ORDER


def _likeness(values: NDArray[np.float64]) -> float:
    """The rank correlation of a column with itself one row on; 0 if it may be chance."""
    if len(values) < FEW_ROWS:
        return 0.0
    first = np.linspace(0, len(values) - 2, min(len(values) - 1, MOST_PAIRS_OF_ROWS))
    first = np.unique(first.astype(np.intp))
    pair = values[first], values[first + 1]
    known = ~(np.isnan(pair[0]) | np.isnan(pair[1]))
    if known.sum() < FEW_ROWS:
        return 0.0
    found = _rank_correlation(pair[0][known], pair[1][known])
    return found if found * np.sqrt(known.sum()) >= SURE else 0.0


def _worth_of_neighbours(X: pd.DataFrame, y: NDArray[Any]) -> tuple[float, float] | None:
    """The average precision with neighbours apart, and together, if it clearly differs."""
    from sklearn.metrics import average_precision_score
    from sklearn.model_selection import PredefinedSplit, StratifiedKFold

    real = y == np.bincount(y.astype(np.intp)).argmin()
    if real.sum() < FEW_ROWS or not len(X.columns):
        return None
    some = [
        own[np.linspace(0, len(own) - 1, min(len(own), most)).astype(np.intp)]
        for own, most in (
            (np.flatnonzero(real), SOME_REAL),
            (np.flatnonzero(~real), SOME_OTHERS),
        )
    ]
    rows = np.sort(np.concatenate(some))
    truth = real[rows]
    stretch = np.empty(len(rows), np.intp)
    for own in (truth, ~truth):  # of each class as many rows, also where it is sorted by it
        stretch[own] = np.arange(own.sum()) * N_FOLDS // own.sum()
    scores = [
        _unseen(X.iloc[rows], truth, splits)
        for splits in (
            PredefinedSplit(stretch),
            StratifiedKFold(N_FOLDS, shuffle=True, random_state=0),
        )
    ]
    apart, together = (float(average_precision_score(truth, one)) for one in scores)
    if together - apart < FLATTERED:
        return None
    rng, gains = np.random.default_rng(0), []
    for _ in range(N_DRAWS):
        drawn = rng.integers(0, len(rows), len(rows))
        pair = (average_precision_score(truth[drawn], one[drawn]) for one in scores)
        gains.append(-np.subtract(*pair))
    return (apart, together) if together - apart >= 4 * np.std(gains) else None


def _notes_on_ids(
    frame: pd.DataFrame, schema: Schema, X: pd.DataFrame, y: NDArray[Any]
) -> list[str]:
    """Ids that several rows share, and what it is worth to have seen one before."""
    notes = []
    for column in schema.columns:
        if not column.reason.startswith(REPEATS):
            continue
        ids = frame[column.name]
        n_ids, n_rows = ids.nunique(), int(ids.notna().sum())
        note = (
            f"{column.name!r} is an id that repeats: {n_ids:,} values in {n_rows:,} rows. "
            f"It is not used. If new rows will be of other ids, judge the model on ids it "
            f"has not seen: --group {column.name}"
        )
        worth = _worth_of_ids(X, y, ids)
        if worth:
            apart, together = worth
            note += (
                f". A small forest has an AP of {together:.3f} with rows of one id on both "
                f"sides, and of {apart:.3f} with ids apart"
            )
        notes.append(note + ".")
    return notes


def _worth_of_ids(
    X: pd.DataFrame, y: NDArray[Any], ids: pd.Series
) -> tuple[float, float] | None:
    """The average precision of a small forest with ids apart, and with them mixed."""
    from sklearn.metrics import average_precision_score
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    rows = np.flatnonzero(ids.notna().to_numpy())
    if len(rows) > MOST_ROWS:  # whole ids, as many as there is room for
        order = np.random.default_rng(0).permutation(ids.nunique())
        codes = order[ids.iloc[rows].factorize()[0]]
        most = np.searchsorted(np.cumsum(np.bincount(codes)), MOST_ROWS)
        rows = rows[codes < max(most, N_FOLDS)]
    rare = np.bincount(y[rows].astype(np.intp)).argmin()
    real = y[rows] == rare
    groups = ids.iloc[rows].factorize()[0]
    if real.sum() < FEW_ROWS or len(np.unique(groups[real])) < N_FOLDS:
        return None
    folds = {"n_splits": N_FOLDS, "shuffle": True, "random_state": 0}
    apart, together = (
        float(average_precision_score(real, _unseen(X.iloc[rows], real, splits)))
        for splits in (
            list(StratifiedGroupKFold(**folds).split(real, real, groups)),
            StratifiedKFold(**folds),
        )
    )
    return apart, together


def _unseen(X: pd.DataFrame, real: NDArray[np.bool_], splits: Any) -> NDArray[np.float64]:
    """What a small forest says of rows that it has not seen."""
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.model_selection import cross_val_predict

    features = np.column_stack(
        [
            (values.cat.codes if hasattr(values, "cat") else values).to_numpy(np.float64)
            for _, values in X.items()
        ]
    )
    forest = ExtraTreesClassifier(30, min_samples_leaf=2, random_state=0)
    how: Any = {"cv": splits, "method": "predict_proba"}
    known = np.clip(np.nan_to_num(features), -MOST, MOST)
    found = cross_val_predict(forest, known, real, **how)
    return np.asarray(found[:, 1], np.float64)


def _notes_on_sentinels(schema: Schema, X: pd.DataFrame) -> list[str]:
    """Numbers far from all others that may stand for a missing value, such as -999."""
    notes = []
    for column in schema.used:
        if column.kind != "number":
            continue
        values = X[column.name].to_numpy()
        known = values[~np.isnan(values)]
        if len(known) < FEW_ROWS:
            continue
        for extreme in (known.min(), known.max()):
            others = known[known != extreme]
            n = len(known) - len(others)
            if not len(others) or not NINES.fullmatch(f"{extreme:.10g}") or n < FEW_MARKS:
                continue
            gap = min(abs(others.min() - extreme), abs(others.max() - extreme))
            if gap >= np.ptp(others) or (extreme < 0 and others.min() >= 0):
                notes.append(
                    f"{column.name!r} is {extreme:.10g} in {n:,} rows, and far from it in "
                    f"all others: if it stands for a missing value, leave the cells empty."
                )
    return notes


def _notes_on_copies(X: pd.DataFrame) -> list[str]:
    """Columns that are nearly the same: first by some rows, then by all."""
    if len(X) < FEW_ROWS:
        return []
    rows = np.linspace(0, len(X) - 1, min(len(X), COMPARED_ROWS)).astype(np.intp)
    some = np.column_stack([_scaled(X[name].iloc[rows]) for name in X.columns])
    places = np.argwhere(np.triu(np.abs(some.T @ some) >= NEARLY, 1))
    pairs = [
        (X.columns[i], X.columns[j])
        for i, j in places[:MOST_PAIRS]
        if abs(_scaled(X.iloc[:, i]) @ _scaled(X.iloc[:, j])) >= NEARLY
    ]
    if not pairs:
        return []
    shown = "; ".join(f"{one!r} and {other!r}" for one, other in pairs[:3])
    more = f"; and {counted(len(pairs) - 3, 'more pair')}" if len(pairs) > 3 else ""
    return [
        f"Nearly the same: {shown}{more}. One of each is enough: they share what they are "
        f"worth to a model."
    ]


def _scaled(feature: pd.Series) -> NDArray[np.float64]:
    """A column of which the product with another is their correlation; a gap is 0."""
    values = (feature.cat.codes if hasattr(feature, "cat") else feature).to_numpy(
        np.float64
    )
    gaps = np.isnan(values)
    if gaps.all():
        return np.zeros(len(values))
    low, high = values[~gaps].min(), values[~gaps].max()
    if low == high:
        return np.zeros(len(values))
    with np.errstate(over="ignore"):
        values = np.where(gaps, 0.0, (values - low) / (high - low))
    centred = np.where(gaps, 0.0, values - values[~gaps].mean())
    size = np.sqrt((centred**2).sum())
    return np.nan_to_num(centred / size) if size > 0 else np.zeros(len(values))


def time_values(frame: pd.DataFrame, name: str) -> NDArray[np.float64] | None:
    """A column of dates as seconds, NaN where there is none; None if it holds no dates."""
    import pandas as pd

    values = frame[name]
    if values.isna().all():
        return None
    column = judge(name, values, keep=True)
    if column.kind != "date" or is_time(column.form):
        return None
    dates = dates_of_fit(values, column.form)
    seconds = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return np.asarray(seconds.to_numpy(np.float64, na_value=np.nan))


def is_number_column(column: pd.Series) -> bool:
    """Whether it holds numbers, and not truths."""
    from pandas.api import types

    is_bool = types.is_bool_dtype(column.dtype)
    return bool(types.is_numeric_dtype(column.dtype) and not is_bool)


def read_times(column: pd.Series) -> NDArray[Any]:
    """The rows in their order of time, as numbers."""
    from pandas.api import types

    if is_number_column(column):
        times = column.to_numpy(np.float64, na_value=np.nan)
        odd = ~np.isfinite(times)
    else:
        is_date = types.is_datetime64_any_dtype(column.dtype)
        form = "" if is_date else find_date_format(column.astype("string"))
        if not is_date and not form:
            raise ValueError(
                f"the time column {column.name!r} holds neither dates nor numbers, as "
                f"{str(column.iloc[0])!r} shows; give dates such as 2024-01-31, or numbers"
            )
        dates = dates_in(column, form)
        odd = dates.isna().to_numpy()
        times = dates.dt.as_unit("us").astype("int64").to_numpy()
    if odd.any():
        raise ValueError(
            f"the time column {column.name!r} has "
            f"{counted(odd.sum(), 'value that is', 'values that are')} no time, such as "
            f"{str(column[odd].iloc[0])!r}; give each row a time"
        )
    return times


def _rank_correlation(
    values: NDArray[np.float64], others: NDArray[np.float64] | None = None
) -> float:
    """Spearman's, of these with others or with their own places; 0 if all are alike."""
    from scipy.stats import rankdata

    pair = rankdata(values), np.arange(len(values)) if others is None else rankdata(others)
    if np.ptp(pair[0]) == 0 or np.ptp(pair[1]) == 0:
        return 0.0
    return float(np.corrcoef(*pair)[0, 1])
