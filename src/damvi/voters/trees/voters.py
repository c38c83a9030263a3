"""The built-in trees as voters, with shared bins and threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone

from ..._kernels import in_threads
from ...labels import vote_shape
from ..estimators import Progress
from ..sampling import Sampling
from .binning import Features, row_slices, signs_that_count
from .cuts import CLASS_SHIFT
from .forest import (
    ClassVotes,
    Forest,
    Votes,
    add_shares,
    trees_of,
    vote_of_row,
)
from .grow import NEAR_CELLS, grow

if TYPE_CHECKING:
    from .estimators import FastTreeClassifier

ROWS_AT_A_TIME = 2**14
VOTES_WORTH_A_THREAD = 2**18
"""Number of votes below which a thread is not worth its overhead."""


@dataclass(frozen=True, eq=False)
class TreeVoters:
    """Trees on shared bins: the same as individual trees, but much faster."""

    tree: FastTreeClassifier
    features: Features
    forest: Forest

    @classmethod
    def train(
        cls,
        estimator: FastTreeClassifier,
        X: Any,
        y: NDArray[np.integer[Any]],
        draws: Sampling,
        n_voters: int,
        *,
        fit_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        **options: Any,
    ) -> tuple[TreeVoters, Any]:
        """See :meth:`damvi.voters.Voters.train`; ``fit_params`` are not used.

        The other options are those of :meth:`grow`.
        """
        voters, codes = cls.grow(estimator, X, y, draws, n_voters, n_jobs=n_jobs, **options)
        return voters, _votes(voters.forest, codes, n_jobs)

    @classmethod
    def grow(
        cls,
        estimator: FastTreeClassifier,
        X: Any,
        y: NDArray[np.integer[Any]],
        draws: Sampling,
        n_voters: int,
        *,
        n_classes: int = 2,
        known: TreeVoters | None = None,
        sample_weight: NDArray[np.float64] | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[TreeVoters, NDArray[np.uint8]]:
        """Grow the trees, without casting votes; also return the codes of ``X``."""
        estimator = clone(estimator)  # the caller may modify the original
        estimator._validate_params()
        labels = y.astype(np.uint8)
        if known is None:
            signs = signs_that_count(labels, n_classes, sample_weight)
            mask = estimator.categorical_mask(X)
            features = Features.learn(mask, X, signs, draws.seed, n_jobs)
        else:
            features = known.features
        codes = features.encode(X, n_jobs)
        own_weight = None
        if not draws.replace and sample_weight is not None:
            own_weight = fixed_point(sample_weight, n_classes)
        voters = cls.grow_on(
            estimator,
            features,
            codes,
            labels,
            draws,
            n_voters,
            n_classes=n_classes,
            known=known,
            own_weight=own_weight,
            n_jobs=n_jobs,
            progress=progress,
        )
        return voters, codes

    @classmethod
    def grow_on(
        cls,
        estimator: FastTreeClassifier,
        features: Features,
        codes: NDArray[np.uint8],
        labels: NDArray[np.uint8],
        draws: Sampling,
        n_voters: int,
        *,
        n_classes: int,
        known: TreeVoters | None = None,
        own_weight: NDArray[np.int64] | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> TreeVoters:
        """Grow the trees on codes."""
        trees = [] if known is None else [known.forest.tree(k) for k in range(len(known))]
        grow_one = partial(grow_tree, estimator, features, n_classes)
        order: Literal["C", "F"] = "F" if estimator.splitter == "random" else "C"
        work = (
            partial(_grow_some, grow_one, codes, labels, draws, share, own_weight, order)
            for share in _shares(len(trees), n_voters, effective_n_jobs(n_jobs))
        )
        grown: Iterable[Forest] = (
            tree for some in in_threads(work, n_jobs) for tree in some
        )
        trees += progress(grown, n_voters - len(trees)) if progress else grown
        return cls(estimator, features, Forest.join(trees))

    @property
    def takes_frames(self) -> bool:
        """Whether a dataframe is needed, for its categories or its column names."""
        return self.features.categories is not None

    def __len__(self) -> int:
        return len(self.forest)

    def take(self, some: NDArray[np.intp]) -> TreeVoters:
        """Return these trees alone."""
        trees = [self.forest.tree(k) for k in some.tolist()]
        return replace(self, forest=Forest.join(trees))

    @property
    def estimators(self) -> list[FastTreeClassifier]:
        """Each tree as a classifier: lightweight views, made on demand."""
        return [
            self.tree.view(replace(self, forest=self.forest.tree(k)))
            for k in range(len(self))
        ]

    @property
    def n_classes(self) -> int:
        return self.forest.n_classes

    @property
    def n_without_class(self) -> NDArray[np.intp]:
        """For each class, the number of trees trained without it."""
        return np.asarray((self.forest.weights[self.forest.roots[:-1]] == 0).sum(axis=0))

    def votes(self, X: Any, n_jobs: int | None = None) -> Any:
        """Votes of all trees on ``X``, (n, K): +1 and -1.

        With more than two classes, class numbers in one byte each.
        """
        return _votes(self.forest, self.features.encode(X, n_jobs), n_jobs)

    def weighted_vote(
        self, X: Any, weights: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Weighted sum of the trees' votes on ``X``; trees of weight 0 are skipped.

        With more than two classes, the weight for each class, (n, C).
        """
        asked, trees = np.flatnonzero(weights), trees_of(self.n_classes)

        def vote(codes: NDArray[np.uint8], total: NDArray[np.float64]) -> None:
            votes = self.forest.no_votes(len(codes))
            self.forest.cast(codes, asked, votes)
            trees.add(votes, asked, weights, total)

        return self._by_blocks(X, vote, len(asked), n_jobs)

    def class_shares(self, X: Any, n_jobs: int | None = 1) -> NDArray[np.float64]:
        """The share of each class in the row's leaves, (n, C): the mean over the trees."""
        mean = self._by_blocks(X, self._mean_shares, len(self), n_jobs)
        return trees_of(self.n_classes).of_all(mean)

    def _mean_shares(self, codes: NDArray[np.uint8], total: NDArray[np.float64]) -> None:
        forest = self.forest
        add_shares(
            codes,
            forest.roots,
            forest.nodes,
            forest.set_starts,
            forest.sets,
            forest.weights,
            total.reshape(len(codes), -1),
        )
        total /= len(self)

    def weighted_vote_of_row(
        self, numbers: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """:meth:`weighted_vote` on one row of numbers, (1, d), by all trees."""
        forest, total = self.forest, self._nothing(1)
        vote_of_row(
            self._codes_of_row(numbers),
            forest.roots,
            forest.nodes,
            forest.set_starts,
            forest.sets,
            forest.node_classes,
            weights,
            total.reshape(1, -1),
        )
        return total

    def class_shares_of_row(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """:meth:`class_shares` of one row of numbers, (1, d)."""
        mean = self._nothing(1)
        self._mean_shares(self._codes_of_row(numbers), mean)
        return trees_of(self.n_classes).of_all(mean)

    def _nothing(self, n_rows: int) -> NDArray[np.float64]:
        return np.zeros(vote_shape(n_rows, self.n_classes))

    def _codes_of_row(self, numbers: NDArray[np.float64]) -> NDArray[np.uint8]:
        codes = np.empty(numbers.shape, dtype=np.uint8)
        self.features.binning.encode_rows(numbers, slice(0, 1), codes)
        return codes

    def _by_blocks(
        self,
        X: Any,
        work: Callable[[NDArray[np.uint8], NDArray[np.float64]], None],
        n_trees: int,
        n_jobs: int | None,
    ) -> NDArray[np.float64]:
        """Apply ``work`` to the codes of each block of rows; return what it writes.

        This is one number per row, or one per class if there are more than two.
        """
        table = self.features.table(X)
        total = self._nothing(table.shape[0])

        def work_on(rows: slice) -> None:
            codes = np.empty((rows.stop - rows.start, table.shape[1]), dtype=np.uint8)
            self.features.binning.encode_rows(table, rows, codes)
            work(codes, total[rows])

        few = len(total) * n_trees <= VOTES_WORTH_A_THREAD
        calls = (partial(work_on, rows) for rows in row_slices(table))
        for _ in in_threads(calls, 1 if few else n_jobs):
            pass
        return total


def fixed_point(weights: NDArray[np.float64], n_classes: int = 2) -> NDArray[np.int64]:
    """Weights as integers, the largest 2**30; with more than two classes, their sum 2**29.

    Only weights below 2**-31 of the largest become 0.
    """
    return trees_of(n_classes).fixed_point(weights / weights.max())


def grow_tree(
    estimator: FastTreeClassifier,
    features: Features,
    n_classes: int,
    codes: NDArray[np.uint8],
    weights: NDArray[np.int64],
    labels: NDArray[Any],
    seed: int,
) -> Forest:
    """Grow one tree on all the rows of ``codes``.

    For random splits, Fortran order ("F") is fastest.
    """
    if len(codes) == 0:
        # An empty sample: vote for class 0.
        codes = np.zeros((1, len(features)), np.uint8)
        weights, labels = np.ones(1, np.int64), np.zeros(1, np.uint8)
    by_class = np.argsort(labels, kind="stable").astype(np.uint32)
    totals = np.bincount(labels, weights, n_classes)
    # Only fixed-point sample weights can have a sum of more than 32 bits.
    size = np.int32 if totals.sum() < 2**30 else np.int64
    random = estimator.splitter == "random"
    nodes, class_weights, *rest = grow(
        np.ascontiguousarray(codes.T if random else codes),
        labels.astype(np.int64) << CLASS_SHIFT | weights,
        by_class,
        totals.astype(size),
        features.binning.histogram_starts,
        features.binning.categorical,
        estimator.max_depth or 0,
        estimator.min_samples_leaf,
        estimator.features_to_try(len(features)),
        np.uint64(seed + 1),
        NEAR_CELLS // len(features),
        random,
    )
    class_weights = class_weights.astype(trees_of(n_classes).weight_type, copy=False)
    return Forest.of_tree((nodes, class_weights, *rest))


def _votes(
    forest: Forest, codes: NDArray[np.uint8], n_jobs: int | None
) -> Votes | ClassVotes:
    """Votes of all trees, in one pass over the rows."""
    votes = forest.no_votes(len(codes))
    starts = range(0, len(codes), ROWS_AT_A_TIME)
    parts = (slice(start, start + ROWS_AT_A_TIME) for start in starts)
    everyone = np.arange(len(forest))
    cast = (partial(forest.cast, codes[part], everyone, votes[part]) for part in parts)
    for _ in in_threads(cast, n_jobs):
        pass
    return votes


def _shares(start: int, stop: int, n_jobs: int) -> Iterator[range]:
    """Small batches of voters, so that threads neither wait nor compete for memory."""
    size = max(1, (stop - start) // (4 * n_jobs))
    return (range(k, min(k + size, stop)) for k in range(start, stop, size))


def _grow_some(
    grow_one: Callable[..., Forest],
    codes: NDArray[np.uint8],
    labels: NDArray[np.uint8],
    draws: Sampling,
    voters: range,
    own_weight: NDArray[np.int64] | None,
    order: Literal["C", "F"],
) -> list[Forest]:
    """Grow some of the trees; ``order`` is the memory order of codes for all rows."""
    trees: list[Forest] = []
    whole: NDArray[np.uint8] | None = None
    # Reuse one array, since new ones would fragment the memory.
    room = np.empty((draws.most_rows, codes.shape[1]), dtype=np.uint8)
    for k in voters:
        rows, weights = draws.sample(k)
        if own_weight is not None:
            rows = rows[own_weight[rows] > 0]
            weights = own_weight[rows]
        seed = draws.random_state(k)
        if len(rows) > len(room):
            room = np.empty((len(rows), codes.shape[1]), dtype=np.uint8)
        own = room[: len(rows)]
        if len(rows) < len(codes):
            np.take(codes, rows, axis=0, out=own, mode="clip")  # other modes use a copy
        elif whole is None:
            own = whole = np.asarray(codes, order=order)
        else:
            own = whole
        try:
            tree = grow_one(own, weights, labels[rows], seed)
        except SystemError as error:
            # This is how a Ctrl-C appears if it arrives while a kernel runs.
            if isinstance(error.__cause__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise
        trees.append(tree)
    return trees
