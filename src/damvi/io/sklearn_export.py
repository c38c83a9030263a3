"""Export a fitted classifier as plain scikit-learn classes, or as a skops file."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from .._compat import make_sklearn_tree, with_leaf_values
from .._files import write_whole
from ..voters import BaggedVoters
from ..voters.estimators import Relabelled
from ..voters.trees.estimators import TreeVoters
from .files import Estimator, Fitted, read_fitted

TIED = 1e-12
"""Votes this close are tied: the sums round differently in scikit-learn."""


def to_sklearn(model: Estimator) -> Any:
    """Convert the model to a threshold on a weighted vote of scikit-learn trees.

    Parameters
    ----------
    model : DAMVIClassifier
        Fitted, with scikit-learn trees or built-in trees (without categorical splits) as
        voters.

    Returns
    -------
    FixedThresholdClassifier, VotingClassifier or Pipeline
        A :class:`~sklearn.ensemble.VotingClassifier` of the trees with nonzero weight,
        independent of damvi. For two classes it is wrapped with a threshold. For three or
        more classes whose factors differ, it is followed by a linear model, which has no
        probabilities.

    Raises
    ------
    ValueError
        If the model cannot be expressed in scikit-learn's classes.

    Notes
    -----
    scikit-learn's trees round X to single precision, so decisions can differ for values
    that only differ in double precision. Probabilities are shares of the votes, even if
    those of the model are calibrated.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi import DAMVIClassifier
    >>> from damvi.io import to_sklearn
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = DAMVIClassifier(n_estimators=10, random_state=0).fit(X, y)
    >>> plain = to_sklearn(model)
    >>> bool((plain.predict(X) == model.predict(X)).all())
    True
    """
    from sklearn.ensemble import VotingClassifier
    from sklearn.preprocessing import LabelEncoder

    fitted = read_fitted(model)
    asked = np.flatnonzero(fitted.weights).tolist()
    # For two classes, voters use 1 for the positive class. For more, votes are slightly
    # below 1, the more so the rarer the class, which resolves ties.
    leaf_values, decide = np.eye(2)[[1 - fitted.positive, fitted.positive]], _with_threshold
    if fitted.n_classes > 2:
        height = np.empty(fitted.n_classes)
        height[fitted.labels.order] = 1 - TIED * np.arange(fitted.n_classes)
        leaf_values, decide = np.diag(height), _with_factors
    trees = _hard_trees(fitted, asked, leaf_values)
    vote = VotingClassifier(
        [(f"voter_{k}", tree) for k, tree in zip(asked, trees, strict=True)],
        voting="soft",
        weights=fitted.weights[asked].tolist(),
    )
    vote.estimators_ = trees
    vote.le_ = LabelEncoder().fit(fitted.labels.classes)
    vote.classes_ = vote.le_.classes_
    if fitted.feature_names is not None:
        for part in (*trees, vote):
            part.feature_names_in_ = fitted.feature_names
    return decide(fitted, vote)


def _with_threshold(fitted: Fitted, vote: Any) -> Any:
    from sklearn.model_selection import FixedThresholdClassifier

    # scikit-learn predicts positive at the threshold; here, ties go to the majority.
    margin = -TIED if fitted.labels.order[0] == fitted.positive else TIED
    decision = FixedThresholdClassifier(
        vote,
        threshold=float((1 + fitted.threshold) / 2 + margin),
        pos_label=fitted.labels.classes[fitted.positive],
        response_method="predict_proba",
    )
    decision.estimator_ = vote
    if fitted.feature_names is not None:
        decision.feature_names_in_ = fitted.feature_names
    return decision


def _with_factors(fitted: Fitted, vote: Any) -> Any:
    """Return the vote itself, or a linear model on the votes if classes have factors."""
    from sklearn.pipeline import Pipeline
    from sklearn.svm import LinearSVC

    factors, weights = np.asarray(fitted.threshold), np.asarray(vote.weights)
    if (factors == factors[0]).all():
        return vote
    decision = LinearSVC()
    # Column k * C + c is the vote of voter k for class c.
    decision.coef_ = np.kron(weights, np.diag(factors))
    decision.intercept_ = np.zeros(fitted.n_classes)
    decision.classes_ = fitted.labels.classes
    decision.n_features_in_ = len(weights) * fitted.n_classes
    decision.n_iter_ = 0
    return Pipeline([("votes", vote), ("factors", decision)])


def _hard_trees(fitted: Fitted, asked: list[int], leaf_values: Any) -> list[Any]:
    """Convert voters to scikit-learn trees whose leaves predict the class they vote for.

    The mean probability of the trees is then the share of the votes.
    """
    if not isinstance(fitted.voters, TreeVoters | BaggedVoters):
        raise ValueError(
            "a pool's soft votes are calibrated and rounded, which scikit-learn's classes "
            "cannot do; export the model to onnx or skops"
        )
    estimators = fitted.voters.estimators
    trees = []
    for k in asked:
        voter = estimators[k]
        try:
            inner = voter.estimator if isinstance(voter, Relabelled) else voter
            tree = _tree(inner, fitted.n_features)
        except ValueError as error:
            raise ValueError(
                f"voter {k} ({type(voter).__name__}) cannot be converted to scikit-learn's "
                f"classes: {error}. Export the model to onnx or skops"
            ) from error
        votes = tree.tree_.value[:, 0, :].argmax(axis=1)  # the first of ties
        hard = copy(tree)
        hard.tree_ = with_leaf_values(
            tree.tree_, leaf_values[np.asarray(voter.classes_)[votes]]
        )
        hard.n_classes_ = fitted.n_classes
        hard.classes_ = np.arange(fitted.n_classes)
        trees.append(hard)
    return trees


def _tree(voter: Any, n_features: int) -> Any:
    if hasattr(voter, "to_sklearn"):
        return voter.to_sklearn()
    if type(voter) in (DecisionTreeClassifier, ExtraTreeClassifier):
        return voter
    if type(voter).__name__ == "DummyClassifier":  # its sample had one class
        return _leaf(n_features)
    raise ValueError("only trees are supported")


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


def to_skops(model: Any, path: str | Path) -> list[str]:
    """Save a fitted model as a skops file, atomically.

    Parameters
    ----------
    model : DAMVIClassifier, DAMVIVotingClassifier or scikit-learn estimator
        For example, the output of :func:`to_sklearn`.
    path : str or Path

    Returns
    -------
    list of str
        Types that skops does not trust by default. To load the file, pass those that you
        trust: ``skops.io.load(path, trusted=[...])``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import skops.io
    >>> from sklearn.datasets import make_classification
    >>> from damvi import DAMVIClassifier
    >>> from damvi.io import to_skops
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = DAMVIClassifier(n_estimators=10, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     types = to_skops(model, Path(folder) / "model.skops")
    ...     again = skops.io.load(Path(folder) / "model.skops", trusted=types)
    >>> types[0]
    'damvi.classifier.DAMVIClassifier'
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "exporting to skops requires skops: pip install 'damvi[export]'"
        ) from error
    content = skops.io.dumps(model)
    types: list[str] = skops.io.get_untrusted_types(data=content)
    write_whole(Path(path), content)
    return types
