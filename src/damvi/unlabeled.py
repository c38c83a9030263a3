"""Rows without a label: how the voters disagree on them, in the second moment.

The second moments need no labels. With p the rate of positives,

    M_U = p M+ + (1 - p) M-     so     M-' = (M_U - p M+) / (1 - p),

where M+ is that of positives as they come, without emphasis. It is mixed into the moments
of the labelled negatives with a weight; m and M+ stay those of labelled rows.

On the datasets of results/semi_supervised this changed next to nothing, and pseudo-labels
(by K-means, or by the vote itself) harmed more often than they helped: they were removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._compat import take_rows
from .labels import missing_labels, refuse_missing_labels
from .moments import ClassMoments, Moments, OutOfBagMoments, nearest_semi_definite
from .solvers import exact

Matrix = NDArray[np.float64]
HALVINGS = 4
"""How often a weight is tried and halved, before it is 0."""
ROUNDING = 1e-12


class Unlabeled:
    """A table without labels, that a grid search or a cross-validation leaves alone.

    scikit-learn cuts whatever has as many rows as X along with X. What is wrapped has no
    length and no shape, so it arrives whole in every fold.

    Parameters
    ----------
    X : array, sparse matrix or dataframe
    positive_rate : float, default=None
        The share of positives among these rows, if it is not that of the labelled ones.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import GridSearchCV
    >>> from damvi import DAMVIClassifier, Unlabeled
    >>> X, y = make_classification(400, weights=[0.8], random_state=0)
    >>> model = DAMVIClassifier(n_estimators=10, unlabeled_weight=0.5, random_state=0)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     model = model.set_fit_request(X_unlabeled=True)
    ...     search = GridSearchCV(model, {"unlabeled_weight": [0.25, 0.5]}, cv=2)
    ...     search = search.fit(X[:200], y[:200], X_unlabeled=Unlabeled(X[200:]))
    >>> search.best_estimator_.predict(X[:3])
    array([0, 0, 0])
    """

    __slots__ = ("X", "positive_rate")
    X: Any
    positive_rate: float | None

    def __init__(self, X: Any, positive_rate: float | None = None) -> None:
        if positive_rate is not None and not 0 < positive_rate < 1:
            raise ValueError(
                f"positive_rate={positive_rate!r} must be a share above 0 and below 1"
            )
        self.X, self.positive_rate = X, positive_rate

    def __repr__(self) -> str:
        shape = getattr(self.X, "shape", None)
        size = "" if shape is None else f" of {shape[0]} rows"
        return f"<Unlabeled {type(self.X).__name__}{size}>"


@dataclass(frozen=True, eq=False)
class UnlabeledMoments:
    """The second moments of the votes on unlabelled rows.

    Attributes
    ----------
    M : ndarray of shape (K, K)
        The mean of vote * vote' over the rows.
    positive_rate : float or None
        The share of positives among the rows. None: that of the labelled ones.
    """

    M: Matrix
    positive_rate: float | None = None

    @classmethod
    def of(
        cls, blocks: Iterable[NDArray[Any]], positive_rate: float | None = None
    ) -> UnlabeledMoments:
        """From blocks of votes (n, K).

        Examples
        --------
        >>> import numpy as np
        >>> votes = np.array([[1, 1], [1, -1], [-1, -1], [-1, -1]], dtype=np.int8)
        >>> UnlabeledMoments.of([votes[:3], votes[3:]]).M
        array([[1. , 0.5],
               [0.5, 1. ]])
        """
        total = sum(Moments.of(votes, np.ones(len(votes), np.int8)) for votes in blocks)
        assert isinstance(total, Moments)  # there are rows
        return cls(_second_moments(total)[0], positive_rate)

    def take(self, voters: NDArray[np.intp]) -> UnlabeledMoments:
        """Those of some voters."""
        return replace(self, M=self.M[np.ix_(voters, voters)])


def refine(
    labelled: Sequence[ClassMoments],
    natural: Sequence[Moments | OutOfBagMoments],
    unlabeled: UnlabeledMoments,
    weight: float,
) -> list[Any]:
    """Moments by fold, whose negatives are refined by unlabelled rows."""
    return [
        RefinedMoments(own, positives, unlabeled, weight)
        for own, positives in zip(labelled, natural, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class RefinedMoments:
    """Moments of labelled rows whose negatives are refined by unlabelled ones.

    Attributes
    ----------
    labelled : ClassMoments
    natural : Moments or OutOfBagMoments
        Of the positives as they come, without emphasis.
    unlabeled : UnlabeledMoments
    weight : float in [0, 1)
        That of the unlabelled rows. It is lowered where the moments would promise what no
        votes can keep, a first moment above the root of the second.
    """

    labelled: ClassMoments
    natural: Any
    unlabeled: UnlabeledMoments
    weight: float

    def __add__(self, other: RefinedMoments) -> RefinedMoments:
        return replace(
            self,
            labelled=self.labelled + other.labelled,
            natural=self.natural + other.natural,
        )

    def __sub__(self, other: RefinedMoments) -> RefinedMoments:
        return replace(
            self,
            labelled=self.labelled - other.labelled,
            natural=self.natural - other.natural,
        )

    @property
    def total(self) -> float:
        """The weight of the labelled rows; 0 if there are none."""
        return self.labelled.total

    def moments(self) -> Moments:
        """Of both classes, as a solver takes them."""
        return self._settled[1]

    moments_to_learn = moments

    def means(self) -> tuple[Matrix, Matrix]:
        """As :meth:`damvi.moments.ClassMoments.means`, of the labelled rows alone."""
        return self.labelled.means()

    def centred(self) -> Moments:
        """Moments about the means."""
        votes, signs = self.means()
        m, M = self.moments().normalised()
        spread = nearest_semi_definite(M - np.outer(votes, votes))
        return Moments(m - signs * votes, spread, 1)

    @property
    def shares(self) -> None:
        """There are none of two classes, and it takes two."""

    @property
    def settled_weight(self) -> float:
        """The weight that was left."""
        return self._settled[0]

    @cached_property
    def _settled(self) -> tuple[float, Moments]:
        for halving in range(HALVINGS):
            weight = self.weight / 2**halving
            moments = self._mixed(weight)
            Q = exact(moments).weights
            if moments.mu1(Q) ** 2 <= moments.mu2(Q) * (1 + ROUNDING):
                return weight, moments
        return 0.0, self.labelled.moments()

    def negatives(self) -> tuple[Matrix, NDArray[np.bool_]]:
        """M-', and where it is known: on pairs that share out-of-bag positives."""
        M, known = _second_moments(self.natural)
        p = self.unlabeled.positive_rate
        if p is None:
            up, down = float(self.natural.total), float(self.labelled.negatives.total)
            if down == 0:  # none to refine, and no rate of positives below 1
                return np.zeros_like(M), np.zeros_like(known)
            p = up / (up + down)
        return (self.unlabeled.M - p * M) / (1 - p), known

    def _mixed(self, weight: float) -> Moments:
        side: Any = self.labelled.negatives
        refined, known = self.negatives()
        is_plain = isinstance(side, Moments)
        sums = side if is_plain else side.sums
        rows = float(side.total) if is_plain else np.asarray(side.rows.M, np.float64)
        M = np.where(known, (1 - weight) * sums.M + weight * rows * refined, sums.M)
        sums = replace(sums, M=M)
        mixed = sums if is_plain else replace(side, sums=sums)
        both: Moments = replace(self.labelled, negatives=mixed).moments()
        # Means over out-of-bag rows are made so already.
        return replace(both, M=nearest_semi_definite(both.M)) if is_plain else both


