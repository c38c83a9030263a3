"""What is asked of voters, and scikit-learn's estimators as such.

How an estimator is seeded, weighted and fitted, and what its answers are as votes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel
from sklearn.utils.validation import has_fit_parameter

from .._compat import routing_enabled, take_rows
from ..labels import hard_votes, vote_shape
from .sampling import Sampling

Voting = Literal["hard", "soft"]
Progress = Callable[[Iterable[Any], int], Iterable[Any]]


class Voters(Protocol):
    """A set of trained voters of one kind: trees, bagged classifiers, ...

    Votes for the positive one of two classes are +1 and -1 (int8). Of three classes or
    more, they are class numbers (uint8). :class:`VoteReader` has soft votes, too.
    """

    @classmethod
    def train(
        cls,
        estimator: Any,
        X: Any,
        targets: NDArray[Any],
        sampling: Sampling,
        n_voters: int,
        /,
        *,
        n_classes: int = 2,
        known: Any = None,
        sample_weight: NDArray[np.float64] | None = None,
        fit_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[Self, Any]:
        """The ``known`` voters and new ones up to ``n_voters``, with all votes on ``X``.

        ``targets`` are class numbers, from 0; of two classes, 1 is the positive one. With
        replacement, voters see how often each row was drawn; without, they see the rows'
        own ``sample_weight``.
        """

    def __len__(self) -> int: ...

    @property
    def takes_frames(self) -> bool:
        """Whether dataframes are left as they are, for their names and categories."""

    def take(self, some: NDArray[np.intp]) -> Self:
        """These voters alone, by their numbers."""

    @property
    def estimators(self) -> list[Any]:
        """The voters as classifiers, trained on class numbers."""

    @property
    def n_without_class(self) -> NDArray[np.intp]:
        """For each class, how many voters have seen none of it, and never vote for it."""

    def votes(self, X: Any, n_jobs: int | None = None) -> Any:
        """The votes of all K voters on ``X``, (n, K)."""

    def weighted_vote(
        self, X: Any, weights: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """The weighted sum of the votes on ``X``; voters of weight 0 are not asked.

        Of three classes or more: the weight behind each, (n, C).
        """


def check_can_vote(name: str, estimator: Any) -> None:
    """Refuse what is no classifier."""
    if not hasattr(estimator, "predict") or is_regressor(estimator):
        raise ValueError(
            f"voter {name!r} ({type(estimator).__name__}) is not a classifier, and "
            f"only classifiers can vote"
        )


def seeded_clone(estimator: Any, seed: int) -> Any:
    """A clone with every random state, nested ones too, set to ``seed``."""
    estimator = clone(estimator)
    names = [
        name
        for name in estimator.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    ]
    return estimator.set_params(**dict.fromkeys(names, seed))


def fit_on_rows(
    estimator: Any,
    X: Any,
    targets: NDArray[Any],
    rows: NDArray[np.intp],
    weights: NDArray[np.float64] | None,
    params: Mapping[str, Any],
) -> Any:
    """The estimator fitted on some rows, as a classifier of all the class numbers.

    ``weights`` has one entry for each of ``rows``. ``params`` go to ``fit``; values with
    one entry for each row of ``X`` are taken there.
    """
    if isinstance(estimator, SomeRows):
        some, factor = estimator.draw(targets[rows])
        rows = rows[some]
        if factor is not None:
            weights = factor if weights is None else factor * weights[some]
        elif weights is not None:
            weights = weights[some]
        # A voter is the classifier itself: what it was trained on, it need not know.
        return fit_on_rows(estimator.estimator, X, targets, rows, weights, params)
    own_params = params_of_rows(params, rows, len(targets))
    # Some models insist on labels 0, 1, ... without gaps, and not all classes are here.
    present, numbers = np.unique(targets[rows], return_inverse=True)
    numbers = numbers.astype(targets.dtype)
    _fit_weighted(estimator, take_rows(X, rows), numbers, weights, own_params)
    has_gaps = present[-1] != len(present) - 1
    return Relabelled(estimator, present) if has_gaps else estimator


def params_of_rows(
    params: Mapping[str, Any], rows: NDArray[np.intp], n_rows: int
) -> dict[str, Any]:
    """The same for some of the rows: values with one entry a row are taken there."""
    return {
        name: take_rows(value, rows) if _is_per_row(value, n_rows) else value
        for name, value in params.items()
    }


def _is_per_row(value: Any, n_rows: int) -> bool:
    return (
        hasattr(value, "__len__")
        and not isinstance(value, (str, dict))
        and len(value) == n_rows
    )


def weight_name(estimator: Any) -> str | None:
    """What ``fit`` calls the rows' weights, in a pipeline those of its last step."""
    if isinstance(estimator, SomeRows):
        return weight_name(estimator.estimator)
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if isinstance(estimator, Pipeline):
        last, step = estimator.steps[-1]
        inner = weight_name(step)
        return None if inner is None else f"{last}__{inner}"
    return None


