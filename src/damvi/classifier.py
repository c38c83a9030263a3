"""DAMVIClassifier: the algorithm's steps, as a scikit-learn estimator."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from ._compat import HasMethods, Interval, StrOptions, fit_context
from .decision import Calibrator, Tuning
from .enrolling import EnrolsTables
from .reading import read_table
from .showing import ShowsVoters
from .solvers import SOLVERS
from .unlabelled import refuse_missing_labels


class DAMVIClassifier(
    EnrolsTables, ShowsVoters, ClassifierMixin, MetaEstimatorMixin, BaseEstimator
):
    """Diversity-aware weighted majority vote for imbalanced data.

    Many voters are trained on bootstrap samples; the positives that their plain vote
    misses gain weight; then the voters are weighted so as to minimise the PAC-Bayesian
    C-bound, which trades their accuracy against their diversity [1]_. With three or more
    classes it is the multiclass C-bound [2]_, and the missed rows of every class below its
    even share gain weight.

    Parameters
    ----------
    estimator : classifier, list of (str, classifier) or "strong", default=None
        The voter, trained many times. None: :class:`~damvi.FastTreeClassifier`, the
        built-in tree, which takes missing values and categories and trains tens of times
        faster than scikit-learn's :class:`~sklearn.tree.DecisionTreeClassifier` (the
        paper's, one argument away). A list is a pool of different voters, each trained
        once on all rows and judged on rows that it has not seen; "strong" is
        :func:`~damvi.voters.strong_pool`.
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
    votes : {"auto", "train", "oob", "oof", "prefit"}, default="auto"
        The votes that the weights are learned from. For a single voter: on the training
        rows, as in the paper ("train", which is "auto"), or on the rows outside each
        voter's sample ("oob"). For a pool: out of fold ("oof", which is "auto"), or by
        models that are fitted already ("prefit"; the rows given to ``fit`` then only set
        the weights).
    voting : {"auto", "hard", "soft"}, default="auto"
        What a voter of a pool says: its decision, or 2p - 1 ("auto"; with three or more
        classes, the probability of each).
    cv : int, splitter or iterable, default=None
        The folds of a pool's votes; None is 5. ``groups`` may be given to ``fit``.
    calibration : {"auto", "platt", "isotonic"} or None, default="auto"
        Put the soft votes of a pool right before they are weighted, on rows that the
        voters have not seen; "auto" chooses by the number of positives.
    reweight : "auto", bool or float, default="auto"
        Lean on the positives that the plain vote misses, as in the paper, or not; a
        number from 0 to 1 is the strength. "auto" does so for a single voter, and not
        for a pool.
    balance : "auto" or float, default="auto"
        How much more a positive counts than a negative when votes are calibrated and
        weighted: 0 is not at all, at 1 both classes count the same, and in between the
        log-odds of the classes are scaled down. Thresholds and probabilities are those
        of the natural class rate in any case. "auto" is 0 for a single voter, as in the
        paper, and 0.25 for a pool.
    shrinkage : "auto" or float, default="auto"
        How far the weights are drawn towards equal ones, from 0 to 1 (excluded). "auto"
        is 0 for a single voter, as in the paper, and 0.001 for a pool.
    solver : {"exact", "slsqp", "uniform"}, default="exact"
        How to weight the voters: the exact minimum of the C-bound, the paper's local
        solver, or the plain vote for comparison.
    threshold : default="auto"
        Where to cut the vote: "vote" (at 0, the paper's way), "f1", {"fbeta": 2},
        {"recall": 0.9}, {"precision": 0.5}, {"cost": (false_alarm, miss)}, or a number.
        "auto" is "vote" for a single voter and "f1" for a pool. It is tuned on votes on
        unseen rows; see :mod:`damvi.decision`. "joint" fits it along with the weights,
        by the C-bound. With three or more classes, by which factor the votes for each
        count: "vote" (1 each), "macro_f1" ("auto" for a pool), or a list of numbers.
    unlabeled : {"auto", "disagreement", "kmeans", "self"}, tuple or None, default="auto"
        What to do with ``X_unlabeled``, if ``fit`` is given one: learn from it how the
        voters disagree, or train them on pseudo-labels by K-means or by a vote of DAMVI's
        own, or both, as in ("disagreement", "self"). Votes are then "oob" where they would
        be "train". None leaves it alone, and so does "auto", with a warning: no use has
        been seen to help reliably.
    eta : "auto" or float, default="auto"
        How much the disagreement on unlabelled rows counts, from 0 to 1 (excluded);
        "auto" is what is best on labelled rows out of sample.
    positive_rate : float, default=None
        The share of positives in ``X_unlabeled``, if it is not that of the labelled rows.
    pos_label : label, default=None
        The positive class. None: the rarer one (of two equal ones, the last in order).
        Only for two classes.
    n_jobs : int, default=None
        Voters trained or asked at a time. No result depends on it.
    random_state : int, RandomState instance or None, default=None
        The seed of the draws and of the voters. An int makes the fit repeatable.
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
    oob_decision_function_ : ndarray of shape (n,) or (n, n_classes)
        The decision function on each training row by voters that have not seen it (out
        of bag, or out of fold), with weights learned on other rows. NaN where a row was
        never out of bag.
    eta_ : float
        The weight of unlabelled rows in the moments of the negatives.
    choice_ : Choice
        Only after :meth:`choose`: what each setting was worth.
    pruning_ : Pruning
        Only after :meth:`prune`: the price of fewer voters.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when X has column names.

    Notes
    -----
    A tied vote goes to the majority class, whatever the labels are called; of three or
    more classes, to the most frequent of those that tie.

    For a pool, ``predict_proba`` is calibrated on votes on unseen rows, and increases
    with the vote. For a single voter it is the vote on a scale from 0 to 1: it ranks
    rows, but is no chance. ``predict`` follows the threshold, not the larger probability.

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
        "estimator": [HasMethods(["fit", "predict"]), list, StrOptions({"strong"}), None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "bootstrap": ["boolean", StrOptions({"poisson"})],
        "stratified": ["boolean"],
        "votes": [StrOptions({"auto", "train", "oob", "oof", "prefit"})],
        "voting": [StrOptions({"auto", "hard", "soft"})],
        "cv": "no_validation",  # type: ignore[dict-item]
        "calibration": [StrOptions({"auto", "platt", "isotonic"}), None],
        "reweight": [
            "boolean",
            Interval(Real, 0, 1, closed="both"),
            StrOptions({"auto"}),
        ],
        "balance": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "shrinkage": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto"})],
        "threshold": "no_validation",  # type: ignore[dict-item]
        "solver": [StrOptions(set(SOLVERS))],
        "unlabeled": [
            StrOptions({"auto", "disagreement", "kmeans", "self"}),
            tuple,
            list,
            None,
        ],
        "eta": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto"})],
        "positive_rate": [Interval(Real, 0, 1, closed="neither"), None],
        "pos_label": "no_validation",  # type: ignore[dict-item]
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 100,
        max_samples: float | int = 0.2,
        bootstrap: bool | str = True,
        stratified: bool = False,
        votes: str = "auto",
        voting: str = "auto",
        cv: Any = None,
        calibration: str | None = "auto",
        reweight: bool | float | str = "auto",
        balance: float | str = "auto",
        shrinkage: float | str = "auto",
        threshold: Any = "auto",
        solver: str = "exact",
        unlabeled: Any = "auto",
        eta: float | str = "auto",
        positive_rate: float | None = None,
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
        self.voting = voting
        self.cv = cv
        self.calibration = calibration
        self.reweight = reweight
        self.balance = balance
        self.shrinkage = shrinkage
        self.threshold = threshold
        self.solver = solver
        self.unlabeled = unlabeled
        self.eta = eta
        self.positive_rate = positive_rate
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
    ) -> DAMVIClassifier:
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
            More rows with the same columns, whose labels nobody knows; see ``unlabeled``.
            Wrapped in :class:`~damvi.Unlabeled`, no grid search cuts it.
        **fit_params
            Passed to the voters' ``fit`` as they request it, with metadata routing on;
            values with one entry a row are drawn along with the rows.

        Returns
        -------
        self
        """
        if self._is_elsewhere(X):
            return self._fit_on_disk(X, y, sample_weight, X_unlabeled, fit_params)
        refuse_missing_labels(y)
        X, signs, base = self._read_training_set(X, y, sample_weight)

        # 1. Voters, and their votes.
        self._ballots = self._elect_with(X, signs, base, X_unlabeled, fit_params)
        return self._weigh_and_decide(self._settle_eta())

    @property
    def tuning_(self) -> Tuning | None:
        """How the threshold was tuned, with an honest figure of what it gives."""
        check_is_fitted(self, "weights_")
        return self._decision.tuning

    @property
    def _calibrator(self) -> Calibrator | None:
        return self._decision.calibrator

    @property
    def oob_decision_function_(self) -> NDArray[np.float64]:
        """The decision function on the training rows, by those that do not know them."""
        check_is_fitted(self, "weights_")
        return self._contest.scores(self._decision.unseen_vote, self.threshold_)

    def cast_votes(self, X: Any) -> NDArray[Any]:
        """The votes of all K voters, (n, K): +1 for ``pos_label_``, -1 for the other.

        With three or more classes, their places in ``classes_``, or (n, K, n_classes)
        for soft votes.
        """
        check_is_fitted(self, "weights_")
        X = read_table(self, X, keep_frame=self._keeps_frames)
        return self._voters.votes(X, self.n_jobs)

    def vote(self, X: Any) -> NDArray[np.float64]:
        """The weighted vote for ``pos_label_``, in [-1, 1]; step 4 cuts it.

        With three or more classes, the share of the vote for each: (n, n_classes).
        """
        check_is_fitted(self, "weights_")
        X = read_table(self, X, keep_frame=self._keeps_frames)
        vote = self._voters.weighted_vote(X, self.weights_, self.n_jobs)
        return np.clip(vote, *self._contest.limits)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The weighted vote less the threshold; above 0 means ``classes_[1]``.

        A tie is 0, or the smallest positive step when ``classes_[1]`` is the majority
        class, so that the sign always is the decision. With three or more classes, the
        vote for each times its factor, (n, n_classes), and the largest is the decision.
        """
        vote = self.vote(X)
        return self._contest.scores(vote, self.threshold_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class that wins the vote; the majority class wins a tie."""
        scores = self.decision_function(X)
        return self.classes_[self._contest.winners(scores)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The chance of each class, for a pool; else the vote on a scale from 0 to 1."""
        vote = self.vote(X)
        return self._contest.chances(vote, self._decision.calibrator)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_ballots"}
