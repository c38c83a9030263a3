"""Many trees in flat arrays, which are small to store and fast to evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._kernels import kernel
from ...labels import hard_votes

FEATURE, LEFT, THRESHOLD, SHIFT, NODE_COLUMNS = 0, 1, 2, 3, 4
"""Columns of a node; see :class:`Forest`."""
N_CODES = 256
SET_BYTES = N_CODES // 8
CATEGORIES = 2
"""The ``shift`` that marks a split on categories."""
TILE = 2048
"""Number of rows on which small trees vote at a time."""
WALK_TILE = 2**14
"""Number of rows that traverse a large tree at a time, so that it stays in the cache."""
ABREAST = 8
"""Rows that walk together: a step waits on memory, so eight take little more than one."""
WEIGHT_BITS = 30
"""Sample weights of two classes are whole multiples of 2**-30 of the largest."""
MAX_TOTAL_BITS = 29
"""With more classes, all weights add up to 2**29, except for rounding."""


Votes = NDArray[np.int8]
ClassVotes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Forest:
    """The nodes of K trees, one after the other.

    Attributes
    ----------
    roots : ndarray of shape (K + 1,)
        The first node of each tree, and the number of nodes.
    nodes : ndarray of int32, shape (nodes, 4)
        The feature of a split; its left child, relative to the tree's root (the right child
        follows it, and a leaf is its own left child); and the threshold and shift, which
        determine the codes that go left (see :func:`goes_left`). At a split on categories,
        the threshold is the position of a set in the tree's ``sets``.
    sets : ndarray of uint8, shape (splits on categories, 32)
        Sets of codes that go left, as bits.
    set_starts : ndarray of shape (K + 1,)
        The first set of each tree, and the number of sets.
    weights : ndarray of int64, shape (nodes, 2), or of int32, shape (nodes, C)
        Weight of the negatives and positives in each node, or of each of more than two
        classes.
    rows : ndarray of int32
        Number of rows in each node.
    importances : ndarray of shape (K, d)
        Share of each feature in the decrease of the Gini impurity, by tree.
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
        """A forest of one tree, from :func:`~damvi.voters.trees.grow.grow`."""
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
        """Concatenate the trees of several forests."""

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
        """Zeros for the votes of all trees, stored tree by tree."""
        dtype = hard_votes(self.n_classes).dtype
        return np.zeros((n_rows, len(self)), dtype=dtype, order="F")

    def cast(
        self,
        codes: NDArray[np.uint8],
        asked: NDArray[np.intp],
        votes: Votes | ClassVotes,
    ) -> None:
        """Write the votes of the trees ``asked`` to ``votes`` (rows, trees).

        They are +1 and -1, or class numbers if there are more than two classes.
        """
        # The kernel writes class numbers, and ``first`` for class 0: with two classes, the
        # bits of -1.
        first = hard_votes(self.n_classes).view(np.uint8)[0]
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
                    self.node_classes,
                    first,
                    self.at_once,
                    some,
                    votes[tile].view(np.uint8),
                )

    @cached_property
    def at_once(self) -> NDArray[np.bool_]:
        """Trees with fewer than 30 nodes for each step that a row would take."""
        inner = np.add.reduceat(~self.is_leaf, self.roots[:-1])
        walked = np.add.reduceat(np.where(self.is_leaf, 0, self.rows), self.roots[:-1])
        return inner * self.rows[self.roots[:-1]] < 30 * walked

    @cached_property
    def node_classes(self) -> ClassVotes:
        """The class that each node votes for; the first wins a tie."""
        return self.weights.argmax(axis=1).astype(np.uint8)

    @property
    def node_votes(self) -> Votes | ClassVotes:
        """The vote of each node: +1 and -1, or a class number for more than two classes."""
        return hard_votes(self.n_classes)[self.node_classes]

    def __sizeof__(self) -> int:
        """Size of the arrays, for schedulers that move forests between workers."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def shares(self) -> NDArray[np.float64]:
        """Share of each class in each node."""
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


@kernel
def goes_left(code: Any, threshold: Any, shift: Any, sets: Any) -> Any:
    """Whether a code goes left, at an ordered split or one on a set of categories.

    With shift 0, missing values (code 0) go left with the low bins; with shift 1, they
    wrap around to 255 and go right.
    """
    if shift == CATEGORIES:
        return (sets[threshold, code >> 3] >> (code & 7)) & 1 == 1
    return ((np.int64(code) - np.int64(shift)) & 255) <= threshold


@kernel
def walk(codes: Any, row: Any, nodes: Any, sets: Any) -> Any:
    """The leaf of one row."""
    k = np.int64(0)
    while nodes[k, LEFT] != k:
        code = codes[row, nodes[k, FEATURE]]
        left = goes_left(code, nodes[k, THRESHOLD], nodes[k, SHIFT], sets)
        k = np.int64(nodes[k, LEFT] + (0 if left else 1))
    return k


@kernel
def walk_abreast(codes: Any, start: Any, width: Any, nodes: Any, at: Any) -> None:
    """The leaves of eight rows together, in a tree without splits on categories.

    ``codes`` and ``nodes`` are flat; the first row begins at ``start``, and rows have
    ``width`` codes. Unsigned positions save a test for negative indices at every step.
    """
    for j in range(ABREAST):
        at[j] = 0
    moved = np.uint32(1)
    while moved != 0:
        moved = np.uint32(0)
        for j in range(ABREAST):
            k = at[j]
            node = np.uint64(k) * np.uint64(NODE_COLUMNS)
            row = start + np.uint64(j) * width
            code = np.int32(codes[row + np.uint64(nodes[node])])
            shifted = (code - nodes[node + np.uint64(SHIFT)]) & 255
            right = np.uint32(shifted > nodes[node + np.uint64(THRESHOLD)])
            child = np.uint32(nodes[node + np.uint64(LEFT)]) + right
            moved |= child ^ k
            at[j] = child


@kernel
def find_leaves(codes: Any, nodes: Any, sets: Any, leaves: Any) -> None:
    """The leaf of each row, by traversal."""
    n = len(codes)
    i = 0
    if len(sets) == 0:
        flat_codes, flat_nodes = codes.ravel(), nodes.ravel()
        at = np.empty(ABREAST, np.uint32)
        width = np.uint64(codes.shape[1])
        while i + ABREAST <= n:
            walk_abreast(flat_codes, np.uint64(i) * width, width, flat_nodes, at)
            for j in range(ABREAST):
                leaves[i + j] = at[j]
            i += ABREAST
    while i < n:
        leaves[i] = walk(codes, i, nodes, sets)
        i += 1


@kernel
def split_mask(
    column: Any, here: Any, threshold: Any, shift: Any, sets: Any, left: Any
) -> None:
    """Split the rows of a node, a mask of bytes 0 or 255: move some to ``left``."""
    if shift == CATEGORIES:
        inside = np.empty(N_CODES, np.uint8)
        for code in range(N_CODES):
            inside[code] = 255 if goes_left(code, threshold, shift, sets) else 0
        for i in range(len(column)):
            gone = here[i] & inside[column[i]]
            left[i] = gone
            here[i] ^= gone
        return
    # Bytes throughout, so that 32 rows or more are processed at a time.
    limit, turn = np.uint8(threshold), np.uint8(shift)
    for i in range(len(column)):
        within = np.uint8((np.int32(column[i]) - np.int32(turn)) & 255) <= limit
        gone = here[i] if within else np.uint8(0)
        left[i] = gone
        here[i] ^= gone


@kernel
def mark_side(
    column: Any,
    here: Any,
    threshold: Any,
    shift: Any,
    to_left: Any,
    mark: Any,
    found: Any,
) -> None:
    """Mark the rows of a node that go to the one of its leaves with a class above 0."""
    limit, turn = np.uint8(threshold), np.uint8(shift)
    if to_left:
        for i in range(len(column)):
            within = np.uint8((np.int32(column[i]) - np.int32(turn)) & 255) <= limit
            found[i] |= here[i] & mark if within else np.uint8(0)
    else:
        for i in range(len(column)):
            within = np.uint8((np.int32(column[i]) - np.int32(turn)) & 255) <= limit
            found[i] |= np.uint8(0) if within else here[i] & mark


@kernel
def find_classes(
    columns: Any, nodes: Any, sets: Any, classes: Any, masks: Any, found: Any
) -> None:
    """The class of each row (a byte), where every node splits all rows at once.

    This is more work than a traversal row by row, but much faster for small trees. It is
    depth-first, with one mask per level, so that all masks fit in the cache.
    """
    waiting = np.empty(len(masks), np.int64)
    masks[0, :] = 255
    found[:] = 0
    waiting[0] = 0
    n = 1
    while n > 0:
        n -= 1
        k = waiting[n]
        left = nodes[k, LEFT]
        if left == k:
            if classes[k] > 0:
                mark = classes[k]
                for i in range(len(found)):
                    found[i] |= masks[n, i] & mark
            continue
        column = columns[nodes[k, FEATURE]]
        threshold, shift = nodes[k, THRESHOLD], nodes[k, SHIFT]
        last = nodes[left, LEFT] == left and nodes[left + 1, LEFT] == left + 1
        one, other = classes[left], classes[left + 1]
        if last and shift != CATEGORIES and (one > 0) != (other > 0):
            mark = max(one, other)
            mark_side(column, masks[n], threshold, shift, one > 0, mark, found)
            continue
        split_mask(column, masks[n], threshold, shift, sets, masks[n + 1])
        waiting[n] = left + 1
        waiting[n + 1] = left
        n += 2


@kernel
def cast_tile(
    codes: Any,
    roots: Any,
    nodes: Any,
    set_starts: Any,
    sets: Any,
    classes: Any,
    first: Any,
    at_once: Any,
    asked: Any,
    votes: Any,
) -> None:
    """Votes (rows, trees) of the trees ``asked`` on a tile of rows.

    ``classes`` are the classes that the nodes vote for, and ``first`` is the byte of a vote
    for class 0.
    """
    n = len(codes)
    columns = np.empty((codes.shape[1], n), np.uint8)
    for i in range(n):
        for f in range(codes.shape[1]):
            columns[f, i] = codes[i, f]
    largest = 1
    for t in asked:
        if at_once[t]:
            largest = max(largest, roots[t + 1] - roots[t])
    masks = np.empty((largest, n), np.uint8)
    found = np.empty(n, np.uint8)
    leaves = np.empty(n, np.uint32)
    for t in asked:
        own = nodes[roots[t] : roots[t + 1]]
        own_sets = sets[set_starts[t] : set_starts[t + 1]]
        own_classes = classes[roots[t] : roots[t + 1]]
        if at_once[t]:
            find_classes(columns, own, own_sets, own_classes, masks, found)
            for i in range(n):
                votes[i, t] = found[i] if found[i] != 0 else first
        else:
            find_leaves(codes, own, own_sets, leaves)
            for i in range(n):
                c = own_classes[leaves[i]]
                votes[i, t] = c if c != 0 else first


@kernel
def weigh(votes: Any, asked: Any, weights: Any, total: Any) -> None:
    """Add the weighted votes of the trees ``asked`` to ``total``."""
    for t in asked:
        weight = weights[t]
        for i in range(len(total)):
            total[i] += weight * votes[i, t]


@kernel
def weigh_by_class(votes: Any, asked: Any, weights: Any, total: Any) -> None:
    """Add the weights of the trees ``asked`` to the classes (rows, C) they vote for."""
    for t in asked:
        weight = weights[t]
        for i in range(len(total)):
            total[i, votes[i, t]] += weight


@kernel
def vote_of_row(
    codes: Any,
    roots: Any,
    nodes: Any,
    set_starts: Any,
    sets: Any,
    classes: Any,
    weights: Any,
    total: Any,
) -> None:
    """Add the weighted votes of all trees on one row to ``total``, in order.

    With two classes it is (1, 1), a sum of +1 and -1; with more, (1, C).
    """
    for t in range(len(roots) - 1):
        own = nodes[roots[t] : roots[t + 1]]
        leaf = walk(codes, 0, own, sets[set_starts[t] : set_starts[t + 1]])
        c = classes[roots[t] + leaf]
        if total.shape[1] > 1:
            total[0, c] += weights[t]
        else:
            total[0, 0] += weights[t] if c == 1 else -weights[t]


@kernel
def add_shares(
    codes: Any,
    roots: Any,
    nodes: Any,
    set_starts: Any,
    sets: Any,
    weights: Any,
    total: Any,
) -> None:
    """Add the class shares of the rows' leaves, tree by tree, to ``total`` (rows, C).

    With fewer columns than classes, only the last classes are added.
    """
    n_classes, leaves = weights.shape[1], np.empty(len(codes), np.uint32)
    for t in range(len(roots) - 1):
        own = nodes[roots[t] : roots[t + 1]]
        find_leaves(codes, own, sets[set_starts[t] : set_starts[t + 1]], leaves)
        for i in range(len(codes)):
            leaf, whole = roots[t] + np.int64(leaves[i]), np.int64(0)
            for c in range(n_classes):
                whole += weights[leaf, c]
            for c in range(n_classes - total.shape[1], n_classes):
                share = float(weights[leaf, c]) / float(whole)
                total[i, c - n_classes + total.shape[1]] += share


# What depends on two classes or more.


class TreesOfTwo:
    """Votes are signs, and a weight of rows is a multiple of 2**-30 of the largest."""

    weight_type: type[np.signedinteger[Any]] = np.int64
    """Of the weights in nodes."""

    def fixed_point(self, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        """Weights of rows, the largest 1, as whole numbers."""
        return np.rint(np.ldexp(shares, WEIGHT_BITS)).astype(np.int64)

    def add(self, votes: Any, asked: Any, weights: Any, total: Any) -> None:
        """Add the weighted votes of the trees asked to ``total``."""
        weigh(votes, asked, weights, total)

    def of_all(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """The shares of all classes, from those that are added up."""
        return np.column_stack([1 - shares, shares])


class TreesOfMany:
    """Votes are numbers of classes, and the weights of all rows add up to 2**29."""

    weight_type: type[np.signedinteger[Any]] = np.int32

    def fixed_point(self, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        bits = MAX_TOTAL_BITS - int(np.ceil(np.log2(shares.sum())))
        numbers = np.rint(np.ldexp(shares, bits)).astype(np.int64)
        return np.where(shares >= 2.0 ** (-WEIGHT_BITS - 1), np.maximum(numbers, 1), 0)

    def add(self, votes: Any, asked: Any, weights: Any, total: Any) -> None:
        weigh_by_class(votes, asked, weights, total)

    def of_all(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return shares


def trees_of(n_classes: int) -> TreesOfTwo | TreesOfMany:
    return TreesOfTwo() if n_classes == 2 else TreesOfMany()
