"""Which objects a model file can hold as JSON and arrays, and nothing that runs.

An object is stored as its attributes, each a plain value or another such object, and made
again without calling anything of it but, for dataclasses, the constructor. Classes are
taken from the tables here; a name in a file only chooses among them. Other estimators go
by skops, and only where the caller trusts their types by name.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import fields
from importlib import import_module
from typing import Any

import numpy as np

from ..decision import (
    Calibrator,
    Cost,
    FBeta,
    Fixed,
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
from ..weighting import Comparison
from . import boosters, sklearn_trees, trees
from .container import Json, ModelFileError, Reader, Writer

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
"""Stored by their attributes. None of them trusts an index of a file in compiled code."""


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
    Comparison,
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
    Untuned,
)
"""Dataclasses, stored by their fields."""
FUNCTIONS = _by_name(categorical_columns, numeric_columns)
FUNCTIONS |= {
    f"numpy.{one.__name__}": one
    for one in (np.arcsinh, np.exp, np.expm1, np.log, np.log10, np.log1p, np.log2)
}
FUNCTIONS |= {f"numpy.{one.__name__}": one for one in (np.sqrt, np.square, np.tanh)}
"""What is called on a table; a name in a file chooses among these."""
PASSED_OVER = {"_loss_function_", "_metadata_request", "_optimizer", "loss_function_"}
"""Attributes that only a further ``fit`` would want."""
ALLOWED = frozenset(
    {
        *OURS,
        *boosters.KINDS,
        *sklearn_trees.KINDS,
        *(f"{module}.{name}" for name, module in SKLEARN.items()),
    }
)
"""The estimators that a model file holds as arrays and numbers. Others it takes by skops,
and only if whoever saves it, and whoever loads it, trusts them by name."""

Check = Callable[[Any], None]


def _check_dummy(model: Any) -> None:
    """A constant; it makes room for as many classes as it says that it has."""
    state = vars(model)
    if "classes_" in state:
        shape = np.shape(state["classes_"])
        known = len(shape) == 1 and shape == np.shape(state["class_prior_"])
        trees.require(
            known and state["n_classes_"] == shape[0], "another number of classes"
        )
        trees.require(state["n_outputs_"] == 1, "more than one output")


CHECKS: dict[str, Check] = {
    "Binning": trees.check_binning,
    "DummyClassifier": _check_dummy,
    "FastForestClassifier": trees.check_model,
    "FastTreeClassifier": trees.check_model,
    "Features": trees.check_features,
    "Forest": trees.check_forest,
    "Isotonic": trees.check_steps,
    "TreeVoters": trees.check_voters,
}


class Objects:
    """Writes and reads objects that are no plain values; for :mod:`.container`.

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
        if (kind := sklearn_trees.kind_of(value)) is not None:
            return {"is": kind, **sklearn_trees.write_trees(writer, value)}
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
            n_classes = state.get("n_classes_")
            if n_classes is not None:
                known: Any = state.get("classes_")
                trees.require(np.shape(known) == (n_classes,), "another number of classes")
        elif kind in RECORDS:
            value = RECORDS[kind](**reader.state(stored["state"]))
        elif kind in FUNCTIONS:
            return FUNCTIONS[kind]
        elif kind == trees.FAST_TREE:
            value = trees.read_fast_tree(reader, stored)
        elif kind in sklearn_trees.KINDS:
            return sklearn_trees.read_trees(reader, kind, stored)
        elif kind in boosters.KINDS:
            return boosters.read_booster(reader, kind, stored)
        elif kind == "skops":
            return _read_by_skops(reader, stored, self.trusted)
        else:
            raise ModelFileError(f"it holds {kind[:80]!r}, which this damvi does not know")
        if name in CHECKS:
            CHECKS[name](value)
        return value


def _name_in(table: dict[str, Any], value: Any) -> str | None:
    for package in ("damvi", "numpy"):
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


# How many columns come out of each step, and into the next.

BY_COLUMN = ("center_", "max_abs_", "mean_", "min_", "scale_", "statistics_", "var_")
"""Attributes of transformers with one entry for each column that they take."""


def check_width(model: Any, n_in: int | None) -> int | None:
    """Refuse an estimator that expects other columns than it gets; how many it makes.

    None where that is not known, as of classifiers, and of what the table here lacks.
    """
    if isinstance(model, str) or model is None:
        return 0 if model == "drop" else n_in
    name, state = type(model).__name__, getattr(model, "__dict__", {})
    if isinstance(model, Relabelled):
        return check_width(model.estimator, n_in)
    if name == "Pipeline":
        for _, step in model.steps:
            n_in = check_width(step, n_in)
        return n_in
    if isinstance(model, NumberEncoder) and "empty_" in state:
        known = model.categories_
        _same_width(name, n_in, np.size(model.empty_))
        _same_width(name, n_in, None if known is None else len(known.by_column))
        return n_in
    if isinstance(model, RankScaler) and "knots_" in state:
        _same_width(name, n_in, len(model.knots_))
        return n_in
    expected = _columns_in(model)
    _same_width(name, n_in, expected)
    if name == "ColumnTransformer" and "transformers_" in state:
        return _check_columns(model, model.n_features_in_)
    if expected is None or not hasattr(model, "get_feature_names_out"):
        return None
    for one in BY_COLUMN:
        if isinstance(own := state.get(one), np.ndarray):
            _same_width(f"{name}.{one}", n_in, own.shape[0] if own.ndim == 1 else -1)
    if isinstance(state.get("categories_"), list):
        _same_width(f"{name}.categories_", n_in, len(state["categories_"]))
    return len(model.get_feature_names_out())


