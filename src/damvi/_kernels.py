"""Compile and cache kernels, run them on threads, and limit threads of other libraries.

Without a folder to cache in, kernels are compiled again in each process.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, cached_property, lru_cache, update_wrapper
from operator import call
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, cast

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from ._compat import use_source_stamp

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

EVERY = 1.0
"""Seconds between two times that freed memory is given back."""

_KERNELS: list[Kernel] = []
_PREPARING = Lock()


def kernel(function: F) -> F:
    """Compile on first use, without the GIL; Python threads run in parallel."""
    return cast(F, Kernel(function))


def inlined(function: F) -> F:
    """A kernel to be inlined into its callers, for hot loops.

    Passing a few arrays takes as long as reading a dozen numbers.
    """
    return cast(F, Kernel(function, forceinline=True))


class Kernel:
    """A function that numba compiles when it is first called, by Python or a kernel.

    numba, which is slow to import, is only imported then. A kernel is pickled by its name.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        update_wrapper(self, function)
        self.py_func, self.options = function, options
        _KERNELS.append(self)

    def __call__(self, *args: Any) -> Any:
        return self.compiled(*args)

    @cached_property
    def compiled(self) -> Any:
        """The function as numba has it, or as it is, if numba's compiler is disabled."""
        import numba

        with _PREPARING:
            if "compiled" in vars(self):  # another thread was faster
                return vars(self)["compiled"]
            options = self.options | {"nogil": True, "error_model": "numpy"}
            try:
                found = numba.njit(cache=True, **options)(self.py_func)
            except RuntimeError:  # no folder to cache in
                found = numba.njit(**options)(self.py_func)
            use_source_stamp(found, _source_stamp())
            vars(self)["compiled"] = found
            return found

    @property
    def _numba_type_(self) -> Any:
        """What numba takes this for, in the kernels that call it."""
        return self.compiled._numba_type_

    def __reduce__(self) -> str:
        return self.py_func.__qualname__


@cache
def _source_stamp() -> str:
    """Return a digest of all files with kernels.

    numba only checks the file of a kernel, and would keep one whose callees in other files
    have changed. Kernels take no constants from files without kernels; a test checks that.
    """
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        source = path.read_bytes()
        has_kernels = re.search(rb"^@(kernel|inlined)\r?$", source, re.MULTILINE)
        if has_kernels or path.name == "_kernels.py":
            digest.update(source)
    return digest.hexdigest()


def announce_compilation() -> None:
    """Print a message, once, if kernels are about to be compiled on this machine."""
    # Kernels that only large tables need may never have been compiled: any compiled kernel
    # shows that this is not the first time.
    if _KERNELS and not any(map(_was_compiled, _KERNELS)):
        _say_compiling()
    _KERNELS.clear()


@cache
def _say_compiling() -> None:
    # Kernels of modules imported later need no second message.
    sys.stderr.write("damvi: compiling kernels (once per machine)...\n")
    sys.stderr.flush()


def _was_compiled(one: Kernel) -> bool:
    """Whether it is on disk, of whatever sources, or in memory."""
    stats = getattr(one.compiled, "stats", None)
    if stats is None or one.compiled.signatures:  # plain Python, or compiled here
        return True
    folder, name = stats.cache_path, one.py_func.__name__
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


@contextmanager
def giving_memory_back(much: bool = True) -> Iterator[None]:
    """:func:`give_memory_back` now and then, and at the end, if there is ``much``.

    Some models need most of their memory for a moment, to prepare their tables, and would
    keep it from others until they are trained.
    """
    if not much or _malloc_trim() is None:
        yield
        return
    done = threading.Event()

    def work() -> None:
        while not done.wait(EVERY):
            give_memory_back()

    thread = threading.Thread(target=work, name="damvi-memory", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        give_memory_back()


@cache
def _malloc_trim() -> Any:
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
