"""A table as blocks of one-byte codes, and the votes on them, cast again when needed.

A block may be a piece of a file mapped into memory, or a partition on another machine: what
is asked of it is the same functions, and the answers are added up or joined.
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
from ..crossfit import out_of_bag_vote
from ..folds import deal_folds_by_rank
from ..labels import ClassTotals, Labels
from ..messages import progress_bar
from ..voters.sampling import PoissonSampling, poisson_rates
from ..voters.trees.forest import Forest
from ..votes import Votes
from ..weighting import FoldWeights
from . import BlockFit

BLOCK_ROWS = 2**16


class CodedBlock(NamedTuple):
    """Rows that follow each other in a table.

    Attributes
    ----------
    codes : ndarray of uint8, shape (n, d)
    targets : ndarray of uint8, shape (n,)
    weights : ndarray of shape (n,), or None
        From 0 to 1.
    start : int
        The number of the first row in the table.
    before : ndarray of shape (C,)
        Rows of each class that come before.
    """

    codes: NDArray[np.uint8]
    targets: NDArray[np.uint8]
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

    def fit_succeeded(self) -> None:
        """Nothing is to be resumed: what was kept for that may go with the model."""


class CodedTable:
    """Codes, targets and weights of all rows; work on its blocks is done by threads.

    Parameters
    ----------
    codes : array of uint8, shape (n, d)
        In memory, or mapped from disk.
    targets : ndarray of uint8, shape (n,)
    weights : ndarray of shape (n,), or None
    n_classes : int
    n_jobs : int or None
    verbose : int, default=0
        Show how passes go.
    cache : BinCache
        What the codes belong to, kept for as long as they are needed.
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
        """What the work makes of each block, in their order."""
        calls = (
            partial(self._work_on, work, number) for number in range(len(self._blocks))
        )
        return self._shown(in_threads(calls, self.n_jobs), len(self._blocks), what)

    def total(
        self, work: Callable[[CodedBlock], Any], add: Callable[..., Any], what: str = ""
    ) -> Any:
        """The same, added up: each thread a run of blocks, so that few sums are kept."""
        n = len(self._blocks)
        size = -(-n // (4 * effective_n_jobs(self.n_jobs)))
        runs = [range(first, min(first + size, n)) for first in range(0, n, size)]
        calls = (
            partial(reduce, add, map(partial(self._work_on, work), run)) for run in runs
        )
        return reduce(add, self._shown(in_threads(calls, self.n_jobs), len(runs), what))

    def fit_succeeded(self) -> None:
        """Codes in a temporary folder are removed along with the model."""
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
    """What a block must know of the whole table to take part in a fit.

    Attributes
    ----------
    labels : Labels
    totals : ClassTotals
    seed : int
    max_samples, stratified
        As in :class:`~damvi.DAMVIClassifier`.
    only_out_of_bag : bool
        Whether the weights are learned from out-of-bag votes alone.
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
        """How often each voter sees each row of the block."""
        rates = poisson_rates(self.totals, self.max_samples, self.stratified)
        targets = block.targets if len(rates) > 1 else None
        n = len(block.targets)
        return PoissonSampling(n, rates, targets, block.weights, self.seed, block.start)

    def folds(self, block: CodedBlock) -> NDArray[np.int8]:
        return deal_folds_by_rank(block.targets, self.seed, block.before)

    def out_of_bag(self, forest: Forest, block: CodedBlock) -> NDArray[np.uint8]:
        """A bit for each voter and row outside its sample."""
        return self.sampling(block).out_of_bag_bits(len(forest))


def votes_on(forest: Forest, block: CodedBlock) -> NDArray[Any]:
    """The votes of all trees, (n, K)."""
    votes = forest.no_votes(len(block.codes))
    forest.cast(np.ascontiguousarray(block.codes), np.arange(len(forest)), votes)
    return votes


def votes_at(
    plan: BlockPlan, forest: Forest, rows: NDArray[np.intp], block: CodedBlock
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The votes on those of the rows that are in the block, and which are out of bag."""
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
    """The rows of the block that a voter is trained on: codes, times drawn, targets."""
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
    """The moments of the votes on the block, by fold; ``only`` those on one class."""
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
    """Fold by fold; a block of few rows may lack the last folds."""
    if len(one) < len(other):
        one, other = other, one
    both = [a + b for a, b in zip(one, other, strict=False)]
    return both + one[len(other) :]


def vote_of(
    plan: BlockPlan, forest: Forest, found: list[FoldWeights], block: CodedBlock
) -> NDArray[np.float64]:
    """The vote on each row, by the voters and the weights that do not know its label."""
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
    """What :class:`~damvi.votes.Votes` is for a table in memory.

    Votes are cast again whenever they are needed, since all of them are too many. A pass
    over the blocks gives the moments; another one, where it is asked for, the vote on rows
    out of bag.
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
        """The moments of each fold, with more weight on missed positives (step 2)."""
        key = strength, fit_intercept
        if key not in self._known:
            work = partial(moments_of, self.plan, self.forest, *key, self.only)
            self._known[key] = self.blocks.total(work, add_moments, "Adding up votes")
        return self._known[key]

    def vote_by(
        self, found: Sequence[FoldWeights], n_jobs: int | None
    ) -> NDArray[np.float64]:
        """The vote on each row by its fold's weights and voters not trained on it."""
        work = partial(vote_of, self.plan, self.forest, list(found))
        return np.concatenate([*self.blocks.each(work, "Voting on rows out of bag")])

    def votes_at(self, rows: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """All votes on some rows, and for which voters they are out of bag."""
        work = partial(votes_at, self.plan, self.forest, rows)
        votes, out_of_bag = zip(*self.blocks.each(work, "Looking at voters"), strict=True)
        return np.concatenate(votes), np.concatenate(out_of_bag)

    def out_of_sample(self) -> BlockVotes:
        """The votes on rows that the voters were not trained on."""
        plan = replace(self.plan, only_out_of_bag=True)
        return BlockVotes(self.blocks, plan, self.forest)

    def of_class(self, target: int, reweighted: bool) -> BlockVotes:
        """The votes on rows of one class alone, which step 2 may reweight."""
        only = target, reweighted
        return BlockVotes(self.blocks, self.plan, self.forest, only)

    def fit_succeeded(self) -> None:
        """Nothing is to be resumed."""
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
        """Rows beyond memory are judged out of bag, and never in the order of time."""
        return False


def _targets(block: CodedBlock) -> NDArray[np.uint8]:
    return block.targets


def _weights(block: CodedBlock) -> NDArray[np.float64] | None:
    return block.weights
