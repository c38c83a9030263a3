"""Objectives of the threshold, and the search for the threshold that is best by one.

An objective defines which of two decisions is better. To add one, write a subclass of
:class:`Objective`, list it in ``OBJECTIVES``, and add the way users write it to
:func:`parse_objective`; for tables, to ``parse_metric`` of ``damvi.model`` too. For two
classes, all possible thresholds are compared in one sort; with few positives, on expected
counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels import (
    Labels,
    allows_many_classes,
    decide,
    positive_wins,
    vote_columns,
    vote_shape,
)
from ..messages import counted
from .factors import best_factors, confusion, f1_by_class

Number = NDArray[np.float64]
"""A number, or an array."""
Classes = NDArray[np.intp]
"""Class numbers."""

SLACK = 1e-12
"""Tolerance for rates that equal a minimum, or each other, up to rounding."""
LARGEST = float(np.finfo(np.float64).max)
BELOW = 1 / 8
"""How far the threshold of a budget is below the lowest flagged vote, as a share of the gap
to the next. If k of n votes are flagged, a new vote exceeds the lowest flagged one with
probability k / (n + 1), and the next one with probability (k + 1) / (n + 1)."""

TWO_CLASSES = (
    '"vote", "f1", "fbeta", ("fbeta", 2), {"recall": 0.9}, {"precision": 0.8}, '
    '{"flags": 200}, {"cost": (false_alarm, miss)} or a number'
)


@dataclass(frozen=True, eq=False)
class Rows:
    """The votes that count: those that are not NaN and have positive weight.

    Attributes
    ----------
    index : ndarray of shape (n_kept,)
        Positions of these rows among all rows given.
    vote : ndarray of shape (n_kept,), or (n_kept, C) for three or more classes
    targets : ndarray of shape (n_kept,)
        Class numbers; of two classes, 1 is the positive one.
    weight : ndarray of shape (n_kept,)
        Sample weights, divided by a power of 2 so that sums stay finite; this affects
        neither ratios nor ties.
    n_given : int
    """

    index: Classes
    vote: Number
    targets: Classes
    weight: Number
    n_given: int

    def __len__(self) -> int:
        return len(self.vote)

    @property
    def n_classes(self) -> int:
        return len(vote_columns(self.vote)[2])

    @cached_property
    def positive(self) -> NDArray[np.bool_]:
        return self.targets == 1

    @property
    def has_both(self) -> bool:
        """Whether there are positives and negatives."""
        return bool(self.positive.any()) and not self.positive.all()

    @cached_property
    def total(self) -> float:
        """Total weight of the rows."""
        return float(self.weight.sum())

    def take(self, part: NDArray[Any]) -> Rows:
        """A subset of the rows, by a mask or by positions among those kept."""
        index, weight = self.index[part], self.weight[part]
        return Rows(index, self.vote[part], self.targets[part], weight, self.n_given)

    def decided(self, threshold: Any, order: ArrayLike | None) -> Classes:
        """The class of each row; see :func:`~damvi.labels.decide`."""
        return decide(self.vote, threshold, order)

    def by_class(self) -> list[tuple[NDArray[np.bool_], Number]]:
        """For each class that is looked for, which rows are of it, and the votes for it."""
        columns, reported, _ = vote_columns(self.vote)
        return [(self.targets == c, columns[:, at]) for at, c in enumerate(reported)]

    def against_the_rest(self) -> list[Rows]:
        """For each class that is looked for, the rows with a vote in [-1, 1] for it."""
        low, high = Labels.kind(self.n_classes).vote_limits
        middle, half = (low + high) / 2, (high - low) / 2
        return [
            replace(self, vote=(vote - middle) / half, targets=own.astype(np.intp))
            for own, vote in self.by_class()
        ]


def read_rows(vote: ArrayLike, targets: ArrayLike, sample_weight: ArrayLike | None) -> Rows:
    """Validate votes, targets and weights, and keep the rows that count."""
    votes = np.asarray(vote, dtype=np.float64)
    columns, _, classes = vote_columns(votes)
    if votes.shape != vote_shape(len(columns), len(classes)):
        raise ValueError(
            f"vote has shape {votes.shape}; give one number per row for two classes, or "
            f"one for each class for three or more"
        )
    if np.isinf(votes).any():
        raise ValueError("vote contains infinities; use NaN for rows without a vote")
    missing = np.isnan(columns).any(axis=1)
    numbers = _read_targets(targets, len(votes), len(classes))
    weight = np.ones(len(votes))
    if sample_weight is not None:
        weight = _column(sample_weight, "sample_weight", len(votes)).astype(np.float64)
        if not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise ValueError("sample_weight must be finite and not negative")
    index = np.flatnonzero(~missing & (weight > 0))
    if not len(index):
        raise ValueError(
            "no row has both a vote and positive weight; votes are NaN for rows that were "
            "never out of sample, of which there are fewer with more voters or folds"
        )
    weight = weight[index]
    weight = np.ldexp(weight, -np.frexp(weight.max())[1])
    return Rows(index, votes[index], numbers[index], weight, len(votes))


def _read_targets(targets: ArrayLike, n: int, n_classes: int) -> Classes:
    given = _column(targets, "targets", n)
    with np.errstate(invalid="ignore"):  # NaN is detected below
        numbers = given.astype(np.intp)
    wrong = (numbers != given) | (numbers < 0) | (numbers >= n_classes)
    if wrong.any():
        raise ValueError(
            f"targets must be class numbers from 0 to {n_classes - 1}, but contain "
            f"{given[wrong][0]!r}"
        )
    return numbers


def require_all_classes(rows: Rows) -> None:
    """Raise an error if a class has no rows."""
    lacking = np.flatnonzero(np.bincount(rows.targets, minlength=rows.n_classes) == 0)
    if len(lacking):
        raise ValueError(
            f"none of the {len(rows)} rows with a vote and positive weight is of class "
            f"{lacking[-1]}; rows of every class are needed"
        )


def read_folds(folds: ArrayLike, rows: Rows) -> Classes:
    """The fold of each kept row, numbered from 0."""
    given = _column(folds, "folds", rows.n_given)[rows.index]
    known, numbers = np.unique(given, return_inverse=True)
    if len(known) < 2:
        raise ValueError("folds has a single fold; cross-fitting needs at least two")
    return numbers.reshape(-1)


def deal_folds(rows: Rows, n_folds: int, seed: int) -> Classes:
    """Assign the rows of each class to folds, at random and evenly."""
    rng = np.random.RandomState([seed, 5])
    folds = np.empty(len(rows), dtype=np.intp)
    for c in reversed(range(rows.n_classes)):
        own = rng.permutation(np.flatnonzero(rows.targets == c))
        folds[own] = np.arange(len(own)) % n_folds
    return folds


def _column(values: ArrayLike, name: str, n: int) -> NDArray[Any]:
    """Check that there is one value per row."""
    array = np.asarray(values)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}, but vote has {n} rows")
    return array


@dataclass(frozen=True, eq=False)
class Counts:
    """Weighted counts of decisions on two classes, for one or more thresholds and draws.

    Attributes
    ----------
    found, alarms : ndarray
        Flagged positives and negatives.
    positives, negatives : ndarray
        All positives and negatives.
    total : float
        Total weight of the rows. It differs from positives + negatives if these are
        weighted by costs.
    """

    found: Number
    alarms: Number
    positives: Number
    negatives: Number
    total: float

    @classmethod
    def of(cls, rows: Rows, flagged: NDArray[np.bool_], mass: Number) -> Counts:
        """Counts of given decisions, in which each row counts ``mass``."""
        positive = rows.positive
        return cls(
            found=np.asarray(mass[flagged & positive].sum()),
            alarms=np.asarray(mass[flagged & ~positive].sum()),
            positives=np.asarray(mass[positive].sum()),
            negatives=np.asarray(mass[~positive].sum()),
            total=rows.total,
        )

    @property
    def recall(self) -> Number:
        """Share of the positives that are flagged; 0 if there are none."""
        return share(self.found, self.positives)

    @property
    def precision(self) -> Number:
        """Share of positives among the flagged rows; 0 if there are none."""
        return share(self.found, self.found + self.alarms)

    def f_score(self, beta: float) -> Number:
        """The weighted harmonic mean of precision and recall; 0 without positives."""
        squared = beta * beta
        whole = squared * self.positives + self.found + self.alarms
        return share((1 + squared) * self.found, whole)


def recall_of_top(vote: Number, positive: Any, weight: Number, top: float) -> Number:
    """Recall of the rows with the highest votes, ``top`` of the weight: (draws,).

    ``weight`` has one row for each draw. Rows with equal votes are taken in random order,
    of which this is the mean.

    Examples
    --------
    >>> vote, positive = np.array([0.9, 0.5, 0.1, 0]), np.array([1, 0, 1, 0])
    >>> recall_of_top(vote, positive, np.ones((1, 4)), 0.5).tolist()
    [0.5]
    """
    order = np.argsort(-vote, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(vote[order]) != 0, True))
    mass = weight[:, order]
    seen = mass.cumsum(axis=1)[:, ends]
    found = (mass * positive[order]).cumsum(axis=1)[:, ends]
    hits = [
        np.interp(top * rows[-1], np.append(0, rows), np.append(0, ups))
        for rows, ups in zip(seen, found, strict=True)
    ]
    return share(np.array(hits), found[:, -1])


def share(part: Number, whole: Number) -> Number:
    """``part / whole``, and 0 if ``whole`` is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Number = np.where(whole > 0, part / whole, 0.0)
    return found


