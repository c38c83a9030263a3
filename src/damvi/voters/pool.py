"""A pool of different models as voters: trained fold by fold, or already fitted."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted

from .._compat import take_rows
from .._kernels import give_memory_back, one_blas_thread, one_openmp_thread
from ..folds import refuse_single_class, split_rows
from ..votes import by_voter
from .estimators import (
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
Follower = Callable[["Training", int, bool], None]
"""Told which voter of a training was trained once more, and whether it is whole."""
FEW_ROWS = 10
"""On which a voter is tried once it is trained."""
TIMED_ROWS, TIMES = 1000, 3
"""How many rows a voter is asked for, and how often, to see how long it takes."""
ALL_ROWS = -1
"""In place of a fold, for the model that is trained on everything."""
MANY_ROWS = 20_000
"""With as many, what one training leaves behind is worth the time to clear up."""


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
        training = Training.of(
            named,
            X,
            targets,
            VoteReader(np.arange(n_classes), voting),
            seed=seed,
            cv=cv,
            groups=groups,
            sample_weight=sample_weight,
            fit_params=fit_params,
        )
        train_all(training, n_jobs)
        if seconds is not None:
            seconds |= training.seconds
        return training.voters, training.votes, training.folds

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
        return by_voter(np.stack(list(self._ask(range(len(self)), X, n_jobs)), axis=1))

    def weighted_vote(
        self, X: Any, weights: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """See :meth:`damvi.voters.Voters.weighted_vote`."""
        asked = np.flatnonzero(weights)
        votes = self._ask(asked.tolist(), X, n_jobs)
        return self._read.weighted_sum(votes, weights[asked])

    def seconds_a_row(self, X: Any) -> NDArray[np.float64]:
        """What each voter takes to answer for a row, where it is asked of many at once.

        The least of several times on the same rows, since whatever else the machine does
        only ever adds to it. One thread.
        """
        n = X.shape[0]
        rows = np.linspace(0, n - 1, min(n, TIMED_ROWS)).astype(np.intp)
        some, took = take_rows(X, rows), np.empty((TIMES, len(self)))
        with one_blas_thread():
            for one in took:
                for k in range(len(self)):
                    start = time.perf_counter()
                    self._vote(k, some)
                    one[k] = time.perf_counter() - start
        return np.asarray(took.min(axis=0) / len(rows))

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
    training = Training.of(
        named,
        X,
        targets,
        VoteReader(np.arange(n_classes), "soft"),
        refit=False,
        seed=seed,
        cv=cv,
    )
    train_all(training, n_jobs)
    if seconds is not None:
        seconds |= training.seconds
    return training.votes


@dataclass(eq=False)
class Training:
    """A pool in training: who learns from which rows, and what came of it so far.

    Attributes
    ----------
    named : list of (str, classifier)
        In the order in which they are trained.
    X : array, sparse matrix or dataframe
    targets : ndarray of shape (n,)
    read : VoteReader
    rows_of : dict of int to ndarray
        The training rows of each fold, and those of :data:`ALL_ROWS`, unless nobody wants
        models to keep.
    folds : ndarray of shape (n,)
    weights : ndarray of shape (n,) or None
    fit_params : dict of dict
    seed : int
    votes : ndarray of shape (n, K) or (n, K, C)
        Out of fold, as far as they are known.
    models : dict of int to classifier
        Those of all rows. Models of folds are not kept.
    done : set of (int, int)
        The voters and folds that were trained.
    left_out : dict of str to str
        Names of voters that are not trained further, and why.
    seconds : dict of str to float
        What the trainings of each voter took.
    """

    named: list[tuple[str, Any]]
    X: Any
    targets: NDArray[Any]
    read: VoteReader
    rows_of: dict[int, NDArray[np.intp]]
    folds: NDArray[np.int32]
    weights: NDArray[np.float64] | None
    fit_params: Mapping[str, Mapping[str, Any]]
    seed: int
    votes: NDArray[Any]
    models: dict[int, Any] = field(default_factory=dict)
    done: set[tuple[int, int]] = field(default_factory=set)
    left_out: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        named: Named,
        X: Any,
        targets: NDArray[Any],
        read: VoteReader,
        *,
        refit: bool = True,
        seed: int,
        cv: Any,
        groups: Any = None,
        sample_weight: NDArray[np.float64] | None = None,
        fit_params: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Training:
        """A training yet to begin; see :meth:`PoolVoters.train`."""
        check_pool(named)
        weights = _weights_for(named, sample_weight)
        train, folds, _ = split_rows(cv, X, targets, groups, seed=seed)
        rows_of = dict(enumerate(train))
        if refit:
            rows_of[ALL_ROWS] = np.arange(len(targets))
        if weights is not None:
            rows_of = {fold: rows[weights[rows] > 0] for fold, rows in rows_of.items()}
        refuse_single_class([rows_of[fold] for fold in range(len(train))], targets)
        votes = read.empty(len(targets), len(named))
        votes[folds < 0] = 0  # nobody judges these
        params = fit_params or {}
        return cls(
            list(named), X, targets, read, rows_of, folds, weights, params, seed, votes
        )

    def task(self, k: int, fold: int) -> tuple[Any, ...]:
        """What :func:`train_task` needs to train this voter on the rows of a fold."""
        name, estimator = self.named[k]
        return (
            name,
            estimator,
            fold,
            self.X,
            self.targets,
            self.rows_of[fold],
            np.flatnonzero(self.folds == fold),
            self.weights,
            self.fit_params.get(name, {}),
            self.read,
            self.seed,
        )

    def to_do(self, k: int) -> list[int]:
        """The folds on which this voter is yet to be trained, the most rows first."""
        if self.named[k][0] in self.left_out:
            return []
        left = [fold for fold in self.rows_of if (k, fold) not in self.done]
        return sorted(left, key=lambda fold: (-len(self.rows_of[fold]), fold))

    def keep(self, k: int, fold: int, trained: Trained) -> bool:
        """Note what came of a task, and tell whether it was the voter's last."""
        name = self.named[k][0]
        self.seconds[name] = self.seconds.get(name, 0.0) + trained.seconds
        self.done.add((k, fold))
        if fold == ALL_ROWS:
            self.models[k] = trained.model
        else:
            self.votes[self.folds == fold, k] = trained.vote
        return name not in self.left_out and not self.to_do(k)

    def votes_of(self, voters: Sequence[int]) -> NDArray[Any]:
        """The votes of some voters alone."""
        return by_voter(self.votes[:, list(voters)])

    def leave_out(self, k: int, why: str) -> None:
        """Train a voter no further."""
        self.left_out[self.named[k][0]] = why
        self.models.pop(k, None)

    @property
    def whole(self) -> list[int]:
        """The voters that have all of their votes, and their model if it is wanted."""
        names = [name for name, _ in self.named]
        return [
            k
            for k, name in enumerate(names)
            if name not in self.left_out and not self.to_do(k)
        ]

    @property
    def voters(self) -> PoolVoters:
        """Those that are trained."""
        whole = self.whole
        return PoolVoters(
            tuple(self.named[k][0] for k in whole),
            [self.models[k] for k in whole],
            self.read.classes,
            self.read.voting,
        )


