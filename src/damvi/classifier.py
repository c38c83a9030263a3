"""DAMVIClassifier, the paper's method: bagged voters, weighted by the C-bound."""

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
    refuse_single_class,
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
    new_seed,
    read_table,
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
from .voters.estimators import params_of_rows, weighted_importances
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

    Many voters are trained on bootstrap samples; the positives that their plain vote
    misses gain weight; then the voters are weighted so as to minimise the PAC-Bayesian
    C-bound, which trades their accuracy against their diversity [1]_. With three or more
    classes it is the multiclass C-bound [2]_, and the missed rows of every class below its
    even share gain weight.

    :class:`~damvi.DAMVIVotingClassifier` does the same for a pool of different models.

    Parameters
    ----------
    estimator : classifier, default=None
        The voter, trained many times. None: :class:`~damvi.FastTreeClassifier`, the
        built-in tree, which takes missing values and categories and trains tens of times
        faster than scikit-learn's :class:`~sklearn.tree.DecisionTreeClassifier` (the
        paper's, one argument away).
    n_estimators : int, default=100
        The number of voters, K.
    max_samples : float or int, default=0.2
        Rows drawn for each voter: a fraction of the number of rows, or a count.
    bootstrap : bool or "poisson", default=True
        Draw with replacement. ``sample_weight`` then drives the draw and the voters see
        how often each row was drawn; without replacement, rows are drawn evenly and
        the voters see their ``sample_weight``. "poisson" draws each row by itself, as
        often on average: this is how tables beyond memory are drawn.
    stratified : bool, default=False
        Draw within each class, so that very rare positives reach every voter.
    votes : {"train", "oob"}, default="train"
        The votes that the weights are learned from: on the training rows, as in the
        paper, or on the rows outside each voter's sample.
    reweight : bool or float, default=True
        Lean on the positives that the plain vote misses, as in the paper, or not; a
        number from 0 to 1 is the strength.
    shrinkage : float, default=0
        How far the weights are drawn towards equal ones, from 0 to 1 (excluded).
    fit_intercept : bool, default=False
        Fit a constant along with the weights (not the paper's), as soft votes on a rare
        class need. ``threshold="vote"`` then cuts where the constant tips the vote; with
        three or more classes there is one for each, for the weights alone.
    solver : {"exact", "slsqp", "uniform"}, default="exact"
        How to weight the voters: the exact minimum of the C-bound, the paper's local
        solver, or the plain vote for comparison.
    threshold : default="vote"
        Where to cut the vote: "vote" (at 0, the paper's way), "f1", {"fbeta": 2},
        {"recall": 0.9}, {"precision": 0.5}, {"flags": 200} (of as many rows as there are;
        below 1 a share), {"cost": (false_alarm, miss)}, or a number. It is tuned on
        out-of-bag votes; see :mod:`damvi.decision`. With three or more classes, by which
        factor the votes for each count: "vote" (1 each), "macro_f1", or a list of numbers.
    unlabeled_weight : float, default=0
        How much the voters' disagreement on ``X_unlabeled`` counts, if ``fit`` is given
        any, from 0 to 1 (excluded). Votes are then "oob". At 0 unlabelled rows are left
        alone, with a warning: no use of them has been seen to help reliably.
    cv : int, splitter or iterable, default=None
        Who judges the training rows, for the threshold and all figures. None: the voters
        whose sample a row was not in. Otherwise voters and weights are fitted anew for each
        fold, on its training rows: for time, give
        :class:`~sklearn.model_selection.TimeSeriesSplit` or
        :func:`~damvi.forward_splits`. The weights of the model itself are learned on all
        rows in any case.
    pos_label : label, default=None
        The positive class. None: the rarer one (of two equal ones, the last in order).
        Only for two classes.
    n_jobs : int, default=None
        Voters trained or asked at a time. No result depends on it.
    random_state : int, RandomState instance or None, default=None
        The seed of the draws and of the voters. An int makes the fit repeatable;
        on other CPUs, or with another BLAS, up to the last bits.
    verbose : int, default=0
        1 shows a progress bar.
    warm_start : bool, default=False
        Keep the voters of the last fit on the same rows, add those that are missing to
        ``n_estimators``, and weight them all again.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in order.
    pos_label_ : label
        The class taken as positive; None with three or more.
    estimators_ : list of K classifiers
        The voters, in the order of their draws. They are trained on the labels 0 and
        1, where 1 is ``pos_label_``; with three or more classes on their places.
    weights_ : ndarray of shape (K,)
        Their weights Q, on the simplex. Zeros are common, and skipped in prediction.
    c_bound_ : float
        The C-bound of the vote on the reweighted training sample, 1 when the voters
        are no better than a coin. It is what was minimised, not a promise about new
        data: the voters were trained on these rows.
    gibbs_risk_, disagreement_ : float
        The two quantities behind it: mean error of a voter, and diversity.
    threshold_ : float or ndarray of shape (n_classes,)
        The vote above which a row is flagged, or the factors of three or more classes.
    tuning_ : Tuning or None
        How the threshold was tuned, with an honest (cross-fitted) figure of what it gives.
        None if it was not, or if the rows that have a vote are of a single fold.
    oob_decision_function_ : ndarray of shape (n,) or (n, n_classes)
        The decision function on each training row by voters whose sample it was not in,
        with weights learned on other rows; with ``cv``, by the fits for its fold. NaN where
        a row was never out of bag, or judged by nobody.
    pruning_ : Pruning
        Only after :meth:`prune`: the price of fewer voters.
    labels_, voters_, votes_, decision_
        What the parts of damvi work with: the classes (:class:`~damvi.labels.Labels`), the
        voters, their votes on the training rows (not saved), and the threshold with what
        was learned about it.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when X has column names.

    Notes
    -----
    A tied vote goes to the majority class, whatever the labels are called; of three or
    more classes, to the most frequent of those that tie.

    ``predict_proba`` is the vote on a scale from 0 to 1: it ranks rows, but is no
    probability (a pool's is). ``predict`` follows the threshold.

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
        """Train the voters and weight them.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features), or parquet
            A path to a parquet dataset (a file, a folder, a pattern), or a
            :class:`~damvi.ParquetTable`, is read block by block, never as a whole.
        y : array of shape (n,)
            Labels of 2 to 256 classes. Of a parquet dataset, the name of the column.
        sample_weight : array of shape (n,), optional
            Only ratios matter: weights a factor 2**31 below the largest count as 0. Of
            a parquet dataset, the name of the column.
        X_unlabeled : array, sparse matrix, dataframe or Unlabeled, optional
            More rows with the same columns, whose labels nobody knows; see
            ``unlabeled_weight``. Wrapped in :class:`~damvi.Unlabeled`, no grid search
            cuts it.
        **fit_params
            ``groups``, with one entry a row: whole groups are drawn, and no row is judged
            by voters or weights that know a row of its group. With metadata routing on,
            also what the voters' ``fit`` requests; values with one entry a row are drawn
            along with the rows.

        Returns
        -------
        self
        """
        self._check_voter()
        # 1. Voters, each from its own bootstrap sample (_sampling), and their votes.
        table = ParquetTable(X) if isinstance(X, str | PathLike) else X
        refitted = None
        if hasattr(table, "train"):  # on disk, or on a cluster
            self._train_on_blocks(table, y, sample_weight, X_unlabeled, fit_params)
        else:
            refitted = self._train_in_memory(X, y, sample_weight, X_unlabeled, fit_params)

        # 2. Lean on the positives that the plain vote misses.
        settings = Settings.of(self)
        moments = emphasize_missed_positives(
            self.votes_,
            settings.reweight,
            settings.unlabeled_weight,
            settings.fit_intercept,
        )

        # 3. Weights that trade accuracy for diversity, as the C-bound says.
        weighting = minimize_c_bound(self.votes_, moments, settings, self.n_jobs)

        # 4. Where to cut the vote, by rows that are judged as new ones will be.
        weighting = replace(weighting, refitted=refitted)
        objective = parse_objective(self.threshold, self.labels_.n_classes)
        decision = choose_threshold(weighting, objective, self.labels_.target_order)

        set_fitted(self, decision)
        self.votes_.fit_succeeded()
        return self

    def _train_in_memory(
        self, X: Any, y: Any, sample_weight: Any, X_unlabeled: Any, fit_params: Any
    ) -> Refitted | None:
        """Step 1 on an array, a sparse matrix or a dataframe; what ``cv`` says of it."""
        voter = self._voter()
        refuse_missing_labels(y)
        keep_frame = not isinstance(voter, FastTreeClassifier) or voter.wants_frame(X)
        X, y = read_table(self, X, y, keep_frame=keep_frame)
        labels, targets = Labels.read(y, self.pos_label)
        check_many_classes(labels, [voter])
        parse_objective(self.threshold, labels.n_classes)  # refused before the work
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
        """The voters of some rows, and their votes on these."""
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
        """The vote on each fold of ``cv`` by steps 1 to 3 on the rows that train for it."""
        split = split_rows(self.cv, X, targets, groups, seed=seed)
        refuse_single_class(split.train, targets)
        settings, n = Settings.of(self), len(targets)
        vote = plain = np.empty(0)
        thresholds, even = np.zeros(len(split.train)), np.full(self.n_estimators, 1.0)
        for fold, rows in enumerate(split.train):
            judged = np.flatnonzero(split.folds == fold)
            if not len(judged):
                continue
            some = targets[rows]
            weighed = None if weights is None else weights[rows]
            grouped = None if groups is None else np.asarray(groups)[rows]
            voters, votes = self._bag(
                self._sampling(some, weighed, grouped, seed),
                take_rows(X, rows),
                labels,
                some,
                weighed,
                grouped,
                unlabeled,
                params_of_rows(fit_params, rows, n),
            )
            moments = settings.moments_by_fold(votes)
            found = minimize_c_bound(votes, moments, settings, self.n_jobs)
            cast, by_all = (
                voters.weighted_vote(take_rows(X, judged), weights, self.n_jobs)
                for weights in (found.weights, even / self.n_estimators)
            )
            if not len(vote):
                vote, plain = (np.full((n, *cast.shape[1:]), np.nan) for _ in range(2))
            vote[judged], thresholds[fold] = cast, found.threshold
            plain[judged] = by_all
        vote, plain = (np.clip(one, *labels.vote_limits) for one in (vote, plain))
        return Refitted(vote, split.folds, split.forward, thresholds, plain)

    def _route(self, fit_params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Groups of the rows, and what else the voters asked for."""
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
        """Step 1 on a table that is not in memory: on disk, or on a cluster."""
        if X_unlabeled is not None or fit_params:
            unused = ", ".join([*fit_params] or ["X_unlabeled"])
            raise TypeError(
                f"a fit on a table beyond memory does not take {unused}; fit on as many of "
                f"its rows as memory holds"
            )
        if self.cv is not None:
            raise ValueError(
                "cv needs all rows in memory: rows of a table beyond it are judged out of "
                "bag; set cv=None, or fit on as many of its rows as memory holds"
            )
        if not isinstance(self._voter(), FastTreeClassifier):
            raise ValueError(
                f"estimator={self.estimator!r} needs all rows in memory; for a table "
                f"beyond it, take the built-in trees (estimator=None), or fit on a sample"
            )
        if not self.bootstrap:
            raise ValueError(
                "a table beyond memory is drawn row by row, with replacement; set "
                "bootstrap=True or 'poisson'"
            )
        if self.warm_start:
            raise ValueError("warm_start needs a table in memory; set it to False")
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
        """Say so when samples had no row of a class; ``rows`` are those of each."""
        message = labels.unseen_class_warning(voters.n_without_class, len(voters), rows)
        if message:
            warnings.warn(message, UserWarning, stacklevel=5)

    def _check_threshold(self, labels: Labels) -> None:
        parse_objective(self.threshold, labels.n_classes)

    def _check_voter(self) -> None:
        voter = self._voter()
        if isinstance(voter, str | list):
            raise ValueError(
                f"estimator={self.estimator!r}: DAMVIClassifier trains one classifier many "
                f"times; a pool of different ones is weighted by "
                f"damvi.DAMVIVotingClassifier"
            )
        if not is_classifier(voter):
            raise ValueError(
                f"estimator={self.estimator!r} is not a classifier, and only classifiers "
                f"can vote"
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
        """What must not change for a warm start."""
        columns = self.n_features_in_, getattr(self, "feature_names_in_", None)
        family = _kind_of_voters(self._voter()).__name__
        digest: str = joblib.hash((sampling, targets, columns, family, keep_frame))
        return digest

    def _check_warm_start(self, n_known: int, digest: str) -> None:
        if digest != self.sampling_digest_:
            raise ValueError(
                "warm_start adds voters to those of the last fit, so the rows, y, "
                "sample_weight, pos_label, the columns, the kind of voter, max_samples, "
                "bootstrap and stratified must be the same; set warm_start=False to "
                "start again"
            )
        if self.n_estimators < n_known:
            raise ValueError(
                f"n_estimators={self.n_estimators} is below the {n_known} voters that "
                f"warm_start keeps; raise it, or set warm_start=False to start again"
            )

    def reweigh(self, **settings: Any) -> Self:
        """Weight the voters again by other settings, without training them again.

        Parameters
        ----------
        **settings
            Any of ``reweight``, ``shrinkage``, ``fit_intercept``, ``solver``, ``threshold``
            and ``unlabeled_weight``, which are set as by ``set_params``; the others stay.
            The votes of the last ``fit`` are used, which a model that was saved and loaded
            no longer has.

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
        """Which settings are best by what counts for you, on out-of-sample votes.

        All combinations are tried on the votes of the last ``fit``; no voter is trained
        again, and the model stays as it is: ``model.reweigh(**choice.best)`` takes the
        best one.

        Parameters
        ----------
        metric : default="auto"
            "average_precision", or what a threshold can be tuned for, such as "f1" or
            {"cost": (1, 50)}. "auto" is what the threshold is tuned for, and average
            precision if it is not tuned. With three or more classes "average_precision"
            or "macro_f1", means over the classes.
        reweight, shrinkage : iterable of float
            The values to try.

        Returns
        -------
        Choice
            What each combination was worth, and what the choice itself is worth on rows
            that had no part in it.
        """
        return choose(self, metric, reweight=reweight, shrinkage=shrinkage)

    def prune(self, max_voters: int) -> Self:
        """Keep a few voters, those that the C-bound can spare least.

        The weights are fitted anew on those kept, along a path that drops one voter after
        the other. ``pruning_`` tells the price: C-bound, and average precision and F1 on
        rows that had no part in the choice, by which the threshold is tuned too. What is
        pruned after that starts from the voters that are left, and does not know that they
        were chosen: its figures flatter.

        Parameters
        ----------
        max_voters : int

        Returns
        -------
        self
        """
        prune(self, max_voters, pool=False)
        self.sampling_digest_ = "pruned"  # no fit can add to these
        return self

    def cast_votes(self, X: Any) -> NDArray[Any]:
        """The votes of all K voters, (n, K): +1 for ``pos_label_``, -1 for the other.

        With three or more classes, their places in ``classes_``, or (n, K, n_classes)
        for soft votes.
        """
        check_is_fitted(self, "weights_")
        X = read_table(self, X, keep_frame=self.voters_.takes_frames)
        return self.voters_.votes(X, self.n_jobs)

    def vote(self, X: Any) -> NDArray[np.float64]:
        """The weighted vote for ``pos_label_``, in [-1, 1]; step 4 cuts it.

        With three or more classes, the share of the vote for each: (n, n_classes).
        """
        check_is_fitted(self, "weights_")
        X = read_table(self, X, keep_frame=self.voters_.takes_frames)
        vote = self.voters_.weighted_vote(X, self.weights_, self.n_jobs)
        return np.clip(vote, *self.labels_.vote_limits)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The weighted vote less the threshold; above 0 means ``classes_[1]``.

        A tie is 0, or the smallest positive step when ``classes_[1]`` is the majority
        class, so that the sign always is the decision. With three or more classes, the
        vote for each times its factor, (n, n_classes), and the largest is the decision.
        """
        vote = self.vote(X)
        return self.labels_.scores(vote, self.threshold_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class that wins the vote; the majority class wins a tie."""
        scores = self.decision_function(X)
        return self.labels_.predict(scores)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The vote on a scale from 0 to 1."""
        vote = self.vote(X)
        return self.labels_.probabilities(vote, self.decision_.calibrator)

    @property
    def tuning_(self) -> Tuning | None:
        """How the threshold was tuned, with an honest figure of what it gives."""
        check_is_fitted(self, "weights_")
        return self.decision_.tuning

    @property
    def oob_decision_function_(self) -> NDArray[np.float64]:
        """The decision function on the training rows, by those that do not know them."""
        check_is_fitted(self, "weights_")
        return self.labels_.scores(self.decision_.out_of_sample_vote, self.threshold_)

    @property
    def estimators_(self) -> list[Any]:
        """The voters, in the order of their draws."""
        check_is_fitted(self, "weights_")
        return self.voters_.estimators

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Mean of the voters' feature importances, weighted as they vote."""
        check_is_fitted(self, "weights_")
        return weighted_importances(self.estimators_, self.weights_, scaled=False)

    def get_metadata_routing(self) -> MetadataRouter:
        """How metadata reaches the voters; see scikit-learn's user guide."""
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
        # Of a wrong parameter, fit tells.
        set_tags(tags, [] if isinstance(voter, str | list) else [get_tags(voter)])
        if self.pos_label is not None or not allows_many_classes(self.threshold):
            tags.classifier_tags.multi_class = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "votes_"}


def _kind_of_voters(estimator: Any) -> Any:
    """How clones of an estimator are trained and asked."""
    if isinstance(estimator, FastTreeClassifier):
        from .voters.trees.voters import TreeVoters  # imports numba

        return TreeVoters
    return BaggedVoters
