"""A random forest of the built-in trees, as a classifier of its own."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._compat import Interval, fit_context
from ...reading import read_classes, read_table, read_weights
from ..draws import Draws
from .classifier import MAX_CLASSES, FastTreeClassifier

if TYPE_CHECKING:
    from .voters import TreeVoters


class FastForestClassifier(ClassifierMixin, BaseEstimator):
    """A random forest: the mean of many trees, each on a bootstrap of the rows.

    One model of a pool, or a quick random forest on its own. The features are binned once
    for all trees; see :class:`~damvi.FastTreeClassifier` for what they do with missing
    values and categories.

    Parameters
    ----------
    n_estimators : int, default=100
    max_samples : float or int, default=1.0
        Rows drawn for each tree, with replacement: a fraction or a count.
    balanced : bool, default=False
        Draw all classes alike, from as many rows as twice the rarer one has (or, of C
        classes, C times the rarest): a balanced random forest [1]_, which trains fast and
        looks at the classes from nearby. Its
        probabilities are then those of balanced classes; calibrate them.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
    max_depth : int, default=None
    min_samples_leaf : int, default=1
    categorical_features : array of bool, int or str, default=None
    n_jobs : int, default=None
        Threads. No result depends on it.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
    feature_importances_ : ndarray of shape (n_features,)

    References
    ----------
    .. [1] C. Chen, A. Liaw and L. Breiman (2004), Using random forest to learn imbalanced
       data.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi.voters import FastForestClassifier
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> FastForestClassifier(20, random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FastTreeClassifier._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "balanced": ["boolean"],
        "n_jobs": [Integral, None],
    }

    _voters: TreeVoters

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_samples: float | int = 1.0,
        balanced: bool = False,
        max_features: int | float | str | None = "sqrt",
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        categorical_features: ArrayLike | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.balanced = balanced
        self.max_features = max_features
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> FastForestClassifier:
        """Grow the trees.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)
        y : array of shape (n,)
            Labels of 2 to 256 classes.
        sample_weight : array of shape (n,), optional
            How likely each row is to be drawn.

        Returns
        -------
        self
        """
        from .voters import TreeVoters

        tree = FastTreeClassifier(
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features,
            categorical_features=self.categorical_features,
        )
        X, y = read_table(self, X, y, keep_frame=tree.wants_frame(X))
        self.classes_, labels = read_classes(y, MAX_CLASSES)
        weights = read_weights(sample_weight, labels)
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        self._voters, _ = TreeVoters.grow(
            tree,
            X,
            labels,
            self._plan_draws(labels, weights, seed),
            self.n_estimators,
            n_classes=len(self.classes_),
            sample_weight=weights,
            n_jobs=self.n_jobs,
        )
        return self

    def _plan_draws(
        self, labels: NDArray[np.intp], weights: NDArray[np.float64] | None, seed: int
    ) -> Draws:
        size = self.max_samples
        if self.balanced:
            own = np.ones(len(labels)) if weights is None else weights
            classes = [own[labels == c] for c in range(len(self.classes_))]
            sums = np.array([part.sum() for part in classes])
            rows = [np.count_nonzero(part) for part in classes if part.any()]
            weights = own / np.where(sums > 0, sums, 1)[labels]
            if not isinstance(size, Integral):
                size = max(1, round(float(size) * len(rows) * min(rows)))
        return Draws.plan(labels, max_samples=size, seed=seed, sample_weight=weights)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest mean share; of those that tie, the first."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The share of each class in the row's leaves, in the mean over the trees."""
        check_is_fitted(self)
        X = read_table(self, X, keep_frame=self._voters.features.categories is not None)
        return self._voters.class_shares(X, self.n_jobs)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Mean over the trees of each feature's share of the decrease of Gini impurity."""
        check_is_fitted(self)
        return np.asarray(self._voters.forest.importances.mean(axis=0))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