def _fit_weighted(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    weights: NDArray[np.float64] | None,
    params: Mapping[str, Any],
) -> Any:
    name = weight_name(estimator)
    if weights is None or name is None:
        return estimator.fit(X, y, **params)
    if name == "sample_weight" or not routing_enabled():
        return estimator.fit(X, y, **{name: weights}, **params)
    if params:  # routed to the steps as they ask, and the weights with them
        return estimator.fit(X, y, sample_weight=weights, **params)
    with config_context(enable_metadata_routing=False):
        return estimator.fit(X, y, **{name: weights})


def _has(name: str) -> Any:
    return available_if(lambda self: hasattr(self.estimator, name))


class Relabelled(ClassifierMixin, BaseEstimator):
    """A fitted classifier of the labels 0, 1, ... that stand for ``classes``.

    Parameters
    ----------
    estimator : fitted classifier
    classes : array
        In the order of the estimator's own.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> model = GaussianNB().fit(X, [0, 0, 1, 1])
    >>> Relabelled(model, np.array([0, 3])).predict(X)
    array([0, 0, 3, 3])
    """

    def __init__(self, estimator: Any, classes: Any) -> None:
        self.estimator = estimator
        self.classes = classes
        self.classes_: NDArray[Any] = np.asarray(classes)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row."""
        numbers = np.asarray(self.estimator.predict(X)).ravel().astype(np.intp)
        return self.classes_[numbers]

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """The probabilities of ``classes_``."""
        return self.estimator.predict_proba(X)

    @_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """The scores of ``classes_``, or of the second of two."""
        return self.estimator.decision_function(X)

    @property
    def feature_importances_(self) -> Any:
        """Those of the estimator, if it has any."""
        return self.estimator.feature_importances_


class SomeRows(ClassifierMixin, BaseEstimator):
    """A classifier that learns from some of the rows it is given, for want of time.

    All rows of the rarer classes are kept, as long as they are at most half of
    ``max_rows``; those of the largest are drawn, and weighted back to their number. A
    classifier that takes no ``sample_weight`` gets all classes in proportion.

    Parameters
    ----------
    estimator : classifier
    max_rows : int, default=10000
    random_state : int, default=0
        The seed of the draw.

    Attributes
    ----------
    estimator_ : classifier
        Fitted. A pool keeps this alone.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(5000, weights=[0.95], random_state=0)
    >>> model = SomeRows(GaussianNB(), max_rows=1000).fit(X, y)
    >>> model.estimator_.estimator.class_count_.sum().round()
    np.float64(5000.0)
    """

    def __init__(self, estimator: Any, max_rows: int = 10_000, random_state: int = 0):
        self.estimator = estimator
        self.max_rows = max_rows
        self.random_state = random_state

    def draw(self, y: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.float64] | None]:
        """Numbers of rows in order, and how many each stands for, if that can be told."""
        _, numbers, counts = np.unique(y, return_inverse=True, return_counts=True)
        if len(y) <= self.max_rows:
            return np.arange(len(y)), None
        weighted = weight_name(self.estimator) is not None
        largest = int(np.argmax(counts))
        rarer = len(y) - int(counts[largest])
        if weighted and rarer <= self.max_rows / 2:
            kept = counts.copy()
            kept[largest] = self.max_rows - rarer
        else:
            kept = np.clip(np.round(counts * (self.max_rows / len(y))), 2, counts)
        rng = np.random.RandomState([self.random_state, 19])
        drawn = [
            rng.choice(np.flatnonzero(numbers == c), int(n), replace=False)
            for c, n in enumerate(kept)
        ]
        some = np.sort(np.concatenate(drawn))
        return some, (counts / kept)[numbers[some]] if weighted else None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw rows, and fit the classifier on them."""
        self.classes_, numbers = np.unique(y, return_inverse=True)
        weights = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        rows = np.arange(len(numbers))
        model = clone(self)
        fitted = fit_on_rows(model, X, numbers.astype(np.intp), rows, weights, {})
        self.estimator_ = Relabelled(fitted, self.classes_)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row."""
        return self.estimator_.predict(X)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """The probabilities of ``classes_``."""
        return self.estimator_.predict_proba(X)

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))
    def decision_function(self, X: Any) -> Any:
        """The scores of ``classes_``, or of the second of two."""
        return self.estimator_.decision_function(X)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        own = get_tags(self.estimator)
        tags.input_tags = own.input_tags
        tags.classifier_tags = own.classifier_tags
        return tags


@dataclass(frozen=True, eq=False)
class VoteReader:
    """The votes of fitted classifiers, whatever they answer with.

    A hard vote is a decision, in a byte: of two classes +1 or -1, of more the class
    number. A soft vote is, of two classes, 2p - 1, where p is the probability of the
    second class; of more, the probability of each. A class that the model has never met
    gets none. The scores of a model that only has a ``decision_function`` are read as
    log-odds, which keeps its ranking and is what Platt's calibration starts from. A model
    with neither casts its hard vote.

    Attributes
    ----------
    classes : ndarray of shape (C,)
        What the models call the classes, in the order of their numbers. Of two classes,
        the second is the positive one; three or more are sorted.
    voting : {"hard", "soft"}

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> model = GaussianNB().fit(X, ["a", "a", "c", "c"])
    >>> VoteReader(np.array(["a", "c"]), "hard")(model, X)
    array([-1, -1,  1,  1], dtype=int8)
    >>> VoteReader(np.array(["a", "b", "c"]), "soft")(model, X).round(2)[[0, 3]]
    array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """

    classes: NDArray[Any]
    voting: Voting

    def __call__(self, model: Any, X: Any) -> NDArray[Any]:
        """The votes of one model: (n,), or (n, C) where they are soft and C > 2."""
        if self.voting == "hard":
            return self._decisions(model, X)
        if hasattr(model, "predict_proba") or hasattr(model, "decision_function"):
            votes = self._probabilities(model, X)
            missing = np.isnan(votes.reshape(len(votes), -1)).any(axis=1)
            if missing.any():
                raise ValueError(f"its vote is NaN on {int(missing.sum())} rows")
            return votes.astype(np.float32)
        return self._as_numbers(self._decisions(model, X)).astype(np.float32)

    def _decisions(self, model: Any, X: Any) -> NDArray[Any]:
        labels = np.asarray(model.predict(X)).ravel()
        return hard_votes(len(self.classes))[self._numbers(labels)]

    def _numbers(self, labels: NDArray[Any]) -> NDArray[np.intp]:
        """The numbers of classes, by what the models call them."""
        order = np.argsort(self.classes)
        return order[np.searchsorted(self.classes, labels, sorter=order)]

    def _probabilities(self, model: Any, X: Any) -> NDArray[np.float64]:
        known = np.asarray(getattr(model, "classes_", np.sort(self.classes)))
        if hasattr(model, "predict_proba"):
            shares = np.clip(np.asarray(model.predict_proba(X), dtype=np.float64), 0, 1)
        else:
            scores = np.asarray(model.decision_function(X), dtype=np.float64)
            if len(self.classes) == 2:
                half = np.tanh(scores.ravel() / 2)
                return half if known[1] == self.classes[1] else -half
            if len(known) == 2:
                last = expit(scores.ravel())
                shares = np.column_stack([1 - last, last])
            else:
                shares = softmax(scores, axis=1)
        if len(self.classes) == 2:
            place = known.tolist().index(self.classes.tolist()[1])
            return np.asarray(2 * shares[:, place] - 1)
        found = np.zeros((len(shares), len(self.classes)))
        found[:, self._numbers(known)] = shares
        return found

    def empty(self, n_rows: int, n_voters: int) -> NDArray[Any]:
        """Room for the votes of all voters, voter by voter in memory if (n, K)."""
        n_classes = len(self.classes)
        shares = vote_shape(n_rows, n_classes)[1:] if self.voting == "soft" else ()
        dtype = np.float32 if self.voting == "soft" else hard_votes(n_classes).dtype
        return np.empty((n_rows, n_voters, *shares), dtype, order="C" if shares else "F")

    def weighted_sum(
        self, votes: Iterable[NDArray[Any]], weights: Iterable[float]
    ) -> NDArray[np.float64]:
        """The sum of several voters' votes; of C > 2 classes, what each gets, (n, C)."""
        total: Any = 0.0
        for weight, vote in zip(weights, votes, strict=True):
            total = total + weight * self._as_numbers(vote)
        return np.asarray(total)

    def _as_numbers(self, votes: NDArray[Any]) -> NDArray[np.float64]:
        """Votes to add up: as they are, or for each class 1 where it was voted for."""
        if votes.dtype == np.uint8:  # numbers of classes
            votes = np.equal.outer(votes, np.arange(len(self.classes)))
        return votes.astype(np.float64)


