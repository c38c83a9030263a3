"""Oversample the rare class until both are equal, then train: six of the paper's nine."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.impute import SimpleImputer
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from .._compat import Interval, StrOptions, fit_context
from ..classifier import DAMVIClassifier
from ..reading import encode_labels, read_table

NAMES = {"random": "random oversampling", "smote": "SMOTE", "adasyn": "ADASYN"}


class _Oversampled(ClassifierMixin, BaseEstimator):
    """What the two have in common: the oversampling, inside ``fit``, and the answers."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "sampler": [StrOptions(set(NAMES))],
        "k_neighbors": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    sampler: str
    k_neighbors: int
    random_state: Any

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: ArrayLike) -> Any:
        """Fill gaps, oversample the rarer class to full balance, train on the result.

        Parameters
        ----------
        X : array of shape (n, n_features)
            May have missing values; SMOTE and ADASYN, which refuse them, then see the
            training medians in their place.
        y : array of shape (n,)
            Labels of two classes.

        Returns
        -------
        self
        """
        X, y = read_table(self, X, y, keep_frame=False)
        self.classes_, self._pos_label, signs = encode_labels(y, None)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self._imputer = None
        if self.sampler != "random" and np.isnan(X).any():
            imputer = SimpleImputer(strategy="median", keep_empty_features=True)
            self._imputer = imputer.fit(X)
            X = self._imputer.transform(X)
        more_X, more_signs = self._oversample(X, signs, seed)
        more_y = np.where(more_signs > 0, self._pos_label, self._neg_label)
        self.model_ = self._new_model(len(X), seed).fit(more_X, more_y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        X = self._read(X)
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The model's score for each class, as if both were equally frequent."""
        X = self._read(X)
        return self.model_.predict_proba(X)

    @property
    def _neg_label(self) -> Any:
        return self.classes_[0 if self._pos_label == self.classes_[1] else 1]

    def _new_model(self, n: int, seed: int) -> Any:
        raise NotImplementedError

    def _read(self, X: Any) -> Any:
        check_is_fitted(self, "model_")
        X = read_table(self, X, keep_frame=False)
        return X if self._imputer is None else self._imputer.transform(X)

    def _oversample(self, X: Any, signs: NDArray[np.int8], seed: int) -> Any:
        from imblearn.over_sampling import ADASYN, SMOTE, RandomOverSampler

        positives, negatives = int((signs > 0).sum()), int((signs < 0).sum())
        if positives == negatives:
            return X, signs
        if self.sampler == "random":
            return RandomOverSampler(random_state=seed).fit_resample(X, signs)
        if positives <= self.k_neighbors:
            raise ValueError(
                f"{NAMES[self.sampler]} looks for {self.k_neighbors} neighbours of each "
                f"positive among the others, and there are {positives} positives to train "
                f"on; lower k_neighbors, or use sampler='random'"
            )
        if self.sampler == "smote":
            smote = SMOTE(k_neighbors=self.k_neighbors, random_state=seed)
            return smote.fit_resample(X, signs)
        adasyn = ADASYN(n_neighbors=self.k_neighbors, random_state=seed)
        try:
            return adasyn.fit_resample(X, signs)
        except (RuntimeError, ValueError) as error:
            raise ValueError(
                f"ADASYN makes rows where positives have negatives around them, and could "
                f"make none here ({error}); use sampler='smote'"
            ) from error

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_class = False
        return tags


class OversampledTreeClassifier(_Oversampled):
    """One decision tree on an oversampled training set: R-DT, S-DT and A-DT.

    Parameters
    ----------
    sampler : {"random", "smote", "adasyn"}, default="random"
        How rows of the rarer class are made until both classes are equal [1]_ [2]_.
    k_neighbors : int, default=5
        Neighbours that SMOTE and ADASYN interpolate between.
    random_state : int, RandomState instance or None, default=None
        The seed of the sampler and of the tree.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    model_ : DecisionTreeClassifier
        The tree.

    References
    ----------
    .. [1] N. Chawla et al. (2002), SMOTE: Synthetic Minority Over-sampling Technique, JAIR.
    .. [2] H. He et al. (2008), ADASYN: Adaptive Synthetic Sampling Approach for
       Imbalanced Learning, IJCNN.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi.baselines import OversampledTreeClassifier
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

    def _new_model(self, n: int, seed: int) -> DecisionTreeClassifier:
        return DecisionTreeClassifier(random_state=seed)


class OversampledBaggingClassifier(_Oversampled):
    """The plain vote of trees on an oversampled training set [1]_: R-BG, S-BG and A-BG.

    Parameters
    ----------
    sampler : {"random", "smote", "adasyn"}, default="random"
        How rows of the rarer class are made until both classes are equal.
    estimator : classifier, default=None
        The voter. None: :class:`~damvi.FastTreeClassifier`, the built-in tree.
    n_estimators : int, default=100
        The number of voters.
    max_samples : float, default=0.2
        Rows drawn for each voter, as a share of the original training rows.
    k_neighbors : int, default=5
        Neighbours that SMOTE and ADASYN interpolate between.
    n_jobs : int, default=None
        Voters trained or asked at a time.
    random_state : int, RandomState instance or None, default=None
        The seed of the sampler, the draws and the voters.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    model_ : DAMVIClassifier
        The plain vote (``solver="uniform"``).

    References
    ----------
    .. [1] M. Galar et al. (2012), A Review on Ensembles for the Class Imbalance Problem,
       IEEE Transactions on Systems, Man, and Cybernetics C.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from damvi.baselines import OversampledBaggingClassifier
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> OversampledBaggingClassifier("random", random_state=0).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_Oversampled._parameter_constraints,
        "estimator": "no_validation",  # type: ignore[dict-item]
        "n_estimators": "no_validation",  # type: ignore[dict-item]
        "max_samples": [Interval(Real, 0, 1, closed="right")],
        "n_jobs": [Integral, None],
    }

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

    def _new_model(self, n: int, seed: int) -> DAMVIClassifier:
        return DAMVIClassifier(
            self.estimator,
            n_estimators=self.n_estimators,
            max_samples=max(1, round(self.max_samples * n)),
            reweight=False,
            solver="uniform",
            pos_label=self._pos_label,
            n_jobs=self.n_jobs,
            random_state=seed,
        )
