"""Pools of different models as voters, trained fold by fold or already fitted.

Early stopping: the votes on the first folds show whether a voter would have any weight.
"""

from __future__ import annotations

import hashlib
import pickle
import tempfile
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted

from .._compat import take_rows
from .._kernels import (
    give_memory_back,
    giving_memory_back,
    one_blas_thread,
    one_openmp_thread,
)
from ..decision import calibrate_votes
from ..decision.decision import AVERAGE_PRECISION
from ..folds import Split, deal_folds, split_rows
from ..selection import Metric
from ..solvers import SOLVERS
from ..votes import Votes, by_voter
from ..weighting import Settings, minimize_c_bound
from .estimators import (
    VoteReader,
    Voting,
    check_can_vote,
    fit_on_rows,
    in_parallel,
    refuse_single_class,
    seeded_clone,
    weight_name,
)

Named = Sequence[tuple[str, Any]]
Calibrator = Callable[[NDArray[Any]], NDArray[np.float32]]
Follower = Callable[["Training", int, bool], None]
"""Shows progress: called after each training with the Training, the number of the voter,
and whether that training completed the voter's votes on all folds."""
FIRST_FOLDS = (0, 1)
"""Folds that decide on early stopping; ``results/early_stopping`` compares fewer folds."""
HOPELESS = 0.01
"""Minimum share of the weighted vote on the first folds; voters below it are left out."""
ENOUGH = 20
"""Minimum number of rows of each class in the first folds for early stopping."""
NO_WEIGHT = "no weight in the vote on the first two folds"
FEW_ROWS = 10
"""Rows on which a newly trained model is tried out."""
TIMED_ROWS, TIMES = 1000, 3
"""Rows and repetitions for measuring how long a voter takes to predict."""
ALL_ROWS = -1
"""Stands in for a fold number: the model trained on all rows."""
MANY_ROWS = 20_000
"""Training set size from which freed memory is given back, and large models may wait on
disk."""
LARGE_MODEL = 2**20
"""Bytes of arrays from which a model waits on disk."""


