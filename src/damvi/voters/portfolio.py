"""The strong pool: diverse models that work on any table."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import make_pipeline

from .category_boosting import CategoryBoostingClassifier
from .columns import (
    NumberEncoder,
    PairColumns,
    RankScaler,
    RankSplines,
    RateEncoder,
    scaled_table,
)
from .estimators import seeded_clone
from .networks import NetworksClassifier

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
    is_rare = y is not None and _share_of_rarest(y, sample_weight) < RARE
    # Ordered by what they add to the vote, relative to their training time.
    makers: dict[str, Callable[[int | None], Any]] = {
        "lightgbm": _lightgbm(is_rare, NumberEncoder()),
        "hist_boosting": _hist_boosting,
        "linear": _linear(centre=not sparse),
        "extra_trees": _forest(100, splitter="random", bootstrap=False, min_samples_leaf=2),
        "spline_linear": _linear(RankSplines(), C=0.3),
        # More columns, and so fewer, larger steps: it is to differ, at the same price.
        "lightgbm_pairs": _lightgbm(is_rare, NumberEncoder(), PairColumns(), quick=True),
        "balanced_forest": _forest(balanced=True),
        "random_forest": _forest(max_features=1),
        "balanced_linear": _linear(centre=not sparse, class_weight="balanced"),
        "lightgbm_pairs_slow": _lightgbm(is_rare, NumberEncoder(), PairColumns()),
        "catboost": _catboost,
        "networks": _networks,
        "xgboost": _xgboost,
        "forest": _forest(),
    }
    wanted = DEFAULT | EXTENDED if extended else DEFAULT
    missing = {name for name in wanted & set(BOOSTERS) if not can_load(BOOSTERS[name])}
    if "lightgbm" in missing:
        wanted = wanted | INSTEAD_OF_LIGHTGBM
    if sparse:
        wanted = (wanted | INSTEAD_OF_DENSE_ONLY) - DENSE_ONLY
    pool = [
        (name, make(random_state))
        for name, make in makers.items()
        if name in wanted - missing
    ]
    if not rates:
        return pool
    return [
        (name, model if name in KNOWS_CATEGORIES else _with_rates(model))
        for name, model in pool
    ]


def can_load(package: str) -> bool:
    """Whether a package is installed and can be imported.

    Boosters need the system's OpenMP, and raise errors of any kind where it is missing.
    """
    if find_spec(package) is None:
        return False
    try:
        import_module(package)
    except Exception:
        return False
    return True


def _with_rates(model: Any) -> Any:
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    return make_pipeline(RateEncoder(), *steps)


def _share_of_rarest(y: ArrayLike, sample_weight: ArrayLike | None) -> float:
    _, numbers = np.unique(y, return_inverse=True)
    weight = np.bincount(numbers.ravel(), sample_weight)
    return float(weight[weight > 0].min() / weight.sum())


def _forest(n_trees: int = 200, **options: Any) -> Callable[[int | None], Any]:
    def make(seed: int | None) -> Any:
        from .trees.estimators import FastForestClassifier

        return FastForestClassifier(n_trees, n_jobs=1, random_state=seed, **options)

    return make


def _on_numbers(model: Any) -> Any:
    return make_pipeline(NumberEncoder(), model)


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
    is_rare: bool, *steps: Any, quick: bool = False
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
            colsample_bytree=0.8,
            n_jobs=1,
            random_state=seed,
            verbose=-1,
            **pace,
            **start,
        )
        return seeded_clone(make_pipeline(*steps, model), seed)

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
