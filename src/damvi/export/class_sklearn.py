"""A fitted classifier of trees and three or more classes in scikit-learn's classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import VotingClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from ..classifier import DAMVIClassifier

TIED = 1e-12
"""Votes this close to each other are tied: the sums round differently there."""


def settle_ties(order: Any) -> Any:
    """Votes for each class, hardly below 1: the more frequent a class, the larger."""
    worth = np.empty(len(order))
    worth[order] = 1 - TIED * np.arange(len(order))
    return worth


def with_factors(model: DAMVIClassifier, vote: VotingClassifier) -> Any:
    """The vote as it is, or, where classes have factors, as columns of a linear model."""
    factors, n_classes = np.asarray(model.threshold_), len(model.classes_)
    if (factors == factors[0]).all():
        return vote
    weights = np.asarray(vote.weights)
    decision = LinearSVC()
    # Column k * C + c is what voter k says of class c.
    decision.coef_ = np.kron(weights, np.diag(factors))
    decision.intercept_ = np.zeros(n_classes)
    decision.classes_ = model.classes_
    decision.n_features_in_ = len(weights) * n_classes
    decision.n_iter_ = 0
    return Pipeline([("votes", vote), ("factors", decision)])
