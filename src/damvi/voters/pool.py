"""A pool of different models as voters: out of fold, or already fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted

from .._blas import one_blas_thread
from .._threads import one_openmp_thread
from .asking import AskPositive, FoldModels, Voting
from .class_asking import AskClasses
from .interface import Progress
from .out_of_fold import Asker, Named, blame, train_out_of_fold
from .parallel import in_parallel

Calibrator = Callable[[NDArray[Any]], NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class PoolVoters:
    """Different models, by name, each one voter.

    Attributes
    ----------
    names : tuple of str
    estimators : list of K classifiers
        A voter that kept the models of its folds is a
        :class:`~damvi.voters.asking.FoldModels`.
    voting : {"hard", "soft"}
        Votes are decisions (+1 and -1, one byte) or 2p - 1 (float32); see
        :func:`~damvi.voters.asking.ask` for models without probabilities.
    positive : label
        What the models call the positive class.
    calibrators : sequence of K functions, optional
        From a voter's soft votes to calibrated ones.
    classes : ndarray, optional
        What the models call the classes, if there are more than two; votes are then as
        :class:`~damvi.voters.class_asking.AskClasses` says.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> pool = [("linear", LogisticRegression()), ("bayes", GaussianNB())]
    >>> voters, votes, folds = PoolVoters.train(pool, X, y.astype(np.int8), seed=0)
    >>> votes.shape, votes.dtype, np.bincount(folds)
    ((500, 2), dtype('float32'), array([100, 100, 100, 100, 100]))
    >>> voters.weighted_vote(X[:2], np.array([0.5, 0.5])) < 0
    array([ True,  True])
    """

    names: tuple[str, ...]
    estimators: list[Any]
    voting: Voting = "soft"
    positive: Any = 1
    calibrators: Sequence[Calibrator] | None = None
    classes: NDArray[Any] | None = None

    @classmethod
    def train(
        cls,
        named: Named,
        X: Any,
        y: NDArray[Any],
        *,
        classes: NDArray[Any] | None = None,
        seed: int,
        cv: Any = 5,
        groups: Any = None,
        voting: Voting = "soft",
        refit: bool = True,
        sample_weight: NDArray[np.float64] | None = None,
        fit_params: Mapping[str, Mapping[str, Any]] | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[PoolVoters, NDArray[Any], NDArray[np.int32]]:
        """Train the pool, with each voter's votes on rows that it has not seen.

        Parameters
        ----------
        named : sequence of (str, classifier)
            They are cloned, and every random state in them set from ``seed`` and the
            name, so that a voter is the same in any pool.
        X : array, sparse matrix or dataframe
            The models get its rows as they are.
        y : array of int8
            1 for the positives and 0 for the others, which is what the models learn.
        classes : array, optional
            If there are more than two: 0, 1, 2, ..., and ``y`` holds these.
        seed : int
        cv : int, splitter or iterable of (train, test), default=5
            See :func:`~damvi.voters.folds.split_rows`.
        groups : array of shape (n,), optional
        voting : {"hard", "soft"}, default="soft"
        refit : bool, default=True
            Train each voter once more, on all rows. False keeps the models of the folds,
            and their mean votes: no more training, but that many models to ask.
        sample_weight : array of shape (n,), optional
            For the models' ``fit``; if weights differ, all models must take them. Rows
            of weight 0 train nobody.
        fit_params : dict of dict, optional
            For each name, what else to give to ``fit``. Values with one entry a row are
            taken along with the rows.
        n_jobs : int, optional
            Models trained at a time, in threads (``joblib.parallel_config`` can choose
            processes). No result depends on it. Each model runs on one thread, unless
            its own ``n_jobs`` asks for more: leave that at 1 here.
        progress : callable, optional
            Follows the trainings, (folds + refit) times K of them.

        Returns
        -------
        voters : PoolVoters
        votes : ndarray of shape (n, K), or (n, K, C) for soft votes of C > 2 classes
            Out of fold: each row's by models that were trained without its fold.
        folds : ndarray of shape (n,)
            The fold of each row.
        """
        names = _names_of(named)
        estimators, votes, folds = train_out_of_fold(
            named,
            X,
            y,
            seed=seed,
            cv=cv,
            groups=groups,
            asker=_asker(voting, 1, classes),
            refit=refit,
            sample_weight=sample_weight,
            fit_params=fit_params,
            n_jobs=n_jobs,
            progress=progress,
        )
        return cls(names, estimators, voting, classes=classes), votes, folds

    @classmethod
    def prefit(
        cls, named: Named, *, classes: Any, positive: Any, voting: Voting = "soft"
    ) -> PoolVoters:
        """Models that are fitted already, on the labels ``classes``, as they are.

        Examples
        --------
        >>> from sklearn.naive_bayes import GaussianNB
        >>> model = GaussianNB().fit([[0.0], [1.0], [4.0], [5.0]], ["a", "a", "b", "b"])
        >>> pool = [("bayes", model)]
        >>> voters = PoolVoters.prefit(pool, classes=["a", "b"], positive="b")
        >>> voters.votes([[0.0], [5.0]]).ravel()
        array([-1.,  1.], dtype=float32)
        """
        names = _names_of(named)
        for name, model in named:
            try:
                check_is_fitted(model)
            except Exception as error:
                raise blame(error, f"voter {name!r}") from error
            known = list(getattr(model, "classes_", classes))
            # Of more than two, a model may have missed some.
            lost = len(classes) == 2 and any(label not in known for label in classes)
            if lost or any(label not in classes for label in known):
                raise ValueError(
                    f"voter {name!r} was fitted on the classes {known}, but y has "
                    f"{list(classes)}; give labels of the same kind"
                )
        models = [model for _, model in named]
        many = None if len(classes) == 2 else np.asarray(classes)
        return cls(names, models, voting, positive, classes=many)

    def calibrated(self, calibrators: Sequence[Calibrator]) -> PoolVoters:
        """The same voters, with their soft votes put right by these functions."""
        if self.voting != "soft":
            raise ValueError("hard votes cannot be calibrated; use voting='soft'")
        if len(calibrators) != len(self):
            raise ValueError(f"{len(calibrators)} calibrators for {len(self)} voters")
        return replace(self, calibrators=list(calibrators))

    def __len__(self) -> int:
        return len(self.names)

    def take(self, some: NDArray[np.intp]) -> PoolVoters:
        """These voters alone."""

        def taken(values: Sequence[Any]) -> list[Any]:
            return [values[k] for k in some.tolist()]

        return replace(
            self,
            names=tuple(taken(self.names)),
            estimators=taken(self.estimators),
            calibrators=None if self.calibrators is None else taken(self.calibrators),
        )

    @property
    def n_without_positive(self) -> int:
        """None of them: folds that would train without positives are refused."""
        return 0

    @property
    def n_without_class(self) -> NDArray[np.intp]:
        """None of them, as far as is known."""
        return np.zeros(2 if self.classes is None else len(self.classes), np.intp)

    def votes(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """The votes of all voters on ``X``, (n, K), or (n, K, C)."""
        said = list(self._ask(range(len(self)), X, n_jobs))
        stacked = np.stack(said, axis=1)
        return stacked if stacked.ndim == 3 else np.asfortranarray(stacked)

    def weighted_vote(
        self, X: Any, weights: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Sum of the voters' votes on ``X``; voters of weight 0 are not asked.

        With more than two classes: the weight behind each, (n, C).
        """
        asked = np.flatnonzero(weights).tolist()
        total: Any = 0.0
        for k, said in zip(asked, self._ask(asked, X, n_jobs), strict=True):
            total = total + weights[k] * self._asker.spread(said)
        return np.asarray(total)

    def _ask(
        self, asked: Iterable[int], X: Any, n_jobs: int | None
    ) -> Iterator[NDArray[Any]]:
        with one_blas_thread():
            yield from in_parallel((delayed(self._vote)(k, X) for k in asked), n_jobs)

    def _vote(self, k: int, X: Any) -> NDArray[Any]:
        model = self.estimators[k]
        models = model.models if isinstance(model, FoldModels) else [model]
        ask = self._asker
        try:
            with one_openmp_thread():
                said = [ask(one, X) for one in models]
        except Exception as error:
            raise blame(error, f"voter {self.names[k]!r} failed") from error
        if self.calibrators is not None:
            # One by one, as the votes that the calibrator was fitted on were cast.
            said = [self.calibrators[k](one) for one in said]
        return ask.together(said)

    @property
    def _asker(self) -> Asker:
        return _asker(self.voting, self.positive, self.classes)


def _asker(voting: Voting, positive: Any, classes: NDArray[Any] | None) -> Asker:
    """How the models are asked, of one class or of many."""
    if classes is None:
        return AskPositive(voting, positive)
    return AskClasses(voting, classes)


def _names_of(named: Named) -> tuple[str, ...]:
    names = tuple(name for name, _ in named)
    if not names:
        raise ValueError("the pool is empty; give at least one (name, classifier)")
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"the voters' names must differ; {twice} appear more than once")
    for name, estimator in named:
        if not hasattr(estimator, "predict") or is_regressor(estimator):
            raise ValueError(
                f"voter {name!r} ({type(estimator).__name__}) is not a classifier, and "
                f"only classifiers can vote"
            )
    return names