def _columns_in(model: Any) -> int | None:
    try:
        n = model.n_features_in_
    except Exception:  # not fitted, or none of its business; each library has its own
        return None
    return int(n) if isinstance(n, (int, np.integer)) else None


def _same_width(name: str, given: int | None, expected: int | None) -> None:
    if given is not None and expected is not None and given != expected:
        raise ModelFileError(
            f"a voter's {name} expects {expected} columns, and is given {given}"
        )


def _check_columns(model: Any, n_in: int) -> int | None:
    """A ``ColumnTransformer``: its parts, and where it puts what they make."""
    total: int | None = 0
    for name, part, columns in model.transformers_:
        if isinstance(columns, slice):
            own: int | None = len(range(*columns.indices(n_in)))
        elif isinstance(columns, (list, np.ndarray)):
            is_mask = len(columns) > 0 and isinstance(columns[0], (bool, np.bool_))
            own = int(np.sum(columns)) if is_mask else len(columns)
        else:
            own = None
        made = check_width(part, own)
        place = model.output_indices_.get(name, slice(0, 0))
        if made is not None and own:
            _same_width(f"ColumnTransformer's {name!r}", place.stop - place.start, made)
        total = None if total is None or made is None else total + (made if own else 0)
    return total


# Members by skops.

OLDEST_SKOPS = (0, 13)
"""Older releases run code that a file names (before 0.12), or have other known faults."""


def _write_by_skops(writer: Writer, value: Any, trusted: frozenset[str]) -> dict[str, Json]:
    """The object by skops, if the caller trusts its type and those that it holds."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if kind not in trusted:
        raise ModelFileError(
            f"{writer.where} cannot be saved: it holds {kind}, which a model file does not "
            f"take; use an estimator of damvi.io.ALLOWED (of scikit-learn, LightGBM, "
            f"XGBoost or CatBoost), or, if loading it is safe, save and load with "
            f"trusted={[kind]}"
        )
    skops = _skops(f"{writer.where} ({kind}) is stored by skops")
    try:
        content = skops.dumps(value)
        unknown = set(skops.get_untrusted_types(data=content)) - trusted
    except Exception as error:  # whatever the object's own state raises
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise ModelFileError(
            f"{writer.where} cannot be saved: {kind} has no form without code ({reason})"
        ) from error
    if unknown:
        names = ", ".join(sorted(unknown))
        raise ModelFileError(
            f"{writer.where} cannot be saved: it holds {names}; if loading that is safe, "
            f"save and load with trusted={sorted({kind, *unknown})}"
        )
    return {"at": writer.add_blob(content, "skops"), "type": kind}


def _read_by_skops(reader: Reader, stored: dict[str, Json], trusted: frozenset[str]) -> Any:
    """The object, if the caller trusts its type and those that it holds.

    skops is not even asked about a file before the caller has named a type.
    """
    kind, member = stored["type"], stored["at"]
    if kind not in trusted:
        raise _untrusted({str(kind)[:200]})
    skops = _skops("the model has a voter that is stored by skops")
    content = reader.take(member)
    try:
        _refuse_bombs(content)
        unknown = set(skops.get_untrusted_types(data=content))
    except ModelFileError:
        raise
    except Exception as error:  # a hostile member can fail anywhere
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
        f"it holds {', '.join(sorted(names))}, and loading that could run code; if you "
        f"trust where the file comes from, load it in Python with trusted=[...]"
    )


def _skops(why: str) -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            f"{why}, which is not installed; install it with: pip install skops"
        ) from error
    found = tuple(int(part) for part in re.findall(r"\d+", skops.__version__)[:2])
    if found < OLDEST_SKOPS:
        least = ".".join(map(str, OLDEST_SKOPS))
        raise ImportError(
            f"{why}, and skops {skops.__version__}, which is installed, can run code of a "
            f"file; upgrade it with: pip install 'skops>={least}'"
        )
    return skops.io


def _refuse_bombs(content: bytes) -> None:
    """skops packs without shrinking, so nothing in a member is larger than the member."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        infos = archive.infolist()
    is_plain = all(info.compress_type == zipfile.ZIP_STORED for info in infos)
    if not is_plain or sum(info.file_size for info in infos) > len(content):
        raise ModelFileError("a member by skops would unpack to more than it holds")
