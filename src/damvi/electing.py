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
from .crossfit import N_FOLDS, deal_folds, unseen_rows
from .progress import progress_bar
from .reading import encode_labels, read_table, read_weights
from .voters import Draws, FastTreeClassifier, PoolVoters, family_of, strong_pool
from .voters.calibration import calibrate

POOL_WAYS = ("oof", "prefit")


class ElectsVoters:
    """The part of :class:`~damvi.DAMVIClassifier` that trains voters and takes votes."""

    estimator: Any
    n_estimators: int
    max_samples: float | int
    bootstrap: bool
    stratified: bool
    votes: str
    voting: str
    cv: Any
    refit: bool
    calibration: str | None
    balance: float | str
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
    _majority: int
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
    ) -> tuple[Any, NDArray[np.int8], NDArray[np.float64] | None]:
        voter = self._voter()
        if not self._is_pool and not is_classifier(voter):
            raise ValueError(
                f"estimator={self.estimator!r} is not a classifier, and only "
                f"classifiers can vote"
            )
        is_tree = isinstance(voter, FastTreeClassifier)
        self._keeps_frames = not is_tree or voter.wants_frame(X)
        X, y = read_table(self, X, y, keep_frame=self._keeps_frames)
        self.classes_, self.pos_label_, signs = encode_labels(y, self.pos_label)
        positive_is_last = self.pos_label_ == self.classes_[1]
        # Of two equal classes, the negative one.
        self._majority = int(positive_is_last == (2 * (signs > 0).sum() > len(signs)))
        return X, signs, read_weights(sample_weight, signs)

    def _elect(
        self,
        X: Any,
        signs: NDArray[np.int8],
        base: NDArray[np.float64] | None,
        fit_params: dict[str, Any],
    ) -> Ballots:
        """Train the voters and take their votes."""
        if self._is_pool:
            return self._elect_pool(X, signs, base, fit_params)
        way = self._check_voting()
        draws = self._plan_draws(signs, base)
        votes = self._train_voters(X, signs, draws, base, fit_params)
        return Ballots(
            votes,
            signs,
            base,
            deal_folds(signs, draws.seed),
            unseen_rows(draws, len(signs), votes.shape[1]),
            only_unseen=way == "oob",
            lean=self._lean(signs, base),
        )

    def _check_voting(self) -> str:
        """How the votes of a single voter come about, if it can vote as asked."""
        if self.voting == "soft":
            raise ValueError("voting='soft' is for a list of voters; trees vote 'hard'")
        return self._way

    def _lean(self, signs: NDArray[np.int8], base: NDArray[np.float64] | None) -> float:
        """How many negatives a positive counts for."""
        part = float(self._choice(self.balance, 0.0, 0.5))
        weights = np.ones(len(signs)) if base is None else base
        return float(weights[signs < 0].sum() / weights[signs > 0].sum()) ** part

    def _elect_pool(
        self,
        X: Any,
        signs: NDArray[np.int8],
        base: NDArray[np.float64] | None,
        fit_params: dict[str, Any],
    ) -> Ballots:
        if self.warm_start:
            raise ValueError("warm_start adds trees to trees; it has no use for a pool")
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        named = self.estimator
        if isinstance(named, str):
            named = strong_pool(seed, sparse=hasattr(X, "tocsr"))
        soft = self.voting != "hard"
        voting: Any = "soft" if soft else "hard"
        groups, own_params = self._route(named, fit_params)
        if self._way == "prefit":
            voters = PoolVoters.prefit(
                named, classes=self.classes_, positive=self.pos_label_, voting=voting
            )
            votes = voters.votes(X, self.n_jobs)
            folds: NDArray[Any] = deal_folds(signs, seed, N_FOLDS)
        else:
            voters, votes, folds = PoolVoters.train(
                named,
                X,
                (signs > 0).astype(np.int8),
                seed=seed,
                cv=5 if self.cv is None else self.cv,
                groups=groups,
                voting=voting,
                refit=self.refit,
                sample_weight=base,
                fit_params=own_params,
                n_jobs=self.n_jobs,
                progress=progress_bar("Training voters") if self.verbose else None,
            )
        lean = self._lean(signs, base)
        if soft and self.calibration is not None:
            # On the same scale of classes as the weights: nobody counts for more than 1.
            counts = np.where(signs > 0, min(lean, 1.0), min(1 / lean, 1.0))
            method: Any = self.calibration
            votes, calibrators = calibrate(
                votes,
                signs,
                folds,
                method=method,
                sample_weight=counts if base is None else counts * base,
            )
            voters = voters.calibrated(calibrators)
        self._voters = voters
        return Ballots(votes, signs, base, folds, lean=lean)

    def _plan_draws(
        self, signs: NDArray[np.int8], sample_weight: NDArray[np.float64] | None
    ) -> Draws:
        keeps_voters = self.warm_start and hasattr(self, "weights_")
        rng = check_random_state(self.random_state)
        draws = Draws.plan(
            signs,
            max_samples=self.max_samples,
            seed=self._seed if keeps_voters else int(rng.randint(np.iinfo(np.int32).max)),
            replace=self.bootstrap,
            stratified=self.stratified,
            sample_weight=sample_weight,
        )
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

    def _fingerprint_of(self, draws: Draws, signs: NDArray[np.int8]) -> str:
        """What must not change for voters to be kept."""
        columns = self.n_features_in_, getattr(self, "feature_names_in_", None)
        family = family_of(self._voter()).__name__
        digest: str = joblib.hash((draws, signs, columns, family, self._keeps_frames))
        return digest

    def _train_voters(
        self,
        X: Any,
        signs: NDArray[np.int8],
        draws: Draws,
        sample_weight: NDArray[np.float64] | None,
        fit_params: dict[str, Any],
    ) -> NDArray[np.int8]:
        refuse_params(fit_params, self, "fit")
        if routing_enabled():
            fit_params = process_routing(self, "fit", **fit_params).estimator.fit
        family = family_of(self._voter())
        goes_on = self.warm_start and hasattr(self, "weights_")
        self._voters, votes = family.train(
            self._voter(),
            X,
            (signs > 0).astype(np.int8),
            draws,
            self.n_estimators,
            known=self._voters if goes_on else None,
            sample_weight=sample_weight,
            fit_params=fit_params,
            n_jobs=self.n_jobs,
            progress=progress_bar("Training voters") if self.verbose else None,
        )
        self._seed, self._fingerprint = draws.seed, self._fingerprint_of(draws, signs)
        if self._voters.n_without_positive:
            warnings.warn(
                f"{self._voters.n_without_positive} of {self.n_estimators} samples drew "
                f"none of the {int((signs > 0).sum())} rows of the positive class "
                f"({self.pos_label_}), so these voters never vote for it; "
                f"stratified=True draws within each class",
                UserWarning,
                stacklevel=6,
            )
        return votes

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
        for name, voter in self.estimator if isinstance(self.estimator, list) else []:
            router.add(**{name: voter}, method_mapping=to_fit)
        return router

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]
        named = self.estimator if isinstance(self.estimator, list) else []
        voters = [voter for _, voter in named] if self._is_pool else [self._voter()]
        inputs = [get_tags(voter).input_tags for voter in voters]
        tags.input_tags.sparse = all(input_tags.sparse for input_tags in inputs)
        tags.input_tags.allow_nan = all(input_tags.allow_nan for input_tags in inputs)
        tags.classifier_tags.multi_class = False
        return tags
