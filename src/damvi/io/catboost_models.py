"""Store CatBoost models as plain arrays.

Trees are symmetric: all nodes of a level have the same split. Splits are numbered: first by
the borders of the numeric features, then by the values that categorical features are
compared with, then by the borders of class rates (or of frequencies), which CatBoost calls
ctrs.

A rate is computed from a table of counts: by the hash of a combination of elements, the
number of rows of each class (or of all). An element is a categorical feature, or one of the
splits before the rates. Rates that differ by their priors or classes share a table. In the
arrays, element e is categorical feature e, or split e - n if there are n of these features.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..voters.trees.estimators import MAX_CLASSES
from .checks import (
    MOST_FEATURES,
    Column,
    Parts,
    require,
    require_array,
    require_columns,
    require_counts,
    require_int,
    require_labels,
    require_names,
    split,
)

MOST_QUESTIONS = 16
MOST_ELEMENTS = 16
"""More than CatBoost combines; they are written anew for each rate of a table."""
MOST_PROBES = 16
"""Mean number of taken places before that of a hash; in CatBoost's tables, about 0.5."""
TREATMENTS = ("AsIs", "AsFalse", "AsTrue")
LABELS = {"b": "Boolean", "i": "Integer", "u": "Integer", "f": "Float", "U": "String"}
FEATURES = {"float_features", "categorical_features", "ctrs"}
COUNTER = "Counter"
TABLES = ("Borders", COUNTER)
"""Kinds of tables: counts of each class, or of rows."""
PRIORS = ("prior_numerator", "prior_denomerator", "scale", "shift")
NO_HASH = 2**64 - 1
"""CatBoost's mark of an empty place in a table."""
MOST_RATE_BORDERS = 254
"""As many as CatBoost has one-byte codes for."""
INT, LARGEST_INT = np.int32, np.iinfo(np.int32).max
LARGEST_SINGLE = float(np.finfo(np.float32).max)


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
    require(set(infos) <= FEATURES, "features that are neither numbers nor categories")
    require("oblivious_trees" in content, "trees are not symmetric")
    numeric = infos.get("float_features") or []
    categorical = infos.get("categorical_features") or []
    for features in (numeric, categorical):
        places = [one["feature_index"] for one in features]
        require(places == list(range(len(features))), "features out of order")
    by_place = {one["flat_feature_index"]: one for one in (*numeric, *categorical)}
    order = sorted(by_place)
    require(order == list(range(len(numeric) + len(categorical))), "features out of order")
    trees = content["oblivious_trees"]
    splits = [tree["splits"] or [] for tree in trees]
    borders = [one["borders"] or [] for one in numeric]
    scale, bias = model.get_scale_and_bias()
    loss = content["model_info"]["params"]["loss_function"]["type"]
    known = vars(model).get("_prediction_values_change")
    parts = {
        "loss": loss,
        "classes": np.asarray(model.classes_),
        "names": [by_place[place]["feature_id"] for place in order],
        "has_nans": [bool(one["has_nans"]) for one in numeric],
        "missing": [TREATMENTS.index(one["nan_value_treatment"]) for one in numeric],
        "n_borders": _lengths(borders),
        "borders": _flat(borders, np.float64),
        "depth": _lengths(splits),
        "splits": np.array([s["split_index"] for own in splits for s in own], np.int64),
        # Reading CatBoost's JSON rounds these, so they are stored separately.
        "leaf_values": np.asarray(model.get_leaf_values(), dtype=np.float64),
        "leaf_weights": _flat([tree["leaf_weights"] for tree in trees], np.float64),
        "scale": float(scale),
        "bias": np.array(np.ravel(bias), dtype=np.float64),
        "importances": None if known is None else np.asarray(known, dtype=np.float64),
    }
    if categorical:
        places = [one["flat_feature_index"] for one in categorical]
        parts["categorical"] = np.array(places, np.int64)
        parts |= _read_rates(content, borders, [one.get("values") for one in categorical])
    return parts


def _lengths(lists: list[Any]) -> NDArray[np.int64]:
    return np.array([len(own) for own in lists], np.int64)


def _flat(lists: list[list[Any]], dtype: Any) -> NDArray[Any]:
    return np.array([one for own in lists for one in own], dtype)


