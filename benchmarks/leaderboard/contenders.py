"""Who takes part, and one fit of one of them: runs in each contender's own environment.

    python -m benchmarks.leaderboard.contenders REQUEST.json

reads what to fit on what, and writes probabilities, decisions, seconds and versions beside
the request. What only one environment has is imported where it is used.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .data import load, rows_of_test

CORES = 2


@dataclass(frozen=True)
class Contender:
    """How a contender is made, where, and which packages' versions are stored."""

    make: Callable[..., Any]
    environment: str
    packages: tuple[str, ...]
    has_budget: bool = False


def _columns(X: pd.DataFrame) -> tuple[list[str], list[str]]:
    """The names of categories and of numbers."""
    categories = [name for name in X if isinstance(X[name].dtype, pd.CategoricalDtype)]
    return categories, [name for name in X if name not in categories]


def _one_hot(model: Any) -> Any:
    """For models that take numbers only, and none that is missing."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    numbers = make_column_transformer(
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            make_column_selector(dtype_include="category"),
        ),
        remainder=SimpleImputer(strategy="median"),
    )
    return make_pipeline(numbers, model)


def _damvi_strong(budget: float | None, seed: int) -> Any:
    from damvi import DAMVIVotingClassifier

    limit = {} if budget is None else {"time_limit": budget}
    return DAMVIVotingClassifier("strong", n_jobs=CORES, random_state=seed, **limit)


def _damvi_trees(**settings: Any) -> Callable[[float | None, int], Any]:
    def make(budget: float | None, seed: int) -> Any:
        from damvi import DAMVIClassifier

        return DAMVIClassifier(n_jobs=CORES, random_state=seed, **settings)

    return make


def _lightgbm(budget: float | None, seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=CORES, random_state=seed, verbose=-1)


def _xgboost(budget: float | None, seed: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(enable_categorical=True, n_jobs=CORES, random_state=seed)


class _CatBoost:
    """CatBoost with its categories as text, of which missing is one."""

    def __init__(self, budget: float | None, seed: int) -> None:
        self.seed = seed

    def _text(self, X: pd.DataFrame) -> pd.DataFrame:
        return X.assign(
            **{n: X[n].astype(object).fillna("").astype(str) for n in self.cats}
        )

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> None:
        from catboost import CatBoostClassifier

        self.cats, _ = _columns(X)
        self.model = CatBoostClassifier(
            cat_features=self.cats,
            thread_count=CORES,
            random_seed=self.seed,
            verbose=False,
            allow_writing_files=False,
        ).fit(self._text(X), y)

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(self._text(X), thread_count=CORES)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict(self._text(X))


class _Smote:
    """LightGBM on the training rows and as many made-up positives as make classes even."""

    def __init__(self, budget: float | None, seed: int) -> None:
        self.seed = seed

    def _filled(self, X: pd.DataFrame) -> pd.DataFrame:
        return X.fillna({n: self.medians[n] for n in self.numbers})

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> None:
        from imblearn.over_sampling import SMOTE, SMOTENC

        cats, self.numbers = _columns(X)
        self.medians = X[self.numbers].median()
        # SMOTENC knows no missing category either.
        self.names = {n: [*X[n].cat.categories, "(missing)"] for n in cats}
        options = {"random_state": self.seed}
        sampler = SMOTENC(cats, **options) if cats else SMOTE(**options)
        more, y = sampler.fit_resample(self._ready(X), y)
        self.model = _lightgbm(None, self.seed).fit(more, y)

    def _ready(self, X: pd.DataFrame) -> pd.DataFrame:
        known = {
            n: pd.Categorical(X[n].astype(object).fillna("(missing)"), categories=names)
            for n, names in self.names.items()
        }
        return self._filled(X).assign(**known)

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(self._ready(X))

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict(self._ready(X))


def _perpetual(budget: float | None, seed: int) -> Any:
    from perpetual import PerpetualBooster

    return PerpetualBooster(objective="LogLoss", num_threads=CORES, seed=seed)


def _ebm(budget: float | None, seed: int) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(n_jobs=CORES, random_state=seed)


def _imblearn(name: str, **settings: Any) -> Callable[[float | None, int], Any]:
    def make(budget: float | None, seed: int) -> Any:
        from imblearn import ensemble

        return _one_hot(getattr(ensemble, name)(random_state=seed, **settings))

    return make


def _weighted_forest(budget: float | None, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return _one_hot(
        RandomForestClassifier(
            class_weight="balanced_subsample", n_jobs=CORES, random_state=seed
        )
    )


class _Flaml:
    """FLAML's search over the three boosters."""

    def __init__(self, budget: float | None, seed: int) -> None:
        self.settings = {
            "task": "classification",
            "metric": "ap",
            "time_budget": budget,
            "estimator_list": ["lgbm", "xgboost", "catboost"],
            "n_jobs": CORES,
            "seed": seed,
            "verbose": 0,
        }

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> None:
        from flaml import AutoML

        self.model = AutoML()
        self.model.fit(X_train=X, y_train=y, **self.settings)

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(X)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict(X)


PRESETS: dict[str, dict[str, Any]] = {
    "medium": {"presets": "medium_quality"},
    "best": {"presets": "best_quality"},
    "best, not stacked": {"presets": "best_quality", "num_stack_levels": 0},
    "best of 1.5": {"presets": "best_quality_v150"},
}
"""Of AutoGluon, that may suit a budget; ``presets.py`` tries them on development data."""
CHOSEN = {10: "medium", 60: "best, not stacked", 300: "best, not stacked"}
"""By budget."""


