"""A fit on a table that is not in memory: on disk, or on a cluster."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

import numpy as np

from .fingerprint import thinned
from .revising import RevisesWeights
from .voters import FastTreeClassifier

PRINTS_TO_KEEP = 2**20
"""Of more rows than this, one in so many is remembered for certificates."""


def print_step(n_rows: int) -> int:
    """Of how many rows one is remembered."""
    return 1 << max(0, (n_rows // PRINTS_TO_KEEP).bit_length())


class EnrolsTables(RevisesWeights):
    """The part of :class:`~damvi.DAMVIClassifier` that fits on tables beyond memory."""

    feature_names_in_: Any

    def _is_elsewhere(self, X: Any) -> bool:
        """Whether the table is on disk."""
        if isinstance(X, str | PathLike):
            return True
        from .blocks import ParquetTable

        return isinstance(X, ParquetTable)

    def _fit_on_disk(
        self, X: Any, y: Any, sample_weight: Any, X_unlabeled: Any, fit_params: Any
    ) -> Self:
        from .blocks import ParquetTable
        from .blocks.electing import TableReader, elect_from_disk

        table = X.afresh() if isinstance(X, ParquetTable) else ParquetTable(X)
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            if not isinstance(given, str) and (given is not None or name == "y"):
                raise TypeError(
                    f"X is a parquet dataset, so {name} must be the name of one of its "
                    f"columns, and not a {type(given).__name__}"
                )
        if X_unlabeled is not None or fit_params:
            unused = ", ".join([*fit_params] or ["X_unlabeled"])
            raise TypeError(f"a fit on a parquet dataset does not take {unused}")
        self._check_blocks()
        reader = TableReader(table, y, sample_weight, self.n_jobs, self.verbose)
        elected: Any = elect_from_disk(self, reader, self._new_seed(), self._balance)
        self._take_office(elected)
        elected.ballots.blocks.owner.removed_when_unused()
        return self

    def _check_blocks(self) -> None:
        """That the settings are those of a fit block by block."""
        voter = self.estimator
        if not (voter is None or isinstance(voter, FastTreeClassifier)):
            raise ValueError(
                f"estimator={voter!r} needs all rows in memory; for a table beyond it, "
                f"take the built-in trees (estimator=None), or fit on a sample"
            )
        if not self.bootstrap:
            raise ValueError(
                "a table beyond memory is drawn row by row, with replacement; set "
                "bootstrap=True or 'poisson'"
            )
        if self.warm_start:
            raise ValueError("warm_start needs a table in memory; set it to False")
        self._check_voting()

    def _take_office(self, elected: Any) -> Self:
        """Keep what was elected block by block, weight the voters and decide."""
        contest, voters = elected.contest, elected.voters
        contest.aim(self._choice(self.threshold, "vote", contest.tuned_for))
        self.classes_, self.pos_label_ = contest.classes, contest.pos_label
        self._majority, self._voters = contest.majority, voters
        self.n_features_in_ = len(voters.features)
        vars(self).pop("feature_names_in_", None)
        if elected.names is not None:
            self.feature_names_in_ = np.array(elected.names, dtype=object)
        self._keeps_frames = voters.features.categories is not None
        plan = elected.ballots.plan
        self._seed, self._fingerprint = plan.seed, "in blocks"
        self._print_step = print_step(plan.census.n_rows)
        self._row_prints = np.sort(thinned(elected.prints, self._print_step))
        self._ballots = elected.ballots
        self._settle_eta()
        self._warn_of_lacking(plan.census.rows)
        return self._weigh_and_decide()
