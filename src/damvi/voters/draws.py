"""Which rows each voter is trained on, and how many times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Stratum:
    """Rows to draw from together: the whole table, or some of it."""

    n_rows: int
    n_draws: int
    rows: NDArray[np.intp] | None = None
    """Their numbers; None for the whole table."""
    cumulative: NDArray[np.float64] | None = None
    """Running sum of their weights; None when they are all equal."""

    def draw(self, rng: np.random.Philox, replace: bool) -> NDArray[np.intp]:
        """Numbers of rows, repeated as often as they were drawn."""
        if not replace:
            picks = np.argsort(rng.random_raw(self.n_rows), kind="stable")[: self.n_draws]
        else:
            bits = rng.random_raw(self.n_draws) >> np.uint64(11)
            heights = np.ldexp(bits.astype(np.float64), -53)
            if self.cumulative is None:
                picks = (heights * self.n_rows).astype(np.intp)
            else:
                heights.sort()  # the searches then walk through memory in order
                picks = np.searchsorted(
                    self.cumulative, heights * self.cumulative[-1], side="right"
                ).clip(max=self.n_rows - 1)
        return picks if self.rows is None else self.rows[picks]


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
        """Draws for a table with these ``signs``.

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
        for part in [signs < 0, signs > 0] if stratified else [np.ones(n, bool)]:
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

    def counts(self, voter: int) -> NDArray[np.intp]:
        """How many times each row was drawn for this voter."""
        rng = self._bits(voter, purpose=0)
        drawn = [stratum.draw(rng, self.replace) for stratum in self.strata]
        return np.bincount(np.concatenate(drawn), minlength=self.n_rows)

    def sample(self, voter: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The rows drawn for this voter, in order, and how many times each."""
        counts = self.counts(voter)
        rows = np.flatnonzero(counts > 0)
        return rows, counts[rows]

    def out_of_bag(self, voter: int) -> NDArray[np.bool_]:
        """The rows that this voter has not seen."""
        return self.counts(voter) == 0

    def random_state(self, voter: int) -> int:
        """A seed for the voter's own randomness, apart from its draw."""
        return int(self._bits(voter, purpose=1).random_raw() >> 33)

    def _bits(self, voter: int, purpose: int) -> np.random.Philox:
        """Raw bits of a counter-based generator: the same in every release of numpy."""
        return np.random.Philox(key=np.array([self.seed, 2 * voter + purpose], np.uint64))