@dataclass(frozen=True, eq=False)
class PoolVoters:
    """A pool of different models; each is one voter.

    Attributes
    ----------
    names : tuple of str
    estimators : list of K classifiers
    classes : ndarray of shape (C,)
        The models' labels, in the order of the targets. With two classes, the second is
        the positive one.
    voting : {"hard", "soft"}
        The kind of votes; see :class:`~damvi.voters.VoteReader`.
    calibrators : sequence of K functions, optional
        Each maps a voter's soft votes to calibrated ones.

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
        """Train the pool on all rows, and cast out-of-fold votes on them.

        Parameters
        ----------
        named : sequence of (str, classifier)
            The voters. They are cloned, and each random state is derived from ``seed`` and
            the name, so that a voter is the same in any pool.
        X : array, sparse matrix or dataframe
            Passed to the models as it is.
        targets : array of shape (n,)
            Class numbers from 0, the labels that the models learn; with two classes, 1 is
            the positive one.
        n_classes : int, default=2
        seed : int
        cv : int, splitter or iterable of (train, test), default=5
            See ``damvi.folds.split_rows``.
        groups : array of shape (n,), optional
        voting : {"hard", "soft"}, default="soft"
        sample_weight : array of shape (n,), optional
            Passed to the models' ``fit``; unless all weights are equal, every model must
            accept them. Rows of weight 0 are not used for training.
        fit_params : dict of dict, optional
            Further parameters of ``fit``, by name of the voter. Values with one entry per
            row are indexed along with the rows.
        n_jobs : int, optional
            Number of models trained in parallel, in threads (``joblib.parallel_config``
            can select processes). It does not affect the results. Each model runs on one
            thread unless its own ``n_jobs`` says otherwise: leave that at 1.
        seconds : dict, optional
            Filled with the training time of each voter, by name.

        Returns
        -------
        voters : PoolVoters
        votes : ndarray of shape (n, K), or (n, K, C) for soft votes of C > 2 classes
            Out-of-fold votes: those on a row are cast by models trained without its fold.
            Undefined for rows that are in no fold.
        folds : ndarray of shape (n,)
            The fold of each row, -1 for rows that are in none.
        """
        training = Training.of(
            named,
            X,
            targets,
            n_classes,
            voting,
            split_rows(cv, X, targets, groups, seed=seed),
            seed=seed,
            sample_weight=sample_weight,
            fit_params=fit_params,
        )
        train_all(training, n_jobs)
        if seconds is not None:
            seconds |= training.seconds
        return training.voters, training.votes, training.folds

    @classmethod
    def prefit(cls, named: Named, *, classes: Any, voting: Voting = "soft") -> PoolVoters:
        """Use models that are already fitted.

        It is unknown which rows they were trained on, so have them vote on others.
        ``classes`` holds their labels in the order of the targets: with two classes, the
        positive one comes second.

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
            # With more than two classes, a model may have missed some.
            lost = len(classes) == 2 and any(label not in known for label in classes)
            if lost or any(label not in classes for label in known):
                raise ValueError(
                    f"voter {name!r} was fitted on the classes {known}, but y has the "
                    f"classes {np.sort(classes).tolist()}; both must be the same"
                )
        models = [model for _, model in named]
        return cls(names, models, np.asarray(classes), voting)

    def calibrated(self, calibrators: Sequence[Calibrator]) -> PoolVoters:
        """Return the same voters, with their soft votes calibrated by these functions."""
        if self.voting != "soft":
            raise ValueError("hard votes cannot be calibrated; use voting='soft'")
        if len(calibrators) != len(self):
            raise ValueError(f"{len(calibrators)} calibrators for {len(self)} voters")
        return replace(self, calibrators=list(calibrators))

    @property
    def takes_frames(self) -> bool:
        """Whether the models receive dataframes as they are."""
        return True

    def __len__(self) -> int:
        return len(self.names)

    def take(self, some: NDArray[np.intp]) -> PoolVoters:
        """Return a pool of these voters alone."""

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
        """Number of voters trained without rows of each class; 0, as far as is known."""
        return np.zeros(len(self.classes), np.intp)

    def votes(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """Votes of all voters on ``X``, of shape (n, K) or (n, K, C)."""
        return by_voter(np.stack(list(self._ask(range(len(self)), X, n_jobs)), axis=1))

    def weighted_vote(
        self, X: Any, weights: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """See :meth:`damvi.voters.Voters.weighted_vote`."""
        asked = np.flatnonzero(weights)
        votes = self._ask(asked.tolist(), X, n_jobs)
        return self._read.weighted_sum(votes, weights[asked])

    def seconds_a_row(self, X: Any) -> NDArray[np.float64]:
        """Prediction time of each voter per row, measured on many rows at once.

        The minimum of several measurements on the same rows, since other processes can
        only add to it. On one thread.
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
    """Soft votes as in :meth:`PoolVoters.train`, without training the final models."""
    training = Training.of(
        named,
        X,
        targets,
        n_classes,
        "soft",
        split_rows(cv, X, targets, seed=seed),
        refit=False,
        seed=seed,
    )
    train_all(training, n_jobs)
    if seconds is not None:
        seconds |= training.seconds
    return training.votes


@dataclass(eq=False)
class Training:
    """The state of a pool's training: tasks to do, and results so far.

    Attributes
    ----------
    named : list of (str, classifier)
        The voters, in training order.
    X : array, sparse matrix or dataframe
    targets : ndarray of shape (n,)
    read : VoteReader
    rows_of : dict of int to ndarray
        The training rows of each fold, and those of :data:`ALL_ROWS` if the final models
        are wanted.
    folds : ndarray of shape (n,)
    weights : ndarray of shape (n,) or None
    fit_params : dict of dict
    seed : int
    votes : ndarray of shape (n, K) or (n, K, C)
        Out-of-fold votes, as far as they have been cast.
    keeps_on_disk : bool
        Whether large models of many rows wait on disk until all are trained; see
        :class:`ModelOnDisk`.
    models : dict of int to classifier or ModelOnDisk
        Models trained on all rows. Models of folds are not kept.
    done : set of (int, int)
        The (voter, fold) pairs that have been trained.
    left_out : dict of str to str
        Names of the voters that are not trained further, with the reason.
    seconds : dict of str to float
        Training time of each voter.
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
    keeps_on_disk: bool = False
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
        n_classes: int,
        voting: Voting,
        split: Split,
        *,
        refit: bool = True,
        seed: int,
        sample_weight: NDArray[np.float64] | None = None,
        fit_params: Mapping[str, Mapping[str, Any]] | None = None,
        keeps_on_disk: bool = False,
    ) -> Training:
        """Set up a training; see :meth:`PoolVoters.train` for the parameters."""
        check_pool(named)
        weights = _weights_for(named, sample_weight)
        train, folds, _ = split
        rows_of = dict(enumerate(train))
        if refit:
            rows_of[ALL_ROWS] = np.arange(len(targets))
        if weights is not None:
            rows_of = {fold: rows[weights[rows] > 0] for fold, rows in rows_of.items()}
        refuse_single_class([rows_of[fold] for fold in range(len(train))], targets)
        read = VoteReader(np.arange(n_classes), voting)
        votes = read.empty(len(targets), len(named))
        votes[folds < 0] = 0  # these rows are in no fold
        params = fit_params or {}
        return cls(
            list(named),
            X,
            targets,
            read,
            rows_of,
            folds,
            weights,
            params,
            seed,
            votes,
            keeps_on_disk,
        )

    def task(self, k: int, fold: int) -> tuple[Any, ...]:
        """Arguments of :func:`train_task` to train this voter for a fold."""
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
        """Folds for which this voter is not trained yet, largest training set first.

        The model of all rows comes last, since it stays.
        """
        if self.named[k][0] in self.left_out:
            return []
        left = [fold for fold in self.rows_of if (k, fold) not in self.done]
        return sorted(
            left, key=lambda fold: (fold == ALL_ROWS, -len(self.rows_of[fold]), fold)
        )

    def keep(self, k: int, fold: int, trained: Trained) -> bool:
        """Store the result of a task; return whether it completes the voter's votes."""
        name = self.named[k][0]
        self.seconds[name] = self.seconds.get(name, 0.0) + trained.seconds
        self.done.add((k, fold))
        if fold == ALL_ROWS:
            model = trained.model
            waits = self.keeps_on_disk and self.is_large
            self.models[k] = put_on_disk(model) if waits else model
            return False
        self.votes[self.folds == fold, k] = trained.vote
        return name not in self.left_out and not set(self.to_do(k)) - {ALL_ROWS}

    def votes_of(self, voters: Sequence[int]) -> NDArray[Any]:
        """Votes of these voters alone."""
        return by_voter(self.votes[:, list(voters)])

    def leave_out(self, k: int, why: str) -> None:
        """Stop training a voter, and drop its model."""
        self.left_out[self.named[k][0]] = why
        self.models.pop(k, None)

    @property
    def is_large(self) -> bool:
        """Whether there are so many rows that memory is looked after."""
        return len(self.targets) >= MANY_ROWS

    @property
    def whole(self) -> list[int]:
        """The voters that are trained for all folds, and on all rows if wanted."""
        names = [name for name, _ in self.named]
        return [
            k
            for k, name in enumerate(names)
            if name not in self.left_out and not self.to_do(k)
        ]

    @property
    def voters(self) -> PoolVoters:
        """The pool of fully trained voters."""
        whole = self.whole
        return PoolVoters(
            tuple(self.named[k][0] for k in whole),
            [
                model.load() if isinstance(model, ModelOnDisk) else model
                for model in map(self.models.__getitem__, whole)
            ],
            self.read.classes,
            self.read.voting,
        )


class Trained(NamedTuple):
    """Result of a task: the model of all rows or the votes on a fold, and the time taken.

    ``seconds`` is the time of ``fit``, ``vote_seconds`` that of the votes.
    """

    model: Any
    vote: NDArray[Any] | None
    seconds: float
    vote_seconds: float


@dataclass(frozen=True, eq=False)
class ModelOnDisk:
    """A model on disk, out of the way of those that are still being trained.

    Attributes
    ----------
    rest : bytes
        The model as a pickle, without its arrays.
    sizes : list of int
        Bytes of its arrays, which are in the file one after the other.
    file : file
        Has no name, and is gone when it is closed.

    Examples
    --------
    >>> model = {"array": np.arange(2**18)}
    >>> waiting = put_on_disk(model)
    >>> waiting.sizes, bool((waiting.load()["array"] == model["array"]).all())
    ([2097152], True)
    >>> put_on_disk("a model without large arrays")
    'a model without large arrays'
    """

    rest: bytes
    sizes: list[int]
    file: Any

    def __post_init__(self) -> None:
        weakref.finalize(self, self.file.close)

    def load(self) -> Any:
        """The model, in memory again."""
        arrays = [bytearray(size) for size in self.sizes]
        self.file.seek(0)
        for array in arrays:
            if self.file.readinto(array) != len(array):
                raise OSError("the temporary file of a model was cut off during the fit")
        return pickle.loads(self.rest, buffers=arrays)  # nosec B301: our own, a moment old


def put_on_disk(model: Any) -> Any:
    """A model with large arrays on disk; any other, and where that fails, as it is."""
    parts: list[pickle.PickleBuffer] = []
    try:
        rest = pickle.dumps(model, protocol=5, buffer_callback=parts.append)
        arrays = [part.raw() for part in parts]
        sizes = [array.nbytes for array in arrays]
        if sum(sizes) < LARGE_MODEL:
            return model
        file = tempfile.TemporaryFile()  # noqa: SIM115
    except Exception:  # pickling runs the code of the model
        return model
    try:
        file.writelines(arrays)
        file.flush()
    except OSError:
        with suppress(OSError):  # closing tries to write the rest
            file.close()
        return model
    return ModelOnDisk(rest, sizes, file)


@dataclass(eq=False)
class Judge:
    """Calibrates the votes of trained voters and measures what they add to the vote.

    Attributes
    ----------
    like : Votes
        Targets, folds and weights of the training rows; the votes are filled in.
    settings : Settings
    method : {"auto", "platt", "isotonic"} or None
        How soft votes are calibrated; None leaves them as they are.
    row_weight : ndarray of shape (n,) or None
        Weight of each row in the calibration.
    first_folds : sequence of int
        The folds that decide on early stopping.
    shrinkage : float
        Shrinkage of the weights that decide on early stopping; None uses that of the
        settings. Without shrinkage, twice as many voters are left out, some of them
        useful.
    calibrators : dict of int to callable
    seconds : float or None
        The longest calibration so far.
    """

    like: Votes
    settings: Settings
    method: Literal["auto", "platt", "isotonic"] | None
    row_weight: NDArray[np.float64] | None
    first_folds: Sequence[int] = FIRST_FOLDS
    shrinkage: float | None = None
    calibrators: dict[int, Any] = field(default_factory=dict)
    seconds: float | None = None
    _first: dict[int, NDArray[Any]] = field(default_factory=dict)

    def calibrate(self, votes: NDArray[Any], k: int) -> None:
        """Calibrate the votes of a voter that has voted on all folds, in place."""
        self.first_of(votes, k)
        start = time.perf_counter()
        self.calibrators[k] = None
        if self.method is not None:
            votes[:, [k]], (self.calibrators[k],) = calibrate_votes(
                votes[:, [k]],
                self.like.targets,
                self.like.folds,
                forward=self.like.forward,
                method=self.method,
                sample_weight=self.row_weight,
            )
        self.seconds = max(self.seconds or 0.0, time.perf_counter() - start)

    def average_precision(self, votes: NDArray[Any]) -> float:
        """Average precision of the out-of-sample weighted vote."""
        cast = replace(self.like, votes=votes)
        moments = self.settings.moments_by_fold(cast)
        with warnings.catch_warnings():  # the fit itself warns, of the whole pool
            warnings.simplefilter("ignore")
            found = minimize_c_bound(cast, moments, self.settings, 1)
        return self._average_precision_of(found.out_of_sample_vote)

    def describe(self, training: Training, k: int) -> str:
        """One line on a calibrated voter: its score alone and with those before it."""
        names = [name for name, _ in training.named]
        name = names[k]
        alone = self._average_precision_of(training.votes[:, k].astype(np.float64))
        there = [j for j in self.calibrators if names[j] not in training.left_out]
        so_far = self.average_precision(training.votes_of(there))
        return (
            f"{name:18} AP {alone:.3f} alone, {so_far:.3f} with those before it, "
            f"{training.seconds[name]:.1f} s"
        )

    def _average_precision_of(self, vote: NDArray[np.float64]) -> float:
        return float(Metric.of(self.like, AVERAGE_PRECISION)([vote] * self.like.n_folds)[0])

    @cached_property
    def can_screen(self) -> bool:
        """Whether voters may be left out by their votes on the first folds.

        Not with folds in time order, which differ too much from each other, nor with
        equal weights, nor with too few rows of a class.
        """
        judged = np.isin(self.like.folds, self.first_folds)
        counts = np.bincount(self.like.targets[judged], minlength=self.like.n_classes)
        return (
            self.settings.solver != "uniform"
            and not self.like.forward
            and self.like.n_folds > len(self.first_folds)
            and int(counts.min()) >= ENOUGH
        )

    def first_of(self, votes: NDArray[Any], k: int) -> NDArray[Any]:
        """Votes of a voter on the first folds, calibrated on these folds alone."""
        if k in self._first or not self.can_screen:
            return self._first.get(k, votes)
        rows = self._first_rows
        found = votes[rows][:, [k]]
        if self.method is not None:
            weight = self.row_weight
            found, _ = calibrate_votes(
                found,
                self.like.targets[rows],
                self._halves,
                method=self.method,
                sample_weight=None if weight is None else weight[rows],
            )
        self._first[k] = found
        return found

    @cached_property
    def _first_rows(self) -> NDArray[np.intp]:
        return np.flatnonzero(np.isin(self.like.folds, self.first_folds))

    @cached_property
    def _halves(self) -> NDArray[np.int32]:
        return deal_folds(self.like.targets[self._first_rows], 0, 2).astype(np.int32)

    def shares_so_far(
        self, votes: NDArray[Any], voters: Sequence[int]
    ) -> NDArray[np.float64]:
        """Share of each voter in the vote on the first folds: weight times deviation."""
        rows, weight = self._first_rows, self.like.sample_weight
        columns = np.concatenate([self.first_of(votes, k) for k in voters], axis=1)
        some = replace(
            self.like,
            votes=columns,
            targets=self.like.targets[rows],
            folds=self._halves,
            sample_weight=None if weight is None else weight[rows],
        )
        settings = self.settings._replace(unlabeled_weight=0.0)
        if self.shrinkage is not None:
            settings = settings._replace(shrinkage=self.shrinkage)
        by_half = settings.moments_by_fold(some)
        total = sum(by_half[1:], start=by_half[0])
        weights = SOLVERS[settings.solver](settings.moments(total)).weights
        spread = columns.astype(np.float64).std(axis=0).reshape(len(weights), -1)
        moved = weights * spread.mean(axis=1)
        return np.asarray(moved / (moved.sum() or 1.0))

    def hopeless(self, votes: NDArray[Any], voters: Sequence[int]) -> list[int]:
        """Those of the voters with no weight in the vote on the first folds."""
        shares = self.shares_so_far(votes, voters).tolist()
        return [k for k, share in zip(voters, shares, strict=True) if share < HOPELESS]

    def screen(self, training: Training) -> None:
        """Leave out voters with no weight in the vote on the first folds."""
        for k in self.hopeless(training.votes, range(len(training.named))):
            training.leave_out(k, NO_WEIGHT)


def train_all(
    training: Training,
    n_jobs: int | None,
    judge: Judge | None = None,
    follow: Follower | None = None,
    *,
    screens: bool = False,
) -> None:
    """Train all voters on all folds; ``judge`` calibrates them.

    If it ``screens``, it leaves out some by their votes on the first folds. That waits
    until all voters are trained on these, so that the result does not depend on ``n_jobs``.
    """
    everyone = range(len(training.named))
    if judge is not None and screens:
        first = [(k, fold) for fold in judge.first_folds for k in everyone]
        _train_tasks(training, first, n_jobs, judge, follow)
        judge.screen(training)
    # Voter by voter, so that the first ones can be reported early. Models of all rows stay,
    # so they come last.
    tasks = [(k, fold) for k in everyone for fold in training.to_do(k)]
    tasks.sort(key=lambda task: task[1] == ALL_ROWS)
    _train_tasks(training, tasks, n_jobs, judge, follow)


def _train_tasks(
    training: Training,
    tasks: list[tuple[int, int]],
    n_jobs: int | None,
    judge: Judge | None,
    follow: Follower | None,
) -> None:
    work = (delayed(train_task)(*training.task(k, fold)) for k, fold in tasks)
    with one_blas_thread(), giving_memory_back(training.is_large):
        for (k, fold), trained in zip(tasks, in_parallel(work, n_jobs), strict=True):
            voted = training.keep(k, fold, trained)
            if voted and judge is not None:
                judge.calibrate(training.votes, k)
            if follow is not None:
                follow(training, k, voted)


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
    """Train one voter for one fold, or on all rows; see :class:`Training`."""
    start = time.perf_counter()
    if len(rows) >= MANY_ROWS:
        give_memory_back()
    own = None if weights is None else weights[rows]
    model = train_voter(name, estimator, fold, X, targets, rows, own, params, seed)
    took = time.perf_counter() - start
    with blamed(f"voter {name!r} failed on {_place(fold)}"), one_openmp_thread():
        if fold == ALL_ROWS:
            # Have it vote once, so that numerical overflow is reported by fit.
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
    """Fit a clone of a voter on the training rows of a fold, or on all rows.

    ``weights`` has one entry for each of ``rows``; ``params`` has one for each row of
    ``X``.
    """
    with blamed(f"voter {name!r} failed on {_place(fold)}"), one_openmp_thread():
        model = seeded_clone(estimator, seed_of(seed, name))
        return fit_on_rows(model, X, targets, rows, weights, params)


def _place(fold: int) -> str:
    return "all rows" if fold == ALL_ROWS else f"fold {fold}"


def seed_of(seed: int, name: str) -> int:
    """Seed of a voter by its name, independent of its position in the pool."""
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    return int.from_bytes(digest[:4], "little") >> 1


@contextmanager
def blamed(where: str) -> Iterator[None]:
    """Prefix the message of any error with ``where``, keeping common error types."""
    try:
        yield
    except Exception as error:
        for kind in (ValueError, TypeError, ImportError, MemoryError):
            if isinstance(error, kind):
                raise kind(f"{where}: {error}") from error
        raise RuntimeError(f"{where}: {type(error).__name__}: {error}") from error


def check_pool(named: Named) -> tuple[str, ...]:
    """Check that all voters can vote and have different names; return the names."""
    names = tuple(name for name, _ in named)
    if not names:
        raise ValueError("the pool is empty; give at least one (name, classifier) pair")
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"voter names must be unique; {twice} appear more than once")
    for name, estimator in named:
        check_can_vote(name, estimator)
    return names


def _weights_for(
    named: Named, sample_weight: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """The sample weights, or None if all are equal; check that all voters accept them."""
    if sample_weight is None or np.ptp(sample_weight) == 0:
        return None
    for name, estimator in named:
        if weight_name(estimator) is None:
            raise ValueError(
                f"voter {name!r} ({type(estimator).__name__}) does not accept "
                f"sample_weight; remove it from the pool, or fit without weights"
            )
    return sample_weight
