"""DAMVIVotingClassifier: the paper's steps on a pool of different models.

The paper notes that any set of learners can vote. Here each model of the pool is one voter,
trained once on all rows; its weight is learned from out-of-fold votes.
"""

from __future__ import annotations

import time
import warnings
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from ._compat import (
    BaseComposition,
    Interval,
    StrOptions,
    fit_context,
    routing_enabled,
)
from .decision import Decision, Tuning, choose_threshold
from .decision.decision import objective_for
from .folds import Split, asks_for_groups, split_rows
from .hashing import training_hashes
from .labels import Labels, allows_many_classes, refuse_missing_labels
from .messages import progress_lines
from .outofcore import ParquetTable, PoolFit, TrainedPool
from .selection import (
    EMPHASES,
    SHRINKAGES,
    Choice,
    choose,
    keep_better_vote,
    prune,
    reweigh,
    without_slow_voters,
)
from .solvers import SOLVERS
from .validation import (
    check_many_classes,
    check_table,
    new_seed,
    read_unlabeled,
    read_weights,
    set_tags,
)
from .voters import PoolVoters
from .voters.budget import Budget, train_in_time
from .voters.estimators import weighted_importances
from .voters.pool import Judge, Training, train_all
from .voters.portfolio import strong_pool_for
from .votes import Votes
from .weighting import (
    PlainVoteComparison,
    Settings,
    emphasize_missed_positives,
    minimize_c_bound,
    set_fitted,
)

N_FOLDS = 5
PREFIT = "prefit"
STRONG = "strong"
DROP = "drop"
TOO_SLOW = "adds too little to the vote for its prediction time"


