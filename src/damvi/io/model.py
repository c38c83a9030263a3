"""A fitted classifier, the table it was fitted on, and what is known of its quality."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..tables import Schema
from .container import ModelFileError
from .values import Json, Reader, Writer

if TYPE_CHECKING:
    from .state import Estimator


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

    @property
    def n_classes(self) -> int:
        return len(self.classes) or 2


@dataclass(frozen=True, eq=False)
class Training:
    """The training rows, so that they are recognised and judged honestly.

    Attributes
    ----------
    hashes : ndarray of uint64, shape (n,)
        ``damvi.hashing.row_hashes`` of the encoded table, with labels, in the
        order of the file. Of a fit on very many rows only some, chosen by their values.
    vote : ndarray of float64, shape (n,), or (n, C) for C > 2 classes
        Each row's vote by voters and weights that do not know its label. NaN where there
        is none.
    labels : ndarray of bool, shape (n,), or of uint8 for C > 2 classes
        Whether the row is positive, or the place of its label in ``target.classes``.
    """

    hashes: NDArray[np.uint64]
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
    classifier : DAMVIClassifier or DAMVIVotingClassifier
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

    classifier: Estimator
    schema: Schema
    target: Target
    training: Training
    scores: dict[str, Any] = field(default_factory=dict)
    made: dict[str, Any] = field(default_factory=dict)


def write_table(writer: Writer, model: Model) -> dict[str, Json]:
    """All of a model but its classifier."""
    n_classes = len(model.classifier.classes_)
    if model.target.n_classes != n_classes:
        raise ModelFileError(
            f"the target has {model.target.n_classes} labels, and the classifier "
            f"{n_classes} classes"
        )
    _check_training(model.training, n_classes)
    return {
        "schema": writer.write(model.schema.as_dict()),
        "target": writer.state(vars(model.target)),
        "training": writer.state(vars(model.training)),
        "scores": writer.write(model.scores),
        "made": writer.write(model.made),
    }


def read_table(reader: Reader, stored: dict[str, Json], classifier: Any) -> Model:
    """The model that was written."""
    target = Target(**reader.state(stored["target"]))
    classes = target.classes
    distinct = isinstance(classes, tuple) and len(set(classes)) == len(classes)
    if not distinct or len(classes) in (1, 2):
        raise ModelFileError("its target is not named")
    texts = (target.name, target.negative, target.positive, *classes)
    if not all(type(text) is str for text in texts):
        raise ModelFileError("its target is not named")
    if len(classifier.classes_) != target.n_classes:
        raise ModelFileError("its target has other classes than its classifier")
    training = Training(**reader.state(stored["training"]))
    _check_training(training, target.n_classes)
    scores, made = reader.read(stored["scores"]), reader.read(stored["made"])
    if not isinstance(scores, dict) or not isinstance(made, dict):
        raise ModelFileError("its scores are missing")
    schema = Schema.from_dict(reader.read(stored["schema"]))
    return Model(classifier, schema, target, training, scores, made)


def _check_training(training: Training, n_classes: int) -> None:
    many = n_classes > 2
    columns = (training.hashes, training.vote, training.labels)
    arrays = all(isinstance(column, np.ndarray) for column in columns)
    kinds = ["uint64", "float64", "uint8" if many else "bool"]
    if not arrays or [column.dtype for column in columns] != kinds:
        raise ModelFileError("its training rows are of no known kind")
    n = len(training.hashes)
    shapes = [(n,), (n, n_classes) if many else (n,), (n,)]
    if [column.shape for column in columns] != shapes:
        raise ModelFileError("its training rows do not fit each other")
    if many and not (training.labels < n_classes).all():
        raise ModelFileError("its training rows have labels out of range")
