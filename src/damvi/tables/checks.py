"""What is suspicious about a table: columns that give the target away, and more.

Target leakage is a copy of the target, or a value recorded after the outcome. The other
checks are of the table as a whole: time order, repeated ids, sentinels, near-duplicates.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..messages import counted
from .schema import (
    ENOUGH_OF_CLASS,
    EQUALS_TARGET,
    REPEATS,
    SEPARATES,
    SURE_LEAKS,
    SURELY,
    TELLS_BY_GAPS,
    TOO_GOOD,
    Schema,
    judge,
)
from .values import dates_in, dates_of_fit, find_date_format, is_time

if TYPE_CHECKING:
    import pandas as pd

TRIED = 1000
"""Rows of each class on which most columns are quickly cleared of leaking the target."""
JUDGED = 50_000
FOLDS_ALONE = 5
IN_ORDER = 0.95
"""Minimum rank correlation of dates with the row number for rows to be in time order."""
ENOUGH_DATES = 0.99
"""Minimum fraction of rows with a date."""
FEW_ROWS = 20
"""With fewer rows, an order or a correlation may be chance."""
MOST_ROWS = 4000
"""Maximum number of rows on which the effect of an id is measured."""
N_FOLDS = 4
SENTINELS = re.compile(r"-?9{2,8}|-?(?:1e\+?0?9|2147483648|2147483647|32768|32767)")
"""Common sentinels for a missing number."""
FEW_MARKS = 5
COMPARED_ROWS = 2000
MOST_PAIRS = 500
NEARLY = 0.9995
"""Minimum absolute correlation of near-duplicate columns."""
MOST_PAIRS_OF_ROWS = 5000
MIN_AUTOCORRELATION, SURE = 0.2, 6.0
"""Minimum lag-1 rank correlation of a column for neighbours to be similar, and the number
of standard errors it must exceed."""
SOME_REAL, SOME_OTHERS = 500, 1500
"""Number of rows on which the effect of similar neighbours is measured."""
MIN_GAIN = 0.03
"""Minimum gain in average precision from similar neighbours that is worth a note. It must
also exceed four standard errors."""
N_DRAWS = 100
TIME_NAME = re.compile(
    r"(?i)time|date|day|week|month|year|hour|minute|second|stamp|tick|epoch|^(?:t|ts)$"
)
"""Names of numeric columns that hold a time."""
MOST = 1e30
"""Largest number that scikit-learn's trees accept."""


# Columns that give the target away.


def leak_warnings(schema: Schema, target: str) -> list[str]:
    """Return a warning for each column that the schema found to leak the target."""
    said = {
        EQUALS_TARGET: f"LEAKAGE: {{}} equals the target {target!r} and was dropped.",
        TELLS_BY_GAPS: "LEAKAGE: missing values of {} reveal the class, so it was dropped.",
        SEPARATES: "LEAKAGE? {} alone separates the classes, in every row.",
    }
    warnings = []
    for column in schema.columns:
        if column.reason in said:
            cure = (
                "If it is known at prediction time, use it with --keep"
                if column.reason in SURE_LEAKS
                else "If it is not known at prediction time, drop it with --drop"
            )
            warnings.append(f"{said[column.reason].format(repr(column.name))} {cure}")
    return warnings


class Alone(NamedTuple):
    """Out-of-fold precision and recall of one feature; the worst over several classes."""

    feature: str
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def suspicious(
    X: pd.DataFrame, y: NDArray[Any], class_counts: list[int] | None = None
) -> list[Alone]:
    """Return the features that alone reach a precision and recall of 0.95 out of fold.

    Each is scored with a small tree. Tables with a class of fewer than 20 rows are skipped.

    Parameters
    ----------
    X : DataFrame
        The encoded table.
    y : ndarray
        Class index of each row.
    class_counts : list of int, optional
        Rows per class in the full table, if some classes are sampled more than others.
    """
    rows, weights = _sample(y, class_counts)
    if len(rows) == 0:
        return []
    few, _ = _sample(y, None, TRIED)
    found = []
    for name in X.columns:
        tried = _judge_alone(X[name].iloc[few], y[few], np.ones(len(few)), folds=1)
        if min(tried.precision, tried.recall) >= TOO_GOOD - 0.03:
            judged = _judge_alone(X[name].iloc[rows], y[rows], weights, FOLDS_ALONE)
            if min(judged.precision, judged.recall) >= TOO_GOOD:
                found.append(judged)
    return found


