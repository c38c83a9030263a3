"""Trees in plain arrays, whoever grew them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Places = NDArray[np.int64]

LEQ, LT, MEMBER = 0, 1, 6
"""How a node splits: what goes left is at most the threshold, below it, or in a set."""
LEAF = -1


@dataclass(frozen=True, eq=False)
class Trees:
    """T trees, their nodes one after the other, each with a value in every leaf.

    Attributes
    ----------
    roots : ndarray of shape (T,)
    feature : ndarray of shape (nodes,)
    mode : ndarray of shape (nodes,)
        LEQ, LT or MEMBER.
    threshold : ndarray of shape (nodes,)
    left, right : ndarray of shape (nodes,)
        The children; ``left`` is LEAF for a leaf.
    missing_left : ndarray of bool, shape (nodes,)
        Where NaN goes; not asked at splits by set, whose features are codes.
    value : ndarray of shape (nodes,)
        Of the leaves.
    sets : dict of ndarray
        For a node of mode MEMBER, the codes that go left: whole numbers, 0 or more.
    """

    roots: Places
    feature: Places
    mode: NDArray[np.uint8]
    threshold: Values
    left: Places
    right: Places
    missing_left: NDArray[np.bool_]
    value: Values
    sets: dict[int, Values]

    @classmethod
    def of_nodes(
        cls,
        *,
        feature: Any,
        threshold: Any,
        left: Any,
        right: Any,
        missing_left: Any,
        value: Any,
        mode: int = LEQ,
    ) -> Trees:
        """One tree with splits of one mode, its root first."""
        size = len(feature)
        return cls(
            roots=np.zeros(1, dtype=np.int64),
            feature=np.asarray(feature, dtype=np.int64),
            mode=np.full(size, mode, dtype=np.uint8),
            threshold=np.asarray(threshold, dtype=np.float64),
            left=np.asarray(left, dtype=np.int64),
            right=np.asarray(right, dtype=np.int64),
            missing_left=np.asarray(missing_left, dtype=bool),
            value=np.asarray(value, dtype=np.float64),
            sets={},
        )

    @classmethod
    def join(cls, some: Sequence[Trees]) -> Trees:
        """All their trees in one."""
        starts = np.cumsum([0, *(len(trees.feature) for trees in some)])[:-1].tolist()
        moved = [trees._moved(start) for trees, start in zip(some, starts, strict=True)]

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(trees, name) for trees in moved])

        return cls(
            roots=joined("roots"),
            feature=joined("feature"),
            mode=joined("mode"),
            threshold=joined("threshold"),
            left=joined("left"),
            right=joined("right"),
            missing_left=joined("missing_left"),
            value=joined("value"),
            sets={node: s for trees in moved for node, s in trees.sets.items()},
        )

    def _moved(self, start: int) -> Trees:
        return replace(
            self,
            roots=self.roots + start,
            left=np.where(self.left == LEAF, LEAF, self.left + start),
            right=np.where(self.left == LEAF, LEAF, self.right + start),
            sets={node + start: values for node, values in self.sets.items()},
        )

    def __len__(self) -> int:
        return len(self.roots)
