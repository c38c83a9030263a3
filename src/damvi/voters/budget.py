"""What is spent on whom: voters trained in a given time, and the hopeless left alone.

Voters are tried in the order of the pool. What the first fold of a voter took tells what
all of it will take, and what it voted there, whether the vote would miss it.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from queue import Empty, SimpleQueue
from typing import Any, Literal

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.metrics import average_precision_score

from .._compat import is_compiled
from .._kernels import one_blas_thread
from ..decision import calibrate_votes
from ..decision.decision import AVERAGE_PRECISION
from ..folds import deal_folds
from ..selection import Metric
from ..solvers import SOLVERS
from ..votes import Votes
from ..weighting import Settings, minimize_c_bound
from .estimators import SomeRows
from .pool import ALL_ROWS, Follower, Trained, Training, train_task
from .trees.estimators import FastForestClassifier, FastTreeClassifier
from .trees.grow import grow

FIRST_FOLDS = (0, 1)
"""By which voters are left out; see results/early_stopping for what fewer would cost."""
HOPELESS = 0.01
"""A voter that moves a smaller share of the vote on them is left out."""
ENOUGH = 20
"""Rows of each class that it takes to say so."""
NO_WEIGHT = "no weight in the vote on the first two folds"

TRIALS = (1000, 4000)
"""Rows on which a voter is tried before it is trained on many more. The first voter gets
no fewer than the former, others no fewer than the latter."""
ROWS_A_SECOND = 100
"""With more time than this allows for the rows of a fold, no trial is needed."""
LENIENT = 1.5
"""How much more than is left a trial may promise to take: what it says is rough."""
SAFETY = 1.1
"""How much longer than the first fold tells the others may take."""
ROWS_SHARE = 0.6
"""Of the time that is left, for a voter that gets fewer rows: as many as fit in it."""
LEAST_SHARE = 0.15
"""Of the limit: with less left, no other voter is tried."""
SETTLE = 0.5
"""Of the limit: with less left, and nobody quick enough, no other is looked for."""
PATIENCE = 0.4
"""Of the time, after which others are tried beside the first voter that does not come."""
GRACE = 0.05
"""Of the limit, that what is nearly done may overrun."""
REST = 15
"""Average precisions of all rows that weights and threshold take as long as."""
LEAST_REST = 0.3
"""Seconds that they take with few rows."""
CALIBRATION = 10
"""The same of a voter's calibration, until one was seen."""
COMPILATION = 120
"""Seconds: with less, trees of our own have no part until their kernels are compiled."""


@dataclass(eq=False)
class Judge:
    """What finished voters are good for, by their calibrated votes.

    Attributes
    ----------
    like : Votes
        Rows, folds and weights as they will be for the votes of all.
    settings : Settings
    method : {"auto", "platt", "isotonic"} or None
        How soft votes are calibrated, if they are.
    row_weight : ndarray of shape (n,) or None
        What each row counts for in that.
    first_folds : sequence of int
        By which voters are screened.
    shrinkage : float
        Of the weights by which they are; None is that of the settings. Without any, twice
        as many voters are left out, and some are missed.
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
        """Calibrate those of a voter that is whole, in their place."""
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
        """Of the weighted vote, on rows that neither voters nor weights know."""
        cast = replace(self.like, votes=votes)
        moments = self.settings.moments_by_fold(cast)
        with warnings.catch_warnings():  # of all voters, the fit itself will tell
            warnings.simplefilter("ignore")
            found = minimize_c_bound(cast, moments, self.settings, 1)
        return self._worth(found.out_of_sample_vote)

    def describe(self, training: Training, k: int) -> str:
        """A line on a voter that is whole, beside those that came before it."""
        name = training.named[k][0]
        alone = self._worth(training.votes[:, k].astype(np.float64))
        so_far = self.average_precision(training.votes_of(list(self.calibrators)))
        return (
            f"{name:18} AP {alone:.3f} alone, {so_far:.3f} with those before it, "
            f"{training.seconds[name]:.1f} s"
        )

    def _worth(self, vote: NDArray[np.float64]) -> float:
        return float(Metric.of(self.like, AVERAGE_PRECISION)([vote] * self.like.n_folds)[0])

    def unit(self) -> float:
        """Seconds of one average precision on all rows, of each class but one."""
        targets = self.like.targets
        vote = np.random.RandomState(0).uniform(size=len(targets))
        start = time.perf_counter()
        average_precision_score(targets == targets[0], vote)
        return (time.perf_counter() - start) * (self.like.n_classes - 1)

    @cached_property
    def can_screen(self) -> bool:
        """Whether anybody may be left out by its first folds.

        Windows in the order of time differ too much; equal weights are for all.
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
        """A voter's votes on the first folds, calibrated by themselves."""
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
        """What each voter moves of the vote on the first folds: weight times deviation."""
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

    def screen(self, training: Training) -> None:
        """Leave out who would have no weight, by the first folds of all."""
        shares = self.shares_so_far(training.votes, range(len(training.named)))
        for k in np.flatnonzero(shares < HOPELESS).tolist():
            training.leave_out(k, NO_WEIGHT)


