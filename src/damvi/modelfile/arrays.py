"""Arrays as ``.npy`` bytes, read with none of the trust that numpy has in them."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from .errors import ModelFileError

KINDS = "biufUS"
"""Numbers, truth values and texts. Above all no objects, which would be pickles."""
LONGEST_HEADER = 1024


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
    file = io.BytesIO(content)
    try:
        if npy.read_magic(file) != (1, 0):
            raise ValueError("an unknown version")
        shape, is_fortran, dtype = npy.read_array_header_1_0(
            file, max_header_size=LONGEST_HEADER
        )
    except Exception as error:  # the header is parsed as Python literals
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise ModelFileError(f"{name} is no array ({reason})") from error
    if dtype.hasobject or dtype.kind not in KINDS or dtype.itemsize == 0:
        raise ModelFileError(f"{name} holds {str(dtype)[:80]}, and not numbers or texts")
    body = content[file.tell() :]
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(body):
        raise ModelFileError(f"{name} has the shape {shape}, and {len(body)} bytes")
    flat = np.frombuffer(body, dtype=dtype).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if is_fortran else "C")
