"""Trees read out of LightGBM, XGBoost and CatBoost, from what they save."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .trees import LEAF, LEQ, LT, Places, Trees

NOTHING = float(np.float32(1e-35))
"""LightGBM's kZeroThreshold."""
INFINITY = 1e300
"""What it writes for infinity."""


@dataclass(frozen=True, eq=False)
class Boosted:
    """Trees whose sum is the log-odds of the last class, or whose sums are those of C > 2.

    ``start`` is what the sums start from, ``slope`` and ``bias`` what is done to them at
    the end; there is one start and one bias for each sum. ``of_class`` says which of C
    sums each tree adds to. ``single_values`` says that features are compared in single
    precision, ``single_sum`` that the trees are added up in it.
    """

    trees: Trees
    start: tuple[float, ...] = (0.0,)
    slope: float = 1.0
    bias: tuple[float, ...] = (0.0,)
    of_class: Places | None = None
    single_values: bool = False
    single_sum: bool = False


def read_lightgbm(model: Any) -> Boosted:
    """A fitted ``LGBMClassifier``."""
    said = model.booster_.dump_model()
    n_classes = len(model.classes_)
    wanted = "multiclass" if n_classes > 2 else "binary"
    objective = re.fullmatch(rf"{wanted} (?:sigmoid|num_class):(\S+)", said["objective"])
    if objective is None or said["average_output"]:
        raise ValueError(
            f"only boosting with the objective {wanted!r} is known here, and this is "
            f"{said['objective']!r}" + (" by boosting 'rf'" * bool(said["average_output"]))
        )
    found = [_lightgbm_tree(tree["tree_structure"]) for tree in said["tree_info"]]
    trees = Trees.join(found)
    if n_classes == 2:
        return Boosted(trees, slope=float(objective[1]))
    none = (0.0,) * n_classes
    return Boosted(trees, none, bias=none, of_class=np.arange(len(found)) % n_classes)


def _lightgbm_tree(root: dict[str, Any]) -> Trees:
    nodes: list[dict[str, Any]] = [root]
    left, right = [], []
    for node in nodes:  # grows while it is read
        if "split_index" not in node:
            if "leaf_const" in node:
                raise ValueError("its leaves hold linear models (linear_tree=True)")
            left.append(LEAF)
            right.append(LEAF)
            continue
        if node["decision_type"] != "<=" or node["missing_type"] == "Zero":
            raise ValueError(
                "it splits on categories of its own, or takes zeros as missing; put "
                "damvi.voters.NumberEncoder before it, and leave zero_as_missing off"
            )
        left.append(len(nodes))
        right.append(len(nodes) + 1)
        nodes += [node["left_child"], node["right_child"]]
    threshold = _exact(np.array([node.get("threshold", 0.0) for node in nodes]))
    # Where no value was missing at fit, a missing one counts as 0.
    missing_left = [
        node.get("default_left", False)
        if node.get("missing_type") == "NaN"
        else bool(threshold[k] >= 0)
        for k, node in enumerate(nodes)
    ]
    return Trees.of_nodes(
        feature=[node.get("split_feature", 0) for node in nodes],
        threshold=threshold,
        left=left,
        right=right,
        missing_left=missing_left,
        value=[node.get("leaf_value", 0.0) for node in nodes],
    )


