"""Parts of the summary that are the same for two classes and for many."""

from __future__ import annotations

from typing import Any

from .columns import describe_columns
from .material import Gathered

PEER_FIGURES = ("precision", "recall", "f1", "ap")

UNLABELLED = "Without the true classes nobody can say which voter is right."
KNOWN_ROWS = (
    "The voters were trained on rows of this table, and what they say of rows they know "
    "is no measure. Make the report on other rows to see how they differ."
)


def rows_of(material: Gathered) -> dict[str, Any]:
    """How many rows there are, and what they hold."""
    judged = material.judged
    known, judgeable = int(judged.of_fit.sum()), int(judged.has_vote.sum())
    if not judgeable:
        raise ValueError("no row has an honest vote; give the model other rows")
    return {
        "rows": len(judged),
        "judged": judgeable,
        "of_fit": known,
        "new": len(judged) - known,
        "words": judged.words,
        "without_truth": material.without_truth,
        "columns": describe_columns(material),
    }


def peers_of(
    scores: dict[str, Any], figures_shown: tuple[str, ...] = PEER_FIGURES
) -> dict[str, Any] | None:
    """How plain models did beside this one when it was fitted, if that was measured."""
    if not scores.get("models"):
        return None
    return {
        "rows": scores.get("rows_judged"),
        "verdicts": list(scores.get("verdicts", ())),
        "models": {
            name: {key: figures[key]["value"] for key in figures_shown if key in figures}
            for name, figures in scores["models"].items()
        },
    }
