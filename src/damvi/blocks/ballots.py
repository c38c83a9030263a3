"""Votes that are cast again whenever they are needed, since all of them are too many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..crossfit import FoldWeights
from ..voters.trees.forest import Forest
from .coded import CodedBlock, CodedBlocks, Plan, add_tallies, tallies_of, vote_of, votes_at


@dataclass(frozen=True, eq=False)
class BlockBallots:
    """What :class:`~damvi.ballots.Ballots` is for a table in memory.

    A pass over the blocks gives the moments; another one, where it is asked for, the vote
    on unseen rows.
    """

    blocks: CodedBlocks
    plan: Plan
    forest: Forest
    _known: dict[float, list[Any]] = field(default_factory=dict)

    at_hand: ClassVar[bool] = False

    def tallies(self, strength: float, eta: float = 0.0) -> list[Any]:
        """The moments by fold, leaning on the rare rows that the plain vote misses."""
        if strength not in self._known:
            work = partial(tallies_of, self.plan, self.forest, strength)
            self._known[strength] = self.blocks.total(work, add_tallies, "Adding up votes")
        return self._known[strength]

    def vote_by(
        self, found: Sequence[FoldWeights], n_jobs: int | None
    ) -> NDArray[np.float64]:
        """The vote on each row by its fold's weights and voters that do not know it."""
        work = partial(vote_of, self.plan, self.forest, list(found))
        return np.concatenate([*self.blocks.each(work, "Voting on unseen rows")])

    def votes_at(self, rows: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """All votes on some rows, and which voters have not seen them."""
        work = partial(votes_at, self.plan, self.forest, rows)
        votes, unseen = zip(*self.blocks.each(work, "Looking at voters"), strict=True)
        return np.concatenate(votes), np.concatenate(unseen)

    def on_unseen(self) -> BlockBallots:
        """The votes on rows that the voters do not know, all counting alike."""
        plan = replace(self.plan, only_unseen=True, balance=0.0)
        return BlockBallots(self.blocks, plan, self.forest)

    @property
    def lean(self) -> Any:
        """How many rows of the largest class one of each other class counts for."""
        return self.plan.contest.lean(self.plan.census.mass, self.plan.balance)

    @property
    def n_classes(self) -> int:
        return self.plan.n_classes

    @cached_property
    def signs(self) -> NDArray[Any]:
        return np.concatenate([*self.blocks.each(partial(_truth, self.plan))])

    @property
    def targets(self) -> NDArray[Any]:
        return (self.signs > 0).astype(np.intp) if self.n_classes == 2 else self.signs

    @property
    def labels(self) -> NDArray[Any]:
        return self.signs

    @cached_property
    def base(self) -> NDArray[np.float64] | None:
        parts = [*self.blocks.each(_weights)]
        return None if parts[0] is None else np.concatenate(parts)

    @cached_property
    def folds(self) -> NDArray[np.int8]:
        return np.concatenate([*self.blocks.each(self.plan.folds)])

    @property
    def n_folds(self) -> int:
        return int(self.folds.max()) + 1


def _truth(plan: Plan, block: CodedBlock) -> NDArray[Any]:
    return plan.truth(block.labels)


def _weights(block: CodedBlock) -> NDArray[np.float64] | None:
    return block.weights
