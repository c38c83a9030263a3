"""DAMVIVotingClassifier: the same steps on a pool of different models.

The paper's footnote allows any set of learners. Each model of the pool is one voter,
trained once on all rows; the votes that its weight is learned from are out of fold.
"""

from __future__ import annotations

import time
import warnings
from contextlib import nullcontext
from dataclasses import replace
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
from .decision import (
    Decision,
    Objective,
    Tuning,
    choose_threshold,
    parse_objective,
)
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
    new_seed,
    read_table,
    read_unlabeled,
    read_weights,
    set_tags,
)
from .voters import PoolVoters, VoteReader, many_categories, strong_pool
from .voters.budget import Budget, Judge, train_in_time
from .voters.estimators import weighted_importances
from .voters.pool import Training, train_all
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
TOO_SLOW = "not worth the time that it takes to answer"


class DAMVIVotingClassifier(ClassifierMixin, BaseComposition):
    """A pool of different models, weighted by the diversity-aware C-bound.

    Each model is trained on all rows. It is judged, calibrated and weighted by votes on
    rows that it was not trained on (out of fold), so that accurate models that disagree
    with each other carry the decision; see :class:`~damvi.DAMVIClassifier` for the steps
    [1]_. The threshold and ``predict_proba`` are learned from out-of-fold votes as well.

    Parameters
    ----------
    estimators : "strong" or list of (str, classifier), default="strong"
        The pool. "strong" is :func:`~damvi.voters.strong_pool`: forests, boosted trees and
        linear models; those whose first two folds show that they would have no weight are
        trained no further (``left_out_``). A voter can be set to "drop" with
        ``set_params``.
    voting : {"soft", "hard"}, default="soft"
        What a voter says: its probability p, as 2p - 1 (with three or more classes the
        probability of each), or its decision.
    cv : int, splitter, iterable or "prefit", default=None
        The folds of the votes; None is 5. ``groups`` may be given to ``fit``. Splitters may
        leave rows unjudged, as :class:`~sklearn.model_selection.TimeSeriesSplit` does: in
        the order of time what judges a row is learned from earlier rows (see
        :func:`~damvi.forward_splits`). "prefit": the estimators are fitted already, and the
        rows given to ``fit`` only set the weights.
    calibration : {"auto", "platt", "isotonic"} or None, default="auto"
        Calibrate soft votes before they are weighted, out of fold; "auto" chooses by the
        number of positives.
    reweight : bool or float, default=False
        Lean on the positives that the plain vote misses, as in the paper, or not; a
        number from 0 to 1 is the strength.
    balance : float, default=0.25
        How much more a positive counts than a negative when votes are calibrated and
        weighted: 0 is not at all, at 1 both classes count the same, and in between the
        log-odds of the classes are scaled down. Thresholds and probabilities are those
        of the natural class rate in any case.
    shrinkage : float, default=0.03
        How far the weights are drawn towards equal ones, from 0 to 1 (excluded).
    fit_intercept : bool, default=True
        Fit a constant along with the weights. Soft votes on a rare class all lie near -1,
        and without it the weights would be spent on that. ``threshold="vote"`` then cuts
        where the constant tips the vote; with three or more classes there is one for each,
        for the weights alone.
    solver : {"exact", "slsqp", "uniform"}, default="exact"
        How to weight the voters: the exact minimum of the C-bound, the paper's local
        solver, or the plain vote for comparison.
    threshold : default="auto"
        Where to cut the vote: "vote" (at 0, the paper's way), "f1", {"fbeta": 2},
        {"recall": 0.9}, {"precision": 0.5}, {"cost": (false_alarm, miss)}, or a number.
        It is tuned on out-of-fold votes; see :mod:`damvi.decision`. With three or more
        classes, by which factor the votes for each count: "vote" (1 each), "macro_f1", or
        a list of numbers. "auto" is "f1", or "macro_f1" with three or more classes.
    unlabeled_weight : float, default=0
        How much the voters' disagreement on ``X_unlabeled`` counts, if ``fit`` is given
        any, from 0 to 1 (excluded). At 0 unlabelled rows are left alone, with a warning:
        no use of them has been seen to help reliably.
    pos_label : label, default=None
        The positive class. None: the rarer one (of two equal ones, the last in order).
        Only for two classes.
    time_limit : float, default=None
        Seconds for ``fit``, on the cores that ``n_jobs`` allows. Voters are tried in the
        order of the list, and left out where there is no time for all of their folds;
        "strong" has more to try then than without a limit. At least one is trained, if
        need be on some of the rows. Who took part depends on the clock;
        ``estimators_used_`` tells. Rows must be in memory.
    prefer : {"speed"} or None, default=None
        "speed" makes predictions quicker: the time that voters take to answer has a price,
        2 % of the C-bound for the time of all. Voters that are not worth theirs leave the
        vote one by one, and the others are weighted anew. Times are measured (the least of
        three, on up to 1,000 rows), so that who stays may differ from run to run;
        ``estimators_used_`` tells. The figures out of fold do not know of the choice. Rows
        must be in memory.
    n_jobs : int, default=None
        Voters trained or asked at a time. No result depends on it, unless there is a
        ``time_limit``, or times are measured for ``prefer``.
    random_state : int, RandomState instance or None, default=None
        The seed of the folds and of the voters. An int makes the fit repeatable;
        on other CPUs, or with another BLAS, up to the last bits.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in order.
    pos_label_ : label
        The class taken as positive; None with three or more.
    estimators_ : list of K classifiers
        The voters. They are trained on the labels 0 and 1, where 1 is ``pos_label_``; with
        three or more classes on their places. Those that came fitted are as they came.
    named_estimators_ : dict
        The same by name.
    weights_ : ndarray of shape (K,)
        Their weights Q, on the simplex. Zeros are common, and skipped in prediction.
    c_bound_ : float
        The C-bound of the vote out of fold, 1 when the voters are no better than a coin.
    gibbs_risk_, disagreement_ : float
        The two quantities behind it: mean error of a voter, and diversity.
    threshold_ : float or ndarray of shape (n_classes,)
        The vote above which a row is flagged, or the factors of three or more classes.
    tuning_ : Tuning or None
        How the threshold was tuned, with an honest (cross-fitted) figure of what it gives.
        None if it was not, or if the rows that have a vote are of a single fold.
    comparison_ : PlainVoteComparison or None
        The learned weights beside the plain vote, by average precision out of fold. Where
        they are behind by more than a standard error, the plain vote is kept
        (``comparison_.plain_kept``), and what is told of out-of-fold rows counts that in.
        None where nothing is to be compared: with ``solver="uniform"``, one voter, or two
        folds.
    oob_decision_function_ : ndarray of shape (n,) or (n, n_classes)
        The decision function on each training row, out of fold, with weights learned on
        other rows. NaN where ``cv`` has a row judged by nobody.
    estimators_used_ : list of (str, classifier)
        The voters before they were trained. Given as ``estimators``, with the same
        ``random_state``, no ``time_limit`` and no ``prefer``, they make the same model, to
        the last bit. Only of rows in memory, and not saved with the model.
    left_out_ : dict of str to str
        Voters that have no part, and why: those that there was no time for, of "strong"
        those that would have had no weight by their first two folds, and those that are too
        slow for ``prefer="speed"``. Not saved with the model.
    slow_votes_ : dict of str to ndarray
        The votes of the latter on the training rows, out of fold, to compare with: they are
        trained, and gone. Not saved with the model.
    seconds_ : dict of str to float
        What the trainings of each voter took, by its name, the folds included. It is not
        saved with the model.
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
    ``predict_proba`` is calibrated on out-of-fold votes, and increases with the vote.
    ``predict`` follows the threshold, not the larger probability. A tied vote goes to the
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
        """Train the voters and weight them.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features), or parquet
            The voters get a dataframe as it is. A path to a parquet dataset (a file, a
            folder, a pattern), or a :class:`~damvi.ParquetTable`, is read block by block:
            the voters are trained on a sample of its rows, and vote on all of them.
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
            ``groups`` for the folds: no row is judged by a model that was trained on a row
            of its group, whatever ``cv`` is. With metadata routing on, also what the
            voters' ``fit`` requests; values with one entry a row are cut along with the
            rows.

        Returns
        -------
        self
        """
        budget = None
        if self.time_limit is not None:
            clock = time.perf_counter
            budget = Budget(self.time_limit, clock(), clock)
        named = self._named()
        # 1. Voters, all different, and their votes on rows they were not trained on.
        table = ParquetTable(X) if isinstance(X, str | PathLike) else X
        unlabeled = None
        if hasattr(table, "train_pool"):  # on disk, or on a cluster
            only_in_memory = {
                "X_unlabeled": X_unlabeled,
                "time_limit": self.time_limit,
                "prefer": self.prefer,
            }
            more = {name: one for name, one in only_in_memory.items() if one is not None}
            trained = self._train_on_blocks(
                named, table, y, sample_weight, more | fit_params
            )
        else:
            trained, unlabeled = self._train_in_memory(
                named, X, y, sample_weight, X_unlabeled, fit_params, budget
            )
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
        weighting = keep_better_vote(weighting)

        # 4. Where to cut the vote, and what it means.
        decision = choose_threshold(
            weighting, self._objective(labels), labels.target_order, calibrates=True
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
        """Step 1 on an array, a sparse matrix or a dataframe, and the unlabelled rows."""
        refuse_missing_labels(y)
        X, y = read_table(self, X, y, keep_frame=True, allow_nan=True)
        labels, targets = Labels.read(y, self.pos_label)
        check_many_classes(labels, [voter for _, voter in named])
        self._objective(labels)  # refused before the work
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
                VoteReader(np.arange(labels.n_classes), self.voting),
                seed=seed,
                cv=split,
                sample_weight=weights,
                fit_params=own_params,
            )
            judge = self._judge(labels, targets, weights, split)
            voters, votes = self._train(training, judge, budget)
            seconds = training.seconds
        hashes = training_hashes(X, targets, unlabeled)
        trained = TrainedPool(
            labels, targets, weights, voters, votes, split, hashes, 1, seconds
        )
        return trained, unlabeled

    def _without_slow(
        self, voters: PoolVoters, votes: Votes, X: Any
    ) -> tuple[PoolVoters, Votes]:
        """The voters that are worth the time they take to answer, and their votes."""
        settings = Settings.of(self)._replace(unlabeled_weight=0.0)
        X = read_table(self, X, keep_frame=True, allow_nan=True)
        with warnings.catch_warnings():  # of those that stay, the fit itself will tell
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
                    show(1, 1, f"Left out {name}: {TOO_SLOW}.")
        # As if the others had never been: none of them has a part in the emphasis either.
        return voters.take(kept), replace(votes, votes=votes.take(kept).votes)

    def _judge(
        self,
        labels: Labels,
        targets: NDArray[Any],
        weights: NDArray[np.float64] | None,
        split: Split,
    ) -> Judge:
        """What votes are calibrated and weighted by."""
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
        """The strong pool for this table."""
        if self._is_prefit:
            raise ValueError(
                f"cv='prefit' weighs models that are fitted already, and estimators="
                f"{self.estimators!r} are yet to be; give a list of (name, fitted model)"
            )
        return strong_pool(
            seed,
            targets,
            sample_weight=weights,
            sparse=hasattr(X, "tocsr"),
            rates=bool(many_categories(X)),
            extended=self.time_limit is not None,
        )

    def _train(
        self, training: Training, judge: Judge, budget: Budget | None
    ) -> tuple[PoolVoters, NDArray[Any]]:
        """The pool trained, or as much of it as there is time for, and calibrated votes."""
        n_tasks = len(training.rows_of) * len(training.named)
        bar: Any = progress_lines("Training voters") if self.verbose else nullcontext()
        with bar as show:

            def follow(training: Training, k: int, whole: bool) -> None:
                if whole:
                    judge.calibrate(training.votes, k)
                if show is not None:
                    done: tuple[float, float] = len(training.done), n_tasks
                    if budget is not None:
                        done = round(budget.limit - budget.left), budget.limit
                    show(*done, judge.describe(training, k) if whole else None)

            if budget is not None:
                train_in_time(training, budget, judge, self.n_jobs, follow, say=_warn)
            else:
                screens = isinstance(self.estimators, str) and judge.can_screen
                train_all(training, self.n_jobs, judge if screens else None, follow)
            self.left_out_ = training.left_out
            for name, why in self.left_out_.items() if self.verbose else ():
                show(1, 1, f"Left out {name}: {why}.")
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
        more: dict[str, Any],
    ) -> TrainedPool:
        """Step 1 on a table that is not in memory: on disk, or on a cluster."""
        if more:
            raise TypeError(
                f"a fit on a table beyond memory does not take {', '.join(more)}; fit on "
                f"as many of its rows as memory holds"
            )
        n_folds = N_FOLDS if self.cv is None else self.cv
        if isinstance(n_folds, bool) or not isinstance(n_folds, int | np.integer):
            raise ValueError(
                f"cv={self.cv!r} needs all rows in memory; of a table beyond it, rows are "
                f"dealt to folds by their numbers: give how many folds, or None"
            )
        if not 2 <= n_folds <= 100:
            raise ValueError(f"cv={n_folds} must be a number of folds from 2 to 100")
        trained: TrainedPool = table.train_pool(
            PoolFit(
                named=None if isinstance(self.estimators, str) else named,
                voting=self.voting,
                n_folds=int(n_folds),
                pos_label=self.pos_label,
                check_labels=self._objective,
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

    def _objective(self, labels: Labels) -> Objective:
        """What the threshold is for."""
        is_auto = isinstance(self.threshold, str) and self.threshold == "auto"
        threshold = labels.tuned_for if is_auto else self.threshold
        return parse_objective(threshold, labels.n_classes)

    @property
    def _is_prefit(self) -> bool:
        return isinstance(self.cv, str) and self.cv == PREFIT

    def _named(self) -> list[tuple[str, Any]]:
        """The voters of a list by name, checked; none of "strong", which is made at fit."""
        if isinstance(self.estimators, str) and self.estimators == STRONG:
            return []
        if not isinstance(self.estimators, list):
            raise ValueError(
                f"estimators={self.estimators!r} must be 'strong' or a list of (name, "
                f"classifier); one classifier, trained many times, is weighted by "
                f"damvi.DAMVIClassifier"
            )
        for entry in self.estimators:
            if not (
                isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)
            ):
                raise ValueError(
                    f"estimators is a list, and {entry!r} in it is not a pair; give each "
                    f"voter a name, as in [('linear', LogisticRegression()), ...]"
                )
            if entry[1] is None:
                raise ValueError(
                    f"voter {entry[0]!r} is None; set it to 'drop' to leave it out"
                )
            if entry[0] == "splitter":
                raise ValueError(
                    "a voter is named 'splitter', which metadata routing needs for cv; "
                    "give it another name"
                )
        kept = [(name, voter) for name, voter in self.estimators if not _is_drop(voter)]
        if self.estimators and not kept:
            raise ValueError("all voters are set to 'drop'; at least one must stay")
        self._validate_names([name for name, _ in self.estimators])
        return kept

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, with those of the voters as ``name__parameter``."""
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of voters as ``name__parameter``, a voter by its name.

        ``set_params(name="drop")`` leaves a voter out.
        """
        own, given = self.get_params(deep=False), params.get("estimators", self.estimators)
        pairs = given if isinstance(given, list) else []
        voters = [str(pair[0]) for pair in pairs if isinstance(pair, tuple) and pair]
        for name in params:
            if name.partition("__")[0] not in (*own, *voters):
                raise ValueError(
                    f"Invalid parameter {name!r}: it is neither one of the parameters "
                    f"({', '.join(own)}) nor a voter "
                    f"({', '.join(voters) or 'those of the strong pool are made by fit'})"
                )
        self._set_params("estimators", **params)
        return self

    @property
    def named_estimators_(self) -> dict[str, Any]:
        """The voters by name, in the order of ``weights_``."""
        check_is_fitted(self, "weights_")
        return dict(zip(self.voters_.names, self.estimators_, strict=True))

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
        reweigh(self, settings, pool=True)
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
        prune(self, max_voters, pool=True)
        return self

    def cast_votes(self, X: Any) -> NDArray[Any]:
        """The votes of all K voters, (n, K): +1 for ``pos_label_``, -1 for the other.

        With three or more classes, their places in ``classes_``, or (n, K, n_classes)
        for soft votes.
        """
        check_is_fitted(self, "weights_")
        X = read_table(self, X, keep_frame=True, allow_nan=True)
        return self.voters_.votes(X, self.n_jobs)

    def vote(self, X: Any) -> NDArray[np.float64]:
        """The weighted vote for ``pos_label_``, in [-1, 1]; step 4 cuts it.

        With three or more classes, the share of the vote for each: (n, n_classes).
        """
        check_is_fitted(self, "weights_")
        X = read_table(self, X, keep_frame=True, allow_nan=True)
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
        """The probability of each class, calibrated on out-of-fold votes."""
        vote = self.vote(X)
        return self.labels_.probabilities(vote, self.decision_.calibrator)

    @property
    def tuning_(self) -> Tuning | None:
        """How the threshold was tuned, with an honest figure of what it gives."""
        check_is_fitted(self, "weights_")
        return self.decision_.tuning

    @property
    def comparison_(self) -> PlainVoteComparison | None:
        """The learned weights beside the plain vote, and which of them was kept."""
        check_is_fitted(self, "weights_")
        comparison: PlainVoteComparison | None = self.decision_.comparison
        return comparison

    @property
    def oob_decision_function_(self) -> NDArray[np.float64]:
        """The decision function on the training rows, by those that do not know them."""
        check_is_fitted(self, "weights_")
        return self.labels_.scores(self.decision_.out_of_sample_vote, self.threshold_)

    @property
    def estimators_(self) -> list[Any]:
        """The voters, in the order of the pool."""
        check_is_fitted(self, "weights_")
        return self.voters_.estimators

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Mean of the voters' feature importances, weighted as they vote.

        Voters that have none are left out.
        """
        check_is_fitted(self, "weights_")
        return weighted_importances(self.estimators_, self.weights_, scaled=True)

    def _route(
        self, named: list[tuple[str, Any]], fit_params: dict[str, Any]
    ) -> tuple[Any, dict[str, dict[str, Any]]]:
        """Groups for the folds, and what else each voter asked for."""
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
