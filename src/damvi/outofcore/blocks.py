"""A table as blocks of one-byte codes, with votes recomputed when needed.

A block may be part of a memory-mapped file, or a partition on another machine. The same
functions run on each block, and their results are summed or concatenated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from .._kernels import in_threads
from ..folds import deal_folds_by_rank
from ..labels import ClassTotals, Labels
from ..messages import progress_bar
from ..voters.sampling import PoissonSampling, poisson_rates
from ..voters.trees.forest import Forest
from ..votes import Votes, out_of_bag_vote
from ..weighting import FoldWeights
from . import BlockFit

BLOCK_ROWS = 2**16


class CodedBlock(NamedTuple):
    """Consecutive rows of a table.

    Attributes
    ----------
    codes : ndarray of uint8, shape (n, d)
    targets : ndarray of uint8, shape (n,)
    weights : ndarray of shape (n,), or None
        From 0 to 1.
    start : int
        Index of the first row in the table.
    before : ndarray of shape (C,)
        Number of earlier rows of each class.
    """

    codes: NDArray[np.uint8]
    targets: NDArray[np.uint8]
    weights: NDArray[np.float64] | None
    start: int
    before: NDArray[np.int64]


class CodedBlocks(Protocol):
    """All blocks of a table, in order."""

    def each(self, work: Callable[[CodedBlock], Any], what: str = "") -> Iterator[Any]:
        """Yield the result of ``work`` on each block, in order; ``what`` names the pass."""

    def total(
        self, work: Callable[[CodedBlock], Any], add: Callable[..., Any], what: str = ""
    ) -> Any:
        """Return the sum of the results."""

    def fit_succeeded(self) -> None:
        """Release what was kept to resume the fit, along with the model."""


class CodedTable:
    """Codes, targets and weights of all rows; blocks are processed by threads.

    Parameters
    ----------
    codes : array of uint8, shape (n, d)
        In memory, or memory-mapped.
    targets : ndarray of uint8, shape (n,)
    weights : ndarray of shape (n,), or None
    n_classes : int
    n_jobs : int or None
    verbose : int, default=0
        Show a progress bar for passes.
    cache : BinCache
        The cache of the codes, kept alive as long as they are needed.
    """

    codes: NDArray[np.uint8]
    targets: NDArray[np.uint8]
    weights: NDArray[np.float64] | None
    n_jobs: int | None
    verbose: int
    cache: Any

    def __init__(
        self,
        codes: NDArray[np.uint8],
        targets: NDArray[np.uint8],
        weights: NDArray[np.float64] | None,
        n_classes: int,
        n_jobs: int | None = None,
        verbose: int = 0,
        cache: Any = None,
    ) -> None:
        self.codes, self.targets, self.weights = codes, targets, weights
        self.n_jobs, self.verbose, self.cache = n_jobs, verbose, cache
        self._blocks = [
            slice(start, min(start + BLOCK_ROWS, len(targets)))
            for start in range(0, len(targets), BLOCK_ROWS)
        ]
        counts = [np.bincount(targets[rows], minlength=n_classes) for rows in self._blocks]
        self._before = np.cumsum([np.zeros(n_classes, np.int64), *counts], axis=0)

    def each(self, work: Callable[[CodedBlock], Any], what: str = "") -> Iterator[Any]:
        """Yield the result of ``work`` on each block, in order."""
        calls = (
            partial(self._work_on, work, number) for number in range(len(self._blocks))
        )
        return self._shown(in_threads(calls, self.n_jobs), len(self._blocks), what)

    def total(
        self, work: Callable[[CodedBlock], Any], add: Callable[..., Any], what: str = ""
    ) -> Any:
        """Return the sum of the results; each thread sums a run of blocks."""
        n = len(self._blocks)
        size = -(-n // (4 * effective_n_jobs(self.n_jobs)))
        runs = [range(first, min(first + size, n)) for first in range(0, n, size)]
        calls = (
            partial(reduce, add, map(partial(self._work_on, work), run)) for run in runs
        )
        return reduce(add, self._shown(in_threads(calls, self.n_jobs), len(runs), what))

    def fit_succeeded(self) -> None:
        """Remove codes in a temporary folder along with the model."""
        if self.cache is not None:
            self.cache.removed_when_unused()

    def _shown(self, results: Iterator[Any], n: int, what: str) -> Iterator[Any]:
        return progress_bar(what)(results, n) if what and self.verbose else results

    def _work_on(self, work: Callable[[CodedBlock], Any], number: int) -> Any:
        rows = self._blocks[number]
        weights = None if self.weights is None else self.weights[rows]
        before = self._before[number]
        return work(
            CodedBlock(self.codes[rows], self.targets[rows], weights, rows.start, before)
        )


@dataclass(frozen=True, eq=False)
class BlockPlan:
    """What a block needs to know of the whole table.

    Attributes
    ----------
    labels : Labels
    totals : ClassTotals
    seed : int
    max_samples, stratified
        As in :class:`~damvi.DAMVIClassifier`.
    only_out_of_bag : bool
        Whether the weights are learned from out-of-bag votes only.
    """

    labels: Labels
    totals: ClassTotals
    seed: int
    max_samples: float | int
    stratified: bool
    only_out_of_bag: bool

    @classmethod
    def of(cls, fit: BlockFit, labels: Labels, totals: ClassTotals) -> BlockPlan:
        return cls(
            labels,
            totals,
            fit.seed,
            fit.max_samples,
            fit.stratified,
            fit.only_out_of_bag,
        )

    @property
    def n_classes(self) -> int:
        return self.labels.n_classes

    def sampling(self, block: CodedBlock) -> PoissonSampling:
        """Return how often each voter draws each row of the block."""
        rates = poisson_rates(self.totals, self.max_samples, self.stratified)
        targets = block.targets if len(rates) > 1 else None
        n = len(block.targets)
        return PoissonSampling(n, rates, targets, block.weights, self.seed, block.start)

    def folds(self, block: CodedBlock) -> NDArray[np.int8]:
        return deal_folds_by_rank(block.targets, self.seed, block.before)

    def out_of_bag(self, forest: Forest, block: CodedBlock) -> NDArray[np.uint8]:
        """Return a bit for each voter and row outside its sample."""
        return self.sampling(block).out_of_bag_bits(len(forest))


def votes_on(forest: Forest, block: CodedBlock) -> NDArray[Any]:
    """Return the votes of all trees, (n, K)."""
    votes = forest.no_votes(len(block.codes))
    forest.cast(np.ascontiguousarray(block.codes), np.arange(len(forest)), votes)
    return votes


def votes_at(
    plan: BlockPlan, forest: Forest, rows: NDArray[np.intp], block: CodedBlock
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the votes on the given rows in the block, and which are out of bag."""
    n = len(block.targets)
    own = rows[(rows >= block.start) & (rows < block.start + n)] - block.start
    votes = votes_on(forest, block._replace(codes=block.codes[own]))
    if not len(own):
        return votes, np.empty((0, len(forest)), bool)
    out_of_bag = np.unpackbits(plan.out_of_bag(forest, block), axis=1, count=n)
    return votes, out_of_bag[:, own].T.astype(bool)