def _exact(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Thresholds for values of any size: it takes those up to ``NOTHING`` as 0."""
    beside = np.where(threshold < 0, np.nextafter(-NOTHING, -np.inf), NOTHING)
    near = np.where(np.abs(threshold) <= NOTHING, beside, threshold)
    return np.where(np.abs(near) >= INFINITY, np.copysign(np.inf, near), near)


def read_xgboost(model: Any) -> Boosted:
    """A fitted ``XGBClassifier``."""
    booster = model.get_booster()
    said = json.loads(booster.save_raw("json"))["learner"]
    kind, objective = said["gradient_booster"]["name"], said["objective"]["name"]
    n_classes = len(model.classes_)
    wanted = "multi:softprob" if n_classes > 2 else "binary:logistic"
    if kind != "gbtree" or objective != wanted:
        raise ValueError(
            f"only booster 'gbtree' with {wanted!r} is known here, and this is "
            f"{kind!r} with {objective!r}"
        )
    if not np.isnan(model.missing):
        raise ValueError(f"it takes {model.missing!r} as missing; leave that at NaN")
    content = said["gradient_booster"]["model"]
    trees = content["trees"]
    if (best := booster.attr("best_iteration")) is not None:
        trees = trees[: content["iteration_indptr"][int(best) + 1]]
    given = said["learner_model_param"]["base_score"].strip("[]").split(",")
    base = np.array(given, dtype=np.float32)
    if n_classes == 2:
        start, of_class = -np.log(np.float32(1) / base - np.float32(1)), None
    else:
        start = np.broadcast_to(base, n_classes)
        of_class = np.array(content["tree_info"][: len(trees)], dtype=np.int64)
    return Boosted(
        Trees.join([_xgboost_tree(tree) for tree in trees]),
        start=tuple(start.tolist()),
        bias=(0.0,) * len(start),
        of_class=of_class,
        single_values=True,
        single_sum=True,
    )


def _xgboost_tree(tree: dict[str, Any]) -> Trees:
    if tree["tree_param"]["size_leaf_vector"] not in ("0", "1"):
        raise ValueError("its leaves hold a value a class; leave multi_strategy alone")
    if any(tree["split_type"]):
        raise ValueError(
            "it splits on categories of its own (enable_categorical); put "
            "damvi.voters.NumberEncoder before it"
        )
    left = np.array(tree["left_children"])
    conditions = np.array(tree["split_conditions"], dtype=np.float32)
    return Trees.of_nodes(
        feature=np.where(left == LEAF, 0, tree["split_indices"]),
        threshold=conditions,
        left=left,
        right=tree["right_children"],
        missing_left=tree["default_left"],
        value=conditions,
        mode=LT,
    )


def read_catboost(model: Any) -> Boosted:
    """A fitted ``CatBoostClassifier``."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        said = json.loads(path.read_text(encoding="utf-8"))
    features = said["features_info"]
    if "oblivious_trees" not in said or set(features) - {"float_features"}:
        raise ValueError(
            "only symmetric trees on numbers are known here: leave grow_policy alone, and "
            "put damvi.voters.NumberEncoder before it instead of cat_features"
        )
    objective = model.get_all_params()["loss_function"]
    n_classes = len(model.classes_)
    known = ("MultiClass",) if n_classes > 2 else ("Logloss", "CrossEntropy")
    if objective not in known:
        raise ValueError(f"only loss_function {known[0]!r} is known, and not {objective!r}")
    columns = {feature["feature_index"]: feature for feature in features["float_features"]}
    scale, bias = said["scale_and_bias"]
    found, of_class = [], []
    for tree in said["oblivious_trees"]:
        # A tree for each class, the same but for its leaves.
        values = np.reshape(tree["leaf_values"], (-1, len(bias)))
        for c, own in enumerate(values.T):
            found.append(_catboost_tree(tree, own, columns))
            of_class.append(c)
    return Boosted(
        Trees.join(found),
        start=(0.0,) * len(bias),
        slope=float(scale),
        bias=tuple(map(float, bias)),
        of_class=None if n_classes == 2 else np.array(of_class, dtype=np.int64),
        single_values=True,
    )


def _catboost_tree(
    tree: dict[str, Any], values: NDArray[Any], columns: dict[int, dict[str, Any]]
) -> Trees:
    """A table of leaves, one bit of the place a split, as a tree: the last bit first."""
    splits = tree["splits"] or []
    depth = len(splits)
    inner = 2**depth - 1
    nodes = np.arange(2 * inner + 1)
    level = np.floor(np.log2(nodes + 1)).astype(np.int64)
    own: list[Any] = [splits[depth - 1 - step] for step in level[:inner]]
    column = [columns[split["float_feature_index"]] for split in own]
    pad = [0] * (inner + 1)
    treatment = [c["nan_value_treatment"] for c in column]
    return Trees.of_nodes(
        feature=[c["flat_feature_index"] for c in column] + pad,
        threshold=np.array([split["border"] for split in own] + pad, dtype=np.float32),
        left=np.where(nodes < inner, 2 * nodes + 1, LEAF),
        right=np.where(nodes < inner, 2 * nodes + 2, LEAF),
        missing_left=[said != "AsTrue" for said in treatment] + pad,
        # The walk reads the bits of a leaf's place from the last to the first.
        value=np.concatenate([np.zeros(inner), values]),
        mode=LEQ,
    )