@dataclass(frozen=True, eq=False)
class Objective:
    """Base class: rows count by their weight, and there is no tie-breaker."""

    @property
    def can_be_smoothed(self) -> bool:
        """Whether ``smooth`` of ``tune_threshold`` applies."""
        return False

    @property
    def name(self) -> str:
        """What ``value`` measures, for display."""
        raise NotImplementedError

    def value(self, counts: Counts) -> Number:
        """The score: displayed, and maximised unless ``preference`` says otherwise.

        It must be finite for all counts, none or all rows flagged included; see ``share``.
        """
        raise NotImplementedError

    def preference(self, counts: Counts) -> tuple[Number, ...]:
        """Higher is better; each further entry breaks ties of those before it."""
        return (self.value(counts),)

    def masses(self, rows: Rows) -> tuple[Number, Number]:
        """Weight of each row in the counts if it is positive, and if it is negative."""
        return rows.weight, rows.weight

    def mass(self, rows: Rows) -> Number:
        """Weight of each row in the counts."""
        if_positive, if_negative = self.masses(rows)
        return np.where(rows.positive, if_positive, if_negative)

    def among(self, n_rows: int) -> Objective:
        """The same objective for this number of rows, if that makes a difference."""
        return self

    def check(self, rows: Rows) -> None:
        """Raise an error if nothing can be learned from these rows."""
        require_all_classes(rows)

    def judge(self, rows: Rows, decided: Classes) -> tuple[float, float]:
        """The value of given decisions, and the number to maximise."""
        counts = Counts.of(rows, decided == 1, self.mass(rows))
        return float(self.value(counts)), float(self.preference(counts)[0])

    def rates(self, rows: Rows, decided: Classes) -> tuple[Number, Number, Number]:
        """Recall, precision and F1 of given decisions, by sample weight."""
        counts = Counts.of(rows, decided == 1, rows.weight)
        return counts.recall, counts.precision, counts.f_score(1)


