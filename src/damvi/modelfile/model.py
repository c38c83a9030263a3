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
    """The column to predict.

    Attributes
    ----------
    name : str
    negative, positive : str
        The labels of two classes, which the classifier learns as False and True.
        ``negative`` is empty where it stands for all other labels.
    classes : tuple of str
        The labels of three or more classes; the two others are empty then. The classifier
        learns their places, 0, 1, 2, ...
    """

    name: str
    negative: str = ""
    positive: str = ""
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Training:
    """The rows of the fit, so that they are known again and judged honestly.

    Attributes
    ----------
    prints : ndarray of uint64, shape (n,)
        :func:`damvi.fingerprint.row_prints` of the encoded table, with labels, in the
        order of the file. Of a fit on very many rows only some, chosen by their values:
        one in ``classifier._print_step``.
    vote : ndarray of float64, shape (n,), or (n, C) for C > 2 classes
        Each row's vote by voters and weights that do not know its label. NaN where there
        is none.
    labels : ndarray of bool, shape (n,), or of uint8 for C > 2 classes
        Whether the row is positive, or the place of its label in ``target.classes``.
    """

    prints: NDArray[np.uint64]
    vote: NDArray[np.float64]
    labels: NDArray[Any]

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Whether each row is positive, of two classes."""
        if self.labels.dtype != bool:
            raise ValueError("with three or more classes no row is positive; see labels")
        return self.labels


@dataclass(frozen=True, eq=False)
class Model:
    """What a model file holds.

    Attributes
    ----------
    classifier : DAMVIClassifier
        Fitted on ``schema.encode(table)`` and a target of False and True (the positive
        class), or of the places of the labels in ``target.classes``.
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
