"""Threads: our own kernels on several, and other libraries' kept to one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from operator import call
from typing import Any, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

T = TypeVar("T")


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
