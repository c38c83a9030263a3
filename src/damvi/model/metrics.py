"""What a model should be good at, and how good it is, beside a forest and LightGBM."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..decision import crossfit_decisions, crossfit_probability
from ..evaluation import Figure, compare, measure
from ..io import Target
from ..voters import PoolVoters, out_of_fold_votes, strong_pool
from .table import Prepared

KNOWN = "f1, ap, recall@0.9, precision@0.5 or cost"
MACRO = {"macro_f1": "macro F1", "macro_ap": "macro AP"}
"""Metrics of three or more classes, and what to call them: means over the classes."""
PEERS = {"forest": "plain forest", "lightgbm": "LightGBM"}
"""Voters of the strong pool, and what users call them."""
OURS = "DAMVI"
MOST_CLASSES = 30
"""Beside trees, LightGBM is trained for up to as many classes: it grows a tree for each, in
every round, which at a hundred classes takes twenty times as long as the fit."""


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
    if text in MACRO:
        if cost is not None:
            raise ValueError(
                f"the metric {text} is for three or more classes, and the costs of a miss "
                f"and a false alarm are for two; leave out one of them"
            )
        return Metric(text, "macro_f1", text, MACRO[text], many=True)
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
        f"{' or '.join(MACRO)}"
    )


def metric_for(target: Target, asked: Metric | None = None) -> Metric:
    """The metric that was asked for, if it goes with the classes, or the usual one.

    Examples
    --------
    >>> from damvi.io import Target
    >>> metric_for(Target("kind", classes=("a", "b", "c"))).name
    'macro_f1'
    """
    n_classes = len(target.classes)  # 0 of two classes
    many = n_classes > 2
    if many and asked is not None and asked.cost is not None:
        raise ValueError(
            f"the costs of a miss and a false alarm are for two classes, and "
            f"{target.name!r} has {n_classes}; leave them out, or name the one "
            f"to find with --positive"
        )
    if asked is None:
        return parse_metric("macro_f1" if many else "f1")
    if many and not asked.many:
        raise ValueError(
            f"the metric {asked.name} is for two classes, and {target.name!r} has "
            f"{n_classes}; give {' or '.join(MACRO)}, or name the class to "
            f"find with --positive"
        )
    if asked.many and not many:
        raise ValueError(
            f"the metric {asked.name} is for three or more classes, and here there are "
            f"two; give {KNOWN}"
        )
    return asked


@dataclass(frozen=True, eq=False)
class Comparison:
    """Figures by model and measure, and words on who is better.

    ``by_class`` has those of three or more classes, one after the other.
    """

    figures: dict[str, dict[str, Figure]]
    verdicts: list[str]
    n_judged: int
    by_class: dict[str, tuple[dict[str, Figure | None], ...]] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        plain: dict[str, Any] = {
            "models": {
                model: {name: figure.as_dict() for name, figure in figures.items()}
                for model, figures in self.figures.items()
            },
            "verdicts": self.verdicts,
            "rows_judged": self.n_judged,
        }
        if self.by_class is not None:
            plain["by_class"] = {
                model: [_figures_as_dict(figures) for figures in classes]
                for model, classes in self.by_class.items()
            }
        return plain


def _figures_as_dict(figures: dict[str, Figure | None]) -> dict[str, Any]:
    return {
        name: None if figure is None else figure.as_dict()
        for name, figure in figures.items()
    }


def compare_with_peers(
    table: Prepared,
    classifier: Any,
    vote: NDArray[np.float64],
    metric: Metric,
    seed: int,
    *,
    in_memory: bool = True,
) -> Comparison:
    """Judge the vote and its peers on the same rows, all of them out of sample.

    Thresholds, factors of classes and calibrators are cross-fitted over the same folds for
    all. Where the rows are not in memory there are no peers.
    """
    folds, order = classifier.votes_.folds, classifier.labels_.target_order
    targets, n_classes = table.y.astype(np.intp), table.n_classes
    votes = {OURS: vote}
    if in_memory:
        votes |= _peer_votes(classifier, table.X, targets, seed)
    has_vote = ~np.isnan(vote.reshape(len(vote), -1)).any(axis=1)
    truth = targets[has_vote]
    figures, by_class, decided = {}, {}, {}
    for name, votes_of_all in votes.items():
        # Rows that have no vote of ours are nobody's, so that all are judged alike.
        own, some = votes_of_all[has_vote], folds[has_vote]
        decisions = crossfit_decisions(own, truth, metric.threshold, some, order=order)
        chance = crossfit_probability(own, truth, some) if n_classes == 2 else None
        decided[name] = own, decisions
        found = measure(truth, own, decisions, chance, cost=metric.cost)
        figures[name], by_class[name] = found.overall, found.by_class
    cost = metric.cost or (1.0, 1.0)
    verdicts = [
        verdict(name, metric, compare(metric.measure, truth, decided[OURS], own, cost=cost))
        for name, own in decided.items()
        if name != OURS
    ]
    if in_memory and n_classes > MOST_CLASSES and PEERS["lightgbm"] not in votes:
        verdicts.append(
            f"LightGBM is not compared beside trees: with {n_classes} classes it would "
            f"take far longer than the fit. The strong pool has it."
        )
    if not in_memory:
        verdicts.append(
            "No forest or LightGBM beside it: they would need all rows in memory."
        )
    several = by_class if n_classes > 2 else None
    return Comparison(figures, verdicts, int(has_vote.sum()), several)


def _peer_votes(
    classifier: Any, X: Any, targets: NDArray[np.intp], seed: int
) -> dict[str, NDArray[np.float64]]:
    """Votes out of fold: those that the pool took already, or by a training for them."""
    voters, folds = classifier.voters_, classifier.votes_.folds
    if isinstance(voters, PoolVoters):
        places = {name: k for k, name in enumerate(voters.names)}
        return {
            words: classifier.votes_.votes[:, places[name]].astype(np.float64)
            for name, words in PEERS.items()
            if name in places
        }
    n_classes = classifier.labels_.n_classes
    boosts = find_spec("lightgbm") is not None and n_classes <= MOST_CLASSES
    names = [name for name in PEERS if name != "lightgbm" or boosts]
    pool = dict(strong_pool(seed))
    splits = [
        (np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
        for fold in range(int(folds.max()) + 1)
    ]
    votes = out_of_fold_votes(
        [(name, pool[name]) for name in names],
        X,
        targets,
        n_classes=n_classes,
        seed=seed,
        cv=[(train, test) for train, test in splits if len(test)],
        n_jobs=classifier.n_jobs,
    )
    return {PEERS[name]: votes[:, k].astype(np.float64) for k, name in enumerate(names)}


def verdict(name: str, metric: Metric, gain: Figure) -> str:
    """Who is better, by how much our figure is, in words."""
    # A cost a row is tiny where the positives are rare.
    form = ".2g" if metric.measure == "cost" else ".3f"
    size = f"{abs(gain.value):{form}}"
    sure = f"90 %: {gain.low:+{form}} to {gain.high:+{form}}"
    less = "lower" if metric.measure == "cost" else "higher"
    peer = f"a {name}" if name.startswith("plain") else name
    if gain.low > 0:
        return (
            f"{OURS} does better than {peer}: its {metric.words} is {size} {less} ({sure})."
        )
    if gain.high < 0:
        sure = f"90 %: {-gain.high:+{form}} to {-gain.low:+{form}}"
        return (
            f"{peer[0].upper()}{peer[1:]} alone does better: its {metric.words} is {size} "
            f"{less} ({sure}). Consider it."
        )
    return f"{OURS} and {peer} tie on {metric.words} (difference, {sure})."