def in_parallel(work: Iterable[Any], n_jobs: int | None) -> Iterator[Any]:
    """The results of joblib's ``delayed`` calls in order, by the backend in force."""
    try:
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    except ValueError:  # ray's backend, for one, only gives all results at once
        parallel = Parallel(n_jobs=n_jobs, prefer="threads")
    return iter(parallel(work))


def weighted_importances(
    estimators: Sequence[Any], weights: NDArray[np.float64], *, scaled: bool
) -> NDArray[np.float64]:
    """The mean of the voters' feature importances, weighted as they vote.

    ``scaled``: models count in units of their own, so each is scaled to sum to 1, and
    those that have none are left out.
    """
    known = [getattr(voter, "feature_importances_", None) for voter in estimators]
    if all(importances is None for importances in known):
        kinds = ", ".join(sorted({type(voter).__name__ for voter in estimators}))
        raise AttributeError(f"the voters ({kinds}) have no feature_importances_")
    total: Any = 0.0
    asked = 0.0
    for weight, importances in zip(weights, known, strict=True):
        if importances is None:  # a constant voter (one class in its sample) uses none
            continue
        scale = float(np.sum(importances)) if scaled else 1.0
        total = total + weight * np.asarray(importances) / (scale or 1.0)
        asked += weight
    return np.asarray(total / asked if scaled and asked > 0 else total)
