"""All that the page says, as plain values: one entry a section."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import MEASURES, Figure, confusion, measure
from ..evaluation.rates import share
from ..evaluation.voters import rows_to_look_at, voter_figures, voter_names, who_votes
from ..explanation import importances
from ..io import Model
from .class_summary import summarise_classes
from .curves import calibration, curves, distribution
from .cuts import offer_cuts
from .material import Material
from .promise import promise
from .repeat import how_to_repeat
from .rows import flagged_rows, wrong_rows
from .shared import KNOWN_ROWS, UNLABELLED, peers_of, rows_of

Mask = NDArray[np.bool_]


def summarise(
    model: Model,
    frame: Any,
    target: str | None = None,
    *,
    name: str = "",
    command: str = "",
) -> dict[str, Any]:
    """Everything that the page shows, ready for JSON and for the template.

    Parameters
    ----------
    model : Model
    frame : DataFrame
        As :func:`damvi.tables.read_table` reads it. Rows of the fit are judged by their
        stored out-of-sample votes.
    target : str, optional
        The column of the truth. By default the model's own, if it is there.
    name : str, optional
        What to call the data, such as the file's name.
    command : str, optional
        The command that made the page.
    """
    if len(model.classifier.classes_) > 2:
        return summarise_classes(model, frame, target, name=name, command=command)
    material = Material.gather(model, frame, target)
    judged, known = material.judged, material.judged.has_vote
    ranked = importances(model.classifier, material.X, material.feature_columns)
    truth = judged.positive
    said: dict[str, Any] = {
        "name": name,
        "target": {
            "name": material.target,
            "positive": model.target.positive,
            "negative": model.target.negative,
        },
        "labelled": truth is not None,
        "threshold": float(model.classifier.threshold_),
        "data": _data(material),
        "distribution": distribution(
            judged.vote[known], None if truth is None else truth[known]
        ),
        "importances": ranked.as_dict(),
        "repeat": how_to_repeat(material, command),
    }
    if truth is None:
        return said | _without_truth(material, list(ranked.names))
    return said | _with_truth(material, truth, list(ranked.names))


def _data(material: Material) -> dict[str, Any]:
    truth = material.judged.positive
    return {
        **rows_of(material),
        "positives": None if truth is None else int(truth.sum()),
        "rate": None if truth is None else float(truth.mean()),
    }


def _without_truth(material: Material, ranked: list[str]) -> dict[str, Any]:
    judged, classifier = material.judged, material.model.classifier
    flagged = judged.flagged & judged.has_vote
    return {
        "flagged": share(int(flagged.sum()), int(judged.has_vote.sum())),
        "flagged_rows": flagged_rows(material, ranked),
        "voters": {
            "known": False,
            "why": UNLABELLED,
            **who_votes(classifier.weights_, voter_names(classifier)),
        },
    }


def _with_truth(material: Material, positive: Mask, ranked: list[str]) -> dict[str, Any]:
    judged, known = material.judged, material.judged.has_vote
    truth, vote, flagged = positive[known], judged.vote[known], judged.flagged[known]
    both = bool(truth.any() and not truth.all())
    chance, words = material.chances()
    cuts = offer_cuts(vote, truth, material.threshold)
    counted = confusion(truth, flagged)
    found = counted["found"]
    precision = share(found, found + counted["false_alarms"])
    recall = share(found, found + counted["missed"])
    model_scores = material.model.scores
    figures = measure(truth, vote, flagged, chance[known]) if both else {}
    if material.model.classifier._calibrator is None:
        figures.pop("brier", None)
    return {
        "decision": {
            **counted,
            "precision": precision,
            "recall": recall,
        },
        "cuts": cuts.as_dict(),
        "cost": model_scores.get("cost"),
        "scores": _scores(figures, precision, recall),
        "curves": curves(cuts) if both else None,
        "calibration": {"words": words, "bins": calibration(chance[known], truth)},
        "peers": peers_of(model_scores),
        "voters": _voters(material, positive),
        "missed": wrong_rows(material, positive, ranked, missed=True),
        "false_alarms": wrong_rows(material, positive, ranked, missed=False),
        "certificate": promise(material, positive),
    }


def _scores(
    figures: dict[str, Figure], precision: dict[str, Any], recall: dict[str, Any]
) -> list[dict[str, Any]]:
    """The figures; those of counted rows with the interval that the page shows above."""
    scores = []
    for key, figure in figures.items():
        low, high = figure.low, figure.high
        counted = {"precision": precision, "recall": recall}.get(key)
        if counted is not None and counted["value"] is not None:
            low, high = counted["low"], counted["high"]
        scores.append(
            {
                "key": key,
                "name": MEASURES[key],
                "value": figure.value,
                "low": low,
                "high": high,
            }
        )
    return scores


def _voters(material: Material, positive: Mask) -> dict[str, Any]:
    """The voters' figures on rows that they have not seen, or why there are none."""
    classifier, judged = material.model.classifier, material.judged
    names = voter_names(classifier)
    new = ~judged.of_fit
    rows = np.flatnonzero(new)
    rows = rows[rows_to_look_at(positive[rows])]
    if 2 * new.sum() > len(new) and (positive & new).any() and (~positive & new).any():
        return voter_figures(
            classifier.cast_votes(material.X.iloc[rows]),
            positive[rows],
            classifier.weights_,
            names,
            threshold=material.threshold,
            hard=(positive & ~judged.flagged)[rows],
        )
    kept = material.model.scores.get("voters")
    if kept:
        return dict(kept)
    return {"known": False, "why": KNOWN_ROWS, **who_votes(classifier.weights_, names)}
