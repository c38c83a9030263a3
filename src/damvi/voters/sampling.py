"""The training sample of each voter: which rows, and how often each of them.

:class:`BootstrapSampling` draws a given number of rows, with or without replacement;
:class:`PoissonSampling` draws each row independently, so that parts of a table can be
sampled separately.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._kernels import inlined, kernel
from ..folds import read_groups
from ..labels import ClassTotals

DRAWS_AT_A_TIME = 2**16
SEVERAL = 16.0
"""Rows with a higher mean count than this are drawn in several parts."""
MOST_STEPS = 80
"""Maximum count of a row per part, exceeded with probability 1e-29 at this rate."""
# Of splitmix64: the step of its state, and the factors and shifts that mix the bits.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S11, S27, S30, S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)


class Sampling(ABC):
    """The sample of each voter, which depends only on the seed and the voter's number.

    So voters can be trained in any order and anywhere, more can be added later, and it
    need not be stored which rows are out of bag.
    """

    n_rows: int
    seed: int
    replace: bool
    """Whether voters are weighted by counts; if not, by the rows' own weights."""

    @property
    @abstractmethod
    def most_rows(self) -> int:
        """Maximum number of distinct rows that a voter is likely to see."""

    @abstractmethod
    def _times(self, voter: int) -> NDArray[Any]:
        """How many times each row was drawn, in as few bytes as possible."""

    def counts(self, voter: int) -> NDArray[np.intp]:
        """How many times each row was drawn for this voter."""
        return self._times(voter).astype(np.intp, copy=False)

    def sample(self, voter: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The rows drawn for this voter, in order, and how many times each."""
        times = self._times(voter)
        rows = np.flatnonzero(times > 0)
        return rows, times[rows].astype(np.intp, copy=False)

    def out_of_bag(self, voter: int) -> NDArray[np.bool_]:
        """Mask of the rows that are not in this voter's sample."""
        return self._times(voter) == 0

    def out_of_bag_bits(self, n_voters: int) -> NDArray[np.uint8]:
        """Bits (K, n / 8), packed by row: set if the row is not in the voter's sample."""
        bits = np.empty((n_voters, -(-self.n_rows // 8)), dtype=np.uint8)
        for k in range(n_voters):
            bits[k] = np.packbits(self.out_of_bag(k))
        return bits

    def random_state(self, voter: int) -> int:
        """A seed for the training of the voter, independent of its sample."""
        return random_state_of(self.seed, voter)


@dataclass(frozen=True, eq=False)
class Stratum:
    """Rows that are sampled together: the whole table, or a part of it."""

    n_rows: int
    n_draws: int
    rows: NDArray[np.intp] | None = None
    """Their row numbers; None for the whole table."""
    cumulative: NDArray[np.float64] | None = None
    """Cumulative sum of their weights; None if all are equal."""

    def draw(self, rng: np.random.Philox, replace: bool) -> Iterator[NDArray[np.intp]]:
        """Row numbers, repeated as often as they were drawn, in blocks."""
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
            heights.sort()  # so that the searches access memory in order
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
        """Plan the samples of rows of these classes.

        ``max_samples`` is a fraction of the number of rows, or a number of draws. With
        replacement, rows are drawn in proportion to ``sample_weight``; without, uniformly,
        except for rows of weight 0. ``stratified`` samples each class separately, in
        proportion to its rows but at least one.
        """
        n = len(targets)
        n_draws = _n_draws(max_samples, n)
        if not replace and n_draws > n:
            raise ValueError(
                f"max_samples={max_samples} is more than the {n} rows, which is impossible "
                f"without replacement; reduce it, or set bootstrap=True"
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
        """Maximum number of distinct rows that a voter can see."""
        return min(self.n_rows, self._n_draws)

    @property
    def _n_draws(self) -> int:
        return sum(stratum.n_draws for stratum in self.strata)

    def out_of_bag(self, voter: int) -> NDArray[np.bool_]:
        """Mask of the rows that are not in this voter's sample."""
        unseen = np.ones(self.n_rows, dtype=np.bool_)
        for picks in self._drawn(voter):
            unseen[picks] = False
        return unseen

    def _times(self, voter: int) -> NDArray[np.uint8] | NDArray[np.intp]:
        """Counts in one byte each, which is faster, or in more if needed."""
        times = np.zeros(self.n_rows, dtype=np.uint8)
        for picks in self._drawn(voter):
            np.add.at(times, picks, np.uint8(1))
        if times.sum(dtype=np.int64) == self._n_draws:
            return times
        # Some row was drawn 256 times or more, and its byte overflowed.
        return np.bincount(np.concatenate([*self._drawn(voter)]), minlength=self.n_rows)

    def _drawn(self, voter: int) -> Iterator[NDArray[np.intp]]:
        """The rows drawn for this voter, in blocks."""
        rng = _bits(self.seed, voter, purpose=0)
        for stratum in self.strata:
            yield from stratum.draw(rng, self.replace)


@dataclass(frozen=True, eq=False)
class PoissonSampling(Sampling):
    """A Poisson bootstrap: a row's count depends only on (seed, voter, row number).

    A row of weight w is drawn a Poisson number of times, with the same mean as in a
    bootstrap of ``max_samples``. So the sample of a part of a table is the same on any
    machine, and the same as in the sample of the whole table.

    Attributes
    ----------
    n_rows : int
        Number of rows of this part.
    rates : ndarray of shape (C,)
        Mean count of a row of weight 1, for each class.
    targets : ndarray of uint8, shape (n_rows,), or None
        Class numbers of the rows; None if all classes have the same rate.
    weights : ndarray of shape (n_rows,), or None
        Weights in [0, 1]; None if all are 1.
    seed : int
    start : int
        Number of this part's first row in the whole table.

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
        """Plan the samples of rows of these classes.

        ``totals`` are those of the whole table, if these rows are only a part of it.
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
        """Number of distinct rows that a voter hardly ever exceeds."""
        if self.weights is None and self.targets is None:
            mean = self.n_rows * min(1.0, float(self.rates[0]))
        else:
            mean = float(np.minimum(self._row_rates(), 1).sum())
        return min(self.n_rows, math.ceil(mean + 8 * math.sqrt(mean) + 8))

    def _times(self, voter: int) -> NDArray[np.uint8] | NDArray[np.uint32]:
        key = np.uint64(_mix(_mix(self.seed + int(GOLDEN)) + voter))
        if self.weights is None and self.rates.max() <= SEVERAL:
            times = np.empty(self.n_rows, np.uint8)
            targets = np.zeros(0, np.uint8) if self.targets is None else self.targets
            draw_by_class(key, self.start, targets, _cumulative(self.rates), times)
            return times
        many = np.empty(self.n_rows, np.uint32)
        draw_by_weight(key, self.start, self._row_rates(), SEVERAL, many)
        return many

    def _row_rates(self) -> NDArray[np.float64]:
        """Mean count of each row."""
        rates = np.full(self.n_rows, self.rates[0])
        if self.targets is not None:
            rates = self.rates[self.targets]
        return rates if self.weights is None else rates * self.weights


@dataclass(frozen=True, eq=False)
class GroupSampling(Sampling):
    """Samples of whole groups: a row is drawn as often as its group.

    So out-of-bag votes on a row come from voters that have seen no row of its group. In
    stratified samples, the class of a group is the rarest one in it.

    Attributes
    ----------
    drawn : Sampling
        The sampling of groups, in place of rows.
    group_of : ndarray of shape (n,)
        Group number of each row.
    weights : ndarray of shape (n,), or None
        Factors of the counts, which are then rounded up or down at random, so that the mean
        is exact. Without replacement, they only exclude rows of weight 0.

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
        """Plan the samples of groups by the ``plan`` of another sampling."""
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
        """An estimate, since groups may be of any size."""
        share = self.drawn.most_rows / self.drawn.n_rows
        return min(self.n_rows, math.ceil(1.1 * share * self.n_rows))

    def out_of_bag(self, voter: int) -> NDArray[np.bool_]:
        """Mask of the rows of groups not in this voter's sample, whatever their weight."""
        return self.drawn.out_of_bag(voter)[self.group_of]

    def _times(self, voter: int) -> NDArray[np.intp]:
        times = self.drawn.counts(voter)[self.group_of]
        if self.weights is None:
            return times
        wanted = times * self.weights
        floor = np.floor(wanted)
        # Different from the bits of any voter's own sample, since seeds are below 2**32.
        bits = _bits(self.seed + 2**32, voter, purpose=0)
        up = _uniform(bits, self.n_rows) < wanted - floor
        return (floor + up).astype(np.intp)


def poisson_rates(
    totals: ClassTotals, max_samples: float | int, stratified: bool
) -> NDArray[np.float64]:
    """Mean count of a row of weight 1: one for all rows, or one for each class."""
    n, mass = totals.n_rows, totals.weight
    n_draws = _n_draws(max_samples, n)
    if not stratified:
        return np.array([n_draws / mass.sum()])
    shares = [max(1, round(n_draws * rows / n)) for rows in totals.rows.tolist()]
    return np.divide(shares, mass, out=np.zeros(len(mass)), where=mass > 0)


def random_state_of(seed: int, voter: int) -> int:
    """A seed for the training of the voter."""
    return int(_bits(seed, voter, purpose=1).random_raw() >> 33)


def _n_draws(max_samples: float | int, n_rows: int) -> int:
    is_count = isinstance(max_samples, (int, np.integer))
    return int(max_samples) if is_count else max(1, round(max_samples * n_rows))


def _bits(seed: int, voter: int, purpose: int) -> np.random.Philox:
    """Raw bits of a counter-based generator, the same in every release of numpy."""
    return np.random.Philox(key=np.array([seed, 2 * voter + purpose], np.uint64))


def _uniform(rng: np.random.Philox, n: int) -> NDArray[np.float64]:
    """Uniform random numbers in [0, 1), of 53 bits each."""
    bits = rng.random_raw(n) >> np.uint64(11)
    return np.ldexp(bits.astype(np.float64), -53)


def _cumulative(rates: NDArray[np.float64]) -> NDArray[np.uint64]:
    """For each rate, the cumulative distribution of counts as 53-bit integers, (C, J)."""
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
    """Mix the bits of a number (the finaliser of splitmix64)."""
    mask = (1 << 64) - 1
    x &= mask
    x = (x ^ (x >> 30)) * int(FIRST) & mask
    x = (x ^ (x >> 27)) * int(SECOND) & mask
    return x ^ (x >> 31)


@inlined
def bits_of(key: Any, row: Any) -> Any:
    """53 random bits for a row, by splitmix64 with a counter as its state."""
    x = key + np.uint64(row) * GOLDEN
    x = (x ^ (x >> S30)) * FIRST
    x = (x ^ (x >> S27)) * SECOND
    return (x ^ (x >> S31)) >> S11


@kernel
def draw_by_class(key: Any, start: Any, targets: Any, below: Any, times: Any) -> None:
    """Draw the count of each row by the rate of its class (the only one if no targets)."""
    longest = below.shape[1]
    one_rate = len(targets) == 0
    for i in range(len(times)):
        bits = bits_of(key, start + i)
        c = 0 if one_rate else targets[i]
        n = 0
        while n < longest and bits >= below[c, n]:
            n += 1
        times[i] = n


@kernel
def draw_by_weight(key: Any, start: Any, rates: Any, several: Any, times: Any) -> None:
    """Draw the count of each row by its own rate."""
    unit = 2.0**-53
    for i in range(len(times)):
        left, n = rates[i], 0
        go = np.uint64(0)
        while left > 0:
            # Poisson numbers add up: large rates are drawn in parts, each with its stream.
            rate = min(left, several)
            left -= rate
            u = bits_of(key + go * FIRST, start + i) * unit
            go += np.uint64(1)
            chance = np.exp(-rate)
            below, k = chance, 0
            while u >= below and k < MOST_STEPS:
                k += 1
                chance *= rate / k
                below += chance
            n += k
        times[i] = n
