"""The models that DAMVI is compared with, as scikit-learn estimators, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .classifier import DAMVIClassifier
from .messages import counted
from .voters.portfolio import can_load
from .voting import DAMVIVotingClassifier

__all__ = [
    "CONTENDERS",
    "Contender",
    "OversampledBaggingClassifier",
    "OversampledTreeClassifier",
    "make_contender",
]

SAMPLERS = {"random": "random oversampling", "smote": "SMOTE", "adasyn": "ADASYN"}


class _Oversampled(ClassifierMixin, BaseEstimator):
    """Oversampling inside ``fit``, for the two classifiers below."""

    sampler: str
    k_neighbors: int
    random_state: Any

    def fit(self, X: Any, y: ArrayLike) -> Any:
        """Oversample every class to the size of the largest, and train on the result.

        Parameters
        ----------
        X : array of shape (n, n_features)
            May have missing values, which are replaced by training medians for SMOTE and
            ADASYN.
        y : array of shape (n,)

        Returns
        -------
        self
        """
        if self.sampler not in SAMPLERS:
            raise ValueError(
                f"unknown sampler={self.sampler!r}; use one of {', '.join(SAMPLERS)}"
            )
        X, y = validate_data(self, X, y, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        self.classes_, counts = np.unique(y, return_counts=True)
        if len(counts) < 2:
            raise ValueError(
                f"y has only one class ({self.classes_.tolist()[0]!r}), but at least two "
                f"are needed"
            )
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self._imputer = None
        if self.sampler != "random" and np.isnan(X).any():
            imputer = SimpleImputer(strategy="median", keep_empty_features=True)
            self._imputer = imputer.fit(X)
            X = self._imputer.transform(X)
        more_X, more_y = X, y
        if counts.min() < counts.max():
            more_X, more_y = self._oversample(X, y, counts, seed)
        # Of two equally frequent classes, the last one is positive, as elsewhere.
        positive = self.classes_[int(counts[1] <= counts[0])] if len(counts) == 2 else None
        self.model_ = self._new_model(len(X), positive, seed).fit(more_X, more_y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        X = self._read(X)
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The model's score for each class, on the scale of balanced classes."""
        X = self._read(X)
        return self.model_.predict_proba(X)

    def _new_model(self, n: int, positive: Any, seed: int) -> Any:
        raise NotImplementedError

    def _read(self, X: Any) -> Any:
        check_is_fitted(self, "model_")
        X = validate_data(self, X, reset=False, ensure_all_finite="allow-nan")
        return X if self._imputer is None else self._imputer.transform(X)

    def _oversample(self, X: Any, y: Any, counts: NDArray[np.intp], seed: int) -> Any:
        from imblearn.over_sampling import ADASYN, SMOTE, RandomOverSampler

        if self.sampler == "random":
            return RandomOverSampler(random_state=seed).fit_resample(X, y)
        if counts.min() <= self.k_neighbors:
            raise ValueError(
                f"{SAMPLERS[self.sampler]} needs {self.k_neighbors} neighbours of the same "
                f"class for each row, but the rarest class has only "
                f"{counted(counts.min(), 'training row')}; lower k_neighbors, or use "
                f"sampler='random'"
            )
        if self.sampler == "smote":
            smote = SMOTE(k_neighbors=self.k_neighbors, random_state=seed)
            return smote.fit_resample(X, y)
        adasyn = ADASYN(n_neighbors=self.k_neighbors, random_state=seed)
        try:
            return adasyn.fit_resample(X, y)
        except (RuntimeError, ValueError) as error:
            raise ValueError(
                f"ADASYN could not create any rows, since no row of the rare class has "
                f"other classes nearby ({error}); use sampler='smote'"
            ) from error

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class OversampledTreeClassifier(_Oversampled):
    """One decision tree on an oversampled training set: R-DT, S-DT and A-DT.

    Parameters
    ----------
    sampler : {"random", "smote", "adasyn"}, default="random"
        How rarer classes are oversampled to the size of the largest [1]_ [2]_.
    k_neighbors : int, default=5
        Neighbours that SMOTE and ADASYN interpolate between.
    random_state : int, RandomState instance or None, default=None
        The seed of the sampler and of the tree.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_ : DecisionTreeClassifier

    References
    ----------
    .. [1] N. Chawla et al. (2002), SMOTE: Synthetic Minority Over-sampling Technique, JAIR.
    .. [2] H. He et al. (2008), ADASYN: Adaptive Synthetic Sampling Approach for
       Imbalanced Learning, IJCNN.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi.contenders import OversampledTreeClassifier
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> OversampledTreeClassifier("smote", random_state=0).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    def __init__(
        self, sampler: str = "random", *, k_neighbors: int = 5, random_state: Any = None
    ) -> None:
        self.sampler = sampler
        self.k_neighbors = k_neighbors
        self.random_state = random_state

    def _new_model(self, n: int, positive: Any, seed: int) -> DecisionTreeClassifier:
        return DecisionTreeClassifier(random_state=seed)


class OversampledBaggingClassifier(_Oversampled):
    """The plain vote of trees on an oversampled training set [1]_: R-BG, S-BG and A-BG.

    Parameters
    ----------
    sampler : {"random", "smote", "adasyn"}, default="random"
        How rarer classes are oversampled to the size of the largest.
    estimator : classifier, default=None
        The voter. Default: :class:`~damvi.FastTreeClassifier`, the built-in tree.
    n_estimators : int, default=100
        The number of voters.
    max_samples : float, default=0.2
        Rows drawn for each voter, as a share of the original training rows.
    k_neighbors : int, default=5
        Neighbours that SMOTE and ADASYN interpolate between.
    n_jobs : int, default=None
        Voters trained or evaluated in parallel.
    random_state : int, RandomState instance or None, default=None
        The seed of the sampler, the bootstrap samples and the voters.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_ : DAMVIClassifier
        The plain vote (``solver="uniform"``).

    References
    ----------
    .. [1] M. Galar et al. (2012), A Review on Ensembles for the Class Imbalance Problem,
       IEEE Transactions on Systems, Man, and Cybernetics C.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi.contenders import OversampledBaggingClassifier
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> OversampledBaggingClassifier("random", random_state=0).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    def __init__(
        self,
        sampler: str = "random",
        *,
        estimator: Any = None,
        n_estimators: int = 100,
        max_samples: float = 0.2,
        k_neighbors: int = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.sampler = sampler
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.k_neighbors = k_neighbors
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _new_model(self, n: int, positive: Any, seed: int) -> DAMVIClassifier:
        return DAMVIClassifier(
            self.estimator,
            n_estimators=self.n_estimators,
            max_samples=max(1, round(self.max_samples * n)),
            reweight=False,
            solver="uniform",
            pos_label=positive,
            n_jobs=self.n_jobs,
            random_state=seed,
        )


Make = Callable[[int, int | None], Any]


@dataclass(frozen=True)
class Contender:
    """How to create one model.

    Attributes
    ----------
    description : str
    make : callable
        Creates the estimator from a seed and a number of jobs.
    needs : str
        A package it needs beyond damvi's own dependencies; "" for none.
    in_paper : bool
        Whether it is a row of the paper's tables.
    """

    description: str
    make: Make
    needs: str = ""
    in_paper: bool = False


def _damvi(**settings: Any) -> Make:
    def make(seed: int, n_jobs: int | None) -> Any:
        return DAMVIClassifier(random_state=seed, n_jobs=n_jobs, **settings)

    return make


def _strong(seed: int, n_jobs: int | None) -> Any:
    return DAMVIVotingClassifier(random_state=seed, n_jobs=n_jobs)


def _oversampled_tree(sampler: str) -> Make:
    def make(seed: int, n_jobs: int | None) -> Any:
        return OversampledTreeClassifier(sampler, random_state=seed)

    return make


def _oversampled_bagging(sampler: str) -> Make:
    def make(seed: int, n_jobs: int | None) -> Any:
        return OversampledBaggingClassifier(sampler, n_jobs=n_jobs, random_state=seed)

    return make


def _imbalanced_learn(name: str) -> Make:
    def make(seed: int, n_jobs: int | None) -> Any:
        from imblearn import ensemble

        kind = getattr(ensemble, name)
        model = kind(n_estimators=100, n_jobs=n_jobs, random_state=seed)
        if name != "EasyEnsembleClassifier":
            return model
        # AdaBoost does not accept missing values.
        fill = SimpleImputer(strategy="median", keep_empty_features=True)
        return make_pipeline(fill, model)

    return make


def _forest(kind: Any) -> Make:
    def make(seed: int, n_jobs: int | None) -> Any:
        return kind(n_jobs=n_jobs, random_state=seed)

    return make


# The boosters start from even odds. Starting from the class rate, the default of two of
# them, fails if positives are very rare: the second derivatives are then so small that
# LightGBM's first leaves overshoot and XGBoost's min_child_weight forbids any split.
def _lightgbm(seed: int, n_jobs: int | None) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_jobs=n_jobs or 1, random_state=seed, verbose=-1, boost_from_average=False
    )


