"""Work that joblib hands out, by whatever backend the user has chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sklearn.utils.parallel import Parallel


def in_parallel(work: Iterable[Any], n_jobs: int | None) -> Iterator[Any]:
    """The results in order, as they come."""
    try:
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    except ValueError:  # ray's backend, for one, only gives all results at once
        parallel = Parallel(n_jobs=n_jobs, prefer="threads")
    return iter(parallel(work))
