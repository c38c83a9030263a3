"""What the vote was like on the rows so far, and whether new rows are like them.

A row's margin x is judged by weights that have not seen the row. Of each class only the
sums of w, w**2, wx, wx**2 and wx**4 are kept: the vote's square is x**2, so they hold the
means and the variances of Gibbs risk and disagreement.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.01
"""How often chance alone may be called drift, at most, for all figures of a batch."""
TESTED = ("positive_rate", "gibbs_risk", "disagreement", "gibbs_risk_positives")


class Change(NamedTuple):
    """A figure on the rows remembered, on those of the batch, and whether they differ.

    Attributes
    ----------
    before, now : float
        NaN where there are no rows to tell.
    p_value : float
        Chance alone makes a difference this large with at most this probability. It is
        Bernstein's inequality, which holds for few rows too and errs on the quiet side.
    """

    before: float
    now: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Drift:
    """How a batch compares with the rows before it, by weights that had not seen it.

    Attributes
    ----------
    n_rows : int
    positive_rate : Change
    gibbs_risk : Change
        The mean error of a voter drawn by weight.
    disagreement : Change
        How often two such voters disagree.
    gibbs_risk_positives : Change
        The Gibbs risk on the positives alone, which are too few to show in that of all.
    learned : bool
        Whether the weights were solved again with the batch, or kept.
    vote : ndarray of shape (n_rows,)
        The vote on each row by weights that had not seen it: what a threshold or a
        calibration for the stream can be learned from.
    """

    n_rows: int
    positive_rate: Change
    gibbs_risk: Change
    disagreement: Change
    gibbs_risk_positives: Change
    learned: bool
    vote: NDArray[np.float64] = field(repr=False)

    @property
    def beyond_chance(self) -> bool:
        """Whether a figure changed by more than chance explains, once in 100 batches."""
        values = [getattr(self, name).p_value for name in TESTED]
        return any(value < LEVEL / len(TESTED) for value in values)

    def as_dict(self) -> dict[str, float]:
        """Flat, as a row of a table: ``pd.DataFrame(drift.as_dict() for drift in ...)``."""
        row: dict[str, float] = {"n_rows": self.n_rows}
        for name in TESTED:
            change = getattr(self, name)
            row |= {f"{name}_{part}": value for part, value in change._asdict().items()}
        return row | {"learned": self.learned, "beyond_chance": self.beyond_chance}

    def __str__(self) -> str:
        lines = [f"{f'{self.n_rows:,} rows':22}   before      now  p-value"]
        for name in TESTED:
            before, now, p_value = getattr(self, name)
            title = name.replace("_", " ")
            lines.append(f"{title:22}{before:9.4f}{now:9.4f}{p_value:9.2g}")
        verdict = "more than" if self.beyond_chance else "no more than"
        weights = "solved again" if self.learned else "kept"
        return "\n".join([*lines, f"{verdict} chance explains; weights {weights}"])


class _Sample(NamedTuple):
    """A mean, what it says of single rows, and how many rows it is worth."""

    mean: float
    variance: float
    rows: float


@dataclass(frozen=True, eq=False)
class Margins:
    """Sums over rows: a line for the negatives, one for the positives."""

    sums: NDArray[np.float64]

    @classmethod
    def none(cls) -> Margins:
        return cls(np.zeros((2, 5)))

    @classmethod
    def of(
        cls,
        margin: NDArray[np.float64],
        positive: NDArray[np.bool_],
        weights: NDArray[np.float64] | None = None,
    ) -> Margins:
        weights = np.ones(len(margin)) if weights is None else weights
        square = margin**2
        powers = np.stack([np.ones_like(margin), weights, margin, square, square**2])
        return cls(
            np.stack(
                [(powers * weights)[:, side].sum(axis=1) for side in (~positive, positive)]
            )
        )

    def __add__(self, other: Margins) -> Margins:
        return Margins(self.sums + other.sums)

    def faded(self, factor: float) -> Margins:
        """The same rows, each with ``factor`` times its weight."""
        return Margins(self.sums * np.array([1, factor, 1, 1, 1]) * factor)

    def compared(self, now: Margins) -> dict[str, Change]:
        """These rows before, those now."""
        mine, other = self._samples(), now._samples()
        spans = 1.0, 1.0, 0.5, 1.0
        return {
            name: Change(
                mine[name].mean, other[name].mean, _p_value(mine[name], other[name], span)
            )
            for name, span in zip(TESTED, spans, strict=True)
        }

    def _samples(self) -> dict[str, _Sample]:
        both, positives = self.sums.sum(axis=0), self.sums[1]
        rate = float(positives[0] / both[0]) if both[0] > 0 else nan
        rows = _rows(both)
        return {
            "positive_rate": _Sample(rate, rate * (1 - rate), rows),
            "gibbs_risk": _half_of(both[0], both[2], both[3], rows),
            "disagreement": _half_of(both[0], both[3], both[4], rows),
            "gibbs_risk_positives": _half_of(
                positives[0], positives[2], positives[3], _rows(positives)
            ),
        }


def _rows(sums: NDArray[np.float64]) -> float:
    """How many rows of equal weight tell as much (Kish)."""
    return float(sums[0] * (sums[0] / sums[1])) if sums[1] > 0 else 0.0


def _half_of(weight: float, first: float, second: float, rows: float) -> _Sample:
    """The mean of (1 - value) / 2, from the sums of a value and of its square."""
    if rows == 0:
        return _Sample(nan, nan, 0.0)
    mean = float(first / weight)
    return _Sample((1 - mean) / 2, max(float(second / weight) - mean**2, 0.0) / 4, rows)


def _p_value(before: _Sample, now: _Sample, span: float) -> float:
    """Bernstein's bound: how often means of like rows, within ``span``, differ so."""
    if before.rows == 0 or now.rows == 0:
        return nan
    gap = abs(now.mean - before.mean)
    if gap == 0:
        return 1.0
    share = now.rows / (before.rows + now.rows)
    # If there is no drift, all rows are of one kind, and so is their variance.
    variance = (1 - share) * before.variance + share * now.variance
    variance += share * (1 - share) * gap**2
    spread = variance * (1 / before.rows + 1 / now.rows)
    step = span / min(before.rows, now.rows)
    # Divided by the gap, whose square may be too small for a float.
    return min(2 * exp(-gap / (2 * (spread / gap + step / 3))), 1.0)