class Trained(NamedTuple):
    """A model of all rows, or a fold's votes: nobody needs both; and what it took.

    ``seconds`` are those of the fit, ``vote_seconds`` those of the votes.
    """

    model: Any
    vote: NDArray[Any] | None
    seconds: float
    vote_seconds: float


class Screen(Protocol):
    """Who tells, after the first folds of all voters, which are not worth the rest."""

    @property
    def first_folds(self) -> Sequence[int]: ...

    def screen(self, training: Training) -> None:
        """Leave them out."""


def train_all(
    training: Training,
    n_jobs: int | None,
    screen: Screen | None = None,
    follow: Follower | None = None,
) -> None:
    """Train everybody on all folds, but for those that ``screen`` leaves out.

    It waits for the first folds of all, so that nothing depends on ``n_jobs``.
    """
    everyone = range(len(training.named))
    if screen is not None:
        first = [(k, fold) for fold in screen.first_folds for k in everyone]
        _train_tasks(training, first, n_jobs, follow)
        screen.screen(training)
    # One voter after the other, so that the first are there to be looked at.
    tasks = [(k, fold) for k in everyone for fold in training.to_do(k)]
    _train_tasks(training, tasks, n_jobs, follow)


def _train_tasks(
    training: Training,
    tasks: list[tuple[int, int]],
    n_jobs: int | None,
    follow: Follower | None,
) -> None:
    work = (delayed(train_task)(*training.task(k, fold)) for k, fold in tasks)
    with one_blas_thread():
        for (k, fold), trained in zip(tasks, in_parallel(work, n_jobs), strict=True):
            whole = training.keep(k, fold, trained)
            if follow is not None:
                follow(training, k, whole)


def train_task(
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
) -> Trained:
    """One training of one voter; see :class:`Training`."""
    start = time.perf_counter()
    if len(rows) >= MANY_ROWS:
        give_memory_back()
    own = None if weights is None else weights[rows]
    model = train_voter(name, estimator, fold, X, targets, rows, own, params, seed)
    took = time.perf_counter() - start
    with blamed(f"voter {name!r} failed on {_place(fold)}"), one_openmp_thread():
        if fold == ALL_ROWS:
            # Where its numbers overflowed, now is the time to say so.
            read(model, take_rows(X, rows[:FEW_ROWS]))
            return Trained(model, None, took, 0.0)
        vote = read(model, take_rows(X, judged))
    return Trained(None, vote, took, time.perf_counter() - start - took)


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