@dataclass(frozen=True)
class Budget:
    """Seconds of wall time, from ``start`` on.

    Examples
    --------
    >>> now = iter([2.5]).__next__
    >>> Budget(10.0, start=0.0, clock=now).left
    7.5
    """

    limit: float
    start: float
    clock: Callable[[], float]

    @property
    def left(self) -> float:
        return self.limit - (self.clock() - self.start)


@dataclass(frozen=True)
class _TooSlow:
    """What a trial says where it says no: the seconds of a training on so many rows."""

    seconds: Callable[[float], float]


@dataclass(frozen=True)
class _Running:
    k: int
    fold: int
    begun: float
    expected: float


def train_in_time(
    training: Training,
    budget: Budget,
    judge: Judge,
    n_jobs: int | None,
    follow: Follower,
    *,
    say: Callable[[str], None],
) -> None:
    """Train as many voters as time allows, in threads.

    At least one is trained, if need be on fewer rows, and ``say`` is told of it. Whoever
    is left out is named in the training. What has begun cannot be stopped: if it takes far
    longer than was foreseen, it is left to itself, and what it finds is thrown away.

    Parameters
    ----------
    training : Training
    budget : Budget
    judge : Judge
    n_jobs : int, optional
    follow : callable
        Told of the trainings as they come.
    say : callable
    """
    with one_blas_thread():
        _Schedule(training, budget, judge, effective_n_jobs(n_jobs), follow, say).run()


