"""Effects of columns on the vote, and errors by segment."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import FittedVote, share

if TYPE_CHECKING:
    from ..tables import Column, Schema

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

MOST_EFFECTS = 6
"""Number of features whose effect is drawn, the most important first."""
ASKED_ROWS = 150
"""Rows used for the partial dependence."""
MOST_POINTS = 9
MOST_LEVELS = 8
"""Categories with a group of their own; the others share one."""
N_QUANTILES = 5
LEAST_COVERED = 0.2
"""Share of rows that the groups of a text column must cover; ids and free text do not."""
MOST_COLUMNS = 40
"""Number of columns with segments on the page."""
MISSING, OTHERS = "missing", "all others"


def effects(
    fitted: FittedVote, X: Any, schema: Schema, ranked: list[str], seed: int = 0
) -> list[dict[str, Any]]:
    """Partial dependence of the probabilities on the most important columns.

    In a sample of rows, a feature is set to each of its values in turn, and the
    probabilities are averaged.

    Parameters
    ----------
    fitted : FittedVote
    X : DataFrame
        Encoded rows.
    schema : Schema
    ranked : list of str
        Columns, most important first.
    seed : int, default=0
        Seed of the sample.

    Returns
    -------
    effects : list of dict
        ``name`` of the feature, its ``values`` (numbers or texts), whether it
        ``is_number``, and ``chance``: for each value, the mean probabilities of the
        reported classes.
    """
    by_name = {column.name: column for column in schema.used}
    known = [by_name[name] for name in ranked if name in by_name]
    plain = [column for column in known if column.kind in ("number", "category", "date")]
    features = [name for column in plain for name in column.features]
    rows = np.random.default_rng(seed).permutation(len(X))[:ASKED_ROWS]
    sample, found = X.iloc[np.sort(rows)], []
    for name in [name for name in features if name in X.columns][:MOST_EFFECTS]:
        values = _values_to_try(X[name])
        if len(values) < 2:
            continue
        asked = sample.iloc[np.tile(np.arange(len(sample)), len(values))].copy()
        each = np.repeat(np.arange(len(values)), len(sample))
        is_number = X[name].dtype.kind == "f"
        asked[name] = (
            np.asarray(values)[each]
            if is_number
            else _as_category(X[name], [values[k] for k in each])
        )
        chance, _ = fitted.decide(fitted.classifier.vote(asked))
        mean = chance.reshape(len(values), len(sample), -1).mean(axis=1)
        found.append(
            {
                "name": name,
                "is_number": is_number,
                "values": values,
                "chance": mean.tolist(),
            }
        )
    return found


def _values_to_try(column: Any) -> list[Any]:
    """Quantiles of numbers, or the most frequent categories."""
    if column.dtype.kind != "f":
        counts = column.value_counts()
        return [str(level) for level in counts.index[counts > 0][:MOST_LEVELS]]
    numbers = column.dropna().to_numpy()
    distinct = np.unique(numbers)
    if len(distinct) > MOST_POINTS:
        shares = np.linspace(0.02, 0.98, MOST_POINTS)
        distinct = np.unique(np.quantile(numbers, shares, method="nearest"))
    return [float(value) for value in distinct]


def _as_category(column: Any, texts: list[str]) -> Any:
    import pandas as pd

    return pd.Categorical(texts, categories=column.cat.categories)


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows grouped by a column: the group of each row, and the group names."""

    codes: Labels
    names: list[str]


def segments(
    schema: Schema, frame: Any, X: Any, decided: Labels, labels: Labels, usual: int | None
) -> list[dict[str, Any]]:
    """Scores by segment of each column; columns with the largest differences first.

    Parameters
    ----------
    schema : Schema
    frame, X : DataFrames
        The rows as in the file, and encoded.
    decided, labels : ndarrays of int
    usual : int or None
        The negative class, if there are two.

    Returns
    -------
    segments : list of dict
        ``name`` of the column and its ``groups``: ``name``, ``rows``, and ``precision``
        and ``recall`` for two classes or ``right`` for more, as from
        :func:`damvi.evaluation.share`.
    """
    found: list[dict[str, Any]] = []
    for column in schema.columns:
        for name, groups in _groups(column, frame, X):
            parts = [
                {"name": group, **_shares(groups.codes == k, decided, labels, usual)}
                for k, group in enumerate(groups.names)
            ]
            parts = [group for group in parts if group["rows"]]
            if len(parts) > 1:
                by_chance = _by_chance(parts)
                found.append({"name": name, "groups": parts, "by_chance": by_chance})
    found.sort(key=lambda one: one["by_chance"])
    return found[:MOST_COLUMNS]


