"""What the user wants the model to be good at, in one word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

KNOWN = "f1, ap, recall@0.9, precision@0.5 or cost"


@dataclass(frozen=True)
class Metric:
    """A metric of the command line.

    Attributes
    ----------
    name : str
        As the user wrote it.
    threshold : str or dict
        What the threshold is tuned for, in the words of
        :func:`damvi.decision.parse_objective`.
    measure : str
        The figure by which models are compared, of :data:`damvi.evaluation.MEASURES`.
    words : str
    cost : (float, float) or None
        Of a false alarm and a miss.
    """

    name: str
    threshold: Any
    measure: str
    words: str
    cost: tuple[float, float] | None = None


def parse_metric(text: str, cost: tuple[float, float] | None = None) -> Metric:
    """The metric that a text stands for.

    ``recall@0.9`` is the best precision among thresholds that find 90 % of the positives,
    ``precision@0.5`` the best recall among those where half of the flagged are positive.
    ``ap`` judges the ranking; its threshold is the best for F1.

    Examples
    --------
    >>> parse_metric("recall@0.9").threshold
    {'recall': 0.9}
    >>> parse_metric("cost", (1, 20)).words
    'cost a row'
    """
    if text == "cost":
        if cost is None or min(cost) <= 0:
            raise ValueError(
                "the metric cost needs what errors cost, as in --cost-miss 20 "
                "--cost-false-alarm 1, each above 0"
            )
        return Metric(text, {"cost": cost}, "cost", "cost a row", cost)
    if text in ("f1", "ap"):
        return Metric(text, "f1", text, text.upper(), cost)
    rate, _, floor = text.partition("@")
    if rate in ("recall", "precision") and floor:
        try:
            least = float(floor.rstrip("%")) / (100 if floor.endswith("%") else 1)
        except ValueError:
            least = 0.0
        if 0 < least <= 1:
            other = "precision" if rate == "recall" else "recall"
            words = f"{other} at a {rate} of {least:g}"
            return Metric(text, {rate: least}, other, words, cost)
    raise ValueError(f"the metric {text!r} is not known; give {KNOWN}")
