"""The container of a model file, and values as JSON and arrays; no code.

A file consists of a line with the format, a digest, and a zip archive. The digest covers
everything after it. It detects damage, not forgery, since anyone can compute it. So the
content is not trusted either, here or later; arrays are parsed here without the trust that
numpy has in ``.npy`` files.

JSON values stand for themselves. Everything else is an object with a key ``"is"`` that
names its kind, as in ``{"is": "tuple", "items": [...]}`` or ``{"is": "array", "at": ...}``.
Kinds with a state (models, calibrators) are defined in :mod:`damvi.io.objects`.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import zipfile
import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

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


class ModelFileError(ValueError):
    """A file is not a model, is damaged, or cannot be used here; see the message.

    Also raised on save, for a model that cannot be stored.
    """


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
    first = FIRST_LINE.fullmatch(file.readline(LONGEST_LINE))
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
    write_object : callable
        ``(writer, value) -> Json`` for everything that is not a plain value.
    """

    def __init__(self, write_object: Callable[[Writer, Any], Json]) -> None:
        self._write_object = write_object
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
        written = self._write_object(self, value)
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
    read_object : callable
        ``(reader, kind, stored) -> value`` for kinds that are not plain values.
    """

    def __init__(
        self,
        members: dict[str, bytes],
        read_object: Callable[[Reader, str, dict[str, Json]], Any],
    ) -> None:
        self._members = dict(members)
        self._read_object = read_object
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
                value = self._read_object(self, kind, stored)
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
