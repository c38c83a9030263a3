"""Hostile changes to what model files hold, by its structure: JSON, arrays, texts, zips.

Every function takes a random generator and gives something new back; nothing is changed in
place that others may see. The checksums are put right by whoever puts the file together.
"""

from __future__ import annotations

import copy
import io
import json
import re
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

Rng = np.random.Generator
MERSENNE = 2**61 - 1
"""Python's hash of a whole number is its rest by this."""

WHOLE = [0, 1, -1, 2, 3, 7, 16, 255, 256, 257, 1000, 65536, 10**6, 10**7, 2**31 - 2]
WHOLE += [2**31 - 1, 2**31, -(2**31), 2**32, 2**53, 2**62, 2**63 - 1, 2**63, -(2**63)]
WHOLE += [2**64, 10**30, 10**400, -2]
REAL = [0.0, -0.0, 0.5, 1.5, -1.0, 1e-320, 1e-300, 1e30, 3.5e38, 1e300, 1.7e308, -1e300]
NOT_FINITE = [{"is": "float", "value": name} for name in ("nan", "inf", "-inf", "x")]
TEXTS = ["", "x", "\x00", "nan", "inf", "1e0", "-1", "1e400", "0x10", "\x1b[31m", "\ud800"]
TEXTS += ["A" * 5000, "float64", "<U1000000000", "O", "model", "arrays/0.npy", "é" * 50]
TEXTS += ["__class__", "builtins.eval", "os.system", "sklearn.tree.ExtraTreeClassifier"]
OTHERS = [None, True, False, [], {}, [[]], [0] * 300, "text", 3, 2.5]
OTHERS += [{"is": "tuple", "items": []}, {"is": "dict", "items": []}]
OTHERS += [{"is": "same", "as": k} for k in (0, 1, 5, 10**9)]
OTHERS += [{"is": "dtype", "name": "<f4"}, {"is": "slice", "of": [None, None, -1]}]


def one_of(rng: Rng, items: Any) -> Any:
    return items[int(rng.integers(len(items)))]


# JSON.

Place = tuple[Any, Any]
"""A list or dict, and a key of it."""


def places(value: Any) -> list[Place]:
    """Everything in a JSON value, by where it is."""
    found: list[Place] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        keys = one.keys() if isinstance(one, dict) else range(len(one))
        for key in keys:
            found.append((one, key))
            if isinstance(one[key], dict | list):
                waiting.append(one[key])
    return found


def _pick(rng: Rng, root: Any, all_places: list[Place]) -> Place:
    """Anywhere, or on a walk from the root, which finds what lies far up."""
    if rng.random() < 0.5:
        return one_of(rng, all_places)
    here: Place = ({"": root}, "")
    while True:
        value = here[0][here[1]]
        if not isinstance(value, dict | list) or not value:
            return here
        if here[1] != "" and rng.random() < 0.12:
            return here
        keys = list(value) if isinstance(value, dict) else range(len(value))
        here = (value, one_of(rng, keys))


def mutate_json(rng: Rng, root: Any, donors: list[Any], times: int) -> Any:
    """A copy with some values changed."""
    root = copy.deepcopy(root)
    for _ in range(times):
        found = places(root)
        if found:
            one_of(rng, JSON_CHANGES)(rng, root, found, donors)
    return root


def _change_value(rng: Rng, root: Any, found: list[Place], donors: list[Any]) -> None:
    where, key = _pick(rng, root, found)
    value = where[key]
    where[key] = _other_value(rng, value)


def _other_value(rng: Rng, value: Any) -> Any:
    if rng.random() < 0.15:
        return copy.deepcopy(one_of(rng, OTHERS))
    match value:
        case bool():
            return not value
        case int():
            near = [value + 1, value - 1, -value, 2 * value, float(value), str(value)]
            return one_of(rng, near) if rng.random() < 0.4 else one_of(rng, WHOLE)
        case float():
            near = [-value, value * 1e10, int(value) if abs(value) < 1e18 else 0]
            near += [*NOT_FINITE, *REAL]
            return copy.deepcopy(one_of(rng, near))
        case str():
            return _other_text(rng, value)
        case list():
            return _other_list(rng, value)
        case dict():
            return _other_dict(rng, value)
    return copy.deepcopy(one_of(rng, OTHERS))