def suspicions(
    X: pd.DataFrame,
    y: NDArray[Any],
    schema: Schema,
    keep: Collection[str] = (),
    class_counts: list[int] | None = None,
) -> list[str]:
    """Return a warning for each column that alone is suspiciously good."""
    said = {column.name for column in schema.columns if column.reason == SEPARATES}
    warnings = []
    for alone in suspicious(X, y, class_counts):
        name = _column_of(alone.feature, schema)
        if name in said or name in keep:
            continue
        said.add(name)
        warnings.append(
            f"LEAKAGE? {name!r} alone predicts the class of held-out rows with precision "
            f"{alone.precision:.3f} and recall {alone.recall:.3f}. If it is not known at "
            f"prediction time, drop it with --drop"
        )
    return warnings


def best_alone(X: pd.DataFrame, y: NDArray[Any]) -> Alone | None:
    """Return the feature with the highest F1 out of fold."""
    rows, weights = _sample(y, None, most=JUDGED // 5)
    if len(rows) == 0:
        return None
    judged = (
        _judge_alone(X[name].iloc[rows], y[rows], weights, FOLDS_ALONE)
        for name in X.columns
    )
    return max(judged, key=lambda alone: alone.f1, default=None)


def too_good(
    figures: dict[str, float], X: pd.DataFrame, y: NDArray[Any], schema: Schema
) -> str | None:
    """Return a warning about a suspiciously good model, naming the best column.

    Parameters
    ----------
    figures : dict of str to float
        The model's out-of-sample F1 and AP, by name.
    X : DataFrame
        The encoded table that the model was fitted on.
    y : ndarray
    schema : Schema
    """
    name = max(figures, key=lambda name: figures[name], default=None)
    if name is None or not figures[name] >= SURELY:
        return None
    if y.dtype == bool and y.mean() > 0.5:  # a constant prediction comes close
        return None
    start = f"{name} {figures[name]:.3f} is suspiciously high."
    best = best_alone(X, y)
    if best is None:
        return f"{start} Does the table contain duplicate rows?"
    column = _column_of(best.feature, schema)
    if best.f1 < 0.5:
        return (
            f"{start} No single column explains it (the best is {column!r}, with F1 "
            f"{best.f1:.3f}). Does the table contain duplicate rows, or columns recorded "
            f"after the outcome?"
        )
    return (
        f"{start} {column!r} alone has an F1 of {best.f1:.3f}. If it is not known at "
        f"prediction time, drop it with --drop"
    )


def _column_of(feature: str, schema: Schema) -> str:
    return next((c.name for c in schema.used if feature in c.features), feature)


def _sample(
    y: NDArray[Any], class_counts: list[int] | None, most: int = JUDGED
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Sample rows of each class, with weights; empty if a class has too few rows."""
    classes, counts = np.unique(y, return_counts=True)
    if counts.max() == len(y) or counts.min() < ENOUGH_OF_CLASS:
        return np.zeros(0, np.intp), np.zeros(0)
    rng = np.random.default_rng(0)
    rows, weights = [], []
    for place, (label, n) in enumerate(zip(classes, counts.tolist(), strict=True)):
        own = np.flatnonzero(y == label)
        if n > most // len(classes):
            own = np.sort(rng.choice(own, most // len(classes), replace=False))
        total = n if class_counts is None else class_counts[place]
        rows.append(own)
        weights.append(np.full(len(own), total / len(own)))
    order = np.argsort(np.concatenate(rows), kind="stable")
    return np.concatenate(rows)[order], np.concatenate(weights)[order]


def _judge_alone(
    feature: pd.Series, y: NDArray[Any], weights: NDArray[np.float64], folds: int
) -> Alone:
    """Score a small tree on one feature: out of fold, or on its own rows if folds=1."""
    from sklearn.model_selection import StratifiedKFold
    from sklearn.tree import DecisionTreeClassifier

    found = np.empty_like(y)
    everything = np.arange(len(y))
    splits: Any = [(everything, everything)]
    if folds > 1:
        splits = StratifiedKFold(folds, shuffle=True, random_state=0).split(y, y)
    for train, test in splits:
        own = (
            _rates(feature.cat.codes.to_numpy(), y, train, weights)
            if hasattr(feature, "cat")
            else feature.to_numpy(np.float64)
        )
        tree = DecisionTreeClassifier(max_depth=3, min_samples_leaf=3, random_state=0)
        tree.fit(own[train, None], y[train], weights[train])
        found[test] = tree.predict(own[test, None])
    classes = np.unique(y)
    totals = [weights[y == label].sum() for label in classes]
    # Finding the majority class is easy, and not suspicious.
    wanted = [c for c, own in zip(classes, totals, strict=True) if 2 * own <= sum(totals)]
    precisions, recalls = [], []
    for label in wanted:
        flagged, real = found == label, y == label
        hits = weights[flagged & real].sum()
        precisions.append(hits / weights[flagged].sum() if flagged.any() else 0.0)
        recalls.append(hits / weights[real].sum())
    return Alone(str(feature.name), float(min(precisions)), float(min(recalls)))


def _rates(
    codes: NDArray[Any],
    y: NDArray[Any],
    train: NDArray[np.intp],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the rate of the rarest class per category, learned from ``train``."""
    labels, counts = np.unique(y[train], return_counts=True)
    places, own = codes[train] + 1, weights[train]
    rare = own * (y[train] == labels[np.argmin(counts)])
    size = np.bincount(places, own, codes.max() + 2)
    rates: NDArray[np.float64] = np.bincount(places, rare, len(size)) / np.maximum(
        size, 1e-9
    )
    return rates[codes + 1]


# The table as a whole.


def notes_on(
    frame: pd.DataFrame, schema: Schema, X: pd.DataFrame, y: NDArray[Any]
) -> list[str]:
    """Return notes on a table: ambiguous values, repeated ids, sentinels, near-duplicates.

    Parameters
    ----------
    frame : DataFrame
        The table that the schema was inferred from.
    schema : Schema
    X : DataFrame
        The encoded table.
    y : ndarray
        Class index of each row.
    """
    doubts = [f"{c.name!r}: {c.doubt}." for c in schema.columns if c.doubt]
    return [
        *doubts,
        *_notes_on_ids(frame, schema, X, np.asarray(y)),
        *_notes_on_sentinels(schema, X),
        *_notes_on_copies(X),
    ]


def note_on_neighbours(schema: Schema, X: pd.DataFrame, y: NDArray[Any]) -> list[str]:
    """Return a note if rows resemble their neighbours in the file and this inflates scores.

    This is typical of rows in time order without a date column: with random folds, a row is
    scored by a model that was trained on its neighbours. Only rows of the most frequent
    class are examined, so sorting by the target has no effect. Files sorted by a column are
    skipped unless its name suggests a time. The effect is measured with a small forest, on
    random folds and on contiguous blocks, without the columns that the file is sorted by.

    Parameters
    ----------
    schema : Schema
    X : DataFrame
        The encoded table, in file order.
    y : ndarray
        Class index of each row.
    """
    if any(column.reason.startswith(REPEATS) for column in schema.columns):
        return []  # neighbours may share an id, which has its own note
    usual = np.flatnonzero(y == np.bincount(y.astype(np.intp)).argmax())
    numbers = [column.name for column in schema.used if column.kind == "number"]
    similarity = {name: _autocorrelation(X[name].to_numpy()[usual]) for name in numbers}
    if not similarity or max(similarity.values()) < MIN_AUTOCORRELATION:
        return []
    most = max(similarity, key=lambda name: similarity[name])
    sorted_by = [name for name in X.columns if _sorts(X[name])]
    times = [name for name in sorted_by if TIME_NAME.search(str(name))]
    if sorted_by and not times:
        return []  # neighbours are similar because the file is sorted
    effect = _effect_of_neighbours(X.drop(columns=sorted_by), y)
    if effect is None:
        return []
    apart, together = effect
    cure = "add a column with the row number and pass it as --time"
    if times:
        cure = f"the file is sorted by {times[0]!r}; if that is a time, pass it as --time"
    return [
        f"Rows resemble their neighbours in the file (most of all in {most!r}). In a quick "
        f"test on at most {SOME_REAL:,} rows of the rarest class and {SOME_OTHERS:,} "
        f"others, a small forest has an AP of {together:.3f} on random folds, but "
        f"{apart:.3f} on contiguous blocks. If new rows come later than these, the scores "
        f"are too optimistic: {cure}."
    ]


def _sorts(column: pd.Series) -> bool:
    """Whether the rows are sorted or grouped by a column."""
    known = column.dropna()
    if len(known) < FEW_ROWS:
        return False
    codes, values = known.factorize()
    if 1 < len(values) < len(known) / 2:
        return int(np.count_nonzero(np.diff(codes))) == len(values) - 1
    places = np.linspace(0, len(known) - 1, min(len(known), MOST_ROWS)).astype(np.intp)
    numbers = (known.cat.codes if hasattr(known, "cat") else known).to_numpy(np.float64)
    return abs(_rank_correlation(numbers[places])) >= IN_ORDER


def _autocorrelation(values: NDArray[np.float64]) -> float:
    """Return the lag-1 rank correlation of a column; 0 if it is not significant."""
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


def _effect_of_neighbours(X: pd.DataFrame, y: NDArray[Any]) -> tuple[float, float] | None:
    """Return the AP on contiguous blocks and on random folds if they clearly differ."""
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
    for own in (truth, ~truth):  # also if the file is sorted by class
        stretch[own] = np.arange(own.sum()) * N_FOLDS // own.sum()
    scores = [
        _out_of_fold(X.iloc[rows], truth, splits)
        for splits in (
            PredefinedSplit(stretch),
            StratifiedKFold(N_FOLDS, shuffle=True, random_state=0),
        )
    ]
    apart, together = (float(average_precision_score(truth, one)) for one in scores)
    if together - apart < MIN_GAIN:
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
    """Return notes on ids shared by several rows, and on how much they inflate scores."""
    notes = []
    for column in schema.columns:
        if not column.reason.startswith(REPEATS):
            continue
        ids = frame[column.name]
        n_ids, n_rows = ids.nunique(), int(ids.notna().sum())
        note = (
            f"{column.name!r} is an id that repeats: {n_ids:,} values in {n_rows:,} rows. "
            f"It is not used. If new rows will have new ids, evaluate the model on unseen "
            f"ids: --group {column.name}"
        )
        effect = _effect_of_ids(X, y, ids)
        if effect:
            apart, together = effect
            note += (
                f". A small forest has an AP of {together:.3f} if rows of an id may be in "
                f"both training and test folds, and {apart:.3f} if they may not"
            )
        notes.append(note + ".")
    return notes


def _effect_of_ids(
    X: pd.DataFrame, y: NDArray[Any], ids: pd.Series
) -> tuple[float, float] | None:
    """Return the AP of a small forest with ids kept apart, and with ids mixed."""
    from sklearn.metrics import average_precision_score
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    rows = np.flatnonzero(ids.notna().to_numpy())
    if len(rows) > MOST_ROWS:  # keep all rows of an id, or none
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
        float(average_precision_score(real, _out_of_fold(X.iloc[rows], real, splits)))
        for splits in (
            list(StratifiedGroupKFold(**folds).split(real, real, groups)),
            StratifiedKFold(**folds),
        )
    )
    return apart, together


def _out_of_fold(
    X: pd.DataFrame, real: NDArray[np.bool_], splits: Any
) -> NDArray[np.float64]:
    """Return a small forest's out-of-fold probabilities."""
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
    """Return notes on extreme values that may stand for a missing value, such as -999."""
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
            if (
                not len(others)
                or not SENTINELS.fullmatch(f"{extreme:.10g}")
                or n < FEW_MARKS
            ):
                continue
            gap = min(abs(others.min() - extreme), abs(others.max() - extreme))
            if gap >= np.ptp(others) or (extreme < 0 and others.min() >= 0):
                notes.append(
                    f"{column.name!r} is {extreme:.10g} in {n:,} rows, far from all other "
                    f"values. If it stands for a missing value, leave these cells empty."
                )
    return notes


def _notes_on_copies(X: pd.DataFrame) -> list[str]:
    """Return a note on near-duplicate columns: found on a sample, confirmed on all rows."""
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
        f"Nearly identical columns: {shown}{more}. One of each is enough: together they "
        f"split their importance."
    ]