class _AutoGluon:
    """AutoGluon's best preset for the budget; its threshold is calibrated for F1."""

    def __init__(self, budget: float | None, seed: int, preset: str = "") -> None:
        assert budget is not None
        self.budget = budget
        self.settings = PRESETS[preset or CHOSEN[int(budget)]]

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> None:
        from autogluon.tabular import TabularPredictor

        self.model = TabularPredictor(
            "target",
            problem_type="binary",
            eval_metric="average_precision",
            path="autogluon",  # in the cell's own folder
            verbosity=0,
        )
        self.model.fit(
            X.assign(target=y),
            **self.settings,
            time_limit=self.budget,
            num_cpus=CORES,
            num_gpus=0,
        )
        threshold = self.model.calibrate_decision_threshold(metric="f1", verbose=False)
        self.model.set_decision_threshold(threshold)

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(X).to_numpy()

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict(X).to_numpy()


OURS, AUTOGLUON, LIGHTGBM = "DAMVI strong", "AutoGluon", "LightGBM"
_BOOSTERS = ("lightgbm", "xgboost", "catboost")
_DAMVI = ("ours", ("scikit-learn", "numba", *_BOOSTERS))
_IMBLEARN = ("outsiders", ("imbalanced-learn", "scikit-learn"))
CONTENDERS = {
    OURS: Contender(_damvi_strong, *_DAMVI, has_budget=True),
    "FLAML": Contender(_Flaml, "outsiders", ("FLAML", *_BOOSTERS), has_budget=True),
    AUTOGLUON: Contender(
        _AutoGluon, "autogluon", ("autogluon.tabular", "lightgbm", "torch"), has_budget=True
    ),
    "DAMVI strong, no limit": Contender(_damvi_strong, *_DAMVI),
    "DAMVI trees": Contender(
        _damvi_trees(fit_intercept=True, shrinkage=0.5, threshold="f1"), *_DAMVI
    ),
    "DAMVI trees, paper": Contender(_damvi_trees(), *_DAMVI),
    LIGHTGBM: Contender(_lightgbm, "outsiders", ("lightgbm",)),
    "XGBoost": Contender(_xgboost, "outsiders", ("xgboost",)),
    "CatBoost": Contender(_CatBoost, "outsiders", ("catboost",)),
    "Perpetual": Contender(_perpetual, "outsiders", ("perpetual",)),
    "EBM": Contender(_ebm, "outsiders", ("interpret-core",)),
    "balanced random forest": Contender(
        _imblearn("BalancedRandomForestClassifier", n_jobs=CORES), *_IMBLEARN
    ),
    "easy ensemble": Contender(
        _imblearn("EasyEnsembleClassifier", n_jobs=CORES), *_IMBLEARN
    ),
    "RUSBoost": Contender(_imblearn("RUSBoostClassifier"), *_IMBLEARN),
    "balanced bagging": Contender(
        _imblearn("BalancedBaggingClassifier", n_jobs=CORES), *_IMBLEARN
    ),
    "SMOTE + LightGBM": Contender(_Smote, "outsiders", ("imbalanced-learn", "lightgbm")),
    "weighted forest": Contender(_weighted_forest, "outsiders", ("scikit-learn",)),
}


def cpu_seconds() -> float:
    """Of this process and all under it, those that have ended included."""
    import psutil

    me, total = psutil.Process(), 0.0
    for process in [me, *me.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def import_heavy(packages: tuple[str, ...]) -> None:
    """Imports are not what is measured."""
    modules = {
        "imbalanced-learn": "imblearn.ensemble",
        "scikit-learn": "sklearn.ensemble",
        "interpret-core": "interpret.glassbox",
        "FLAML": "flaml",
    }
    for package in packages:
        __import__(modules.get(package, package))
    if "numba" in packages:
        __import__("damvi.voters.trees.estimators")


def run(request: dict[str, Any], out: Path) -> None:
    """Fit a contender, and write what it says of the test rows."""
    contender = CONTENDERS[request["contender"]]
    X, y = load(Path(request["table"]))
    test = rows_of_test(y, request["split"])
    rows, target, asked = X[~test], y[~test], X[test]
    rows, asked = rows.reset_index(drop=True), asked.reset_index(drop=True)
    import_heavy(contender.packages)
    options = {"preset": request["preset"]} if "preset" in request else {}
    model = contender.make(request["budget"], request["split"], **options)

    start, cpu, before = time.perf_counter(), cpu_seconds(), time.process_time()
    model.fit(rows, target)
    fit_seconds, fit_cpu = time.perf_counter() - start, cpu_seconds() - cpu
    start, after = time.perf_counter(), time.process_time()
    chance = np.asarray(model.predict_proba(asked), dtype=np.float64)
    predict_seconds = time.perf_counter() - start
    flagged = np.asarray(model.predict(asked)).ravel().astype(float) == 1
    other_cpu = before + time.process_time() - after
    np.savez(out, chance=chance[:, 1] if chance.ndim == 2 else chance, flagged=flagged)
    used = [name for name, _ in getattr(model, "estimators_used_", ())]
    measured = {
        "fit_seconds": round(fit_seconds, 3),
        "fit_cpu_seconds": round(fit_cpu, 3),
        "other_cpu_seconds": round(other_cpu, 3),
        "predict_seconds": round(predict_seconds, 4),
        "versions": {name: version(name) for name in contender.packages},
        **({"estimators_used": used} if used else {}),
    }
    out.with_suffix(".json").write_text(json.dumps(measured), encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    path = Path(sys.argv[1])
    run(json.loads(path.read_text(encoding="utf-8")), path.with_name("answer.npz"))
