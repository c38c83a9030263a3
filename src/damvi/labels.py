"""Labels as class numbers and back: the positive class, and ties.

Each row has a *target*: the position 0, 1, ... of its label in ``classes``. With two
classes, 1 is always the positive one, whatever its label. The vote on a row is a number in
[-1, 1] for the positive class of two, and a share for each of three or more classes. A tie
goes to the class with more training rows; see ``Labels.order`` and ``settle``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from .messages import counted

Numbers = NDArray[np.float64]
Targets = NDArray[np.integer[Any]]

MAX_CLASSES = 256
"""A hard vote is stored in one byte."""
TIE = 2.0**-52
"""Score of a tie that goes to class 1 of two: the smallest step between two votes."""
FRACTIONAL_BITS = 30


@dataclass(frozen=True, eq=False)
class ClassTotals:
    """Number of rows and total weight of each class. Totals of parts of a table add up.

    Weights are summed as integer multiples of 2**-30, so that the sum does not depend on
    the order of the parts.

    Attributes
    ----------
    rows : ndarray of int64, shape (C,)
        Number of rows.
    counted : ndarray of int64, shape (C,)
        Number of rows whose weight is not 0.
    units : ndarray of int64, shape (C,)
        Total weight, in units of 2**-30.

    Examples
    --------
    >>> import numpy as np
    >>> totals = ClassTotals.of(np.array([0, 0]), 2)
    >>> totals += ClassTotals.of(np.array([1]), 2, np.array([0.5]))
    >>> totals.rows, totals.weight
    (array([2, 1]), array([2. , 0.5]))
    """

    rows: NDArray[np.int64]
    counted: NDArray[np.int64]
    units: NDArray[np.int64]

    @classmethod
    def of(
        cls, targets: Targets, n_classes: int, weights: Numbers | None = None
    ) -> ClassTotals:
        """Totals of rows with these targets; ``weights`` must be in [0, 1]."""
        rows = np.bincount(targets, minlength=n_classes).astype(np.int64)
        if weights is None:
            return cls(rows, rows, rows << FRACTIONAL_BITS)
        counted = np.bincount(targets[weights > 0], minlength=n_classes).astype(np.int64)
        fixed = np.rint(np.ldexp(weights, FRACTIONAL_BITS)).astype(np.int64)
        units = np.zeros(n_classes, np.int64)
        np.add.at(units, targets, fixed)
        return cls(rows, counted, units)

    def __add__(self, other: ClassTotals) -> ClassTotals:
        return ClassTotals(
            self.rows + other.rows,
            self.counted + other.counted,
            self.units + other.units,
        )

    @property
    def n_rows(self) -> int:
        return int(self.rows.sum())

    @property
    def weight(self) -> Numbers:
        """Total weight of each class."""
        return np.ldexp(self.units.astype(np.float64), -FRACTIONAL_BITS)


@dataclass(frozen=True, eq=False)
class Labels:
    """The classes of a table, which of them are of interest, and which wins a tie.

    Everything that depends on the number of classes is a method of this class. With three
    or more classes, all of them are of interest; with two, only the positive one, see
    :class:`BinaryLabels`.

    Attributes
    ----------
    classes : ndarray of shape (C,)
        The labels, sorted.
    pos_label : label or None
        The positive class; None with three or more classes.
    order : ndarray of shape (C,)
        Positions in ``classes``, most frequent class first: of tied classes, the first
        wins. Two equally frequent classes have the negative one first.
    n_classes : int

    Examples
    --------
    >>> labels, targets = Labels.read(["no", "no", "yes", "no"])
    >>> labels.pos_label, targets
    (np.str_('yes'), array([0, 0, 1, 0], dtype=int8))
    >>> labels.predict(labels.scores(np.array([-0.2, 0.0, 0.4]), 0.0))
    array(['no', 'no', 'yes'], dtype='<U3')
    """

    classes: NDArray[Any]
    pos_label: Any
    order: NDArray[np.intp]
    n_classes: int = field(init=False)

    is_binary: ClassVar[bool] = False
    averaged: ClassVar[str] = "macro_"
    """Prefix of score names: scores are averages over the classes of interest."""
    vote_limits: ClassVar[tuple[float, float]] = (0.0, 1.0)
    _target_type: ClassVar[type[np.signedinteger[Any]]] = np.intp

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_classes", len(self.classes))

    @classmethod
    def read(cls, y: Any, pos_label: Any = None) -> tuple[Labels, Targets]:
        """Return the classes of ``y``, and the target of each row."""
        classes, places, counts = read_classes(y)
        labels = cls.from_counts(classes, counts, pos_label)
        return labels, labels.targets_at(places)

    @classmethod
    def from_counts(
        cls, classes: NDArray[Any], counts: NDArray[Any], pos_label: Any = None
    ) -> Labels:
        """Make labels from the sorted classes and their numbers of rows."""
        check_classes(classes, counts)
        return Labels.kind(len(classes))._ordered(classes, counts, pos_label)

    @staticmethod
    def kind(n_classes: int) -> type[Labels]:
        """The class of labels for this number of classes."""
        return BinaryLabels if n_classes == 2 else Labels

    @classmethod
    def _ordered(
        cls, classes: NDArray[Any], counts: NDArray[Any], pos_label: Any
    ) -> Labels:
        if pos_label is not None:
            raise ValueError(
                f"Only binary classification is supported with pos_label={pos_label!r}, "
                f"but y has {len(classes)} classes; leave it out, or name one class "
                f"against the rest, as in y == {pos_label!r}"
            )
        return cls(classes, None, np.argsort(-counts, kind="stable"))

    @staticmethod
    def restored(classes: NDArray[Any], pos_label: Any, order: NDArray[np.intp]) -> Labels:
        """Make labels from attributes that were read from a file."""
        kind = Labels if pos_label is None else BinaryLabels
        return kind(classes, pos_label, order)

    @staticmethod
    def vote_shape(n_rows: Any, n_classes: int) -> tuple[Any, ...]:
        return (n_rows, n_classes)

    @staticmethod
    def hard_votes(n_classes: int) -> NDArray[np.int8] | NDArray[np.uint8]:
        return np.arange(n_classes, dtype=np.uint8)

    @property
    def tuned_for(self) -> str:
        """The default objective of the threshold."""
        return f"{self.averaged}f1"

    @property
    def reported(self) -> NDArray[np.intp]:
        """Targets of the classes of interest: those that have votes and scores."""
        return np.arange(self.n_classes)

    @property
    def usual(self) -> int:
        """Target of the class that needs no action: the most frequent one."""
        return int(self.target_order[0])

    @property
    def _places(self) -> NDArray[Any]:
        """Position of each target in ``classes``, which is also the inverse mapping."""
        places = np.arange(self.n_classes, dtype=self._target_type)
        return places[::-1] if self.pos_label == self.classes[0] else places

    @property
    def by_target(self) -> NDArray[Any]:
        """The labels in the order of the targets: of two, the positive one last."""
        return self.classes[self._places]

    @property
    def target_order(self) -> NDArray[np.intp]:
        """``order`` as targets."""
        return self._places[self.order].astype(np.intp)

    def targets_at(self, places: NDArray[np.intp]) -> Targets:
        """Targets of rows whose labels have these positions in ``classes``."""
        targets: Targets = self._places[places]
        return targets

    def targets_of(self, y: Any) -> Targets:
        """Targets of rows seen after the fit, whose labels must be known."""
        y = column_or_1d(y, warn=True)
        labels = self.classes.tolist()
        places = {label: place for place, label in enumerate(labels)}
        found = np.array([places.get(label, -1) for label in y.tolist()], dtype=np.intp)
        unknown = np.flatnonzero(found < 0)
        if len(unknown):
            raise ValueError(
                f"y is {y.tolist()[unknown[0]]!r} at row {unknown[0]}, which is not one "
                f"of the model's classes {labels} ({len(unknown)} of {len(y)} rows have "
                f"unknown labels); remove rows without a label"
            )
        return self.targets_at(found)

    def totals(self, targets: Targets, weights: Numbers | None) -> ClassTotals:
        return ClassTotals.of(targets, self.n_classes, weights)

    def class_weight(self, weight: Numbers, balance: float) -> Numbers:
        """Weight of a row of each class when votes are calibrated and weighted.

        ``weight`` is the total weight of each class. With ``balance`` 0 all rows count the
        same, with 1 all classes do.
        """
        return np.asarray((weight.max() / weight) ** balance)

    def rare(self, sizes: NDArray[Any]) -> NDArray[np.bool_]:
        """Mask of the classes whose size (rows, or weight) is below average.

        With two classes, the positive one.
        """
        return np.asarray(sizes * self.n_classes < sizes.sum())

    def reweighted(self, totals: ClassTotals) -> NDArray[np.bool_]:
        """Mask of the classes whose missed rows gain weight in step 2."""
        return self.rare(totals.weight)

    def scores(self, vote: Numbers, threshold: Any) -> Numbers:
        """The decision function: the vote compared with the threshold, and ties resolved.

        With two classes, of shape (n,), and positive values predict ``classes[1]``; with
        more, of shape (n, C), and the largest value is predicted.
        """
        return settle(vote * threshold, self.order)

    def predict(self, scores: Numbers) -> NDArray[Any]:
        """The labels that the decision function predicts."""
        return self.classes[scores.argmax(axis=1)]

    def probabilities(self, vote: Numbers, calibrator: Any = None) -> Numbers:
        """The vote rescaled to [0, 1], or calibrated probabilities: (n, C)."""
        return settle(vote, self.order) if calibrator is None else calibrator(vote)

    def chances(self, vote: Numbers, calibrator: Any = None) -> Numbers:
        """The probabilities of the classes of interest, in the shape of ``vote``."""
        return self.probabilities(vote, calibrator)

    def require_two(self, what: str) -> None:
        """Raise an error, unless there are two classes."""
        raise ValueError(
            f"{what} supports two classes only, but y has {self.n_classes}; leave it out, "
            f"or fit one class against the rest: y == {self.classes.tolist()[0]!r}"
        )

    def told(self, threshold: Any) -> dict[str, Any]:
        """The threshold as plain values, under the name that users see."""
        return {"factors": threshold.tolist()}

    def allows(self, threshold: Any) -> bool:
        """Whether this is a valid threshold for these classes."""
        known = isinstance(threshold, np.ndarray) and threshold.dtype == np.float64
        if not known or threshold.shape != self.classes.shape:
            return False
        return bool((np.isfinite(threshold) & (threshold > 0)).all())

    def flags_above(self, threshold: Any) -> float:
        """The largest vote for a class that does not yet predict it.

        With three or more classes, no vote for one class alone decides.
        """
        return self.vote_limits[1]

    def as_vote(self, columns: Numbers) -> Numbers:
        """Turn columns (n, R) of the R classes of interest into the shape of a vote."""
        return columns

    def votes_for(self, votes: NDArray[Any], target: int) -> NDArray[Any]:
        """Votes of K voters for one of the classes of interest, (n, K)."""
        is_hard = votes.dtype.kind == "u"
        return votes == target if is_hard else votes[:, :, target]

    def against_the_rest(
        self, votes: NDArray[Any], y: Any, label: Any
    ) -> tuple[NDArray[Any], Any, Any]:
        """What K voters say for the class of this label, (n, K) in [-1, 1].

        Also labels of two classes, and which of these is the positive one.
        """
        places = np.flatnonzero(self.classes == label)
        if not len(places):
            raise ValueError(
                f"one of the {self.n_classes} classes is shown against the rest; choose "
                f"it, as in pos_label={self.classes.tolist()[-1]!r}"
            )
        shares = self.votes_for(votes, int(places[0]))
        # Hard votes stay whole numbers.
        shares = shares.astype(np.result_type(shares, np.int8))
        return 2 * shares - 1, np.asarray(y) == label, True

    def decided_by_each(self, votes: NDArray[Any], threshold: Any) -> NDArray[np.intp]:
        """Target that each of K voters predicts on its own, (n, K)."""
        is_hard = votes.dtype.kind == "u"
        return (votes if is_hard else (votes * threshold).argmax(axis=2)).astype(np.intp)

    def unseen_class_warning(
        self, n_without_class: NDArray[np.intp], n_voters: int, rows: NDArray[np.int64]
    ) -> str | None:
        """A warning if the samples of some voters have no row of a class, else None."""
        if not n_without_class.any():
            return None
        worst = int(np.argmax(n_without_class))
        more = int((n_without_class > 0).sum()) - 1
        others = f" (likewise for {more} of the other classes)" if more else ""
        n_rows = counted(int(rows[worst]), "row")
        return (
            f"{int(n_without_class[worst])} of {n_voters} samples drew none of the "
            f"{n_rows} of class {self.by_target.tolist()[worst]!r}, so these voters never "
            f"vote for it{others}; stratified=True samples each class separately"
        )


@dataclass(frozen=True, eq=False)
class BinaryLabels(Labels):
    """Two classes, of which the positive one is of interest; its target is always 1.

    The vote is one number per row. Everything special to two classes is here.
    """

    is_binary: ClassVar[bool] = True
    averaged: ClassVar[str] = ""
    vote_limits: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    _target_type: ClassVar[type[np.signedinteger[Any]]] = np.int8

    @classmethod
    def _ordered(
        cls, classes: NDArray[Any], counts: NDArray[Any], pos_label: Any
    ) -> Labels:
        positive = _positive_place(classes, counts, pos_label)
        # The larger one wins a tie; of two equal classes, the negative one.
        is_larger = counts[positive] > counts[1 - positive]
        majority = positive if is_larger else 1 - positive
        return cls(classes, classes[positive], np.array([majority, 1 - majority]))

    @staticmethod
    def vote_shape(n_rows: Any, n_classes: int) -> tuple[Any, ...]:
        return (n_rows,)

    @staticmethod
    def hard_votes(n_classes: int) -> NDArray[np.int8] | NDArray[np.uint8]:
        return np.array([-1, 1], np.int8)

    @property
    def reported(self) -> NDArray[np.intp]:
        return np.array([1])

    @property
    def usual(self) -> int:
        return 0

    def class_weight(self, weight: Numbers, balance: float) -> Numbers:
        # Relative to the negative class.
        return np.array([1.0, float(weight[0] / weight[1]) ** balance])

    def rare(self, sizes: NDArray[Any]) -> NDArray[np.bool_]:
        return np.array([False, True])

    def scores(self, vote: Numbers, threshold: Any) -> Numbers:
        return self._towards_last(vote - threshold)

    def predict(self, scores: Numbers) -> NDArray[Any]:
        return self.classes[(scores > 0).astype(np.intp)]

    def probabilities(self, vote: Numbers, calibrator: Any = None) -> Numbers:
        if calibrator is None:
            last = (1 + self._towards_last(vote)) / 2
        else:
            positive = calibrator(vote)
            last = positive if self.pos_label == self.classes[1] else 1 - positive
        return np.column_stack([1 - last, last])

    def chances(self, vote: Numbers, calibrator: Any = None) -> Numbers:
        return (1 + vote) / 2 if calibrator is None else calibrator(vote)

    def require_two(self, what: str) -> None:
        pass

    def told(self, threshold: Any) -> dict[str, Any]:
        return {"threshold": float(threshold)}

    def allows(self, threshold: Any) -> bool:
        return isinstance(threshold, float) and not np.isnan(threshold)

    def flags_above(self, threshold: Any) -> float:
        # If positives win ties, votes equal to the threshold are positive too.
        wins_ties = positive_wins(self.target_order)
        return float(np.nextafter(threshold, -np.inf)) if wins_ties else float(threshold)

    def as_vote(self, columns: Numbers) -> Numbers:
        return columns[:, 0]

    def votes_for(self, votes: NDArray[Any], target: int) -> NDArray[Any]:
        return votes

    def against_the_rest(
        self, votes: NDArray[Any], y: Any, label: Any
    ) -> tuple[NDArray[Any], Any, Any]:
        return votes, y, label

    def decided_by_each(self, votes: NDArray[Any], threshold: Any) -> NDArray[np.intp]:
        return (votes > self.flags_above(threshold)).astype(np.intp)

    def _towards_last(self, vote: Numbers) -> Numbers:
        """Turn a vote for ``pos_label`` into one for ``classes[1]``.

        A tie is 0, or ``TIE`` if ``classes[1]`` wins it.
        """
        towards_last = vote if self.pos_label == self.classes[1] else -vote
        tie = TIE if self.order[0] == 1 else 0.0
        return np.where(towards_last == 0, tie, towards_last)


def vote_shape(n_rows: Any, n_classes: int) -> tuple[Any, ...]:
    """Shape of a vote: one number per row for two classes, otherwise one per class."""
    return Labels.kind(n_classes).vote_shape(n_rows, n_classes)


def hard_votes(n_classes: int) -> NDArray[np.int8] | NDArray[np.uint8]:
    """The hard vote for each class, in one byte: a sign for two, otherwise its number."""
    return Labels.kind(n_classes).hard_votes(n_classes)


def vote_columns(vote: ArrayLike) -> tuple[Numbers, NDArray[np.intp], NDArray[np.intp]]:
    """The vote as columns, the class of each column, and all classes, these first.

    Examples
    --------
    >>> columns, reported, classes = vote_columns([0.5, -0.5])
    >>> columns.shape, reported, classes
    ((2, 1), array([1]), array([1, 0]))
    """
    votes = np.atleast_2d(np.asarray(vote, np.float64).T).T
    n_columns = votes.shape[1]
    classes = np.roll(np.arange(max(n_columns, 2)), n_columns)
    return votes, classes[:n_columns], classes


def read_classes(y: Any) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.intp]]:
    """Return the sorted classes, the position of each row's class, and the row counts."""
    try:
        check_classification_targets(y)
        classes, places, counts = np.unique(y, return_inverse=True, return_counts=True)
    except TypeError as error:
        kinds = {type(label).__name__ for label in np.asarray(y).ravel().tolist()}
        raise TypeError(
            f"y mixes labels of type {' and '.join(sorted(kinds))}, which cannot be "
            f"sorted; convert them to one type: [str(label) for label in y]"
        ) from error
    check_classes(classes, counts)
    return classes, places.astype(np.intp), counts


