"""A fitted classifier, the table it was fitted on, and what is known of its worth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..tabular import Schema

if TYPE_CHECKING:
    from ..classifier import DAMVIClassifier


@dataclass(frozen=True)
class Target:
    """The column to predict. The classifier itself learns False and True."""

    name: str
    negative: str
    positive: str


@dataclass(frozen=True, eq=False)
class Training:
    """The rows of the fit, so that they are known again and judged honestly.

    Attributes
    ----------
    prints : ndarray of uint64, shape (n,)
        :func:`damvi.fingerprint.row_prints` of the encoded table, with labels, in the
        order of the file.
    vote : ndarray of float64, shape (n,)
        Each row's vote by voters and weights that do not know its label. NaN where there
        is none.
    positive : ndarray of bool, shape (n,)
    """

    prints: NDArray[np.uint64]
    vote: NDArray[np.float64]
    positive: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Model:
    """What a model file holds.

    Attributes
    ----------
    classifier : DAMVIClassifier
        Fitted on ``schema.encode(table)`` and a target of False and True (the positive
        class).
    schema : Schema
    target : Target
    training : Training
    scores : dict
        What ``damvi fit`` measured out of sample: plain values, ready for JSON.
    made : dict
        How to repeat it: command, seed, data fingerprint, versions, date.
    """

    classifier: DAMVIClassifier
    schema: Schema
    target: Target
    training: Training
    scores: dict[str, Any] = field(default_factory=dict)
    made: dict[str, Any] = field(default_factory=dict)
