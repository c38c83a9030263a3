"""What a model file contains: values as JSON and arrays, and objects; no code.

A file consists of a line with the format, a digest, and a zip archive. The digest covers
everything after it. It detects damage, not forgery, since anyone can compute it. So the
content is not trusted either, here or later; arrays are parsed here without the trust that
numpy has in ``.npy`` files.

JSON values stand for themselves. Everything else is an object with a key ``"is"`` that
names its kind, as in ``{"is": "tuple", "items": [...]}`` or ``{"is": "array", "at": ...}``.

Models, calibrators and the like are stored as their attributes, each a plain value or
another such object. They are restored without calling any of their code, except the
constructor of dataclasses. Classes come from the tables here; a name in a file only selects
among them. Other estimators are stored with skops, and only if the caller trusts their
types by name.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import zipfile
import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..decision import Calibrator, Tuning
from ..decision.calibration import (
    BetaCurve,
    ClassCurves,
    Isotonic,
    Knots,
    Line,
    Platt,
    ProbabilityCurve,
)
from ..decision.objectives import OBJECTIVES
from ..tables.encoding import Levels, Words
from ..validation import Categories, HashedCategories
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
from ..voters.trees.binning import Binning, Features
from ..voters.trees.estimators import TreeVoters
from ..voters.trees.forest import Forest
from ..weighting import PlainVoteComparison
from . import boosters, checks, sklearn_trees
from .checks import ModelFileError

FORMAT = 1
MOST_SHRUNK = 50
"""Maximum compression ratio; more compressible data is stored uncompressed."""
WORTH_SHRINKING = 512
LEVEL = 4
ZLIB_FRAME = 6
"""Bytes of a zlib header and checksum, which a zip archive omits."""
MANIFEST = "model.json"
MEMBER = re.compile(r"model\.json|arrays/[0-9]{1,7}\.npy|members/[0-9]{1,7}\.skops")
"""Allowed names of archive members."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""A fixed date for all members, so that equal models give equal bytes."""
FIRST_LINE = re.compile(rb"damvi model ([0-9]{1,6})\n")
SECOND_LINE = re.compile(rb"sha256 ([0-9a-f]{64})\n")
LONGEST_LINE = 100

ARRAY_KINDS = "biufUS"
"""Numbers, booleans and strings; no objects, which would be pickles."""
ARRAY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(..)"
    rb"\{'descr': '([<|][biufUS][0-9]{1,9})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:[0-9]{1,18}, ?){0,32}[0-9]{0,18})\), \} *\n",
    re.DOTALL,
)
"""Exactly what numpy writes; numpy itself accepts any Python literal."""