def check_classes(classes: NDArray[Any], counts: NDArray[Any]) -> None:
    """Raise an error for a single class, and for too many classes."""
    if len(classes) <= 1:
        raise ValueError(
            f"y has only one class ({classes.tolist()[0]!r}, "
            f"{counted(counts[0], 'row')}), so there is nothing to learn; if a split left "
            f"out the other class, stratify it: train_test_split(..., stratify=y)"
        )
    if len(classes) > MAX_CLASSES:
        raise ValueError(
            f"y has {len(classes)} classes, but at most {MAX_CLASSES} are supported; merge "
            f"the rarest classes, or use a regressor if y is numeric"
        )


def _positive_place(classes: NDArray[Any], counts: NDArray[Any], pos_label: Any) -> int:
    """Position of the positive class: the one named, or the rarer of the two."""
    if pos_label is None:
        # With equal counts, the last one, as in scikit-learn.
        return int(counts[1] <= counts[0])
    matches = np.flatnonzero(classes == pos_label)
    if len(matches) != 1:
        raise ValueError(
            f"pos_label={pos_label!r} is not one of the classes in y, which are "
            f"{classes.tolist()}"
        )
    return int(matches[0])


def settle(scores: Numbers, order: Any) -> Numbers:
    """Resolve ties in scores (n, C) in favour of the class that is first in ``order``.

    The score of the winner is increased by the smallest possible step, so that the largest
    score always decides.
    """
    classes = np.asarray(order, dtype=np.intp)
    best = scores.max(axis=1, keepdims=True)
    ties = scores == best
    tied = np.flatnonzero(ties.sum(axis=1) > 1)
    if not len(tied):
        return scores
    scores = scores.copy()
    winner = classes[np.argmax(ties[tied][:, classes], axis=1)]
    scores[tied, winner] = np.nextafter(best[tied, 0], np.inf)
    return scores


