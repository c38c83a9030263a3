"""The target and the rows of the fit in a model file, of two classes and of more."""

from __future__ import annotations

import numpy as np

from .errors import ModelFileError
from .model import Model, Target, Training
from .values import Json, Reader, Writer


def write_target(writer: Writer, model: Model) -> dict[str, Json]:
    """The name of the column and its labels."""
    target, known = model.target, model.classifier.classes_
    n_classes = len(target.classes) or 2
    if n_classes != len(known):
        raise ModelFileError(
            f"the target has {n_classes} labels, and the classifier {len(known)} classes"
        )
    kept = dict(vars(target))
    if not target.classes:
        kept.pop("classes")
    return writer.state(kept)


def read_target(reader: Reader, said: Json) -> Target:
    """The target that was written."""
    target = Target(**reader.state(said))
    classes = target.classes
    named = isinstance(classes, tuple) and len(classes) != 1 and len(classes) != 2
    named = named and len(set(classes)) == len(classes)
    texts = (target.name, target.negative, target.positive, *classes) if named else ()
    if not texts or not all(type(text) is str for text in texts):
        raise ModelFileError("its target is not named")
    return target


def write_training(writer: Writer, model: Model) -> dict[str, Json]:
    """The rows' prints, votes and labels."""
    training = model.training
    labels = "labels" if model.target.classes else "positive"
    _check(training, len(model.target.classes))
    return writer.state(
        {"prints": training.prints, "vote": training.vote, labels: training.labels}
    )


def read_training(reader: Reader, said: Json, n_classes: int) -> Training:
    """The rows that were written; ``n_classes`` is 0 for two."""
    known = reader.state(said)
    labels = known.pop("labels" if n_classes else "positive")
    training = Training(labels=labels, **known)
    _check(training, n_classes)
    return training


def _check(training: Training, n_classes: int) -> None:
    kinds = ["uint64", "float64", "uint8" if n_classes else "bool"]
    columns = (training.prints, training.vote, training.labels)
    arrays = all(isinstance(column, np.ndarray) for column in columns)
    if not arrays or [column.dtype for column in columns] != kinds:
        raise ModelFileError("its training rows are of no known kind")
    n = len(training.prints)
    shapes = [(n,), (n, n_classes) if n_classes else (n,), (n,)]
    if [column.shape for column in columns] != shapes:
        raise ModelFileError("its training rows do not fit each other")
    if n_classes and not (training.labels < n_classes).all():
        raise ModelFileError("its training rows have labels out of range")