class DAMVIVotingClassifier(ClassifierMixin, BaseComposition):
    """Weighted majority vote of a pool of different models.

    Each model is trained on all rows. It is calibrated and weighted by its votes on rows
    that it was not trained on (out of fold), so that accurate models that disagree with
    each other carry the decision; see :class:`~damvi.DAMVIClassifier` for the steps [1]_.
    The threshold and ``predict_proba`` are learned from out-of-fold votes as well.

    Parameters
    ----------
    estimators : "strong" or list of (str, classifier), default="strong"
        The pool. "strong" is :func:`~damvi.voters.strong_pool`: boosted trees, forests and
        linear models, with early stopping: voters without weight on the first two folds
        are not trained further (``left_out_``). ``set_params(name="drop")`` removes a
        voter.
    voting : {"soft", "hard"}, default="soft"
        What voters cast: "soft" is 2p - 1 for a predicted probability p (with three or
        more classes, the probability of each class), "hard" is the predicted class.
    cv : int, splitter, iterable or "prefit", default=None
        The folds of the out-of-fold votes; None is 5 folds. ``fit`` accepts ``groups``.
        A splitter may leave rows in no test fold, as
        :class:`~sklearn.model_selection.TimeSeriesSplit` does. If the folds are in time
        order, everything that predicts a fold is learned from earlier folds (see
        :func:`~damvi.forward_splits`). With "prefit", the estimators must already be
        fitted, and the rows given to ``fit`` are only used to weight them.
    calibration : {"auto", "platt", "isotonic"} or None, default="auto"
        How to calibrate soft votes before they are weighted, out of fold. "auto" chooses
        by the number of positives.
    reweight : bool or float, default=False
        Whether to give more weight to the positives that the plain (equally weighted) vote
        misses, as in the paper. A number from 0 to 1 sets the strength.
    balance : float, default=0.25
        How far to balance the classes when votes are calibrated and weighted. With 0,
        all rows count the same, with 1 both classes have the same total weight; in
        between, the log-odds of the classes are scaled down. Thresholds and probabilities
        always refer to the natural class rates.
    shrinkage : float, default=0.03
        How far to shrink the weights towards equal weights, in [0, 1).
    fit_intercept : bool, default=True
        Whether to fit an intercept along with the weights. Soft votes on a rare class all
        lie near -1, and without an intercept the weights would have to make up for that.
        ``threshold="vote"`` then includes the intercept. With three or more classes, each
        class has its own intercept, which only affects the weights.
    solver : {"exact", "slsqp", "uniform"}, default="exact"
        How to weight the voters: "exact" is the exact minimum of the C-bound, "slsqp" the
        paper's local solver, "uniform" the plain vote, for comparison.
    threshold : default="auto"
        The threshold on the vote: "vote" (0, as in the paper), "f1", {"fbeta": 2},
        {"recall": 0.9}, {"precision": 0.5}, {"cost": (false_alarm, miss)}, or a number.
        It is tuned on out-of-fold votes, with few positives on expected counts; see
        :mod:`damvi.decision`. With three or more classes, the vote for each class is
        multiplied by a factor: "vote" (all 1), "macro_f1", or a list of numbers. "auto" is
        "f1", or "macro_f1" with three or more classes.
    unlabeled_weight : float, default=0
        Weight of the voters' disagreement on ``X_unlabeled``, in [0, 1). With 0, unlabelled
        rows given to ``fit`` are ignored with a warning; nothing we tried with them helped
        reliably.
    pos_label : label, default=None
        The positive class. None is the rarer one, or the last if both are equally
        frequent. Only for two classes.
    time_limit : float, default=None
        Time limit of ``fit`` in seconds, on the cores that ``n_jobs`` allows. Voters are
        tried in the order of the list, and left out if there is no time to train them on
        all folds. "strong" has more voters with a time limit than without. At least one
        voter is trained, if necessary on a subset of the rows. The result depends on the
        clock; ``estimators_used_`` lists the voters trained. Not available for tables
        beyond memory.
    prefer : {"speed"} or None, default=None
        "speed" makes predictions faster by putting a price on the voters' prediction time:
        2% of the C-bound for the time of all. Voters that are not worth their price are
        removed one by one, and the others are weighted again. Prediction times are measured
        (the minimum of three, on up to 1,000 rows), so the selection may differ from run to
        run; ``estimators_used_`` lists the voters kept. Out-of-fold scores do not account
        for this selection. Not available for tables beyond memory.
    n_jobs : int, default=None
        Number of voters trained, or voting, in parallel. It does not affect the result,
        except through measured times (``time_limit`` and ``prefer``).
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the voters. Pass an int for reproducible results; on
        another CPU or with another BLAS, the last bits may differ.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    pos_label_ : label
        The positive class; None with three or more classes.
    estimators_ : list of K classifiers
        The voters. They are trained on the labels 0 and 1, where 1 stands for
        ``pos_label_``; with three or more classes, on positions in ``classes_``. With
        ``cv="prefit"``, the models as given.
    named_estimators_ : dict
        The voters by name.
    weights_ : ndarray of shape (K,)
        The weights Q of the voters, non-negative with sum 1. Many are 0, and such voters
        are skipped in prediction.
    c_bound_ : float
        The C-bound of the out-of-fold vote; 1 if the voters are no better than chance.
    gibbs_risk_, disagreement_ : float
        The Gibbs risk (mean error of a voter) and the disagreement (diversity) behind it.
    threshold_ : float or ndarray of shape (n_classes,)
        Rows with a vote above it are predicted positive. With three or more classes, the
        factor of each class.
    tuning_ : Tuning or None
        How the threshold was tuned, with a cross-fitted estimate of the score it attains.
        None if it was not tuned, or if all rows with an out-of-fold vote are in one fold.
    comparison_ : PlainVoteComparison or None
        The learned weights compared with the plain vote, by out-of-fold average precision.
        If the learned weights are worse by more than a standard error, the plain vote is
        kept (``comparison_.plain_kept``); out-of-fold scores account for this choice. None
        if there is nothing to compare: with ``solver="uniform"``, one voter, or two folds.
    oob_decision_function_ : ndarray of shape (n,) or (n, n_classes)
        The decision function on the training rows, out of fold, with weights learned on
        other rows. NaN for rows that are in no test fold of ``cv``.
    estimators_used_ : list of (str, classifier)
        The unfitted voters that were used. Passed as ``estimators``, with the same
        ``random_state`` and neither ``time_limit`` nor ``prefer``, they give the same
        model, bit for bit. Only for tables in memory; not saved with the model.
    left_out_ : dict of str to str
        Voters that were left out, with the reason: no time left, no weight in the vote on
        the first two folds ("strong" only), or too slow for ``prefer="speed"``. Not saved
        with the model.
    slow_votes_ : dict of str to ndarray
        Out-of-fold votes on the training rows of the voters that were trained, but are too
        slow for ``prefer="speed"``. Not saved with the model.
    seconds_ : dict of str to float
        Training time of each voter by name, including the folds. Not saved with the
        model.
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
    ``predict_proba`` is calibrated on out-of-fold votes and increases with the vote.
    ``predict`` follows the threshold, not the larger probability. A tie goes to the
    majority class.

    References
    ----------
    .. [1] A. Goyal and J. Khiari (2020), Diversity-Aware Weighted Majority Vote
       Classifier for Imbalanced Data, IJCNN.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from damvi import DAMVIVotingClassifier
    >>> X, y = make_classification(2000, weights=[0.95], random_state=0)
    >>> pool = [("linear", LogisticRegression()), ("bayes", GaussianNB())]
    >>> model = DAMVIVotingClassifier(pool, random_state=0).fit(X, y)
    >>> model.pos_label_, model.predict(X[:3])
    (np.int64(1), array([0, 0, 0]))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimators": "no_validation",  # type: ignore[dict-item]
        "voting": [StrOptions({"soft", "hard"})],
        "cv": "no_validation",  # type: ignore[dict-item]
        "calibration": [StrOptions({"auto", "platt", "isotonic"}), None],
        "reweight": ["boolean", Interval(Real, 0, 1, closed="both")],
        "balance": [Interval(Real, 0, 1, closed="both")],
        "shrinkage": [Interval(Real, 0, 1, closed="left")],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions(set(SOLVERS))],
        "threshold": "no_validation",  # type: ignore[dict-item]
        "unlabeled_weight": [Interval(Real, 0, 1, closed="left")],
        "pos_label": "no_validation",  # type: ignore[dict-item]
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "prefer": [StrOptions({"speed"}), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
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
    left_out_: dict[str, str]
    slow_votes_: dict[str, NDArray[Any]]
    seconds_: dict[str, float]
    estimators_used_: list[tuple[str, Any]]
    row_hashes_: NDArray[np.uint64]
    row_hash_step_: int

    def __init__(
        self,
        estimators: Any = STRONG,
        *,
        voting: Literal["soft", "hard"] = "soft",
        cv: Any = None,
        calibration: Literal["auto", "platt", "isotonic"] | None = "auto",
        reweight: bool | float = False,
        balance: float = 0.25,
        shrinkage: float = 0.03,
        fit_intercept: bool = True,
        solver: str = "exact",
        threshold: Any = "auto",
        unlabeled_weight: float = 0.0,
        pos_label: Any = None,
        time_limit: float | None = None,
        prefer: Literal["speed"] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.voting = voting
        self.cv = cv
        self.calibration = calibration
        self.reweight = reweight
        self.balance = balance
        self.shrinkage = shrinkage
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.threshold = threshold
        self.unlabeled_weight = unlabeled_weight
        self.pos_label = pos_label
        self.time_limit = time_limit
        self.prefer = prefer
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

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
            Training data. Voters receive dataframes as they are. A parquet dataset (the
            path of a file or folder, a glob pattern, or a :class:`~damvi.ParquetTable`) is
            read block by block: voters are trained on a sample of its rows, and vote on
            all of them.
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
            ``groups`` for the folds: whatever ``cv`` is, models never vote on rows of a
            group that they were trained on. With metadata routing enabled, also metadata
            that the voters' ``fit`` requests; values with one entry per row are indexed
            along with the rows.

        Returns
        -------
        self
        """
        clock = time.perf_counter
        limit = self.time_limit
        budget = None if limit is None else Budget(limit, clock(), clock)
        named = self._named()

        # 1. Train the voters, and cast their votes on rows they were not trained on.
        table = ParquetTable(X) if isinstance(X, str | PathLike) else X
        unlabeled = None
        if hasattr(table, "train_pool"):  # on disk, or on a cluster
            trained = self._train_on_blocks(
                named, table, y, sample_weight, X_unlabeled, fit_params
            )
        else:
            trained, unlabeled = self._train_in_memory(
                named, X, y, sample_weight, X_unlabeled, fit_params, budget
            )
        self._set_votes(trained, X, unlabeled)

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
        weighting = keep_better_vote(weighting)

        # 4. Tune the threshold, and calibrate probabilities, on the out-of-fold vote.
        objective = objective_for(self.threshold, self.labels_)
        decision = choose_threshold(
            weighting, objective, self.labels_.target_order, calibrates=True
        )

        set_fitted(self, decision)
        return self

    def _train_in_memory(
        self,
        named: list[tuple[str, Any]],
        X: Any,
        y: Any,
        sample_weight: Any,
        X_unlabeled: Any,
        fit_params: dict[str, Any],
        budget: Budget | None,
    ) -> tuple[TrainedPool, Any]:
        """Step 1 on an array, sparse matrix or dataframe; return unlabelled rows too."""
        refuse_missing_labels(y)
        X, y = check_table(self, X, y, keep_frame=True, allow_nan=True)
        labels, targets = Labels.read(y, self.pos_label)
        check_many_classes(labels, [voter for _, voter in named])
        objective_for(self.threshold, labels)  # fail early if it is invalid
        weights = read_weights(sample_weight, targets, labels.by_target)
        unlabeled = read_unlabeled(
            self,
            X_unlabeled,
            X,
            self.unlabeled_weight,
            labels,
            keep_frame=True,
            allow_nan=True,
            stacklevel=5,
        )
        seed = new_seed(self.random_state)
        if isinstance(self.estimators, str):
            named = self._strong(X, targets, weights, seed)
        groups, own_params = self._route(named, fit_params)
        cv = N_FOLDS if self._is_prefit or self.cv is None else self.cv
        split = split_rows(cv, X, targets, groups, seed=seed)
        seconds: dict[str, float] = {}
        if self._is_prefit:
            voters = PoolVoters.prefit(named, classes=labels.by_target, voting=self.voting)
            votes = voters.votes(X, self.n_jobs)
            self.left_out_, self.estimators_used_ = {}, named
        else:
            training = Training.of(
                named,
                X,
                targets,
                labels.n_classes,
                self.voting,
                split,
                seed=seed,
                sample_weight=weights,
                fit_params=own_params,
                keeps_on_disk=isinstance(self.estimators, str),
            )
            judge = self._judge(labels, targets, weights, split)
            voters, votes = self._train(training, judge, budget)
            seconds = training.seconds
        hashes = training_hashes(X, targets, unlabeled)
        trained = TrainedPool(
            labels, targets, weights, voters, votes, split, hashes, 1, seconds
        )
        return trained, unlabeled

    def _set_votes(self, trained: TrainedPool, X: Any, unlabeled: Any) -> None:
        """Set the voters and their calibrated votes, without voters that are too slow."""
        labels, targets, weights, voters, votes, split = trained[:6]
        judge = self._judge(labels, targets, weights, split)
        if judge.method is not None and voters.calibrators is None:
            for k in range(len(voters)):
                judge.calibrate(votes, k)
            voters = voters.calibrated(list(judge.calibrators.values()))
        cast = replace(judge.like, votes=votes)
        self.slow_votes_ = {}
        if self.prefer == "speed":
            voters, cast = self._without_slow(voters, cast, X)
        self.labels_, self.voters_, self.seconds_ = labels, voters, trained.seconds
        self.votes_ = cast.with_unlabeled(voters, unlabeled, self.n_jobs)
        self.row_hashes_, self.row_hash_step_ = trained.row_hashes, trained.row_hash_step

    def _without_slow(
        self, voters: PoolVoters, votes: Votes, X: Any
    ) -> tuple[PoolVoters, Votes]:
        """Remove voters that are not worth their prediction time."""
        settings = Settings.of(self)._replace(unlabeled_weight=0.0)
        X = check_table(self, X, keep_frame=True, allow_nan=True)
        with warnings.catch_warnings():  # the fit itself warns, of the voters kept
            warnings.simplefilter("ignore")
            moments = settings.moments_by_fold(votes)
            weighting = minimize_c_bound(votes, moments, settings, self.n_jobs)
            kept = without_slow_voters(weighting, voters.seconds_a_row(X))
        used = self.estimators_used_
        self.estimators_used_ = [used[k] for k in kept.tolist()]
        slow = [name for k, (name, _) in enumerate(used) if k not in kept]
        self.left_out_ |= dict.fromkeys(slow, TOO_SLOW)
        self.slow_votes_ = {
            name: votes.votes[:, k].copy()
            for k, (name, _) in enumerate(used)
            if name in slow
        }
        if slow and self.verbose:
            with progress_lines("Leaving out slow voters") as show:
                for name in slow:
                    show(1, 1, f"Dropped {name}: {TOO_SLOW}.")
        # Also drops their part in the emphasis, as if they had never been in the pool.
        return voters.take(kept), replace(votes, votes=votes.take(kept).votes)

    def _judge(
        self,
        labels: Labels,
        targets: NDArray[Any],
        weights: NDArray[np.float64] | None,
        split: Split,
    ) -> Judge:
        """What calibrates the votes and measures them."""
        totals = labels.totals(targets, weights)
        class_weight = labels.class_weight(totals.weight, self.balance)
        like = Votes(
            np.empty((len(targets), 0)),
            targets,
            split.folds,
            sample_weight=weights,
            class_weight=class_weight,
            reweighted=labels.reweighted(totals),
            forward=split.forward,
        )
        counts = (class_weight / class_weight.max())[targets]
        return Judge(
            like,
            Settings.of(self),
            self.calibration if self.voting == "soft" else None,
            counts if weights is None else counts * weights,
        )

    def _strong(
        self,
        X: Any,
        targets: NDArray[Any],
        weights: NDArray[np.float64] | None,
        seed: int,
    ) -> list[tuple[str, Any]]:
        """Make the strong pool for this table."""
        if self._is_prefit:
            raise ValueError(
                f"cv='prefit' needs models that are already fitted, but estimators="
                f"{self.estimators!r} has yet to be trained; give a list of (name, fitted "
                f"model) pairs"
            )
        return strong_pool_for(
            X, targets, seed, sample_weight=weights, extended=self.time_limit is not None
        )

    def _train(
        self, training: Training, judge: Judge, budget: Budget | None
    ) -> tuple[PoolVoters, NDArray[Any]]:
        """Train the pool, within the time limit if any, and calibrate its votes."""
        n_tasks = len(training.rows_of) * len(training.named)
        bar: Any = progress_lines("Training voters") if self.verbose else nullcontext()
        with bar as show:

            def tell(training: Training, k: int, voted: bool) -> None:
                done: tuple[float, float] = len(training.done), n_tasks
                if budget is not None:
                    done = round(budget.limit - budget.left), budget.limit
                show(*done, judge.describe(training, k) if voted else None)

            follow = None if show is None else tell
            if budget is not None:
                train_in_time(training, budget, judge, self.n_jobs, follow, say=_warn)
            else:
                screens = isinstance(self.estimators, str) and judge.can_screen
                train_all(training, self.n_jobs, judge, follow, screens=screens)
            self.left_out_ = training.left_out
            for name, why in self.left_out_.items() if self.verbose else ():
                show(1, 1, f"Dropped {name}: {why}.")
        whole = training.whole
        self.estimators_used_ = [training.named[k] for k in whole]
        voters = training.voters
        if judge.method is not None:
            voters = voters.calibrated([judge.calibrators[k] for k in whole])
        everybody = len(whole) == len(training.named)
        return voters, training.votes if everybody else training.votes_of(whole)

    def _train_on_blocks(
        self,
        named: list[tuple[str, Any]],
        table: Any,
        y: Any,
        sample_weight: Any,
        X_unlabeled: Any,
        fit_params: dict[str, Any],
    ) -> TrainedPool:
        """Step 1 on a table beyond memory: on disk, or on a cluster."""
        only_in_memory = {
            "X_unlabeled": X_unlabeled,
            "time_limit": self.time_limit,
            "prefer": self.prefer,
        }
        unusable = [name for name, value in only_in_memory.items() if value is not None]
        unusable += fit_params
        if unusable:
            raise TypeError(
                f"{', '.join(unusable)} cannot be used with a table beyond memory; fit on "
                f"a sample of its rows that fits in memory"
            )
        n_folds = N_FOLDS if self.cv is None else self.cv
        if isinstance(n_folds, bool) or not isinstance(n_folds, int | np.integer):
            raise ValueError(
                f"cv={self.cv!r} needs all rows in memory; for a table beyond memory, cv "
                f"must be the number of folds, or None"
            )
        if not 2 <= n_folds <= 100:
            raise ValueError(f"cv={n_folds} must be between 2 and 100 folds")
        trained: TrainedPool = table.train_pool(
            PoolFit(
                named=None if isinstance(self.estimators, str) else named,
                voting=self.voting,
                n_folds=int(n_folds),
                pos_label=self.pos_label,
                check_labels=partial(objective_for, self.threshold),
                seed=new_seed(self.random_state),
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            ),
            y,
            sample_weight,
        )
        self.left_out_ = {}
        self.__dict__.pop("estimators_used_", None)
        self.n_features_in_ = trained.n_features
        self.__dict__.pop("feature_names_in_", None)
        if trained.columns is not None:
            self.feature_names_in_ = np.array(trained.columns, dtype=object)
        return trained

    @property
    def _is_prefit(self) -> bool:
        return isinstance(self.cv, str) and self.cv == PREFIT

    def _named(self) -> list[tuple[str, Any]]:
        """The (name, voter) pairs given, checked; empty for "strong"."""
        if isinstance(self.estimators, str) and self.estimators == STRONG:
            return []
        if not isinstance(self.estimators, list):
            raise ValueError(
                f"estimators={self.estimators!r} must be 'strong' or a list of (name, "
                f"classifier) pairs; to bag a single classifier, use damvi.DAMVIClassifier"
            )
        for entry in self.estimators:
            if not (
                isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)
            ):
                raise ValueError(
                    f"estimators contains {entry!r}, which is not a (name, classifier) "
                    f"pair; write [('linear', LogisticRegression()), ...]"
                )
            if entry[1] is None:
                raise ValueError(f"voter {entry[0]!r} is None; use 'drop' to leave it out")
            if isinstance(entry[1], str) and not _is_drop(entry[1]):
                raise ValueError(
                    f"voter {entry[0]!r} is the text {entry[1]!r}; give a classifier, or "
                    f"'drop' to leave it out"
                )
            if isinstance(entry[1], type):
                raise ValueError(
                    f"voter {entry[0]!r} is the class {entry[1].__name__}; write "
                    f"{entry[1].__name__}()"
                )
            if entry[0] == "splitter":
                raise ValueError(
                    "no voter may be named 'splitter', which metadata routing uses for cv; "
                    "choose another name"
                )
        kept = [(name, voter) for name, voter in self.estimators if not _is_drop(voter)]
        if self.estimators and not kept:
            raise ValueError("all voters are set to 'drop'; keep at least one")
        self._validate_names([name for name, _ in self.estimators])
        return kept

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters, including those of the voters as ``name__parameter``."""
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of voters as ``name__parameter``, or whole voters by name.

        ``set_params(name="drop")`` leaves a voter out.
        """
        own, given = self.get_params(deep=False), params.get("estimators", self.estimators)
        pairs = given if isinstance(given, list) else []
        voters = [str(pair[0]) for pair in pairs if isinstance(pair, tuple) and pair]
        for name in params:
            if name.partition("__")[0] not in (*own, *voters):
                raise ValueError(
                    f"Invalid parameter {name!r}: it is neither a parameter "
                    f"({', '.join(own)}) nor a voter "
                    f"({', '.join(voters) or 'fit creates those of the strong pool'})"
                )
        self._set_params("estimators", **params)
        return self

    @property
    def named_estimators_(self) -> dict[str, Any]:
        """The voters by name, in the order of ``weights_``."""
        check_is_fitted(self, "weights_")
        return dict(zip(self.voters_.names, self.estimators_, strict=True))

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
        reweigh(self, settings, pool=True)
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
        prune(self, max_voters, pool=True)
        return self

    def cast_votes(self, X: Any) -> NDArray[Any]:
        """Votes of all voters, of shape (n, K): +1 for ``pos_label_``, -1 for the other.

        With three or more classes, hard votes are positions in ``classes_``, and soft votes
        have shape (n, K, n_classes).
        """
        check_is_fitted(self, "weights_")
        X = check_table(self, X, keep_frame=True, allow_nan=True)
        return self.voters_.votes(X, self.n_jobs)

    def vote(self, X: Any) -> NDArray[np.float64]:
        """Weighted vote for ``pos_label_``, in [-1, 1]; ``threshold_`` applies to it.

        With three or more classes, the share of the vote for each: (n, n_classes).
        """
        check_is_fitted(self, "weights_")
        X = check_table(self, X, keep_frame=True, allow_nan=True)
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
        """Probability of each class, calibrated on out-of-fold votes."""
        vote = self.vote(X)
        return self.labels_.probabilities(vote, self.decision_.calibrator)

    @property
    def tuning_(self) -> Tuning | None:
        """How the threshold was tuned, with a cross-fitted estimate of its score."""
        check_is_fitted(self, "weights_")
        return self.decision_.tuning

    @property
    def comparison_(self) -> PlainVoteComparison | None:
        """The learned weights compared with the plain vote, and which of them was kept."""
        check_is_fitted(self, "weights_")
        comparison: PlainVoteComparison | None = self.decision_.comparison
        return comparison

    @property
    def oob_decision_function_(self) -> NDArray[np.float64]:
        """The decision function on the training rows, out of fold."""
        check_is_fitted(self, "weights_")
        return self.labels_.scores(self.decision_.out_of_sample_vote, self.threshold_)

    @property
    def estimators_(self) -> list[Any]:
        """The voters, in the order of the pool."""
        check_is_fitted(self, "weights_")
        return self.voters_.estimators

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Weighted mean of the voters' feature importances.

        Voters without feature importances are skipped.
        """
        check_is_fitted(self, "weights_")
        return weighted_importances(self.estimators_, self.weights_, scaled=True)

    def _route(
        self, named: list[tuple[str, Any]], fit_params: dict[str, Any]
    ) -> tuple[Any, dict[str, dict[str, Any]]]:
        """Return the groups of the rows, and the metadata of each voter's ``fit``."""
        if not routing_enabled():
            groups = fit_params.pop("groups", None)
            if fit_params:
                raise TypeError(
                    f"fit of a pool accepts groups, but not {', '.join(fit_params)}; "
                    f"to pass more to voters, enable metadata routing: "
                    f"sklearn.set_config(enable_metadata_routing=True)"
                )
            return groups, {}
        if not fit_params:
            return None, {}
        routed = process_routing(self, "fit", **fit_params)
        given = {name: routed[name].fit for name, _ in named if name in routed}
        return routed.splitter.split.get("groups"), given

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing; see scikit-learn's user guide."""
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(
            splitter=asks_for_groups(self.cv),
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        for name, voter in self._named():
            router.add(**{name: voter}, method_mapping=to_fit)
        return router

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        voters = (
            []
            if isinstance(self.estimators, str)
            else [one for _, one in self.estimators if not _is_drop(one)]
        )
        set_tags(tags, [get_tags(voter) for voter in voters])
        if self.pos_label is not None or not allows_many_classes(self.threshold):
            tags.classifier_tags.multi_class = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        of_rows = ("votes_", "slow_votes_")
        return {name: value for name, value in state.items() if name not in of_rows}


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=2)


def _is_drop(voter: Any) -> bool:
    return isinstance(voter, str) and voter == DROP
