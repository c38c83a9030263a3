"""Tables that are read a block at a time: on disk here, or on the machines of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from sklearn.base import clone

from ..hashing import Hashes
from ..labels import Labels
from .parquet import ParquetTable

if TYPE_CHECKING:
    from ..voters.trees.voters import TreeVoters
    from .blocks import BlockVotes

__all__ = ["BlockFit", "ParquetTable", "Trained"]


class BlockFit(NamedTuple):
    """The settings of a fit, as a table that trains voters on its blocks needs them.

    Attributes
    ----------
    tree : FastTreeClassifier
    n_estimators, max_samples, stratified, pos_label, n_jobs, verbose
        As in :class:`~damvi.DAMVIClassifier`.
    only_out_of_bag : bool
        Whether the weights are learned from out-of-bag votes alone.
    check_labels : callable
        Refuses what cannot be done with such :class:`~damvi.labels.Labels`.
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
        """A tree of its own, its parameters checked."""
        tree = clone(self.tree)
        tree._validate_params()
        return tree


class Trained(NamedTuple):
    """Voters, and their votes on the rows where these are."""

    voters: TreeVoters
    votes: BlockVotes
    row_hashes: Hashes
    feature_names: list[str] | None
