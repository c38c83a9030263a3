"""Which objects a model file can hold as JSON and arrays, and nothing that runs.

An object is stored as its attributes, each a plain value or another such object, and made
again without calling anything of it but, for dataclasses, the constructor. Classes are
taken from the tables here; a name in a file only chooses among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from importlib import import_module
from typing import Any

from . import boosters, sklearn_trees, trees
from .errors import ModelFileError
from .foreign import read_foreign, write_foreign
from .values import Json, Reader, Writer

SKLEARN = {
    "ColumnTransformer": "sklearn.compose",
    "DecisionTreeClassifier": "sklearn.tree",
    "DummyClassifier": "sklearn.dummy",
    "ExtraTreeClassifier": "sklearn.tree",
    "ExtraTreesClassifier": "sklearn.ensemble",
    "GroupKFold": "sklearn.model_selection",
    "HistGradientBoostingClassifier": "sklearn.ensemble",
    "KFold": "sklearn.model_selection",
    "LabelEncoder": "sklearn.preprocessing",
    "LogisticRegression": "sklearn.linear_model",
    "OneHotEncoder": "sklearn.preprocessing",
    "Pipeline": "sklearn.pipeline",
    "RandomForestClassifier": "sklearn.ensemble",
    "SimpleImputer": "sklearn.impute",
    "StandardScaler": "sklearn.preprocessing",
    "StratifiedGroupKFold": "sklearn.model_selection",
    "StratifiedKFold": "sklearn.model_selection",
}
"""What the strong pool is made of, trees, and ways to deal folds."""
OURS = {
    "ClassFoldModels": "damvi.voters.class_asking",
    "FastForestClassifier": "damvi.voters.trees.estimators",
    "FoldModels": "damvi.voters.asking",
    "NumberEncoder": "damvi.voters.encoding",
    "RankScaler": "damvi.voters.encoding",
    "Relabelled": "damvi.voters.relabelling",
}
RECORDS = {
    "BaggedVoters": "damvi.voters.bagging",
    "BetaCurve": "damvi.decision.curves",
    "Binning": "damvi.voters.trees.binning",
    "Calibrator": "damvi.decision.calibration",
    "Categories": "damvi.voters.trees.features",
    "ClassCalibrator": "damvi.decision.class_calibration",
    "ClassCurves": "damvi.voters.class_calibration",
    "ClassTuning": "damvi.decision.class_tuning",
    "Cost": "damvi.decision.objectives",
    "FBeta": "damvi.decision.objectives",
    "Features": "damvi.voters.trees.features",
    "Fixed": "damvi.decision.objectives",
    "Floor": "damvi.decision.objectives",
    "Forest": "damvi.voters.trees.forest",
    "Isotonic": "damvi.voters.calibration",
    "Knots": "damvi.decision.curves",
    "Line": "damvi.decision.curves",
    "Platt": "damvi.voters.platt",
    "PoolVoters": "damvi.voters.pool",
    "TreeVoters": "damvi.voters.trees.voters",
    "Tuning": "damvi.decision.tuning",
}
FUNCTIONS = {
    "categorical_columns": "damvi.voters.encoding",
    "numeric_columns": "damvi.voters.encoding",
}
BY_ATTRIBUTES = {**SKLEARN, **OURS}
PASSED_OVER = {"_metadata_request"}
"""Attributes that only a further ``fit`` would want."""

Check = Callable[[Any], None]
CHECKS: dict[str, Check] = {
    "Binning": trees.check_binning,
    "DecisionTreeClassifier": sklearn_trees.check_tree_model,
    "ExtraTreeClassifier": sklearn_trees.check_tree_model,
    "ExtraTreesClassifier": sklearn_trees.check_forest_model,
    "FastForestClassifier": trees.check_model,
    "FastTreeClassifier": trees.check_model,
    "Features": trees.check_features,
    "Forest": trees.check_forest,
    "HistGradientBoostingClassifier": sklearn_trees.check_boosting_model,
    "Isotonic": trees.check_steps,
    "RandomForestClassifier": sklearn_trees.check_forest_model,
    "TreeVoters": trees.check_voters,
}


class Objects:
    """Writes and reads objects that are no plain values; for :mod:`.values`.

    Parameters
    ----------
    trusted : iterable of str
        Types that the caller vouches for, by full name, in members stored by skops.
    """

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self.trusted = frozenset(trusted)

    def write(self, writer: Writer, value: Any) -> dict[str, Json]:
        """The JSON of an object."""
        name = getattr(type(value), "__name__", "")
        if _is_one_of(BY_ATTRIBUTES, type(value), name):
            return {"is": _path(BY_ATTRIBUTES, name), "state": _attributes(writer, value)}
        if _is_one_of(RECORDS, type(value), name):
            return {"is": _path(RECORDS, name), "state": _record(writer, value)}
        if trees.is_fast_tree(value):
            return {"is": trees.FAST_TREE, **trees.write_fast_tree(writer, value)}
        if (kind := sklearn_trees.kind_of(value)) is not None:
            return {"is": kind, "state": sklearn_trees.write(writer, kind, value)}
        if (kind := boosters.kind_of(value)) is not None:
            return {"is": kind, **boosters.write(writer, kind, value)}
        function = getattr(value, "__name__", "")
        if callable(value) and _is_one_of(FUNCTIONS, value, function):
            return {"is": _path(FUNCTIONS, function)}
        return {"is": "skops", **write_foreign(writer, value, self.trusted)}

    def read(self, reader: Reader, kind: str, said: dict[str, Json]) -> Any:
        """The object that :meth:`write` described, checked."""
        module, _, name = kind.rpartition(".")
        if BY_ATTRIBUTES.get(name) == module:
            cls = _load(module, name)
            value = cls.__new__(cls)
            vars(value).update(reader.state(said["state"]))
        elif RECORDS.get(name) == module:
            value = _load(module, name)(**reader.state(said["state"]))
        elif FUNCTIONS.get(name) == module:
            return _load(module, name)
        elif kind == trees.FAST_TREE:
            value = trees.read_fast_tree(reader, said)
        elif kind in sklearn_trees.KINDS:
            return sklearn_trees.read(reader, kind, said["state"])
        elif kind in boosters.KINDS:
            return boosters.read(reader, kind, said)
        elif kind == "skops":
            return read_foreign(reader, said, self.trusted)
        else:
            raise ModelFileError(f"it holds {kind[:80]!r}, which this damvi does not know")
        if name in CHECKS:
            CHECKS[name](value)
        return value


def _path(table: dict[str, str], name: str) -> str:
    return f"{table[name]}.{name}"


def _load(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def _is_one_of(table: dict[str, str], value: Any, name: str) -> bool:
    return name in table and _load(table[name], name) is value


def _attributes(writer: Writer, value: Any) -> dict[str, Json]:
    kept = {k: v for k, v in vars(value).items() if k not in PASSED_OVER}
    return writer.state(kept)


def _record(writer: Writer, value: Any) -> dict[str, Json]:
    values = {field.name: getattr(value, field.name) for field in fields(value)}
    names = values.get("names")
    if names is None or "estimators" not in values:
        return writer.state(values)
    written = {}
    for name, part in values.items():
        if name != "estimators":
            written[name] = writer.write(part)
            continue
        written[name] = []
        for voter, estimator in zip(names, part, strict=True):
            with writer.within(f"voter {voter!r}"):
                written[name].append(writer.write(estimator))
    return written