@dataclass(eq=False)
class _Schedule:
    """Who is trained next, and whether there is time for it.

    The folds of voters that were taken come first, one voter after the other; where a
    thread has nothing to do, the next voter is tried on its first fold.
    """

    training: Training
    budget: Budget
    judge: Judge
    n_workers: int
    follow: Follower
    say: Callable[[str], None]
    waiting: deque[int] = field(default_factory=deque)
    queue: deque[tuple[int, int]] = field(default_factory=deque)
    taken: list[int] = field(default_factory=list)
    running: dict[int, _Running] = field(default_factory=dict)
    first_seconds: dict[int, Trained] = field(default_factory=dict)
    pace: dict[int, tuple[float, float]] = field(default_factory=dict)
    results: SimpleQueue[tuple[int, Any]] = field(default_factory=SimpleQueue)
    first: int | None = None
    until: float | None = None
    n_overdue: int = 0
    on_few_rows: dict[int, float] = field(default_factory=dict)
    shortened: set[int] = field(default_factory=set)
    told: bool = False
    n_started: int = 0

    def run(self) -> None:
        self.unit = self.judge.unit()
        self.screens = self.judge.can_screen
        self.until = self.budget.clock() + PATIENCE * self.budget.left
        self.waiting.extend(range(len(self.training.named)))
        while True:
            self._start_some()
            if not self.running:
                break
            self._wait()
        for k in self.waiting:
            self.training.leave_out(k, "no time left to try it")
        whole = [self.training.named[k] for k in self.training.whole if k in self.shortened]
        if whole:
            told = ", ".join(f"{name!r} on {some.max_rows:,}" for name, some in whole)
            self.say(
                f"time_limit={self.budget.limit:g} is short for {self.n_rows(ALL_ROWS):,} "
                f"rows: some voters were trained on fewer, {told}, with all of the rarer "
                f"classes where they are few"
            )

    # What there is to do, and how long it takes.

    @property
    def left(self) -> float:
        """Seconds for trainings: some are kept for what comes after them."""
        return self.budget.left - LEAST_REST - REST * self.unit

    def expected(self, k: int, fold: int) -> float:
        """Seconds of a task, by the first fold and the pace since."""
        first = self.first_seconds[k]
        rows = self._rows_used(k, fold) / self._rows_used(k, 0)
        judged = [int((self.training.folds == one).sum()) for one in (fold, 0)]
        asked = judged[0] / max(1, judged[1])
        took, foreseen = self.pace.get(k, (1.0, 1.0))
        own = first.seconds * rows + first.vote_seconds * asked
        return own * took / foreseen

    def _rows_used(self, k: int, fold: int) -> int:
        most = getattr(self.training.named[k][1], "max_rows", None)
        n_rows = self.n_rows(fold)
        return min(n_rows, most) if isinstance(most, int) else n_rows

    def has_time(self, *more: tuple[int, int]) -> bool:
        """Whether all that was taken, and these, can be done in time."""
        tasks = [self.expected(*task) for task in (*self.queue, *more)]
        now = self.budget.clock()
        begun = [
            max(one.expected - (now - one.begun), 0.0) for one in self.running.values()
        ]
        one = self.judge.seconds
        calibration = CALIBRATION * self.unit if one is None else one
        voters = {k for k, _ in (*self.queue, *more)} | {
            one.k for one in self.running.values()
        }
        work = sum(tasks) + sum(begun) + calibration * len(voters)
        # The last task may find all other threads idle.
        longest = max([*tasks, *begun], default=0.0)
        needed = work / self.n_workers + longest * (1 - 1 / self.n_workers)
        return SAFETY * needed <= self.left

    def n_rows(self, fold: int = 0) -> int:
        return len(self.training.rows_of[fold])

    def total(self, seconds: Callable[[float], float]) -> float:
        """Seconds of all trainings of a voter, where so many rows take ``seconds``."""
        return sum(seconds(len(rows)) for rows in self.training.rows_of.values())

    # Threads.

    def _start(self, k: int, fold: int, expected: float, call: Callable[[], Any]) -> None:
        self.n_started += 1
        ticket, config = self.n_started, get_config()

        def work() -> None:
            try:
                with config_context(**config):  # which is each thread's own
                    self.results.put((ticket, call()))
            except BaseException as error:
                self.results.put((ticket, error))

        self.running[ticket] = _Running(k, fold, self.budget.clock(), expected)
        threading.Thread(target=work, name=f"damvi-voter-{k}").start()

    def _start_some(self) -> None:
        while len(self.running) < self.n_workers + self.n_overdue:
            if self.queue and len(self.taken) > 1 and not self.has_time():
                self._give_up_last()
            elif self.queue:
                k, fold = self.queue.popleft()
                task = partial(train_task, *self.training.task(k, fold))
                self._start(k, fold, self.expected(k, fold), task)
            elif self.waiting and self._may_try():
                k = self.waiting.popleft()
                if self._must_compile(k) and (self.waiting or self.running or self.taken):
                    self._leave_out(k, "its kernels are not compiled yet; see the warning")
                    continue
                if self.first is None:
                    self.first = k
                self._start(k, 0, 0.0, partial(self._try, k))
            else:
                return

    def _may_try(self) -> bool:
        """Whether there is time to try another voter; if there is none yet, in any case."""
        if not (self.taken or self.running):
            return True
        if not self.taken and self._is_short and not self.n_overdue:
            return False  # the first has all there is, until it is known what it needs
        return self.left > LEAST_SHARE * self.budget.limit

    @property
    def _is_short(self) -> bool:
        """Whether time is so short for the rows that trials are needed."""
        return self.left < self.n_rows() / ROWS_A_SECOND and self.n_rows() >= 8 * TRIALS[0]

    def _must_compile(self, k: int) -> bool:
        """Whether its kernels must be compiled first, which no other thread outruns."""
        if self.budget.limit >= COMPILATION or is_compiled(grow):
            return False
        estimator = self.training.named[k][1]
        parts = (estimator, *estimator.get_params(deep=True).values())
        ours = FastForestClassifier | FastTreeClassifier
        if not any(isinstance(one, ours) for one in parts):
            return False
        if not self.told:
            self.say(
                f"damvi's own trees must be compiled, once on this machine, and "
                f"time_limit={self.budget.limit:g} is too short for that: they have no "
                f"part. Any fit without a limit compiles them"
            )
        self.told = True
        return True

    def _give_up_last(self) -> None:
        """Of those that are not whole, the last that was taken; never the only one."""
        whole = set(self.training.whole)
        k = next(k for k in reversed(self.taken) if k not in whole)
        self._leave_out(k, "it took longer than its first fold")

    def _leave_out(self, k: int, why: str) -> None:
        self.training.leave_out(k, why)
        self.queue = deque(task for task in self.queue if task[0] != k)
        if k in self.taken:
            self.taken.remove(k)

    def _wait(self) -> None:
        """For the next result, or until it is no use to wait any longer."""
        while True:
            patience = self._patience()
            try:
                ticket, found = self.results.get(timeout=patience)
                break
            except Empty:
                if (self._patience() or 0.0) > 0:
                    continue
                if self.training.whole:
                    self._let_go()
                else:  # another may be tried beside it, and whoever comes is welcome
                    self.n_overdue, self.until = 1, None
                return
        one = self.running.pop(ticket, None)
        if one is None or self.training.named[one.k][0] in self.training.left_out:
            return  # nobody waits for it any more
        if isinstance(found, BaseException):
            raise found
        if isinstance(found, _TooSlow):
            self._too_slow(one.k, found.seconds)
        elif one.k not in self.taken:
            self._tried(one.k, found)
        else:
            took, foreseen = self.pace.get(one.k, (0.0, 0.0))
            spent = found.seconds + found.vote_seconds
            self.pace[one.k] = (took + spent, foreseen + one.expected)
            self._keep(one.k, one.fold, found)

    def _patience(self) -> float | None:
        """Seconds to wait for those that are trained now; None is as long as it takes."""
        if self.training.whole:
            return max(0.0, self.left + GRACE * self.budget.limit)
        if not self.taken and self.waiting and self.until is not None:
            return max(0.0, self.until - self.budget.clock())
        return None  # there must be one

    def _let_go(self) -> None:
        """Wait no longer for those that are trained now; their threads end on their own."""
        for one in self.running.values():
            self._leave_out(one.k, "it was not ready in time")
        self.running.clear()
        for k in {k for k, _ in self.queue}:
            self._leave_out(k, "no time left for all of its folds")
        for k in self.waiting:
            self._leave_out(k, "no time left to try it")
        self.waiting.clear()

    # Voters.

    def _try(self, k: int) -> Trained | _TooSlow:
        """The first fold of a voter, unless a trial says that there is no time for it."""
        estimator = self.training.named[k][1]
        few, some = TRIALS
        if not self._is_short or isinstance(estimator, SomeRows):
            return train_task(*self.training.task(k, 0))
        # In proportion to the rows is more than it takes, so if that is little, fine.
        took = self._trial(k, few)
        seconds = _growth([(few, took)])
        if self._is_too_long(seconds):
            # Not the first time: then libraries are loaded, and kernels compiled.
            took = min(took, self._trial(k, few))
            seconds = _growth([(few, took)])
            if self.n_rows() > 2 * some and not self._is_too_long(lambda n: took):
                seconds = _growth([(few, took), (some, self._trial(k, some))])
            if self._is_too_long(seconds):
                return _TooSlow(seconds)
        return train_task(*self.training.task(k, 0))

    def _is_too_long(self, seconds: Callable[[float], float]) -> bool:
        return self.total(seconds) > LENIENT * self.left * self.n_workers

    def _trial(self, k: int, size: int) -> float:
        name, estimator, fold, X, targets, rows, judged, *rest = self.training.task(k, 0)
        some, _ = SomeRows(estimator, size, self.training.seed).draw(targets[rows])
        share = max(1, round(len(judged) * size / len(rows)))
        begun = self.budget.clock()
        train_task(name, estimator, fold, X, targets, rows[some], judged[:share], *rest)
        return self.budget.clock() - begun

    def _too_slow(self, k: int, seconds: Callable[[float], float]) -> None:
        """Leave a voter out by what its trial said, or let it have fewer rows."""
        is_first = k == self.first
        if is_first and self.waiting and self._is_too_long(lambda n: seconds(TRIALS[0])):
            self.on_few_rows[k] = self.total(lambda n: seconds(TRIALS[0]))
            self._leave_out(k, f"too slow even on {TRIALS[0]:,} rows")
            self.first = None
            if self.left < SETTLE * self.budget.limit:
                # Nobody has time enough, it seems: the quickest of those that were tried.
                k = min(self.on_few_rows, key=self.on_few_rows.__getitem__)
                del self.training.left_out[self.training.named[k][0]]
                self.first = k
                self._with_fewer_rows(k, TRIALS[0])
            return
        share, room = 1.0, self._share(k) * self.left * self.n_workers
        least = TRIALS[not is_first]

        def of_share(n: float) -> float:
            return seconds(n * share)

        while self.total(of_share) > room and share * self.n_rows() > least:
            share /= 1.2
        if is_first or share * self.n_rows() > least:
            self._with_fewer_rows(k, max(TRIALS[0], int(share * self.n_rows())))
        else:
            total = self.total(seconds) / self.n_workers
            self._leave_out(k, f"too slow: about {total:.0f} s")

    def _share(self, k: int) -> float:
        """Of what is left, for a voter that does not get all rows: half until the first
        has its own."""
        settled = k == self.first or self.first in self.taken
        return ROWS_SHARE if settled else ROWS_SHARE / 2

    def _with_fewer_rows(self, k: int, n_rows: int) -> None:
        name, estimator = self.training.named[k]
        if isinstance(estimator, SomeRows):
            estimator = estimator.estimator
        self.training.named[k] = (name, SomeRows(estimator, n_rows))
        self.shortened.add(k)
        self._start(k, 0, 0.0, partial(self._try, k))

    def _tried(self, k: int, found: Trained) -> None:
        """Take a voter with all folds, or not, by what its first fold took and voted."""
        self.first_seconds[k] = found
        rest = [(k, fold) for fold in self.training.to_do(k) if fold != 0]
        if not self.has_time(*rest):
            total = sum(self.expected(*task) for task in rest) / self.n_workers
            share = self._share(k) * max(self.left, 0.0) / max(SAFETY * total, 1e-9)
            fewer = int(share * self._rows_used(k, 0))
            if k != self.first:
                if fewer > TRIALS[1] and not isinstance(
                    self.training.named[k][1], SomeRows
                ):
                    self._with_fewer_rows(k, fewer)
                else:
                    self._leave_out(k, f"too slow: about {total:.0f} s more")
                return
            if self._rows_used(k, 0) > TRIALS[0] and share < ROWS_SHARE:
                self._with_fewer_rows(k, max(TRIALS[0], fewer))
                return
        self.taken.append(k)
        # Those by which it is judged come first.
        self.queue.extend(sorted(rest, key=lambda task: task[1] not in FIRST_FOLDS))
        self._keep(k, 0, found)

    def _keep(self, k: int, fold: int, found: Trained) -> None:
        whole = self.training.keep(k, fold, found)
        if self.screens and fold in FIRST_FOLDS and k != self.first:
            judged = [j for j in self.taken if self._is_judged(j)]
            if k in judged:
                shares = self.judge.shares_so_far(self.training.votes, judged)
                if shares[judged.index(k)] < HOPELESS:
                    self._leave_out(k, NO_WEIGHT)
                    return
        self.follow(self.training, k, whole)

    def _is_judged(self, k: int) -> bool:
        return all((k, fold) in self.training.done for fold in FIRST_FOLDS)


def _growth(points: Sequence[tuple[int, float]]) -> Callable[[float], float]:
    """Seconds by rows, from trials: in proportion, on a line, or by a power above 1."""
    (n, seconds) = points[-1]
    if len(points) == 1:
        return lambda rows: seconds * rows / n
    (fewer, least) = points[0]
    power = np.log(max(seconds, 1e-9) / max(least, 1e-9)) / np.log(n / fewer)
    if power > 1.2:
        return lambda rows: float(seconds * (rows / n) ** min(power, 3.0))
    slope = max(seconds - least, 0.0) / (n - fewer)
    return lambda rows: seconds + slope * (rows - n)
