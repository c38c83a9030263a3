"""Unlabelled rows: the voters' disagreement on them, in the second moment.

The second moments need no labels. With p the rate of positives,

    M_U = p M+ + (1 - p) M-     so     M-' = (M_U - p M+) / (1 - p),

where M+ is that of the positives without emphasis. It is mixed into the moments of the
labelled negatives with a weight; m and M+ remain those of the labelled rows.

On the datasets of results/semi_supervised this made hardly any difference, and
pseudo-labels (by K-means, or by the vote itself) did more harm than good, so they were
removed.
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
"""Maximum number of times that the weight is tried and halved, before it is set to 0."""
ROUNDING = 1e-12


class Unlabeled:
    """A table without labels, which grid search and cross-validation do not split.

    scikit-learn splits whatever has as many rows as X along with X. An ``Unlabeled`` has
    neither length nor shape, so every fold receives all of it.

    Parameters
    ----------
    X : array, sparse matrix or dataframe
    positive_rate : float, default=None
        The share of positives among these rows, if it differs from that of the labelled
        ones.

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
                f"positive_rate={positive_rate!r} must be between 0 and 1 (exclusive)"
            )
        self.X, self.positive_rate = X, positive_rate

    def __repr__(self) -> str:
        shape = getattr(self.X, "shape", None)
        size = "" if shape is None else f" of {shape[0]} rows"
        return f"<Unlabeled {type(self.X).__name__}{size}>"


@dataclass(frozen=True, eq=False)
class UnlabeledMoments:
    """Second moments of the votes on unlabelled rows.

    Attributes
    ----------
    M : ndarray of shape (K, K)
        Mean of vote * vote' over the rows.
    positive_rate : float or None
        The share of positives among the rows. None is that of the labelled rows.
    """

    M: Matrix
    positive_rate: float | None = None

    @classmethod
    def of(
        cls, blocks: Iterable[NDArray[Any]], positive_rate: float | None = None
    ) -> UnlabeledMoments:
        """Moments of blocks of votes (n, K).

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
        """Moments of a subset of the voters."""
        return replace(self, M=self.M[np.ix_(voters, voters)])


def refine(
    labelled: Sequence[ClassMoments],
    natural: Sequence[Moments | OutOfBagMoments],
    unlabeled: UnlabeledMoments,
    weight: float,
) -> list[Any]:
    """Moments by fold, with unlabelled rows in those of the negatives."""
    return [
        RefinedMoments(own, positives, unlabeled, weight)
        for own, positives in zip(labelled, natural, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class RefinedMoments:
    """Moments of labelled rows, with unlabelled rows in those of the negatives.

    Attributes
    ----------
    labelled : ClassMoments
    natural : Moments or OutOfBagMoments
        Moments of the positives without emphasis.
    unlabeled : UnlabeledMoments
    weight : float in [0, 1)
        Weight of the unlabelled rows. It is reduced if the moments are otherwise
        inconsistent: no votes have a first moment above the root of the second.
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
        """Total weight of the labelled rows; 0 if there are none."""
        return self.labelled.total

    def moments(self) -> Moments:
        """Moments of both classes, for the solver."""
        return self._settled[1]

    moments_to_learn = moments

    def means(self) -> tuple[Matrix, Matrix]:
        """See :meth:`damvi.moments.ClassMoments.means`; of the labelled rows alone."""
        return self.labelled.means()

    def centred(self) -> Moments:
        """Central moments."""
        votes, signs = self.means()
        m, M = self.moments().normalised()
        spread = nearest_semi_definite(M - np.outer(votes, votes))
        return Moments(m - signs * votes, spread, 1)

    @property
    def shares(self) -> None:
        """None, since unlabelled rows need two classes."""

    @property
    def settled_weight(self) -> float:
        """The weight actually used."""
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
        """M-', and a mask of known entries: pairs that share out-of-bag positives."""
        M, known = _second_moments(self.natural)
        p = self.unlabeled.positive_rate
        if p is None:
            up, down = float(self.natural.total), float(self.labelled.negatives.total)
            if down == 0:  # no negatives to refine
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
        # Out-of-bag means are already positive semi-definite.
        return replace(both, M=nearest_semi_definite(both.M)) if is_plain else both


def _second_moments(side: Moments | OutOfBagMoments) -> tuple[Matrix, NDArray[np.bool_]]:
    """Mean of vote * vote' for each pair of voters, and a mask of pairs that have one."""
    if isinstance(side, Moments):
        return side.M / max(side.total, 1), np.full(side.M.shape, side.total > 0)
    rows = np.asarray(side.rows.M, dtype=np.float64)
    known = rows > 0
    return np.divide(side.sums.M, rows, out=np.zeros(rows.shape), where=known), known


def split_unlabeled(X: Any, y: Any) -> tuple[Any, Any, Any]:
    """Split a table into labelled and unlabelled rows.

    Parameters
    ----------
    X : array, sparse matrix or dataframe of shape (n, n_features)
    y : array of shape (n,)
        Labels, with NaN, None or NA where there is none.

    Returns
    -------
    X : the labelled rows
    y : ndarray
        Their labels, as integers if they are integral.
    X_unlabeled : Unlabeled or None
        The unlabelled rows, to be passed to ``fit``; None if there are none.

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
            f"X has {n} rows, but y has {len(missing)}; give a label or None for each row"
        )
    if n and missing.all():
        refuse_missing_labels(y)
    values = y.to_numpy() if hasattr(y, "to_numpy") else np.array(y, dtype=object)
    known = np.array(np.asarray(values)[~missing].tolist())
    if known.dtype.kind == "f" and (known == np.rint(known)).all():
        known = known.astype(np.int64)  # they were floats because of NaN
    labelled = take_rows(X, np.flatnonzero(~missing))
    if not missing.any():
        return labelled, known, None
    return labelled, known, Unlabeled(take_rows(X, np.flatnonzero(missing)))