@dataclass(frozen=True, eq=False)
class MacroF1(Objective):
    """Mean F1 of three or more classes."""

    @property
    def name(self) -> str:
        return "macro F1"

    def check(self, rows: Rows) -> None:
        """Classes may have no rows: the factors of the others can still be learned."""

    def judge(self, rows: Rows, decided: Classes) -> tuple[float, float]:
        table = confusion(rows.targets, decided, rows.weight, rows.n_classes)
        value = float(f1_by_class(table).mean())
        return value, value

    def rates(self, rows: Rows, decided: Classes) -> tuple[Number, Number, Number]:
        """Recall, precision and F1 of each class."""
        table = confusion(rows.targets, decided, rows.weight, rows.n_classes)
        found = np.diagonal(table)
        recall, precision = (share(found, table.sum(axis=axis)) for axis in (1, 0))
        return recall, precision, f1_by_class(table)


@dataclass(frozen=True, eq=False)
class Fixed(Objective):
    """A fixed threshold, scored by F1; 0 is the sign of the vote, as in the paper."""

    threshold: Any = 0.0

    @property
    def name(self) -> str:
        return "F1"

    def value(self, counts: Counts) -> Number:
        return counts.f_score(1)


@dataclass(frozen=True, eq=False)
class Factors(MacroF1, Fixed):
    """Fixed factors for three or more classes, scored by macro F1."""