def _read_rates(content: Any, borders: list[list[float]], values: list[Any]) -> Parts:
    """Return the values that are compared, the tables of counts, and the rates of them."""
    values = [own or [] for own in values]
    starts = np.cumsum([0, *map(len, borders), *map(len, values)]) + len(values)

    def element(one: dict[str, Any]) -> int:
        if one["combination_element"] == "cat_feature_value":
            return int(one["cat_feature_index"])
        if one["combination_element"] == "float_feature":
            f = one["float_feature_index"]
            return int(starts[f]) + borders[f].index(one["border"])
        f = one["cat_feature_index"]
        return int(starts[len(borders) + f]) + values[f].index(one["value"])

    rates = content["features_info"].get("ctrs") or []
    data = content.get("ctr_data") or {}
    places = {key: place for place, key in enumerate(data)}
    tables: list[Any] = [None] * len(places)
    for one in rates:
        require(one["ctr_type"] in TABLES, f"table {one['ctr_type']!r:.60}")
        kind = TABLES.index(one["ctr_type"])
        tables[places[one["identifier"]]] = kind, list(map(element, one["elements"]))
    require(None not in tables, "unused tables")
    hashes, counts = [], []
    for one in data.values():
        stride, cells = one["hash_stride"], one["hash_map"]
        own = np.array(list(map(int, cells[::stride])), np.uint64)
        order = np.argsort(own)
        order = order[own[order] != NO_HASH]
        columns = [cells[column::stride] for column in range(1, stride)]
        hashes.append(own[order])
        counts.append(np.array(columns, dtype=np.int64).T[order])
        require((np.abs(counts[-1]) <= LARGEST_INT).all(), "counts out of range")
    return {
        "n_values": _lengths(values),
        "values": _flat(values, INT),
        "table_kinds": np.array([kind for kind, _ in tables], np.int64),
        "n_elements": _lengths([own for _, own in tables]),
        "elements": _flat([own for _, own in tables], np.int64),
        "n_hashes": _lengths(hashes),
        "hashes": np.concatenate([np.zeros(0, np.uint64), *hashes]),
        "counts": np.concatenate([np.zeros(0), *map(np.ravel, counts)]).astype(INT),
        "totals": np.array([one["counter_denominator"] for one in data.values()], np.int64),
        "rate_tables": np.array([places[one["identifier"]] for one in rates], np.int64),
        "rate_classes": np.array([one["target_border_idx"] for one in rates], np.int64),
        "priors": np.array([[one[p] for p in PRIORS] for one in rates], np.float64).ravel(),
        "n_rate_borders": _lengths([one["borders"] for one in rates]),
        "rate_borders": _flat([one["borders"] for one in rates], np.float64),
    }


def check_catboost(parts: Parts) -> None:
    """Check everything that CatBoost takes for granted."""
    bias = parts["bias"]
    require_array(bias, np.float64, (None,), "bias")
    require(len(bias) == 1 or 2 < len(bias) <= MAX_CLASSES, "unknown kind of bias")
    require(isinstance(parts["scale"], float), "unknown kind of scale")
    require(np.isfinite([parts["scale"], *bias]).all(), "unknown kind of bias")
    require_labels(parts["classes"], max(len(bias), 2))
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
    require_names(parts["names"], n_features)
    n_numeric = n_features - _check_categorical(parts, n_features)
    for name in ("has_nans", "missing"):
        require(isinstance(parts[name], list) and len(parts[name]) == n_numeric, name)
    require(all(type(one) is bool for one in parts["has_nans"]), "has_nans")
    require(all(type(one) is int and 0 <= one < 3 for one in parts["missing"]), "missing")
    _check_borders(parts, "borders", n_numeric, 0)
    n_splits = len(parts["borders"])
    if "categorical" in parts:
        n_splits = _check_rates(parts)
    require_counts(parts["depth"], len(parts["splits"]), 0, "questions")
    require((parts["depth"] <= MOST_QUESTIONS).all(), "trees too deep")
    require_columns(parts, [("splits", np.int64)], len(parts["splits"]))
    splits = parts["splits"]
    require(((splits >= 0) & (splits < n_splits)).all(), "borders out of range")
    n_leaves = int((2 ** parts["depth"]).sum())
    require_columns(parts, [("leaf_weights", np.float64)], n_leaves)
    require_columns(parts, [("leaf_values", np.float64)], n_leaves * len(bias))
    require(n_trees > 0, "no trees")
    importances = parts["importances"]
    if importances is not None:
        require_array(importances, np.float64, (n_features,), "importances")


def _check_categorical(parts: Parts, n_features: int) -> int:
    """Check which features are categorical, if any; return their number."""
    if "categorical" not in parts:
        return 0
    places = parts["categorical"]
    require_array(places, np.int64, (None,), "categorical")
    require(len(places) > 0, "no categorical features")
    require((places[1:] > places[:-1]).all(), "categorical features out of order")
    require(places[0] >= 0 and places[-1] < n_features, "categorical features out of range")
    return len(places)


