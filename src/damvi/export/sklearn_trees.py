"""Trees read out of scikit-learn's models."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compat import boosted_trees
from .boosters import Boosted
from .trees import LEAF, Trees


def read_tree(model: Any) -> Trees:
    """A fitted decision tree; a leaf's value is its share of the last class."""
    tree = model.tree_
    left = tree.children_left
    return Trees.of_nodes(
        feature=np.where(left == LEAF, 0, tree.feature),
        threshold=tree.threshold,
        left=left,
        right=tree.children_right,
        missing_left=tree.missing_go_to_left,
        value=tree.value[:, 0, -1],
    )


def read_hist_boosting(model: Any) -> Boosted:
    """A fitted ``HistGradientBoostingClassifier``."""
    start, tables = boosted_trees(model)
    trees = []
    for nodes in tables:
        leaf = nodes["is_leaf"].astype(bool)
        if nodes["is_categorical"].any():
            raise ValueError(
                "it splits on categories of its own; put damvi.voters.NumberEncoder before "
                "it instead of categorical_features"
            )
        trees.append(
            Trees.of_nodes(
                feature=np.where(leaf, 0, nodes["feature_idx"]),
                threshold=nodes["num_threshold"],
                left=np.where(leaf, LEAF, nodes["left"].astype(np.int64)),
                right=np.where(leaf, LEAF, nodes["right"].astype(np.int64)),
                missing_left=nodes["missing_go_to_left"],
                value=nodes["value"],
            )
        )
    many = len(start) > 1
    return Boosted(
        Trees.join(trees),
        start=start,
        bias=(0.0,) * len(start),
        of_class=np.arange(len(trees)) % len(start) if many else None,
    )
