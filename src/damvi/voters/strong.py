"""A strong, diverse pool from what is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

BOOSTERS = {"lightgbm": "lightgbm", "xgboost": "xgboost", "catboost": "catboost"}
"""Voters that join if their package is there."""
FEW = 5
"""Rows that a leaf of boosted trees needs; the usual 20 are many of a rare class."""


def strong_pool(
    random_state: int | None = None, *, sparse: bool = False
) -> list[tuple[str, Any]]:
    """Models that are good alone and err in different ways, as (name, classifier).

    Forests of fast trees (plain, with splits on random features, and balanced), extra
    trees, boosted trees (scikit-learn's; LightGBM, XGBoost and CatBoost if they are
    installed), and linear models (plain, with balanced classes, and on ranks). All take
    missing values, and dataframes with categories.

    Parameters
    ----------
    random_state : int, optional
        A seed for each model.
    sparse : bool, default=False
        For sparse tables: leave out what needs dense ones (``"hist_boosting"`` and
        ``"rank_linear"``), and scale without centring.

    Returns
    -------
    list of (str, classifier)
        Each on one thread, so that several can be trained side by side.

    Notes
    -----
    The time of all of them grows with rows times columns (and a logarithm). Models that
    compare rows with rows, such as nearest neighbours and support vector machines, are
    left out for that; add your own to the list.

    Examples
    --------
    >>> from damvi.voters import strong_pool
    >>> pool = strong_pool(random_state=0)
    >>> dict(pool)["balanced_forest"]
    FastForestClassifier(balanced=True, n_estimators=200, n_jobs=1, random_state=0)
    >>> from sklearn.naive_bayes import GaussianNB
    >>> pool = [*pool, ("bayes", GaussianNB())]
    """
    # The slow ones come first, so that none is left alone at the end.
    makers: dict[str, Callable[[int | None], Any]] = {
        "catboost": _catboost,
        "hist_boosting": _hist_boosting,
        "extra_trees": _extra_trees,
        "xgboost": _xgboost,
        "lightgbm": _lightgbm,
        "forest": _forest(),
        "random_forest": _forest(max_features=1),
        "balanced_forest": _forest(balanced=True),
        "rank_linear": _linear(ranks=True),
        "linear": _linear(centre=not sparse),
        "balanced_linear": _linear(centre=not sparse, class_weight="balanced"),
    }
    left_out = {name for name, needs in BOOSTERS.items() if find_spec(needs) is None}
    if sparse:
        left_out |= {"hist_boosting", "rank_linear"}
    return [
        (name, make(random_state)) for name, make in makers.items() if name not in left_out
    ]


def _forest(**options: Any) -> Callable[[int | None], Any]:
    def make(seed: int | None) -> Any:
        from .trees.estimators import FastForestClassifier

        return FastForestClassifier(200, n_jobs=1, random_state=seed, **options)

    return make


def _on_numbers(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline

    from .encoding import NumberEncoder

    return make_pipeline(NumberEncoder(), model)


def _extra_trees(seed: int | None) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    model = ExtraTreesClassifier(100, min_samples_leaf=2, n_jobs=1, random_state=seed)
    return _on_numbers(model)


def _hist_boosting(seed: int | None) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Without early stopping, whose held-out rows would cost too many rare positives.
    return _on_numbers(
        HistGradientBoostingClassifier(
            learning_rate=0.05,
            max_iter=200,
            max_leaf_nodes=15,
            min_samples_leaf=FEW,
            l2_regularization=1.0,
            early_stopping=False,
            random_state=seed,
        )
    )


def _lightgbm(seed: int | None) -> Any:
    from lightgbm import LGBMClassifier

    return _on_numbers(
        LGBMClassifier(
            n_estimators=200,
            learning_rate=0.05,
            num_leaves=31,
            min_child_samples=FEW,
            subsample=0.8,
            subsample_freq=1,
            colsample_bytree=0.8,
            n_jobs=1,
            random_state=seed,
            verbose=-1,
        )
    )


def _xgboost(seed: int | None) -> Any:
    from xgboost import XGBClassifier

    return _on_numbers(
        XGBClassifier(
            n_estimators=200,
            learning_rate=0.05,
            max_depth=6,
            min_child_weight=0.1,
            subsample=0.8,
            colsample_bytree=0.8,
            n_jobs=1,
            random_state=seed,
        )
    )


def _catboost(seed: int | None) -> Any:
    from catboost import CatBoostClassifier

    return _on_numbers(
        CatBoostClassifier(
            iterations=300,
            learning_rate=0.05,
            depth=6,
            thread_count=1,
            random_state=0 if seed is None else seed,  # None would hide it from set_params
            verbose=False,
            allow_writing_files=False,
        )
    )


def _linear(
    *, centre: bool = True, ranks: bool = False, **options: Any
) -> Callable[[int | None], Any]:
    def make(seed: int | None) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        from .encoding import scaled_table

        table = scaled_table(centre=centre, ranks=ranks)
        model = LogisticRegression(max_iter=1000, random_state=seed, **options)
        return make_pipeline(table, model)

    return make
