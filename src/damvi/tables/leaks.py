"""Columns that know too much: the target in disguise, or what is written down after it."""

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
"""Of a class; with fewer, chance alone may part it from the others."""
ENOUGH_OF_CLASS = 20
TOO_GOOD = 0.95
"""Precision and recall of one column alone, from which on it is suspicious."""
SURELY = 0.99
"""A model's F1 or AP; and the precision of a column's presence, if its recall is less."""
TRIED = 1000
"""Rows of each class by which most columns are seen to be innocent."""
JUDGED = 50_000
N_FOLDS = 5
EQUALS_TARGET = "EQUALS THE TARGET: it would give the answer away"
TELLS_BY_GAPS = "TELLS A CLASS BY ITS GAPS: is it known beforehand?"
SEPARATES = "TELLS THE CLASSES APART ALONE: is it known beforehand?"
DROPPED = (EQUALS_TARGET, TELLS_BY_GAPS)
"""What costs a column its place, unless it is to be kept."""


def find_leak(
    numbers: NDArray[np.float64],
    missing: NDArray[np.bool_],
    labels: NDArray[Any],
    kind: str,
) -> str:
    """What is suspicious about a column, given the class of each row; "" if nothing is.

    Parameters
    ----------
    numbers : ndarray
        The column's values, categories as codes, NaN where there is none.
    missing : ndarray of bool
        Where it has no value at all.
    labels : ndarray
    kind : {"number", "category", "date"} or another
        Only what numbers and categories are is compared with the class.
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
        if any(_tells(gaps, places == place) for place in range(n_classes)):
            return TELLS_BY_GAPS
    return ""


def _equals_target(
    numbers: NDArray[np.float64], places: NDArray[np.intp], n_classes: int
) -> bool:
    """Whether there are as many values as classes, one for each; a gap is a value."""
    if len(np.unique(numbers[:1000])) > n_classes:  # the first ones say it quickly
        return False
    codes = np.unique(np.where(np.isnan(numbers), np.inf, numbers), return_inverse=True)[1]
    if codes.max() + 1 != n_classes:
        return False
    return len(np.unique(codes * n_classes + places)) == n_classes


def _separates(numbers: NDArray[np.float64], places: NDArray[np.intp]) -> bool:
    """Whether thresholds on a number part the classes without an error."""
    if np.isnan(numbers).any():
        return False
    of_class = [numbers[places == c] for c in range(places.max() + 1)]
    ranges = sorted((some.min(), some.max()) for some in of_class)
    return all(one[1] < next_one[0] for one, next_one in pairwise(ranges))


def _tells(gaps: NDArray[np.bool_], of_class: NDArray[np.bool_]) -> bool:
    """Whether gaps, or the lack of one, tell a class from the others.

    The day of a chargeback is known where there was one. It is enough that nearly all rows
    with a value are of the class, and half of those of the class have one; but not of a
    class that most rows are of anyway.
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
    """What is said, loudly, of the columns that a schema found to know too much."""
    said = {
        EQUALS_TARGET: f"LEAKAGE: {{}} equals the target {target!r} and was dropped.",
        TELLS_BY_GAPS: "LEAKAGE: that {} has a value tells the class, and it was dropped.",
        SEPARATES: "LEAKAGE? {} alone tells the classes apart, in every row.",
    }
    warnings = []
    for column in schema.columns:
        if column.reason in said:
            cure = (
                "If it is known beforehand, use it with --keep"
                if column.reason in DROPPED
                else "If it is not known beforehand, leave it out with --drop"
            )
            warnings.append(f"{said[column.reason].format(repr(column.name))} {cure}")
    return warnings


# One column alone, cross-fitted.


class Alone(NamedTuple):
    """What one feature gives out of sample: of several classes, the worst of them."""

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
    """Features of which each alone has a precision and a recall of .95 and more.

    Each is judged by a small tree, on rows that this has not seen. A class of fewer than
    20 rows is no ground for suspicion.

    Parameters
    ----------
    X : DataFrame
        Encoded.
    y : ndarray
        The class of each row, by number.
    class_counts : list of int, optional
        How many rows each class has where the rows come from, if some classes are
        sampled more than others.
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
    """Warnings of columns that alone are too good to be true; see ``suspicious``."""
    said = {column.name for column in schema.columns if column.reason == SEPARATES}
    warnings = []
    for alone in suspicious(X, y, class_counts):
        name = _column_of(alone.feature, schema)
        if name in said or name in keep:
            continue
        said.add(name)
        warnings.append(
            f"LEAKAGE? {name!r} alone tells the class of rows it has not seen: precision "
            f"{alone.precision:.3f}, recall {alone.recall:.3f}. If it is not known "
            f"beforehand, leave it out with --drop"
        )
    return warnings


def best_alone(X: pd.DataFrame, y: NDArray[Any]) -> Alone | None:
    """The feature that alone has the highest F1, out of sample."""
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
    """A warning of a model that is too good to be true, and of the column behind it.

    Parameters
    ----------
    figures : dict of str to float
        Of the model, out of sample, by name: F1 and AP.
    X : DataFrame
        Encoded, as the model was fitted on it.
    y : ndarray
    schema : Schema
    """
    name = max(figures, key=lambda name: figures[name], default=None)
    if name is None or not figures[name] >= SURELY:
        return None
    if y.dtype == bool and y.mean() > 0.5:  # chance alone comes near it
        return None
    start = f"{name} {figures[name]:.3f} is too good to be true for most tables."
    best = best_alone(X, y)
    if best is None:
        return f"{start} Are there rows that are in it more than once?"
    column = _column_of(best.feature, schema)
    if best.f1 < 0.5:
        return (
            f"{start} No column alone explains it ({column!r} comes first, with F1 "
            f"{best.f1:.3f}): are there rows that are in it more than once, or columns "
            f"that are written down after the fact?"
        )
    return (
        f"{start} {column!r} alone has an F1 of {best.f1:.3f}: if it is not known "
        f"beforehand, leave it out with --drop"
    )


def _column_of(feature: str, schema: Schema) -> str:
    return next((c.name for c in schema.used if feature in c.features), feature)


def _sample(
    y: NDArray[Any], class_counts: list[int] | None, most: int = JUDGED
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Rows of each class and what each stands for; none if a class has too few."""
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
    """What a small tree on a feature gives: on other rows, or with one fold on its own."""
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
    # To find what most rows are anyway is no feat.
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
    """The rate of the rarest class in each row's category, learned from ``train``."""
    labels, counts = np.unique(y[train], return_counts=True)
    places, own = codes[train] + 1, weights[train]
    rare = own * (y[train] == labels[np.argmin(counts)])
    size = np.bincount(places, own, codes.max() + 2)
    rates: NDArray[np.float64] = np.bincount(places, rare, len(size)) / np.maximum(
        size, 1e-9
    )
    return rates[codes + 1]
