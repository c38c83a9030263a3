"""The built-in trees: one tree and a random forest as classifiers, and trees as voters.

Voters share bins and threads, and so do the trees of a forest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._compat import Interval, StrOptions, fit_context, make_sklearn_tree
from ..._kernels import in_threads
from ...labels import read_classes, vote_shape
from ...validation import check_table, needs_reading, read_weights
from ..estimators import Progress
from ..sampling import BootstrapSampling, Sampling
from .binning import Features, row_slices, signs_that_count
from .cuts import CLASS_SHIFT
from .forest import (
    N_CODES,
    ClassVotes,
    Forest,
    Votes,
    add_shares,
    trees_of,
    vote_of_row,
)
from .grow import NEAR_CELLS, grow

MAX_CLASSES = 256
"""A hard vote is stored in one byte."""
ROWS_AT_A_TIME = 2**14
VOTES_WORTH_A_THREAD = 2**18
"""Number of votes below which a thread is not worth its overhead."""


class FastTreeClassifier(ClassifierMixin, BaseEstimator):
    """A decision tree on binned features, which is fast to grow in large numbers.

    It is the default voter of :class:`~damvi.DAMVIClassifier`, which bins the features once
    for all trees. Splits minimise the Gini impurity, as in CART; if features have at most
    255 distinct values, they are exactly those of CART.

    Parameters
    ----------
    splitter : {"best", "random"}, default="best"
        How a feature is split at a node: at the best threshold, or at one drawn at random
        between the smallest and largest value there, as in extra-trees [1]_; the node is
        split on the best feature. Random thresholds are drawn among the bins, which are
        narrow where there are many rows of the rare class. Of categories, a random subset
        is drawn. Missing values go to the better side, or to a side of their own.
    max_depth : int, default=None
        Maximum depth. None grows until all leaves are pure.
    min_samples_leaf : int, default=1
        Minimum number of distinct rows in a leaf, whatever their weights.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Number of features drawn at random for each split: a number, a share, or all (None).
    categorical_features : array of bool, int or str, default=None
        Columns that are categorical, by mask, position or name. Columns of a categorical
        dtype (pandas, polars) need not be listed. A split sends any subset of the
        categories to one side. With two classes it is the best subset; with more it is a
        good one, found along the first principal component of the categories' class rates.
    random_state : int, RandomState instance or None, default=None
        Breaks ties between equally good splits, and draws features (``max_features``) and
        random thresholds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the columns; only if X has column names.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each feature in the decrease of the Gini impurity.

    Notes
    -----
    Missing values (NaN) are supported: each split learns the better side for them. If it
    has seen none, they go to the larger child, as do unknown categories.

    References
    ----------
    .. [1] P. Geurts, D. Ernst and L. Wehenkel (2006), Extremely randomized trees. Machine
       Learning 63.

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
        "splitter": [StrOptions({"best", "random"})],
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

    trees_: TreeVoters
    classes_: NDArray[Any]

    def __init__(
        self,
        *,
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        max_features: int | float | str | None = None,
        categorical_features: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.categorical_features = categorical_features
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)
            Training data.
        y : array of shape (n,)
            Labels of 2 to 256 classes.
        sample_weight : array of shape (n,), optional
            Sample weights.

        Returns
        -------
        self
        """
        X, y = check_table(self, X, y, keep_frame=self.wants_frame(X))
        self.classes_, labels, _ = read_classes(y)
        weights, n = read_weights(sample_weight, labels), len(self.classes_)
        counts = np.ones(len(labels), np.int64)
        if weights is not None:
            counts = fixed_point(weights, n)
        used = counts > 0
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        signs = signs_that_count(labels, n, weights)
        features = Features.learn(self.categorical_mask(X), X, signs, seed)
        codes = features.encode(X)[used]
        tree = grow_tree(self, features, n, codes, counts[used], labels[used], seed)
        self.trees_ = TreeVoters(self, features, tree)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most frequent class in each row's leaf; the first wins a tie."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Share of each class in the row's leaf."""
        check_is_fitted(self)
        X = check_table(self, X, keep_frame=self.trees_.takes_frames)
        return self.trees_.class_shares(X)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the decrease of the Gini impurity."""
        check_is_fitted(self)
        return self.trees_.forest.importances[0]

    def get_n_leaves(self) -> int:
        """Number of leaves."""
        check_is_fitted(self)
        return int(self.trees_.forest.is_leaf.sum())

    def get_depth(self) -> int:
        """Depth of the deepest leaf; 0 for a single leaf."""
        check_is_fitted(self)
        forest = self.trees_.forest
        depth = np.zeros(len(forest.nodes), dtype=np.int64)
        for k in np.flatnonzero(~forest.is_leaf):  # parents come before children
            depth[forest.left[k] : forest.left[k] + 2] = depth[k] + 1
        return int(depth.max())

    def to_sklearn(self) -> DecisionTreeClassifier:
        """Convert to a scikit-learn tree, for plots, SHAP or ONNX.

        Its thresholds are values, not bins. scikit-learn rounds X to single precision
        before comparing, so predictions can differ for values that differ only in double
        precision. Splits on categories cannot be converted.
        """
        check_is_fitted(self)
        return _as_sklearn_tree(self)

    def view(self, voters: TreeVoters) -> FastTreeClassifier:
        """A fitted tree with these parameters, on the labels 0, 1, ..."""
        tree: FastTreeClassifier = clone(self)
        tree.classes_ = np.arange(voters.n_classes)
        tree.n_features_in_ = len(voters.features)
        tree.trees_ = voters
        return tree

    def wants_frame(self, X: Any) -> bool:
        """Whether a dataframe is needed, for its categories or column names."""
        named = self.categorical_features is not None and any(
            isinstance(column, str)
            for column in np.asarray(self.categorical_features).tolist()
        )
        return hasattr(X, "columns") and (named or needs_reading(X))

    def categorical_mask(self, X: Any) -> NDArray[np.bool_]:
        """Mask of the columns in ``categorical_features``."""
        n_features = X.shape[1]
        mask = np.zeros(n_features, dtype=bool)
        if self.categorical_features is None:
            return mask
        chosen = np.asarray(self.categorical_features)
        if chosen.dtype.kind == "b":
            if chosen.shape != (n_features,):
                raise ValueError(
                    f"categorical_features is a mask of shape {chosen.shape}, but X has "
                    f"{n_features} columns"
                )
            return chosen.copy()
        if chosen.dtype.kind in "UO":
            names = list(getattr(X, "columns", []))
            unknown = [name for name in chosen.tolist() if name not in names]
            if unknown:
                raise ValueError(
                    f"categorical_features has {unknown}, which are not columns of X"
                    + ("" if names else " (it has no column names)")
                )
            chosen = np.array([names.index(name) for name in chosen.tolist()], dtype=int)
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < n_features):
            raise ValueError(
                f"categorical_features={chosen.tolist()} must be column numbers of X, from "
                f"0 to {n_features - 1}"
            )
        mask[chosen.astype(np.intp)] = True
        return mask

    def features_to_try(self, n_features: int) -> int:
        """``max_features`` as a number of features, at least 1."""
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


class FastForestClassifier(ClassifierMixin, BaseEstimator):
    """A random forest: many trees, each on a bootstrap sample of the rows.

    It can be a voter of a pool, or a fast random forest on its own; with
    ``splitter="random"`` and ``bootstrap=False``, it is extra-trees. Features are binned
    once for all trees. See :class:`~damvi.FastTreeClassifier` for missing values and
    categories.

    Parameters
    ----------
    n_estimators : int, default=100
        The number of trees.
    max_samples : float or int, default=1.0
        Number of rows drawn for each tree: a fraction if float, a count if int.
    bootstrap : bool, default=True
        Whether to draw with replacement. With False and ``max_samples=1.0``, each tree
        sees all rows.
    balanced : bool, default=False
        Whether to draw the same number of rows of each class: as many in total as twice the
        size of the rarer class (with C classes, C times that of the rarest). This is a
        balanced random forest [1]_, which is fast to train. Its probabilities are those of
        balanced classes, so calibrate them. Needs ``bootstrap=True``.
    splitter : {"best", "random"}, default="best"
        See :class:`~damvi.FastTreeClassifier`.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        See :class:`~damvi.FastTreeClassifier`, as for the next three.
    max_depth : int, default=None
    min_samples_leaf : int, default=1
    categorical_features : array of bool, int or str, default=None
    n_jobs : int, default=None
        Number of threads. It does not affect the result.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples and of the trees.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the columns; only if X has column names.
    feature_importances_ : ndarray of shape (n_features,)
        Mean share of each feature in the decrease of the Gini impurity.

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
    >>> extra_trees = FastForestClassifier(
    ...     100, bootstrap=False, splitter="random", min_samples_leaf=2, random_state=0
    ... )
    >>> extra_trees.fit(X, y).score(X, y) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FastTreeClassifier._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "bootstrap": ["boolean"],
        "balanced": ["boolean"],
        "n_jobs": [Integral, None],
    }

    trees_: TreeVoters
    classes_: NDArray[Any]

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_samples: float | int = 1.0,
        bootstrap: bool = True,
        balanced: bool = False,
        splitter: str = "best",
        max_features: int | float | str | None = "sqrt",
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        categorical_features: ArrayLike | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.balanced = balanced
        self.splitter = splitter
        self.max_features = max_features
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)
            Training data.
        y : array of shape (n,)
            Labels of 2 to 256 classes.
        sample_weight : array of shape (n,), optional
            Rows are drawn in proportion to it; without a bootstrap, it weights the rows.

        Returns
        -------
        self
        """
        tree = FastTreeClassifier(
            splitter=self.splitter,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features,
            categorical_features=self.categorical_features,
        )
        X, y = check_table(self, X, y, keep_frame=tree.wants_frame(X))
        self.classes_, labels, _ = read_classes(y)
        weights = read_weights(sample_weight, labels)
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        self.trees_, _ = TreeVoters.grow(
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
    ) -> BootstrapSampling:
        size = self.max_samples
        if self.balanced and not self.bootstrap:
            raise ValueError(
                "balanced=True needs bootstrap=True, since it draws with replacement"
            )
        if self.balanced:
            own = np.ones(len(labels)) if weights is None else weights
            classes = [own[labels == c] for c in range(len(self.classes_))]
            sums = np.array([part.sum() for part in classes])
            rows = [np.count_nonzero(part) for part in classes if part.any()]
            weights = own / np.where(sums > 0, sums, 1)[labels]
            if not isinstance(size, Integral):
                size = max(1, round(float(size) * len(rows) * min(rows)))
        return BootstrapSampling.plan(
            labels,
            max_samples=size,
            seed=seed,
            replace=self.bootstrap,
            sample_weight=weights,
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class with the largest mean share; the first wins a tie."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Share of each class in the row's leaves, averaged over the trees."""
        check_is_fitted(self)
        X = check_table(self, X, keep_frame=self.trees_.takes_frames)
        return self.trees_.class_shares(X, self.n_jobs)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Mean share of each feature in the decrease of the Gini impurity."""
        check_is_fitted(self)
        return np.asarray(self.trees_.forest.importances.mean(axis=0))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


@dataclass(frozen=True, eq=False)
class TreeVoters:
    """Trees on shared bins: the same as individual trees, but much faster."""

    tree: FastTreeClassifier
    features: Features
    forest: Forest

    @classmethod
    def train(
        cls,
        estimator: FastTreeClassifier,
        X: Any,
        y: NDArray[np.integer[Any]],
        draws: Sampling,
        n_voters: int,
        *,
        fit_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        **options: Any,
    ) -> tuple[TreeVoters, Any]:
        """See :meth:`damvi.voters.Voters.train`; ``fit_params`` are not used.

        The other options are those of :meth:`grow`.
        """
        voters, codes = cls.grow(estimator, X, y, draws, n_voters, n_jobs=n_jobs, **options)
        return voters, _votes(voters.forest, codes, n_jobs)

    @classmethod
    def grow(
        cls,
        estimator: FastTreeClassifier,
        X: Any,
        y: NDArray[np.integer[Any]],
        draws: Sampling,
        n_voters: int,
        *,
        n_classes: int = 2,
        known: TreeVoters | None = None,
        sample_weight: NDArray[np.float64] | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[TreeVoters, NDArray[np.uint8]]:
        """Grow the trees, without casting votes; also return the codes of ``X``."""
        estimator = clone(estimator)  # the caller may modify the original
        estimator._validate_params()
        labels = y.astype(np.uint8)
        if known is None:
            signs = signs_that_count(labels, n_classes, sample_weight)
            mask = estimator.categorical_mask(X)
            features = Features.learn(mask, X, signs, draws.seed, n_jobs)
        else:
            features = known.features
        codes = features.encode(X, n_jobs)
        own_weight = None
        if not draws.replace and sample_weight is not None:
            own_weight = fixed_point(sample_weight, n_classes)
        voters = cls.grow_on(
            estimator,
            features,
            codes,
            labels,
            draws,
            n_voters,
            n_classes=n_classes,
            known=known,
            own_weight=own_weight,
            n_jobs=n_jobs,
            progress=progress,
        )
        return voters, codes

    @classmethod
    def grow_on(
        cls,
        estimator: FastTreeClassifier,
        features: Features,
        codes: NDArray[np.uint8],
        labels: NDArray[np.uint8],
        draws: Sampling,
        n_voters: int,
        *,
        n_classes: int,
        known: TreeVoters | None = None,
        own_weight: NDArray[np.int64] | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> TreeVoters:
        """Grow the trees on codes."""
        trees = [] if known is None else [known.forest.tree(k) for k in range(len(known))]
        grow_one = partial(grow_tree, estimator, features, n_classes)
        order: Literal["C", "F"] = "F" if estimator.splitter == "random" else "C"
        work = (
            partial(_grow_some, grow_one, codes, labels, draws, share, own_weight, order)
            for share in _shares(len(trees), n_voters, effective_n_jobs(n_jobs))
        )
        grown: Iterable[Forest] = (
            tree for some in in_threads(work, n_jobs) for tree in some
        )
        trees += progress(grown, n_voters - len(trees)) if progress else grown
        return cls(estimator, features, Forest.join(trees))

    @property
    def takes_frames(self) -> bool:
        """Whether a dataframe is needed, for its categories or its column names."""
        return self.features.categories is not None

    def __len__(self) -> int:
        return len(self.forest)

    def take(self, some: NDArray[np.intp]) -> TreeVoters:
        """Return these trees alone."""
        trees = [self.forest.tree(k) for k in some.tolist()]
        return replace(self, forest=Forest.join(trees))

    @property
    def estimators(self) -> list[FastTreeClassifier]:
        """Each tree as a classifier: lightweight views, made on demand."""
        return [
            self.tree.view(replace(self, forest=self.forest.tree(k)))
            for k in range(len(self))
        ]

    @property
    def n_classes(self) -> int:
        return self.forest.n_classes

    @property
    def n_without_class(self) -> NDArray[np.intp]:
        """For each class, the number of trees trained without it."""
        return np.asarray((self.forest.weights[self.forest.roots[:-1]] == 0).sum(axis=0))

    def votes(self, X: Any, n_jobs: int | None = None) -> Any:
        """Votes of all trees on ``X``, (n, K): +1 and -1.

        With more than two classes, class numbers in one byte each.
        """
        return _votes(self.forest, self.features.encode(X, n_jobs), n_jobs)

    def weighted_vote(
        self, X: Any, weights: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Weighted sum of the trees' votes on ``X``; trees of weight 0 are skipped.

        With more than two classes, the weight for each class, (n, C).
        """
        asked, trees = np.flatnonzero(weights), trees_of(self.n_classes)

        def vote(codes: NDArray[np.uint8], total: NDArray[np.float64]) -> None:
            votes = self.forest.no_votes(len(codes))
            self.forest.cast(codes, asked, votes)
            trees.add(votes, asked, weights, total)

        return self._by_blocks(X, vote, len(asked), n_jobs)

    def class_shares(self, X: Any, n_jobs: int | None = 1) -> NDArray[np.float64]:
        """The share of each class in the row's leaves, (n, C): the mean over the trees."""
        mean = self._by_blocks(X, self._mean_shares, len(self), n_jobs)
        return trees_of(self.n_classes).of_all(mean)

    def _mean_shares(self, codes: NDArray[np.uint8], total: NDArray[np.float64]) -> None:
        forest = self.forest
        add_shares(
            codes,
            forest.roots,
            forest.nodes,
            forest.set_starts,
            forest.sets,
            forest.weights,
            total.reshape(len(codes), -1),
        )
        total /= len(self)

    def weighted_vote_of_row(
        self, numbers: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """:meth:`weighted_vote` on one row of numbers, (1, d), by all trees."""
        forest, total = self.forest, self._nothing(1)
        vote_of_row(
            self._codes_of_row(numbers),
            forest.roots,
            forest.nodes,
            forest.set_starts,
            forest.sets,
            forest.node_classes,
            weights,
            total.reshape(1, -1),
        )
        return total

    def class_shares_of_row(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """:meth:`class_shares` of one row of numbers, (1, d)."""
        mean = self._nothing(1)
        self._mean_shares(self._codes_of_row(numbers), mean)
        return trees_of(self.n_classes).of_all(mean)

    def _nothing(self, n_rows: int) -> NDArray[np.float64]:
        return np.zeros(vote_shape(n_rows, self.n_classes))

    def _codes_of_row(self, numbers: NDArray[np.float64]) -> NDArray[np.uint8]:
        codes = np.empty(numbers.shape, dtype=np.uint8)
        self.features.binning.encode_rows(numbers, slice(0, 1), codes)
        return codes

    def _by_blocks(
        self,
        X: Any,
        work: Callable[[NDArray[np.uint8], NDArray[np.float64]], None],
        n_trees: int,
        n_jobs: int | None,
    ) -> NDArray[np.float64]:
        """Apply ``work`` to the codes of each block of rows; return what it writes.

        This is one number per row, or one per class if there are more than two.
        """
        table = self.features.table(X)
        total = self._nothing(table.shape[0])

        def work_on(rows: slice) -> None:
            codes = np.empty((rows.stop - rows.start, table.shape[1]), dtype=np.uint8)
            self.features.binning.encode_rows(table, rows, codes)
            work(codes, total[rows])

        few = len(total) * n_trees <= VOTES_WORTH_A_THREAD
        calls = (partial(work_on, rows) for rows in row_slices(table))
        for _ in in_threads(calls, 1 if few else n_jobs):
            pass
        return total


def fixed_point(weights: NDArray[np.float64], n_classes: int = 2) -> NDArray[np.int64]:
    """Weights as integers, the largest 2**30; with more than two classes, their sum 2**29.

    Only weights below 2**-31 of the largest become 0.
    """
    return trees_of(n_classes).fixed_point(weights / weights.max())


def grow_tree(
    estimator: FastTreeClassifier,
    features: Features,
    n_classes: int,
    codes: NDArray[np.uint8],
    weights: NDArray[np.int64],
    labels: NDArray[Any],
    seed: int,
) -> Forest:
    """Grow one tree on all the rows of ``codes``.

    For random splits, Fortran order ("F") is fastest.
    """
    if len(codes) == 0:
        # An empty sample: vote for class 0.
        codes = np.zeros((1, len(features)), np.uint8)
        weights, labels = np.ones(1, np.int64), np.zeros(1, np.uint8)
    by_class = np.argsort(labels, kind="stable").astype(np.uint32)
    totals = np.bincount(labels, weights, n_classes)
    # Only fixed-point sample weights can have a sum of more than 32 bits.
    size = np.int32 if totals.sum() < 2**30 else np.int64
    random = estimator.splitter == "random"
    nodes, class_weights, *rest = grow(
        np.ascontiguousarray(codes.T if random else codes),
        labels.astype(np.int64) << CLASS_SHIFT | weights,
        by_class,
        totals.astype(size),
        features.binning.histogram_starts,
        features.binning.categorical,
        estimator.max_depth or 0,
        estimator.min_samples_leaf,
        estimator.features_to_try(len(features)),
        np.uint64(seed + 1),
        NEAR_CELLS // len(features),
        random,
    )
    class_weights = class_weights.astype(trees_of(n_classes).weight_type, copy=False)
    return Forest.of_tree((nodes, class_weights, *rest))


def _votes(
    forest: Forest, codes: NDArray[np.uint8], n_jobs: int | None
) -> Votes | ClassVotes:
    """Votes of all trees, in one pass over the rows."""
    votes = forest.no_votes(len(codes))
    starts = range(0, len(codes), ROWS_AT_A_TIME)
    parts = (slice(start, start + ROWS_AT_A_TIME) for start in starts)
    everyone = np.arange(len(forest))
    cast = (partial(forest.cast, codes[part], everyone, votes[part]) for part in parts)
    for _ in in_threads(cast, n_jobs):
        pass
    return votes


def _shares(start: int, stop: int, n_jobs: int) -> Iterator[range]:
    """Small batches of voters, so that threads neither wait nor compete for memory."""
    size = max(1, (stop - start) // (4 * n_jobs))
    return (range(k, min(k + size, stop)) for k in range(start, stop, size))


def _grow_some(
    grow_one: Callable[..., Forest],
    codes: NDArray[np.uint8],
    labels: NDArray[np.uint8],
    draws: Sampling,
    voters: range,
    own_weight: NDArray[np.int64] | None,
    order: Literal["C", "F"],
) -> list[Forest]:
    """Grow some of the trees; ``order`` is the memory order of codes for all rows."""
    trees: list[Forest] = []
    whole: NDArray[np.uint8] | None = None
    # Reuse one array, since new ones would fragment the memory.
    room = np.empty((draws.most_rows, codes.shape[1]), dtype=np.uint8)
    for k in voters:
        rows, weights = draws.sample(k)
        if own_weight is not None:
            rows = rows[own_weight[rows] > 0]
            weights = own_weight[rows]
        seed = draws.random_state(k)
        if len(rows) > len(room):
            room = np.empty((len(rows), codes.shape[1]), dtype=np.uint8)
        own = room[: len(rows)]
        if len(rows) < len(codes):
            np.take(codes, rows, axis=0, out=own, mode="clip")  # other modes use a copy
        elif whole is None:
            own = whole = np.asarray(codes, order=order)
        else:
            own = whole
        try:
            tree = grow_one(own, weights, labels[rows], seed)
        except SystemError as error:
            # This is how a Ctrl-C appears if it arrives while a kernel runs.
            if isinstance(error.__cause__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise
        trees.append(tree)
    return trees


def _as_sklearn_tree(tree: FastTreeClassifier) -> DecisionTreeClassifier:
    """Make a fitted :class:`~sklearn.tree.DecisionTreeClassifier` of the same tree."""
    forest, binning = tree.trees_.forest, tree.trees_.features.binning
    if forest.on_categories.any():
        raise ValueError(
            "the tree splits on categories, which scikit-learn's trees do not support; "
            "encode them as numbers before fit"
        )
    is_leaf = forest.is_leaf
    # The last code that goes left, except for missing values.
    codes = np.minimum(forest.threshold.astype(np.int64) + forest.shift, N_CODES - 1)
    places = binning.starts[forest.feature] + codes - 1
    ends = binning.starts[forest.feature + 1]
    inner = ~is_leaf & (places < ends)
    thresholds = np.full(len(codes), np.inf)  # all values go left, missing ones right
    thresholds[inner] = binning.cuts[places[inner]]
    totals = forest.weights.sum(axis=1)
    shares = forest.weights / totals[:, np.newaxis]
    converted = make_sklearn_tree(
        left=np.where(is_leaf, -1, forest.left),
        right=np.where(is_leaf, -1, forest.left + 1),
        feature=np.where(is_leaf, -2, forest.feature),
        threshold=np.where(is_leaf, -2.0, thresholds),
        missing_go_to_left=(~is_leaf & (forest.shift == 0)),
        impurity=1 - (shares**2).sum(axis=1),
        n_node_samples=forest.rows,
        weighted_n_node_samples=totals.astype(np.float64),
        value=shares,
        max_depth=tree.get_depth(),
        n_features=tree.n_features_in_,
    )
    model = DecisionTreeClassifier(
        splitter=tree.splitter,
        max_depth=tree.max_depth,
        min_samples_leaf=tree.min_samples_leaf,
        max_features=tree.max_features,
    )
    model.tree_, model.classes_ = converted, tree.classes_
    model.n_classes_, model.n_outputs_ = len(tree.classes_), 1
    model.n_features_in_, model.max_features_ = tree.n_features_in_, tree.n_features_in_
    if hasattr(tree, "feature_names_in_"):
        model.feature_names_in_ = tree.feature_names_in_
    return model
