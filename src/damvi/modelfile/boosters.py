"""LightGBM, XGBoost and CatBoost members, in the text formats that these libraries define.

Text, since only what can be read can be checked; see :mod:`.booster_checks`.
"""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from .booster_checks import check_catboost, check_lightgbm, check_xgboost
from .errors import ModelFileError
from .values import Json, Reader, Writer

LIGHTGBM, XGBOOST = "lightgbm.LGBMClassifier", "xgboost.XGBClassifier"
CATBOOST = "catboost.CatBoostClassifier"
KINDS = (LIGHTGBM, XGBOOST, CATBOOST)
TRAINED = {LIGHTGBM: "_Booster", XGBOOST: "_Booster", CATBOOST: "_object"}
"""The attribute that holds the trained model."""
PARTS = {"model", "leaf_values", "scale_and_bias", "best_iteration"}


def kind_of(value: Any) -> str | None:
    """Which booster it is, if any; one that nobody has imported it cannot be."""
    for kind in KINDS:
        package, _, name = kind.partition(".")
        module = sys.modules.get(package)
        if module is not None and type(value) is getattr(module, name, None):
            return kind
    return None


def write(writer: Writer, kind: str, model: Any) -> dict[str, Json]:
    """Its attributes, and the trained model in the library's own format."""
    state = dict(vars(model))
    state.pop("_metadata_request", None)
    trained = state.pop(TRAINED[kind], None)
    try:
        parts = _parts_of(kind, model, trained)
        _check(kind, parts)
    except Exception as error:  # what is not checked on loading is not saved either
        package = kind.partition(".")[0]
        raise ModelFileError(
            f"{writer.where} cannot be saved: model files do not take models by {package} "
            f"of this kind ({_reason(error)}); use its default trees, on numbers"
        ) from error
    if kind == CATBOOST:
        names = ("_init_params", "_prediction_values_change")
        state = {name: state[name] for name in names if name in state}
    if "model" in parts:
        suffix = "txt" if kind == LIGHTGBM else "json"
        parts["model"] = writer.add_blob(parts["model"], suffix)
    return {"state": writer.state(state), "trained": writer.state(parts)}


def _parts_of(kind: str, model: Any, trained: Any) -> dict[str, Any]:
    if kind == CATBOOST:
        if not model.is_fitted():
            return {}
        # Its JSON rounds the leaves, so they are kept beside.
        scale, bias = model.get_scale_and_bias()
        return {
            "model": _catboost_json(model),
            "leaf_values": model.get_leaf_values(),
            "scale_and_bias": (float(scale), _plain_bias(bias)),
        }
    if trained is None:
        return {}
    if kind == XGBOOST:
        return {"model": bytes(trained.save_raw("json"))}
    # All rounds: with early stopping, the best one is remembered beside.
    text = trained.model_to_string(num_iteration=-1)
    return {"model": text.encode(), "best_iteration": int(trained.best_iteration)}


def read(reader: Reader, kind: str, said: dict[str, Json]) -> Any:
    """The model that was written."""
    package, _, name = kind.partition(".")
    try:
        cls = getattr(import_module(package), name)
    except ImportError as error:
        raise ImportError(
            f"the model has a voter by {package}, which is not installed; install it "
            f"with: pip install {package}"
        ) from error
    state, parts = reader.state(said["state"]), reader.state(said["trained"])
    if not parts.keys() <= PARTS:
        raise ModelFileError(f"a voter by {package} is not whole")
    if "model" in parts:
        parts["model"] = reader.take(parts["model"])
    try:
        _check(kind, parts)
        return _rebuild(kind, cls, state, parts)
    except Exception as error:  # each library has errors of its own
        raise ModelFileError(
            f"a voter by {package} is broken ({_reason(error)})"
        ) from error


def _check(kind: str, parts: dict[str, Any]) -> None:
    if "model" not in parts:
        return
    content = parts["model"]
    if kind == LIGHTGBM:
        check_lightgbm(content.decode())
    elif kind == XGBOOST:
        check_xgboost(content)
    else:
        check_catboost(content, parts["leaf_values"], parts["scale_and_bias"])


def _rebuild(kind: str, cls: Any, state: dict[str, Any], parts: dict[str, Any]) -> Any:
    if kind == CATBOOST:
        return _rebuild_catboost(cls, state, parts)
    model = cls()
    vars(model).clear()
    vars(model).update(state)
    if kind == LIGHTGBM:
        model._Booster = None
    if "model" not in parts:
        return model
    if kind == LIGHTGBM:
        from lightgbm import Booster

        booster = Booster(model_str=parts["model"].decode())
        booster.best_iteration = int(parts["best_iteration"])
        model._Booster = booster
    else:
        from xgboost import Booster as XGBooster

        trained = XGBooster(model_file=bytearray(parts["model"]))
        if model.n_jobs is not None:
            trained.set_param({"nthread": int(model.n_jobs)})
        model._Booster = trained
    return model


def _rebuild_catboost(cls: Any, state: dict[str, Any], parts: dict[str, Any]) -> Any:
    model = cls(**state["_init_params"])
    if "model" in parts:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            path.write_bytes(parts["model"])
            model.load_model(str(path), format="json")
        model.set_leaf_values(parts["leaf_values"])
        scale, bias = parts["scale_and_bias"]
        model.set_scale_and_bias(scale, bias if isinstance(bias, float) else list(bias))
        model._init_params = dict(state["_init_params"])
    if "_prediction_values_change" in state:
        model._prediction_values_change = state["_prediction_values_change"]
    return model


def _plain_bias(bias: Any) -> float | tuple[float, ...]:
    """One number, or one for each of three or more classes."""
    return tuple(map(float, bias)) if isinstance(bias, list) else float(bias)


def _catboost_json(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        return path.read_bytes()


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
