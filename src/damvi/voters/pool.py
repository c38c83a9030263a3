"""A pool of different models as voters: trained fold by fold, or already fitted."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted

from .._compat import take_rows
from .._threads import one_blas_thread, one_openmp_thread
from ..folds import refuse_single_class, split_rows
from .estimators import (
    Progress,
    VoteReader,
    Voting,
    check_can_vote,
    fit_on_rows,
    in_parallel,
    seeded_clone,
    weight_name,
)

Named = Sequence[tuple[str, Any]]
Calibrator = Callable[[NDArray[Any]], NDArray[np.float32]]
FEW_ROWS = 10
"""On which a voter is tried once it is trained."""
ALL_ROWS = -1
"""In place of a fold, for the model that is trained on everything."""


@dataclass(frozen=True, eq=False)
class PoolVoters:
    """Different models, by name, each one voter.

    Attributes
    ----------
    names : tuple of str
    estimators : list of K classifiers
    classes : ndarray of shape (C,)
        What the models call the classes, in the order of the targets. Of two classes, the
        second is the positive one.
    voting : {"hard", "soft"}
        What the votes are; see :class:`~damvi.voters.VoteReader`.
    calibrators : sequence of K functions, optional
        From a voter's soft votes to calibrated ones.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> pool = [("linear", LogisticRegression()), ("bayes", GaussianNB())]
    >>> voters, votes, folds = PoolVoters.train(pool, X, y, seed=0)
    >>> votes.shape, votes.dtype, np.bincount(folds)
    ((500, 2), dtype('float32'), array([100, 100, 100, 100, 100]))
    >>> voters.weighted_vote(X[:2], np.array([0.5, 0.5])) < 0
    array([ True,  True])
    """

    names: tuple[str, ...]
    estimators: list[Any]
    classes: NDArray[Any]
    voting: Voting = "soft"
    calibrators: Sequence[Calibrator] | None = None

    @classmethod
    def train(
        cls,
        named: Named,
        X: Any,
        targets: NDArray[Any],
        *,
        n_classes: int = 2,
        seed: int,
        cv: Any = 5,
        groups: Any = None,
        voting: Voting = "soft",
        sample_weight: NDArray[np.float64] | None = None,
        fit_params: Mapping[str, Mapping[str, Any]] | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
        seconds: dict[str, float] | None = None,
    ) -> tuple[PoolVoters, NDArray[Any], NDArray[np.int32]]:
        """Train the pool on all rows, with each voter's votes by models of the folds.

        Parameters
        ----------
        named : sequence of (str, classifier)
            They are cloned, and every random state in them set from ``seed`` and the
            name, so that a voter is the same in any pool.
        X : array, sparse matrix or dataframe
            The models get its rows as they are.
        targets : array of shape (n,)
            Class numbers from 0, which is what the models learn; of two, 1 is the
            positive class.
        n_classes : int, default=2
        seed : int
        cv : int, splitter or iterable of (train, test), default=5
            See ``damvi.folds.split_rows``.
        groups : array of shape (n,), optional
        voting : {"hard", "soft"}, default="soft"
        sample_weight : array of shape (n,), optional
            For the models' ``fit``; if weights differ, all models must take them. Rows
            of weight 0 train nobody.
        fit_params : dict of dict, optional
            For each name, what else to give to ``fit``. Values with one entry a row are
            taken along with the rows.
        n_jobs : int, optional
            Models trained at a time, in threads (``joblib.parallel_config`` can choose
            processes). No result depends on it. Each model runs on one thread, unless
            its own ``n_jobs`` asks for more: leave that at 1 here.
        progress : callable, optional
            Follows the trainings, (folds + 1) times K of them.
        seconds : dict, optional
            Filled with what the trainings of each voter took, by its name.

        Returns
        -------
        voters : PoolVoters
        votes : ndarray of shape (n, K), or (n, K, C) for soft votes of C > 2 classes
            Out of fold: each row's by models that were trained without its fold. Rows that
            nobody judges have none that counts.
        folds : ndarray of shape (n,)
            The fold of each row, -1 for those that nobody judges.
        """
        names = check_pool(named)
        classes = np.arange(n_classes)
        models, votes, folds = _train_out_of_fold(
            named,
            X,
            targets,
            VoteReader(classes, voting),
            refit=True,
            seed=seed,
            cv=cv,
            groups=groups,
            sample_weight=sample_weight,
            fit_params=fit_params or {},
            n_jobs=n_jobs,
            progress=progress,
            seconds=seconds,
        )
        return cls(names, models, classes, voting), votes, folds

    @classmethod
    def prefit(cls, named: Named, *, classes: Any, voting: Voting = "soft") -> PoolVoters:
        """Models that are fitted already, as they are.

        Nothing tells which rows they were trained on: give them others to vote on.
        ``classes`` are their labels, in the order of the targets: of two, the positive
        one comes second.

        Examples
        --------
        >>> from sklearn.naive_bayes import GaussianNB
        >>> model = GaussianNB().fit([[0.0], [1.0], [4.0], [5.0]], ["a", "a", "b", "b"])
        >>> voters = PoolVoters.prefit([("bayes", model)], classes=["a", "b"])
        >>> voters.votes([[0.0], [5.0]]).ravel()
        array([-1.,  1.], dtype=float32)
        """
        names = check_pool(named)
        for name, model in named:
            with blamed(f"voter {name!r}"):
                check_is_fitted(model)
            known = np.asarray(getattr(model, "classes_", classes)).tolist()
            # Of more than two, a model may have missed some.
            lost = len(classes) == 2 and any(label not in known for label in classes)
            if lost or any(label not in classes for label in known):
                raise ValueError(
                    f"voter {name!r} was fitted on the classes {known}, but y has "
                    f"{np.sort(classes).tolist()}; give labels of the same kind"
                )
        models = [model for _, model in named]
        return cls(names, models, np.asarray(classes), voting)

    def calibrated(self, calibrators: Sequence[Calibrator]) -> PoolVoters:
        """The same voters, with their soft votes calibrated by these functions."""
        if self.voting != "soft":
            raise ValueError("hard votes cannot be calibrated; use voting='soft'")
        if len(calibrators) != len(self):
            raise ValueError(f"{len(calibrators)} calibrators for {len(self)} voters")
        return replace(self, calibrators=list(calibrators))

    @property
    def takes_frames(self) -> bool:
        """Dataframes are given to the models as they are."""
        return True

    def __len__(self) -> int:
        return len(self.names)

    def take(self, some: NDArray[np.intp]) -> PoolVoters:
        """These voters alone."""

        def taken(values: Sequence[Any]) -> list[Any]:
            return [values[k] for k in some.tolist()]

        return replace(
            self,
            names=tuple(taken(self.names)),
            estimators=taken(self.estimators),
            calibrators=None if self.calibrators is None else taken(self.calibrators),
        )

    @property
    def n_without_class(self) -> NDArray[np.intp]:
        """None of them, as far as is known."""
        return np.zeros(len(self.classes), np.intp)

    def votes(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """The votes of all voters on ``X``, (n, K), or (n, K, C)."""
        stacked = np.stack(list(self._ask(range(len(self)), X, n_jobs)), axis=1)
        return stacked if stacked.ndim == 3 else np.asfortranarray(stacked)

    def weighted_vote(
        self, X: Any, weights: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """See :meth:`damvi.voters.Voters.weighted_vote`."""
        asked = np.flatnonzero(weights)
        votes = self._ask(asked.tolist(), X, n_jobs)
        return self._read.weighted_sum(votes, weights[asked])

    def _ask(
        self, asked: Iterable[int], X: Any, n_jobs: int | None
    ) -> Iterator[NDArray[Any]]:
        with one_blas_thread():
            yield from in_parallel((delayed(self._vote)(k, X) for k in asked), n_jobs)

    def _vote(self, k: int, X: Any) -> NDArray[Any]:
        with blamed(f"voter {self.names[k]!r} failed"), one_openmp_thread():
            vote = self._read(self.estimators[k], X)
        return vote if self.calibrators is None else self.calibrators[k](vote)

    @property
    def _read(self) -> VoteReader:
        return VoteReader(self.classes, self.voting)


def out_of_fold_votes(
    named: Named,
    X: Any,
    targets: NDArray[Any],
    *,
    n_classes: int = 2,
    seed: int,
    cv: Any = 5,
    n_jobs: int | None = None,
    seconds: dict[str, float] | None = None,
) -> NDArray[np.float32]:
    """The soft votes of :meth:`PoolVoters.train`, without models to keep."""
    check_pool(named)
    _, votes, _ = _train_out_of_fold(
        named,
        X,
        targets,
        VoteReader(np.arange(n_classes), "soft"),
        refit=False,
        seed=seed,
        cv=cv,
        groups=None,
        sample_weight=None,
        fit_params={},
        n_jobs=n_jobs,
        progress=None,
        seconds=seconds,
    )
    return votes


def _train_out_of_fold(
    named: Named,
    X: Any,
    targets: NDArray[Any],
    read: VoteReader,
    *,
    refit: bool,
    seed: int,
    cv: Any,
    groups: Any,
    sample_weight: NDArray[np.float64] | None,
    fit_params: Mapping[str, Mapping[str, Any]],
    n_jobs: int | None,
    progress: Progress | None,
    seconds: dict[str, float] | None,
) -> tuple[list[Any], NDArray[Any], NDArray[np.int32]]:
    """The models of all rows (if ``refit``), the votes out of fold, and the folds."""
    weights = _weights_for(named, sample_weight)
    train, folds, _ = split_rows(cv, X, targets, groups, seed=seed)
    rows_of = dict(enumerate(train))
    if refit:
        rows_of[ALL_ROWS] = np.arange(len(targets))
    if weights is not None:
        rows_of = {fold: rows[weights[rows] > 0] for fold, rows in rows_of.items()}
    refuse_single_class([rows_of[fold] for fold in range(len(train))], targets)
    # The largest tasks first, so that none is left alone at the end.
    largest_first = sorted(rows_of, key=lambda fold: (-len(rows_of[fold]), fold))
    tasks = [(k, fold) for fold in largest_first for k in range(len(named))]
    work = (
        delayed(_train)(
            *named[k],
            fold,
            X,
            targets,
            rows_of[fold],
            np.flatnonzero(folds == fold),
            weights,
            fit_params.get(named[k][0], {}),
            read,
            seed,
        )
        for k, fold in tasks
    )
    votes = read.empty(len(targets), len(named))
    votes[folds < 0] = 0  # nobody judges these
    models: dict[int, Any] = {}
    with one_blas_thread():
        results: Any = in_parallel(work, n_jobs)
        if progress:
            results = progress(results, len(tasks))
        for (k, fold), (model, vote, took) in zip(tasks, results, strict=True):
            if seconds is not None:
                seconds[named[k][0]] = seconds.get(named[k][0], 0.0) + took
            if fold == ALL_ROWS:
                models[k] = model
            else:
                votes[folds == fold, k] = vote
    return [models[k] for k in sorted(models)], votes, folds


def _train(
    name: str,
    estimator: Any,
    fold: int,
    X: Any,
    targets: NDArray[Any],
    rows: NDArray[np.intp],
    judged: NDArray[np.intp],
    weights: NDArray[np.float64] | None,
    params: Mapping[str, Any],
    read: VoteReader,
    seed: int,
) -> tuple[Any, NDArray[Any] | None, float]:
    """The model of all rows, or a fold's votes: nobody needs both; and the seconds."""
    start = time.perf_counter()
    own = None if weights is None else weights[rows]
    model = train_voter(name, estimator, fold, X, targets, rows, own, params, seed)
    took = time.perf_counter() - start
    with blamed(f"voter {name!r} failed on {_place(fold)}"), one_openmp_thread():
        if fold == ALL_ROWS:
            # Where its numbers overflowed, now is the time to say so.
            read(model, take_rows(X, rows[:FEW_ROWS]))
            return model, None, took
        return None, read(model, take_rows(X, judged)), took