def pack(members: dict[str, bytes]) -> bytes:
    """Return a model file with these members."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in members.items():
            assert MEMBER.fullmatch(name), name
            info = zipfile.ZipInfo(name, EPOCH)
            info.create_system, info.external_attr = 3, 0o644 << 16
            if len(content) >= WORTH_SHRINKING:
                shrunk = len(zlib.compress(content, LEVEL)) - ZLIB_FRAME
                if MOST_SHRUNK * shrunk >= len(content) > shrunk:
                    info.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(info, content, compresslevel=LEVEL)
    payload = archive.getvalue()
    digest = hashlib.sha256(payload).hexdigest()
    return f"damvi model {FORMAT}\nsha256 {digest}\n".encode() + payload


def unpack(path: Path) -> dict[str, bytes]:
    """Return the members of a model file, if it is intact."""
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe would never end
        raise ModelFileError("it is not a regular file")
    with open(path, "rb") as file:
        payload = _read_payload(file)
    try:
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            return _read_members(archive, len(payload))
    except ModelFileError:
        raise
    except Exception as error:  # zipfile raises many kinds of errors
        raise ModelFileError(f"cannot read its archive ({error})") from error


def _read_payload(file: BinaryIO) -> bytes:
    """Check format and digest, and return everything after them."""
    line = file.readline(LONGEST_LINE)
    if not line:
        raise ModelFileError("it is empty; copy it again, or fit the model again")
    first = FIRST_LINE.fullmatch(line)
    if first is None:
        raise ModelFileError("it is not a damvi model file")
    version = int(first[1])
    if version > FORMAT:
        raise ModelFileError(
            f"it was created by a newer damvi (file format {version}; this version reads "
            f"format {FORMAT}); upgrade with: pip install --upgrade damvi"
        )
    if version < FORMAT:
        raise ModelFileError(
            f"it has format {version}, which is no longer supported; fit the model again"
        )
    second = SECOND_LINE.fullmatch(file.readline(LONGEST_LINE))
    if second is None:
        raise ModelFileError("it is damaged: no digest in line 2")
    payload = file.read()
    if hashlib.sha256(payload).hexdigest() != second[1].decode():
        raise ModelFileError(
            "its checksum does not match: it is truncated or damaged; copy it again, or "
            "fit the model again"
        )
    return payload


def _read_members(archive: zipfile.ZipFile, held: int) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    infos = archive.infolist()
    for info in infos:
        if not MEMBER.fullmatch(info.filename):
            raise ModelFileError(f"its {info.filename[:80]!r} is not part of a model file")
        if info.filename in members:
            raise ModelFileError(f"it holds {info.filename} twice")
        members[info.filename] = b""
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ModelFileError(f"{info.filename} uses an unexpected compression")
        if info.file_size > MOST_SHRUNK * max(info.compress_size, 1):
            raise ModelFileError(
                f"{info.filename} would unpack to {info.file_size:,} bytes from "
                f"{info.compress_size:,}"
            )
    if sum(info.compress_size for info in infos) > held:
        raise ModelFileError("its members overlap")
    for info in infos:
        members[info.filename] = archive.read(info)  # checks the CRC, and stops at the size
    return members


def array_to_bytes(array: NDArray[Any]) -> bytes:
    """Return an array as the content of an ``.npy`` file."""
    if array.dtype.kind not in ARRAY_KINDS:
        raise ModelFileError(f"model files cannot hold arrays of {array.dtype}")
    out = io.BytesIO()
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    npy.write_array(out, little, version=(1, 0), allow_pickle=False)
    return out.getvalue()


def array_from_bytes(content: bytes, name: str) -> NDArray[Any]:
    """Parse the content of an ``.npy`` file."""
    header = ARRAY_HEADER.match(content)
    if header is None or header.end() != 10 + int.from_bytes(header[1], "little"):
        raise ModelFileError(f"{name} is not an array of numbers or strings")
    dtype = np.dtype(header[2].decode())
    shape = tuple(int(size) for size in header[4].decode().split(",") if size.strip())
    body = content[header.end() :]
    if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != len(body):
        raise ModelFileError(f"{name} has shape {shape}, but {len(body)} bytes")
    flat = np.frombuffer(body, dtype=dtype).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if header[3] == b"True" else "C")


# Values.

Json = Any
FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
MANY_AGAIN = 10_000
"""Maximum number of values expanded through references, for files of any size."""
MOST_ALIKE = 64
"""Maximum number of keys with the same hash; floats reach 35 at most."""
GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


class Writer:
    """Convert values to JSON, with arrays and blobs as separate members.

    Parameters
    ----------
    trusted : iterable of str
        Full names of types that the caller trusts to be stored with skops.
    """

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self.trusted = frozenset(trusted)
        self._known: dict[int, tuple[int, Any]] = {}
        self._where: list[str] = []
        self.members: dict[str, bytes] = {}

    def write(self, value: Any) -> Json:
        match value:
            case None | bool() | str() if type(value) in (type(None), bool, str):
                return value
            case int() if type(value) is int:
                return value
            case float() if type(value) is float:
                name = str(value)
                return {"is": "float", "value": name} if name in FLOATS else value
            case list() if type(value) is list:
                return [self.write(item) for item in value]
            case tuple() if type(value) is tuple:
                return {"is": "tuple", "items": [self.write(item) for item in value]}
            case dict() if type(value) in (dict, defaultdict, OrderedDict):
                pairs = [[self.write(k), self.write(v)] for k, v in value.items()]
                return {"is": "dict", "items": pairs}
            case slice():
                ends = [value.start, value.stop, value.step]
                return {"is": "slice", "of": [self.write(end) for end in ends]}
            case np.ndarray() if type(value) is np.ndarray and value.dtype.names is None:
                return self._write_array(value)
            case np.generic() if value.dtype.kind in "biufU":
                item = self.write(value.item())
                return {"is": "scalar", "dtype": _name(value.dtype), "value": item}
            case np.dtype() if value.kind in "biufUSO":
                return {"is": "dtype", "name": _name(value)}
            case type() if issubclass(value, np.generic):
                return {"is": "type", "name": np.dtype(value).name}
            case np.random.RandomState():
                known = value.get_state(legacy=False)
                return {"is": "RandomState", "state": self.write(known)}
            case np.random.Generator():
                bits = dict(value.bit_generator.state)
                return {"is": "Generator", "state": self.write(bits)}
        if id(value) in self._known:
            return {"is": "same", "as": self._known[id(value)][0]}
        written = _write_object(self, value)
        number = len(self._known)
        self._known[id(value)] = number, value  # kept alive, so that its id stays unique
        return {**written, "number": number}

    def state(self, values: dict[str, Any]) -> dict[str, Json]:
        """Convert a dict of values."""
        return {name: self.write(value) for name, value in values.items()}

    def add_blob(self, content: bytes, suffix: str) -> str:
        """Store bytes as a member, and return its name."""
        name = f"members/{len(self.members)}.{suffix}"
        self.members[name] = content
        return name

    @contextmanager
    def within(self, where: str) -> Iterator[None]:
        """Name the current part in error messages."""
        self._where.append(where)
        try:
            yield
        finally:
            self._where.pop()

    @property
    def where(self) -> str:
        """The part being written, for error messages."""
        return self._where[-1] if self._where else "the model"

    def _write_array(self, array: NDArray[Any]) -> Json:
        if array.dtype.kind == "O":
            items = [self.write(item) for item in array.ravel().tolist()]
            return {"is": "objects", "shape": list(array.shape), "items": items}
        name = f"arrays/{len(self.members)}.npy"
        self.members[name] = array_to_bytes(array)
        return {"is": "array", "at": name}


class Reader:
    """Convert the output of a :class:`Writer` back to values.

    Parameters
    ----------
    members : dict of bytes
        Each is used once, so that a file cannot expand on reading.
    trusted : iterable of str
        As for the writer.
    """

    def __init__(self, members: dict[str, bytes], trusted: Iterable[str] = ()) -> None:
        self._members = dict(members)
        self.trusted = frozenset(trusted)
        self._known: dict[int, tuple[Any, int]] = {}
        self._n_read = self._n_again = 0

    def read(self, stored: Json) -> Any:
        self._n_read += 1
        match stored:
            case None | bool() | int() | float() | str():
                return stored
            case list():
                return [self.read(item) for item in stored]
            case {"is": "float", "value": str(name)}:
                return FLOATS[name]
            case {"is": "tuple", "items": list(items)}:
                return tuple(self.read(item) for item in items)
            case {"is": "dict", "items": list(items)}:
                keys = _spread([self.read(key) for key, _ in items])
                values = [self.read(value) for _, value in items]
                return dict(zip(keys, values, strict=True))
            case {"is": "slice", "of": [start, stop, step]}:
                return slice(self.read(start), self.read(stop), self.read(step))
            case {"is": "array", "at": str(name)}:
                return array_from_bytes(self.take(name), name)
            case {"is": "objects", "shape": list(shape), "items": list(items)}:
                array = np.empty(len(items), dtype=object)
                array[:] = _spread([self.read(item) for item in items])
                return array.reshape(shape)
            case {"is": "scalar", "dtype": str(name), "value": value}:
                return _dtype(name).type(self.read(value))
            case {"is": "dtype", "name": str(name)}:
                return _dtype(name)
            case {"is": "type", "name": str(name)}:
                return _dtype(name).type
            case {"is": "RandomState", "state": state}:
                random = np.random.RandomState()
                random.set_state(_within(self.read(state)))
                return random
            case {"is": "Generator", "state": state}:
                return _generator(self.read(state))
            case {"is": "same", "as": int(number)}:
                value, size = self._known[number]
                # References to references could expand exponentially.
                self._n_again += size
                if self._n_again > self._n_read + MANY_AGAIN:
                    raise ModelFileError("its objects refer to each other too often")
                return value
            case {"is": str(kind), "number": int(number)}:
                before = self._n_read + self._n_again
                value = _read_object(self, kind, stored)
                if not 0 <= number < 2**31 or number in self._known:
                    raise ModelFileError(f"it holds an object {number} twice")
                self._known[number] = value, self._n_read + self._n_again - before
                return value
        raise ModelFileError(f"unknown kind of value: {str(stored)[:80]}")

    def state(self, stored: Json) -> dict[str, Any]:
        """Convert a dict of values back."""
        if not isinstance(stored, dict):
            raise ModelFileError(f"missing state: {str(stored)[:80]}")
        return {name: self.read(value) for name, value in stored.items()}

    def take(self, name: str) -> bytes:
        """Return the content of a member, once."""
        try:
            return self._members.pop(name)
        except KeyError:
            raise ModelFileError(f"member {name[:80]} is missing, or used twice") from None

    def finish(self) -> None:
        """Reject a file with unused members."""
        if self._members:
            raise ModelFileError(f"unused member {next(iter(self._members))}")


def _spread(keys: list[Any]) -> list[Any]:
    """Return the keys, if few share a hash; collisions make a dict slow to fill.

    String hashes are salted, so no file can choose them.
    """
    alike: defaultdict[int, set[str]] = defaultdict(set)
    for key in keys:
        if isinstance(key, (bool, int, float, tuple, np.generic)):
            alike[hash(key)].add(repr(key))
    if any(len(own) > MOST_ALIKE for own in alike.values()):
        raise ModelFileError("it has too many keys with the same hash")
    return keys


def _name(dtype: np.dtype[Any]) -> str:
    return dtype.newbyteorder("<").str


def _dtype(name: str) -> np.dtype[Any]:
    dtype = np.dtype(name)
    if dtype.names is not None or dtype.subdtype is not None or dtype.kind not in "biufUSO":
        raise ModelFileError(f"{name[:80]!r} is not a dtype of numbers or strings")
    return dtype.newbyteorder("=")


def _within(state: dict[str, Any]) -> dict[str, Any]:
    """Return a generator's state, if it cannot read out of bounds."""
    inner = state.get("state", {})
    for place, most in ((inner.get("pos"), 624), (state.get("buffer_pos"), 4)):
        if place is not None and not (isinstance(place, int) and 0 <= place <= most):
            raise ModelFileError("a random generator has an invalid state")
    return state


