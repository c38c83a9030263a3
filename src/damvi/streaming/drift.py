"""Compare the rows of a batch with those before, from sums over both.

A row's margin x comes from weights that have not seen the row. For each class, the sums of
w, w**2, wx, wx**2 and wx**4 are stored. The squared vote is x**2, so these give the means
and variances of Gibbs risk and disagreement. With three or more classes, x is 2p - 1, where
p is the share of the vote for the row's class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.01
"""Maximum false alarm rate over all figures of a batch."""
TITLE = 22
"""Maximum width of a figure's name in print."""


class Change(NamedTuple):
    """A figure on the remembered rows and on the batch, and whether they differ.

    Attributes
    ----------
    before, now : float
        NaN if there are no rows.
    p_value : float
        Upper bound on the probability of a difference this large by chance, from
        Bernstein's inequality; valid for few rows too, and conservative.
    """

    before: float
    now: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Drift:
    """Comparison of a batch with the rows before it, by weights that have not seen it.

    Attributes
    ----------
    n_rows : int
    changes : dict of str to Change
        All figures by name: those below, and for three or more classes ``rate_`` and
        ``gibbs_risk_`` followed by the label of each class.
    gibbs_risk : Change
        Mean error of a voter drawn by weight.
    disagreement : Change
        How often two such voters disagree; for three or more classes, on whether the row
        belongs to its class.
    positive_rate, gibbs_risk_positives : Change
        Two classes only. The Gibbs risk on the positives, which are too few to show in the
        overall risk.
    learned : bool
        Whether the weights were solved again with the batch, or kept.
    vote : ndarray of shape (n_rows,) or (n_rows, C)
        Vote on each row, by weights that have not seen it. Use it to learn a threshold or
        calibration for the stream.
    """

    n_rows: int
    changes: dict[str, Change]
    learned: bool
    vote: NDArray[np.float64] = field(repr=False)

    @property
    def gibbs_risk(self) -> Change:
        return self.changes["gibbs_risk"]

    @property
    def disagreement(self) -> Change:
        return self.changes["disagreement"]

    @property
    def positive_rate(self) -> Change:
        return self._of_positives("positive_rate")

    @property
    def gibbs_risk_positives(self) -> Change:
        return self._of_positives("gibbs_risk_positives")

    def _of_positives(self, name: str) -> Change:
        if name in self.changes:
            return self.changes[name]
        raise AttributeError(
            f"{name} is for two classes; drift.changes has the figures of each class: "
            f"{', '.join(self.changes)}"
        )

    @property
    def beyond_chance(self) -> bool:
        """Whether a figure changed significantly; at most 1 false alarm in 100 batches."""
        level = LEVEL / len(self.changes)
        return any(change.p_value < level for change in self.changes.values())

    def as_dict(self) -> dict[str, float]:
        """Return a flat dict, as in ``pd.DataFrame(drift.as_dict() for drift in ...)``."""
        row: dict[str, float] = {"n_rows": self.n_rows}
        for name, change in self.changes.items():
            row |= {f"{name}_{part}": value for part, value in change._asdict().items()}
        return row | {"learned": self.learned, "beyond_chance": self.beyond_chance}

    def __str__(self) -> str:
        titles = [name.replace("_", " ") for name in self.changes]
        width = max(TITLE, *map(len, titles))
        lines = [f"{f'{self.n_rows:,} rows':{width}}   before      now  p-value"]
        for title, (before, now, p_value) in zip(
            titles, self.changes.values(), strict=True
        ):
            lines.append(f"{title:{width}}{before:9.4f}{now:9.4f}{p_value:9.2g}")
        verdict = "significant change" if self.beyond_chance else "no significant change"
        weights = "solved again" if self.learned else "kept"
        return "\n".join([*lines, f"{verdict}; weights {weights}"])


class Sample(NamedTuple):
    """A mean, its variance per row, its effective number of rows, and their range."""

    mean: float
    variance: float
    rows: float
    span: float = 1.0


