"""Voters in committees, each with a teacher of its own, so that votes stay honest.

A teacher hands on what it knows of its labelled rows to every voter that it teaches. So
a voter that has drawn a labelled row, or whose teacher has seen it, cannot judge it. Each
committee is given a part of the labelled rows; its teacher and its voters know no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..voters import BootstrapSampling

N_COMMITTEES = 10
PART = 2 / 3
"""Of the labelled rows of each class, that a committee is given."""
Rows = NDArray[np.intp]


def deal_parts(signs: NDArray[Any], n_parts: int, seed: int) -> list[Rows]:
    """Random parts of the rows, each with two thirds of either class.

    Examples
    --------
    >>> deal_parts(np.array([-1, -1, -1, 1, 1]), 2, seed=0)
    [array([1, 2, 3]), array([0, 2, 3])]
    """
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(signs == sign) for sign in (-1, 1)]
    fewest = min(len(rows) for rows in classes)
    if fewest < 2:
        raise ValueError(
            f"the rarer class has {fewest} labelled row only; pseudo-labels need two, one "
            f"to teach and one to judge by; unlabeled='disagreement' can do with it"
        )
    parts = []
    for _ in range(n_parts):
        taken = [
            rng.choice(rows, min(max(1, round(PART * len(rows))), len(rows) - 1), False)
            for rows in classes
        ]
        parts.append(np.sort(np.concatenate(taken)))
    return parts


@dataclass(frozen=True, eq=False)
class Committees:
    """The samples of voters whose committees know different rows.

    Attributes
    ----------
    n_rows : int
        Labelled rows first, then unlabelled ones.
    n_labelled : int
    members : sequence of arrays
        The rows that each committee may draw from.
    draws : sequence of BootstrapSampling
        From the members, by their place.
    of_voter : array of shape (K,)
        The committee of each voter.
    """

    n_rows: int
    n_labelled: int
    members: Sequence[Rows]
    draws: Sequence[BootstrapSampling]
    of_voter: NDArray[np.intp]

    @property
    def seed(self) -> int:
        return self.draws[0].seed

    @property
    def replace(self) -> bool:
        return self.draws[0].replace

    @property
    def most_rows(self) -> int:
        return max(draws.most_rows for draws in self.draws)

    def sample(self, voter: int) -> tuple[Rows, Rows]:
        """The rows drawn for this voter, in order, and how many times each."""
        committee = self.of_voter[voter]
        places, times = self.draws[committee].sample(voter)
        return self.members[committee][places], times

    def random_state(self, voter: int) -> int:
        return self.draws[0].random_state(voter)

    def out_of_bag(self, voter: int) -> NDArray[np.bool_]:
        """Labelled rows unknown to the committee, and unlabelled ones not drawn."""
        unseen = np.ones(self.n_rows, dtype=np.bool_)
        known = self.members[self.of_voter[voter]]
        unseen[known[known < self.n_labelled]] = False
        unseen[self.sample(voter)[0]] = False
        return unseen
