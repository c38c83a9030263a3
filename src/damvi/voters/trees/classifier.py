"""The built-in tree as a scikit-learn classifier, to set its options or use it alone."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._compat import Interval, StrOptions, fit_context
from ...reading import read_classes, read_table, read_weights
from .frames import needs_reading

if TYPE_CHECKING:
    from .voters import TreeVoters

# The kernels (and with them numba) are imported by the methods that need them.

MAX_CLASSES = 256
"""A vote is one byte."""


class FastTreeClassifier(ClassifierMixin, BaseEstimator):
    """A decision tree on binned features, made to be grown by the hundred.

    The default voter of :class:`~damvi.DAMVIClassifier`, which bins the features once
    for all its trees. Splits minimise the Gini impurity, as in CART; with at most 255
    distinct values a feature they are exactly CART's.

    Parameters
    ----------
    max_depth : int, default=None
        None grows until the leaves are pure.
    min_samples_leaf : int, default=1
        Rows (distinct ones, whatever their weights) that each leaf must hold.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Features tried at each split, drawn at random: a number, a share, or all (None).
    categorical_features : array of bool, int or str, default=None
        Columns whose values are names rather than amounts, by mask, place or name.
        Columns of a categorical dtype (pandas, polars) need no mention. A split sends
        any subset of the categories to one side. With two classes it is the best of all
        subsets; with more it is a good one, cut along the first principal component of
        the categories' class rates.
    random_state : int, RandomState instance or None, default=None
        Breaks ties between equal splits, and draws features if ``max_features`` is set.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
    feature_importances_ : ndarray of shape (n_features,)

    Notes
    -----
    Missing values (NaN) are welcome: each split learns the better side for them, and
    sends them with the larger child where it has seen none. So it does with categories
    that it has not seen.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi import DAMVIClassifier, FastTreeClassifier
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = DAMVIClassifier(FastTreeClassifier(max_depth=3), random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
            StrOptions({"sqrt", "log2"}),
            None,
        ],
        "categorical_features": ["array-like", None],
        "random_state": ["random_state"],
    }

    _voters: TreeVoters

    def __init__(
        self,
        *,
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        max_features: int | float | str | None = None,
        categorical_features: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.categorical_features = categorical_features
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> FastTreeClassifier:
        """Grow the tree.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)
        y : array of shape (n,)
            Labels of 2 to 256 classes.
        sample_weight : array of shape (n,), optional

        Returns
        -------
        self
        """
        from .features import Features
        from .growth import fixed_point, grow_tree, signs_that_count
        from .voters import TreeVoters

        X, y = read_table(self, X, y, keep_frame=self.wants_frame(X))
        self.classes_, labels = read_classes(y, MAX_CLASSES)
        weights, n = read_weights(sample_weight, labels), len(self.classes_)
        counts = np.ones(len(labels), np.int64)
        if weights is not None:
            counts = fixed_point(weights, n)
        used = counts > 0
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        features = Features.learn(self, X, signs_that_count(labels, n, weights), seed)
        codes = features.encode(X)[used]
        tree = grow_tree(self, features, n, codes, counts[used], labels[used], seed)
        self._voters = TreeVoters(self, features, tree)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row's leaf; of classes that tie, the first in ``classes_``."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The share of each class in the row's leaf."""
        check_is_fitted(self)
        X = read_table(self, X, keep_frame=self._voters.features.categories is not None)
        return self._voters.class_shares(X)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of the decrease of Gini impurity that each feature brought."""
        check_is_fitted(self)
        return self._voters.forest.importances[0]

    def get_n_leaves(self) -> int:
        """The number of leaves."""
        check_is_fitted(self)
        return int(self._voters.forest.is_leaf.sum())

    def get_depth(self) -> int:
        """The depth of the deepest leaf; 0 for a tree that is one leaf."""
        check_is_fitted(self)
        forest = self._voters.forest
        depth = np.zeros(len(forest.nodes), dtype=np.int64)
        for k in np.flatnonzero(~forest.is_leaf):  # parents come before children
            depth[forest.left[k] : forest.left[k] + 2] = depth[k] + 1
        return int(depth.max())

    def to_sklearn(self) -> DecisionTreeClassifier:
        """The same tree as scikit-learn's, for plots, SHAP or ONNX.

        Its thresholds are values, not bins. scikit-learn rounds X to single precision
        before it compares, so decisions can differ for values that only double
        precision tells apart. Splits on categories have no counterpart there.
        """
        from .conversion import as_sklearn_tree

        check_is_fitted(self)
        return as_sklearn_tree(self)

    def view(self, voters: TreeVoters) -> FastTreeClassifier:
        """A fitted tree with these options, on the labels 0, 1, ..."""
        tree: FastTreeClassifier = clone(self)
        tree.classes_ = np.arange(voters.n_classes)
        tree.n_features_in_ = len(voters.features)
        tree._voters = voters
        return tree

    def wants_frame(self, X: Any) -> bool:
        """Whether a dataframe must stay one: for its categories, or its column names."""
        named = self.categorical_features is not None and any(
            isinstance(column, str)
            for column in np.asarray(self.categorical_features).tolist()
        )
        return hasattr(X, "columns") and (named or needs_reading(X))

    def categorical_mask(self, X: Any) -> NDArray[np.bool_]:
        """Which columns ``categorical_features`` names."""
        n_features = X.shape[1]
        mask = np.zeros(n_features, dtype=bool)
        if self.categorical_features is None:
            return mask
        chosen = np.asarray(self.categorical_features)
        if chosen.dtype.kind == "b":
            if chosen.shape != (n_features,):
                raise ValueError(
                    f"categorical_features is a mask of shape {chosen.shape}, "
                    f"X has {n_features} columns"
                )
            return chosen.copy()
        if chosen.dtype.kind in "UO":
            names = list(getattr(X, "columns", []))
            unknown = [name for name in chosen.tolist() if name not in names]
            if unknown:
                raise ValueError(
                    f"categorical_features names {unknown}, which are no columns of X"
                    + ("" if names else " (it has no column names)")
                )
            chosen = np.array([names.index(name) for name in chosen.tolist()], dtype=int)
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < n_features):
            raise ValueError(
                f"categorical_features={chosen.tolist()} must lie in 0 to "
                f"{n_features - 1}, the columns of X"
            )
        mask[chosen.astype(np.intp)] = True
        return mask

    def features_to_try(self, n_features: int) -> int:
        """``max_features`` as a number, at least 1."""
        match self.max_features:
            case None:
                return n_features
            case "sqrt":
                return max(1, int(np.sqrt(n_features)))
            case "log2":
                return max(1, int(np.log2(n_features)))
            case Integral() as number:
                return min(int(number), n_features)
            case share:
                return max(1, int(float(share) * n_features))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