def _check_borders(parts: Parts, name: str, n: int, least: int) -> None:
    """Check that the borders of each of ``n`` features rise, in CatBoost's precision."""
    borders, counts = parts[name], parts[f"n_{name}"]
    require_columns(parts, [(name, np.float64)], len(borders))
    starts = require_counts(counts, len(borders), least, name, n)
    require((np.abs(borders) <= LARGEST_SINGLE).all(), f"{name} out of range")
    single = borders.astype(np.float32)
    rises = np.ones(len(borders), dtype=bool)
    rises[1:] = single[1:] > single[:-1]
    rises[starts[:-1][counts > 0]] = True
    require(rises.all(), f"{name} out of order")


def _check_rates(parts: Parts) -> int:
    """Check the parts that :func:`_read_rates` returns; return the number of splits."""
    n_categorical, n_tables = len(parts["categorical"]), len(parts["table_kinds"])
    values, hashes = parts["values"], parts["hashes"]
    require_columns(parts, [("values", INT)], len(values))
    starts = require_counts(parts["n_values"], len(values), 0, "values", n_categorical)
    for own in split(values, starts):
        require(len(np.unique(own)) == len(own), "duplicate values")
    columns: list[Column] = [("table_kinds", np.int64), ("totals", np.int64)]
    require_columns(parts, columns, n_tables)
    kinds, totals = parts["table_kinds"], parts["totals"]
    require(((kinds >= 0) & (kinds < len(TABLES))).all(), "unknown kind of tables")
    require(((totals >= 0) & (totals <= LARGEST_INT)).all(), "totals out of range")
    _check_elements(parts, n_categorical, n_tables)
    # The hashes of each table, and its counts.
    require_columns(parts, [("hashes", np.uint64)], len(hashes))
    n_hashes = parts["n_hashes"]
    starts = require_counts(n_hashes, len(hashes), 1, "hashes", n_tables)
    require((hashes != NO_HASH).all(), "hashes out of range")
    for own in split(hashes, starts) if n_tables else []:
        require((own[1:] > own[:-1]).all(), "hashes out of order")
        require(_probes(own) <= MOST_PROBES * len(own), "too many hashes alike")
    widths = _widths(parts)
    require_columns(parts, [("counts", INT)], int((n_hashes * widths).sum()))
    require((parts["counts"] >= 0).all(), "counts out of range")
    by_hash = np.repeat(widths, n_hashes)
    sums = np.add.reduceat(parts["counts"], np.cumsum(by_hash) - by_hash, dtype=np.int64)
    require((sums <= LARGEST_INT).all(), "counts out of range")
    # The rates.
    n_rates = len(parts["rate_tables"])
    columns = [("rate_tables", np.int64), ("rate_classes", np.int64)]
    require_columns(parts, columns, n_rates)
    tables, classes = parts["rate_tables"], parts["rate_classes"]
    require(((tables >= 0) & (tables < n_tables)).all(), "tables out of range")
    most = np.maximum(widths[tables] - 2, 0)
    require(((classes >= 0) & (classes <= most)).all(), "classes of rates out of range")
    require_columns(parts, [("priors", np.float64)], n_rates * len(PRIORS))
    priors = parts["priors"].reshape(n_rates, len(PRIORS))
    require((np.abs(priors) <= LARGEST_SINGLE).all(), "priors out of range")
    require((priors[:, PRIORS.index("prior_denomerator")] > 0).all(), "priors out of range")
    _check_borders(parts, "rate_borders", n_rates, 1)
    require((parts["n_rate_borders"] <= MOST_RATE_BORDERS).all(), "rate_borders")
    return len(parts["borders"]) + len(values) + len(parts["rate_borders"])


def _probes(hashes: NDArray[np.uint64]) -> int:
    """How many taken places CatBoost meets while it fills a table with these hashes.

    It has at least twice as many places as hashes, a power of two, and a hash goes to the
    first free place from the one that its last bits name.
    """
    last_bits = np.uint64((1 << (2 * len(hashes) - 1).bit_length()) - 1)
    asked = np.sort((hashes & last_bits).astype(np.int64))
    ranks = np.arange(len(hashes))
    return int((np.maximum.accumulate(asked - ranks) + ranks - asked).sum())


def _widths(parts: Parts) -> NDArray[np.int64]:
    """Number of counts for each hash, by table."""
    n_classes = len(parts["classes"])
    return np.where(parts["table_kinds"] == TABLES.index(COUNTER), 1, n_classes)


