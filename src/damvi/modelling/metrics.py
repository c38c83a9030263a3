"""What the user wants the model to be good at, in one word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..io import Target

KNOWN = "f1, ap, recall@0.9, precision@0.5 or cost"
OF_MANY = {"macro_f1": "macro F1", "macro_ap": "macro AP"}
"""Metrics of three or more classes, and what to call them: means over the classes."""


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
    many : bool
        Whether it is for three or more classes.
    """

    name: str
    threshold: Any
    measure: str
    words: str
    cost: tuple[float, float] | None = None
    many: bool = False


def parse_metric(text: str, cost: tuple[float, float] | None = None) -> Metric:
    """The metric that a text stands for.

    ``recall@0.9`` is the best precision among thresholds that find 90 % of the positives,
    ``precision@0.5`` the best recall among those where half of the flagged are positive.
    ``ap`` judges the ranking; its threshold is the best for F1. ``macro_f1`` and
    ``macro_ap`` are their means over three or more classes.

    Examples
    --------
    >>> parse_metric("recall@0.9").threshold
    {'recall': 0.9}
    >>> parse_metric("cost", (1, 20)).words
    'cost a row'
    """
    if text in OF_MANY:
        if cost is not None:
            raise ValueError(
                f"the metric {text} is for three or more classes, and the costs of a miss "
                f"and a false alarm are for two; leave out one of them"
            )
        return Metric(text, "macro_f1", text, OF_MANY[text], many=True)
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
    raise ValueError(
        f"the metric {text!r} is not known; give {KNOWN}; with three or more classes "
        f"{' or '.join(OF_MANY)}"
    )


def metric_for(target: Target, asked: Metric | None = None) -> Metric:
    """The metric that was asked for, if it goes with the classes, or the usual one.

    Examples
    --------
    >>> from damvi.io import Target
    >>> metric_for(Target("kind", classes=("a", "b", "c"))).name
    'macro_f1'
    """
    many = bool(target.classes)
    if many and asked is not None and asked.cost is not None:
        raise ValueError(
            f"the costs of a miss and a false alarm are for two classes, and "
            f"{target.name!r} has {len(target.classes)}; leave them out, or name the one "
            f"to find with --positive"
        )
    if asked is None:
        return parse_metric("macro_f1" if many else "f1")
    if many and not asked.many:
        raise ValueError(
            f"the metric {asked.name} is for two classes, and {target.name!r} has "
            f"{len(target.classes)}; give {' or '.join(OF_MANY)}, or name the class to "
            f"find with --positive"
        )
    if asked.many and not many:
        raise ValueError(
            f"the metric {asked.name} is for three or more classes, and here there are "
            f"two; give {KNOWN}"
        )
    return asked
