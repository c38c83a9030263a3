"""Which objects a model file can hold as JSON and arrays, and nothing that runs.

An object is stored as its attributes, each a plain value or another such object, and made
again without calling anything of it but, for dataclasses, the constructor. Classes are
taken from the tables here; a name in a file only chooses among them. Other people's
estimators go by skops, from a list of types alone.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import fields
from importlib import import_module
from typing import Any

from ..decision import (
    Calibrator,
    Cost,
    FBeta,
    Fixed,
    Floor,
    MacroF1,
    Tuning,
)
from ..decision.calibration import (
    BetaCurve,
    ClassCurves,
    Isotonic,
    Knots,
    Line,
    Platt,
    ProbabilityCurve,
)
from ..voters import (
    BaggedVoters,
    FastForestClassifier,
    FastTreeClassifier,
    PoolVoters,
)
from ..voters.estimators import Relabelled
from ..voters.portfolio import (
    NumberEncoder,
    RankScaler,
    categorical_columns,
    numeric_columns,
)
from ..voters.trees.binning import Binning, Features
from ..voters.trees.features import Categories
from ..voters.trees.forest import Forest
from ..voters.trees.voters import TreeVoters
from . import boosters, trees
from .container import ModelFileError
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


def _by_name(*values: Any) -> dict[str, Any]:
    """Ours, by a name that does not change when they move."""
    return {f"damvi.{value.__name__}": value for value in values}


OURS = _by_name(FastForestClassifier, NumberEncoder, RankScaler, Relabelled)
"""Stored by their attributes."""
RECORDS = _by_name(
    BaggedVoters,
    BetaCurve,
    Binning,
    Calibrator,
    Categories,
    ClassCurves,
    Cost,
    FBeta,
    Features,
    Fixed,
    Floor,
    Forest,
    Isotonic,
    Knots,
    Line,
    MacroF1,
    Platt,
    PoolVoters,
    ProbabilityCurve,
    TreeVoters,
    Tuning,
)
"""Dataclasses, stored by their fields."""
FUNCTIONS = _by_name(categorical_columns, numeric_columns)
PASSED_OVER = {"_metadata_request"}
"""Attributes that only a further ``fit`` would want."""
ALLOWED = frozenset(
    {
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.gaussian_process.kernels.ConstantKernel",
        "sklearn.gaussian_process.kernels.Product",
        "sklearn.gaussian_process.kernels.RBF",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        *(
            f"{ours.__module__}.{ours.__name__}"
            for ours in (Categories, *OURS.values(), *FUNCTIONS.values())
            if ours is not FastForestClassifier
        ),
    }
)
"""Types that may be in a member, on top of those that skops itself knows to be harmless:
scikit-learn's estimators, numpy's and scipy's arrays and functions, plain values."""