def positive_wins(order: ArrayLike | None) -> bool:
    """Whether the positive class of two wins a tie; ``order`` has the winner first."""
    return order is not None and bool(np.asarray(order)[0] == 1)


def decide(
    vote: Numbers, threshold: Any, order: ArrayLike | None = None
) -> NDArray[np.intp]:
    """The predicted class of each row.

    With two classes, 1 if the vote is above the threshold; with more, the class with the
    largest vote times factor. Of tied classes, the first in ``order`` wins.

    Parameters
    ----------
    vote : ndarray of shape (n,), or (n, C) for three or more classes
    threshold : float, or ndarray of shape (C,)
        The threshold or the factors of the classes, or one for each row, in the shape of
        ``vote``.
    order : array of int, shape (C,), optional
        The classes in the order in which they win ties, most frequent first; by default
        0, 1, ...

    Examples
    --------
    >>> import numpy as np
    >>> from damvi.decision import decide
    >>> decide(np.array([-0.5, 0.1, 0.3]), 0.1)
    array([0, 0, 1])
    >>> decide(np.array([[0.5, 0.4, 0.1], [0.4, 0.3, 0.3]]), np.array([1.0, 1.0, 2.0]))
    array([0, 2])
    """
    if vote.ndim == 1:
        flagged = vote >= threshold if positive_wins(order) else vote > threshold
        return np.asarray(flagged, np.intp)
    places = np.arange(vote.shape[1]) if order is None else order
    return settle(vote * threshold, places).argmax(axis=1)


