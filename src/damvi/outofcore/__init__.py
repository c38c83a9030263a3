"""Out-of-core fits: tables read in blocks, from disk or from the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..folds import Split
from ..hashing import Hashes
from ..labels import Labels
from .parquet import ParquetTable

if TYPE_CHECKING:
    from ..voters import PoolVoters
    from ..voters.trees.estimators import TreeVoters
    from .blocks import BlockVotes

__all__ = ["BlockFit", "ParquetTable", "PoolFit", "Trained", "TrainedPool"]


class BlockFit(NamedTuple):
    """The settings of a fit on a table that trains voters in blocks.

    Attributes
    ----------
    tree : FastTreeClassifier
    n_estimators, max_samples, stratified, pos_label, n_jobs, verbose
        As in :class:`~damvi.DAMVIClassifier`.
    only_out_of_bag : bool
        Whether the weights are learned from out-of-bag votes only.
    check_labels : callable
        Rejects unsupported :class:`~damvi.labels.Labels`.
    seed : int
    repeatable : bool
        Whether another fit can have the same seed, and resume this one.
    """

    tree: Any
    n_estimators: int
    max_samples: float | int
    stratified: bool
    only_out_of_bag: bool
    pos_label: Any
    check_labels: Callable[[Labels], Any]
    seed: int
    repeatable: bool
    n_jobs: int | None
    verbose: int

    def new_tree(self) -> Any:
        """Return a new tree with validated parameters."""
        tree = clone(self.tree)
        tree._validate_params()
        return tree


class Trained(NamedTuple):
    """Voters, and their votes on the rows, wherever these are."""

    voters: TreeVoters
    votes: BlockVotes
    row_hashes: Hashes
    feature_names: list[str] | None


class PoolFit(NamedTuple):
    """The settings of a fit of a pool on an out-of-core table.

    Attributes
    ----------
    named : list of (str, classifier), or None
        The pool; None for the strong pool.
    voting, pos_label, n_jobs, verbose
        As in :class:`~damvi.DAMVIVotingClassifier`.
    n_folds : int
    check_labels : callable
        Rejects unsupported :class:`~damvi.labels.Labels`.
    seed : int
    """

    named: list[tuple[str, Any]] | None
    voting: Any
    n_folds: int
    pos_label: Any
    check_labels: Callable[[Labels], Any]
    seed: int
    n_jobs: int | None
    verbose: int


class TrainedPool(NamedTuple):
    """Different models, and their out-of-sample votes.

    Attributes
    ----------
    labels : Labels
    targets : ndarray of shape (n,)
    weights : ndarray of shape (n,), or None
    voters : PoolVoters
    votes : ndarray of shape (n, K), or (n, K, C)
    split : Split
    row_hashes : ndarray of uint64
        Sorted hashes of the recorded rows.
    row_hash_step : int
        One in this many rows is recorded.
    seconds : dict of str to float
        Training time of each voter.
    n_features : int
    columns : list of str, or None
        Feature names.
    """

    labels: Labels
    targets: NDArray[Any]
    weights: NDArray[np.float64] | None
    voters: PoolVoters
    votes: NDArray[Any]
    split: Split
    row_hashes: Hashes
    row_hash_step: int
    seconds: dict[str, float]
    n_features: int = 0
    columns: list[str] | None = None
