"""Time limits for the training of a pool.

Voters are tried in the order of the pool. The time that a voter takes on its first fold
predicts its total training time, and its votes on the first folds show whether it would
have any weight.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn import config_context, get_config
from sklearn.metrics import average_precision_score

from .._compat import is_compiled
from .._kernels import giving_memory_back, one_blas_thread
from ..votes import Votes
from .estimators import SomeRows
from .pool import (
    ALL_ROWS,
    FIRST_FOLDS,
    NO_WEIGHT,
    Follower,
    Judge,
    Trained,
    Training,
    train_task,
)
from .trees.estimators import FastForestClassifier, FastTreeClassifier
from .trees.grow import grow

TRIALS = (1000, 4000)
"""Sample sizes for timing a voter before it is trained on many more rows. A voter that
does not get all rows gets at least this many: the first voter TRIALS[0], others TRIALS[1].
"""
ROWS_A_SECOND = 100
"""No trial is needed if the time left exceeds the rows of a fold divided by this."""
LENIENT = 1.5
"""Tolerance factor for the time that a trial predicts, since it is a rough estimate."""
SAFETY = 1.1
"""Safety factor for the time of the other folds, predicted from the first fold."""
ROWS_SHARE = 0.6
"""Share of the time left that a voter trained on a subset of the rows may use."""
LEAST_SHARE = 0.15
"""Share of the time limit below which no further voter is tried."""
SETTLE = 0.5
"""Share of the time limit: with less left and no voter fast enough so far, the fastest of
those tried is taken."""
PATIENCE = 0.4
"""Share of the time after which others are tried while the first voter still trains."""
GRACE = 0.05
"""Share of the time limit by which trainings that are nearly done may exceed it."""
REST = 15
"""Time reserved for weights and threshold, in average-precision computations on all rows.
"""
LEAST_REST = 0.3
"""Minimum time reserved for weights and threshold, in seconds."""
CALIBRATION = 10
"""Assumed time of a voter's calibration, in the same unit, until one has been measured."""
COMPILATION = 120
"""Time limit in seconds below which built-in trees are left out if not yet compiled."""


