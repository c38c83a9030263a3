"""Compile and cache kernels, run them on threads, and limit threads of other libraries.

Without a folder to cache in, kernels are compiled again in each process.
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
    """Compile on first use, without the GIL; Python threads run in parallel."""
    return _compiled(function)


def inlined(function: F) -> F:
    """A kernel to be inlined into its callers, for hot loops.

    Passing a few arrays takes as long as reading a dozen numbers.
    """
    return _compiled(function, forceinline=True)


def _compiled(function: F, **options: Any) -> F:
    import numba  # slow to import, and only needed for kernels

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
    """Return a digest of the package's sources.

    numba only checks the file of a kernel, and would keep one whose callees in other files
    have changed.
    """
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def announce_compilation() -> None:
    """Print a message, once, if kernels are about to be compiled on this machine."""
    # Kernels that only large tables need may never have been compiled: any compiled kernel
    # shows that this is not the first time.
    if _KERNELS and not any(_is_compiled(compiled) for compiled in _KERNELS):
        _say_compiling()
    _KERNELS.clear()


@cache
def _say_compiling() -> None:
    # Kernels of modules imported later need no second message.
    sys.stderr.write("damvi: compiling kernels (once per machine)...\n")
    sys.stderr.flush()


def _is_compiled(compiled: Any) -> bool:
    stats = getattr(compiled, "stats", None)
    if stats is None or compiled.signatures:  # plain Python, or compiled in this process
        return True
    folder, name = stats.cache_path, compiled.py_func.__name__
    return folder is not None and any(Path(folder).glob(f"*.{name}-*.nbi"))


def in_threads(calls: Iterable[Callable[[], T]], n_jobs: int | None) -> Iterator[T]:
    """Yield the results of calls in order, as they finish; lazily with one thread.

    Kernels release the GIL, so threads are enough. We use our own pool, because joblib
    polls for results every hundredth of a second, longer than most fits and predictions
    take.
    """
    n_threads = effective_n_jobs(n_jobs)
    return map(call, calls) if n_threads == 1 else _in_pool(calls, n_threads)


def _in_pool(calls: Iterable[Callable[[], T]], n_threads: int) -> Iterator[T]:
    pool = ThreadPoolExecutor(n_threads)
    try:
        yield from pool.map(call, calls)
    finally:  # after an error or Ctrl-C, cancel pending calls
        pool.shutdown(wait=True, cancel_futures=True)


def one_openmp_thread() -> Any:
    """A context in which models fitted on this thread start no OpenMP threads.

    The limit is per thread, so that models fitted in parallel do not multiply their
    threads. Models with an explicit number of threads keep it.
    """
    return _controller(len(sys.modules)).limit(limits=1, user_api="openmp")


def one_blas_thread() -> Any:
    """A context in which BLAS uses one thread.

    On matrices as wide as the number of voters, its threads mostly wait for each other and
    waste CPU time.
    """
    return _controller(len(sys.modules)).limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """Return a controller of all loaded libraries; finding them is slower than most votes.

    Libraries imported later are found when the number of modules changes.
    """
    return ThreadpoolController()


def give_memory_back() -> None:
    """Ask the C library to return freed memory to the system, where possible.

    Otherwise glibc keeps it per thread, and a fit that trains one model after another
    would use half as much again as its largest models need.
    """
    if (trim := _malloc_trim()) is not None:
        trim(0)


@cache
def _malloc_trim() -> Any:
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