def sample_of(
    plan: BlockPlan, voter: int, block: CodedBlock
) -> tuple[NDArray[np.uint8], NDArray[np.intp], NDArray[np.uint8]]:
    """Return the rows of the block that a voter is trained on: codes, counts, targets."""
    rows, times = plan.sampling(block).sample(voter)
    return block.codes[rows], times, block.targets[rows]


def moments_of(
    plan: BlockPlan,
    forest: Forest,
    strength: float,
    fit_intercept: bool,
    only: tuple[int, bool] | None,
    block: CodedBlock,
) -> list[Any]:
    """Return the moments of the votes on the block by fold; ``only`` for one class."""
    votes = Votes(
        votes_on(forest, block),
        block.targets,
        plan.folds(block),
        sample_weight=block.weights,
        out_of_bag=plan.out_of_bag(forest, block) if plan.only_out_of_bag else None,
        only_out_of_bag=plan.only_out_of_bag,
        class_weight=np.ones(plan.n_classes),
        reweighted=plan.labels.reweighted(plan.totals),
    )
    if only is not None:
        votes = votes.of_class(*only)
    return votes.moments_by_fold(strength, fit_intercept=fit_intercept)


def add_moments(one: list[Any], other: list[Any]) -> list[Any]:
    """Add moments fold by fold; a small block may lack the last folds."""
    if len(one) < len(other):
        one, other = other, one
    both = [a + b for a, b in zip(one, other, strict=False)]
    return both + one[len(other) :]


