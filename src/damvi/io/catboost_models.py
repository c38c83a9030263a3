"""Store CatBoost models as plain arrays.

Trees are symmetric: all nodes of a level have the same split.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ..voters.trees.estimators import MAX_CLASSES
from .booster_parts import (
    MOST_FEATURES,
    Parts,
    check_classes,
    check_columns,
    check_counts,
    require_int,
    split,
)
from .checks import require, require_array

MOST_QUESTIONS = 16
TREATMENTS = ("AsIs", "AsFalse", "AsTrue")
LABELS = {"b": "Boolean", "i": "Integer", "u": "Integer", "f": "Float", "U": "String"}


def catboost_json(model: Any) -> bytes:
    """Return a fitted CatBoost model as JSON, which it can only write to a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        return path.read_bytes()


def read_catboost(model: Any) -> Parts:
    """Return a fitted ``CatBoostClassifier`` as columns; empty if it is not fitted."""
    if not model.is_fitted():
        return {}
    content = json.loads(catboost_json(model))
    infos = content["features_info"]
    require(set(infos) == {"float_features"}, "non-numeric features")
    require("oblivious_trees" in content, "trees are not symmetric")
    features, trees = infos["float_features"], content["oblivious_trees"]
    for place, one in enumerate(features):
        places = (one["feature_index"], one["flat_feature_index"])
        require(places == (place, place), "features out of order")
    splits = [tree["splits"] or [] for tree in trees]
    kinds = {split["split_type"] for own in splits for split in own}
    require(kinds <= {"FloatFeature"}, "splits on non-numeric features")
    borders = [one["borders"] or [] for one in features]
    scale, bias = model.get_scale_and_bias()
    loss = content["model_info"]["params"]["loss_function"]["type"]
    known = vars(model).get("_prediction_values_change")
    parts = {
        "loss": loss,
        "classes": np.asarray(model.classes_),
        "names": [one["feature_id"] for one in features],
        "has_nans": [bool(one["has_nans"]) for one in features],
        "missing": [TREATMENTS.index(one["nan_value_treatment"]) for one in features],
        "n_borders": np.array([len(own) for own in borders]),
        "borders": np.array([b for own in borders for b in own], dtype=np.float64),
        "depth": np.array([len(own) for own in splits]),
        "splits": np.array([s["split_index"] for own in splits for s in own], np.int64),
        # Reading CatBoost's JSON rounds these, so they are stored separately.
        "leaf_values": np.asarray(model.get_leaf_values(), dtype=np.float64),
        "leaf_weights": np.concatenate([tree["leaf_weights"] for tree in trees]),
        "scale": float(scale),
        "bias": np.array(np.ravel(bias), dtype=np.float64),
        "importances": None if known is None else np.asarray(known, dtype=np.float64),
    }
    parts["leaf_weights"] = parts["leaf_weights"].astype(np.float64)
    return parts


