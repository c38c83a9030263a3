"""A fitted classifier of trees as scikit-learn's own classes alone."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.preprocessing import LabelEncoder
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.utils.validation import check_is_fitted

from .._compat import make_sklearn_tree, with_leaf_values
from ..classifier import DAMVIClassifier
from ..voters.bagging import BaggedVoters
from ..voters.relabelling import Relabelled
from ..voters.trees.voters import TreeVoters
from .class_sklearn import TIED, settle_ties, with_factors


def to_sklearn(model: DAMVIClassifier) -> Any:
    """The model as a threshold on a weighted vote of scikit-learn's trees.

    Parameters
    ----------
    model : DAMVIClassifier
        Fitted, with built-in trees (without splits on categories) or scikit-learn's as
        voters.

    Returns
    -------
    FixedThresholdClassifier, VotingClassifier or Pipeline
        A :class:`~sklearn.ensemble.VotingClassifier` of the trees that have a weight;
        nothing of damvi in it. Two classes have a threshold around it. Three or more have
        none, and where their factors differ a linear model after it, which decides and
        has no probabilities.

    Raises
    ------
    ValueError
        If the model cannot be said in scikit-learn's classes.

    Notes
    -----
    scikit-learn's trees round X to single precision before they compare: decisions can
    differ for values that only double precision tells apart. Probabilities are shares of
    the votes, also where the model's own are calibrated.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi import DAMVIClassifier
    >>> from damvi.export import to_sklearn
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = DAMVIClassifier(n_estimators=10, random_state=0).fit(X, y)
    >>> plain = to_sklearn(model)
    >>> bool((plain.predict(X) == model.predict(X)).all())
    True
    """
    check_is_fitted(model, "weights_")
    asked = np.flatnonzero(model.weights_).tolist()
    n_classes = len(model.classes_)
    positive = int(model.pos_label_ == model.classes_[1])
    said = np.eye(2)[[1 - positive, positive]]
    if n_classes > 2:
        said = np.diag(settle_ties(model._majority))
    trees = [_hard(*found, said) for found in _trees(model, asked)]
    vote = VotingClassifier(
        [(f"voter_{k}", tree) for k, tree in zip(asked, trees, strict=True)],
        voting="soft",
        weights=model.weights_[asked].tolist(),
    )
    vote.estimators_ = trees
    vote.le_ = LabelEncoder().fit(model.classes_)
    vote.classes_ = vote.le_.classes_
    if n_classes > 2:
        decision: Any = with_factors(model, vote)
        _name_columns(model, *trees, vote)
        return decision
    # From the threshold on means positive there, and here a tie is the majority's.
    margin = -TIED if model._majority == positive else TIED
    decision = FixedThresholdClassifier(
        vote,
        threshold=float((1 + model.threshold_) / 2 + margin),
        pos_label=model.pos_label_,
        response_method="predict_proba",
    )
    decision.estimator_ = vote
    _name_columns(model, *trees, vote, decision)
    return decision


def _name_columns(model: DAMVIClassifier, *parts: Any) -> None:
    for part in parts:
        if hasattr(model, "feature_names_in_"):
            part.feature_names_in_ = model.feature_names_in_


def _trees(model: DAMVIClassifier, asked: list[int]) -> list[tuple[Any, Any]]:
    """The voters as scikit-learn's trees, and which classes their columns stand for."""
    voters = model._voters
    if not isinstance(voters, TreeVoters | BaggedVoters):
        raise ValueError(
            "a pool's votes are soft, and each is calibrated and rounded before it counts, "
            "which no class of scikit-learn does; export it to onnx or skops"
        )
    estimators = voters.estimators
    trees = []
    for k in asked:
        voter = estimators[k]
        try:
            inner = voter.estimator if isinstance(voter, Relabelled) else voter
            trees.append((_tree(inner, model.n_features_in_), voter.classes_))
        except ValueError as error:
            raise ValueError(
                f"voter {k} ({type(voter).__name__}) cannot be written in scikit-learn's "
                f"classes: {error}. Export the model to onnx or skops"
            ) from error
    return trees


def _tree(voter: Any, n_features: int) -> Any:
    if hasattr(voter, "to_sklearn"):
        return voter.to_sklearn()
    if type(voter) in (DecisionTreeClassifier, ExtraTreeClassifier):
        return voter
    if type(voter).__name__ == "DummyClassifier":  # a sample of one class
        return _leaf(n_features)
    raise ValueError("only trees are known here")


def _leaf(n_features: int) -> DecisionTreeClassifier:
    nothing = np.array([-1])
    tree = DecisionTreeClassifier()
    tree.tree_ = make_sklearn_tree(
        left=nothing,
        right=nothing,
        feature=np.array([-2]),
        threshold=np.array([-2.0]),
        n_node_samples=np.array([1]),
        weighted_n_node_samples=np.array([1.0]),
        value=np.ones((1, 1)),
        max_depth=0,
        n_features=n_features,
    )
    tree.n_outputs_ = 1
    tree.n_features_in_ = tree.max_features_ = n_features
    return tree


def _hard(tree: Any, classes: Any, said: Any) -> Any:
    """A copy whose leaves say ``said[c]`` for class c, in the order of the model's classes.

    So the mean probability of the trees is the share of the votes.
    """
    votes = tree.tree_.value[:, 0, :].argmax(axis=1)  # of equal shares, the first
    hard = copy(tree)
    hard.tree_ = with_leaf_values(tree.tree_, said[np.asarray(classes)[votes]])
    hard.n_classes_ = said.shape[1]
    hard.classes_ = np.arange(hard.n_classes_)
    return hard
