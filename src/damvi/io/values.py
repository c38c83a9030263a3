"""Values as JSON and arrays, and back: a fixed set of kinds, and no code among them.

JSON's own values stand for themselves. All else is an object with a key ``"is"`` that
names its kind, as in ``{"is": "tuple", "items": [...]}`` or ``{"is": "array", "at": ...}``.
Kinds of objects with a state (models, calibrators) come from
:mod:`damvi.io.objects`.
"""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .container import ModelFileError, array_from_bytes, array_to_bytes

Json = Any
FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
MANY_AGAIN = 10_000
"""Values that a file of any size may hold by reference to an object."""
MOST_ALIKE = 64
"""Keys with the same hash: floats come to 35 at most."""
GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


class Writer:
    """Turns values into JSON, with arrays and blobs as members beside it.

    Parameters
    ----------
    write_object : callable
        ``(writer, value) -> Json`` for all that is no plain value.
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
        self._known[id(value)] = number, value  # kept, so that no other gets its id
        return {**written, "number": number}

    def state(self, values: dict[str, Any]) -> dict[str, Json]:
        """Each of the values, by name."""
        return {name: self.write(value) for name, value in values.items()}

    def add_blob(self, content: bytes, suffix: str) -> str:
        """Keep bytes as a member, and say its name."""
        name = f"members/{len(self.members)}.{suffix}"
        self.members[name] = content
        return name

    @contextmanager
    def within(self, where: str) -> Iterator[None]:
        """Say in errors where they arose."""
        self._where.append(where)
        try:
            yield
        finally:
            self._where.pop()

    @property
    def where(self) -> str:
        """What is being written, for messages."""
        return self._where[-1] if self._where else "the model"

    def _write_array(self, array: NDArray[Any]) -> Json:
        if array.dtype.kind == "O":
            items = [self.write(item) for item in array.ravel().tolist()]
            return {"is": "objects", "shape": list(array.shape), "items": items}
        name = f"arrays/{len(self.members)}.npy"
        self.members[name] = array_to_bytes(array)
        return {"is": "array", "at": name}


class Reader:
    """Turns what a :class:`Writer` made back into values.

    Parameters
    ----------
    members : dict of bytes
        Each is used once, so that a file cannot grow in reading.
    read_object : callable
        ``(reader, kind, stored) -> value`` for the kinds that are no plain values.
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
                # Twice the same in the same again, and so on, would never be walked.
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
        raise ModelFileError(f"it holds a value of no known kind: {str(stored)[:80]}")

    def state(self, stored: Json) -> dict[str, Any]:
        """Values by name."""
        if not isinstance(stored, dict):
            raise ModelFileError(f"a state is missing: {str(stored)[:80]}")
        return {name: self.read(value) for name, value in stored.items()}

    def take(self, name: str) -> bytes:
        """The content of a member, once."""
        try:
            return self._members.pop(name)
        except KeyError:
            raise ModelFileError(f"{name[:80]} is not there, or is used twice") from None

    def finish(self) -> None:
        """Refuse a file with members that nothing refers to."""
        if self._members:
            raise ModelFileError(f"nothing refers to its {next(iter(self._members))}")


def _spread(keys: list[Any]) -> list[Any]:
    """The keys, if few of them share a hash: those make a dictionary slow to fill.

    Hashes of texts are salted, and nobody can choose them.
    """
    alike: defaultdict[int, set[str]] = defaultdict(set)
    for key in keys:
        if isinstance(key, (bool, int, float, tuple, np.generic)):
            alike[hash(key)].add(repr(key))
    if any(len(own) > MOST_ALIKE for own in alike.values()):
        raise ModelFileError("its keys collide, which would make them slow to look up")
    return keys


def _name(dtype: np.dtype[Any]) -> str:
    return dtype.newbyteorder("<").str


def _dtype(name: str) -> np.dtype[Any]:
    dtype = np.dtype(name)
    if dtype.names is not None or dtype.subdtype is not None or dtype.kind not in "biufUSO":
        raise ModelFileError(f"{name[:80]!r} is no type of numbers or texts")
    return dtype.newbyteorder("=")


def _within(state: dict[str, Any]) -> dict[str, Any]:
    """A generator's state, if it is not about to read beyond its numbers."""
    inner = state.get("state", {})
    for place, most in ((inner.get("pos"), 624), (state.get("buffer_pos"), 4)):
        if place is not None and not (isinstance(place, int) and 0 <= place <= most):
            raise ModelFileError("a random generator is in no state that there is")
    return state


def _generator(state: dict[str, Any]) -> np.random.Generator:
    name = state["bit_generator"]
    if name not in GENERATORS:
        raise ModelFileError(f"{str(name)[:80]!r} is no random generator")
    bits = getattr(np.random, name)()
    bits.state = _within(state)
    return np.random.Generator(bits)