def missing_labels(y: Any) -> NDArray[np.bool_]:
    """Mask of missing labels: None, NaN, and the missing values of pandas."""
    if not hasattr(y, "dtype") or not isinstance(y, np.ndarray):
        # Without dtype=object, numpy would turn a list of None and text into text.
        y = y.to_numpy() if hasattr(y, "to_numpy") else np.array(y, dtype=object)
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind in "mM":
        return np.isnat(y)
    if y.dtype.kind != "O":
        return np.zeros(y.shape, dtype=bool)
    flat = [_is_missing(value) for value in y.ravel().tolist()]
    return np.array(flat, dtype=bool).reshape(y.shape)


def _is_missing(value: Any) -> bool:
    if isinstance(value, Real):
        return bool(np.isnan(float(value)))
    return value is None or str(value) in {"<NA>", "NaT"}


def refuse_missing_labels(y: Any) -> None:
    """Raise an error if labels are missing, and say what to do with these rows."""
    if y is None:
        return  # scikit-learn's validation reports this
    missing = missing_labels(y)
    if missing.ndim != 1 or not missing.any():
        return
    if missing.all():
        raise ValueError(
            f"all {len(missing)} values of y are missing (NaN or None), so there is "
            f"nothing to learn from; label some rows of both classes"
        )
    first = int(np.flatnonzero(missing)[0])
    raise ValueError(
        f"y is missing (NaN or None) in {int(missing.sum())} of {len(missing)} rows, "
        f"first in row {first}; remove these rows, or pass them as unlabelled rows: "
        f"X, y, X_unlabeled = damvi.unlabeled.split_unlabeled(X, y)"
    )


def allows_many_classes(threshold: Any) -> bool:
    """Whether the parameter ``threshold`` is valid for three or more classes."""
    if isinstance(threshold, str):
        return threshold in ("auto", "vote", "macro_f1")
    if isinstance(threshold, (list, tuple, np.ndarray)):
        return all(isinstance(factor, Real) for factor in threshold)
    return False