class DriftFigures(NamedTuple):
    """The classes whose rate and Gibbs risk are monitored, and the names of the figures."""

    targets: Sequence[int]
    rates: Sequence[str]
    risks: Sequence[str]


POSITIVES = DriftFigures([1], ["positive_rate"], ["gibbs_risk_positives"])


@dataclass(frozen=True, eq=False)
class Margins:
    """Sums over rows, per class."""

    sums: NDArray[np.float64]

    @classmethod
    def none(cls, n_classes: int = 2) -> Margins:
        return cls(np.zeros((n_classes, 5)))

    @classmethod
    def of(
        cls,
        margin: NDArray[np.float64],
        targets: NDArray[Any],
        weights: NDArray[np.float64] | None = None,
        n_classes: int = 2,
    ) -> Margins:
        weights = np.ones(len(margin)) if weights is None else weights
        square = margin**2
        powers = np.stack([np.ones_like(margin), weights, margin, square, square**2])
        return cls(
            np.stack(
                [(powers * weights)[:, targets == c].sum(axis=1) for c in range(n_classes)]
            )
        )

    def __add__(self, other: Margins) -> Margins:
        return Margins(self.sums + other.sums)

    def faded(self, factor: float) -> Margins:
        """Scale the weight of all rows by ``factor``."""
        return Margins(self.sums * np.array([1, factor, 1, 1, 1]) * factor)

    def compared(
        self, now: Margins, figures: DriftFigures = POSITIVES
    ) -> dict[str, Change]:
        """Compare these rows (before) with others (now)."""
        mine, other = self.samples(figures), now.samples(figures)
        return {
            name: Change(before.mean, other[name].mean, _p_value(before, other[name]))
            for name, before in mine.items()
        }

    def samples(self, figures: DriftFigures = POSITIVES) -> dict[str, Sample]:
        """Return the figures by name."""
        whole, lines = self.sums.sum(axis=0), self.sums[list(figures.targets)]
        rows = _rows(whole)
        rates = [float(line[0] / whole[0]) if whole[0] > 0 else nan for line in lines]
        found = [Sample(rate, rate * (1 - rate), rows) for rate in rates]
        risks = [_half_of(line[0], line[2], line[3], _rows(line)) for line in lines]
        return {
            **dict(zip(figures.rates, found, strict=True)),
            "gibbs_risk": _half_of(whole[0], whole[2], whole[3], rows),
            "disagreement": _half_of(whole[0], whole[3], whole[4], rows, span=0.5),
            **dict(zip(figures.risks, risks, strict=True)),
        }


def _rows(sums: NDArray[np.float64]) -> float:
    """Return the effective sample size (Kish)."""
    return float(sums[0] * (sums[0] / sums[1])) if sums[1] > 0 else 0.0


def _half_of(
    weight: float, first: float, second: float, rows: float, span: float = 1.0
) -> Sample:
    """Return the mean of (1 - value) / 2, from the sums of a value and its square."""
    if rows == 0:
        return Sample(nan, nan, 0.0)
    mean = float(first / weight)
    variance = max(float(second / weight) - mean**2, 0.0) / 4
    return Sample((1 - mean) / 2, variance, rows, span)


def _p_value(before: Sample, now: Sample) -> float:
    """Bernstein bound on the probability of such a difference of means without drift."""
    if before.rows == 0 or now.rows == 0:
        return nan
    gap = abs(now.mean - before.mean)
    if gap == 0:
        return 1.0
    share = now.rows / (before.rows + now.rows)
    # Without drift, all rows have the same distribution, and so the same variance.
    variance = (1 - share) * before.variance + share * now.variance
    variance += share * (1 - share) * gap**2
    spread = variance * (1 / before.rows + 1 / now.rows)
    step = before.span / min(before.rows, now.rows)
    # Divide by the gap, since its square may underflow.
    return min(2 * exp(-gap / (2 * (spread / gap + step / 3))), 1.0)