@dataclass(frozen=True, eq=False)
class FBeta(Objective):
    """The F score in which recall counts ``beta`` times as much as precision."""

    beta: float = 1.0

    @property
    def can_be_smoothed(self) -> bool:
        return True

    @property
    def name(self) -> str:
        return f"F{self.beta:g}"

    def value(self, counts: Counts) -> Number:
        return counts.f_score(self.beta)


@dataclass(frozen=True, eq=False)
class Floor(Objective):
    """Maximise recall or precision, with a minimum ``floor`` for the other (``rate``).

    If the minimum cannot be reached, come as close as possible. Ties go to the higher
    ``rate``.
    """

    rate: Literal["recall", "precision"]
    floor: float

    @property
    def name(self) -> str:
        goal = "precision" if self.rate == "recall" else "recall"
        return f"{goal} at {self.rate} >= {self.floor:g}"

    def kept(self, counts: Counts) -> Number:
        """The rate that has a minimum."""
        return counts.recall if self.rate == "recall" else counts.precision

    def reached(self, counts: Counts) -> NDArray[np.bool_]:
        reached: NDArray[np.bool_] = self.kept(counts) >= self.floor - SLACK
        return reached

    def value(self, counts: Counts) -> Number:
        return counts.precision if self.rate == "recall" else counts.recall

    def preference(self, counts: Counts) -> tuple[Number, ...]:
        kept = self.kept(counts)
        return np.where(self.reached(counts), self.value(counts), kept - 2), kept


@dataclass(frozen=True, eq=False)
class Flags(Objective):
    """A budget of flags: flag ``number`` of every ``per`` rows.

    If ``per`` is None, it is the number of rows that the threshold is tuned on. The
    threshold depends on the votes alone, not on the targets.
    """

    number: float
    per: float | None = None

    @property
    def name(self) -> str:
        if self.per is None:
            return f"recall at {counted(self.number, 'flag')}"
        if self.per == 1:
            return f"recall at {100 * self.number:.10g}% flagged"
        return f"recall at {counted(self.number, 'flag')} in {counted(self.per, 'row')}"

    @property
    def share(self) -> float:
        """Share of the rows to flag."""
        if self.per is None:
            raise ValueError("the number of rows is unknown; call among() first")
        return min(self.number / self.per, 1.0)

    def among(self, n_rows: int) -> Flags:
        return self if self.per is not None else Flags(self.number, n_rows)

    def value(self, counts: Counts) -> Number:
        return counts.recall

    def preference(self, counts: Counts) -> tuple[Number, ...]:
        flagged = share(counts.found + counts.alarms, counts.positives + counts.negatives)
        return (-np.abs(flagged - self.share),)

    def judge(self, rows: Rows, decided: Classes) -> tuple[float, float]:
        # All votes flag the same number of rows, so compare how many positives they find.
        value = float(self.value(Counts.of(rows, decided == 1, rows.weight)))
        return value, value


@dataclass(frozen=True, eq=False)
class Cost(Objective):
    """Mean cost per row, relative to correct decisions.

    ``false_alarm`` and ``miss`` are numbers, or arrays with one entry per row.
    """

    false_alarm: float | Number
    miss: float | Number

    @property
    def can_be_smoothed(self) -> bool:
        # The amount at stake may tell the class, so that p(y) times it would mislead.
        return np.ndim(self.false_alarm) == np.ndim(self.miss) == 0

    @property
    def name(self) -> str:
        return "mean cost"

    def masses(self, rows: Rows) -> tuple[Number, Number]:
        sides = []
        for side in ("miss", "false_alarm"):
            cost = np.asarray(getattr(self, side))
            if cost.ndim and len(cost) != rows.n_given:
                raise ValueError(
                    f"the cost of a {side.replace('_', ' ')} has {len(cost)} entries for "
                    f"{rows.n_given} rows; give one number, or one per row"
                )
            sides.append(rows.weight * (cost[rows.index] if cost.ndim else cost))
        return sides[0], sides[1]

    def value(self, counts: Counts) -> Number:
        return (counts.positives - counts.found + counts.alarms) / counts.total

    def preference(self, counts: Counts) -> tuple[Number, ...]:
        return (-self.value(counts),)