@dataclass(frozen=True)
class Budget:
    """A time limit in seconds of wall time, counted from ``start``.

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
    """Result of a failed trial: the predicted seconds of a training, by number of rows."""

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
    follow: Follower | None,
    *,
    say: Callable[[str], None],
) -> None:
    """Train as many voters as time allows, in threads.

    At least one voter is trained, if necessary on fewer rows, with a warning through
    ``say``. Voters left out are recorded in ``training.left_out``. A training that has
    started cannot be stopped: if it takes much longer than predicted, it is no longer
    waited for, and its result is discarded.

    Parameters
    ----------
    training : Training
    budget : Budget
    judge : Judge
    n_jobs : int, optional
    follow : callable or None
        Called after each training; see :data:`~damvi.voters.pool.Follower`.
    say : callable
        Called with the text of each warning.
    """
    with one_blas_thread(), giving_memory_back(training.is_large):
        _Schedule(training, budget, judge, effective_n_jobs(n_jobs), follow, say).run()


@dataclass(eq=False)
class _Schedule:
    """Decides whether there is enough time for the next voter of the list.

    The remaining folds of accepted voters come first, one voter after the other. When a
    thread is idle, the next voter is tried on its first fold.
    """

    training: Training
    budget: Budget
    judge: Judge
    n_workers: int
    follow: Follower | None
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
        self.unit = seconds_of_score(self.judge.like)
        self.screens = self.judge.can_screen
        self.until = self.budget.clock() + PATIENCE * self.budget.left
        self.waiting.extend(range(len(self.training.named)))
        while True:
            self._start_some()
            if not self.running:
                break
            self._wait()
        for k in self.waiting:
            self.training.leave_out(k, "no time left")
        whole = [self.training.named[k] for k in self.training.whole if k in self.shortened]
        if whole:
            told = ", ".join(f"{name!r} on {some.max_rows:,}" for name, some in whole)
            self.say(
                f"time_limit={self.budget.limit:g} is short for {self.n_rows(ALL_ROWS):,} "
                f"rows: some voters were trained on fewer ({told}), keeping all rows of "
                f"rare classes"
            )

    # Time estimates.

    @property
    def left(self) -> float:
        """Seconds left for training, after the time reserved for the steps that follow."""
        return self.budget.left - LEAST_REST - REST * self.unit

    def expected(self, k: int, fold: int) -> float:
        """Predicted seconds of a task, from the first fold and the folds since."""
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
        """Whether all accepted tasks and these can be finished in time."""
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
        # The last task may run while all other threads are idle.
        longest = max([*tasks, *begun], default=0.0)
        needed = work / self.n_workers + longest * (1 - 1 / self.n_workers)
        return SAFETY * needed <= self.left

    def n_rows(self, fold: int = 0) -> int:
        return len(self.training.rows_of[fold])

    def total(self, seconds: Callable[[float], float]) -> float:
        """Seconds to train a voter on all folds, given the seconds by number of rows."""
        return sum(seconds(len(rows)) for rows in self.training.rows_of.values())

    # Threads.

    def _start(self, k: int, fold: int, expected: float, call: Callable[[], Any]) -> None:
        self.n_started += 1
        ticket, config = self.n_started, get_config()

        def work() -> None:
            try:
                with config_context(**config):  # scikit-learn's config is thread-local
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
        """Whether there is time to try another voter; always if there is none yet."""
        if not (self.taken or self.running):
            return True
        if not self.taken and self._is_short and not self.n_overdue:
            return False  # the first voter may need all the time; wait until it is known
        return self.left > LEAST_SHARE * self.budget.limit

    @property
    def _is_short(self) -> bool:
        """Whether time is so short for this many rows that trials are needed."""
        return self.left < self.n_rows() / ROWS_A_SECOND and self.n_rows() >= 8 * TRIALS[0]

    def _must_compile(self, k: int) -> bool:
        """Whether the voter's kernels must be compiled first, which blocks all threads."""
        if self.budget.limit >= COMPILATION or is_compiled(grow):
            return False
        estimator = self.training.named[k][1]
        parts = (estimator, *estimator.get_params(deep=True).values())
        ours = FastForestClassifier | FastTreeClassifier
        if not any(isinstance(one, ours) for one in parts):
            return False
        if not self.told:
            self.say(
                f"damvi's built-in trees must be compiled once on this machine, and "
                f"time_limit={self.budget.limit:g} is too short for that, so they are "
                f"left out; any fit without a time limit compiles them"
            )
        self.told = True
        return True

    def _give_up_last(self) -> None:
        """Leave out the voter accepted last that is not fully trained."""
        whole = set(self.training.whole)
        k = next(k for k in reversed(self.taken) if k not in whole)
        self._leave_out(k, "later folds took longer than the first")

    def _leave_out(self, k: int, why: str) -> None:
        self.training.leave_out(k, why)
        self.queue = deque(task for task in self.queue if task[0] != k)
        if k in self.taken:
            self.taken.remove(k)

    def _wait(self) -> None:
        """Wait for the next result, or until there is no time left to wait."""
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
                else:  # try another voter beside it, and take whichever is done first
                    self.n_overdue, self.until = 1, None
                return
        one = self.running.pop(ticket, None)
        if one is None or self.training.named[one.k][0] in self.training.left_out:
            return  # its voter has been left out meanwhile
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
        """Seconds to wait for the running trainings; None to wait until they are done."""
        if self.training.whole:
            return max(0.0, self.left + GRACE * self.budget.limit)
        if not self.taken and self.waiting and self.until is not None:
            return max(0.0, self.until - self.budget.clock())
        return None  # at least one voter is needed

    def _let_go(self) -> None:
        """Stop waiting for running trainings; their threads end on their own."""
        for one in self.running.values():
            self._leave_out(one.k, "not trained in time")
        self.running.clear()
        for k in {k for k, _ in self.queue}:
            self._leave_out(k, "no time left for all folds")
        for k in self.waiting:
            self._leave_out(k, "no time left")
        self.waiting.clear()

    # Voters.

    def _try(self, k: int) -> Trained | _TooSlow:
        """Train the first fold of a voter, unless a trial shows that time is too short."""
        estimator = self.training.named[k][1]
        few, some = TRIALS
        if not self._is_short or isinstance(estimator, SomeRows):
            return train_task(*self.training.task(k, 0))
        # Time proportional to the rows is an overestimate: if that fits, all is well.
        took = self._trial(k, few)
        seconds = _growth([(few, took)])
        if self._is_too_long(seconds):
            # Discard the first time, which includes imports and compilation.
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
        """Give a voter fewer rows, or leave it out, by the time that its trial predicts."""
        is_first = k == self.first
        if is_first and self.waiting and self._is_too_long(lambda n: seconds(TRIALS[0])):
            self.on_few_rows[k] = self.total(lambda n: seconds(TRIALS[0]))
            self._leave_out(k, f"too slow even on {TRIALS[0]:,} rows")
            self.first = None
            if self.left < SETTLE * self.budget.limit:
                # No voter seems fast enough: take the fastest of those tried.
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
        """Share of the time left for a voter with fewer rows, halved until the first voter
        is accepted."""
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
        """Accept a voter or leave it out, by the time that its first fold took."""
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
        # The folds for early stopping come first.
        self.queue.extend(sorted(rest, key=lambda task: task[1] not in FIRST_FOLDS))
        self._keep(k, 0, found)

    def _keep(self, k: int, fold: int, found: Trained) -> None:
        voted = self.training.keep(k, fold, found)
        if self.screens and fold in FIRST_FOLDS and k != self.first:
            judged = [j for j in self.taken if self._is_judged(j)]
            if k in judged and k in self.judge.hopeless(self.training.votes, judged):
                self._leave_out(k, NO_WEIGHT)
                return
        if voted:
            self.judge.calibrate(self.training.votes, k)
        if self.follow is not None:
            self.follow(self.training, k, voted)

    def _is_judged(self, k: int) -> bool:
        return all((k, fold) in self.training.done for fold in FIRST_FOLDS)


def seconds_of_score(like: Votes) -> float:
    """Seconds to compute the average precision on all rows, for all classes but one."""
    vote = np.random.RandomState(0).uniform(size=len(like.targets))
    start = time.perf_counter()
    average_precision_score(like.targets == like.targets[0], vote)
    return (time.perf_counter() - start) * (like.n_classes - 1)


def _growth(points: Sequence[tuple[int, float]]) -> Callable[[float], float]:
    """Seconds by number of rows, from trials: proportional, linear, or a power above 1."""
    (n, seconds) = points[-1]
    if len(points) == 1:
        return lambda rows: seconds * rows / n
    (fewer, least) = points[0]
    power = np.log(max(seconds, 1e-9) / max(least, 1e-9)) / np.log(n / fewer)
    if power > 1.2:
        return lambda rows: float(seconds * (rows / n) ** min(power, 3.0))
    slope = max(seconds - least, 0.0) / (n - fewer)
    return lambda rows: seconds + slope * (rows - n)
