"""Sound model files of all kinds, small, from which hostile ones are made.

They are fitted in a process of their own (``python -m tests.fuzz.bases FOLDER``): training
starts threads, and the worker that forks must have none.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True, eq=False)
class Base:
    """A model to fit, its table, and rows to ask it about."""

    model: Any
    X: Any
    y: Any
    fresh: Any


def numbers(n: int, seed: int, holes: bool = False) -> np.ndarray:
    X = np.random.default_rng(seed).standard_normal((n, 5))
    if holes:
        X[np.random.default_rng(seed + 1).random(X.shape) < 0.1] = np.nan
    return X


def labels(X: Any, n_classes: int) -> np.ndarray:
    first, second = (np.nan_to_num(np.asarray(X)[:, j].astype(float)) for j in (0, 1))
    noise = np.random.default_rng(7).standard_normal(len(first)) * 0.4
    return np.digitize(first + 0.5 * second + noise, [0.6, 1.2][: n_classes - 1])


def frame(n: int, seed: int, surprises: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(numbers(n, seed, holes=True), columns=[f"x{j}" for j in range(5)])
    colours = rng.choice(["red", "blue", "grün <b>"], n).astype(object)
    if surprises:
        colours[:3] = "never seen"
    X["colour"] = pd.Categorical(colours)
    X["grade"] = pd.Categorical(rng.integers(0, 4, n))
    return X


def _array(model: Any, n_classes: int, holes: bool = False) -> Base:
    X = numbers(220, 0, holes)
    return Base(model, X, labels(X, n_classes), numbers(16, 1, holes))


def _frame(model: Any, n_classes: int) -> Base:
    X = frame(220, 0)
    return Base(model, X, labels(X.iloc[:, :5], n_classes), frame(16, 1, surprises=True))


def _damvi(**options: Any) -> Any:
    from damvi import DAMVIClassifier

    return DAMVIClassifier(
        **{"n_estimators": 5, "max_samples": 0.5, "random_state": 0, **options}
    )


def _pool(*voters: Any, **options: Any) -> Any:
    from damvi import DAMVIVotingClassifier

    named = [(f"v{k}", voter) for k, voter in enumerate(voters)]
    return DAMVIVotingClassifier(named, **{"cv": 2, "random_state": 0, **options})


def _lightgbm(**options: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=2, num_leaves=5, n_jobs=1, verbose=-1, min_child_samples=5, **options
    )


def _xgboost(**options: Any) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=2, max_depth=3, n_jobs=1, **options)


def _catboost(**options: Any) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        iterations=2,
        depth=3,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        random_state=0,
        **options,
    )


def _hist(**options: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=2, max_leaf_nodes=6, min_samples_leaf=5, random_state=0, **options
    )


def _linear() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=300)


def _piped() -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), [f"x{j}" for j in range(5)]),
        (OneHotEncoder(handle_unknown="ignore"), ["colour", "grade"]),
    )
    return make_pipeline(columns, _linear())


def _forests() -> Any:
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    return _pool(
        RandomForestClassifier(2, max_depth=4, random_state=0),
        ExtraTreesClassifier(2, max_depth=4, random_state=0),
        DecisionTreeClassifier(max_depth=3),
        calibration="isotonic",
    )


def _bayes() -> Any:
    from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    return _pool(
        GaussianNB(),
        BernoulliNB(),
        make_pipeline(MinMaxScaler(clip=True), MultinomialNB()),
        make_pipeline(MinMaxScaler(clip=True), ComplementNB()),
    )


def _linear_others() -> Any:
    from sklearn.discriminant_analysis import (
        LinearDiscriminantAnalysis,
        QuadraticDiscriminantAnalysis,
    )
    from sklearn.linear_model import LogisticRegressionCV, SGDClassifier

    return _pool(
        LinearDiscriminantAnalysis(),
        QuadraticDiscriminantAnalysis(),
        SGDClassifier(loss="log_loss", max_iter=20, tol=None, random_state=0),
        LogisticRegressionCV(
            Cs=2,
            cv=2,
            max_iter=50,
            scoring="accuracy",
            l1_ratios=(0,),
            use_legacy_attributes=False,
        ),
    )


def _deciding() -> Any:
    from sklearn.linear_model import Perceptron, RidgeClassifier
    from sklearn.neural_network import MLPClassifier

    return _pool(
        MLPClassifier((3,), max_iter=20, random_state=0),
        Perceptron(max_iter=20, tol=None),
        RidgeClassifier(),
        voting="hard",
    )


def _of_others() -> Any:
    from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=2)
    return _pool(
        AdaBoostClassifier(tree, n_estimators=2, random_state=0),
        BaggingClassifier(tree, n_estimators=2, max_features=3, random_state=0),
    )


def _after(*steps: Any) -> Any:
    from sklearn.pipeline import make_pipeline

    return make_pipeline(*steps, _linear())


def _transformed() -> Any:
    from sklearn import preprocessing as made
    from sklearn.decomposition import PCA, TruncatedSVD
    from sklearn.pipeline import make_union

    return _pool(
        _after(made.PowerTransformer(), PCA(3)),
        _after(made.QuantileTransformer(n_quantiles=10), made.RobustScaler()),
        _after(make_union(made.MaxAbsScaler(), TruncatedSVD(2)), made.Normalizer()),
    )


def _bagged() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return _damvi(estimator=DecisionTreeClassifier(max_depth=3), n_estimators=3)


def _fast() -> Any:
    from damvi import FastTreeClassifier
    from damvi.voters import FastForestClassifier

    return _pool(
        FastForestClassifier(2, random_state=0), FastTreeClassifier(random_state=0)
    )


def _many_values(model: Any, n_classes: int) -> Base:
    """A column of more categories than are known by name."""
    X = frame(600, 0).assign(who=[f"person {row // 2}" for row in range(600)])
    y = labels(X.iloc[:, :5], n_classes)
    return Base(model, X, y, frame(16, 1).assign(who="person 7"))


def _category_boosting() -> Any:
    from damvi.voters import CategoryBoostingClassifier

    # From 200 trees on, categories are combined with each other and with numbers.
    return _pool(CategoryBoostingClassifier(200, depth=3, random_state=0))


def _rates() -> Any:
    from sklearn.pipeline import make_pipeline

    from damvi.voters import FastForestClassifier, NumberEncoder, RateEncoder

    return _pool(
        make_pipeline(RateEncoder(), FastForestClassifier(2, random_state=0)),
        make_pipeline(RateEncoder(), NumberEncoder(), _hist()),
    )


def _strong() -> Any:
    """One of each of the strong pool, made small."""
    from damvi.voters import strong_pool

    smaller = {
        "iterations": 2,
        "depth": 3,
        "extratreesclassifier__n_estimators": 1,
        "extratreesclassifier__max_depth": 4,
        "histgradientboostingclassifier__max_iter": 2,
        "lgbmclassifier__n_estimators": 2,
        "n_estimators": 1,
        "networksclassifier__n_estimators": 1,
        "xgbclassifier__n_estimators": 2,
        "xgbclassifier__max_depth": 3,
    }
    pool = []
    for name, voter in strong_pool(0, extended=True):
        known = voter.get_params()
        small = {key: value for key, value in smaller.items() if key in known}
        pool.append((name, voter.set_params(**small)))
    from damvi import DAMVIVotingClassifier

    return DAMVIVotingClassifier(pool, cv=2, random_state=0)


BASES: dict[str, Callable[[], Base]] = {
    "trees": lambda: _array(_damvi(), 2, holes=True),
    "trees_frame": lambda: _frame(_damvi(votes="oob", threshold="f1"), 2),
    "trees_poisson": lambda: _frame(_damvi(bootstrap="poisson"), 3),
    "trees_three": lambda: _array(_damvi(threshold="macro_f1"), 3),
    "bagged": lambda: _array(_bagged(), 2),
    "bagged_three": lambda: _array(_bagged(), 3),
    "fast": lambda: _frame(_fast(), 2),
    "fast_three": lambda: _array(_fast(), 3),
    "forests": lambda: _array(_forests(), 2),
    "forests_three": lambda: _array(_forests(), 3),
    "lightgbm": lambda: _array(_pool(_lightgbm()), 2, holes=True),
    "lightgbm_three": lambda: _array(_pool(_lightgbm()), 3),
    "xgboost": lambda: _array(_pool(_xgboost()), 2, holes=True),
    "xgboost_three": lambda: _array(_pool(_xgboost()), 3),
    "catboost": lambda: _array(_pool(_catboost()), 2, holes=True),
    "catboost_three": lambda: _array(_pool(_catboost()), 3),
    "category_boosting": lambda: _many_values(_category_boosting(), 2),
    "category_boosting_three": lambda: _frame(_category_boosting(), 3),
    "hist": lambda: _array(_pool(_hist()), 2, holes=True),
    "hist_categories": lambda: _frame(_pool(_hist(categorical_features="from_dtype")), 2),
    "hist_three": lambda: _array(_pool(_hist(), threshold="vote"), 3),
    "piped": lambda: _frame(_pool(_piped(), calibration="platt"), 2),
    "piped_three": lambda: _frame(_pool(_piped()), 3),
    "bayes": lambda: _array(_bayes(), 2),
    "bayes_three": lambda: _array(_bayes(), 3),
    "linear_others": lambda: _array(_linear_others(), 2),
    "linear_others_three": lambda: _array(_linear_others(), 3),
    "deciding": lambda: _array(_deciding(), 2),
    "deciding_three": lambda: _array(_deciding(), 3),
    "of_others": lambda: _array(_of_others(), 2),
    "of_others_three": lambda: _array(_of_others(), 3),
    "transformed": lambda: _array(_transformed(), 2),
    "transformed_three": lambda: _array(_transformed(), 3),
    "many_values": lambda: _many_values(_damvi(), 2),
    "rates": lambda: _many_values(_rates(), 2),
    "rates_three": lambda: _many_values(_rates(), 3),
    "strong": lambda: _frame(_strong(), 2),
    "strong_three": lambda: _array(_strong(), 3, holes=True),
}
"""Classifiers alone."""
TABLES = {"table": 2, "table_three": 3}
"""Whole models of ``damvi fit``, by their numbers of classes."""
FEW = ("trees_frame", "trees_three", "rates", "forests", "lightgbm", "xgboost", "piped")
"""Enough for the slice that every test run takes: quickly fitted, and of all formats."""


def table_rows(n: int, seed: int) -> pd.DataFrame:
    rows = frame(n, seed).astype({"colour": object, "grade": object})
    rng = np.random.default_rng(seed)
    rows["shop"] = [f"shop {row // 2}" for row in range(n)]
    rows["note"] = [
        " ".join(rng.choice(["oil", "leak", "fine", "dry"], 6)) for _ in range(n)
    ]
    rows["when"] = pd.date_range("2020-01-01", periods=n, freq="D").strftime("%Y-%m-%d")
    return rows


def fresh_rows(name: str) -> Any:
    """The rows that the model of this name is asked about."""
    return table_rows(16, 1) if name in TABLES else BASES[name]().fresh


def fit_all(folder: Path, names: list[str]) -> None:
    """Fit what is missing in the folder."""
    from damvi import save

    warnings.simplefilter("ignore")
    for name in names:
        path = folder / f"{name}.damvi"
        if path.exists():
            continue
        if name in TABLES:
            _fit_table(folder, name, path)
            continue
        base = BASES[name]()
        try:
            save(base.model.fit(base.X, base.y), path)
        except Exception as error:  # a kind that this damvi cannot save is left out
            print(f"{name} is left out: {error}")


def _fit_table(folder: Path, name: str, path: Path) -> None:
    from damvi.cli import main

    rows = table_rows(220, 0)
    words = np.array(["fine", "late", "lost"])
    rows["state"] = words[labels(rows.iloc[:, :5], TABLES[name])]
    data = folder / f"{name}.csv"
    rows.to_csv(data, index=False)
    main(
        [
            "fit",
            str(data),
            "--target",
            "state",
            "--pool",
            "trees",
            "--quiet",
            "-o",
            str(path),
        ],
        standalone_mode=False,
    )


if __name__ == "__main__":
    fit_all(Path(sys.argv[1]), sys.argv[2:] or [*BASES, *TABLES])