def _second_moments(side: Moments | OutOfBagMoments) -> tuple[Matrix, NDArray[np.bool_]]:
    """The mean of vote * vote' for each pair, and for which there is one."""
    if isinstance(side, Moments):
        return side.M / max(side.total, 1), np.full(side.M.shape, side.total > 0)
    rows = np.asarray(side.rows.M, dtype=np.float64)
    known = rows > 0
    return np.divide(side.sums.M, rows, out=np.zeros(rows.shape), where=known), known


def split_unlabeled(X: Any, y: Any) -> tuple[Any, Any, Any]:
    """The rows with a label, their labels, and the rows without one.

    Parameters
    ----------
    X : array, sparse matrix or dataframe of shape (n, n_features)
    y : array of shape (n,)
        NaN, None or NA where there is no label.

    Returns
    -------
    X : the labelled rows
    y : ndarray
        Their labels, as whole numbers where they are.
    X_unlabeled : Unlabeled or None
        The others, to be given to ``fit``; None where all rows have a label.

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.unlabeled import split_unlabeled
    >>> X, y = np.arange(6.0).reshape(3, 2), [0, None, 1]
    >>> X, y, X_unlabeled = split_unlabeled(X, y)
    >>> y, X_unlabeled.X
    (array([0, 1]), array([[2., 3.]]))
    """
    missing = missing_labels(y)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if len(missing) != n:
        raise ValueError(
            f"X has {n} rows and y {len(missing)}; give a label, or None, each"
        )
    if n and missing.all():
        refuse_missing_labels(y)
    values = y.to_numpy() if hasattr(y, "to_numpy") else np.array(y, dtype=object)
    known = np.array(np.asarray(values)[~missing].tolist())
    if known.dtype.kind == "f" and (known == np.rint(known)).all():
        known = known.astype(np.int64)  # NaN had made floats of them
    labelled = take_rows(X, np.flatnonzero(~missing))
    if not missing.any():
        return labelled, known, None
    return labelled, known, Unlabeled(take_rows(X, np.flatnonzero(missing)))