def _other_text(rng: Rng, text: str) -> str:
    numbers = list(re.finditer(r"-?[0-9][0-9.eE+-]*", text))
    if numbers and rng.random() < 0.6:
        match = one_of(rng, numbers)
        new = str(one_of(rng, [*WHOLE, *REAL, "nan", "inf", "", "1e0", "01", "+1", " 1"]))
        return text[: match.start()] + new + text[match.end() :]
    if text and rng.random() < 0.5:
        at = int(rng.integers(len(text)))
        return text[:at] + chr(int(rng.integers(1, 300))) + text[at + 1 :]
    return one_of(rng, TEXTS)


def _other_list(rng: Rng, items: list[Any]) -> Any:
    items = list(items)
    match int(rng.integers(8)):
        case 0 if items:
            del items[int(rng.integers(len(items)))]
        case 1 if items:
            items.append(copy.deepcopy(one_of(rng, items)))
        case 2:
            items.reverse()
        case 3:
            items = items[: len(items) // 2]
        case 4 if items:
            items = [one_of(rng, items)] * int(one_of(rng, [2, 300, 20_000]))
        case 5 if items:
            rng.shuffle(items)  # type: ignore[arg-type]
        case 6:
            items.append(_other_value(rng, items[-1] if items else 0))
        case _:
            return [items]
    return items


def _other_dict(rng: Rng, value: dict[str, Any]) -> dict[str, Any]:
    value = dict(value)
    match int(rng.integers(6)):
        case 0 if value:
            del value[one_of(rng, list(value))]
        case 1 if value:
            key = one_of(rng, list(value))
            value[_other_text(rng, key)] = value.pop(key)
        case 2:
            value[one_of(rng, TEXTS)] = copy.deepcopy(one_of(rng, OTHERS))
        case 3 if len(value) > 1:
            one, other = one_of(rng, list(value)), one_of(rng, list(value))
            value[one], value[other] = value[other], value[one]
        case 4 if value.get("is") == "dict" and isinstance(value.get("items"), list):
            many = [[k * MERSENNE, 0] for k in range(1, 12_000)]
            value["items"] = [*value["items"], *many]
        case _:
            value["is"] = one_of(rng, ["tuple", "dict", "array", "objects", "skops"])
    return value


def _swap(rng: Rng, root: Any, found: list[Place], donors: list[Any]) -> None:
    (here, key), (there, other) = _pick(rng, root, found), _pick(rng, root, found)
    mine, theirs = copy.deepcopy(here[key]), copy.deepcopy(there[other])
    here[key], there[other] = theirs, mine


def _same_key_elsewhere(rng: Rng, root: Any, found: list[Place], donors: list[Any]) -> None:
    """What has the same name somewhere else, here or in another file."""
    where, key = _pick(rng, root, found)
    source = one_of(rng, donors) if donors and rng.random() < 0.5 else root
    same = [one[name] for one, name in places(source) if name == key]
    if same:
        where[key] = copy.deepcopy(one_of(rng, same))


def _everywhere(rng: Rng, root: Any, found: list[Place], donors: list[Any]) -> None:
    """One number changed wherever it is, so that checks of one by the other still hold."""
    whole = [(w, k) for w, k in found if type(w[k]) is int or _is_digits(w[k])]
    if not whole:
        return
    where, key = one_of(rng, whole)
    old = str(where[key])
    new = one_of(rng, [int(old) + 1, int(old) - 1, *WHOLE])
    for where, key in whole:
        if str(where[key]) == old:
            where[key] = str(new) if isinstance(where[key], str) else new


def _is_digits(value: Any) -> bool:
    return (
        isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10
    )


def _other_kind(rng: Rng, root: Any, found: list[Place], donors: list[Any]) -> None:
    """An object with the name of another class."""
    named = [w for w, k in found if k == "is" and isinstance(w[k], str)]
    source = one_of(rng, donors) if donors and rng.random() < 0.5 else root
    kinds = [w[k] for w, k in places(source) if k == "is"]
    if named and kinds:
        one_of(rng, named)["is"] = one_of(rng, kinds)


def _refer(rng: Rng, root: Any, found: list[Place], donors: list[Any]) -> None:
    """Another array, or an object twice."""
    arrays = [w for w, k in found if k == "at"]
    if len(arrays) > 1 and rng.random() < 0.7:
        one, other = one_of(rng, arrays), one_of(rng, arrays)
        one["at"], other["at"] = other["at"], one["at"]
        return
    numbers = [w["number"] for w, k in found if k == "number" and type(w[k]) is int]
    objects = [(w, k) for w, k in found if isinstance(w[k], dict) and "number" in w[k]]
    if numbers and objects:
        where, key = one_of(rng, objects)
        where[key] = {"is": "same", "as": one_of(rng, numbers)}


JSON_CHANGES: list[Callable[..., None]] = [_change_value] * 5
JSON_CHANGES += [_swap, _same_key_elsewhere, _everywhere, _everywhere, _other_kind, _refer]


def json_bytes(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def mutate_json_text(rng: Rng, content: bytes) -> bytes:
    """Changes that no JSON value has: keys twice, depth, odd numbers, cut short."""
    keys = list(re.finditer(rb'"[a-z_]+":', content))
    match int(rng.integers(6)):
        case 0 if keys:
            match = one_of(rng, keys)
            return content[: match.start()] + match[0] + b"null," + content[match.start() :]
        case 1 if keys:
            match = one_of(rng, keys)
            deep = b"[" * int(one_of(rng, [50, 900, 100_000]))
            return content[: match.end()] + deep + content[match.end() :]
        case 2:
            odd = [
                b"NaN",
                b"Infinity",
                b"1e999",
                b"-0",
                b"9" * 5000,
                b"01",
                b"1E5",
                b"\xff",
            ]
            numbers = list(re.finditer(rb"-?[0-9]+", content))
            if numbers:
                match = one_of(rng, numbers)
                return content[: match.start()] + one_of(rng, odd) + content[match.end() :]
        case 3:
            return content[: int(rng.integers(len(content) + 1))]
    return mutate_bytes(rng, content)


def mutate_bytes(rng: Rng, content: bytes) -> bytes:
    changed = bytearray(content)
    if not changed:
        return b"\x00"
    here = int(rng.integers(len(changed)))
    match int(rng.integers(5)):
        case 0:
            changed[here] ^= 1 << int(rng.integers(8))
        case 1:
            del changed[here:]
        case 2:
            changed[here:here] = rng.bytes(int(rng.integers(1, 50)))
        case 3:
            del changed[here : here + int(rng.integers(1, 50))]
        case _:
            for at in rng.integers(len(changed), size=8).tolist():
                changed[at] = int(rng.integers(256))
    return bytes(changed)


# Arrays.

DTYPES = [
    "<i1",
    "<i2",
    "<i4",
    "<i8",
    "<u1",
    "<u2",
    "<u4",
    "<u8",
    "<f2",
    "<f4",
    "<f8",
    "|b1",
]
SHAPES = ["(0, 1000000000000)", "(0,)", "(1,)", "()", "(0, 0)", "(18446744073709551616,)"]
SHAPES += ["(4294967296, 4294967296)", "(-1,)", "(1, 1, 1)", "(9223372036854775807,)"]
DESCRS = ["'<U250000000'", "'|O'", "'<U0'", "'|S0'", "'>f8'", "'<M8'", "'<f16'", "'<c16'"]


def npy_bytes(array: Any) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=(1, 0), allow_pickle=False)
    return out.getvalue()


def npy_array(content: bytes) -> Any:
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)