@dataclass(frozen=True, eq=False)
class Untuned(Fixed):
    """The sign of the vote, including the intercept if one was fitted."""


OBJECTIVES = (Cost, FBeta, Factors, Fixed, Flags, Floor, MacroF1, Untuned)
"""Those that a model file may hold."""


def parse_objective(threshold: Any, n_classes: int = 2) -> Objective:
    """Parse the parameter ``threshold``.

    Parameters
    ----------
    threshold : str, number, tuple, dict, array or Objective
        ``"vote"`` is the sign of the vote (including the intercept, if ``fit_intercept``),
        ``"f1"`` maximises F1, and ``"fbeta"`` (beta = 2), ``("fbeta", beta)`` or
        ``{"fbeta": beta}`` the F-beta score. ``{"recall": floor}`` maximises precision
        subject to a minimum recall, ``{"precision": floor}`` recall subject to a minimum
        precision. ``{"flags": 200}`` flags 200 of the rows given,
        ``{"flags": (200, 10_000)}`` 200 of every 10,000, ``{"flags": 0.02}`` (below 1) a
        share. ``{"cost": (false_alarm, miss)}`` minimises costs, which are numbers or
        arrays with one entry per row, and so does ``{"cost": [[tn, fp], [fn, tp]]}``. A
        number is a fixed threshold. With three or more classes: ``"vote"`` (the largest
        vote decides), ``"macro_f1"``, or a factor for each class.
    n_classes : int, default=2

    Examples
    --------
    >>> parse_objective({"recall": 0.9}).name
    'precision at recall >= 0.9'
    >>> parse_objective(("fbeta", 2)), parse_objective("vote")
    (FBeta(beta=2.0), Untuned(threshold=0.0))
    >>> parse_objective({"flags": (200, 10_000)}).share
    0.02
    >>> parse_objective("macro_f1", n_classes=3).name
    'macro F1'
    """
    if n_classes > 2:
        return _parse_factors(threshold, n_classes)
    has_factors = np.ndim(getattr(threshold, "threshold", 0.0)) > 0
    is_of_many = has_factors or isinstance(threshold, MacroF1)
    if isinstance(threshold, Objective) and not is_of_many:
        return threshold
    if isinstance(threshold, Real) and not isinstance(threshold, bool):
        number = float(threshold)
        if not np.isfinite(number):
            raise ValueError(f"threshold={threshold!r} must be finite")
        return Fixed(number)
    if isinstance(threshold, str):
        plain: dict[str, Objective] = {
            "vote": Untuned(),
            "f1": FBeta(1.0),
            "fbeta": FBeta(2.0),
        }
        if threshold in plain:
            return plain[threshold]
    pair = threshold
    if isinstance(threshold, Mapping) and len(threshold) == 1:
        pair = next(iter(threshold.items()))
    if isinstance(pair, (tuple, list)) and len(pair) == 2:
        name, wanted = pair
        if name == "fbeta":
            return FBeta(_number(wanted, "beta of fbeta", 0, np.inf))
        if name in ("recall", "precision"):
            return Floor(name, _number(wanted, f"minimum {name}", 0, 1))
        if name == "flags":
            return _parse_flags(wanted)
        if name == "cost":
            return _parse_cost(wanted)
    raise ValueError(f"threshold={threshold!r} is unknown; use {TWO_CLASSES}")


