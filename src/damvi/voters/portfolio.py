"""The strong pool: diverse models that work on any table.

Two of its classifiers are made here, of scikit-learn's networks and of CatBoost.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils import Tags, check_random_state, gen_batches
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .columns import (
    BINNED_ROWS,
    NumberEncoder,
    PairColumns,
    RankScaler,
    RankSplines,
    RateEncoder,
    many_categories,
    scaled_table,
)
from .trees.estimators import FastForestClassifier

BOOSTERS = {
    "lightgbm": "lightgbm",
    "lightgbm_pairs": "lightgbm",
    "lightgbm_pairs_slow": "lightgbm",
    "xgboost": "xgboost",
    "catboost": "catboost",
}
"""Voters that need a package, which may be missing, or not load."""
DEFAULT = {
    "lightgbm",
    "extra_trees",
    "spline_linear",
    "lightgbm_pairs",
    "balanced_forest",
}
"""The pool without a time limit. The extended pool takes five times as long, for about
.004 more AP (``results/portfolio/again``)."""
EXTENDED = {"lightgbm_pairs_slow", "catboost", "networks", "xgboost", "forest"}
INSTEAD_OF_LIGHTGBM = {"hist_boosting"}
DENSE_ONLY = {
    "hist_boosting",
    "lightgbm_pairs",
    "lightgbm_pairs_slow",
    "networks",
    "spline_linear",
}
KNOWS_CATEGORIES = {"catboost"}
"""Voters that handle any number of categories themselves."""
INSTEAD_OF_DENSE_ONLY = {"random_forest", "linear", "balanced_linear"}
FEW = 5
"""Minimum rows in a leaf of boosted trees; the usual 20 are too many for a rare class."""
LEARNING_RATE = 0.05
"""Learning rate of boosted trees."""
RARE = 0.01
"""Share of the rarest class below which LightGBM starts from even odds.

Starting from the class rate p, the Newton step of one tree moves a leaf of positives by up
to 1 / p in log-odds, times the learning rate: by 5 at a rate of 1%, which is past even
odds in a single tree, since the start is only log(1 / p) = 4.6 away. The mistakes made
there are never corrected, because the second derivative p (1 - p) has vanished by then.
XGBoost and scikit-learn's boosting bound their leaves by an L2 penalty of 1, and CatBoost
always starts from even odds, so they do not have this problem.
"""
LEAST_HESSIAN = 0.1
"""Minimum sum of second derivatives, p (1 - p), in a leaf. A leaf's step is its sum of
first derivatives divided by this sum; LightGBM's default of 0.001 allows any step."""


def strong_pool(
    random_state: int | None = None,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    sparse: bool = False,
    rates: bool = False,
    extended: bool = False,
) -> list[tuple[str, Any]]:
    """Make a pool of strong, diverse models, ordered by what they add to the vote.

    The pool has boosted trees (LightGBM, on the columns and on pairs of columns), a linear
    model of splines, extra-trees, and a forest with balanced classes. Where LightGBM
    cannot be loaded, scikit-learn's boosting takes its place. All models accept missing
    values and dataframes with categories. ``results/portfolio`` has the measurements
    behind the selection.

    Parameters
    ----------
    random_state : int, optional
        Seed of each model.
    y : array of shape (n,), optional
        The labels to learn. If a class is rarer than 1%, LightGBM starts from even odds
        instead of the class rates, from which it would diverge. None assumes that no class
        is that rare.
    sample_weight : array of shape (n,), optional
        Sample weights, which count in the class rates.
    sparse : bool, default=False
        For sparse tables: replace models that need dense input by linear models of the
        columns, scaled without centring.
    rates : bool, default=False
        For dataframes with columns of more than 100 categories: make each model a pipeline
        that encodes these columns by class rates, learned from its own training rows; see
        :class:`~damvi.voters.RateEncoder`. CatBoost has class rates of its own.
    extended : bool, default=False
        Add more models at the end. The vote gets slightly better, and training takes five
        times as long.

    Returns
    -------
    list of (str, classifier)
        Each runs on one thread, so that several can be trained in parallel.

    Notes
    -----
    Training time is proportional to rows times columns, up to a logarithm. Models that
    compare rows with rows, such as nearest neighbours and support vector machines, are
    not included for that reason; you can add your own to the list.

    Examples
    --------
    >>> from damvi.voters import strong_pool
    >>> pool = strong_pool(random_state=0)
    >>> dict(pool)["balanced_forest"]
    FastForestClassifier(balanced=True, n_estimators=200, n_jobs=1, random_state=0)
    >>> from sklearn.naive_bayes import GaussianNB
    >>> pool = [*pool, ("bayes", GaussianNB())]
    """
    wanted = DEFAULT | EXTENDED if extended else DEFAULT
    missing = {name for name in wanted & set(BOOSTERS) if not can_load(BOOSTERS[name])}
    if "lightgbm" in missing:
        wanted = wanted | INSTEAD_OF_LIGHTGBM
    if sparse:
        wanted = (wanted | INSTEAD_OF_DENSE_ONLY) - DENSE_ONLY
    makers = _makers(y, sample_weight, sparse=sparse)
    pool = [
        (name, make(random_state))
        for name, make in makers.items()
        if name in wanted - missing
    ]
    return [(name, _with_rates(name, model)) for name, model in pool] if rates else pool