def _xgboost(seed: int, n_jobs: int | None) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=n_jobs or 1, random_state=seed, base_score=0.5)


def _catboost(seed: int, n_jobs: int | None) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        thread_count=n_jobs or 1,
        random_state=seed,
        verbose=False,
        allow_writing_files=False,
    )


MODULES = {"imbalanced-learn": "imblearn"}
"""What is imported from a package, if not its name."""
_PAPER: dict[str, Any] = {"needs": "imbalanced-learn", "in_paper": True}

CONTENDERS: dict[str, Contender] = {
    "S-DT": Contender("SMOTE, then one tree", _oversampled_tree("smote"), **_PAPER),
    "R-DT": Contender(
        "random oversampling, then one tree", _oversampled_tree("random"), **_PAPER
    ),
    "A-DT": Contender("ADASYN, then one tree", _oversampled_tree("adasyn"), **_PAPER),
    "R-BG": Contender(
        "random oversampling, then bagging", _oversampled_bagging("random"), **_PAPER
    ),
    "S-BG": Contender("SMOTE, then bagging", _oversampled_bagging("smote"), **_PAPER),
    "A-BG": Contender("ADASYN, then bagging", _oversampled_bagging("adasyn"), **_PAPER),
    "BB": Contender(
        "balanced bagging", _imbalanced_learn("BalancedBaggingClassifier"), **_PAPER
    ),
    "BRF": Contender(
        "balanced random forest",
        _imbalanced_learn("BalancedRandomForestClassifier"),
        **_PAPER,
    ),
    "EE": Contender("easy ensemble", _imbalanced_learn("EasyEnsembleClassifier"), **_PAPER),
    "DAMVI": Contender("the paper's method, on trees", _damvi(), in_paper=True),
    "uniform": Contender("the plain vote of the same trees", _damvi(solver="uniform")),
    "DAMVI-strong": Contender("DAMVI on the strong pool", _strong),
    "RF": Contender("random forest", _forest(RandomForestClassifier)),
    "ET": Contender("extra trees", _forest(ExtraTreesClassifier)),
    "LightGBM": Contender("boosted trees, from even odds", _lightgbm, "lightgbm"),
    "XGBoost": Contender("boosted trees, from even odds", _xgboost, "xgboost"),
    "CatBoost": Contender("boosted trees", _catboost, "catboost"),
}
"""All contenders by name; add an entry to add one."""


def make_contender(name: str, *, random_state: int = 0, n_jobs: int | None = None) -> Any:
    """Create a contender by name.

    Parameters
    ----------
    name : str
        One of :data:`CONTENDERS`.
    random_state : int, default=0
    n_jobs : int, default=None

    Examples
    --------
    >>> from damvi.contenders import make_contender
    >>> make_contender("R-BG", random_state=3)
    OversampledBaggingClassifier(random_state=3)
    """
    if name not in CONTENDERS:
        near = get_close_matches(name, CONTENDERS, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(
            f"unknown contender {name!r}.{hint} Choose from: {', '.join(CONTENDERS)}"
        )
    contender = CONTENDERS[name]
    if contender.needs and not can_load(MODULES.get(contender.needs, contender.needs)):
        raise ImportError(
            f"{name} needs the package {contender.needs}, which is not installed or does "
            f"not load; run pip install 'damvi[bench]'"
        )
    return contender.make(random_state, n_jobs)
