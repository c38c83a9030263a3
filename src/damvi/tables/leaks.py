"""Detect target leakage: copies of the target, and values recorded after the outcome."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

    from .schema import Schema

FEW_OF_CLASS = 10
"""With fewer rows of a class, a perfect separation may be chance."""
ENOUGH_OF_CLASS = 20
TOO_GOOD = 0.95
"""Minimum precision and recall at which a single column is suspicious."""
SURELY = 0.99
"""Suspicious F1 or AP of a model; also precision of missing values at lower recall."""
TRIED = 1000
"""Rows of each class on which most columns are quickly cleared."""
JUDGED = 50_000
N_FOLDS = 5
EQUALS_TARGET = "EQUALS THE TARGET: it would give the answer away"
TELLS_BY_GAPS = "MISSING VALUES REVEAL A CLASS: is it known at prediction time?"
SEPARATES = "SEPARATES THE CLASSES ALONE: is it known at prediction time?"
DROPPED = (EQUALS_TARGET, TELLS_BY_GAPS)
"""Leaks for which a column is dropped, unless the user keeps it."""


def find_leak(
    numbers: NDArray[np.float64],
    missing: NDArray[np.bool_],
    labels: NDArray[Any],
    kind: str,
) -> str:
    """Return the leak of a column, given the class of each row; "" if there is none.

    Parameters
    ----------
    numbers : ndarray
        The column's values, categories as codes, NaN if there is none.
    missing : ndarray of bool
        Where the cell is missing.
    labels : ndarray
    kind : {"number", "category", "date"} or another
        Values are compared with the class only for numbers and categories.
    """
    classes, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    n_classes = len(classes)
    if counts.max() == len(labels):
        return ""
    has_values = kind in ("number", "category")
    if has_values and _equals_target(numbers, places, n_classes):
        return EQUALS_TARGET
    if kind == "number" and counts.min() >= FEW_OF_CLASS and _separates(numbers, places):
        return SEPARATES
    for gaps in (missing, np.isnan(numbers)):
        if any(_gaps_identify(gaps, places == place) for place in range(n_classes)):
            return TELLS_BY_GAPS
    return ""


def _equals_target(
    numbers: NDArray[np.float64], places: NDArray[np.intp], n_classes: int
) -> bool:
    """Whether values and classes map one to one; missing counts as a value."""
    if len(np.unique(numbers[:1000])) > n_classes:  # a quick test on the first rows
        return False
    codes = np.unique(np.where(np.isnan(numbers), np.inf, numbers), return_inverse=True)[1]
    if codes.max() + 1 != n_classes:
        return False
    return len(np.unique(codes * n_classes + places)) == n_classes


def _separates(numbers: NDArray[np.float64], places: NDArray[np.intp]) -> bool:
    """Whether thresholds on a number separate the classes without error."""
    if np.isnan(numbers).any():
        return False
    of_class = [numbers[places == c] for c in range(places.max() + 1)]
    ranges = sorted((some.min(), some.max()) for some in of_class)
    return all(one[1] < next_one[0] for one, next_one in pairwise(ranges))


def _gaps_identify(gaps: NDArray[np.bool_], of_class: NDArray[np.bool_]) -> bool:
    """Whether missing (or present) values identify a class.

    For example, a chargeback date exists only where there was a chargeback. It is enough
    that nearly all rows with a value belong to the class and half of the class has one, but
    not for a class of the majority of rows.
    """
    n, n_class, n_gaps = len(gaps), int(of_class.sum()), int(gaps.sum())
    if n_gaps in (0, n):
        return False
    both = int((gaps & of_class).sum())
    for flagged, hits in ((n_gaps, both), (n - n_gaps, n_class - both)):
        precision, recall = hits / flagged, hits / n_class
        if precision == recall == 1:
            return True
        enough = hits >= ENOUGH_OF_CLASS and 2 * n_class <= n
        if enough and precision >= TOO_GOOD and recall >= TOO_GOOD:
            return True
        if enough and precision >= SURELY and recall >= 0.5:
            return True
    return False


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
                if column.reason in DROPPED
                else "If it is not known at prediction time, drop it with --drop"
            )
            warnings.append(f"{said[column.reason].format(repr(column.name))} {cure}")
    return warnings


# Single columns, cross-fitted.


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
            judged = _judge_alone(X[name].iloc[rows], y[rows], weights, N_FOLDS)
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
        _judge_alone(X[name].iloc[rows], y[rows], weights, N_FOLDS) for name in X.columns
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