def strong_pool_for(
    X: Any,
    y: ArrayLike,
    random_state: int | None,
    *,
    sample_weight: ArrayLike | None = None,
    extended: bool = False,
) -> list[tuple[str, Any]]:
    """The strong pool for this table, whether it is sparse or has very many categories."""
    return strong_pool(
        random_state,
        y,
        sample_weight=sample_weight,
        sparse=hasattr(X, "tocsr"),
        rates=bool(many_categories(X)),
        extended=extended,
    )


def voter_of_pool(name: str, X: Any, y: ArrayLike, random_state: int | None) -> Any:
    """One voter of the strong pool for this dense table, by its name in the pool."""
    model = _makers(y)[name](random_state)
    return _with_rates(name, model) if many_categories(X) else model


def can_load(package: str) -> bool:
    """Whether a package is installed and can be imported.

    Boosters need the system's OpenMP, and raise errors of any kind where it is missing.
    """
    try:
        import_module(package)
    except Exception:
        return False
    return True


def _makers(
    y: ArrayLike | None, sample_weight: ArrayLike | None = None, *, sparse: bool = False
) -> dict[str, Callable[[int | None], Any]]:
    """What makes each voter of a seed, ordered by what it adds to the vote for its time."""
    is_rare = y is not None and _share_of_rarest(y, sample_weight) < RARE
    return {
        "lightgbm": _lightgbm(is_rare),
        "hist_boosting": _hist_boosting,
        "linear": _linear(centre=not sparse),
        "extra_trees": _forest(100, splitter="random", bootstrap=False, min_samples_leaf=2),
        "spline_linear": _linear(RankSplines(), C=0.3),
        # More columns, and so fewer, larger steps: it is to differ, at the same price.
        "lightgbm_pairs": _lightgbm(is_rare, pairs=True, quick=True),
        "balanced_forest": _forest(balanced=True),
        "random_forest": _forest(max_features=1),
        "balanced_linear": _linear(centre=not sparse, class_weight="balanced"),
        "lightgbm_pairs_slow": _lightgbm(is_rare, pairs=True),
        "catboost": _catboost,
        "networks": _networks,
        "xgboost": _xgboost,
        "forest": _forest(),
    }


def _with_rates(name: str, model: Any) -> Any:
    """The model on class rates in place of columns with very many categories."""
    if name in KNOWS_CATEGORIES:
        return model
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    return make_pipeline(RateEncoder(), *steps)


def _share_of_rarest(y: ArrayLike, sample_weight: ArrayLike | None) -> float:
    _, numbers = np.unique(y, return_inverse=True)
    weight = np.bincount(numbers.ravel(), sample_weight)
    return float(weight[weight > 0].min() / weight.sum())


def _forest(n_trees: int = 200, **options: Any) -> Callable[[int | None], Any]:
    def make(seed: int | None) -> Any:
        return FastForestClassifier(n_trees, n_jobs=1, random_state=seed, **options)

    return make


def _on_numbers(*steps: Any) -> Any:
    return make_pipeline(NumberEncoder(), *steps)


def _hist_boosting(seed: int | None) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Without early stopping, whose held-out rows would cost too many rare positives.
    return _on_numbers(
        HistGradientBoostingClassifier(
            learning_rate=LEARNING_RATE,
            max_iter=200,
            max_leaf_nodes=15,
            min_samples_leaf=FEW,
            l2_regularization=1.0,
            early_stopping=False,
            random_state=seed,
        )
    )


def _lightgbm(
    is_rare: bool, *, pairs: bool = False, quick: bool = False
) -> Callable[[int | None], Any]:
    start: dict[str, Any] = {"boost_from_average": False} if is_rare else {}
    pace: dict[str, Any] = (
        {"n_estimators": 100, "learning_rate": 0.1, "max_bin": 63}
        if quick
        else {"n_estimators": 200, "learning_rate": LEARNING_RATE}
    )

    def make(seed: int | None) -> Any:
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(
            num_leaves=31,
            min_child_samples=FEW,
            min_child_weight=LEAST_HESSIAN,
            subsample=0.8,
            subsample_freq=1,
            subsample_for_bin=BINNED_ROWS,
            colsample_bytree=0.8,
            n_jobs=1,
            random_state=seed,
            verbose=-1,
            **pace,
            **start,
        )
        steps = [PairColumns(random_state=seed)] if pairs else []
        return _on_numbers(*steps, model)

    return make


