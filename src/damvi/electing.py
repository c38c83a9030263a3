"""Step 1 of DAMVI, as the estimator runs it: who votes, and on what rows."""

from __future__ import annotations

import warnings
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from ._compat import refuse_params, routing_enabled
from .ballots import Ballots
from .class_ballots import ClassBallots
from .contest import ManyClasses, TwoClasses, contest_of, read_contest
from .crossfit import N_FOLDS
from .decision import supports_many_classes
from .folds import deal_folds, deal_folds_by_rank, split_rows
from .progress import progress_bar
from .reading import read_table, read_weights
from .voters import (
    BootstrapSampling,
    FastTreeClassifier,
    PoissonSampling,
    PoolVoters,
    Sampling,
    strong_pool,
    voters_for,
)

POOL_WAYS = ("oof", "prefit")
POISSON = "poisson"


class ElectsVoters:
    """The part of :class:`~damvi.DAMVIClassifier` that trains voters and takes votes."""

    estimator: Any
    n_estimators: int
    max_samples: float | int
    bootstrap: bool | str
    stratified: bool
    votes: str
    voting: str
    cv: Any
    calibration: str | None
    balance: float | str
    threshold: Any
    n_jobs: int | None
    random_state: Any
    verbose: int
    warm_start: bool
    classes_: NDArray[Any]
    pos_label_: Any
    n_features_in_: int
    _seed: int
    _fingerprint: str
    pos_label: Any
    _keeps_frames: bool
    _majority: Any
    _voters: Any

    def _choice(self, value: Any, single: Any, pool: Any) -> Any:
        """A setting, or what "auto" means for a single voter and for a pool."""
        if isinstance(value, str) and value == "auto":
            return pool if self._is_pool else single
        return value

    def _voter(self) -> Any:
        return FastTreeClassifier() if self.estimator is None else self.estimator

    @property
    def _is_pool(self) -> bool:
        return isinstance(self.estimator, str | list)

    @property
    def _named(self) -> list[tuple[str, Any]]:
        """The voters of a list, by name."""
        if not isinstance(self.estimator, list):
            return []
        for entry in self.estimator:
            if not (
                isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)
            ):
                raise ValueError(
                    f"estimator is a list, and {entry!r} in it is not a pair; give each "
                    f"voter a name, as in [('linear', LogisticRegression()), ...]"
                )
            if entry[0] == "splitter":
                raise ValueError(
                    "a voter is named 'splitter', which metadata routing needs for cv; "
                    "give it another name"
                )
        return self.estimator

    @property
    def _way(self) -> str:
        """How the votes come about; "auto" is the paper's way for a single voter."""
        way = self.votes
        if way == "auto":
            return "oof" if self._is_pool else "train"
        if self._is_pool != (way in POOL_WAYS):
            raise ValueError(
                f"votes={way!r} does not go with this estimator: a list of voters takes "
                f"'oof' or 'prefit', a single one, drawn many times, 'train' or 'oob'"
            )
        return way

    def _read_training_set(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, NDArray[Any], NDArray[np.float64] | None]:
        voter = self._voter()
        if not self._is_pool and not is_classifier(voter):
            raise ValueError(
                f"estimator={self.estimator!r} is not a classifier, and only "
                f"classifiers can vote"
            )
        is_tree = isinstance(voter, FastTreeClassifier)
        self._keeps_frames = not is_tree or voter.wants_frame(X)
        X, y = read_table(self, X, y, keep_frame=self._keeps_frames)
        contest, signs = self._read_labels(y)
        self.classes_, self.pos_label_ = contest.classes, contest.pos_label
        self._majority = contest.majority
        contest.aim(self._choice(self.threshold, "vote", contest.tuned_for))
        return X, signs, read_weights(sample_weight, signs, self.classes_)

    def _read_labels(self, y: Any) -> tuple[TwoClasses | ManyClasses, NDArray[Any]]:
        """What is voted on, and each row's sign (or number, of more than two classes)."""
        contest, signs = read_contest(y, self.pos_label)
        if len(contest.classes) > 2 and not self._voters_know_many:
            raise ValueError(
                f"Only binary classification is supported by the voters given, and y has "
                f"{len(contest.classes)} classes; take voters that know more than two, "
                f"such as the default, or name one class against the rest, as in "
                f"y == {contest.classes.tolist()[0]!r}"
            )
        return contest, signs

    @property
    def _contest(self) -> TwoClasses | ManyClasses:
        """Two classes, or many."""
        contest: TwoClasses | ManyClasses = contest_of(
            self.classes_, self.pos_label_, self._majority
        )
        return contest

    @property
    def _balance(self) -> float:
        # What won on the development datasets: results/pools.
        return float(self._choice(self.balance, 0.0, 0.25))

    def _elect(
        self,
        X: Any,
        signs: NDArray[Any],
        base: NDArray[np.float64] | None,
        fit_params: dict[str, Any],
    ) -> Ballots | ClassBallots:
        """Train the voters and take their votes."""
        if self._is_pool:
            return self._elect_pool(X, signs, base, fit_params)
        way = self._check_voting()
        draws = self._plan_draws(signs, base)
        votes = self._train_voters(X, signs, draws, base, fit_params)
        return self._contest.ballots(
            votes,
            signs,
            base,
            self._deal_folds(signs, draws.seed),
            self._balance,
            draws.out_of_bag_bits(votes.shape[1]),
            only_unseen=way == "oob",
        )

    def _check_voting(self) -> str:
        """How the votes of a single voter come about, if it can vote as asked."""
        if self.voting == "soft":
            raise ValueError("voting='soft' is for a list of voters; trees vote 'hard'")
        return self._way

    def _elect_pool(
        self,
        X: Any,
        signs: NDArray[Any],
        base: NDArray[np.float64] | None,
        fit_params: dict[str, Any],
    ) -> Ballots | ClassBallots:
        contest = self._contest
        if self.warm_start:
            raise ValueError("warm_start adds trees to trees; it has no use for a pool")
        seed = self._new_seed()
        named = self.estimator
        if isinstance(named, str):
            named = strong_pool(seed, sparse=hasattr(X, "tocsr"))
        soft = self.voting != "hard"
        voting: Any = "soft" if soft else "hard"
        groups, own_params = self._route(named, fit_params)
        if self._way == "prefit":
            classes = self.classes_
            if self.pos_label_ == classes[0]:  # the positive class comes second
                classes = classes[::-1]
            voters = PoolVoters.prefit(named, classes=classes, voting=voting)
            votes = voters.votes(X, self.n_jobs)
            cv = N_FOLDS if self.cv is None else self.cv
            targets = contest.targets(signs)
            folds: NDArray[Any] = split_rows(cv, X, targets, groups, seed=seed)[1]
        else:
            voters, votes, folds = PoolVoters.train(
                named,
                X,
                contest.targets(signs),
                n_classes=len(self.classes_),
                seed=seed,
                cv=5 if self.cv is None else self.cv,
                groups=groups,
                voting=voting,
                sample_weight=base,
                fit_params=own_params,
                n_jobs=self.n_jobs,
                progress=progress_bar("Training voters") if self.verbose else None,
            )
        if soft and self.calibration is not None:
            votes, calibrators = contest.calibrate(
                votes, signs, base, folds, self._balance, self.calibration
            )
            voters = voters.calibrated(calibrators)
        self._voters = voters
        return contest.ballots(votes, signs, base, folds, self._balance)

    def _plan_draws(
        self, signs: NDArray[Any], sample_weight: NDArray[np.float64] | None
    ) -> Sampling:
        keeps_voters = self.warm_start and hasattr(self, "weights_")
        seed = self._seed if keeps_voters else self._new_seed()
        draws = self._draws_by(seed, signs, sample_weight)
        if keeps_voters and self._fingerprint_of(draws, signs) != self._fingerprint:
            raise ValueError(
                "warm_start adds voters to those of the last fit, so the rows, y, "
                "sample_weight, pos_label, the columns, the kind of voter, max_samples, "
                "bootstrap and stratified must be the same; set warm_start=False to "
                "start again"
            )
        if keeps_voters and self.n_estimators < len(self._voters):
            raise ValueError(
                f"n_estimators={self.n_estimators} is below the {len(self._voters)} "
                f"voters that warm_start keeps; raise it, or set warm_start=False to "
                f"start again"
            )
        return draws

    def _new_seed(self) -> int:
        rng = check_random_state(self.random_state)
        return int(rng.randint(np.iinfo(np.int32).max))

    def _draws_by(
        self, seed: int, signs: NDArray[Any], sample_weight: NDArray[np.float64] | None
    ) -> Sampling:
        settings: dict[str, Any] = {
            "max_samples": self.max_samples,
            "seed": seed,
            "stratified": self.stratified,
            "sample_weight": sample_weight,
        }
        if self.bootstrap == POISSON:
            return PoissonSampling.plan(self._contest.targets(signs), **settings)
        return BootstrapSampling.plan(signs, replace=bool(self.bootstrap), **settings)

    def _deal_folds(self, signs: NDArray[Any], seed: int) -> NDArray[np.int8]:
        if self.bootstrap == POISSON:
            return deal_folds_by_rank(self._contest.targets(signs), seed)
        return deal_folds(signs, seed)

    def _fingerprint_of(self, draws: Sampling, signs: NDArray[Any]) -> str:
        """What must not change for voters to be kept."""
        columns = self.n_features_in_, getattr(self, "feature_names_in_", None)
        family = voters_for(self._voter()).__name__
        digest: str = joblib.hash((draws, signs, columns, family, self._keeps_frames))
        return digest

    def _train_voters(
        self,
        X: Any,
        signs: NDArray[Any],
        draws: Sampling,
        sample_weight: NDArray[np.float64] | None,
        fit_params: dict[str, Any],
    ) -> NDArray[Any]:
        refuse_params(fit_params, self, "fit")
        if routing_enabled():
            fit_params = process_routing(self, "fit", **fit_params).estimator.fit
        family = voters_for(self._voter())
        goes_on = self.warm_start and hasattr(self, "weights_")
        self._voters, votes = family.train(
            self._voter(),
            X,
            self._contest.targets(signs),
            draws,
            self.n_estimators,
            n_classes=len(self.classes_),
            known=self._voters if goes_on else None,
            sample_weight=sample_weight,
            fit_params=fit_params,
            n_jobs=self.n_jobs,
            progress=progress_bar("Training voters") if self.verbose else None,
        )
        self._seed, self._fingerprint = draws.seed, self._fingerprint_of(draws, signs)
        self._warn_of_lacking(self._contest.census(signs, None).rows)
        return votes

    def _warn_of_lacking(self, rows: NDArray[np.int64]) -> None:
        """Say so when voters have seen none of a class; ``rows`` are those of each."""
        lacking = self._contest.lacking(self._voters, rows)
        if lacking:
            warnings.warn(lacking, UserWarning, stacklevel=7)

    def _route(
        self, named: list[tuple[str, Any]], fit_params: dict[str, Any]
    ) -> tuple[Any, dict[str, dict[str, Any]]]:
        """Groups for the folds of a pool, and what else each voter asked for."""
        if not routing_enabled():
            groups = fit_params.pop("groups", None)
            if fit_params:
                raise TypeError(
                    f"a pool takes groups, and not {', '.join(fit_params)}; its voters get "
                    f"more with sklearn.set_config(enable_metadata_routing=True)"
                )
            return groups, {}
        if not fit_params:
            return None, {}
        routed = process_routing(self, "fit", **fit_params)
        given = {name: routed[name].fit for name, _ in named if name in routed}
        return routed.splitter.split.get("groups"), given

    def get_metadata_routing(self) -> MetadataRouter:
        """How metadata reaches the voters; see scikit-learn's user guide."""
        router = MetadataRouter(owner=self).add_self_request(self)
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        if not self._is_pool:
            return router.add(estimator=self._voter(), method_mapping=to_fit)
        heeds = hasattr(self.cv, "get_metadata_routing")
        router.add(
            splitter=self.cv if heeds else StratifiedGroupKFold(),
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )
        for name, voter in self._named:
            router.add(**{name: voter}, method_mapping=to_fit)
        return router

    @property
    def _all_voters(self) -> list[Any]:
        """As given; none where the pool is yet to be made."""
        if self._is_pool:
            return [voter for _, voter in self._named]
        return [self._voter()]

    @property
    def _voters_know_many(self) -> bool:
        """Whether all voters take three classes and more, as far as they say."""
        kinds = [get_tags(voter).classifier_tags for voter in self._all_voters]
        return all(kind is None or kind.multi_class for kind in kinds)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]
        inputs = [get_tags(voter).input_tags for voter in self._all_voters]
        tags.input_tags.sparse = all(input_tags.sparse for input_tags in inputs)
        tags.input_tags.allow_nan = all(input_tags.allow_nan for input_tags in inputs)
        tags.classifier_tags.multi_class = (
            self._voters_know_many
            and self.pos_label is None
            and supports_many_classes(self.threshold)
        )
        return tags
