"""Kernels: compiled once and cached, and run on several threads; other libraries on one.

Where there is no folder to cache in, they are compiled anew in each process.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from operator import call
from pathlib import Path
from typing import Any, TypeVar, cast

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

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
    import numba  # takes a while, and whoever defines no kernel does without

    from ._compat import use_source_stamp

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
        _say_compiling()
    _KERNELS.clear()


@cache
def _say_compiling() -> None:
    # Modules that are imported later have kernels too, and the word is the same.
    sys.stderr.write("damvi: compiling its kernels, once on this machine...\n")
    sys.stderr.flush()


def _is_compiled(compiled: Any) -> bool:
    stats = getattr(compiled, "stats", None)
    if stats is None or compiled.signatures:  # plain Python, or in this process already
        return True
    folder, name = stats.cache_path, compiled.py_func.__name__
    return folder is not None and any(Path(folder).glob(f"*.{name}-*.nbi"))


def in_threads(calls: Iterable[Callable[[], T]], n_jobs: int | None) -> Iterator[T]:
    """The results of the calls in their order, as they come; lazily on one thread.

    Kernels release the GIL, so plain threads are enough. A pool of our own, since joblib
    looks for results every hundredth of a second, which is longer than most fits and
    predictions take.
    """
    n_threads = effective_n_jobs(n_jobs)
    return map(call, calls) if n_threads == 1 else _in_pool(calls, n_threads)


def _in_pool(calls: Iterable[Callable[[], T]], n_threads: int) -> Iterator[T]:
    pool = ThreadPoolExecutor(n_threads)
    try:
        yield from pool.map(call, calls)
    finally:  # after an error or a Ctrl-C, what has not begun never does
        pool.shutdown(wait=True, cancel_futures=True)


def one_openmp_thread() -> Any:
    """A context in which models fitted on this thread do not start others by OpenMP.

    The limit is each thread's own, so that models fitted side by side do not multiply
    their threads. Models that are told a number of threads keep to that.
    """
    return _controller(len(sys.modules)).limit(limits=1, user_api="openmp")


def one_blas_thread() -> Any:
    """A context in which BLAS does not share out its work.

    On matrices as wide as there are voters its threads mostly wait for each other, and
    burn processor time while they do.
    """
    return _controller(len(sys.modules)).limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """Of all libraries that are loaded: looking for them takes longer than most votes.

    What is imported later may bring others, and is looked for then.
    """
    return ThreadpoolController()


def give_memory_back() -> None:
    """Ask the C library to return what was freed to the system, where it can.

    Otherwise glibc keeps it for each thread: a fit that trains one model after the other
    would take half as much again as its largest ones need.
    """
    if (trim := _malloc_trim()) is not None:
        trim(0)


@cache
def _malloc_trim() -> Any:
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