def _generator(state: dict[str, Any]) -> np.random.Generator:
    name = state["bit_generator"]
    if name not in GENERATORS:
        raise ModelFileError(f"{str(name)[:80]!r} is not a random generator")
    bits = getattr(np.random, name)()
    bits.state = _within(state)
    return np.random.Generator(bits)


# Objects that are not plain values.

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
    *OBJECTIVES,
    BaggedVoters,
    BetaCurve,
    Binning,
    Calibrator,
    Categories,
    ClassCurves,
    Features,
    Forest,
    HashedCategories,
    Isotonic,
    Knots,
    Levels,
    Line,
    PlainVoteComparison,
    Platt,
    PoolVoters,
    ProbabilityCurve,
    Rates,
    TreeVoters,
    Tuning,
    Words,
)
"""Dataclasses, stored as their fields."""
UFUNCS = (
    *(np.arcsinh, np.exp, np.expm1, np.log, np.log10, np.log1p, np.log2),
    *(np.sqrt, np.square, np.tanh),
)
FUNCTIONS = _by_name(categorical_columns, numeric_columns)
FUNCTIONS |= {f"numpy.{one.__name__}": one for one in UFUNCS}
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


def _write_object(writer: Writer, value: Any) -> dict[str, Json]:
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
        return {"is": kind, **_write_trained(writer, sklearn_trees.take_apart, value)}
    if (kind := boosters.booster_of(value)) is not None:
        take_apart = partial(boosters.take_apart, kind)
        return {"is": kind, **_write_trained(writer, take_apart, value)}
    if name := _name_in(FUNCTIONS, value):
        return {"is": name}
    return {"is": "skops", **_write_by_skops(writer, value)}


