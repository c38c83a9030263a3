"""Factors of classes with what they are worth, honestly, and how sure that is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bootstrap import LEVEL, N_DRAWS, Interval
from .class_factors import confusion, decide, f1_by_class, tune_factors

Number = NDArray[np.float64]


@dataclass(frozen=True)
class ClassTuning:
    """What :func:`tune_classes` found. ``print`` it to read it.

    Attributes
    ----------
    objective : str
    factors : tuple of float
        Tuned on all rows.
    value : float
        Macro F1 on the rows that the factors were tuned on: too good.
    honest_value : float
        Macro F1 where every row is decided by factors tuned on other folds.
    honest_f1 : tuple of float
        The F1 of each class by these decisions.
    value_interval : (float, float)
        Where 90 % of bootstrap draws put the honest value, its decisions taken as given.
    """

    objective: str
    factors: tuple[float, ...]
    value: float
    honest_value: float
    honest_f1: tuple[float, ...]
    value_interval: Interval

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain Python values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        worst, best = self.value_interval
        shown = ", ".join(f"{factor:.3g}" for factor in self.factors)
        by_class = ", ".join(f"{score:.3g}" for score in self.honest_f1)
        return (
            f"factors  {shown}\n"
            f"{self.objective}  {self.honest_value:.3g}  (90 %: {worst:.3g} to {best:.3g}) "
            f"on rows not tuned on, {self.value:.3g} on those that were\n"
            f"F1 by class  {by_class} on rows not tuned on"
        )


def tune_classes(
    vote: Number,
    labels: NDArray[np.intp],
    folds: NDArray[Any],
    *,
    sample_weight: Number | None = None,
    order: NDArray[np.intp],
    seed: int = 0,
) -> ClassTuning:
    """Tune the factors of the classes and say what they are worth on other rows.

    ``folds`` has a number a row; the rest is as for :func:`tune_factors`.
    """
    n_classes = vote.shape[1]
    weight = np.ones(len(vote)) if sample_weight is None else sample_weight
    kept = ~np.isnan(vote).any(axis=1) & (weight > 0)
    vote, labels, weight, folds = vote[kept], labels[kept], weight[kept], folds[kept]
    factors = tune_factors(vote, labels, sample_weight=weight, order=order)
    seen = confusion(labels, decide(vote, factors, order), weight, n_classes)
    decided = crossfit_classes(vote, labels, folds, sample_weight=weight, order=order)
    table = confusion(labels, decided, weight, n_classes)
    honest = f1_by_class(table)
    return ClassTuning(
        objective="macro F1",
        factors=tuple(factors.tolist()),
        value=float(f1_by_class(seen).mean()),
        honest_value=float(honest.mean()),
        honest_f1=tuple(honest.tolist()),
        value_interval=_interval(table, np.bincount(labels, minlength=n_classes), seed),
    )


def crossfit_classes(
    vote: Number,
    labels: NDArray[np.intp],
    folds: NDArray[Any],
    *,
    sample_weight: Number | None = None,
    order: NDArray[np.intp],
) -> NDArray[np.intp]:
    """The class of each row, decided by factors tuned for macro F1 on the other folds.

    Every row must have a vote; the rest is as for :func:`tune_classes`.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import crossfit_classes
    >>> labels = np.arange(6) % 3
    >>> vote, folds = np.eye(3)[labels] * 0.5 + 0.1, np.arange(6) // 3
    >>> crossfit_classes(vote, labels, folds, order=np.arange(3)).tolist()
    [0, 1, 2, 0, 1, 2]
    """
    weight = np.ones(len(vote)) if sample_weight is None else sample_weight
    decided = np.empty(len(vote), np.intp)
    for fold in np.unique(folds):
        here = folds == fold
        own = tune_factors(
            vote[~here], labels[~here], sample_weight=weight[~here], order=order
        )
        decided[here] = decide(vote[here], own, order)
    return decided


def _interval(table: Number, rows: NDArray[np.intp], seed: int) -> Interval:
    """Macro F1 of tables drawn anew, class by class."""
    rng = np.random.RandomState([seed, 11])
    drawn = np.zeros((N_DRAWS, *table.shape))
    for c, counts in enumerate(table):
        if rows[c]:
            times = rng.multinomial(rows[c], counts / counts.sum(), size=N_DRAWS)
            drawn[:, c] = times * (counts.sum() / rows[c])
    values = f1_by_class(drawn).mean(axis=1)
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
