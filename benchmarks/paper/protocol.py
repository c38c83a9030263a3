"""How rows are shared out between training and test."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupShuffleSplit, train_test_split

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Protocol:
    """Repeated splits into 70 % training and 30 % test rows, as in the paper.

    Parameters
    ----------
    splits : {"random", "stratified", "groups"}, default="random"
        Plain random as in the paper; with equal class rates on both sides; or with whole
        groups of rows on either side, so that no group tells on itself.
    test_size : float, default=0.3
        The share of the test rows (of the groups, for splits by groups).
    seed : int, default=0
        Split number s, and every method in it, has the seed ``seed + s``: for other splits,
        take a seed that is further away than there are splits.
    """

    splits: Literal["random", "stratified", "groups"] = "random"
    test_size: float = 0.3
    seed: int = 0

    def split(
        self, y: NDArray[Any], groups: NDArray[Any] | None, number: int, ratio: float | None
    ) -> tuple[Rows, Rows]:
        """Training and test rows of split ``number``.

        ``ratio`` first takes rows of one class away, at random, until it is the share of
        the positives.
        """
        seed = self.seed + number
        rows = np.arange(len(y)) if ratio is None else rows_at_ratio(y, ratio, seed)
        if self.splits == "groups":
            if groups is None:
                raise ValueError("splits by groups need to know the groups")
            halves = GroupShuffleSplit(1, test_size=self.test_size, random_state=seed)
            train, test = next(halves.split(rows, groups=groups[rows]))
            return rows[train], rows[test]
        train, test = train_test_split(
            rows,
            test_size=self.test_size,
            stratify=y[rows] if self.splits == "stratified" else None,
            random_state=seed,
        )
        return train, test

    @property
    def words(self) -> str:
        """The splits in a few words, for captions."""
        kind = {"random": "plain random", "stratified": "stratified", "groups": "by groups"}
        train, test = round(100 - 100 * self.test_size), round(100 * self.test_size)
        return f"{kind[self.splits]} {train}/{test}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def rows_at_ratio(y: NDArray[Any], ratio: float, seed: int) -> Rows:
    """Rows among which the positives have a share of ``ratio``, as many as there can be."""
    positives, negatives = np.flatnonzero(y > 0), np.flatnonzero(y <= 0)
    rng = np.random.default_rng(seed)
    if ratio * len(y) < len(positives):
        wanted = max(2, round(ratio / (1 - ratio) * len(negatives)))
        positives = rng.choice(positives, wanted, replace=False)
    else:
        wanted = round((1 - ratio) / ratio * len(positives))
        negatives = rng.choice(negatives, wanted, replace=False)
    return np.sort(np.concatenate([positives, negatives]))
