"""Arrays as ``.npy`` bytes, read with none of the trust that numpy has in them."""

from __future__ import annotations

import io
import math
import re
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from .errors import ModelFileError

KINDS = "biufUS"
"""Numbers, truth values and texts. Above all no objects, which would be pickles."""
HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(..)"
    rb"\{'descr': '([<|][biufUS][0-9]{1,9})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:[0-9]{1,18}, ?){0,32}[0-9]{0,18})\), \} *\n",
    re.DOTALL,
)
"""What numpy writes, and no more: it reads any Python literal there."""


def array_to_bytes(array: NDArray[Any]) -> bytes:
    """An array as the content of an ``.npy`` file."""
    if array.dtype.kind not in KINDS:
        raise ModelFileError(f"an array of {array.dtype} has no place in a model file")
    out = io.BytesIO()
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    npy.write_array(out, little, version=(1, 0), allow_pickle=False)
    return out.getvalue()


def array_from_bytes(content: bytes, name: str) -> NDArray[Any]:
    """The array, if the content is exactly that."""
    header = HEADER.match(content)
    if header is None or header.end() != 10 + int.from_bytes(header[1], "little"):
        raise ModelFileError(f"{name} is no array of numbers or texts")
    dtype = np.dtype(header[2].decode())
    shape = tuple(int(size) for size in header[4].decode().split(",") if size.strip())
    body = content[header.end() :]
    if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != len(body):
        raise ModelFileError(f"{name} has the shape {shape}, and {len(body)} bytes")
    flat = np.frombuffer(body, dtype=dtype).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if header[3] == b"True" else "C")