def _check_elements(parts: Parts, n_categorical: int, n_tables: int) -> None:
    """Check that each table is of other elements, in CatBoost's order of their kinds."""
    elements = parts["elements"]
    require_columns(parts, [("elements", np.int64)], len(elements))
    starts = require_counts(parts["n_elements"], len(elements), 1, "elements", n_tables)
    require((parts["n_elements"] <= MOST_ELEMENTS).all(), "elements out of range")
    sizes = n_categorical, len(parts["borders"]), len(parts["values"])
    require(((elements >= 0) & (elements < sum(sizes))).all(), "elements out of range")
    kinds = np.repeat(np.arange(3), sizes)[elements]
    falls = np.flatnonzero(kinds[1:] < kinds[:-1]) + 1
    require(np.isin(falls, starts).all(), "elements out of order")
    tables = [tuple(own.tolist()) for own in split(elements, starts)] if n_tables else []
    named = set(zip(parts["table_kinds"].tolist(), tables, strict=True))
    require(len(named) == n_tables, "duplicate tables")


def catboost_document(parts: Parts) -> str:
    """Return the columns as CatBoost's JSON."""
    questions = np.append(0, np.cumsum(parts["depth"]))
    leaves = np.append(0, np.cumsum(2 ** parts["depth"]))
    width = len(parts["bias"])
    classes = parts["classes"]
    categorical = parts.get("categorical", np.zeros(0, np.int64))
    numeric = np.setdiff1d(np.arange(len(parts["names"])), categorical).tolist()
    borders = _lists(parts["borders"], parts["n_borders"])
    columns = zip(numeric, borders, parts["has_nans"], parts["missing"], strict=True)
    infos: dict[str, Any] = {
        "float_features": [
            {
                "borders": own,
                "feature_id": parts["names"][place],
                "feature_index": number,
                "flat_feature_index": place,
                "has_nans": has_nans,
                "nan_value_treatment": TREATMENTS[missing],
            }
            for number, (place, own, has_nans, missing) in enumerate(columns)
        ]
    }
    trees = [
        {
            "leaf_values": values.tolist(),
            "leaf_weights": weights.tolist(),
            "splits": [{"split_index": at} for at in own.tolist()],
        }
        for values, weights, own in zip(
            split(parts["leaf_values"], leaves * width),
            split(parts["leaf_weights"], leaves),
            split(parts["splits"], questions),
            strict=True,
        )
    ]
    loss = {"params": {}, "type": parts["loss"]}
    document = {
        "features_info": infos,
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
    if len(categorical):
        more, document["ctr_data"] = _rates_of_document(parts, borders)
        infos |= more
    return json.dumps(document)


def _lists(column: NDArray[Any], counts: NDArray[np.int64]) -> list[list[Any]]:
    """The items of each, by how many each has."""
    if not len(counts):
        return []
    starts = np.append(0, np.cumsum(counts))
    return [own.tolist() for own in split(column, starts)]


def _rates_of_document(
    parts: Parts, borders: list[list[float]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the categorical features, the rates of them, and the tables of counts."""
    values = _lists(parts["values"], parts["n_values"])
    elements: list[dict[str, Any]] = [
        {"cat_feature_index": f, "combination_element": "cat_feature_value"}
        for f in range(len(values))
    ]
    elements += [
        {"border": one, "combination_element": "float_feature", "float_feature_index": f}
        for f, own in enumerate(borders)
        for one in own
    ]
    elements += [
        {
            "cat_feature_index": f,
            "combination_element": "cat_feature_exact_value",
            "value": one,
        }
        for f, own in enumerate(values)
        for one in own
    ]
    features = [
        {
            "feature_id": parts["names"][place],
            "feature_index": f,
            "flat_feature_index": place,
            **({"values": values[f]} if values[f] else {}),
        }
        for f, place in enumerate(parts["categorical"].tolist())
    ]
    made = []
    data: dict[str, Any] = {}
    for kind, places, hashes, counts, total in zip(
        parts["table_kinds"].tolist(),
        _lists(parts["elements"], parts["n_elements"]),
        _lists(parts["hashes"], parts["n_hashes"]),
        _lists(parts["counts"], parts["n_hashes"] * _widths(parts)),
        parts["totals"].tolist(),
        strict=True,
    ):
        own = [elements[place] for place in places]
        key = json.dumps({"identifier": own, "type": TABLES[kind]})
        made.append({"ctr_type": TABLES[kind], "elements": own})
        width = len(counts) // len(hashes)
        cells = []
        for row, one in enumerate(hashes):
            cells += [str(one), *counts[row * width : (row + 1) * width]]
        data[key] = {
            "counter_denominator": total,
            "hash_map": cells,
            "hash_stride": width + 1,
        }
    rates = [
        made[table]
        | dict(zip(PRIORS, priors, strict=True))
        | {"borders": own, "target_border_idx": of_class}
        for table, of_class, priors, own in zip(
            parts["rate_tables"].tolist(),
            parts["rate_classes"].tolist(),
            parts["priors"].reshape(-1, len(PRIORS)).tolist(),
            _lists(parts["rate_borders"], parts["n_rate_borders"]),
            strict=True,
        )
    ]
    return {"categorical_features": features, "ctrs": rates}, data


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