def train_voter(
    name: str,
    estimator: Any,
    fold: int,
    X: Any,
    targets: NDArray[Any],
    rows: NDArray[np.intp],
    weights: NDArray[np.float64] | None,
    params: Mapping[str, Any],
    seed: int,
) -> Any:
    """A clone of a voter, fitted on some rows: those that train for a fold, or all.

    ``weights`` has one entry for each of ``rows``, ``params`` for each row of ``X``.
    """
    with blamed(f"voter {name!r} failed on {_place(fold)}"), one_openmp_thread():
        model = seeded_clone(estimator, seed_of(seed, name))
        return fit_on_rows(model, X, targets, rows, weights, params)


def _place(fold: int) -> str:
    return "all rows" if fold == ALL_ROWS else f"fold {fold}"


def seed_of(seed: int, name: str) -> int:
    """A seed for the voter of this name, whatever its place in the pool."""
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    return int.from_bytes(digest[:4], "little") >> 1


@contextmanager
def blamed(where: str) -> Iterator[None]:
    """Errors within, of the same kind as far as callers tell kinds apart, with a place."""
    try:
        yield
    except Exception as error:
        for kind in (ValueError, TypeError, ImportError, MemoryError):
            if isinstance(error, kind):
                raise kind(f"{where}: {error}") from error
        raise RuntimeError(f"{where}: {type(error).__name__}: {error}") from error


def check_pool(named: Named) -> tuple[str, ...]:
    """The names of the voters; an error if they cannot be told apart, or cannot vote."""
    names = tuple(name for name, _ in named)
    if not names:
        raise ValueError("the pool is empty; give at least one (name, classifier)")
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"the voters' names must differ; {twice} appear more than once")
    for name, estimator in named:
        check_can_vote(name, estimator)
    return names


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