def mutate_npy(rng: Rng, content: bytes) -> bytes:
    """The array with other values, of another type or shape, or with an odd header."""
    if rng.random() < 0.12:
        return _odd_header(rng, content)
    try:
        array = npy_array(content)
    except Exception:
        return mutate_bytes(rng, content)
    return npy_bytes(mutate_array(rng, array))


def _odd_header(rng: Rng, content: bytes) -> bytes:
    end = content.find(b"\n")
    header, body = content[:end], content[end:]
    if rng.random() < 0.6:
        shape = one_of(rng, SHAPES).encode()
        new = re.sub(rb"\([0-9, ]*\)", shape, header)
        body = body if rng.random() < 0.5 else body[:1]
    else:
        new = re.sub(rb"'[<|>][a-zA-Z][0-9]+'", one_of(rng, DESCRS).encode(), header)
    new = new.rstrip(b" ")
    new = new.ljust(len(header)) if len(new) <= len(header) else new
    return new[:8] + (len(new) - 9).to_bytes(2, "little") + new[10:] + body


def mutate_array(rng: Rng, array: Any) -> Any:
    array = array.copy()
    kind = array.dtype.kind
    match int(rng.integers(10)):
        case 0 | 1 | 2 | 3 if array.size:
            flat = array.reshape(-1)
            n = int(one_of(rng, [1, 1, 2, len(flat)]))
            for at in rng.integers(len(flat), size=min(n, 5000)).tolist():
                flat[at] = extreme(rng, flat, at)
        case 4:
            return array.reshape(-1)[: array.size // 2]
        case 5:
            return array[:-1] if array.ndim and len(array) else array.reshape(1, -1)
        case 6:
            if array.ndim and len(array):
                return np.concatenate([array, array[-1:]])
        case 7 if kind in "biuf":
            with np.errstate(all="ignore"):
                return array.astype(one_of(rng, DTYPES))
        case 8:
            return rng.permutation(array) if array.ndim and array.size else array[None]
        case _:
            return array.T if array.ndim > 1 else array[None]
    return array


def extreme(rng: Rng, flat: Any, at: int) -> Any:
    """A value at the edge of what the type can hold, or of what is beside it."""
    kind = flat.dtype.kind
    if kind == "b":
        return not flat[at]
    if kind in "iu":
        info = np.iinfo(flat.dtype)
        near = [int(flat[at]) + 1, int(flat[at]) - 1, int(flat.max()), int(flat.min())]
        value = one_of(rng, [info.min, info.max, info.max - 1, 0, -1, 1, len(flat), *near])
        return min(max(value, info.min), info.max)
    if kind == "f":
        with np.errstate(all="ignore"):
            near = [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-320, 0.0, -1.0, 2.0]
            near += [-float(flat[at]), float(flat[at]) * 1e6]
            return np.array(one_of(rng, near)).astype(flat.dtype)
    if kind in "US":
        return one_of(rng, ["", "x", "\x1b", str(flat[0])])
    return flat[at]


def shorten_all(rng: Rng, members: dict[str, bytes]) -> dict[str, bytes]:
    """All arrays of one length made shorter or longer, so that they fit each other."""
    arrays = {}
    for name, content in members.items():
        if name.endswith(".npy"):
            try:
                arrays[name] = npy_array(content)
            except Exception:
                continue
    sizes = [len(array) for array in arrays.values() if array.ndim]
    if not sizes:
        return members
    size, members = one_of(rng, sizes), dict(members)
    shorter = rng.random() < 0.5
    for name, array in arrays.items():
        if array.ndim and len(array) == size and size:
            new = array[:-1] if shorter else np.concatenate([array, array[-1:]])
            members[name] = npy_bytes(new)
    return members


# LightGBM's text.


def mutate_lightgbm(rng: Rng, content: bytes) -> bytes:
    text = content.decode("latin-1")
    for _ in range(int(one_of(rng, [1, 1, 2, 3]))):
        text = _other_lightgbm(rng, text)
    if rng.random() < 0.8:
        text = right_sizes(text)
    return text.encode("latin-1", "replace")


def _other_lightgbm(rng: Rng, text: str) -> str:
    lines = text.split("\n")
    at = int(rng.integers(len(lines)))
    fields = [k for k, line in enumerate(lines) if "=" in line]
    if fields and rng.random() < 0.8:
        at = one_of(rng, fields)
    line = lines[at]
    name, equals, value = line.partition("=")
    tokens = value.split(" ")
    match int(rng.integers(12)):
        case 0 | 1 | 2 | 3 if equals:
            k = int(rng.integers(len(tokens)))
            odd = [*WHOLE[:-1], *REAL, "nan", "inf", "", "1e0", "0x1", "1.", "+1", "\t1"]
            tokens[k] = str(one_of(rng, [*odd, "1\r", f"{tokens[k]}e0", f"-{tokens[k]}"]))
            lines[at] = f"{name}={' '.join(tokens)}"
        case 4 if equals:
            lines[at] = f"{name}={' '.join(tokens[:-1])}"
        case 5 if equals:
            lines[at] = f"{name}={' '.join([*tokens, tokens[-1]])}"
        case 6:
            lines.insert(at, line)
        case 7:
            del lines[at]
        case 8:
            other = int(rng.integers(len(lines)))
            lines[at], lines[other] = lines[other], lines[at]
        case 9 if equals:
            sign = one_of(rng, ["\r", "\x00", "\t", "  ", "\x0b", "\xa0", "="])
            lines[at] = line.replace(one_of(rng, [" ", "="]), sign, 1)
        case 10 if equals:
            more = [" num_class:3000000", " num_class:4 num_class:3000000", " sigmoid:-1"]
            lines[at] = line + one_of(rng, [*more, "\rnum_class=3000000", " sigmoid:0"])
        case _:
            lines[at] = line[: int(rng.integers(len(line) + 1))]
    return "\n".join(lines)


def right_sizes(text: str) -> str:
    blocks = re.split(r"(?m)^(?=Tree=\d+$|end of trees$)", text)[1:-1]
    sizes = " ".join(str(len(block.encode("latin-1", "replace"))) for block in blocks)
    return re.sub(r"tree_sizes=[^\n]*", f"tree_sizes={sizes}", text)


# Zip archives.


def zip_of(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, method)
    return out.getvalue()


def members_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def odd_zip(rng: Rng, members: dict[str, bytes]) -> bytes:
    """An archive that is odd itself."""
    names = list(members)
    match int(rng.integers(8)):
        case 0:
            members = dict(members)
            name = one_of(rng, names)
            odd = ["../x.npy", "/etc/x", "arrays/99.npy", "model.json ", "arrays/0.npy\x00"]
            members[one_of(rng, odd)] = members.pop(name)
        case 1:
            members = dict(members)
            del members[one_of(rng, names)]
        case 2:
            method = one_of(
                rng, [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED]
            )
            return zip_of(members, method)
        case 3:
            members = {**members, "arrays/9999.npy": npy_bytes(np.zeros(3))}
        case 4:
            members = {**members, **{f"arrays/{k}.npy": b"" for k in range(5000, 9000)}}
        case 5:
            out = io.BytesIO(zip_of(members))
            import warnings

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with zipfile.ZipFile(out, "a") as archive:
                    archive.writestr(one_of(rng, names), b"{}")
            return out.getvalue()
        case 6:
            content = bytearray(zip_of(members))
            start = content.find(b"PK\x01\x02", int(rng.integers(len(content))))
            start = start if start >= 0 else content.find(b"PK\x01\x02")
            at = start + int(one_of(rng, [8, 10, 16, 20, 24, 28, 30, 32, 42]))
            content[at : at + 4] = (
                rng.bytes(4) if rng.random() < 0.5 else b"\xff\xff\xff\x7f"
            )
            return bytes(content)
        case _:
            return mutate_bytes(rng, zip_of(members))
    return zip_of(members)
