"""The registry of methods: a name, in the paper's words, and how to make the estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any, Literal

from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from ..classifier import DAMVIClassifier
from .oversampled import OversampledBaggingClassifier, OversampledTreeClassifier
from .real_adaboost import RealAdaBoostClassifier

Trees = Literal["fast", "cart"]
Make = Callable[[Trees, int], Any]


@dataclass(frozen=True)
class Method:
    """How to make one contender.

    Attributes
    ----------
    words : str
        What it is, in a few words.
    make : callable
        From the kind of trees ("fast" or "cart") and a seed to an estimator.
    kind : {"paper", "beyond", "ablation", "variant"}
        A method of the paper's tables, one that a fair reader asks for beside them, DAMVI
        with a step left out, or a baseline as the paper may have run it.
    needs : str
        The package that it takes, beyond damvi's own; "" for none.
    """

    words: str
    make: Make
    kind: Literal["paper", "beyond", "ablation", "variant"] = "beyond"
    needs: str = ""


def voter(trees: Trees) -> Any:
    """None, for the built-in tree, or scikit-learn's."""
    return DecisionTreeClassifier() if trees == "cart" else None


def _damvi(**settings: Any) -> Make:
    def make(trees: Trees, seed: int) -> Any:
        return DAMVIClassifier(voter(trees), random_state=seed, **settings)

    return make


def _tree(sampler: str) -> Make:
    def make(trees: Trees, seed: int) -> Any:
        return OversampledTreeClassifier(sampler, random_state=seed)

    return make


def _bagging(sampler: str, max_samples: float = 0.2) -> Make:
    def make(trees: Trees, seed: int) -> Any:
        return OversampledBaggingClassifier(
            sampler, estimator=voter(trees), max_samples=max_samples, random_state=seed
        )

    return make


def _balanced_bagging(trees: Trees, seed: int) -> Any:
    from imblearn.ensemble import BalancedBaggingClassifier

    return BalancedBaggingClassifier(n_estimators=100, random_state=seed)


def _balanced_forest(trees: Trees, seed: int) -> Any:
    from imblearn.ensemble import BalancedRandomForestClassifier

    return BalancedRandomForestClassifier(n_estimators=100, random_state=seed)


def _old_balanced_forest(trees: Trees, seed: int) -> Any:
    from imblearn.ensemble import BalancedRandomForestClassifier

    return BalancedRandomForestClassifier(
        n_estimators=100,
        sampling_strategy="auto",
        replacement=False,
        bootstrap=True,
        random_state=seed,
    )


def _easy_ensemble(boosted: Any = None) -> Make:
    def make(trees: Trees, seed: int) -> Any:
        from imblearn.ensemble import EasyEnsembleClassifier

        # AdaBoost refuses missing values.
        return make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True),
            EasyEnsembleClassifier(n_estimators=100, estimator=boosted, random_state=seed),
        )

    return make


def _forest(trees: Trees, seed: int) -> Any:
    return RandomForestClassifier(random_state=seed)


def _tuned(booster: Any, seed: int) -> Any:
    """A booster with the threshold of the best F1 on rows that its fold has not seen.

    The boosters here start from even odds. From the class rate, which is their default,
    they fail where positives are very rare: the second derivatives are then so small that
    LightGBM's first leaves overshoot and XGBoost's min_child_weight forbids every split
    (the variants of them show it).
    """
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return TunedThresholdClassifierCV(booster, scoring="f1", cv=folds)


def _lightgbm(**start: Any) -> Make:
    def make(trees: Trees, seed: int) -> Any:
        from lightgbm import LGBMClassifier

        booster = LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1, **start)
        return _tuned(booster, seed)

    return make


def _xgboost(**start: Any) -> Make:
    def make(trees: Trees, seed: int) -> Any:
        from xgboost import XGBClassifier

        return _tuned(XGBClassifier(n_jobs=1, random_state=seed, **start), seed)

    return make


