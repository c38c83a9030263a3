"""Kernels on several threads. They release the GIL, so plain threads are enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

T = TypeVar("T")


def in_threads(calls: Iterable[Callable[[], T]], n_jobs: int | None) -> Iterator[T]:
    """The results of the calls in their order, as they come; lazily on one thread.

    A pool of our own, since joblib looks for results every hundredth of a second, which
    is longer than most fits and predictions take.
    """
    n_threads = effective_n_jobs(n_jobs)
    if n_threads == 1:
        yield from (call() for call in calls)
        return
    pool = ThreadPoolExecutor(n_threads)
    try:
        yield from pool.map(lambda call: call(), calls)
    finally:  # after an error or a Ctrl-C, what has not begun never does
        pool.shutdown(wait=True, cancel_futures=True)


def run_in_threads(calls: Iterable[Callable[[], None]], n_jobs: int | None) -> None:
    """Run the calls for what they write."""
    for _ in in_threads(calls, n_jobs):
        pass


def one_openmp_thread() -> Any:
    """A context in which models fitted on this thread do not start others by OpenMP.

    The limit is each thread's own, so that models fitted side by side do not multiply
    their threads. Models that are told a number of threads keep to that.
    """
    return threadpool_limits(limits=1, user_api="openmp")
