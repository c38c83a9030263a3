"""Summary statistics of the columns at fit, for drift detection.

A profile counts rows below and above quantiles, rows per category, and cells that are
missing or unreadable. Counts are additive: new rows are counted block by block and compared
with the training rows (:mod:`damvi.drift`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .schema import Column, Schema
from .values import BLANKS, MISSING, SINCE, dates_of_fit

if TYPE_CHECKING:
    import pandas as pd

LEVELS = (0.0, 0.01, 0.05, *(k / 10 for k in range(1, 10)), 0.95, 0.99, 1.0)
"""Quantiles at which numeric columns are cut; 0 and 1 are the minimum and maximum."""
ROWS_OF_FIT = 100_000
"""Maximum number of rows in a profile; more are sampled."""
LONGEST_DAYS = 1e8

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """Additive counts of rows.

    Attributes
    ----------
    rows : float
    missing, unread : ndarray, one for each used column
        Missing cells, and unreadable ones: text among numbers, or a category that the
        model does not know.
    below, above : ndarray of shape (numbers, cuts)
        Values below and above each cut of each numeric column.
    levels : ndarray
        Rows of each category, for all categorical columns in order.
    decided : ndarray, one for each class
        Rows predicted as each class.
    """

    rows: float
    missing: Floats
    unread: Floats
    below: Floats
    above: Floats
    levels: Floats
    decided: Floats

    def plus(self, other: ColumnCounts | None) -> ColumnCounts:
        """Return the sum of both counts."""
        if other is None:
            return self
        return ColumnCounts(
            *(getattr(self, one.name) + getattr(other, one.name) for one in fields(self))
        )


@dataclass(frozen=True, eq=False)
class Profile:
    """Summary of the training values of a model's columns.

    Raw values are stored only for numbers (the cuts) and dates (the first and the last).
    Category names are in the schema; other text is not stored.

    Attributes
    ----------
    cuts : ndarray of shape (numbers, 15)
        Values of each numeric column at :data:`LEVELS`, with ties.
    days : ndarray of shape (dates, 2)
        First and last day of each date column, since 1970.
    counts : ColumnCounts
        Counts of the training rows, scaled up if they were sampled.

    Examples
    --------
    >>> import pandas as pd
    >>> from damvi.tables import Schema
    >>> frame = pd.DataFrame({"size": [1.5, 4, None], "kind": ["a", "b", "a"]})
    >>> schema = Schema.infer(frame, "fraud")
    >>> profile = Profile.learn(schema, schema.encode(frame), frame)
    >>> profile.counts.missing, profile.cuts[0, [0, -1]], profile.counts.levels
    (array([1., 0.]), array([1.5, 4. ]), array([2., 1.]))
    >>> new = pd.DataFrame({"size": ["7", "big"], "kind": ["c", "b"]})
    >>> now = profile.count(schema, schema.encode(new), new)
    >>> now.unread, now.above[0, -1]
    (array([1., 1.]), np.float64(1.0))
    """

    cuts: Floats
    days: Floats
    counts: ColumnCounts

    @classmethod
    def learn(
        cls,
        schema: Schema,
        X: pd.DataFrame,
        raw: Any,
        weights: Floats | None = None,
    ) -> Profile:
        """Return the profile of some rows.

        Parameters
        ----------
        schema : Schema
        X : DataFrame
            The encoded rows.
        raw : DataFrame
            The same rows, raw.
        weights : ndarray, optional
            How many rows of the table each row stands for.
        """
        rows = some_rows(len(X), ROWS_OF_FIT)
        if rows is not None:
            X, raw = X.iloc[rows], raw.iloc[rows]
            weights = None if weights is None else weights[rows]
        if weights is not None:  # scaled to the effective sample size
            weights = weights * (weights.sum() / (weights**2).sum())
        numbers = [c.name for c in schema.used if c.kind == "number"]
        dates = [c for c in schema.used if c.kind == "date"]
        cuts = np.array([_cuts(X[name].to_numpy(), weights) for name in numbers])
        days = np.array([date_range(column, raw[column.name]) for column in dates])
        cuts, days = cuts.reshape(-1, len(LEVELS)), days.reshape(-1, 2)
        profile = cls(cuts, days, empty_counts(schema, 2))
        return replace(profile, counts=profile.count(schema, X, raw, weights))

    def with_decisions(self, decided: NDArray[np.intp], n_classes: int) -> Profile:
        """Return the profile with the number of rows predicted as each class."""
        counts = np.bincount(decided, minlength=n_classes).astype(np.float64)
        return replace(self, counts=replace(self.counts, decided=counts))

    def count(
        self,
        schema: Schema,
        X: pd.DataFrame,
        raw: Mapping[str, Any],
        weights: Floats | None = None,
        decided: NDArray[np.intp] | None = None,
        most: int | None = None,
    ) -> ColumnCounts:
        """Count rows, for comparison with the training rows.

        Parameters
        ----------
        schema : Schema
        X : DataFrame
            The encoded rows.
        raw : mapping of str to Series or Arrow column
            The same rows, raw, by column.
        weights : ndarray, optional
            Weight of each row.
        decided : ndarray of int, optional
            Predicted class of each row. All are counted.
        most : int, optional
            Maximum number of rows to examine.
        """
        rows = None if most is None else some_rows(len(X), most)
        if rows is not None:
            X = X.iloc[rows]
        found = empty_counts(schema, len(self.counts.decided))
        number = level = 0
        for place, column in enumerate(schema.used):
            cells = _some(raw[column.name], rows)
            if column.kind == "category":
                codes = X[column.name].cat.codes.to_numpy()
                gone = codes < 0
                n = len(column.categories)
                found.levels[level : level + n] = _counts(codes[~gone], n, weights, ~gone)
                level += n
            elif column.kind == "number":
                values = np.ascontiguousarray(X[column.name].to_numpy())
                gone = np.isnan(values)
                for k, cut in enumerate(self.cuts[number].tolist()):
                    found.below[number, k] = _total(values < cut, weights)
                    found.above[number, k] = _total(values > cut, weights)
                number += 1
            else:
                gone = _gone(column, X, cells())
            unread = unread_cells(column, cells, gone)
            found.unread[place] = _total(unread, weights)
            found.missing[place] = _total(gone, weights) - found.unread[place]
        counts = found.decided
        if decided is not None:
            counts = np.bincount(decided, minlength=len(counts)).astype(np.float64)
        total = float(len(X)) if weights is None else float(weights.sum())
        return replace(found, rows=total, decided=counts)


def some_rows(n: int, most: int) -> NDArray[np.intp] | None:
    """Return sorted indices of a fixed random sample of rows; None for all rows."""
    if n <= most:
        return None
    rows: NDArray[np.intp] = np.random.default_rng(n).choice(n, most, replace=False)
    return np.sort(rows)


def empty_counts(schema: Schema, n_classes: int) -> ColumnCounts:
    """Return counts of zero rows."""
    used = schema.used
    kinds = [column.kind for column in used]
    n, cuts = len(used), (kinds.count("number"), len(LEVELS))
    levels = sum(len(column.categories) for column in used if column.kind == "category")
    return ColumnCounts(
        0.0,
        np.zeros(n),
        np.zeros(n),
        np.zeros(cuts),
        np.zeros(cuts),
        np.zeros(levels),
        np.zeros(n_classes),
    )


def check_profile(profile: Profile, schema: Schema, n_classes: int) -> bool:
    """Whether a profile from a file is consistent with the schema."""
    counts, none = profile.counts, empty_counts(schema, n_classes)
    n_dates = [column.kind for column in schema.used].count("date")
    shaped = [(profile.cuts, none.below.shape), (profile.days, (n_dates, 2))]
    names = [one.name for one in fields(ColumnCounts) if one.name != "rows"]
    shaped += [(getattr(counts, name), getattr(none, name).shape) for name in names]
    for array, shape in shaped:
        known = isinstance(array, np.ndarray) and array.dtype == np.float64
        if not known or array.shape != shape:
            return False
    rows: Any = counts.rows
    if not isinstance(rows, float) or not 1 <= rows < 2**62:
        return False
    # Decisions are counted on all rows, even if the rest is sampled.
    most = {name: 2.0**62 if name == "decided" else rows * (1 + 1e-9) for name in names}
    for name in names:
        found = getattr(counts, name)
        if not ((found >= 0) & (found <= most[name])).all():
            return False
    if not np.isfinite(profile.cuts).all() or (np.diff(profile.cuts) < 0).any():
        return False
    read = rows * (1 + 1e-9) - counts.missing - counts.unread
    numbers = [column.kind == "number" for column in schema.used]
    values = (counts.below + counts.above).max(axis=1, initial=0.0)
    if (read < 0).any() or (values > read[numbers] + 1e-6).any():
        return False
    first, last = profile.days.T
    dated = (first <= last) & (np.abs(profile.days) < LONGEST_DAYS).all(axis=1)
    return bool((np.isnan(profile.days).all(axis=1) | dated).all())


def _cuts(values: Floats, weights: Floats | None) -> Floats:
    """Return the values at :data:`LEVELS`."""
    known = ~np.isnan(values)
    values = values[known]
    if weights is None:
        values = np.sort(values)
        before = np.arange(1.0, len(values) + 1)
    else:
        order = np.argsort(values, kind="stable")
        values, before = values[order], np.cumsum(weights[known][order])
    places = np.searchsorted(before, np.array(LEVELS) * before[-1])
    return np.asarray(values[np.minimum(places, len(values) - 1)])


def _total(rows: Mask, weights: Floats | None) -> float:
    return float(np.count_nonzero(rows) if weights is None else weights[rows].sum())


def _counts(
    codes: NDArray[Any], n: int, weights: Floats | None, rows: Mask
) -> NDArray[Any]:
    return np.bincount(codes, None if weights is None else weights[rows], minlength=n)


def date_range(column: Column, values: pd.Series) -> tuple[float, float]:
    """Return the first and last day of a date column, since 1970."""
    import pandas as pd

    dates = dates_of_fit(values, column.form)
    if dates.isna().all():
        return np.nan, np.nan
    start = pd.Timestamp(0, tz="UTC")
    first, last = (
        (one - start) // pd.Timedelta(days=1) for one in (dates.min(), dates.max())
    )
    return float(first), float(last)


def _some(cells: Any, rows: NDArray[np.intp] | None) -> Callable[[], pd.Series]:
    """Return a function that fetches cells; only columns with missing values need it."""

    def fetch() -> pd.Series:
        if hasattr(cells, "null_count"):
            return (cells if rows is None else cells.take(rows)).to_pandas()
        return cells if rows is None else cells.iloc[rows]

    return fetch


def _gone(column: Column, X: pd.DataFrame, cells: pd.Series) -> Mask:
    """Return where a date, level or text column is missing after encoding."""
    own = column.features
    if column.kind == "date":
        pairs = zip(column.parts, column.features, strict=True)
        own = [feature for part, feature in pairs if not part.startswith(SINCE)]
    if not own:  # used only for the days since another date
        return np.asarray(cells.isna().to_numpy())
    return np.asarray(X[own].isna().to_numpy().all(axis=1))


def unread_cells(column: Column, cells: Callable[[], pd.Series], gone: Mask) -> Mask:
    """Return which cells are filled but unreadable.

    Parameters
    ----------
    column : Column
    cells : callable
        Returns the raw cells.
    gone : ndarray of bool
        Which cells are missing after encoding.
    """
    unread = np.zeros(len(gone), bool)
    if not gone.any():
        return unread
    written = cells()
    filled = gone & written.notna().to_numpy()
    if filled.any():
        texts = written[filled].astype("string").str.strip(BLANKS).str.lower()
        marks: Sequence[str] = ("",) if column.kind == "category" else MISSING
        unread[filled] = ~texts.isin(marks).to_numpy(bool)
    return unread
