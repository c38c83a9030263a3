"""What a fitted vote is worth out of sample, beside a plain forest and LightGBM."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..classifier import DAMVIClassifier
from ..decision import crossfit_decisions, crossfit_probability
from ..evaluation import Figure, compare, measure
from ..voters import PoolVoters, out_of_fold_votes, strong_pool
from .metrics import Metric

PEERS = {"forest": "plain forest", "lightgbm": "LightGBM"}
"""Voters of the strong pool, and what users call them."""
WE = "DAMVI"
MOST_CLASSES = 30
"""Beside trees, LightGBM is trained for up to as many classes: it grows a tree for each, in
every round, which at a hundred classes takes twenty times as long as the fit."""


@dataclass(frozen=True, eq=False)
class Worth:
    """Figures by model and measure, and words on who is better.

    ``by_class`` has those of three or more classes, one after the other.
    """

    figures: dict[str, dict[str, Figure]]
    verdicts: list[str]
    n_judged: int
    by_class: dict[str, tuple[dict[str, Figure | None], ...]] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        said: dict[str, Any] = {
            "models": {
                model: {name: figure.as_dict() for name, figure in figures.items()}
                for model, figures in self.figures.items()
            },
            "verdicts": self.verdicts,
            "rows_judged": self.n_judged,
        }
        if self.by_class is not None:
            said["by_class"] = {
                model: [_plain(figures) for figures in classes]
                for model, classes in self.by_class.items()
            }
        return said


def _plain(figures: dict[str, Figure | None]) -> dict[str, Any]:
    return {
        name: None if figure is None else figure.as_dict()
        for name, figure in figures.items()
    }


def judge(
    classifier: DAMVIClassifier,
    X: Any | None,
    positive: NDArray[np.bool_],
    vote: NDArray[np.float64],
    metric: Metric,
    seed: int,
) -> Worth:
    """Judge the vote and its peers on the same rows, all of them out of sample.

    Thresholds and calibrators are cross-fitted over the same folds for all.
    """
    folds = classifier.votes_.folds
    targets = positive.astype(np.intp)
    votes = {WE: vote} | peer_votes(classifier, X, positive, folds, seed)
    has_vote = ~np.isnan(vote)
    truth = positive[has_vote]
    figures, decided = {}, {}
    for name, said in votes.items():
        # Rows that have no vote of ours are nobody's, so that all are judged alike.
        said = np.where(has_vote, said, np.nan)
        decisions = crossfit_decisions(said, targets, metric.threshold, folds)
        flagged = decisions[has_vote] == 1
        chance = crossfit_probability(said, targets, folds)[has_vote]
        decided[name] = said[has_vote], flagged
        found = measure(truth, *decided[name], chance, cost=metric.cost)
        figures[name] = found.overall
    cost = metric.cost or (1.0, 1.0)
    verdicts = [
        verdict(name, metric, compare(metric.measure, truth, decided[WE], own, cost=cost))
        for name, own in decided.items()
        if name != WE
    ]
    return Worth(figures, verdicts, int(has_vote.sum()))


def peer_votes(
    classifier: DAMVIClassifier,
    X: Any | None,
    y: NDArray[Any],
    folds: NDArray[Any],
    seed: int,
    classes: NDArray[np.intp] | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Votes out of fold: those that the pool took already, or by a training for them.

    None if the rows are not in memory, where ``X`` is None.
    """
    if X is None:
        return {}
    voters = classifier.voters_
    if isinstance(voters, PoolVoters):
        places = {name: k for k, name in enumerate(voters.names)}
        return {
            words: classifier.votes_.votes[:, places[name]].astype(np.float64)
            for name, words in PEERS.items()
            if name in places
        }
    too_slow = classes is not None and len(classes) > MOST_CLASSES
    boosts = find_spec("lightgbm") is not None and not too_slow
    names = [name for name in PEERS if name != "lightgbm" or boosts]
    pool = dict(strong_pool(seed))
    splits = [
        (np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
        for fold in range(int(folds.max()) + 1)
    ]
    splits = [(train, test) for train, test in splits if len(test)]
    votes = out_of_fold_votes(
        [(name, pool[name]) for name in names],
        X,
        y.astype(np.int8 if classes is None else np.intp),
        n_classes=2 if classes is None else len(classes),
        seed=seed,
        cv=splits,
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
            f"{WE} does better than {peer}: its {metric.words} is {size} {less} ({sure})."
        )
    if gain.high < 0:
        sure = f"90 %: {-gain.high:+{form}} to {-gain.low:+{form}}"
        return (
            f"{peer[0].upper()}{peer[1:]} alone does better: its {metric.words} is {size} "
            f"{less} ({sure}). Consider it."
        )
    return f"{WE} and {peer} tie on {metric.words} (difference, {sure})."
