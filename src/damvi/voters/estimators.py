"""The interface of voters, and scikit-learn's estimators as voters.

How an estimator is seeded, weighted and fitted, how its predictions become votes, and the
bagging of any classifier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from .._compat import routing_enabled, take_rows
from ..labels import hard_votes, vote_shape
from .sampling import Sampling

Voting = Literal["hard", "soft"]
Progress = Callable[[Iterable[Any], int], Iterable[Any]]
ROWS = "rows of the table"
"""Name of the step that copies the rows."""


class Voters(Protocol):
    """Interface of a set of trained voters of one kind: trees, bagged classifiers, ...

    With two classes, hard votes are +1 for the positive class and -1 for the other (int8);
    with three or more, class numbers (uint8). See :class:`VoteReader` for soft votes.
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
        """Train voters up to ``n_voters``, in addition to those ``known``, and cast votes.

        ``targets`` are class numbers from 0; of two classes, 1 is the positive one. With
        replacement, voters are weighted by how often each row was drawn; without, by
        ``sample_weight``. Returns all voters, and their votes on ``X``.
        """

    def __len__(self) -> int: ...

    @property
    def takes_frames(self) -> bool:
        """Whether voters use the names and categories of dataframes."""

    def take(self, some: NDArray[np.intp]) -> Self:
        """Return the voters with these numbers."""

    @property
    def estimators(self) -> list[Any]:
        """The voters as classifiers, trained on class numbers."""

    @property
    def n_without_class(self) -> NDArray[np.intp]:
        """For each class, the number of voters trained without it."""

    def votes(self, X: Any, n_jobs: int | None = None) -> Any:
        """Votes of all K voters on ``X``, (n, K)."""

    def weighted_vote(
        self, X: Any, weights: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Weighted sum of the votes on ``X``; voters of weight 0 are skipped.

        With three or more classes, the weight for each class, (n, C).
        """


def check_can_vote(name: str, estimator: Any) -> None:
    """Raise an error if this is not a classifier."""
    if not hasattr(estimator, "predict") or is_regressor(estimator):
        raise ValueError(
            f"voter {name!r} ({type(estimator).__name__}) is not a classifier; only "
            f"classifiers can vote"
        )


def refuse_single_class(train: Sequence[NDArray[np.intp]], targets: NDArray[Any]) -> None:
    """Raise an error if the training rows of a fold have only one class."""
    for fold, rows in enumerate(train):
        if len(np.unique(targets[rows])) < 2:
            raise ValueError(
                f"fold {fold} has {len(rows)} training rows of a single class; use fewer "
                f"folds, or a stratified splitter"
            )


def seeded_clone(estimator: Any, seed: int | None) -> Any:
    """A clone with every random state, including nested ones, set to ``seed``."""
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
    """Fit an estimator on some of the rows, as a classifier of all class numbers.

    ``weights`` has one entry for each of ``rows``. ``params`` are passed to ``fit``; values
    with one entry for each row of ``X`` are indexed by ``rows``.
    """
    if isinstance(estimator, SomeRows):
        some, factor = estimator.draw(targets[rows])
        rows = rows[some]
        if factor is not None:
            weights = factor if weights is None else factor * weights[some]
        elif weights is not None:
            weights = weights[some]
        # The voter is the classifier itself, without the wrapper.
        return fit_on_rows(estimator.estimator, X, targets, rows, weights, params)
    own_params = params_of_rows(params, rows, len(targets))
    # Some models need labels 0, 1, ... without gaps, but a class may be missing here.
    present, numbers = np.unique(targets[rows], return_inverse=True)
    numbers = numbers.astype(targets.dtype)
    if _is_plain_pipeline(estimator):
        # A pipeline keeps what it is given until it is fitted, but not what its steps make:
        # given row numbers, it frees the copy of the rows after the next step.
        begun = Pipeline([(ROWS, RowTaker(X)), *estimator.steps])
        _fit_weighted(begun, rows, numbers, weights, own_params)
    else:
        _fit_weighted(estimator, take_rows(X, rows), numbers, weights, own_params)
    has_gaps = present[-1] != len(present) - 1
    return Relabelled(estimator, present) if has_gaps else estimator


def _is_plain_pipeline(estimator: Any) -> bool:
    """Whether it has nothing but steps: another pipeline of these fits the same."""
    if type(estimator) is not Pipeline or ROWS in dict(estimator.steps):
        return False
    return vars(estimator) == vars(Pipeline(estimator.steps))


class RowTaker(BaseEstimator):
    """Transforms row numbers to the rows of a table."""

    def __init__(self, X: Any) -> None:
        self.X = X

    def fit(self, rows: Any, y: Any = None) -> Self:
        """Do nothing."""
        return self

    def transform(self, rows: NDArray[np.intp]) -> Any:
        """The rows with these numbers."""
        return take_rows(self.X, rows)


def params_of_rows(
    params: Mapping[str, Any], rows: NDArray[np.intp], n_rows: int
) -> dict[str, Any]:
    """Parameters of ``fit`` for some rows: values with one entry per row are indexed."""
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
    """The name of ``sample_weight`` in ``fit``; in a pipeline, that of the last step."""
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
    if params:  # routed to the steps that request them, and the weights as well
        return estimator.fit(X, y, sample_weight=weights, **params)
    with config_context(enable_metadata_routing=False):
        return estimator.fit(X, y, **{name: weights})


def _has(name: str) -> Any:
    """Make a method available if the inner estimator has it."""
    return available_if(lambda self: hasattr(self.estimator, name))


class Relabelled(ClassifierMixin, BaseEstimator):
    """A fitted classifier of the labels 0, 1, ..., relabelled as ``classes``.

    Parameters
    ----------
    estimator : fitted classifier
    classes : array
        The new labels, in the order of the estimator's classes.

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
        """Predict the label of each row."""
        numbers = np.asarray(self.estimator.predict(X)).ravel().astype(np.intp)
        return self.classes_[numbers]

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of ``classes_``."""
        return self.estimator.predict_proba(X)

    @_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Scores of ``classes_``, or of the second of two."""
        return self.estimator.decision_function(X)

    @property
    def feature_importances_(self) -> Any:
        """Feature importances of the estimator, if it has any."""
        return self.estimator.feature_importances_


class SomeRows(ClassifierMixin, BaseEstimator):
    """A classifier that is trained on a subset of the rows, to save time.

    All rows of the rarer classes are kept if they are at most half of ``max_rows``; rows of
    the largest class are sampled, and weighted to make up for it. If the classifier does
    not accept ``sample_weight``, all classes are sampled in proportion.

    Parameters
    ----------
    estimator : classifier
    max_rows : int, default=10000
    random_state : int, default=0
        Seed of the sample.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier. A pool keeps only this.

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
        """Sorted row numbers, and the number of rows that each represents, if weighted."""
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
        """Sample rows, and fit the classifier on them."""
        self.classes_, numbers = np.unique(y, return_inverse=True)
        weights = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        rows = np.arange(len(numbers))
        model = clone(self)
        fitted = fit_on_rows(model, X, numbers.astype(np.intp), rows, weights, {})
        self.estimator_ = Relabelled(fitted, self.classes_)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label of each row."""
        return self.estimator_.predict(X)

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of ``classes_``."""
        return self.estimator_.predict_proba(X)

    @_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Scores of ``classes_``, or of the second of two."""
        return self.estimator_.decision_function(X)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        own = get_tags(self.estimator)
        tags.input_tags = own.input_tags
        tags.classifier_tags = own.classifier_tags
        return tags


@dataclass(frozen=True, eq=False)
class VoteReader:
    """Turns the predictions of fitted classifiers into votes.

    A hard vote is a predicted class, in one byte: +1 or -1 for two classes, the class
    number for more. A soft vote is 2p - 1 for two classes, where p is the probability of
    the second class; for more, the probability of each class, which is 0 for classes that
    the model has not seen. If a model only has a ``decision_function``, its scores are
    used as log-odds, which keeps the ranking and suits Platt scaling. A model with neither
    casts hard votes.

    Attributes
    ----------
    classes : ndarray of shape (C,)
        The models' labels, in the order of the class numbers. Of two classes, the second is
        the positive one; three or more are sorted.
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
        """Votes of one model: (n,), or (n, C) for soft votes on C > 2 classes."""
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
        """An uninitialised array for the votes of all voters; (n, K) is stored by voter."""
        n_classes = len(self.classes)
        shares = vote_shape(n_rows, n_classes)[1:] if self.voting == "soft" else ()
        dtype = np.float32 if self.voting == "soft" else hard_votes(n_classes).dtype
        return np.empty((n_rows, n_voters, *shares), dtype, order="C" if shares else "F")

    def weighted_sum(
        self, votes: Iterable[NDArray[Any]], weights: Iterable[float]
    ) -> NDArray[np.float64]:
        """Weighted sum of the voters' votes; for C > 2 classes, of each class, (n, C)."""
        total: Any = 0.0
        for weight, vote in zip(weights, votes, strict=True):
            total = total + weight * self._as_numbers(vote)
        return np.asarray(total)

    def _as_numbers(self, votes: NDArray[Any]) -> NDArray[np.float64]:
        """Votes as summable numbers; class numbers become indicators of each class."""
        if votes.dtype == np.uint8:  # class numbers
            votes = np.equal.outer(votes, np.arange(len(self.classes)))
        return votes.astype(np.float64)


def in_parallel(work: Iterable[Any], n_jobs: int | None) -> Iterator[Any]:
    """Results of joblib's ``delayed`` calls in order, with the active backend."""
    try:
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    except ValueError:  # some backends, such as ray's, cannot return a generator
        parallel = Parallel(n_jobs=n_jobs, prefer="threads")
    return iter(parallel(work))


def weighted_importances(
    estimators: Sequence[Any], weights: NDArray[np.float64], *, scaled: bool
) -> NDArray[np.float64]:
    """Weighted mean of the voters' feature importances.

    With ``scaled``, those of each model are scaled to a sum of 1, since models use
    different units, and models without importances are skipped.
    """
    known = [getattr(voter, "feature_importances_", None) for voter in estimators]
    if all(importances is None for importances in known):
        kinds = ", ".join(sorted({type(voter).__name__ for voter in estimators}))
        raise AttributeError(f"the voters ({kinds}) have no feature_importances_")
    total: Any = 0.0
    asked = 0.0
    for weight, importances in zip(weights, known, strict=True):
        if importances is None:  # a constant voter, trained on one class, uses no feature
            continue
        scale = float(np.sum(importances)) if scaled else 1.0
        total = total + weight * np.asarray(importances) / (scale or 1.0)
        asked += weight
    return np.asarray(total / asked if scaled and asked > 0 else total)


# Bagging of any classifier.


@dataclass(frozen=True, eq=False)
class BaggedVoters:
    """Clones of a classifier, each trained on its own sample of the rows.

    Attributes
    ----------
    estimators : list of K classifiers
        Trained on class numbers; of two classes, 1 is the positive one.
    n_without_class : ndarray of shape (C,)
        For each class, the number of samples without it.
    """

    estimators: list[Any]
    n_without_class: NDArray[np.intp]

    @classmethod
    def train(
        cls,
        estimator: Any,
        X: Any,
        targets: NDArray[Any],
        sampling: Sampling,
        n_voters: int,
        *,
        n_classes: int = 2,
        known: BaggedVoters | None = None,
        sample_weight: NDArray[np.float64] | None = None,
        fit_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[BaggedVoters, NDArray[Any]]:
        """See :meth:`damvi.voters.Voters.train`."""
        own_weight = None if sampling.replace else sample_weight
        if own_weight is not None and not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(
                f"{type(estimator).__name__} does not accept sample_weight; use "
                f"bootstrap=True, which samples rows by weight, or another estimator"
            )
        if known is None:
            known = cls([], np.zeros(n_classes, np.intp))
        read = known._read
        work = [delayed(_ask)(voter, X, read) for voter in known.estimators]
        work += [
            delayed(_train_on_sample)(
                estimator, X, targets, sampling, k, own_weight, fit_params or {}, read
            )
            for k in range(len(known), n_voters)
        ]
        results = in_parallel(work, n_jobs)
        votes = read.empty(len(targets), n_voters)
        voters = []
        without = known.n_without_class
        for k, result in enumerate(progress(results, n_voters) if progress else results):
            voter, votes[:, k], absent = result
            voters.append(voter)
            without = without + absent
        return cls(voters, without), votes

    @property
    def classes(self) -> NDArray[np.intp]:
        """The labels of the models: class numbers."""
        return np.arange(len(self.n_without_class))

    @property
    def _read(self) -> VoteReader:
        return VoteReader(self.classes, "hard")

    @property
    def takes_frames(self) -> bool:
        """Whether the models receive dataframes as they are."""
        return True

    def __len__(self) -> int:
        return len(self.estimators)

    def take(self, some: NDArray[np.intp]) -> BaggedVoters:
        """Return these voters alone."""
        return replace(self, estimators=[self.estimators[k] for k in some.tolist()])

    def votes(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """Votes of all voters on ``X``, (n, K): +1 and -1, or class numbers."""
        work = [delayed(self._read)(voter, X) for voter in self.estimators]
        return np.column_stack(list(in_parallel(work, n_jobs)))

    def weighted_vote(
        self, X: Any, weights: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """See :meth:`damvi.voters.Voters.weighted_vote`."""
        asked = np.flatnonzero(weights)
        work = [delayed(self._read)(self.estimators[k], X) for k in asked]
        return self._read.weighted_sum(in_parallel(work, n_jobs), weights[asked])


def _train_on_sample(
    estimator: Any,
    X: Any,
    targets: NDArray[Any],
    sampling: Sampling,
    k: int,
    own_weight: NDArray[np.float64] | None,
    fit_params: dict[str, Any],
    read: VoteReader,
) -> tuple[Any, NDArray[Any], NDArray[np.bool_]]:
    """Train a voter; return it with its votes and a mask of classes not in its sample."""
    rows, times = sampling.sample(k)
    if len(rows) == 0:  # an empty sample: vote for class 0
        rows, times = np.flatnonzero(targets == 0)[:1], np.ones(1, np.intp)
    voter = seeded_clone(estimator, sampling.random_state(k))
    weights = times.astype(np.float64) if sampling.replace else None
    if own_weight is not None:
        weights = own_weight[rows]
    if weights is not None and not has_fit_parameter(estimator, "sample_weight"):
        rows, weights = np.repeat(rows, times), None
    absent = np.bincount(targets[rows], minlength=len(read.classes)) == 0
    if absent.sum() == len(absent) - 1:
        # Many classifiers refuse a single class; use a constant instead.
        voter, fit_params = DummyClassifier(strategy="prior"), {}
    voter = fit_on_rows(voter, X, targets, rows, weights, fit_params)
    return voter, read(voter, X), absent


def _ask(voter: Any, X: Any, read: VoteReader) -> tuple[Any, NDArray[Any], bool]:
    return voter, read(voter, X), False
