"""Many trees in flat arrays: small to store, quick to ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..interface import Votes
from .cast import TILE, WALK_TILE, cast_tile
from .splits import CATEGORIES, FEATURE, LEFT, SHIFT, THRESHOLD

ClassVotes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Forest:
    """The nodes of K trees, one after the other.

    Attributes
    ----------
    roots : ndarray of shape (K + 1,)
        The first node of each tree, and the number of nodes.
    nodes : ndarray of int32, shape (nodes, 4)
        The feature that a node looks at; its left child, counted from the tree's root
        (the right one follows it; a leaf is its own left child); the threshold and the
        shift, which say what codes go left (see
        :func:`~damvi.voters.trees.splits.goes_left`). At a split on categories the
        threshold is its place among the tree's ``sets``.
    sets : ndarray of uint8, shape (splits on categories, 32)
        Sets of codes that go left, as bits.
    set_starts : ndarray of shape (K + 1,)
        The first set of each tree, and the number of sets.
    weights : ndarray of int64, shape (nodes, 2), or of int32, shape (nodes, C)
        Weight of the negatives and of the positives in each node, or of each class where
        there are more.
    rows : ndarray of int32
        Rows in each node.
    importances : ndarray of shape (K, d)
        Each tree's share of the decrease of Gini impurity by feature.
    """

    roots: NDArray[np.int64]
    nodes: NDArray[np.int32]
    sets: NDArray[np.uint8]
    set_starts: NDArray[np.int64]
    weights: NDArray[np.int64] | NDArray[np.int32]
    rows: NDArray[np.int32]
    importances: NDArray[np.float64]

    @classmethod
    def of_tree(cls, grown: Sequence[Any]) -> Forest:
        """A forest of one tree, from what :func:`~damvi.voters.trees.grow.grow` returns."""
        nodes, weights, rows, sets, decrease = grown
        total = decrease.sum()
        return cls(
            roots=np.array([0, len(nodes)]),
            nodes=nodes,
            sets=sets,
            set_starts=np.array([0, len(sets)]),
            weights=weights,
            rows=rows,
            importances=(decrease / total if total > 0 else decrease)[np.newaxis],
        )

    @classmethod
    def join(cls, forests: Sequence[Forest]) -> Forest:
        """All their trees in one."""

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(forest, name) for forest in forests])

        def starts(name: str) -> NDArray[np.int64]:
            sizes = np.concatenate([np.diff(getattr(forest, name)) for forest in forests])
            return np.concatenate([[0], np.cumsum(sizes)])

        return cls(
            roots=starts("roots"),
            nodes=joined("nodes"),
            sets=joined("sets"),
            set_starts=starts("set_starts"),
            weights=joined("weights"),
            rows=joined("rows"),
            importances=joined("importances"),
        )

    def tree(self, k: int) -> Forest:
        """The k-th tree alone."""
        nodes = slice(int(self.roots[k]), int(self.roots[k + 1]))
        sets = slice(int(self.set_starts[k]), int(self.set_starts[k + 1]))
        return Forest(
            roots=np.array([0, nodes.stop - nodes.start]),
            nodes=self.nodes[nodes],
            sets=self.sets[sets],
            set_starts=np.array([0, sets.stop - sets.start]),
            weights=self.weights[nodes],
            rows=self.rows[nodes],
            importances=self.importances[k : k + 1],
        )

    def __len__(self) -> int:
        return len(self.roots) - 1

    @property
    def n_classes(self) -> int:
        return self.weights.shape[1]

    def no_votes(self, n_rows: int) -> Any:
        """Zeros for the votes of all trees, tree by tree in memory."""
        return np.zeros((n_rows, len(self)), dtype=self.ballot.dtype, order="F")

    def cast(
        self,
        codes: NDArray[np.uint8],
        asked: NDArray[np.intp],
        votes: Votes | ClassVotes,
    ) -> None:
        """Write the votes of the trees asked into ``votes`` (rows, trees).

        They are +1 and -1, or the numbers of classes where there are more than two.
        """
        lowest = self.ballot.dtype.type(-1 if self.n_classes == 2 else 0)
        small = self.at_once[asked]
        for some, step in ((asked[small], TILE), (asked[~small], WALK_TILE)):
            for start in range(0, len(codes) if len(some) else 0, step):
                tile = slice(start, start + step)
                cast_tile(
                    codes[tile],
                    self.roots,
                    self.nodes,
                    self.set_starts,
                    self.sets,
                    self.ballot,
                    lowest,
                    self.at_once,
                    some,
                    votes[tile],
                )

    @cached_property
    def at_once(self) -> NDArray[np.bool_]:
        """The trees whose nodes are fewer than 30 for each step that a row would walk."""
        inner = np.add.reduceat(~self.is_leaf, self.roots[:-1])
        walked = np.add.reduceat(np.where(self.is_leaf, 0, self.rows), self.roots[:-1])
        return inner * self.rows[self.roots[:-1]] < 30 * walked

    @cached_property
    def ballot(self) -> NDArray[np.int8] | NDArray[np.uint8]:
        """The vote of each node; a tie goes to the first class: of two, the negatives."""
        if self.n_classes > 2:
            return self.weights.argmax(axis=1).astype(np.uint8)
        return np.where(self.weights[:, 1] > self.weights[:, 0], 1, -1).astype(np.int8)

    def __sizeof__(self) -> int:
        """Its arrays: whoever moves forests about asks."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of each class in each node."""
        return np.asarray(self.weights / self.weights.sum(axis=1, keepdims=True))

    @property
    def feature(self) -> NDArray[np.int32]:
        return self.nodes[:, FEATURE]

    @property
    def left(self) -> NDArray[np.int32]:
        return self.nodes[:, LEFT]

    @property
    def threshold(self) -> NDArray[np.int32]:
        return self.nodes[:, THRESHOLD]

    @property
    def shift(self) -> NDArray[np.int32]:
        return self.nodes[:, SHIFT]

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        places = np.arange(len(self.nodes)) - np.repeat(
            self.roots[:-1], np.diff(self.roots)
        )
        return self.left == places

    @property
    def on_categories(self) -> NDArray[np.bool_]:
        return self.shift == CATEGORIES