def _shares(
    rows: NDArray[np.bool_], decided: Labels, labels: Labels, usual: int | None
) -> dict[str, Any]:
    named, truth = decided[rows], labels[rows]
    if usual is None:
        right = share(int((named == truth).sum()), len(truth))
        return {"rows": len(truth), "right": right}
    real, flagged = truth != usual, named != usual
    found = int((real & flagged).sum())
    return {
        "rows": len(truth),
        "precision": share(found, int(flagged.sum())),
        "recall": share(found, int(real.sum())),
    }


def _by_chance(groups: list[dict[str, Any]]) -> float:
    """The p-value of a chi-squared test for equal rates in all segments."""
    from scipy.stats import chi2_contingency

    likely = []
    for key in ("precision", "recall", "right"):
        rates = [group[key] for group in groups if key in group]
        table = np.array([(one["part"], one["whole"] - one["part"]) for one in rates])
        if not len(table):
            continue
        table = table[table.sum(axis=1) > 0]
        if len(table) > 1 and (table.sum(axis=0) > 0).all():
            likely.append(float(chi2_contingency(table).pvalue))
    return min(1.0, len(likely) * min(likely)) if likely else 1.0


def _groups(column: Column, frame: Any, X: Any) -> list[tuple[str, Groups]]:
    """The rows grouped by a column, or by each of its features."""
    from pandas.api import types

    encoded = [name for name in column.features if name in X.columns]
    if column.kind in ("number", "category", "date") and encoded:
        series = {name: X[name] for name in encoded}
        if column.kind == "date" and types.is_datetime64_any_dtype(frame[column.name]):
            series = {column.name: frame[column.name], **series}
    elif column.name in frame.columns:
        series = {column.name: frame[column.name]}
    else:
        return []
    grouped = [(name, _of_values(values)) for name, values in series.items()]
    return [(name, groups) for name, groups in grouped if groups is not None]


def _of_values(values: Any) -> Groups | None:
    from pandas.api import types

    is_date = types.is_datetime64_any_dtype(values)
    if is_date or (types.is_numeric_dtype(values) and not types.is_bool_dtype(values)):
        if types.is_complex_dtype(values):
            return None
        return _of_numbers(values, is_date)
    texts = values.astype("string")
    counts = texts.value_counts()
    if not len(counts) or counts[:MOST_LEVELS].sum() < LEAST_COVERED * len(texts):
        return None
    levels = [str(level) for level in counts.index[counts > 0]]
    shown = levels if len(levels) == MOST_LEVELS + 1 else levels[:MOST_LEVELS]
    place = {level: k for k, level in enumerate(shown)}
    codes = texts.map(place).fillna(len(shown)).to_numpy(dtype=np.intp)
    codes = np.where(texts.isna().to_numpy(), len(shown) + 1, codes)
    return Groups(codes, [*map(_shorten, shown), OTHERS, MISSING])


def _of_numbers(values: Any, is_date: bool) -> Groups:
    """Quintiles, or the values themselves if there are few."""
    missing = values.isna().to_numpy()
    if is_date:
        numbers = values.to_numpy(dtype="datetime64[ns]").astype(np.int64).astype(float)
    else:
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    distinct = np.unique(numbers[~missing])

    def text(number: float) -> str:
        if is_date:
            return str(np.datetime64(int(number), "ns").astype("datetime64[D]"))
        whole = number == round(number) and abs(number) < 1e15
        return f"{number:,.0f}" if whole else f"{number:.4g}"

    if len(distinct) <= N_QUANTILES + 2:
        codes, names = np.searchsorted(distinct, numbers), [*map(text, distinct)]
    else:
        shares = np.arange(1, N_QUANTILES) / N_QUANTILES
        edges = np.unique(np.quantile(numbers[~missing], shares, method="lower"))
        edges = edges[edges < distinct[-1]]
        # An edge belongs to the group below it.
        codes = np.searchsorted(edges, numbers, side="left")
        ends = [*map(text, edges)]
        between = [f"{a} to {b}" for a, b in pairwise(ends)]
        names = [f"up to {ends[0]}", *between, f"above {ends[-1]}"]
    codes = np.where(missing, len(names), codes)
    return Groups(codes.astype(np.intp), [*names, MISSING])


def _shorten(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
