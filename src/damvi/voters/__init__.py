"""Step 1 of DAMVI: the voters. Several kinds share one interface."""

from __future__ import annotations

from .bagging import BaggedVoters
from .category_boosting import CategoryBoostingClassifier
from .columns import NumberEncoder, RateEncoder, many_categories
from .estimators import SomeRows, VoteReader, Voters
from .networks import NetworksClassifier
from .pool import PoolVoters, out_of_fold_votes
from .portfolio import strong_pool
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