def _scaled(feature: pd.Series) -> NDArray[np.float64]:
    """Scale a column to length 1, so that dot products are correlations; missing is 0."""
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


def _rank_correlation(
    values: NDArray[np.float64], others: NDArray[np.float64] | None = None
) -> float:
    """Spearman's rho with ``others``, or with the row number; 0 if either is constant."""
    from scipy.stats import rankdata

    pair = rankdata(values), np.arange(len(values)) if others is None else rankdata(others)
    if np.ptp(pair[0]) == 0 or np.ptp(pair[1]) == 0:
        return 0.0
    return float(np.corrcoef(*pair)[0, 1])


# Times.


def time_order(frame: pd.DataFrame, schema: Schema) -> str | None:
    """Return the date column that the rows are sorted by, if there is one.

    At least 99% of its values are dates, and the absolute rank correlation with the row
    number is at least 0.95. The model need not use the column.

    Parameters
    ----------
    frame : DataFrame
        The table that the schema was inferred from, in file order.
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


def time_values(frame: pd.DataFrame, name: str) -> NDArray[np.float64] | None:
    """Return a date column as seconds, NaN where missing; None if it holds no dates."""
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
    """Whether the column is numeric and not boolean."""
    from pandas.api import types

    is_bool = types.is_bool_dtype(column.dtype)
    return bool(types.is_numeric_dtype(column.dtype) and not is_bool)


def read_times(column: pd.Series) -> NDArray[Any]:
    """Return the times of the rows as sortable numbers."""
    from pandas.api import types

    if is_number_column(column):
        times = column.to_numpy(np.float64, na_value=np.nan)
        odd = ~np.isfinite(times)
    else:
        is_date = types.is_datetime64_any_dtype(column.dtype)
        form = "" if is_date else find_date_format(column.astype("string"))
        if not is_date and not form:
            raise ValueError(
                f"time column {column.name!r} holds neither dates nor numbers, for example "
                f"{str(column.iloc[0])!r}; use dates such as 2024-01-31, or numbers"
            )
        dates = dates_in(column, form)
        odd = dates.isna().to_numpy()
        times = dates.dt.as_unit("us").astype("int64").to_numpy()
    if odd.any():
        raise ValueError(
            f"time column {column.name!r} has "
            f"{counted(odd.sum(), 'value that is', 'values that are')} not a time, for "
            f"example {str(column[odd].iloc[0])!r}; every row needs a time"
        )
    return times
