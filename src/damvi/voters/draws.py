"""Which rows each voter is trained on, and how many times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

DRAWS_AT_A_TIME = 2**16


class AnyDraws(Protocol):
    """What voters ask of draws, of any kind."""

    @property
    def seed(self) -> int: ...

    @property
    def replace(self) -> bool:
        """Whether voters see how often a row was drawn, or else its own weight."""

    @property
    def most_rows(self) -> int:
        """As many rows as a voter is likely to see."""

    def sample(self, voter: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The rows drawn for this voter, in order, and how many times each."""

    def out_of_bag(self, voter: int) -> NDArray[np.bool_]:
        """The rows that this voter has not seen."""

    def random_state(self, voter: int) -> int:
        """A seed for the voter's own randomness, apart from its draw."""


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
            order = np.argsort(rng.random_raw(self.n_rows), kind="stable")
            yield order[: self.n_draws]
        elif self.cumulative is None:
            for start in range(0, self.n_draws, DRAWS_AT_A_TIME):
                heights = _heights(rng, min(DRAWS_AT_A_TIME, self.n_draws - start))
                yield (heights * self.n_rows).astype(np.intp)
        else:
            heights = _heights(rng, self.n_draws)
            heights.sort()  # the searches then walk through memory in order
            heights *= self.cumulative[-1]
            picks = np.searchsorted(self.cumulative, heights, side="right")
            yield picks.clip(max=self.n_rows - 1)


def _heights(rng: np.random.Philox, n: int) -> NDArray[np.float64]:
    """Random numbers from 0 to 1, of 53 bits each."""
    bits = rng.random_raw(n) >> np.uint64(11)
    return np.ldexp(bits.astype(np.float64), -53)


@dataclass(frozen=True, eq=False)
class Draws:
    """The draw of each voter: a function of (seed, voter) and of nothing else.

    So voters can be trained in any order and anywhere, more can be added later, and
    who was out of bag need not be stored.

    Examples
    --------
    >>> import numpy as np
    >>> draws = Draws.plan(np.array([-1, -1, -1, 1]), max_samples=1.0, seed=0)
    >>> draws.counts(voter=3)
    array([0, 2, 1, 1])
    """

    n_rows: int
    strata: tuple[Stratum, ...]
    replace: bool
    seed: int

    @classmethod
    def plan(
        cls,
        signs: NDArray[Any],
        *,
        max_samples: float | int,
        seed: int,
        replace: bool = True,
        stratified: bool = False,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Draws:
        """Draws for a table with these ``signs``, or numbers of classes.

        ``max_samples`` is a fraction of the number of rows, or a number of draws. With
        replacement, ``sample_weight`` drives the draw; without, it does not, but rows
        of weight 0 are never drawn. ``stratified`` draws within each class, in
        proportion to its rows and at least one.
        """
        n = len(signs)
        is_count = isinstance(max_samples, (int, np.integer))
        n_draws = int(max_samples) if is_count else max(1, round(max_samples * n))
        if not replace and n_draws > n:
            raise ValueError(
                f"max_samples={max_samples} asks for more draws without replacement "
                f"than there are rows ({n}); lower it, or set bootstrap=True"
            )
        if not stratified and sample_weight is None:
            return cls(n, (Stratum(n, n_draws),), replace, seed)
        drawable = np.ones(n, bool) if sample_weight is None else sample_weight > 0
        strata = []
        sides = [signs == side for side in np.unique(signs)]
        for part in sides if stratified else [np.ones(n, bool)]:
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
        return min(self.n_rows, sum(stratum.n_draws for stratum in self.strata))

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
        unseen = np.ones(self.n_rows, dtype=np.bool_)
        for picks in self._drawn(voter):
            unseen[picks] = False
        return unseen

    def _times(self, voter: int) -> NDArray[np.uint8] | NDArray[np.intp]:
        """The counts in a byte each, which the caches hold longer, or as they need."""
        times = np.zeros(self.n_rows, dtype=np.uint8)
        for picks in self._drawn(voter):
            np.add.at(times, picks, np.uint8(1))
        n_draws = sum(stratum.n_draws for stratum in self.strata)
        if times.sum(dtype=np.int64) == n_draws:
            return times
        # Some row was drawn 256 times or more, and its byte went round.
        return np.bincount(np.concatenate([*self._drawn(voter)]), minlength=self.n_rows)

    def _drawn(self, voter: int) -> Iterator[NDArray[np.intp]]:
        """The rows drawn for this voter, a few at a time."""
        rng = _bits(self.seed, voter, purpose=0)
        for stratum in self.strata:
            yield from stratum.draw(rng, self.replace)

    def random_state(self, voter: int) -> int:
        """A seed for the voter's own randomness, apart from its draw."""
        return random_state_of(self.seed, voter)


def random_state_of(seed: int, voter: int) -> int:
    """A seed for the voter's own randomness."""
    return int(_bits(seed, voter, purpose=1).random_raw() >> 33)


def _bits(seed: int, voter: int, purpose: int) -> np.random.Philox:
    """Raw bits of a counter-based generator: the same in every release of numpy."""
    return np.random.Philox(key=np.array([seed, 2 * voter + purpose], np.uint64))