def _read_object(reader: Reader, kind: str, stored: dict[str, Json]) -> Any:
    """Restore an object, and validate it."""
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
        params, trained = reader.state(stored["params"]), reader.state(stored["trained"])
        value = sklearn_trees.put_together(kind, params, trained)
        checks.check_params(value)
    elif kind in boosters.KINDS:
        params, trained = reader.state(stored["params"]), reader.state(stored["trained"])
        return boosters.put_together(kind, params, trained)
    elif kind == "skops":
        return _read_by_skops(reader, stored)
    else:
        raise ModelFileError(f"it holds an unknown type {kind[:80]!r}")
    if name in checks.CHECKS:
        checks.CHECKS[name](value)
    return value


def _write_trained(
    writer: Writer, take_apart: Callable[[Any], tuple[Any, Any]], model: Any
) -> dict[str, Json]:
    """Store the parameters of a model, and what it has learned as columns."""
    try:
        params, parts = take_apart(model)
    except ModelFileError as error:
        raise ModelFileError(f"{writer.where} cannot be saved: {error}") from error
    return {"params": writer.state(params), "trained": writer.state(parts)}


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


def _write_by_skops(writer: Writer, value: Any) -> dict[str, Json]:
    """Store an object with skops, if the caller trusts its type and those it contains."""
    kind, trusted = f"{type(value).__module__}.{type(value).__qualname__}", writer.trusted
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


def _read_by_skops(reader: Reader, stored: dict[str, Json]) -> Any:
    """Load an object with skops, if the caller trusts its type and those it contains.

    skops is not called unless the caller has named a type.
    """
    kind, member, trusted = stored["type"], stored["at"], reader.trusted
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
