"""All that the page says, as plain values: one entry a section."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..explanation import importances
from .columns import describe_columns
from .curves import calibration, curves, distribution
from .cuts import offer_cuts
from .judged import Judged
from .promise import promise
from .rates import share
from .repeat import how_to_repeat
from .rows import flagged_rows, wrong_rows
from .voters import voter_figures, voter_names, who_votes

Mask = NDArray[np.bool_]


def summarise(judged: Judged, *, name: str = "", command: str = "") -> dict[str, Any]:
    """Everything the page shows, ready for JSON and for the template.

    Parameters
    ----------
    judged : Judged
        The rows with their honest votes, see :func:`damvi.report.judged.judge`.
    name : str, optional
        What to call the data, such as the file's name.
    command : str, optional
        The command that made the page.
    """
    model = judged.model
    ranked = importances(
        model.classifier, judged.X, judged.feature_columns, vote=judged.vote
    )
    known = judged.has_vote
    said: dict[str, Any] = {
        "name": name,
        "target": {
            "name": model.target.name,
            "positive": model.target.positive,
            "negative": model.target.negative,
        },
        "threshold": float(model.classifier.threshold_),
        "data": _data(judged),
        "distribution": distribution(
            judged.vote[known], None if judged.positive is None else judged.positive[known]
        ),
        "importances": ranked.as_dict(),
        "repeat": how_to_repeat(judged, command),
    }
    if judged.positive is None:
        return said | _without_truth(judged, list(ranked.names))
    return said | _with_truth(judged, judged.positive, list(ranked.names))


def _data(judged: Judged) -> dict[str, Any]:
    positive, known = judged.positive, judged.has_vote
    of_the_fit = int(judged.of_the_fit.sum())
    n = len(judged.vote)
    return {
        "rows": n,
        "positives": None if positive is None else int(positive.sum()),
        "rate": None if positive is None or not n else float(positive.mean()),
        "of_the_fit": of_the_fit,
        "new": n - of_the_fit,
        "without_vote": int((~known).sum()),
        "columns": describe_columns(judged),
    }


def _without_truth(judged: Judged, ranked: list[str]) -> dict[str, Any]:
    flagged = judged.flagged & judged.has_vote
    return {
        "labelled": False,
        "flagged": share(int(flagged.sum()), int(judged.has_vote.sum())),
        "flagged_rows": flagged_rows(judged, ranked),
        "voters": {
            "known": False,
            "why": "Without the true classes nobody can say which voter is right.",
            **who_votes(judged.model.classifier.weights_, _names(judged)),
        },
    }


def _with_truth(judged: Judged, positive: Mask, ranked: list[str]) -> dict[str, Any]:
    known = judged.has_vote
    vote, truth = judged.vote[known], positive[known]
    flagged = judged.flagged[known]
    found, alarms = int((flagged & truth).sum()), int((flagged & ~truth).sum())
    both = truth.any() and not truth.all()
    own = float(judged.model.classifier.threshold_)
    cuts = offer_cuts(vote, truth, own)
    chance, words = judged.chances()
    return {
        "labelled": True,
        "decision": {
            "found": found,
            "missed": int(truth.sum()) - found,
            "alarms": alarms,
            "passed": int((~truth).sum()) - alarms,
            "precision": share(found, found + alarms),
            "recall": share(found, int(truth.sum())),
        },
        "cuts": cuts.as_dict(),
        "scores": judged.scores() if both else [],
        "curves": curves(cuts) if both else None,
        "calibration": {
            "words": words,
            "bins": calibration(chance[known], truth),
        },
        "voters": _voters(judged, positive),
        "missed": wrong_rows(judged, positive, ranked, missed=True),
        "false_alarms": wrong_rows(judged, positive, ranked, missed=False),
        "certificate": promise(judged, positive),
    }


def _names(judged: Judged) -> list[str]:
    return voter_names(judged.model.classifier)


def _voters(judged: Judged, positive: Mask) -> dict[str, Any]:
    """The voters' figures on rows that they have not seen, or why there are none."""
    classifier, names = judged.model.classifier, _names(judged)
    if not judged.of_the_fit.any():
        votes = classifier.cast_votes(judged.X)
        hard = positive & ~judged.flagged
        return voter_figures(
            votes,
            positive,
            classifier.weights_,
            names,
            threshold=float(classifier.threshold_),
            hard=hard,
        )
    kept = judged.model.scores.get("voters")
    if kept:
        return {**kept, "of_the_fit": True}
    return {
        "known": False,
        "why": (
            "The voters were trained on rows of this table, and what they say of rows they "
            "know is no measure. Make the report on other rows to see how they differ."
        ),
        **who_votes(classifier.weights_, names),
    }