Check = Callable[[Any], None]
CHECKS: dict[str, Check] = {
    "Binning": trees.check_binning,
    "DecisionTreeClassifier": trees.check_tree_model,
    "ExtraTreeClassifier": trees.check_tree_model,
    "ExtraTreesClassifier": trees.check_forest_model,
    "FastForestClassifier": trees.check_model,
    "FastTreeClassifier": trees.check_model,
    "Features": trees.check_features,
    "Forest": trees.check_forest,
    "HistGradientBoostingClassifier": trees.check_boosting_model,
    "Isotonic": trees.check_steps,
    "RandomForestClassifier": trees.check_forest_model,
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
        cls = type(value)
        if (name := _name_in(OURS, cls)) or (name := _name_in_sklearn(cls)):
            kept = {k: v for k, v in vars(value).items() if k not in PASSED_OVER}
            return {"is": name, "state": writer.state(kept)}
        if name := _name_in(RECORDS, cls):
            return {"is": name, "state": _record(writer, value)}
        if cls is FastTreeClassifier:
            return {"is": trees.FAST_TREE, **trees.write_fast_tree(writer, value)}
        if (kind := trees.sklearn_part_of(value)) is not None:
            return {"is": kind, "state": trees.write_sklearn_part(writer, kind, value)}
        if (kind := boosters.booster_of(value)) is not None:
            return {"is": kind, **boosters.write_booster(writer, kind, value)}
        if name := _name_in(FUNCTIONS, value):
            return {"is": name}
        return {"is": "skops", **_write_by_skops(writer, value, self.trusted)}

    def read(self, reader: Reader, kind: str, stored: dict[str, Json]) -> Any:
        """The object that :meth:`write` described, checked."""
        module, _, name = kind.rpartition(".")
        if kind in OURS or SKLEARN.get(name) == module:
            cls = OURS.get(kind) or getattr(import_module(module), name)
            value = cls.__new__(cls)
            state = reader.state(stored["state"])
            boosters.check_threads(state)
            vars(value).update(state)
        elif kind in RECORDS:
            value = RECORDS[kind](**reader.state(stored["state"]))
        elif kind in FUNCTIONS:
            return FUNCTIONS[kind]
        elif kind == trees.FAST_TREE:
            value = trees.read_fast_tree(reader, stored)
        elif kind == trees.TREE or kind in trees.SKLEARN_PARTS:
            return trees.read_sklearn_part(reader, kind, stored["state"])
        elif kind in boosters.KINDS:
            return boosters.read_booster(reader, kind, stored)
        elif kind == "skops":
            return _read_by_skops(reader, stored["at"], self.trusted)
        else:
            raise ModelFileError(f"it holds {kind[:80]!r}, which this damvi does not know")
        if name in CHECKS:
            CHECKS[name](value)
        return value


def _name_in(table: dict[str, Any], value: Any) -> str | None:
    name = f"damvi.{getattr(value, '__name__', '')}"
    return name if table.get(name) is value else None


def _name_in_sklearn(cls: type) -> str | None:
    module = SKLEARN.get(cls.__name__)
    if module is None or getattr(import_module(module), cls.__name__) is not cls:
        return None
    return f"{module}.{cls.__name__}"


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


# Members by skops.


def _write_by_skops(writer: Writer, value: Any, trusted: frozenset[str]) -> dict[str, Json]:
    """The object by skops, if all types in it are on the list or trusted."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    skops = _skops(f"{writer.where} ({kind}) is stored by skops")
    try:
        content = skops.dumps(value)
        unknown = set(skops.get_untrusted_types(data=content)) - ALLOWED - trusted
    except Exception as error:  # whatever the object's own state raises
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise ModelFileError(
            f"{writer.where} cannot be saved: {kind} has no form without code ({reason})"
        ) from error
    if unknown:
        names = ", ".join(sorted(unknown))
        raise ModelFileError(
            f"{writer.where} cannot be saved: it holds {names}, which a model file does "
            f"not take; use a classifier of scikit-learn, LightGBM, XGBoost or CatBoost, "
            f"or, if loading it is safe, save and load with trusted={sorted(unknown)}"
        )
    return {"at": writer.add_blob(content, "skops"), "type": kind}


def _read_by_skops(reader: Reader, member: str, trusted: frozenset[str]) -> Any:
    """The object, if all types in it are on the list or trusted."""
    skops = _skops("the model has a voter that is stored by skops")
    content = reader.take(member)
    try:
        _refuse_bombs(content)
        unknown = set(skops.get_untrusted_types(data=content))
    except ModelFileError:
        raise
    except Exception as error:  # a hostile member can fail anywhere
        raise ModelFileError(f"skops cannot read {member}") from error
    if unknown - ALLOWED - trusted:
        names = ", ".join(sorted(unknown - ALLOWED - trusted))
        raise ModelFileError(
            f"it holds {names}, and loading that could run code; if you trust where the "
            f"file comes from, load it in Python with trusted=[...]"
        )
    try:
        value = skops.loads(content, trusted=sorted(unknown))
    except Exception as error:
        raise ModelFileError(f"skops cannot read {member}") from error
    trees.check_everywhere(value)
    return value


def _skops(why: str) -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            f"{why}, which is not installed; install it with: pip install skops"
        ) from error
    return skops.io


def _refuse_bombs(content: bytes) -> None:
    """skops packs without shrinking, so nothing in a member is larger than the member."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        infos = archive.infolist()
    is_plain = all(info.compress_type == zipfile.ZIP_STORED for info in infos)
    if not is_plain or sum(info.file_size for info in infos) > len(content):
        raise ModelFileError("a member by skops would unpack to more than it holds")
