"""Step 1 of DAMVI on labelled and pseudo-labelled rows, judged on labelled ones alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from ._compat import take_rows
from .ballots import Ballots
from .electing import ElectsVoters
from .folds import deal_folds
from .progress import progress_bar
from .unlabelled import Committees, PseudoLabels, centroid_scores, most_confident
from .unlabelled.committees import N_COMMITTEES, deal_parts
from .unlabelled.table import stack_rows
from .voters import BootstrapSampling, voters_for
from .voters.portfolio import scaled_table

TEACHERS = ("kmeans", "self")
Rows = NDArray[np.intp]


class TeachesVoters(ElectsVoters):
    """The part of :class:`~damvi.DAMVIClassifier` that trains on pseudo-labels."""

    positive_rate: float | None

    def _elect_taught(
        self,
        X: Any,
        signs: NDArray[np.int8],
        base: NDArray[np.float64] | None,
        fresh: Any,
        fit_params: dict[str, Any],
        teacher: str,
    ) -> tuple[Ballots, Committees]:
        """Train the voters, each in a committee with a teacher of its own."""
        self._refuse_teacher(fit_params, teacher)
        seed = self._plan_draws(signs, base).seed
        weights = np.ones(len(signs)) if base is None else base
        used = np.flatnonzero(weights > 0)
        n_parts = min(N_COMMITTEES, self.n_estimators)
        parts = [used[part] for part in deal_parts(signs[used], n_parts, seed)]
        rate = self.positive_rate
        if rate is None:
            rate = float(weights[signs > 0].sum() / weights.sum())
        table = stack_rows(X, fresh)
        if teacher == "kmeans":
            scale = scaled_table(centre=not sparse.issparse(table)).fit(table)
            X, fresh = scale.transform(X), scale.transform(fresh)
        taught = []
        for number, part in enumerate(parts):
            if teacher == "kmeans":
                scores = centroid_scores(X[part], signs[part], fresh, seed=seed)
            else:
                scores = self._own_scores(X, signs, base, part, fresh, (seed, number))
            taught.append(most_confident(scores, rate))
        votes, committees = self._train_taught(table, signs, weights, parts, taught, seed)
        n = len(signs)
        unseen = [np.packbits(committees.out_of_bag(k)[:n]) for k in range(len(votes.T))]
        ballots = self._contest.ballots(
            np.asfortranarray(votes[:n]),
            signs,
            base,
            deal_folds(signs, seed),
            self._balance,
            np.stack(unseen),
            only_unseen=True,
        )
        assert isinstance(ballots, Ballots)  # of two classes
        return ballots, committees

    def _refuse_teacher(self, fit_params: dict[str, Any], teacher: str) -> None:
        if self._is_pool:
            raise ValueError(
                f"unlabeled={teacher!r} trains a single kind of voter on pseudo-labels; a "
                f"pool takes unlabeled='disagreement'"
            )
        self._check_voting()
        if self.warm_start:
            raise ValueError(
                f"warm_start cannot add to voters that unlabeled={teacher!r} has taught; "
                f"set warm_start=False"
            )
        if fit_params:
            raise TypeError(
                f"voters that learn from pseudo-labels take no {', '.join(fit_params)}, "
                f"which unlabelled rows lack"
            )

    def _own_scores(
        self,
        X: Any,
        signs: NDArray[np.int8],
        base: NDArray[np.float64] | None,
        part: Rows,
        fresh: Any,
        seed: tuple[int, int],
    ) -> NDArray[np.float64]:
        """The vote of a model like this one that knows a part of the labelled rows."""
        state = int(np.random.default_rng(seed).integers(np.iinfo(np.int32).max))
        teacher: Any = clone(self).set_params(
            unlabeled=None, threshold="vote", pos_label=1, random_state=state, verbose=0
        )
        own = None if base is None else base[part]
        with warnings.catch_warnings():
            # Samples without a positive: the voters' own training says so, once.
            warnings.simplefilter("ignore", UserWarning)
            teacher.fit(take_rows(X, part), signs[part], sample_weight=own)
        vote: NDArray[np.float64] = teacher.vote(fresh)
        return vote

    def _train_taught(
        self,
        table: Any,
        signs: NDArray[np.int8],
        weights: NDArray[np.float64],
        parts: list[Rows],
        taught: list[PseudoLabels],
        seed: int,
    ) -> tuple[NDArray[np.int8], Committees]:
        """The voters of all committees, one after the other, and their votes."""
        n, n_all = len(signs), table.shape[0]
        members, draws, y, all_weights = [], [], [], []
        for part, found in zip(parts, taught, strict=True):
            # Together they count for no more than the labelled rows.
            each = min(1.0, float(weights[part].sum()) / len(found.rows))
            members.append(np.concatenate([part, n + found.rows]))
            all_weights.append(np.concatenate([weights, np.full(n_all - n, each)]))
            y.append(np.concatenate([signs > 0, np.zeros(n_all - n, bool)]).astype(np.int8))
            y[-1][n + found.rows] = found.positive
            draws.append(
                BootstrapSampling.plan(
                    2 * y[-1][members[-1]] - 1,
                    max_samples=self.max_samples,
                    seed=seed,
                    replace=bool(self.bootstrap),
                    stratified=self.stratified,
                    sample_weight=all_weights[-1][members[-1]],
                )
            )
        of_voter = np.arange(self.n_estimators) * len(parts) // self.n_estimators
        committees = Committees(n_all, n, members, draws, of_voter)
        family: Any = voters_for(self._voter())
        voters = votes = None
        order: Iterable[int] = range(len(parts))
        if self.verbose:
            order = progress_bar("Training voters")(order, len(parts))
        for number in order:
            voters, votes = family.train(
                self._voter(),
                table,
                y[number],
                committees,
                int((of_voter <= number).sum()),
                known=voters,
                sample_weight=None if self.bootstrap else all_weights[number],
                n_jobs=self.n_jobs,
            )
        self._voters, self._seed, self._fingerprint = voters, seed, "taught"
        return np.asarray(votes), committees
