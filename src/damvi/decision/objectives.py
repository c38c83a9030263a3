"""What a threshold is for: each objective says which of two decisions it prefers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .counts import Counts, Number
from .rows import Rows

SLACK = 1e-12
"""Rates within this of a floor, or of each other, count as equal: sums are rounded."""

HOW = (
    '"vote", "f1", "fbeta", ("fbeta", 2), {"recall": 0.9}, {"precision": 0.8}, '
    '{"cost": (false_alarm, miss)} or a number'
)


@dataclass(frozen=True, eq=False)
class Objective:
    """What all objectives share: rows count by their weight, and nothing breaks ties."""

    @property
    def name(self) -> str:
        """What ``value`` measures, in words."""
        raise NotImplementedError

    def value(self, counts: Counts) -> Number:
        """The figure that users read."""
        raise NotImplementedError

    def preference(self, counts: Counts) -> tuple[Number, ...]:
        """The higher the better; each further entry settles the ties of those before."""
        return (self.value(counts),)

    def mass(self, rows: Rows) -> Number:
        """What each row counts for."""
        return rows.weight


@dataclass(frozen=True, eq=False)
class Fixed(Objective):
    """A threshold taken as it is, judged by F1; 0 is the paper's sign of the vote."""

    threshold: float = 0.0

    @property
    def name(self) -> str:
        return "F1"

    def value(self, counts: Counts) -> Number:
        return counts.f_score(1)


@dataclass(frozen=True, eq=False)
class FBeta(Objective):
    """The F score in which recall counts ``beta`` times as much as precision."""

    beta: float = 1.0

    @property
    def name(self) -> str:
        return f"F{self.beta:g}"

    def value(self, counts: Counts) -> Number:
        return counts.f_score(self.beta)


@dataclass(frozen=True, eq=False)
class Floor(Objective):
    """One rate kept at or above ``floor``, and the other as high as that allows.

    Where the floor cannot be reached, the closest to it. Ties go to the higher of the
    rate that has the floor.
    """

    rate: Literal["recall", "precision"]
    floor: float

    @property
    def name(self) -> str:
        goal = "precision" if self.rate == "recall" else "recall"
        return f"{goal} at {self.rate} >= {self.floor:g}"

    def kept(self, counts: Counts) -> Number:
        """The rate that has the floor."""
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
class Cost(Objective):
    """The mean cost a row, counted from what right decisions cost.

    ``false_alarm`` and ``miss`` are one number, or one for each of the rows given.
    """

    false_alarm: float | Number
    miss: float | Number

    @property
    def name(self) -> str:
        return "mean cost"

    def mass(self, rows: Rows) -> Number:
        sides = {}
        for side in ("miss", "false_alarm"):
            cost = np.asarray(getattr(self, side))
            if cost.ndim and len(cost) != rows.n_given:
                raise ValueError(
                    f"the cost of a {side.replace('_', ' ')} has {len(cost)} entries for "
                    f"{rows.n_given} rows; give one number, or one a row"
                )
            sides[side] = cost[rows.index] if cost.ndim else cost
        return rows.weight * np.where(rows.positive, sides["miss"], sides["false_alarm"])

    def value(self, counts: Counts) -> Number:
        return (counts.positives - counts.found + counts.alarms) / counts.total

    def preference(self, counts: Counts) -> tuple[Number, ...]:
        return (-self.value(counts),)


def parse_objective(spec: Any) -> Objective:
    """The objective that a user's ``threshold`` stands for.

    Parameters
    ----------
    spec : str, number, tuple, dict or Objective
        ``"vote"`` (the sign of the vote), ``"f1"``, ``"fbeta"`` (beta = 2),
        ``("fbeta", beta)`` or ``{"fbeta": beta}``; ``{"recall": floor}`` for the highest
        precision with at least that recall, ``{"precision": floor}`` for the highest
        recall with at least that precision; ``{"cost": (false_alarm, miss)}`` for the
        lowest cost, where each is a number or an array with one a row, or
        ``{"cost": [[tn, fp], [fn, tp]]}``; a number is a threshold taken as it is.

    Examples
    --------
    >>> parse_objective({"recall": 0.9}).name
    'precision at recall >= 0.9'
    >>> parse_objective(("fbeta", 2)), parse_objective("vote")
    (FBeta(beta=2.0), Fixed(threshold=0.0))
    """
    if isinstance(spec, Objective):
        return spec
    if isinstance(spec, Real) and not isinstance(spec, bool):
        threshold = float(spec)
        if not np.isfinite(threshold):
            raise ValueError(f"threshold={spec!r} is not finite; give a finite number")
        return Fixed(threshold)
    if isinstance(spec, str):
        plain = {"vote": Fixed(0.0), "f1": FBeta(1.0), "fbeta": FBeta(2.0)}
        if spec in plain:
            return plain[spec]
    pair = spec
    if isinstance(spec, Mapping) and len(spec) == 1:
        pair = next(iter(spec.items()))
    if isinstance(pair, (tuple, list)) and len(pair) == 2:
        name, wanted = pair
        if name == "fbeta":
            return FBeta(_number(wanted, "beta of fbeta", 0, np.inf))
        if name in ("recall", "precision"):
            return Floor(name, _number(wanted, f"{name} floor", 0, 1))
        if name == "cost":
            return _parse_cost(wanted)
    raise ValueError(f"threshold={spec!r} is not known; give {HOW}")


def _number(value: Any, what: str, low: float, high: float) -> float:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not (low < value <= high) or not np.isfinite(value):
        limits = "above 0" if high == np.inf else f"above {low} and at most {high}"
        raise ValueError(f"the {what} is {value!r}; give a number {limits}")
    return float(value)


def _parse_cost(spec: Any) -> Cost:
    if not isinstance(spec, (tuple, list, np.ndarray)) or len(spec) != 2:
        raise ValueError(
            f"the cost is {spec!r}; give (false_alarm, miss), each a number or one a row, "
            f"or the matrix [[tn, fp], [fn, tp]]"
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
                f"the cost of {name} must be a finite number of at least 0, or an array "
                f"with one a row"
            )
        if not side.any():
            raise ValueError(
                f"the cost of {name} is 0, so that flagging all rows or none is best; "
                f"give a cost above 0"
            )
    false_alarm, miss = (side if side.ndim else float(side) for side in sides)
    return Cost(false_alarm, miss)
