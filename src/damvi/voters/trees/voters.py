"""The built-in trees as voters: binned once, grown and asked by threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from ..draws import Draws
from ..interface import Progress, Votes
from .cast import add_votes
from .features import Features
from .forest import Forest
from .grow import grow
from .table import blocks

if TYPE_CHECKING:
    from .classifier import FastTreeClassifier

WEIGHT_BITS = 30
"""Sample weights are whole multiples of 2**-30 of the largest."""
ROWS_AT_A_TIME = 2**17
WALKS_WORTH_A_THREAD = 2**17
"""Rows times trees below which a thread costs more than it brings."""


@dataclass(frozen=True, eq=False)
class TreeVoters:
    """Trees on shared bins: the same as trees one by one, and much faster."""

    tree: FastTreeClassifier
    features: Features
    forest: Forest

    @classmethod
    def train(
        cls,
        estimator: FastTreeClassifier,
        X: Any,
        y: NDArray[np.int8],
        draws: Draws,
        n_voters: int,
        *,
        known: TreeVoters | None = None,
        sample_weight: NDArray[np.float64] | None = None,
        fit_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[TreeVoters, Votes]:
        """See :meth:`damvi.voters.Voters.train`; the trees take no ``fit_params``."""
        positive = y.astype(bool)
        if known is None:
            signs = signs_that_count(positive, sample_weight)
            features = Features.learn(estimator, X, signs, draws.seed)
        else:
            features = known.features
        codes = features.encode(X)
        votes: Votes = np.zeros((len(y), n_voters), dtype=np.int8, order="F")
        trees = [] if known is None else [known.forest.tree(k) for k in range(len(known))]
        for k, tree in enumerate(trees):
            _cast(codes, tree, votes[:, k])
        own_weight = None
        if not draws.replace and sample_weight is not None:
            own_weight = fixed_point(sample_weight)
        work = [
            delayed(_grow_some)(
                estimator, features, codes, positive, draws, share, own_weight, votes
            )
            for share in _shares(len(trees), n_voters, effective_n_jobs(n_jobs))
        ]
        run = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
        grown: Iterable[Forest] = (tree for some in run(work) for tree in some)
        trees += progress(grown, n_voters - len(trees)) if progress else grown
        return cls(estimator, features, Forest.join(trees)), votes

    def __len__(self) -> int:
        return len(self.forest)

    @property
    def estimators(self) -> list[FastTreeClassifier]:
        """Each tree as a classifier of its own: light views, made on demand."""
        return [
            self.tree.view(replace(self, forest=self.forest.tree(k)))
            for k in range(len(self))
        ]

    @property
    def n_without_positive(self) -> int:
        """Trees that have seen no positive."""
        return int((self.forest.weights[self.forest.roots[:-1], 1] == 0).sum())

    def weighted_vote(
        self, X: Any, weights: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Sum of the trees' votes on ``X``; trees of weight 0 are not asked."""
        return self.weighted_sum(X, weights, self.forest.ballot, n_jobs)

    def weighted_sum(
        self,
        X: Any,
        weights: NDArray[np.float64],
        values: NDArray[Any],
        n_jobs: int | None = None,
    ) -> NDArray[np.float64]:
        """Sum over the trees of weight times the value of the leaf, for each row."""
        table, forest = self.features.table(X), self.forest
        values = values.astype(np.float64)
        total = np.zeros(table.shape[0])

        def add_block(rows: slice, block: NDArray[np.float64]) -> None:
            codes = np.empty(block.shape, dtype=np.uint8)
            self.features.binning.encode_block(block, codes)
            everyone, here = np.arange(len(block)), total[rows]
            for k in np.flatnonzero(weights):
                nodes = slice(forest.roots[k], forest.roots[k + 1])
                sets = forest.sets[forest.set_starts[k] : forest.set_starts[k + 1]]
                add_votes(
                    codes,
                    everyone,
                    forest.nodes[nodes],
                    sets,
                    values[nodes],
                    weights[k],
                    here,
                )

        if len(total) * np.count_nonzero(weights) <= WALKS_WORTH_A_THREAD:
            for rows, block in blocks(table):
                add_block(rows, block)
        else:
            run = Parallel(n_jobs=n_jobs, require="sharedmem")
            run(delayed(add_block)(rows, block) for rows, block in blocks(table))
        return total


def _shares(start: int, stop: int, n_jobs: int) -> Iterator[range]:
    """The voters in small lots, so that threads neither wait nor crowd each other."""
    size = max(1, (stop - start) // (4 * n_jobs))
    return (range(k, min(k + size, stop)) for k in range(start, stop, size))


def _grow_some(
    estimator: FastTreeClassifier,
    features: Features,
    codes: NDArray[np.uint8],
    positive: NDArray[np.bool_],
    draws: Draws,
    voters: range,
    own_weight: NDArray[np.int64] | None,
    votes: Votes,
) -> list[Forest]:
    """Grow some of the trees, and write their votes on all rows."""
    trees = []
    for k in voters:
        rows, weights = draws.sample(k)
        if own_weight is not None:
            rows = rows[own_weight[rows] > 0]
            weights = own_weight[rows]
        leaf_of = np.empty(len(rows), dtype=np.int32)
        seed = draws.random_state(k)
        tree = grow_tree(
            estimator, features, codes[rows], weights, positive[rows], seed, leaf_of
        )
        # The rows in the bag have found their leaves; the others still have to walk.
        votes[rows, k] = tree.ballot[leaf_of]
        _cast(codes, tree, votes[:, k])
        trees.append(tree)
    return trees


def _cast(codes: NDArray[np.uint8], tree: Forest, votes: NDArray[np.int8]) -> None:
    """Write a tree's votes on the rows that have none yet (0)."""
    for start in range(0, len(votes), ROWS_AT_A_TIME):
        part = slice(start, start + ROWS_AT_A_TIME)
        rows = np.flatnonzero(votes[part] == 0)
        add_votes(
            codes[part], rows, tree.nodes, tree.sets, tree.ballot, np.int8(1), votes[part]
        )


def signs_that_count(
    positive: NDArray[np.bool_], sample_weight: NDArray[Any] | None
) -> NDArray[np.int8]:
    """+1 and -1 for the two classes, 0 for rows of weight 0."""
    signs = np.where(positive, 1, -1).astype(np.int8)
    return signs if sample_weight is None else np.where(sample_weight > 0, signs, 0)


def fixed_point(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Weights as whole numbers, the largest 2**30."""
    return np.rint(np.ldexp(weights / weights.max(), WEIGHT_BITS)).astype(np.int64)


def grow_tree(
    estimator: FastTreeClassifier,
    features: Features,
    codes: NDArray[np.uint8],
    weights: NDArray[np.int64],
    positive: NDArray[np.bool_],
    seed: int,
    leaf_of: NDArray[np.int32],
) -> Forest:
    """One tree on all the rows of ``codes``; ``leaf_of`` receives the leaf of each."""
    return Forest.of_tree(
        grow(
            codes,
            weights,
            np.flatnonzero(~positive).astype(np.uint32),
            np.flatnonzero(positive).astype(np.uint32),
            features.binning.histogram_starts,
            features.binning.categorical,
            estimator.max_depth or 0,
            estimator.min_samples_leaf,
            estimator.features_to_try(len(features)),
            np.uint64(seed + 1),
            leaf_of,
        )
    )