def _xgboost(seed: int | None) -> Any:
    from xgboost import XGBClassifier

    return _on_numbers(
        XGBClassifier(
            n_estimators=200,
            learning_rate=LEARNING_RATE,
            max_depth=6,
            min_child_weight=LEAST_HESSIAN,
            subsample=0.8,
            colsample_bytree=0.8,
            n_jobs=1,
            random_state=seed,
        )
    )


def _catboost(seed: int | None) -> Any:
    return CategoryBoostingClassifier(300, LEARNING_RATE, depth=6, random_state=seed)


def _networks(seed: int | None) -> Any:
    return make_pipeline(scaled_table(RankScaler()), NetworksClassifier(random_state=seed))


def _linear(
    amounts: Any = None, *, centre: bool = True, **options: Any
) -> Callable[[int | None], Any]:
    def make(seed: int | None) -> Any:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(max_iter=1000, random_state=seed, **options)
        return make_pipeline(scaled_table(amounts, centre=centre), model)

    return make


# Small neural networks, and their mean.

N_UNITS = 64
"""Units of the one hidden layer."""
N_STEPS = 1000
"""Gradient steps of a network, about: on many rows the batches are larger instead."""
FEWEST_EPOCHS, MOST_EPOCHS = 10, 60
SMALLEST_BATCH = 200
NO_TOLERANCE = 1e6
"""More than any loss can fall in an epoch, so that training ends after a fixed number."""
LEAST_WEIGHT = 1e-9
"""Of a row, relative to the mean; a batch of rows without any weight would divide by 0."""
PREDICTED_AT_ONCE = 10_000
"""Rows whose hidden units are held in memory."""
Layer = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Weights and intercepts, of several networks or of one."""


class NetworksClassifier(ClassifierMixin, BaseEstimator):
    """The mean of small neural networks that differ by their seeds.

    A single network depends on its starting weights; the mean of several is steadier and
    ranks better. Each is trained as an :class:`~sklearn.neural_network.MLPClassifier` with
    one hidden layer, for a fixed number of epochs: early stopping would cost too many rows
    of a rare class. Scale the columns first, best to ranks.

    Parameters
    ----------
    n_estimators : int, default=5
        Number of networks.
    random_state : int or RandomState, optional

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    hidden_ : tuple of ndarray
        Weights (K, d, units) and intercepts (K, units) of the hidden layers.
    output_ : tuple of ndarray
        Weights (K, units, C) and intercepts (K, C) of the outputs, whose softmax are the
        probabilities. Of two classes, the first has output 0.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = NetworksClassifier(n_estimators=2, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (500, 2)
    """

    def __init__(self, n_estimators: int = 5, random_state: Any = None) -> None:
        self.n_estimators = n_estimators
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the networks, one after the other."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_: NDArray[Any] = np.unique(y)
        if len(self.classes_) == 1:
            raise ValueError("y has one class only; networks need rows of two or more")
        n, n_classes = X.shape[0], len(self.classes_)
        epochs = int(np.clip(N_STEPS * SMALLEST_BATCH / n, FEWEST_EPOCHS, MOST_EPOCHS))
        batch = min(n, max(SMALLEST_BATCH, n * epochs // N_STEPS))
        weights = None if sample_weight is None else _relative(sample_weight)
        random = check_random_state(self.random_state)
        hidden, output = [], []
        for _ in range(self.n_estimators):
            network = MLPClassifier(
                (N_UNITS,),
                alpha=0.01,
                learning_rate_init=0.005,
                batch_size=batch,
                # From the second epoch on, the loss counts as not having fallen.
                n_iter_no_change=epochs - 2,
                tol=NO_TOLERANCE,
                random_state=random.randint(np.iinfo(np.int32).max),
            )
            network.fit(X, y, sample_weight=weights)
            if network.n_iter_ < epochs:  # scikit-learn turns Ctrl-C into a warning
                raise KeyboardInterrupt
            hidden.append((network.coefs_[0], network.intercepts_[0]))
            output.append(_each_class(network.coefs_[1], network.intercepts_[1], n_classes))
        self.hidden_: Layer = _stacked(hidden)
        self.output_: Layer = _stacked(output)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Mean probabilities of the classes, (n, C)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False, dtype=np.float64)
        shares = np.empty((X.shape[0], len(self.classes_)))
        for rows in gen_batches(X.shape[0], PREDICTED_AT_ONCE):
            shares[rows] = self._shares(X[rows])
        return shares

    def _shares(self, X: Any) -> NDArray[np.float64]:
        (into, start), (out, end) = self.hidden_, self.output_
        total: Any = 0.0
        for k in range(len(into)):
            hidden = np.maximum(X @ into[k] + start[k], 0.0)
            total = total + softmax(hidden @ out[k] + end[k], axis=1)
        mean: NDArray[np.float64] = total / len(into)
        return mean

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest mean probability."""
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]


