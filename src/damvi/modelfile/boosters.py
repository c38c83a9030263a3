"""LightGBM, XGBoost and CatBoost members, in the formats that these libraries define."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from .errors import ModelFileError
from .values import Json, Reader, Writer

LIGHTGBM, XGBOOST = "lightgbm.LGBMClassifier", "xgboost.XGBClassifier"
CATBOOST = "catboost.CatBoostClassifier"
KINDS = (LIGHTGBM, XGBOOST, CATBOOST)
TRAINED = {LIGHTGBM: "_Booster", XGBOOST: "_Booster", CATBOOST: "_object"}
"""The attribute that holds the trained model."""


def kind_of(value: Any) -> str | None:
    """Which booster it is, if any; one that nobody has imported it cannot be."""
    for kind in KINDS:
        package, _, name = kind.partition(".")
        if package in sys.modules and type(value) is getattr(sys.modules[package], name):
            return kind
    return None


def write(writer: Writer, kind: str, model: Any) -> dict[str, Json]:
    """Its attributes, and the trained model in the library's own format."""
    state = dict(vars(model))
    state.pop("_metadata_request", None)
    trained = state.pop(TRAINED[kind], None)
    said: dict[str, Json] = {}
    if kind == CATBOOST:
        if model.is_fitted():
            said["model"] = writer.add_blob(_cbm(model), "cbm")
        state["_prediction_values_change"] = state.get("_prediction_values_change")
        state = {k: state[k] for k in ("_init_params", "_prediction_values_change")}
    elif kind == LIGHTGBM and trained is not None:
        # All rounds: with early stopping, the best one is remembered beside.
        text = trained.model_to_string(num_iteration=-1)
        said["model"] = writer.add_blob(text.encode(), "txt")
        said["best_iteration"] = int(trained.best_iteration)
    elif kind == XGBOOST and trained is not None:
        said["model"] = writer.add_blob(bytes(trained.save_raw("ubj")), "ubj")
    return {"state": writer.state(state), **said}


def read(reader: Reader, kind: str, said: dict[str, Json]) -> Any:
    """The model that was written."""
    package, _, name = kind.partition(".")
    try:
        cls = getattr(__import__(package), name)
    except ImportError as error:
        raise ImportError(
            f"the model has a voter by {package}, which is not installed; install it "
            f"with: pip install {package}"
        ) from error
    state = reader.state(said["state"])
    content = reader.take(said["model"]) if "model" in said else None
    try:
        return _rebuild(kind, cls, state, content, said)
    except Exception as error:  # each library has errors of its own
        reason = (str(error).strip().splitlines() or [""])[0][:200]
        raise ModelFileError(f"{package} cannot read its member ({reason})") from error


def _rebuild(
    kind: str, cls: Any, state: dict[str, Any], content: bytes | None, said: dict[str, Json]
) -> Any:
    if kind == CATBOOST:
        model = cls(**state["_init_params"])
        if content is not None:
            model.load_model(blob=content)
            model._init_params = dict(state["_init_params"])
        if state["_prediction_values_change"] is not None:
            model._prediction_values_change = state["_prediction_values_change"]
        return model
    model = cls()
    vars(model).clear()
    vars(model).update(state)
    if kind == LIGHTGBM:
        model._Booster = None
    if content is None:
        return model
    if kind == LIGHTGBM:
        from lightgbm import Booster

        booster = Booster(model_str=content.decode())
        booster.best_iteration = int(said["best_iteration"])
        model._Booster = booster
    else:
        from xgboost import Booster as XGBooster

        trained = XGBooster(model_file=bytearray(content))
        if model.n_jobs is not None:
            trained.set_param({"nthread": int(model.n_jobs)})
        model._Booster = trained
    return model


def _cbm(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cbm"
        model.save_model(str(path), format="cbm")
        return path.read_bytes()
