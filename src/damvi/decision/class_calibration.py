"""From the votes for many classes to their chances: one against the rest, then evened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .calibration import Calibrator, calibrate

Number = NDArray[np.float64]


@dataclass(frozen=True)
class ClassCalibrator:
    """The chance of each class, (n, C) from votes (n, C); rows add up to 1."""

    of_class: tuple[Calibrator, ...]

    def __call__(self, vote: Number) -> Number:
        return one_against_the_rest(self.of_class, vote)


def one_against_the_rest(
    curves: Sequence[Callable[[Any], Any]], vote: Number
) -> NDArray[np.float64]:
    """What each curve makes of its class, divided so that rows add up to 1."""
    chances = np.column_stack([curve(2 * vote[:, c] - 1) for c, curve in enumerate(curves)])
    return shared_out(chances)


def shared_out(chances: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers of 0 or more, scaled so that rows add up to 1; even where all are 0."""
    total = chances.sum(axis=1, keepdims=True, dtype=np.float64)
    even = np.full(chances.shape, 1 / chances.shape[1])
    return np.divide(chances, total, out=even, where=(total > 0) | np.isnan(total))


def calibrate_classes(
    vote: Number, labels: NDArray[np.intp], *, sample_weight: Number | None = None
) -> ClassCalibrator:
    """Learn what chance of each class its vote stands for; see :func:`calibrate`.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import calibrate_classes
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.choice(3, p=[0.8, 0.15, 0.05], size=3000)
    >>> vote = rng.dirichlet([2, 2, 2], size=3000) + np.eye(3)[labels]
    >>> chances = calibrate_classes(vote / 2, labels)(vote / 2)
    >>> bool(abs(chances.mean(axis=0) - np.bincount(labels) / 3000).max() < 0.01)
    True
    """
    return ClassCalibrator(
        tuple(
            calibrate(
                2 * vote[:, c] - 1,
                np.where(labels == c, 1, -1),
                sample_weight=sample_weight,
            )
            for c in range(vote.shape[1])
        )
    )
