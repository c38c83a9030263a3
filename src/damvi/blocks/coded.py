"""A block of rows in codes, and all that is asked of it, wherever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..census import Census
from ..contest import TwoClasses
from ..crossfit import N_FOLDS, FoldWeights, out_of_bag_vote
from ..folds import deal_folds_by_rank
from ..voters.sampling import PoissonSampling, poisson_rates
from .survey import Contest


class CodedBlock(NamedTuple):
    """Rows that follow each other in a table.

    Attributes
    ----------
    codes : ndarray of uint8, shape (n, d)
    labels : ndarray of uint8, shape (n,)
        Numbers of classes; of two, 1 for the positive one.
    weights : ndarray of shape (n,), or None
        From 0 to 1.
    start : int
        The number of the first row in the table.
    before : ndarray of shape (C,)
        Rows of each class that come before.
    """

    codes: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    weights: NDArray[np.float64] | None
    start: int
    before: NDArray[np.int64]


class CodedBlocks(Protocol):
    """All blocks of a table, in order."""

    def each(self, work: Callable[[CodedBlock], Any], what: str = "") -> Iterator[Any]:
        """What the work makes of each block, in their order; ``what`` names the pass."""

    def total(
        self, work: Callable[[CodedBlock], Any], add: Callable[..., Any], what: str = ""
    ) -> Any:
        """The same, added up."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What a block must know of the whole table to take part in a fit.

    Attributes
    ----------
    contest : TwoClasses or ManyClasses
    census : Census
    seed : int
    max_samples, stratified, balance, only_unseen
        As in :class:`~damvi.DAMVIClassifier`.
    """

    contest: Contest
    census: Census
    seed: int
    max_samples: float | int
    stratified: bool
    balance: float
    only_unseen: bool

    @property
    def n_classes(self) -> int:
        return len(self.contest.classes)

    def draws(self, block: CodedBlock) -> PoissonSampling:
        """How often each voter sees each row of the block."""
        rates = poisson_rates(self.census, self.max_samples, self.stratified)
        labels = block.labels if len(rates) > 1 else None
        n = len(block.labels)
        return PoissonSampling(n, rates, labels, block.weights, self.seed, block.start)

    def folds(self, block: CodedBlock) -> NDArray[np.int8]:
        return deal_folds_by_rank(block.labels, self.seed, block.before, N_FOLDS)

    def truth(self, labels: NDArray[np.uint8]) -> NDArray[Any]:
        """Signs, or numbers of classes."""
        if isinstance(self.contest, TwoClasses):
            return np.where(labels == 1, np.int8(1), np.int8(-1))
        return labels.astype(np.intp)

    def ballots(self, forest: Any, block: CodedBlock, unseen: Any) -> Any:
        """The votes on the block."""
        return self.contest.ballots(
            votes_on(forest, block),
            self.truth(block.labels),
            block.weights,
            self.folds(block),
            self.balance,
            unseen,
            self.only_unseen,
            self.census,
        )

    def unseen(self, forest: Any, block: CodedBlock) -> NDArray[np.uint8]:
        return self.draws(block).out_of_bag_bits(len(forest))


def votes_on(forest: Any, block: CodedBlock) -> NDArray[Any]:
    """The votes of all trees, (n, K)."""
    votes = forest.no_votes(len(block.codes))
    forest.cast(np.ascontiguousarray(block.codes), np.arange(len(forest)), votes)
    return votes


def votes_at(
    plan: Plan, forest: Any, rows: NDArray[np.intp], block: CodedBlock
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The votes on those of the rows that are in the block, and which are unseen."""
    n = len(block.labels)
    own = rows[(rows >= block.start) & (rows < block.start + n)] - block.start
    votes = votes_on(forest, block._replace(codes=block.codes[own]))
    if not len(own):
        return votes, np.empty((0, len(forest)), bool)
    unseen = np.unpackbits(plan.unseen(forest, block), axis=1, count=n)
    return votes, unseen[:, own].T.astype(bool)


def sample_of(
    plan: Plan, voter: int, block: CodedBlock
) -> tuple[NDArray[np.uint8], NDArray[np.intp], NDArray[np.uint8]]:
    """The rows of the block that a voter is trained on: codes, times drawn, labels."""
    rows, times = plan.draws(block).sample(voter)
    return block.codes[rows], times, block.labels[rows]


def tallies_of(plan: Plan, forest: Any, strength: float, block: CodedBlock) -> list[Any]:
    """The moments of the votes on the block, by fold."""
    unseen = plan.unseen(forest, block) if plan.only_unseen else None
    tallies: list[Any] = plan.ballots(forest, block, unseen).tallies(strength)
    return tallies


def add_tallies(one: list[Any], other: list[Any]) -> list[Any]:
    """Fold by fold; a block of few rows may lack the last folds."""
    if len(one) < len(other):
        one, other = other, one
    both = [a + b for a, b in zip(one, other, strict=False)]
    return both + one[len(other) :]


def vote_of(
    plan: Plan, forest: Any, found: list[FoldWeights], block: CodedBlock
) -> NDArray[np.float64]:
    """The vote on each row, by the voters and the weights that do not know its label."""
    return out_of_bag_vote(
        votes_on(forest, block),
        plan.unseen(forest, block),
        plan.folds(block),
        found,
        n_classes=None if plan.n_classes == 2 else plan.n_classes,
        n_rows=plan.census.n_rows,
    )
