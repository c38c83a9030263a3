"""Models trained fold by fold, with votes on the rows that they have not seen."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.parallel import delayed

from .._blas import one_blas_thread
from .._compat import take_rows
from .._threads import one_openmp_thread
from .asking import AskPositive
from .class_asking import AskClasses
from .fitting import fit_weighted, params_of_rows, seeded, weight_name
from .folds import check_classes, split_rows
from .interface import Progress
from .parallel import in_parallel
from .relabelling import with_gaps, without_gaps

Asker = AskPositive | AskClasses
Named = Sequence[tuple[str, Any]]
ALL_ROWS = -1
"""In place of a fold, for the model that is trained on everything."""


def train_out_of_fold(
    named: Named,
    X: Any,
    y: NDArray[Any],
    *,
    seed: int,
    cv: Any,
    groups: Any,
    asker: Asker,
    refit: bool,
    sample_weight: NDArray[np.float64] | None,
    fit_params: Mapping[str, Mapping[str, Any]] | None,
    n_jobs: int | None,
    progress: Progress | None,
) -> tuple[list[Any], NDArray[Any], NDArray[np.int32]]:
    """The models, their out-of-fold votes and the fold of each row.

    See :meth:`damvi.voters.PoolVoters.train`.
    """
    weights = _weights_for(named, sample_weight)
    train, folds = split_rows(cv, X, y, groups, seed=seed)
    rows_of = dict(enumerate(train))
    if refit:
        rows_of[ALL_ROWS] = np.arange(len(y))
    if weights is not None:
        rows_of = {fold: rows[weights[rows] > 0] for fold, rows in rows_of.items()}
    check_classes([rows_of[fold] for fold in range(len(train))], y)
    # The largest tasks first, so that none is left alone at the end.
    largest_first = sorted(rows_of, key=lambda fold: (-len(rows_of[fold]), fold))
    tasks = [(k, fold) for fold in largest_first for k in range(len(named))]
    work = (
        delayed(_train)(
            *named[k],
            fold,
            X,
            y,
            rows_of[fold],
            np.flatnonzero(folds == fold),
            weights,
            (fit_params or {}).get(named[k][0], {}),
            asker,
            seed,
        )
        for k, fold in tasks
    )
    votes = asker.room(len(y), len(named))
    kept: dict[tuple[int, int], Any] = {}
    with one_blas_thread():
        results: Any = in_parallel(work, n_jobs)
        if progress:
            results = progress(results, len(tasks))
        for (k, fold), (model, said) in zip(tasks, results, strict=True):
            if fold != ALL_ROWS:
                votes[folds == fold, k] = said
            if refit == (fold == ALL_ROWS):
                kept[k, fold] = model
    if refit:
        return [kept[k, ALL_ROWS] for k in range(len(named))], votes, folds
    n_folds = range(len(train))
    estimators = [asker.as_one([kept[k, f] for f in n_folds]) for k in range(len(named))]
    return estimators, votes, folds


def seed_of(seed: int, name: str) -> int:
    """A seed for the voter of this name, whatever its place in the pool."""
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    return int.from_bytes(digest[:4], "little") >> 1


def blame(error: Exception, where: str) -> Exception:
    """The same kind of error, as far as callers tell kinds apart, with a place."""
    for kind in (ValueError, TypeError, ImportError, MemoryError):
        if isinstance(error, kind):
            return kind(f"{where}: {error}")
    return RuntimeError(f"{where}: {type(error).__name__}: {error}")


def _train(
    name: str,
    estimator: Any,
    fold: int,
    X: Any,
    y: NDArray[Any],
    rows: NDArray[np.intp],
    judged: NDArray[np.intp],
    weights: NDArray[np.float64] | None,
    params: Mapping[str, Any],
    asker: Asker,
    seed: int,
) -> tuple[Any, NDArray[Any]]:
    try:
        model = seeded(clone(estimator), seed_of(seed, name))
        own = None if weights is None else weights[rows]
        with one_openmp_thread():
            some = params_of_rows(params, rows, len(y))
            numbers, present = without_gaps(y[rows])
            fit_weighted(model, take_rows(X, rows), numbers, own, some)
            model = with_gaps(model, present)
            if fold == ALL_ROWS:
                return model, np.empty(0, dtype=np.int8)
            return model, asker(model, take_rows(X, judged))
    except Exception as error:
        where = "all rows" if fold == ALL_ROWS else f"fold {fold}"
        raise blame(error, f"voter {name!r} failed on {where}") from error


def _weights_for(
    named: Named, sample_weight: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """The weights, or None where they are all the same."""
    if sample_weight is None or np.ptp(sample_weight) == 0:
        return None
    for name, estimator in named:
        if weight_name(estimator) is None:
            raise ValueError(
                f"voter {name!r} ({type(estimator).__name__}) does not accept "
                f"sample_weight; leave it out of the pool, or fit without weights"
            )
    return sample_weight