METHODS: dict[str, Method] = {
    "S-DT": Method("SMOTE, then one tree", _tree("smote"), "paper", "imblearn"),
    "R-DT": Method(
        "random oversampling, then one tree", _tree("random"), "paper", "imblearn"
    ),
    "A-DT": Method("ADASYN, then one tree", _tree("adasyn"), "paper", "imblearn"),
    "R-BG": Method(
        "random oversampling, then bagging", _bagging("random"), "paper", "imblearn"
    ),
    "S-BG": Method("SMOTE, then bagging", _bagging("smote"), "paper", "imblearn"),
    "A-BG": Method("ADASYN, then bagging", _bagging("adasyn"), "paper", "imblearn"),
    "BB": Method("balanced bagging", _balanced_bagging, "paper", "imblearn"),
    "BRF": Method("balanced random forest", _balanced_forest, "paper", "imblearn"),
    "EE": Method("easy ensemble", _easy_ensemble(), "paper", "imblearn"),
    "DAMVI": Method("this library, as in the paper", _damvi(), "paper"),
    "uniform": Method("plain vote of DAMVI's own trees", _damvi(solver="uniform")),
    "RF": Method("random forest", _forest),
    "LightGBM": Method(
        "boosting from even odds, threshold tuned out of fold",
        _lightgbm(boost_from_average=False),
        needs="lightgbm",
    ),
    "XGBoost": Method(
        "boosting from even odds, threshold tuned out of fold",
        _xgboost(base_score=0.5),
        needs="xgboost",
    ),
    "C-bound": Method("DAMVI without the reweighting", _damvi(reweight=False), "ablation"),
    "SLSQP": Method("DAMVI by the paper's solver", _damvi(solver="slsqp"), "ablation"),
    # 20 % of the oversampled rows, which are twice as many.
    "R-BG-os": Method(
        "R-BG, larger samples", _bagging("random", 0.4), "variant", "imblearn"
    ),
    "S-BG-os": Method(
        "S-BG, larger samples", _bagging("smote", 0.4), "variant", "imblearn"
    ),
    "A-BG-os": Method(
        "A-BG, larger samples", _bagging("adasyn", 0.4), "variant", "imblearn"
    ),
    "R-BG-full": Method(
        "R-BG, samples of all the rows", _bagging("random", 1.0), "variant", "imblearn"
    ),
    "BRF-old": Method(
        "BRF by its defaults of 2020", _old_balanced_forest, "variant", "imblearn"
    ),
    "EE-real": Method(
        "EE by Real AdaBoost, as in 2020",
        _easy_ensemble(RealAdaBoostClassifier()),
        "variant",
        "imblearn",
    ),
    "LightGBM-rate": Method(
        "LightGBM from the class rate, its default", _lightgbm(), "variant", "lightgbm"
    ),
    "XGBoost-rate": Method(
        "XGBoost from the class rate, its default", _xgboost(), "variant", "xgboost"
    ),
}
"""Every method by name. Add an entry, and the benchmarks know it."""

PAPER_METHODS = [name for name, method in METHODS.items() if method.kind == "paper"]
"""The rows of the paper's tables, in their order."""


def make_method(name: str, *, trees: Trees = "fast", random_state: int = 0) -> Any:
    """The estimator behind a name.

    Parameters
    ----------
    name : str
        One of :data:`METHODS`.
    trees : {"fast", "cart"}, default="fast"
        The trees that DAMVI and the bagging baselines are made of: the built-in ones,
        or scikit-learn's.
    random_state : int, default=0

    Examples
    --------
    >>> from damvi.baselines import make_method
    >>> make_method("R-BG", random_state=3)
    OversampledBaggingClassifier(random_state=3)
    """
    if name not in METHODS:
        near = get_close_matches(name, METHODS, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(f"unknown method {name!r}.{hint} There are: {', '.join(METHODS)}")
    method = METHODS[name]
    if method.needs and find_spec(method.needs) is None:
        raise ImportError(
            f"{name} needs the package {method.needs}, which is not installed; "
            f"pip install 'damvi[bench]' brings it"
        )
    return method.make(trees, random_state)
