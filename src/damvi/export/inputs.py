"""What a fitted model asks for: the names and kinds of a graph's inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..voters.asking import FoldModels
from ..voters.relabelling import Relabelled
from ..voters.trees.voters import TreeVoters
from .encoders import parts_of
from .table import Labels, is_missing, kind_of_labels


def columns_of(model: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names and kinds of a dataframe's columns; none for an array."""
    width = model.n_features_in_
    known: list[dict[Any, None]] = [{} for _ in range(width)]
    for f, labels in _categories_of(model):
        known[f] |= dict.fromkeys(labels)
    named = getattr(model, "feature_names_in_", None)
    if named is None and not any(known):
        return (), ()
    names = tuple(map(str, named if named is not None else range(width)))
    kinds = tuple(
        kind_of_labels(list(labels), name) if labels else "number"
        for labels, name in zip(known, names, strict=True)
    )
    return names, kinds


def _categories_of(model: Any) -> Iterator[tuple[int, Labels]]:
    """The categories that voters have learned, by column."""
    voters = model._voters
    if isinstance(voters, TreeVoters):
        yield from _learned(voters)
        return
    asked = [voters.estimators[k] for k in np.flatnonzero(model.weights_)]
    for voter in asked:
        for one in voter.models if isinstance(voter, FoldModels) else [voter]:
            yield from _in_steps(one)


def _in_steps(step: Any) -> Iterator[tuple[int, Labels]]:
    """The first step of a pipeline sees the table; so do the parts of columns."""
    if isinstance(step, Relabelled):
        yield from _in_steps(step.estimator)
    elif hasattr(step, "steps"):
        yield from _in_steps(step.steps[0][1])
    elif hasattr(step, "transformers_"):
        for part, places in parts_of(step):
            for f, labels in _in_steps(part):
                yield places[f], labels
    elif hasattr(step, "_voters"):
        yield from _learned(step._voters)
    elif type(step).__name__ == "NumberEncoder" and step.categories_ is not None:
        yield from _by_column(step.categories_)
    elif type(step).__name__ == "OneHotEncoder":
        for f, labels in enumerate(step.categories_):
            yield f, [label for label in labels.tolist() if not is_missing(label)]


def _learned(voters: Any) -> Iterator[tuple[int, Labels]]:
    if voters.features.categories is not None:
        yield from _by_column(voters.features.categories)


def _by_column(categories: Any) -> Iterator[tuple[int, Labels]]:
    for f, labels in enumerate(categories.by_column):
        if labels is not None:
            yield f, list(labels)


def input_names(names: Sequence[str], outputs: Sequence[str]) -> tuple[str, ...]:
    """Those of the columns, unless outputs have them or they are empty."""
    taken = {*outputs, ""}
    inputs: list[str] = []
    for name in names:
        while name in taken or (name != names[len(inputs)] and name in names):
            name += "_"
        taken.add(name)
        inputs.append(name)
    return tuple(inputs)