def vote_of(
    plan: BlockPlan, forest: Forest, found: list[FoldWeights], block: CodedBlock
) -> NDArray[np.float64]:
    """Return the vote on each row, by voters and weights that have not seen its label."""
    return out_of_bag_vote(
        votes_on(forest, block),
        plan.out_of_bag(forest, block),
        plan.folds(block),
        found,
        plan.n_classes,
        n_rows=plan.totals.n_rows,
    )


@dataclass(frozen=True, eq=False)
class BlockVotes:
    """The equivalent of :class:`~damvi.votes.Votes` for a table in blocks.

    Votes are recomputed whenever they are needed, since they are too many to store. One
    pass over the blocks gives the moments; another, if needed, the out-of-bag vote.
    """

    blocks: CodedBlocks
    plan: BlockPlan
    forest: Forest
    only: tuple[int, bool] | None = None
    """See :meth:`of_class`."""
    _known: dict[tuple[float, bool], list[Any]] = field(default_factory=dict)

    in_memory: ClassVar[bool] = False

    def moments_by_fold(
        self, strength: float, unlabeled_weight: float = 0.0, fit_intercept: bool = False
    ) -> list[Any]:
        """Return the moments of each fold, with emphasis on missed positives (step 2)."""
        key = strength, fit_intercept
        if key not in self._known:
            work = partial(moments_of, self.plan, self.forest, *key, self.only)
            self._known[key] = self.blocks.total(work, add_moments, "Summing votes")
        return self._known[key]

    def vote_by(
        self, found: Sequence[FoldWeights], n_jobs: int | None
    ) -> NDArray[np.float64]:
        """Return each row's vote, by its fold's weights and voters not trained on it."""
        work = partial(vote_of, self.plan, self.forest, list(found))
        return np.concatenate([*self.blocks.each(work, "Out-of-bag votes")])

    def votes_at(self, rows: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return all votes on some rows, and for which voters they are out of bag."""
        work = partial(votes_at, self.plan, self.forest, rows)
        votes, out_of_bag = zip(
            *self.blocks.each(work, "Votes on sample rows"), strict=True
        )
        return np.concatenate(votes), np.concatenate(out_of_bag)

    def out_of_sample(self) -> BlockVotes:
        """Return the votes on rows that the voters were not trained on."""
        plan = replace(self.plan, only_out_of_bag=True)
        return BlockVotes(self.blocks, plan, self.forest)

    def of_class(self, target: int, reweighted: bool) -> BlockVotes:
        """Return the votes on rows of one class, which step 2 may reweight."""
        only = target, reweighted
        return BlockVotes(self.blocks, self.plan, self.forest, only)

    def fit_succeeded(self) -> None:
        """Release what was kept to resume the fit."""
        self.blocks.fit_succeeded()

    @property
    def n_classes(self) -> int:
        return self.plan.n_classes

    @property
    def class_weight(self) -> NDArray[np.float64]:
        return np.ones(self.n_classes)

    @cached_property
    def targets(self) -> NDArray[np.uint8]:
        return np.concatenate([*self.blocks.each(_targets)])

    @cached_property
    def sample_weight(self) -> NDArray[np.float64] | None:
        parts = [*self.blocks.each(_weights)]
        return None if parts[0] is None else np.concatenate(parts)

    @cached_property
    def folds(self) -> NDArray[np.int8]:
        return np.concatenate([*self.blocks.each(self.plan.folds)])

    @property
    def n_folds(self) -> int:
        return int(self.folds.max()) + 1

    @property
    def forward(self) -> bool:
        """Out-of-core tables are evaluated out of bag, never in time order."""
        return False


def _targets(block: CodedBlock) -> NDArray[np.uint8]:
    return block.targets


def _weights(block: CodedBlock) -> NDArray[np.float64] | None:
    return block.weights
