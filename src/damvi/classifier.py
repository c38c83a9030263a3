"""DAMVIClassifier: the algorithm's steps, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, is_classifier
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from ._compat import (
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
    refuse_params,
    routing_enabled,
)
from .crossfit import N_FOLDS, crossfit_weights, deal_folds, out_of_bag_vote
from .fingerprint import row_prints
from .moments import Moments
from .progress import progress_bar
from .reading import encode_labels, read_table, read_weights
from .reweighting import emphasize_missed_positives
from .solvers import SOLVERS, solve
from .voters import Draws, FastTreeClassifier, Voters, family_of

TIE = 2.0**-52
"""A tie, where the majority is classes_[1]: the smallest step that votes can make."""


class DAMVIClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Diversity-aware weighted majority vote for imbalanced data.

    Many voters are trained on bootstrap samples; the positives that their plain vote
    misses gain weight; then the voters are weighted so as to minimise the PAC-Bayesian
    C-bound, which trades their accuracy against their diversity [1]_.

    Parameters
    ----------
    estimator : classifier, default=None
        The voter. None: :class:`~damvi.FastTreeClassifier`, the built-in tree, which takes
        missing values and categories and trains tens of times faster than scikit-learn's
        :class:`~sklearn.tree.DecisionTreeClassifier` (the paper's, one argument away).
    n_estimators : int, default=100
        The number of voters, K.
    max_samples : float or int, default=0.2
        Rows drawn for each voter: a fraction of the number of rows, or a count.
    bootstrap : bool, default=True
        Draw with replacement. ``sample_weight`` then drives the draw and the voters see
        how often each row was drawn; without replacement, rows are drawn evenly and
        the voters see their ``sample_weight``.
    stratified : bool, default=False
        Draw within each class, so that very rare positives reach every voter.
    reweight : bool, default=True
        Lean on the positives that the plain vote misses, as in the paper. False: learn
        the weights on the rows as they come (or as ``sample_weight`` says).
    solver : {"exact", "slsqp", "uniform"}, default="exact"
        How to weight the voters: the exact minimum of the C-bound, the paper's local
        solver, or the plain vote for comparison.
    pos_label : label, default=None
        The positive class. None: the rarer one (of two equal ones, the last in order).
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
    classes_ : ndarray of shape (2,)
        The labels, in order.
    pos_label_ : label
        The class taken as positive.
    estimators_ : list of K classifiers
        The voters, in the order of their draws. They are trained on the labels 0 and
        1, where 1 is ``pos_label_``.
    weights_ : ndarray of shape (K,)
        Their weights Q, on the simplex. Zeros are common, and skipped in prediction.
    c_bound_ : float
        The C-bound of the vote on the reweighted training sample, 1 when the voters
        are no better than a coin. It is what was minimised, not a promise about new
        data: the voters were trained on these rows.
    gibbs_risk_, disagreement_ : float
        The two quantities behind it: mean error of a voter, and diversity.
    oob_decision_function_ : ndarray of shape (n,)
        The decision function on each training row by the voters that have not seen it,
        with weights learned on other rows and without the voters that have. NaN where
        a row was never out of bag.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when X has column names.

    Notes
    -----
    A tied vote goes to the majority class, whatever the labels are called.

    ``predict_proba`` is the vote on a scale from 0 to 1. It ranks rows; it is not
    calibrated, so do not read it as a chance.

    References
    ----------
    .. [1] A. Goyal and J. Khiari (2020), Diversity-Aware Weighted Majority Vote
       Classifier for Imbalanced Data, IJCNN.

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
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "bootstrap": ["boolean"],
        "stratified": ["boolean"],
        "reweight": ["boolean"],
        "solver": [StrOptions(set(SOLVERS))],
        "pos_label": "no_validation",  # type: ignore[dict-item]
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
    }

    _seed: int
    _fingerprint: str
    _keeps_frames: bool
    _majority: int
    _voters: Voters

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 100,
        max_samples: float | int = 0.2,
        bootstrap: bool = True,
        stratified: bool = False,
        reweight: bool = True,
        solver: str = "exact",
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
        self.reweight = reweight
        self.solver = solver
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
        **fit_params: Any,
    ) -> DAMVIClassifier:
        """Train the voters and weight them.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)
        y : array of shape (n,)
            Labels of two classes.
        sample_weight : array of shape (n,), optional
            Only ratios matter: weights a factor 2**31 below the largest count as 0.
        **fit_params
            Passed to the voters' ``fit`` as they request it, with metadata routing on;
            values with one entry a row are drawn along with the rows.

        Returns
        -------
        self
        """
        X, signs, base = self._read_training_set(X, y, sample_weight)
        draws = self._plan_draws(signs, base)

        # 1. Voters, each from its own draw of the rows.
        votes = self._train_voters(X, signs, draws, base, fit_params)

        # 2. Lean on the positives that the plain vote gets wrong.
        D = emphasize_missed_positives(votes, signs, base) if self.reweight else base

        # 3. Weights that trade accuracy for diversity as the C-bound says.
        folds = deal_folds(signs, draws.seed)
        by_fold = Moments.by_fold(votes, signs, D, folds, N_FOLDS)
        moments = sum(by_fold[1:], start=by_fold[0])
        self.weights_ = solve(moments, self.solver).weights

        # What the training rows say about the vote, and what unseen ones would.
        self.c_bound_ = moments.c_bound(self.weights_)
        self.gibbs_risk_ = moments.gibbs_risk(self.weights_)
        self.disagreement_ = moments.disagreement(self.weights_)
        fold_weights = crossfit_weights(by_fold, self.solver)
        unseen = out_of_bag_vote(votes, draws, folds, fold_weights, self.n_jobs)
        self.oob_decision_function_ = self._orient(unseen)
        return self

    def votes(self, X: Any) -> NDArray[np.int8]:
        """The votes of all K voters, (n, K): +1 for ``pos_label_``, -1 for the other."""
        check_is_fitted(self, "weights_")
        X = read_table(self, X, keep_frame=self._keeps_frames)
        return self._voters.votes(X, self.n_jobs)

    def vote(self, X: Any) -> NDArray[np.float64]:
        """The weighted vote for ``pos_label_``, in [-1, 1]: step 4 is its sign."""
        check_is_fitted(self, "weights_")
        X = read_table(self, X, keep_frame=self._keeps_frames)
        vote = self._voters.weighted_vote(X, self.weights_, self.n_jobs)
        return np.clip(vote, -1.0, 1.0)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The weighted vote in [-1, 1]; above 0 means ``classes_[1]``.

        A tie is 0, or the smallest positive step when ``classes_[1]`` is the majority
        class, so that the sign always is the decision.
        """
        return self._orient(self.vote(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class that wins the vote; the majority class wins a tie."""
        above = self.decision_function(X) > 0
        return self.classes_[above.astype(np.intp)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The vote on a scale from 0 to 1, for each class. Not calibrated."""
        last = (1 + self.decision_function(X)) / 2
        return np.column_stack([1 - last, last])

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Mean of the voters' feature importances, weighted as they vote."""
        check_is_fitted(self, "weights_")
        # A constant voter (one class in its sample) uses no feature.
        known = [getattr(voter, "feature_importances_", None) for voter in self.estimators_]
        if all(importances is None for importances in known):
            raise AttributeError(
                f"the voters ({type(self._voter()).__name__}) have no feature_importances_"
            )
        mean = np.zeros(self.n_features_in_)
        for weight, importances in zip(self.weights_, known, strict=True):
            mean += weight * (0.0 if importances is None else importances)
        return mean

    @property
    def estimators_(self) -> list[Any]:
        """The voters, in the order of their draws."""
        check_is_fitted(self, "weights_")
        return self._voters.estimators

    def _voter(self) -> Any:
        return FastTreeClassifier() if self.estimator is None else self.estimator

    def _read_training_set(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, NDArray[np.int8], NDArray[np.float64] | None]:
        if not is_classifier(self._voter()):
            raise ValueError(
                f"estimator={self.estimator!r} is not a classifier, and only "
                f"classifiers can vote"
            )
        voter = self._voter()
        is_tree = isinstance(voter, FastTreeClassifier)
        self._keeps_frames = not is_tree or voter.wants_frame(X)
        X, y = read_table(self, X, y, keep_frame=self._keeps_frames)
        self.classes_, self.pos_label_, signs = encode_labels(y, self.pos_label)
        self._row_prints = np.sort(row_prints(X, signs))
        positive_is_last = self.pos_label_ == self.classes_[1]
        # Of two equal classes, the negative one.
        self._majority = int(positive_is_last == (2 * (signs > 0).sum() > len(signs)))
        return X, signs, read_weights(sample_weight, signs)

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
                stacklevel=4,
            )
        return votes

    def _orient(self, vote: NDArray[np.float64]) -> NDArray[np.float64]:
        """From a vote for ``pos_label_`` to one for ``classes_[1]``, ties settled."""
        towards_last = vote if self.pos_label_ == self.classes_[1] else -vote
        return np.where(vote == 0, TIE if self._majority == 1 else 0.0, towards_last)

    def get_metadata_routing(self) -> MetadataRouter:
        """How metadata reaches the voters; see scikit-learn's user guide."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self._voter(),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        voter = get_tags(self._voter())
        tags.input_tags.sparse = voter.input_tags.sparse
        tags.input_tags.allow_nan = voter.input_tags.allow_nan
        tags.classifier_tags.multi_class = False
        return tags