def check_catboost(parts: Parts) -> None:
    """Check everything that CatBoost takes for granted."""
    bias = parts["bias"]
    require_array(bias, np.float64, (None,), "bias")
    require(len(bias) == 1 or 2 < len(bias) <= MAX_CLASSES, "unknown kind of bias")
    require(isinstance(parts["scale"], float), "unknown kind of scale")
    require(np.isfinite([parts["scale"], *bias]).all(), "unknown kind of bias")
    check_classes(parts["classes"], max(len(bias), 2))
    kind = parts["classes"].dtype.kind
    texts = all(type(one) is str for one in parts["classes"].tolist())
    require(kind in LABELS or texts, "unknown kind of classes")
    known = (
        ("Logloss", "CrossEntropy")
        if len(bias) == 1
        else ("MultiClass", "MultiClassOneVsAll")
    )
    require(parts["loss"] in known, f"loss {parts['loss']!r:.60}")
    n_features, n_trees = len(parts["names"]), len(parts["depth"])
    require_int(n_features, 1, MOST_FEATURES, "features:")
    for name in ("names", "has_nans", "missing"):
        require(isinstance(parts[name], list) and len(parts[name]) == n_features, name)
    require(all(type(one) is str for one in parts["names"]), "feature names")
    require(all(type(one) is bool for one in parts["has_nans"]), "has_nans")
    require(all(type(one) is int and 0 <= one < 3 for one in parts["missing"]), "missing")
    borders = parts["borders"]
    check_columns(parts, [("borders", np.float64)], len(borders))
    require_array(parts["n_borders"], np.int64, (n_features,), "borders")
    starts = check_counts(parts["n_borders"], len(borders), 0, "borders")
    rises = np.ones(len(borders), dtype=bool)
    rises[1:] = borders[1:] > borders[:-1]
    rises[starts[:-1][parts["n_borders"] > 0]] = True
    require(rises.all(), "borders out of order")
    require((np.abs(borders) <= np.finfo(np.float32).max).all(), "borders out of range")
    check_counts(parts["depth"], len(parts["splits"]), 0, "questions")
    require((parts["depth"] <= MOST_QUESTIONS).all(), "trees too deep")
    check_columns(parts, [("splits", np.int64)], len(parts["splits"]))
    splits = parts["splits"]
    require(((splits >= 0) & (splits < len(borders))).all(), "borders out of range")
    n_leaves = int((2 ** parts["depth"]).sum())
    check_columns(parts, [("leaf_weights", np.float64)], n_leaves)
    check_columns(parts, [("leaf_values", np.float64)], n_leaves * len(bias))
    require(n_trees > 0, "no trees")
    importances = parts["importances"]
    if importances is not None:
        require_array(importances, np.float64, (n_features,), "importances")


def catboost_document(parts: Parts) -> str:
    """Return the columns as CatBoost's JSON."""
    bounds = np.append(0, np.cumsum(parts["n_borders"]))
    questions = np.append(0, np.cumsum(parts["depth"]))
    leaves = np.append(0, np.cumsum(2 ** parts["depth"]))
    width = len(parts["bias"])
    classes = parts["classes"]
    columns = zip(
        split(parts["borders"], bounds),
        *(parts[name] for name in ("names", "has_nans", "missing")),
        strict=True,
    )
    features = [
        {
            "borders": own.tolist(),
            "feature_id": name,
            "feature_index": place,
            "flat_feature_index": place,
            "has_nans": has_nans,
            "nan_value_treatment": TREATMENTS[missing],
        }
        for place, (own, name, has_nans, missing) in enumerate(columns)
    ]
    trees = [
        {
            "leaf_values": values.tolist(),
            "leaf_weights": weights.tolist(),
            "splits": [
                {"split_index": at, "split_type": "FloatFeature"} for at in own.tolist()
            ],
        }
        for values, weights, own in zip(
            split(parts["leaf_values"], leaves * width),
            split(parts["leaf_weights"], leaves),
            split(parts["splits"], questions),
            strict=True,
        )
    ]
    loss = {"params": {}, "type": parts["loss"]}
    return json.dumps(
        {
            "features_info": {"float_features": features},
            "model_info": {
                "class_params": {
                    "class_label_type": LABELS.get(classes.dtype.kind, "String"),
                    "class_names": classes.tolist(),
                    "class_to_label": list(range(len(classes))),
                },
                "params": {"flat_params": {}, "loss_function": loss},
            },
            "oblivious_trees": trees,
            "scale_and_bias": [1, [0] * width],
        }
    )


def rebuild_catboost(model: Any, parts: Parts) -> None:
    params = model.get_params(deep=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        path.write_text(catboost_document(parts), encoding="utf-8")
        model.load_model(str(path), format="json")
    model.set_leaf_values(parts["leaf_values"])
    bias = parts["bias"].tolist()
    model.set_scale_and_bias(parts["scale"], bias[0] if len(bias) == 1 else bias)
    # Loading does not restore these.
    vars(model).update(_init_params=params, _n_features_in=len(parts["names"]))
    if parts["importances"] is not None:
        vars(model)["_prediction_values_change"] = list(parts["importances"])
