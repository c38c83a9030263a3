"""All that the page says of three or more classes, as plain values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import CLASS_MEASURES, ClassFigures, measure_classes
from ..evaluation.class_voters import (
    class_rows_to_look_at,
    class_voter_figures,
    classes_named,
    rare_classes,
)
from ..evaluation.rates import share
from ..evaluation.voters import voter_names, who_votes
from ..explanation import importances
from ..io import Model
from .class_material import ClassMaterial
from .class_rows import mistakes, mixed_up, named_rows
from .class_views import views_of
from .class_weights import MOST_CLASSES, as_plain, offer_weights
from .promise import promise
from .repeat import how_to_repeat
from .shared import KNOWN_ROWS, UNLABELLED, peers_of, rows_of

Places = NDArray[np.intp]

CLASS_PEER_FIGURES = ("macro_f1", "balanced_accuracy", "macro_ap")


def summarise_classes(
    model: Model, frame: Any, target: str | None, *, name: str, command: str
) -> dict[str, Any]:
    """Everything that the page of many classes shows; see :func:`summarise`."""
    material = ClassMaterial.gather(model, frame, target)
    data = rows_of(material)
    ranked = importances(model.classifier, material.X, material.feature_columns)
    labels = material.judged.labels
    said: dict[str, Any] = {
        "name": name,
        "target": {"name": material.target},
        "labelled": labels is not None,
        "factors": material.factors.tolist(),
        "data": data,
        "importances": ranked.as_dict(),
        "repeat": how_to_repeat(material, command),
    }
    if labels is None:
        return said | _without_truth(material, list(ranked.names))
    return said | _with_truth(material, labels, list(ranked.names))


def _without_truth(material: ClassMaterial, ranked: list[str]) -> dict[str, Any]:
    judged, classifier = material.judged, material.model.classifier
    known = judged.has_vote
    named = np.bincount(judged.decided[known], minlength=len(material.names))
    return {
        "classes": [
            {"name": name, "rows": None, "named": share(int(count), int(known.sum()))}
            for name, count in zip(material.names, named, strict=True)
        ],
        "views": views_of(material, None, None),
        "named_rows": named_rows(material, ranked),
        "voters": {
            "known": False,
            "why": UNLABELLED,
            **who_votes(classifier.weights_, voter_names(classifier)),
        },
    }


def _with_truth(
    material: ClassMaterial, labels: Places, ranked: list[str]
) -> dict[str, Any]:
    judged, known = material.judged, material.judged.has_vote
    names, classifier = material.names, material.model.classifier
    truth, decided, vote = labels[known], judged.decided[known], judged.vote[known]
    chance, words = material.chances()
    calibrated = classifier._calibrator is not None
    table = np.bincount(truth * len(names) + decided, minlength=len(names) ** 2)
    table = table.reshape(len(names), len(names))
    figures = None
    if (table.sum(axis=1) > 0).sum() > 1:
        figures = measure_classes(
            truth, vote, decided, chance[known] if calibrated else None
        )
    live = None
    if len(names) <= MOST_CLASSES:
        order = classifier._majority
        offered = offer_weights(vote, truth, material.factors, order)
        live = as_plain(offered, material.factors)
    return {
        "classes": _classes(names, truth, table, figures),
        "decision": {
            "right": share(int(np.trace(table)), int(table.sum())),
            "confusion": table.tolist(),
            "mean_found": None if figures is None else _mean(figures, "balanced_accuracy"),
            "macro_f1": None if figures is None else _mean(figures, "macro_f1"),
        },
        "weights": live,
        "scores": [] if figures is None else _scores(figures),
        "calibration_words": words,
        "views": views_of(material, truth, chance[known]),
        "peers": peers_of(material.model.scores, CLASS_PEER_FIGURES),
        "voters": _voters(material, labels),
        "mixed_up": mixed_up(table, names),
        "mistakes": mistakes(material, labels, ranked),
        "certificate": promise(material, labels),
    }


def _classes(
    names: list[str], truth: Places, table: NDArray[Any], figures: ClassFigures | None
) -> list[dict[str, Any]]:
    """Each class: how frequent it is, and how well it is found."""
    rare = rare_classes(truth, len(names))
    classes = []
    for c, name in enumerate(names):
        rows, named, found = int(table[c].sum()), int(table[:, c].sum()), int(table[c, c])
        own = {} if figures is None else figures.by_class[c]
        known = {key: one.as_dict() for key, one in own.items() if one is not None}
        classes.append(
            {
                "name": name,
                "rows": rows,
                "rate": rows / max(len(truth), 1),
                "rare": bool(rare[c]),
                "named": share(named, len(truth)),
                "precision": share(found, named),
                "recall": share(found, rows),
                **{key: known.get(key) for key in ("f1", "ap", "roc_auc")},
            }
        )
    return classes


def _mean(figures: ClassFigures, name: str) -> dict[str, Any]:
    return figures.overall[name].as_dict()


def _scores(figures: ClassFigures) -> list[dict[str, Any]]:
    return [
        {
            "key": key,
            "name": CLASS_MEASURES[key],
            "value": figure.value,
            "low": figure.low,
            "high": figure.high,
        }
        for key, figure in figures.overall.items()
    ]


def _voters(material: ClassMaterial, labels: Places) -> dict[str, Any]:
    """The voters' figures on rows that they have not seen, or why there are none."""
    classifier, judged = material.model.classifier, material.judged
    names, n_classes = voter_names(classifier), len(material.names)
    new = np.flatnonzero(~judged.of_fit)
    if 2 * len(new) > len(labels) and len(np.unique(labels[new])) > 1:
        rows = new[class_rows_to_look_at(labels[new], n_classes)]
        rare = rare_classes(labels, n_classes)[labels]
        return class_voter_figures(
            classes_named(classifier.cast_votes(material.X.iloc[rows]), material.factors),
            labels[rows],
            classifier.weights_,
            names,
            n_classes,
            hard=(rare & (judged.decided != labels))[rows],
        )
    kept = material.model.scores.get("voters")
    if kept:
        return dict(kept)
    return {"known": False, "why": KNOWN_ROWS, **who_votes(classifier.weights_, names)}
