"""Rows for the eye, of many classes: the worst mistakes, and what is taken for what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation.class_voters import rare_classes
from .class_material import ClassMaterial
from .rows import table_of

MOST_PAIRS = 10


def mistakes(
    material: ClassMaterial, labels: NDArray[np.intp], ranked: list[str]
) -> dict[str, Any]:
    """Wrong decisions: missed rows of the rarer classes first, then by how sure they were.

    Sure is a decision with many votes for the wrong class and few for the right one.
    """
    judged = material.judged
    wrong = np.flatnonzero(judged.has_vote & (judged.decided != labels))
    truth, vote = labels[wrong], judged.vote[wrong]
    places = np.arange(len(wrong))
    sure = vote[places, judged.decided[wrong]] - vote[places, truth]
    rare = rare_classes(labels, len(material.names))[truth]
    order = np.lexsort((-sure, ~rare))
    return table_of(material, wrong[order], ranked, _tell(material, labels))


def named_rows(material: ClassMaterial, ranked: list[str]) -> dict[str, Any]:
    """Rows given to any class but the most frequent of the fit, the surest first."""
    judged = material.judged
    largest = material.model.classifier._majority[0]
    chosen = np.flatnonzero(judged.has_vote & (judged.decided != largest))
    sure = judged.vote[chosen, judged.decided[chosen]]
    order = np.argsort(-sure, kind="stable")
    return table_of(material, chosen[order], ranked, _tell(material, None))


def mixed_up(table: NDArray[Any], names: list[str]) -> list[dict[str, Any]]:
    """The most frequent mistakes: rows of one class that were taken for another."""
    wrong = table - np.diag(np.diagonal(table))
    order = np.argsort(-wrong.reshape(-1), kind="stable")[:MOST_PAIRS]
    pairs = [divmod(int(at), len(names)) for at in order]
    return [
        {
            "truth": names[true],
            "decided": names[decided],
            "rows": int(table[true, decided]),
            "of": int(table[true].sum()),
        }
        for true, decided in pairs
        if wrong[true, decided]
    ]


def _tell(
    material: ClassMaterial, labels: NDArray[np.intp] | None
) -> Callable[[int], dict[str, Any]]:
    judged, names = material.judged, material.names

    def tell(i: int) -> dict[str, Any]:
        decided = int(judged.decided[i])
        said = {"decided": names[decided], "score": float(judged.vote[i, decided])}
        if labels is None:
            return said
        truth = int(labels[i])
        return {
            "truth": names[truth],
            **said,
            "score_of_truth": float(judged.vote[i, truth]),
        }

    return tell
