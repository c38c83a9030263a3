"""Compilation of the kernels: cached on disk, and no failure where that is impossible."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from ._compat import use_source_stamp

F = TypeVar("F", bound=Callable[..., Any])

_KERNELS: list[Any] = []


def kernel(function: F) -> F:
    """Compile on first use, without the GIL; Python threads do the parallel work."""
    return _compiled(function)


def inlined(function: F) -> F:
    """A kernel that becomes part of those that call it, for the inside of a hot loop.

    To pass a few arrays takes as long as to look at a dozen numbers.
    """
    return _compiled(function, forceinline=True)


def _compiled(function: F, **options: Any) -> F:
    options |= {"nogil": True, "error_model": "numpy"}
    compiled: Any
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to cache in
        compiled = numba.njit(**options)(function)
    use_source_stamp(compiled, _source_stamp())
    _KERNELS.append(compiled)
    return cast(F, compiled)


@cache
def _source_stamp() -> str:
    """A digest of the package's sources.

    numba looks only at the file of a kernel, and would keep one whose callees, in
    other files, have changed.
    """
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def announce_compilation() -> None:
    """Say so, once, when the kernels are about to be compiled on this machine."""
    # Kernels that only large tables need may be missing for long: any one that is there
    # tells that this is not the first time.
    if _KERNELS and not any(_is_compiled(compiled) for compiled in _KERNELS):
        sys.stderr.write("damvi: compiling its kernels, once on this machine...\n")
        sys.stderr.flush()
    _KERNELS.clear()


def _is_compiled(compiled: Any) -> bool:
    stats = getattr(compiled, "stats", None)
    if stats is None or compiled.signatures:  # plain Python, or in this process already
        return True
    folder, name = stats.cache_path, compiled.py_func.__name__
    return folder is not None and any(Path(folder).glob(f"*.{name}-*.nbi"))
