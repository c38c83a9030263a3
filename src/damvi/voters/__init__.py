"""Step 1 of DAMVI: the voters. Several kinds share one interface."""

from __future__ import annotations

from .columns import NumberEncoder, RateEncoder, many_categories
from .estimators import BaggedVoters, SomeRows, VoteReader, Voters
from .pool import PoolVoters, out_of_fold_votes
from .portfolio import CategoryBoostingClassifier, NetworksClassifier, strong_pool
from .sampling import BootstrapSampling, GroupSampling, PoissonSampling, Sampling
from .trees.estimators import FastForestClassifier, FastTreeClassifier

__all__ = [
    "BaggedVoters",
    "BootstrapSampling",
    "CategoryBoostingClassifier",
    "FastForestClassifier",
    "FastTreeClassifier",
    "GroupSampling",
    "NetworksClassifier",
    "NumberEncoder",
    "PoissonSampling",
    "PoolVoters",
    "RateEncoder",
    "Sampling",
    "SomeRows",
    "VoteReader",
    "Voters",
    "many_categories",
    "out_of_fold_votes",
    "strong_pool",
]
