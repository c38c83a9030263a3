"""From our trees to scikit-learn's, so that other tools can read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from ..._compat import make_sklearn_tree
from .splits import N_CODES

if TYPE_CHECKING:
    from .classifier import FastTreeClassifier


def as_sklearn_tree(tree: FastTreeClassifier) -> DecisionTreeClassifier:
    """A fitted :class:`~sklearn.tree.DecisionTreeClassifier` that is the same tree."""
    forest, binning = tree._voters.forest, tree._voters.features.binning
    if forest.on_categories.any():
        raise ValueError(
            "the tree splits on categories, which scikit-learn's trees cannot; encode "
            "them as numbers before fit to convert it"
        )
    is_leaf = forest.is_leaf
    # The last code on the left, missing values aside.
    codes = np.minimum(forest.threshold.astype(np.int64) + forest.shift, N_CODES - 1)
    places = binning.starts[forest.feature] + codes - 1
    ends = binning.starts[forest.feature + 1]
    inner = ~is_leaf & (places < ends)
    thresholds = np.full(len(codes), np.inf)  # values left, the missing right
    thresholds[inner] = binning.cuts[places[inner]]
    totals = forest.weights.sum(axis=1)
    shares = forest.weights / totals[:, np.newaxis]
    converted = make_sklearn_tree(
        left=np.where(is_leaf, -1, forest.left),
        right=np.where(is_leaf, -1, forest.left + 1),
        feature=np.where(is_leaf, -2, forest.feature),
        threshold=np.where(is_leaf, -2.0, thresholds),
        missing_go_to_left=(~is_leaf & (forest.shift == 0)),
        impurity=1 - (shares**2).sum(axis=1),
        n_node_samples=forest.rows,
        weighted_n_node_samples=totals.astype(np.float64),
        value=shares,
        max_depth=tree.get_depth(),
        n_features=tree.n_features_in_,
    )
    model = DecisionTreeClassifier(
        max_depth=tree.max_depth,
        min_samples_leaf=tree.min_samples_leaf,
        max_features=tree.max_features,
    )
    model.tree_, model.classes_ = converted, tree.classes_
    model.n_classes_, model.n_outputs_ = len(tree.classes_), 1
    model.n_features_in_, model.max_features_ = tree.n_features_in_, tree.n_features_in_
    if hasattr(tree, "feature_names_in_"):
        model.feature_names_in_ = tree.feature_names_in_
    return model