def _stacked(layers: list[Layer]) -> Layer:
    weights, intercepts = zip(*layers, strict=True)
    return np.stack(weights), np.stack(intercepts)


def _each_class(weights: Any, intercepts: Any, n_classes: int) -> Layer:
    """Outputs for all classes: scikit-learn's networks have one for two classes."""
    left = n_classes - len(intercepts)
    return np.pad(weights, ((0, 0), (left, 0))), np.pad(intercepts, (left, 0))


def _relative(sample_weight: Any) -> NDArray[np.float64]:
    """Weights relative to their mean, none of them 0."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if not weights.any():
        raise ValueError("all sample weights are zero")
    weights = weights / weights.max()
    return np.maximum(weights / weights.mean(), LEAST_WEIGHT)


# CatBoost, with its own handling of categories.

N_HASHES = 2**53
"""Categories are known by their hashes below this, all of which are exact as doubles."""
MISSING = -1
"""The category of missing values."""


class CategoryBoostingClassifier(ClassifierMixin, BaseEstimator):
    """CatBoost, with the categories of dataframes (pandas, polars) as its own.

    CatBoost replaces categories, and combinations of them, by smoothed class rates, which
    it learns in a random order of the rows: each row only sees the rates of those before.
    There may be any number of categories. New ones have the rates of no rows, and missing
    values are a category. Arrays, sparse tables and dataframes without categories are
    tables of numbers. One thread is used.

    Parameters
    ----------
    iterations : int, default=300
        Number of trees.
    learning_rate : float, default=0.05
    depth : int, default=6
    random_state : int, optional

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    encoder_ : NumberEncoder
        Encodes the columns as numbers, and categories as hashes.
    estimator_ : catboost.CatBoostClassifier

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"shop": ["north", "south", "east"] * 100})
    >>> y = X["shop"] == "south"
    >>> model = CategoryBoostingClassifier(20).fit(X, y)
    >>> model.predict(pd.DataFrame({"shop": ["north", "south", "new", None]}))
    array([False,  True, False, False])
    """

    def __init__(
        self,
        iterations: int = 300,
        learning_rate: float = 0.05,
        depth: int = 6,
        random_state: int | None = None,
    ) -> None:
        self.iterations = iterations
        self.learning_rate = learning_rate
        self.depth = depth
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the trees."""
        from catboost import CatBoostClassifier

        self.encoder_: NumberEncoder = NumberEncoder().fit(X)
        if self.encoder_.categories_ is not None:
            self.encoder_.categories_ = self.encoder_.categories_.hashed(N_HASHES)
        model = CatBoostClassifier(
            iterations=self.iterations,
            learning_rate=self.learning_rate,
            depth=self.depth,
            thread_count=1,
            random_state=0 if self.random_state is None else self.random_state,
            verbose=False,
            allow_writing_files=False,
        )
        model.fit(
            self._table(self.encoder_.transform(X)),
            y,
            cat_features=self.categorical or None,
            sample_weight=sample_weight,
        )
        self.estimator_: Any = model
        self.classes_: NDArray[Any] = model.classes_
        return self

    @property
    def categorical(self) -> list[int]:
        """Positions of the columns with categories."""
        known = self.encoder_.categories_
        return [] if known is None else np.flatnonzero(known.mask).tolist()

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, (n, C)."""
        check_is_fitted(self)
        return self.shares(self.encoder_.transform(X))

    def shares(self, numbers: Any) -> NDArray[np.float64]:
        """The same for rows that are encoded already."""
        shares: NDArray[np.float64] = self.estimator_.predict_proba(self._table(numbers))
        return shares

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest probability."""
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]

    def _table(self, numbers: Any) -> Any:
        """Encoded rows as CatBoost takes them: categories must be whole numbers."""
        if not self.categorical:
            return numbers
        import pandas as pd  # which CatBoost needs, too

        table = pd.DataFrame(numbers)
        for f in self.categorical:
            table[f] = np.nan_to_num(numbers[:, f], nan=MISSING).astype(np.int64)
        return table

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags
