"""The objects that a model file can hold as JSON and arrays, without code.

An object is stored as its attributes, each a plain value or another such object. It is
restored without calling any of its code, except the constructor of dataclasses. Classes
come from the tables here; a name in a file only selects among them. Other estimators are
stored with skops, and only if the caller trusts their types by name.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable
from dataclasses import fields
from importlib import import_module
from typing import Any

import numpy as np

from ..decision import (
    Calibrator,
    Cost,
    Factors,
    FBeta,
    Fixed,
    Flags,
    Floor,
    MacroF1,
    Tuning,
    Untuned,
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
from ..tables.encoding import Levels, Words
from ..voters import (
    BaggedVoters,
    CategoryBoostingClassifier,
    FastForestClassifier,
    FastTreeClassifier,
    NetworksClassifier,
    PoolVoters,
)
from ..voters.columns import (
    NumberEncoder,
    PairColumns,
    RankScaler,
    RankSplines,
    RateEncoder,
    Rates,
    categorical_columns,
    numeric_columns,
)
from ..voters.estimators import Relabelled, SomeRows
from ..voters.trees.binning import Binning, Categories, Features, HashedCategories
from ..voters.trees.estimators import TreeVoters
from ..voters.trees.forest import Forest
from ..weighting import PlainVoteComparison
from . import boosters, checks, sklearn_trees
from .container import Json, ModelFileError, Reader, Writer

FAST_TREE = "damvi.FastTreeClassifier"
SKLEARN = {
    name: module
    for module, names in {
        "sklearn.compose": ("ColumnTransformer",),
        "sklearn.decomposition": ("PCA", "TruncatedSVD"),
        "sklearn.discriminant_analysis": (
            "LinearDiscriminantAnalysis",
            "QuadraticDiscriminantAnalysis",
        ),
        "sklearn.dummy": ("DummyClassifier",),
        "sklearn.ensemble": ("AdaBoostClassifier", "BaggingClassifier"),
        "sklearn.impute": ("MissingIndicator", "SimpleImputer"),
        "sklearn.linear_model": (
            "LogisticRegression",
            "LogisticRegressionCV",
            "Perceptron",
            "RidgeClassifier",
            "SGDClassifier",
        ),
        "sklearn.model_selection": (
            "GroupKFold",
            "KFold",
            "StratifiedGroupKFold",
            "StratifiedKFold",
            "TimeSeriesSplit",
        ),
        "sklearn.naive_bayes": (
            "BernoulliNB",
            "CategoricalNB",
            "ComplementNB",
            "GaussianNB",
            "MultinomialNB",
        ),
        "sklearn.neural_network": ("MLPClassifier",),
        "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
        "sklearn.preprocessing": (
            "FunctionTransformer",
            "LabelBinarizer",
            "LabelEncoder",
            "MaxAbsScaler",
            "MinMaxScaler",
            "Normalizer",
            "OneHotEncoder",
            "OrdinalEncoder",
            "PowerTransformer",
            "QuantileTransformer",
            "RobustScaler",
            "StandardScaler",
        ),
        "sklearn.svm": ("LinearSVC",),
    }.items()
    for name in names
}
"""Stored as their attributes. Their compiled code trusts no index from a file."""


def _by_name(*values: Any) -> dict[str, Any]:
    """Our own classes, under names that do not change if they move."""
    return {f"damvi.{value.__name__}": value for value in values}


OURS = _by_name(
    CategoryBoostingClassifier,
    FastForestClassifier,
    NetworksClassifier,
    NumberEncoder,
    PairColumns,
    RankScaler,
    RankSplines,
    RateEncoder,
    Relabelled,
    SomeRows,
)
"""Stored as their attributes."""
RECORDS = _by_name(
    BaggedVoters,
    BetaCurve,
    Binning,
    Calibrator,
    Categories,
    ClassCurves,
    PlainVoteComparison,
    Cost,
    FBeta,
    Factors,
    Features,
    Fixed,
    Flags,
    Floor,
    Forest,
    Isotonic,
    Knots,
    HashedCategories,
    Levels,
    Line,
    MacroF1,
    Platt,
    PoolVoters,
    ProbabilityCurve,
    Rates,
    TreeVoters,
    Tuning,
    Untuned,
    Words,
)
"""Dataclasses, stored as their fields."""
FUNCTIONS = _by_name(categorical_columns, numeric_columns)
FUNCTIONS |= {
    f"numpy.{one.__name__}": one
    for one in (np.arcsinh, np.exp, np.expm1, np.log, np.log10, np.log1p, np.log2)
}
FUNCTIONS |= {f"numpy.{one.__name__}": one for one in (np.sqrt, np.square, np.tanh)}
"""Functions applied to tables; a name in a file selects among these."""
PASSED_OVER = {"_loss_function_", "_metadata_request", "_optimizer", "loss_function_"}
"""Attributes needed only for further training."""
ALLOWED = frozenset(
    {
        *OURS,
        *boosters.KINDS,
        *sklearn_trees.KINDS,
        *(f"{module}.{name}" for name, module in SKLEARN.items()),
    }
)
"""The estimators that a model file stores as arrays and numbers. Others are stored with
skops, and only if both the saver and the loader trust them by name."""


class Objects:
    """Write and read objects that are not plain values; used by :mod:`.container`.

    Parameters
    ----------
    trusted : iterable of str
        Full names of types that the caller trusts in members stored with skops.
    """

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self.trusted = frozenset(trusted)

    def write(self, writer: Writer, value: Any) -> dict[str, Json]:
        """Return the JSON of an object."""
        cls = type(value)
        if (name := _name_in(OURS, cls)) or (name := _name_in_sklearn(cls)):
            checks.check_params(value)
            kept = {k: v for k, v in vars(value).items() if k not in PASSED_OVER}
            return {"is": name, "state": writer.state(kept)}
        if name := _name_in(RECORDS, cls):
            return {"is": name, "state": _record(writer, value)}
        if cls is FastTreeClassifier:
            return {"is": FAST_TREE, **_write_fast_tree(writer, value)}
        if kind := _name_in(sklearn_trees.KINDS, cls):
            return {"is": kind, **sklearn_trees.write_trees(writer, value)}
        if (kind := boosters.booster_of(value)) is not None:
            return {"is": kind, **boosters.write_booster(writer, kind, value)}
        if name := _name_in(FUNCTIONS, value):
            return {"is": name}
        return {"is": "skops", **_write_by_skops(writer, value, self.trusted)}

    def read(self, reader: Reader, kind: str, stored: dict[str, Json]) -> Any:
        """Restore an object from :meth:`write`, and validate it."""
        module, _, name = kind.rpartition(".")
        if kind in OURS or SKLEARN.get(name) == module:
            cls = OURS.get(kind) or getattr(import_module(module), name)
            value = cls.__new__(cls)
            state = reader.state(stored["state"])
            boosters.check_threads(state)
            if state.get("copy") is False:
                state["copy"] = True  # or predictions would modify the caller's X
            vars(value).update(state)
            checks.check_params(value)
            checks.check_classes(state)
        elif kind in RECORDS:
            value = RECORDS[kind](**reader.state(stored["state"]))
        elif kind in FUNCTIONS:
            return FUNCTIONS[kind]
        elif kind == FAST_TREE:
            value = _read_fast_tree(reader, stored)
            checks.check_params(value)
        elif kind in sklearn_trees.KINDS:
            value = sklearn_trees.read_trees(reader, kind, stored)
            checks.check_params(value)
        elif kind in boosters.KINDS:
            return boosters.read_booster(reader, kind, stored)
        elif kind == "skops":
            return _read_by_skops(reader, stored, self.trusted)
        else:
            raise ModelFileError(f"it holds an unknown type {kind[:80]!r}")
        if name in checks.CHECKS:
            checks.CHECKS[name](value)
        return value


def _write_fast_tree(writer: Writer, tree: FastTreeClassifier) -> dict[str, Json]:
    """Store its attributes, without the circular reference from its trees."""
    state = dict(vars(tree))
    state.pop("_metadata_request", None)
    trees = state.pop("trees_", None)
    grown = {} if trees is None else {"features": trees.features, "forest": trees.forest}
    return {"state": writer.state(state), "grown": writer.state(grown)}


def _read_fast_tree(reader: Reader, stored: dict[str, Json]) -> FastTreeClassifier:
    """Restore a stored tree."""
    tree = FastTreeClassifier()
    tree.__dict__.update(reader.state(stored["state"]))
    grown = reader.state(stored["grown"])
    if grown:
        tree.trees_ = TreeVoters(tree, grown["features"], grown["forest"])
        checks.check_voters(tree.trees_)
    return tree


def _name_in(table: dict[str, Any], value: Any) -> str | None:
    for package in ("damvi", "numpy", "sklearn"):
        name = f"{package}.{getattr(value, '__name__', '')}"
        if table.get(name) is value:
            return name
    return None


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


# Members stored with skops.

OLDEST_SKOPS = (0, 13)
"""Older releases run code named in a file (before 0.12), or have other known flaws."""


def _write_by_skops(writer: Writer, value: Any, trusted: frozenset[str]) -> dict[str, Json]:
    """Store an object with skops, if the caller trusts its type and those it contains."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if kind not in trusted:
        raise ModelFileError(
            f"{writer.where} cannot be saved: {kind} is not supported in model files; use "
            f"an estimator in damvi.io.ALLOWED (of scikit-learn, LightGBM, "
            f"XGBoost or CatBoost), or, if loading it is safe, save and load with "
            f"trusted={[kind]}"
        )
    skops = _skops(f"{writer.where} ({kind}) is stored with skops")
    try:
        content = skops.dumps(value)
        unknown = set(skops.get_untrusted_types(data=content)) - trusted
    except Exception as error:  # the object's state may raise anything
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise ModelFileError(
            f"{writer.where} cannot be saved: {kind} needs code ({reason})"
        ) from error
    if unknown:
        names = ", ".join(sorted(unknown))
        raise ModelFileError(
            f"{writer.where} cannot be saved: it contains {names}; if these are safe, "
            f"save and load with trusted={sorted({kind, *unknown})}"
        )
    return {"at": writer.add_blob(content, "skops"), "type": kind}


def _read_by_skops(reader: Reader, stored: dict[str, Json], trusted: frozenset[str]) -> Any:
    """Load an object with skops, if the caller trusts its type and those it contains.

    skops is not called unless the caller has named a type.
    """
    kind, member = stored["type"], stored["at"]
    if kind not in trusted:
        raise _untrusted({str(kind)[:200]})
    skops = _skops("the model has a voter stored with skops")
    content = reader.take(member)
    try:
        _refuse_bombs(content)
        unknown = set(skops.get_untrusted_types(data=content))
    except ModelFileError:
        raise
    except Exception as error:  # a malicious member can fail anywhere
        raise ModelFileError(f"skops cannot read {member}") from error
    if unknown - trusted:
        raise _untrusted(unknown - trusted)
    try:
        value = skops.loads(content, trusted=sorted(unknown))
    except Exception as error:
        raise ModelFileError(f"skops cannot read {member}") from error
    own = f"{type(value).__module__}.{type(value).__qualname__}"
    if own not in trusted:
        raise _untrusted({own})
    return value


def _untrusted(names: set[str]) -> ModelFileError:
    return ModelFileError(
        f"it holds {', '.join(sorted(names))}, and loading these could run code; if you "
        f"trust the source of the file, load it in Python with trusted=[...]"
    )


def _skops(why: str) -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            f"{why}, which is not installed; run: pip install skops"
        ) from error
    found = tuple(int(part) for part in re.findall(r"\d+", skops.__version__)[:2])
    if found < OLDEST_SKOPS:
        least = ".".join(map(str, OLDEST_SKOPS))
        raise ImportError(
            f"{why}, but the installed skops {skops.__version__} can run code from a file; "
            f"upgrade with: pip install 'skops>={least}'"
        )
    return skops.io


def _refuse_bombs(content: bytes) -> None:
    """Reject compressed members; skops does not compress, so nothing may expand."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        infos = archive.infolist()
    is_plain = all(info.compress_type == zipfile.ZIP_STORED for info in infos)
    if not is_plain or sum(info.file_size for info in infos) > len(content):
        raise ModelFileError("a skops member would expand beyond its size")
