"""Which rows each voter is trained on, and how many times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Stratum:
    """Rows to draw from together: the whole table, or one class of it."""

    rows: NDArray[np.intp]
    n_draws: int
    cumulative: NDArray[np.float64] | None
    """Running sum of the rows' weights; None when they are all equal."""

    def draw(self, rng: np.random.RandomState, replace: bool) -> NDArray[np.intp]:
        n = len(self.rows)
        if not replace:
            return self.rows[rng.permutation(n)[: self.n_draws]]
        if self.cumulative is None:
            return self.rows[rng.randint(0, n, self.n_draws)]
        heights = rng.random_sample(self.n_draws) * self.cumulative[-1]
        picks = np.searchsorted(self.cumulative, heights, side="right")
        return self.rows[np.minimum(picks, n - 1)]


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
    array([2, 0, 1, 1])
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
        drawable = np.ones(n, bool) if sample_weight is None else sample_weight > 0
        parts = [signs < 0, signs > 0] if stratified else [np.ones(n, bool)]
        strata = []
        for part in parts:
            rows = np.flatnonzero(part & drawable)
            share = max(1, round(n_draws * int(part.sum()) / n))
            weights = None if sample_weight is None else sample_weight[rows]
            even = weights is None or bool((weights == weights[0]).all())
            strata.append(
                Stratum(
                    rows=rows,
                    n_draws=share if replace else min(share, len(rows)),
                    cumulative=None if weights is None or even else np.cumsum(weights),
                )
            )
        return cls(n, tuple(strata), replace, seed)

    def counts(self, voter: int) -> NDArray[np.intp]:
        """How many times each row was drawn for this voter."""
        rng = np.random.RandomState([self.seed, voter])
        drawn = [stratum.draw(rng, self.replace) for stratum in self.strata]
        return np.bincount(np.concatenate(drawn), minlength=self.n_rows)

    def out_of_bag(self, voter: int) -> NDArray[np.bool_]:
        """The rows that this voter has not seen."""
        return self.counts(voter) == 0

    def fingerprint(self) -> str:
        """Equal for two plans that draw the same rows for every voter."""
        return str(joblib.hash((self.n_rows, self.strata, self.replace, self.seed)))

    def random_state(self, voter: int) -> int:
        """A seed for the voter's own randomness, apart from its draw."""
        rng = np.random.RandomState([self.seed, voter, 1])
        return int(rng.randint(np.iinfo(np.int32).max))
