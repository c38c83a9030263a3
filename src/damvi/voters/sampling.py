"""Which rows each voter is trained on, and how many times: the bootstrap, by two methods.

:class:`BootstrapSampling` draws a given number of rows (or, without replacement, a
subsample); :class:`PoissonSampling` decides row by row, so that parts of a table can be
drawn from wherever they are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..folds import read_groups
from ..labels import ClassTotals

DRAWS_AT_A_TIME = 2**16
GOLDEN = 0x9E3779B97F4A7C15
SEVERAL = 16.0
"""A row that is drawn more often than this on average is drawn in several goes."""
MOST_STEPS = 80
"""Draws of a row in one go, at most: at that rate, one in 10**29 would be more."""


class Sampling(ABC):
    """The sample of each voter: a function of (seed, voter) and of nothing else.

    So voters can be trained in any order and anywhere, more can be added later, and
    who was out of bag need not be stored.
    """

    n_rows: int
    seed: int
    replace: bool
    """Whether voters see how often a row was drawn, or else its own weight."""

    @property
    @abstractmethod
    def most_rows(self) -> int:
        """As many different rows as a voter is likely to see."""

    @abstractmethod
    def _times(self, voter: int) -> NDArray[Any]:
        """How many times each row was drawn, in as few bytes as that takes."""

    def counts(self, voter: int) -> NDArray[np.intp]:
        """How many times each row was drawn for this voter."""
        return self._times(voter).astype(np.intp, copy=False)

    def sample(self, voter: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The rows drawn for this voter, in order, and how many times each."""
        times = self._times(voter)
        rows = np.flatnonzero(times > 0)
        return rows, times[rows].astype(np.intp, copy=False)

    def out_of_bag(self, voter: int) -> NDArray[np.bool_]:
        """The rows that this voter has not seen."""
        return self._times(voter) == 0

    def out_of_bag_bits(self, n_voters: int) -> NDArray[np.uint8]:
        """A bit for each voter and row that it has not seen, (K, n / 8), rows packed."""
        bits = np.empty((n_voters, -(-self.n_rows // 8)), dtype=np.uint8)
        for k in range(n_voters):
            bits[k] = np.packbits(self.out_of_bag(k))
        return bits

    def random_state(self, voter: int) -> int:
        """A seed for the voter's own randomness, apart from its sample."""
        return random_state_of(self.seed, voter)


@dataclass(frozen=True, eq=False)
class Stratum:
    """Rows to draw from together: the whole table, or some of it."""

    n_rows: int
    n_draws: int
    rows: NDArray[np.intp] | None = None
    """Their numbers; None for the whole table."""
    cumulative: NDArray[np.float64] | None = None
    """Running sum of their weights; None when they are all equal."""

    def draw(self, rng: np.random.Philox, replace: bool) -> Iterator[NDArray[np.intp]]:
        """Numbers of rows, repeated as often as they were drawn, a few at a time."""
        for picks in self._picks(rng, replace):
            yield picks if self.rows is None else self.rows[picks]

    def _picks(self, rng: np.random.Philox, replace: bool) -> Iterator[NDArray[np.intp]]:
        if not replace:
            keys = rng.random_raw(self.n_rows)
            everyone = self.n_draws == self.n_rows
            order = np.arange(self.n_rows) if everyone else np.argsort(keys, kind="stable")
            yield order[: self.n_draws]
        elif self.cumulative is None:
            for start in range(0, self.n_draws, DRAWS_AT_A_TIME):
                heights = _uniform(rng, min(DRAWS_AT_A_TIME, self.n_draws - start))
                yield (heights * self.n_rows).astype(np.intp)
        else:
            heights = _uniform(rng, self.n_draws)
            heights.sort()  # the searches then walk through memory in order
            heights *= self.cumulative[-1]
            picks = np.searchsorted(self.cumulative, heights, side="right")
            yield picks.clip(max=self.n_rows - 1)


@dataclass(frozen=True, eq=False)
class BootstrapSampling(Sampling):
    """A fixed number of draws for each voter, with replacement or without.

    Examples
    --------
    >>> import numpy as np
    >>> sampling = BootstrapSampling.plan(np.array([0, 0, 0, 1]), max_samples=1.0, seed=0)
    >>> sampling.counts(voter=3)
    array([0, 2, 1, 1])
    """

    n_rows: int
    strata: tuple[Stratum, ...]
    replace: bool
    seed: int

    @classmethod
    def plan(
        cls,
        targets: NDArray[Any],
        *,
        max_samples: float | int,
        seed: int,
        replace: bool = True,
        stratified: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> BootstrapSampling:
        """Samples of rows of these classes.

        ``max_samples`` is a fraction of the number of rows, or a number of draws. With
        replacement, ``sample_weight`` drives the draw; without, it does not, but rows
        of weight 0 are never drawn. ``stratified`` draws within each class, in
        proportion to its rows and at least one.
        """
        n = len(targets)
        n_draws = _n_draws(max_samples, n)
        if not replace and n_draws > n:
            raise ValueError(
                f"max_samples={max_samples} asks for more draws without replacement "
                f"than there are rows ({n}); lower it, or set bootstrap=True"
            )
        if not stratified and sample_weight is None:
            return cls(n, (Stratum(n, n_draws),), replace, seed)
        drawable = np.ones(n, bool) if sample_weight is None else sample_weight > 0
        strata = []
        classes = [targets == number for number in np.unique(targets)]
        for part in classes if stratified else [np.ones(n, bool)]:
            rows = np.flatnonzero(part & drawable)
            share = max(1, round(n_draws * int(part.sum()) / n))
            weights = np.ones(1) if sample_weight is None else sample_weight[rows]
            strata.append(
                Stratum(
                    n_rows=len(rows),
                    n_draws=share if replace else min(share, len(rows)),
                    rows=rows,
                    cumulative=np.cumsum(weights) if np.ptp(weights) > 0 else None,
                )
            )
        return cls(n, tuple(strata), replace, seed)

    @property
    def most_rows(self) -> int:
        """As many rows as a voter can see."""
        return min(self.n_rows, self._n_draws)

    @property
    def _n_draws(self) -> int:
        return sum(stratum.n_draws for stratum in self.strata)

    def out_of_bag(self, voter: int) -> NDArray[np.bool_]:
        """The rows that this voter has not seen."""
        unseen = np.ones(self.n_rows, dtype=np.bool_)
        for picks in self._drawn(voter):
            unseen[picks] = False
        return unseen

    def _times(self, voter: int) -> NDArray[np.uint8] | NDArray[np.intp]:
        """The counts in a byte each, which the caches hold longer, or as they need."""
        times = np.zeros(self.n_rows, dtype=np.uint8)
        for picks in self._drawn(voter):
            np.add.at(times, picks, np.uint8(1))
        if times.sum(dtype=np.int64) == self._n_draws:
            return times
        # Some row was drawn 256 times or more, and its byte went round.
        return np.bincount(np.concatenate([*self._drawn(voter)]), minlength=self.n_rows)

    def _drawn(self, voter: int) -> Iterator[NDArray[np.intp]]:
        """The rows drawn for this voter, a few at a time."""
        rng = _bits(self.seed, voter, purpose=0)
        for stratum in self.strata:
            yield from stratum.draw(rng, self.replace)


@dataclass(frozen=True, eq=False)
class PoissonSampling(Sampling):
    """A Poisson bootstrap: each row's count depends on (seed, voter, row number) alone.

    A row of weight w is drawn a Poisson number of times, on average as often as in a
    bootstrap of ``max_samples``. So the sample of any part of a table is the same on
    whatever machine the part is, and a table and its parts agree.

    Attributes
    ----------
    n_rows : int
        Rows of this part.
    rates : ndarray of shape (C,)
        Average number of draws of a row of weight 1, class by class.
    targets : ndarray of uint8, shape (n_rows,), or None
        The rows' class numbers; None when all have one rate.
    weights : ndarray of shape (n_rows,), or None
        From 0 to 1; None when they are all 1.
    seed : int
    start : int
        The number of the part's first row in the whole table.

    Examples
    --------
    >>> import numpy as np
    >>> sampling = PoissonSampling.plan(np.zeros(6, np.uint8), max_samples=1.0, seed=0)
    >>> sampling.counts(voter=3)
    array([2, 1, 0, 0, 1, 1])
    >>> PoissonSampling(3, sampling.rates, None, None, seed=0, start=2).counts(voter=3)
    array([0, 0, 1])
    """

    n_rows: int
    rates: NDArray[np.float64]
    targets: NDArray[np.uint8] | None
    weights: NDArray[np.float64] | None
    seed: int
    start: int = 0
    replace: bool = field(default=True, init=False)

    @classmethod
    def plan(
        cls,
        targets: NDArray[Any],
        *,
        max_samples: float | int,
        seed: int,
        stratified: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
        totals: ClassTotals | None = None,
    ) -> PoissonSampling:
        """Samples of rows of these classes.

        ``totals`` is that of the whole table, if these rows are but a part of it.
        """
        targets = targets.astype(np.uint8, copy=False)
        if totals is None:
            totals = ClassTotals.of(targets, 1 + int(targets.max(initial=0)), sample_weight)
        rates = poisson_rates(totals, max_samples, stratified)
        return cls(
            n_rows=len(targets),
            rates=rates,
            targets=targets if len(rates) > 1 else None,
            weights=sample_weight,
            seed=seed,
        )

    @property
    def most_rows(self) -> int:
        """Hardly ever does a voter see more."""
        if self.weights is None and self.targets is None:
            mean = self.n_rows * min(1.0, float(self.rates[0]))
        else:
            mean = float(np.minimum(self._row_rates(), 1).sum())
        return min(self.n_rows, math.ceil(mean + 8 * math.sqrt(mean) + 8))

    def _times(self, voter: int) -> NDArray[np.uint8] | NDArray[np.uint32]:
        from ._poisson import draw_by_class, draw_by_weight  # imports numba

        key = np.uint64(_mix(_mix(self.seed + GOLDEN) + voter))
        if self.weights is None and self.rates.max() <= SEVERAL:
            times = np.empty(self.n_rows, np.uint8)
            targets = np.zeros(0, np.uint8) if self.targets is None else self.targets
            draw_by_class(key, self.start, targets, _cumulative(self.rates), times)
            return times
        many = np.empty(self.n_rows, np.uint32)
        draw_by_weight(key, self.start, self._row_rates(), SEVERAL, many)
        return many

    def _row_rates(self) -> NDArray[np.float64]:
        """How often each row is drawn on average."""
        rates = np.full(self.n_rows, self.rates[0])
        if self.targets is not None:
            rates = self.rates[self.targets]
        return rates if self.weights is None else rates * self.weights


@dataclass(frozen=True, eq=False)
class GroupSampling(Sampling):
    """Whole groups: a row is drawn as often as its group is.

    So a voter that has not seen a row has seen no other of its group. A group counts as of
    the rarest class that is in it, for draws by class.

    Attributes
    ----------
    drawn : Sampling
        Of groups in place of rows.
    group_of : ndarray of shape (n,)
        The number of each row's group.
    weights : ndarray of shape (n,), or None
        By which the count of a row is multiplied, and rounded up or down at random, so that
        on average it is in proportion. Without replacement, rows of weight 0 are left out,
        and no more.

    Examples
    --------
    >>> import numpy as np
    >>> targets, groups = np.array([0, 1, 0, 0, 0, 1]), ["a", "a", "a", "b", "c", "d"]
    >>> plan = BootstrapSampling.plan
    >>> GroupSampling.plan(targets, groups, plan, max_samples=1.0, seed=1).counts(voter=0)
    array([2, 2, 2, 1, 0, 1])
    """

    n_rows: int
    seed: int
    replace: bool
    drawn: Sampling
    group_of: NDArray[np.intp]
    weights: NDArray[Any] | None

    @classmethod
    def plan(
        cls,
        targets: NDArray[Any],
        groups: Any,
        plan: Callable[..., Sampling],
        *,
        max_samples: float | int,
        sample_weight: NDArray[np.float64] | None = None,
        **settings: Any,
    ) -> GroupSampling:
        """Samples of groups by the ``plan`` of another sampling."""
        group_of, classes = read_groups(groups, targets)
        if isinstance(max_samples, (int, np.integer)):
            max_samples = max(1, round(int(max_samples) * len(classes) / len(targets)))
        drawn = plan(classes, max_samples=max_samples, **settings)
        weights: Any = None
        if sample_weight is not None:
            mean = sample_weight.mean()
            weights = sample_weight / mean if drawn.replace else sample_weight > 0
        n, seed, replaced = len(targets), drawn.seed, drawn.replace
        return cls(n, seed, replaced, drawn, group_of, weights)

    @property
    def most_rows(self) -> int:
        """A guess: groups may be of any size."""
        share = self.drawn.most_rows / self.drawn.n_rows
        return min(self.n_rows, math.ceil(1.1 * share * self.n_rows))

    def out_of_bag(self, voter: int) -> NDArray[np.bool_]:
        """The rows of groups that this voter has not seen, whatever the rows weigh."""
        return self.drawn.out_of_bag(voter)[self.group_of]

    def _times(self, voter: int) -> NDArray[np.intp]:
        times = self.drawn.counts(voter)[self.group_of]
        if self.weights is None:
            return times
        wanted = times * self.weights
        floor = np.floor(wanted)
        # Not the bits of any voter's own draw: seeds are below 2**32.
        bits = _bits(self.seed + 2**32, voter, purpose=0)
        up = _uniform(bits, self.n_rows) < wanted - floor
        return (floor + up).astype(np.intp)


def poisson_rates(
    totals: ClassTotals, max_samples: float | int, stratified: bool
) -> NDArray[np.float64]:
    """Average number of draws of a row of weight 1: one for all, or one for each class."""
    n, mass = totals.n_rows, totals.weight
    n_draws = _n_draws(max_samples, n)
    if not stratified:
        return np.array([n_draws / mass.sum()])
    shares = [max(1, round(n_draws * rows / n)) for rows in totals.rows.tolist()]
    return np.divide(shares, mass, out=np.zeros(len(mass)), where=mass > 0)


def random_state_of(seed: int, voter: int) -> int:
    """A seed for the voter's own randomness."""
    return int(_bits(seed, voter, purpose=1).random_raw() >> 33)


def _n_draws(max_samples: float | int, n_rows: int) -> int:
    is_count = isinstance(max_samples, (int, np.integer))
    return int(max_samples) if is_count else max(1, round(max_samples * n_rows))


def _bits(seed: int, voter: int, purpose: int) -> np.random.Philox:
    """Raw bits of a counter-based generator: the same in every release of numpy."""
    return np.random.Philox(key=np.array([seed, 2 * voter + purpose], np.uint64))


def _uniform(rng: np.random.Philox, n: int) -> NDArray[np.float64]:
    """Random numbers from 0 to 1, of 53 bits each."""
    bits = rng.random_raw(n) >> np.uint64(11)
    return np.ldexp(bits.astype(np.float64), -53)


def _cumulative(rates: NDArray[np.float64]) -> NDArray[np.uint64]:
    """For each rate, the 53-bit numbers below which 0, 1, ... draws are meant, (C, J)."""
    table = []
    for rate in rates.tolist():
        chance = below = math.exp(-rate)
        steps = [below]
        for k in range(1, MOST_STEPS):
            chance *= rate / k
            below = min(below + chance, 1.0)
            steps.append(below)
        table.append([math.floor(math.ldexp(step, 53)) for step in steps])
    return np.array(table, np.uint64)


def _mix(x: int) -> int:
    """Every bit of a number spread over all (the finish of splitmix64)."""
    mask = (1 << 64) - 1
    x &= mask
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & mask
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & mask
    return x ^ (x >> 31)