def _parse_factors(threshold: Any, n_classes: int) -> Objective:
    given = threshold.threshold if isinstance(threshold, Fixed) else threshold
    known = isinstance(given, MacroF1) or allows_many_classes(given)
    if not known or (isinstance(threshold, str) and threshold == "auto"):
        raise ValueError(
            f"Only binary classification is supported with threshold={threshold!r}, but y "
            f"has {n_classes} classes; use 'vote' (the largest vote decides), 'macro_f1' "
            f"(tuned factors of the votes) or {n_classes} positive factors, or fit one "
            f"class against the rest: y == label"
        )
    if isinstance(given, MacroF1):
        return given
    if isinstance(given, str):
        return MacroF1() if given == "macro_f1" else Factors(np.ones(n_classes))
    factors = np.asarray(given, dtype=np.float64)
    if len(factors) == n_classes and (np.isfinite(factors) & (factors > 0)).all():
        return Factors(factors)
    raise ValueError(
        f"threshold={threshold!r} must be {n_classes} positive, finite factors, one for "
        f"each class in the order of classes_"
    )


def _number(value: Any, what: str, low: float, high: float) -> float:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not (low < value <= high) or not np.isfinite(value):
        limits = "above 0" if high == np.inf else f"above {low} and at most {high}"
        raise ValueError(f"the {what} is {value!r}, but must be a number {limits}")
    return float(value)


def _parse_flags(spec: Any) -> Flags:
    pair = spec if isinstance(spec, (tuple, list)) and len(spec) == 2 else (spec, None)
    number = _number(pair[0], "number of flags", 0, np.inf)
    if pair[1] is not None:
        return Flags(number, _number(pair[1], "number of rows per flags", 0, np.inf))
    return Flags(number, 1.0 if number < 1 else None)


def _parse_cost(spec: Any) -> Cost:
    if not isinstance(spec, (tuple, list, np.ndarray)) or len(spec) != 2:
        raise ValueError(
            f"the cost is {spec!r}, but must be (false_alarm, miss), each a number or one "
            f"per row, or the matrix [[tn, fp], [fn, tp]]"
        )
    sides = [np.asarray(side, dtype=np.float64) for side in spec]
    if all(side.shape == (2,) for side in sides):
        (tn, fp), (fn, tp) = sides
        if not (fp >= tn and fn >= tp):
            raise ValueError(
                f"the cost matrix {spec!r} rewards errors: in [[tn, fp], [fn, tp]], "
                f"fp must be at least tn, and fn at least tp"
            )
        sides = [np.asarray(fp - tn), np.asarray(fn - tp)]
    for name, side in zip(("a false alarm", "a miss"), sides, strict=True):
        if side.ndim > 1 or not np.isfinite(side).all() or (side < 0).any():
            raise ValueError(
                f"the cost of {name} must be finite and not negative, either a number or "
                f"an array with one entry per row"
            )
        if not side.any():
            raise ValueError(
                f"the cost of {name} is 0, so flagging all rows or none would be best; "
                f"give a positive cost"
            )
    false_alarm, miss = (side if side.ndim else float(side) for side in sides)
    return Cost(false_alarm, miss)


# The search. Two classes: all thresholds at once.


def search(
    rows: Rows,
    aim: Objective,
    order: ArrayLike | None = None,
    chance: Number | None = None,
) -> Any:
    """The best threshold, or the best factors.

    If the ``chance`` of each row to be positive is given, the expected counts decide.
    """
    if isinstance(aim, Fixed):
        return aim.threshold
    if isinstance(aim, MacroF1):
        return best_factors(rows.vote, rows.targets, rows.weight, order)
    wins = positive_wins(order)
    if chance is None:
        return _best_cut(rows, aim.among(rows.n_given), wins)
    return _best_expected_cut(rows, aim, wins, chance)


def _best_cut(rows: Rows, aim: Objective, wins: bool) -> float:
    """The best threshold; above all votes if there are no positives."""
    votes, counts = all_cuts(rows.vote, rows.positive, aim.mass(rows), rows.total)
    good = np.flatnonzero(best(aim.preference(counts)))
    if isinstance(aim, Flags):
        return _threshold_at(int(good[-1]), votes, wins, BELOW)
    if not rows.positive.any():
        return _threshold_at(len(votes), votes, wins)
    return _threshold_at(_middle(good), votes, wins)


