"""DAMVIClassifier: the paper's method, a weighted vote of bagged classifiers."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, is_classifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from ._compat import (
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
    refuse_params,
    routing_enabled,
    take_rows,
)
from .decision import Decision, Tuning, choose_threshold, parse_objective
from .folds import (
    asks_for_groups,
    deal_folds,
    deal_folds_by_rank,
    read_groups,
    split_rows,
)
from .hashing import hash_step, thinned, training_hashes
from .labels import Labels, allows_many_classes, refuse_missing_labels
from .messages import progress_bar
from .outofcore import BlockFit, ParquetTable
from .selection import EMPHASES, SHRINKAGES, Choice, choose, prune, reweigh
from .solvers import SOLVERS
from .validation import (
    check_many_classes,
    check_table,
    new_seed,
    read_unlabeled,
    read_weights,
    set_tags,
)
from .voters import (
    BaggedVoters,
    BootstrapSampling,
    FastTreeClassifier,
    GroupSampling,
    PoissonSampling,
)
from .voters.estimators import (
    params_of_rows,
    refuse_single_class,
    weighted_importances,
)
from .voters.trees.estimators import TreeVoters
from .votes import Votes
from .weighting import (
    Refitted,
    Settings,
    emphasize_missed_positives,
    minimize_c_bound,
    set_fitted,
)

POISSON = "poisson"


class DAMVIClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Diversity-aware weighted majority vote for imbalanced data.

    Many voters are trained on bootstrap samples. The positives that their plain (equally
    weighted) vote misses are given more weight. Then the voters are weighted so as to
    minimise the PAC-Bayesian C-bound, which trades off their accuracy against their
    diversity [1]_. With three or more classes, this is the multiclass C-bound [2]_, and
    missed rows gain weight in every class that has fewer rows than average.

    For a pool of different models, see :class:`~damvi.DAMVIVotingClassifier`.

    Parameters
    ----------
    estimator : classifier, default=None
        The classifier to bag. None is :class:`~damvi.FastTreeClassifier`, the built-in
        tree, which handles missing values and categories and trains tens of times faster
        than :class:`~sklearn.tree.DecisionTreeClassifier`, the paper's voter.
    n_estimators : int, default=100
        The number of voters, K.
    max_samples : float or int, default=0.2
        Number of rows drawn for each voter: a fraction of the rows if float, a count if
        int.
    bootstrap : bool or "poisson", default=True
        Whether to draw with replacement. If so, rows are drawn in proportion to
        ``sample_weight``, and voters are weighted by how often each row was drawn; without
        replacement, rows are drawn uniformly, and voters are passed ``sample_weight``.
        "poisson" draws each row independently, with the same mean count. Tables beyond
        memory, and on a cluster, are always sampled this way; a fit in memory that is too
        gives the same model, bit by bit.
    stratified : bool, default=False
        Whether to sample each class separately, so that every voter sees positives even if
        they are very rare.
    votes : {"train", "oob"}, default="train"
        The votes that the weights are learned from: on all training rows, as in the paper,
        or only on rows outside each voter's sample (out of bag).
    reweight : bool or float, default=True
        Whether to give more weight to the positives that the plain vote misses, as in the
        paper. A number from 0 to 1 sets the strength.
    shrinkage : float, default=0
        How far to shrink the weights towards equal weights, in [0, 1).
    fit_intercept : bool, default=False
        Whether to fit an intercept along with the weights (the paper does not); soft votes
        on a rare class need one. ``threshold="vote"`` then includes the intercept. With
        three or more classes, each class has its own intercept, which only affects the
        weights.
    solver : {"exact", "slsqp", "uniform"}, default="exact"
        How to weight the voters: "exact" is the exact minimum of the C-bound, "slsqp" the
        paper's local solver, "uniform" the plain vote, for comparison.
    threshold : default="vote"
        The threshold on the vote: "vote" (0, as in the paper), "f1", {"fbeta": 2},
        {"recall": 0.9}, {"precision": 0.5}, {"flags": 200} (that many of the rows, or a
        share if below 1), {"cost": (false_alarm, miss)}, or a number. It is tuned on
        out-of-bag votes; see :mod:`damvi.decision`. With three or more classes, the vote
        for each class is multiplied by a factor: "vote" (all 1), "macro_f1", or a list of
        numbers.
    unlabeled_weight : float, default=0
        Weight of the voters' disagreement on ``X_unlabeled``, in [0, 1). If above 0, the
        weights are learned from out-of-bag votes. With 0, unlabelled rows given to ``fit``
        are ignored with a warning; nothing we tried with them helped reliably.
    cv : int, splitter or iterable, default=None
        How training rows are predicted out of sample, for the threshold and all scores.
        None uses the voters whose sample does not contain the row (out of bag). Otherwise
        voters and weights are refitted on the training rows of each fold; for data in time
        order, use :class:`~sklearn.model_selection.TimeSeriesSplit` or
        :func:`~damvi.forward_splits`. The weights of the model itself are learned on all
        rows in either case.
    pos_label : label, default=None
        The positive class. None is the rarer one, or the last if both are equally
        frequent. Only for two classes.
    n_jobs : int, default=None
        Number of voters trained, or voting, in parallel. It does not affect the result.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples and of the voters. Pass an int for reproducible results; on
        another CPU or with another BLAS, the last bits may differ.
    verbose : int, default=0
        1 shows a progress bar.
    warm_start : bool, default=False
        Whether to keep the voters of the last fit on the same rows, add voters up to
        ``n_estimators``, and weight all of them again.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    pos_label_ : label
        The positive class; None with three or more classes.
    estimators_ : list of K classifiers
        The voters. They are trained on the labels 0 and 1, where 1 stands for
        ``pos_label_``; with three or more classes, on positions in ``classes_``.
    weights_ : ndarray of shape (K,)
        The weights Q of the voters, non-negative with sum 1. Many are 0, and such voters
        are skipped in prediction.
    c_bound_ : float
        The C-bound of the vote on the reweighted training rows; 1 if the voters are no
        better than chance. It was minimised on rows that the voters were trained on, so it
        is not a bound on the error on new data.
    gibbs_risk_, disagreement_ : float
        The Gibbs risk (mean error of a voter) and the disagreement (diversity) behind it.
    threshold_ : float or ndarray of shape (n_classes,)
        Rows with a vote above it are predicted positive. With three or more classes, the
        factor of each class.
    tuning_ : Tuning or None
        How the threshold was tuned, with a cross-fitted estimate of the score it attains.
        None if it was not tuned, or if all rows with an out-of-sample vote are in one fold.
    oob_decision_function_ : ndarray of shape (n,) or (n, n_classes)
        The decision function on the training rows, out of bag, with weights learned on
        other rows; with ``cv``, by the model refitted for the row's fold. NaN for rows that
        are never out of bag, or in no test fold of ``cv``.
    pruning_ : Pruning
        The effect of pruning on the scores; only after :meth:`prune`.
    labels_, voters_, votes_, decision_
        The parts of the model: the classes (:class:`~damvi.labels.Labels`), the voters,
        their votes on the training rows (not saved with the model), and the threshold with
        its tuning.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the columns; only if X has column names.

    Notes
    -----
    A tie goes to the majority class, whatever the labels are; with three or more classes,
    to the most frequent of the tied classes.

    ``predict_proba`` is the vote rescaled to [0, 1]: it ranks rows, but is not calibrated
    (that of :class:`~damvi.DAMVIVotingClassifier` is). ``predict`` follows the threshold.

    References
    ----------
    .. [1] A. Goyal and J. Khiari (2020), Diversity-Aware Weighted Majority Vote
       Classifier for Imbalanced Data, IJCNN.
    .. [2] F. Laviolette, E. Morvant, L. Ralaivola and J.-F. Roy (2014), On Generalizing
       the C-Bound to the Multiclass and Multi-label Settings.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi import DAMVIClassifier
    >>> X, y = make_classification(2000, weights=[0.95], random_state=0)
    >>> model = DAMVIClassifier(random_state=0).fit(X, y)
    >>> model.pos_label_, model.predict(X[:3])
    (np.int64(1), array([0, 0, 0]))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"]), list, str, None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "bootstrap": ["boolean", StrOptions({POISSON})],
        "stratified": ["boolean"],
        "votes": [StrOptions({"train", "oob"})],
        "reweight": ["boolean", Interval(Real, 0, 1, closed="both")],
        "shrinkage": [Interval(Real, 0, 1, closed="left")],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions(set(SOLVERS))],
        "threshold": "no_validation",  # type: ignore[dict-item]
        "unlabeled_weight": [Interval(Real, 0, 1, closed="left")],
        "cv": ["cv_object"],
        "pos_label": "no_validation",  # type: ignore[dict-item]
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
    }

    labels_: Labels
    voters_: Any
    votes_: Any
    decision_: Decision
    weights_: NDArray[np.float64]
    threshold_: Any
    classes_: NDArray[Any]
    pos_label_: Any
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    row_hashes_: NDArray[np.uint64]
    row_hash_step_: int
    seed_: int
    sampling_digest_: str

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 100,
        max_samples: float | int = 0.2,
        bootstrap: bool | str = True,
        stratified: bool = False,
        votes: str = "train",
        reweight: bool | float = True,
        shrinkage: float = 0.0,
        fit_intercept: bool = False,
        solver: str = "exact",
        threshold: Any = "vote",
        unlabeled_weight: float = 0.0,
        cv: Any = None,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.stratified = stratified
        self.votes = votes
        self.reweight = reweight
        self.shrinkage = shrinkage
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.threshold = threshold
        self.unlabeled_weight = unlabeled_weight
        self.cv = cv
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        X_unlabeled: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Train the voters, weight them, and tune the threshold.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features), or parquet
            Training data. A parquet dataset (the path of a file or folder, a glob pattern,
            or a :class:`~damvi.ParquetTable`) is read block by block, never as a whole.
        y : array of shape (n,)
            Labels of 2 to 256 classes. For a parquet dataset, the name of a column.
        sample_weight : array of shape (n,), optional
            Sample weights, of which only ratios matter; weights more than 2**31 times
            smaller than the largest count as 0. For a parquet dataset, the name of a
            column.
        X_unlabeled : array, sparse matrix, dataframe or Unlabeled, optional
            Unlabelled rows with the same columns; see ``unlabeled_weight``. Wrap them in
            :class:`~damvi.Unlabeled` to keep a grid search from splitting them.
        **fit_params
            ``groups``, with one entry per row: whole groups are sampled, and out-of-sample
            votes on a row never involve voters or weights learned from its group. With
            metadata routing enabled, also metadata that the voters' ``fit`` requests;
            values with one entry per row are sampled along with the rows.

        Returns
        -------
        self
        """
        self._check_voter()
        # 1. Train the voters, each on its own bootstrap sample, and cast their votes.
        table = ParquetTable(X) if isinstance(X, str | PathLike) else X
        refitted = None
        if hasattr(table, "train"):  # on disk, or on a cluster
            self._train_on_blocks(table, y, sample_weight, X_unlabeled, fit_params)
        else:
            refitted = self._train_in_memory(X, y, sample_weight, X_unlabeled, fit_params)

        # 2. Give more weight to the positives that the plain vote misses.
        settings = Settings.of(self)
        moments = emphasize_missed_positives(
            self.votes_,
            settings.reweight,
            settings.unlabeled_weight,
            settings.fit_intercept,
        )

        # 3. Weight the voters so as to minimise the C-bound.
        weighting = minimize_c_bound(self.votes_, moments, settings, self.n_jobs)

        # 4. Tune the threshold on the out-of-sample vote.
        weighting = replace(weighting, refitted=refitted)
        objective = parse_objective(self.threshold, self.labels_.n_classes)
        decision = choose_threshold(weighting, objective, self.labels_.target_order)

        set_fitted(self, decision)
        self.votes_.fit_succeeded()
        return self

    def _train_in_memory(
        self, X: Any, y: Any, sample_weight: Any, X_unlabeled: Any, fit_params: Any
    ) -> Refitted | None:
        """Step 1 on an array, sparse matrix or dataframe; return the refits of ``cv``."""
        voter = self._voter()
        refuse_missing_labels(y)
        keep_frame = not isinstance(voter, FastTreeClassifier) or voter.wants_frame(X)
        X, y = check_table(self, X, y, keep_frame=keep_frame)
        labels, targets = Labels.read(y, self.pos_label)
        check_many_classes(labels, [voter])
        parse_objective(self.threshold, labels.n_classes)  # fail early if it is invalid
        weights = read_weights(sample_weight, targets, labels.by_target)
        unlabeled = read_unlabeled(
            self,
            X_unlabeled,
            X,
            self.unlabeled_weight,
            labels,
            keep_frame=keep_frame,
            stacklevel=5,
        )
        groups, fit_params = self._route(fit_params)
        known = self.voters_ if self.warm_start and hasattr(self, "weights_") else None
        seed = self.seed_ if known else new_seed(self.random_state)
        sampling = self._sampling(targets, weights, groups, seed)
        digest = self._digest(sampling, targets, keep_frame)
        if known is not None:
            self._check_warm_start(len(known), digest)
        table = X, labels, targets, weights, groups, unlabeled, fit_params
        voters, votes = self._bag(sampling, *table, known=known, verbose=self.verbose)
        self._warn_of_unseen_classes(labels, voters, np.bincount(targets))
        refitted = None if self.cv is None else self._refit(seed, *table)
        self.labels_, self.voters_, self.votes_ = labels, voters, votes
        self.row_hashes_, self.row_hash_step_ = training_hashes(X, targets, unlabeled), 1
        self.seed_, self.sampling_digest_ = sampling.seed, digest
        return refitted

    def _bag(
        self,
        sampling: Any,
        X: Any,
        labels: Labels,
        targets: NDArray[Any],
        weights: NDArray[np.float64] | None,
        groups: Any,
        unlabeled: Any,
        fit_params: dict[str, Any],
        *,
        known: Any = None,
        verbose: int = 0,
    ) -> tuple[Any, Votes]:
        """Train voters on these rows, and cast their votes on them."""
        voter = self._voter()
        voters, votes = _kind_of_voters(voter).train(
            voter,
            X,
            targets,
            sampling,
            self.n_estimators,
            n_classes=labels.n_classes,
            known=known,
            sample_weight=weights,
            fit_params=fit_params,
            n_jobs=self.n_jobs,
            progress=progress_bar("Training voters") if verbose else None,
        )
        if groups is not None:
            group_of, classes = read_groups(groups, targets)
            folds = deal_folds(classes, sampling.seed)[group_of]
        elif self.bootstrap == POISSON:
            folds = deal_folds_by_rank(targets, sampling.seed)
        else:
            folds = deal_folds(targets, sampling.seed)
        cast = Votes(
            votes,
            targets,
            folds,
            sample_weight=weights,
            out_of_bag=sampling.out_of_bag_bits(len(voters)),
            only_out_of_bag=self.votes == "oob",
            class_weight=np.ones(labels.n_classes),
            reweighted=labels.reweighted(labels.totals(targets, weights)),
        )
        return voters, cast.with_unlabeled(voters, unlabeled, self.n_jobs)

    def _refit(
        self,
        seed: int,
        X: Any,
        labels: Labels,
        targets: NDArray[Any],
        weights: NDArray[np.float64] | None,
        groups: Any,
        unlabeled: Any,
        fit_params: dict[str, Any],
    ) -> Refitted:
        """Repeat steps 1 to 3 on the training rows of each fold; vote on its test rows."""
        split = split_rows(self.cv, X, targets, groups, seed=seed)
        refuse_single_class(split.train, targets)
        settings, n = Settings.of(self), len(targets)
        vote = plain = np.empty(0)
        thresholds, even = np.zeros(len(split.train)), np.full(self.n_estimators, 1.0)
        for fold, rows in enumerate(split.train):
            test = np.flatnonzero(split.folds == fold)
            if not len(test):
                continue
            y_train = targets[rows]
            weights_train = None if weights is None else weights[rows]
            groups_train = None if groups is None else np.asarray(groups)[rows]
            voters, votes = self._bag(
                self._sampling(y_train, weights_train, groups_train, seed),
                take_rows(X, rows),
                labels,
                y_train,
                weights_train,
                groups_train,
                unlabeled,
                params_of_rows(fit_params, rows, n),
            )
            moments = settings.moments_by_fold(votes)
            found = minimize_c_bound(votes, moments, settings, self.n_jobs)
            learned, uniform = (
                voters.weighted_vote(take_rows(X, test), Q, self.n_jobs)
                for Q in (found.weights, even / self.n_estimators)
            )
            if not len(vote):
                vote, plain = (np.full((n, *learned.shape[1:]), np.nan) for _ in range(2))
            vote[test], thresholds[fold] = learned, found.threshold
            plain[test] = uniform
        vote, plain = (np.clip(one, *labels.vote_limits) for one in (vote, plain))
        return Refitted(vote, split.folds, split.forward, thresholds, plain)

    def _route(self, fit_params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the groups of the rows, and the metadata of the voters' ``fit``."""
        if not routing_enabled():
            fit_params = dict(fit_params)
            groups = fit_params.pop("groups", None)
            refuse_params(fit_params, self, "fit")
            return groups, fit_params
        routed = process_routing(self, "fit", **fit_params)
        return routed.splitter.split.get("groups"), routed.estimator.fit

    def _train_on_blocks(
        self, table: Any, y: Any, sample_weight: Any, X_unlabeled: Any, fit_params: Any
    ) -> None:
        """Step 1 on a table beyond memory: on disk, or on a cluster."""
        if X_unlabeled is not None or fit_params:
            unused = ", ".join([*fit_params] or ["X_unlabeled"])
            raise TypeError(
                f"{unused} cannot be used with a table beyond memory; fit on a sample of "
                f"its rows that fits in memory"
            )
        if self.cv is not None:
            raise ValueError(
                "cv needs all rows in memory; for a table beyond memory, set cv=None to "
                "use out-of-bag votes, or fit on a sample of its rows"
            )
        if not isinstance(self._voter(), FastTreeClassifier):
            raise ValueError(
                f"estimator={self.estimator!r} needs all rows in memory; for a table "
                f"beyond memory, use the built-in trees (estimator=None), or fit on a "
                f"sample of its rows"
            )
        if not self.bootstrap:
            raise ValueError(
                "a table beyond memory is sampled with replacement; set bootstrap=True or "
                "'poisson'"
            )
        if self.warm_start:
            raise ValueError("warm_start needs all rows in memory; set it to False")
        trained = table.train(
            BlockFit(
                tree=self._voter(),
                n_estimators=self.n_estimators,
                max_samples=self.max_samples,
                stratified=self.stratified,
                only_out_of_bag=self.votes == "oob",
                pos_label=self.pos_label,
                check_labels=self._check_threshold,
                seed=new_seed(self.random_state),
                repeatable=self.random_state is not None,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            ),
            y,
            sample_weight,
        )
        plan = trained.votes.plan
        self.labels_, self.voters_, self.votes_ = plan.labels, trained.voters, trained.votes
        self.n_features_in_ = len(trained.voters.features)
        self.__dict__.pop("feature_names_in_", None)
        if trained.feature_names is not None:
            self.feature_names_in_ = np.array(trained.feature_names, dtype=object)
        self.row_hash_step_ = hash_step(plan.totals.n_rows)
        self.row_hashes_ = np.sort(thinned(trained.row_hashes, self.row_hash_step_))
        self.seed_, self.sampling_digest_ = plan.seed, "on blocks"
        self._warn_of_unseen_classes(plan.labels, trained.voters, plan.totals.rows)

    def _voter(self) -> Any:
        return FastTreeClassifier() if self.estimator is None else self.estimator

    def _warn_of_unseen_classes(self, labels: Labels, voters: Any, rows: Any) -> None:
        """Warn if samples have no row of a class; ``rows`` counts the rows of each."""
        message = labels.unseen_class_warning(voters.n_without_class, len(voters), rows)
        if message:
            warnings.warn(message, UserWarning, stacklevel=5)

    def _check_threshold(self, labels: Labels) -> None:
        parse_objective(self.threshold, labels.n_classes)

    def _check_voter(self) -> None:
        voter = self._voter()
        if isinstance(voter, str | list):
            raise ValueError(
                f"estimator={self.estimator!r}: DAMVIClassifier bags a single classifier; "
                f"for a pool of different ones, use damvi.DAMVIVotingClassifier"
            )
        if not is_classifier(voter):
            raise ValueError(
                f"estimator={self.estimator!r} is not a classifier; only classifiers can "
                f"vote"
            )

    def _sampling(
        self,
        targets: NDArray[Any],
        weights: NDArray[np.float64] | None,
        groups: Any,
        seed: int,
    ) -> Any:
        settings: dict[str, Any] = {
            "max_samples": self.max_samples,
            "seed": seed,
            "stratified": self.stratified,
            "sample_weight": weights,
        }
        plan: Any = PoissonSampling.plan
        if self.bootstrap != POISSON:
            plan, settings["replace"] = BootstrapSampling.plan, bool(self.bootstrap)
        if groups is None:
            return plan(targets, **settings)
        return GroupSampling.plan(targets, groups, plan, **settings)

    def _digest(self, sampling: Any, targets: NDArray[Any], keep_frame: bool) -> str:
        """Hash of everything that must not change for a warm start."""
        columns = self.n_features_in_, getattr(self, "feature_names_in_", None)
        family = _kind_of_voters(self._voter()).__name__
        digest: str = joblib.hash((sampling, targets, columns, family, keep_frame))
        return digest

    def _check_warm_start(self, n_known: int, digest: str) -> None:
        if digest != self.sampling_digest_:
            raise ValueError(
                "warm_start adds voters to those of the last fit, so X, y, sample_weight, "
                "pos_label, the kind of estimator, max_samples, bootstrap and stratified "
                "must not change; set warm_start=False to train all voters again"
            )
        if self.n_estimators < n_known:
            raise ValueError(
                f"n_estimators={self.n_estimators} is less than the {n_known} voters that "
                f"warm_start keeps; increase it, or set warm_start=False to train all "
                f"voters again"
            )

    def reweigh(self, **settings: Any) -> Self:
        """Weight the voters again with other settings, without training them again.

        Parameters
        ----------
        **settings
            Any of ``reweight``, ``shrinkage``, ``fit_intercept``, ``solver``, ``threshold``
            and ``unlabeled_weight``, set as by ``set_params``; the others stay as they are.
            This uses the votes of the last ``fit``, which are not saved with the model.

        Returns
        -------
        self
        """
        reweigh(self, settings, pool=False)
        return self

    def choose(
        self,
        metric: Any = "auto",
        *,
        reweight: Any = EMPHASES,
        shrinkage: Any = SHRINKAGES,
    ) -> Choice:
        """Choose settings by their out-of-sample score.

        All combinations are compared on the votes of the last ``fit``, without training
        voters again. The model is not changed; apply the best combination with
        ``model.reweigh(**choice.best)``.

        Parameters
        ----------
        metric : default="auto"
            "average_precision", or an objective of the threshold, such as "f1" or
            {"cost": (1, 50)}. "auto" is the objective that the threshold is tuned for, or
            average precision if it is not tuned. With three or more classes,
            "average_precision" or "macro_f1", averaged over the classes.
        reweight, shrinkage : iterable of float
            The values to compare.

        Returns
        -------
        Choice
            The score of each combination, and a cross-fitted score of the choice itself.
        """
        return choose(self, metric, reweight=reweight, shrinkage=shrinkage)

    def prune(self, max_voters: int) -> Self:
        """Keep only a few voters, those that matter most for the C-bound.

        Voters are dropped one at a time, and the others weighted again each time.
        ``pruning_`` has the C-bound, and the cross-fitted average precision and F1, for
        each number of voters; the threshold is tuned again. Pruning a second time does not
        account for the selection made the first time, so its scores are optimistic.

        Parameters
        ----------
        max_voters : int
            The number of voters to keep.

        Returns
        -------
        self
        """
        prune(self, max_voters, pool=False)
        self.sampling_digest_ = "pruned"  # warm_start cannot add voters to these
        return self

    def cast_votes(self, X: Any) -> NDArray[Any]:
        """Votes of all voters, of shape (n, K): +1 for ``pos_label_``, -1 for the other.

        With three or more classes, hard votes are positions in ``classes_``, and soft votes
        have shape (n, K, n_classes).
        """
        check_is_fitted(self, "weights_")
        X = check_table(self, X, keep_frame=self.voters_.takes_frames)
        return self.voters_.votes(X, self.n_jobs)

    def vote(self, X: Any) -> NDArray[np.float64]:
        """Weighted vote for ``pos_label_``, in [-1, 1]; ``threshold_`` applies to it.

        With three or more classes, the share of the vote for each: (n, n_classes).
        """
        check_is_fitted(self, "weights_")
        X = check_table(self, X, keep_frame=self.voters_.takes_frames)
        vote = self.voters_.weighted_vote(X, self.weights_, self.n_jobs)
        return np.clip(vote, *self.labels_.vote_limits)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Weighted vote minus the threshold; positive values predict ``classes_[1]``.

        A tie is 0, or the smallest positive step if ``classes_[1]`` is the majority class,
        so that the sign is always the prediction. With three or more classes, the vote for
        each class times its factor, of shape (n, n_classes); the largest is predicted.
        """
        vote = self.vote(X)
        return self.labels_.scores(vote, self.threshold_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class that wins the vote; the majority class wins a tie."""
        scores = self.decision_function(X)
        return self.labels_.predict(scores)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The vote rescaled to [0, 1], which is not calibrated."""
        vote = self.vote(X)
        return self.labels_.probabilities(vote, self.decision_.calibrator)

    @property
    def tuning_(self) -> Tuning | None:
        """How the threshold was tuned, with a cross-fitted estimate of its score."""
        check_is_fitted(self, "weights_")
        return self.decision_.tuning

    @property
    def oob_decision_function_(self) -> NDArray[np.float64]:
        """The decision function on the training rows, out of sample."""
        check_is_fitted(self, "weights_")
        return self.labels_.scores(self.decision_.out_of_sample_vote, self.threshold_)

    @property
    def estimators_(self) -> list[Any]:
        """The voters, in the order of their samples."""
        check_is_fitted(self, "weights_")
        return self.voters_.estimators

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Weighted mean of the voters' feature importances."""
        check_is_fitted(self, "weights_")
        return weighted_importances(self.estimators_, self.weights_, scaled=False)

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing; see scikit-learn's user guide."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self._voter(),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=asks_for_groups(self.cv),
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        voter = self._voter()
        # fit reports an invalid estimator.
        set_tags(tags, [] if isinstance(voter, str | list) else [get_tags(voter)])
        if self.pos_label is not None or not allows_many_classes(self.threshold):
            tags.classifier_tags.multi_class = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "votes_"}


def _kind_of_voters(estimator: Any) -> Any:
    """The class that trains clones of an estimator and casts their votes."""
    return TreeVoters if isinstance(estimator, FastTreeClassifier) else BaggedVoters
