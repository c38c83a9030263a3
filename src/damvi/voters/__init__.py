"""Step 1 of DAMVI: who votes. One interface, several families."""

from __future__ import annotations

from typing import Any

from .bagging import BaggedVoters
from .draws import Draws
from .interface import Voters, Votes
from .pool import PoolVoters
from .strong import strong_pool
from .trees.estimators import FastForestClassifier, FastTreeClassifier

__all__ = [
    "BaggedVoters",
    "Draws",
    "FastForestClassifier",
    "FastTreeClassifier",
    "PoolVoters",
    "Voters",
    "Votes",
    "family_of",
    "strong_pool",
]


def family_of(estimator: Any) -> type[Voters]:
    """The family of voters that an estimator belongs to."""
    if isinstance(estimator, FastTreeClassifier):
        from .trees.voters import TreeVoters  # imports numba

        return TreeVoters
    return BaggedVoters