def _best_expected_cut(rows: Rows, aim: Objective, wins: bool, chance: Number) -> float:
    """The same where each row is positive with this probability."""
    if_positive, if_negative = aim.masses(rows)
    masses = chance * if_positive, (1 - chance) * if_negative
    votes, counts = _cuts(rows.vote, *masses, rows.total)
    good = np.flatnonzero(best(aim.preference(counts)))
    return _threshold_at(_middle(good), votes, wins)


def _middle(good: NDArray[np.intp]) -> int:
    """The middle of the longest run of neighbouring cuts; of several, of the last."""
    breaks = np.flatnonzero(np.diff(good) > 1)
    first = good[np.append(0, breaks + 1)]
    last = good[np.append(breaks, len(good) - 1)]
    length = last - first
    run = np.flatnonzero(length == length.max())[-1]
    return int(first[run] + last[run] + 1) // 2


def best(preference: tuple[Number, ...]) -> NDArray[np.bool_]:
    """Mask of the best entries along the last axis, up to rounding."""
    good = np.ones(preference[0].shape, dtype=np.bool_)
    for level in preference:
        slack = SLACK * np.abs(level).max(axis=-1, keepdims=True)
        ranked = np.where(good, level, -np.inf)
        good = ranked >= ranked.max(axis=-1, keepdims=True) - slack
    return good


def _threshold_at(cut: int, votes: Number, wins: bool, part: float = 0.5) -> float:
    """A threshold that flags exactly the votes from the ``cut``-th on."""
    if cut == 0:
        return max(float(np.nextafter(votes[0], -np.inf)), -LARGEST)
    if cut == len(votes):
        return min(float(np.nextafter(votes[-1], np.inf)), LARGEST)
    return float(between(votes[cut - 1], votes[cut], wins, part))


def between(below: Any, above: Any, wins: bool, part: float = 0.5) -> Number:
    """Thresholds between adjacent votes, this ``part`` of the way down.

    Between adjacent floats, the threshold is the vote that is not flagged, or the one that
    is flagged if the positive class wins ties.
    """
    middle = below * part + above * (1 - part)
    if wins:
        return np.where((below < middle) & (middle <= above), middle, above)
    return np.where((below <= middle) & (middle < above), middle, below)


def all_cuts(
    vote: Number, positive: NDArray[np.bool_], mass: Number, total: float
) -> tuple[Number, Counts]:
    """The m distinct votes in ascending order, and the counts for all m + 1 thresholds.

    Threshold j flags the distinct votes from the j-th on: all of them for 0, none for m.
    """
    each = [_common(mass[side]) for side in (positive, ~positive)]
    if None not in each:
        return _cuts_of_equals(vote, positive, each, total)
    return _cuts(vote, np.where(positive, mass, 0.0), np.where(positive, 0.0, mass), total)


def _cuts(
    vote: Number, found: Number, alarms: Number, total: float
) -> tuple[Number, Counts]:
    """The same by what each row adds to the positives found, and to the false alarms."""
    order = np.argsort(vote)
    ranked = vote[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    found, alarms = (_from_the_top(mass[order], starts) for mass in (found, alarms))
    return ranked[starts], Counts(found, alarms, found[0], alarms[0], total)


def _common(mass: Number) -> float | None:
    """The mass of all rows if it is the same, else None."""
    if not len(mass):
        return 0.0
    low, high = float(mass.min()), float(mass.max())
    return low if low == high else None


def _cuts_of_equals(
    vote: Number, positive: NDArray[np.bool_], each: list[Any], total: float
) -> tuple[Number, Counts]:
    """:func:`all_cuts` for equal masses within each class, by a faster sort of values."""
    ranked = np.sort(vote)
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    votes = ranked[starts]
    places = np.searchsorted(votes, vote[positive])
    above = np.bincount(places, minlength=len(votes) + 1)[::-1].cumsum()[::-1]
    flagged = np.append(len(ranked) - starts, 0)
    found, alarms = above * each[0], (flagged - above) * each[1]
    return votes, Counts(found, alarms, found[0], alarms[0], total)


def _from_the_top(mass: Number, starts: NDArray[np.intp]) -> Number:
    sums = np.add.reduceat(mass, starts)
    return np.append(np.cumsum(sums[::-1])[::-1], 0.0)
