"""One object from a raw table to a decision."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from ..classifier import DAMVIClassifier
from ..io import ModelParts, save
from ..io import load as load_parts
from ..voting import DAMVIVotingClassifier


@dataclass(frozen=True, eq=False)
class Model(ModelParts):
    """A model of a table: what its columns mean, a fitted vote, and how good it is.

    It is no estimator: it takes tables as they are, and gives answers in their words. The
    estimator in it is ``classifier``.

    Attributes
    ----------
    classifier : DAMVIClassifier or DAMVIVotingClassifier
        Fitted on ``schema.encode(table)`` and a target of False and True (the positive
        class), or of the places of the labels in ``target.classes``.
    schema : Schema
    target : Target
    training : Training
    scores : dict
        What the fit measured out of sample: plain values, ready for JSON.
    made : dict
        How to repeat it: command, seed, data fingerprint, versions, date.
    """

    def save(self, path: str | os.PathLike[str], *, trusted: Iterable[str] = ()) -> None:
        """Save it in a file that runs no code when loaded; see :func:`damvi.io.save`."""
        save(self, path, trusted=trusted)


def load(
    path: str | os.PathLike[str], *, trusted: Iterable[str] = ()
) -> Model | DAMVIClassifier | DAMVIVotingClassifier:
    """What a model file holds: a model of a table, or an estimator. It runs no code.

    See :func:`damvi.io.save` for an example. A loaded estimator predicts as it did before.
    The votes on the training rows are not in the file, so ``reweigh`` needs a new ``fit``.

    Parameters
    ----------
    path : path
    trusted : iterable of str, optional
        Full names of further types that voters may hold, if you trust the file's source.

    Raises
    ------
    ModelFileError
        If the file is damaged, hostile, or of another format.
    """
    found = load_parts(path, trusted=trusted)
    return Model(**vars(found)) if isinstance(found, ModelParts) else found
