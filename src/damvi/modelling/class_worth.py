"""What a fitted vote on three or more classes is worth, beside its peers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..classifier import DAMVIClassifier
from ..decision import crossfit_decisions
from ..evaluation import compare, measure
from .metrics import Metric
from .worth import MOST_CLASSES, PEERS, WE, Worth, peer_votes, verdict


def judge_classes(
    classifier: DAMVIClassifier,
    X: Any | None,
    labels: NDArray[np.intp],
    vote: NDArray[np.float64],
    metric: Metric,
    seed: int,
) -> Worth:
    """Judge the vote and its peers on the same rows, all of them out of sample.

    The factors of the classes are cross-fitted over the same folds for all.
    """
    folds, order = classifier.votes_.folds, classifier.labels_.order
    n_classes = len(classifier.classes_)
    votes = {WE: vote} | peer_votes(
        classifier, X, labels, folds, seed, classes=np.arange(n_classes)
    )
    # Rows that have no vote of ours are nobody's, so that all are judged alike.
    some = ~np.isnan(vote).any(axis=1)
    truth = labels[some]
    figures, by_class, decided = {}, {}, {}
    for name, said in votes.items():
        decisions = crossfit_decisions(
            said[some], truth, "macro_f1", folds[some], order=order
        )
        own = said[some], decisions
        found = measure(truth, *own)
        decided[name], figures[name] = own, found.overall
        by_class[name] = found.by_class
    verdicts = [
        verdict(name, metric, compare(metric.measure, truth, decided[WE], own))
        for name, own in decided.items()
        if name != WE
    ]
    if n_classes > MOST_CLASSES and PEERS["lightgbm"] not in votes:
        verdicts.append(
            f"LightGBM is not compared beside trees: with {n_classes} classes it would "
            f"take far longer than the fit. The strong pool has it."
        )
    return Worth(figures, verdicts, int(some.sum()), by_class)
