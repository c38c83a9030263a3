"""The outside of a model file: a line that says what it is, a digest, and a zip archive.

The digest covers all that follows it. It tells damage, not forgery: whoever writes a file
can compute it. So what is inside is not trusted either, here or further on; arrays are
read here with none of the trust that numpy has in ``.npy`` files.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

FORMAT = 1
MOST_SHRUNK = 50
"""What shrinks by more is stored as it is, so that a small file cannot fill the memory."""
WORTH_SHRINKING = 512
LEVEL = 4
ZLIB_FRAME = 6
"""Bytes that zlib adds, and a zip archive does without."""
MANIFEST = "model.json"
MEMBER = re.compile(r"model\.json|arrays/[0-9]{1,7}\.npy|members/[0-9]{1,7}\.skops")
"""All names that an archive may hold."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The same date for all members, so that the same model gives the same bytes."""
FIRST_LINE = re.compile(rb"damvi model ([0-9]{1,6})\n")
SECOND_LINE = re.compile(rb"sha256 ([0-9a-f]{64})\n")
LONGEST_LINE = 100

ARRAY_KINDS = "biufUS"
"""Numbers, truth values and texts. Above all no objects, which would be pickles."""
ARRAY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(..)"
    rb"\{'descr': '([<|][biufUS][0-9]{1,9})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:[0-9]{1,18}, ?){0,32}[0-9]{0,18})\), \} *\n",
    re.DOTALL,
)
"""What numpy writes, and no more: it reads any Python literal there."""


class ModelFileError(ValueError):
    """A file that is no model, is damaged, or cannot be used here; the message says which.

    Also raised on save, for a model that no file could hold.
    """


def pack(members: dict[str, bytes]) -> bytes:
    """A whole model file with these members."""
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
    """The members of a model file, if it is whole."""
    with open(path, "rb") as file:
        payload = _read_payload(file)
    try:
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            return _read_members(archive, len(payload))
    except ModelFileError:
        raise
    except Exception as error:  # zipfile has many ways to fail
        raise ModelFileError(f"its archive cannot be read ({error})") from error


def _read_payload(file: BinaryIO) -> bytes:
    """All after the digest, once format and digest are known to fit."""
    first = FIRST_LINE.fullmatch(file.readline(LONGEST_LINE))
    if first is None:
        raise ModelFileError("it does not start as damvi's model files do")
    version = int(first[1])
    if version > FORMAT:
        raise ModelFileError(
            f"it was made by a newer damvi (format {version}, and this one reads format "
            f"{FORMAT}); upgrade with: pip install --upgrade damvi"
        )
    if version < FORMAT:
        raise ModelFileError(
            f"it has format {version}, which this damvi does not read; fit the model again"
        )
    second = SECOND_LINE.fullmatch(file.readline(LONGEST_LINE))
    if second is None:
        raise ModelFileError("its second line holds no digest; it is damaged")
    payload = file.read()
    if hashlib.sha256(payload).hexdigest() != second[1].decode():
        raise ModelFileError(
            "its content does not fit its digest: it is cut short or damaged; copy it "
            "again from where it came, or fit the model again"
        )
    return payload


def _read_members(archive: zipfile.ZipFile, held: int) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    infos = archive.infolist()
    for info in infos:
        if not MEMBER.fullmatch(info.filename):
            raise ModelFileError(f"its {info.filename[:80]!r} is no part of a model")
        if info.filename in members:
            raise ModelFileError(f"it holds {info.filename} twice")
        members[info.filename] = b""
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ModelFileError(
                f"{info.filename} is compressed otherwise than model files are"
            )
        if info.file_size > MOST_SHRUNK * max(info.compress_size, 1):
            raise ModelFileError(
                f"{info.filename} would unpack to {info.file_size:,} bytes from "
                f"{info.compress_size:,}"
            )
    if sum(info.compress_size for info in infos) > held:
        raise ModelFileError("its members overlap")
    for info in infos:
        members[info.filename] = archive.read(info)  # checks the sum, and stops at the size
    return members


def array_to_bytes(array: NDArray[Any]) -> bytes:
    """An array as the content of an ``.npy`` file."""
    if array.dtype.kind not in ARRAY_KINDS:
        raise ModelFileError(f"an array of {array.dtype} has no place in a model file")
    out = io.BytesIO()
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    npy.write_array(out, little, version=(1, 0), allow_pickle=False)
    return out.getvalue()


def array_from_bytes(content: bytes, name: str) -> NDArray[Any]:
    """The array, if the content is exactly that."""
    header = ARRAY_HEADER.match(content)
    if header is None or header.end() != 10 + int.from_bytes(header[1], "little"):
        raise ModelFileError(f"{name} is no array of numbers or texts")
    dtype = np.dtype(header[2].decode())
    shape = tuple(int(size) for size in header[4].decode().split(",") if size.strip())
    body = content[header.end() :]
    if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != len(body):
        raise ModelFileError(f"{name} has the shape {shape}, and {len(body)} bytes")
    flat = np.frombuffer(body, dtype=dtype).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if header[3] == b"True" else "C")
