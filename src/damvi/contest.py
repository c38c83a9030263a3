"""What is voted on: one class against the other, or many.

All that differs between the two, from the labels to the decision, is behind the methods
of :class:`TwoClasses` and :class:`ManyClasses`; the algorithm is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .ballots import Ballots
from .census import Census
from .class_ballots import ClassBallots
from .decision import Decision, Fixed, calibrate_votes, parse_objective, settle
from .reading import check_classes, encode_labels, positive_of, read_classes
from .weighing import Weighing

Labels = NDArray[Any]
Numbers = NDArray[np.float64]

MAX_CLASSES = 256
"""A vote for a class is one byte."""
JOINT = "joint"
"""The threshold that is fitted along with the weights."""


def _rows(n: Any) -> str:
    return "1 row" if n == 1 else f"{int(n)} rows"


@dataclass(frozen=True, eq=False)
class TwoClasses:
    """The positive class against the other; rows have signs, votes are +1 and -1.

    Attributes
    ----------
    classes : ndarray of shape (2,)
    pos_label : label
    majority : int
        The place of the class that wins a tie.
    """

    classes: NDArray[Any]
    pos_label: Any
    majority: int

    tuned_for: ClassVar[str] = "f1"
    limits: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    @classmethod
    def read(cls, y: Any, pos_label: Any) -> tuple[TwoClasses, NDArray[np.int8]]:
        """The two classes, and each row's sign."""
        classes, positive, signs = encode_labels(y, pos_label)
        rows = int((signs > 0).sum())
        counts = np.where(classes == positive, rows, len(signs) - rows)
        return cls.of(classes, counts, pos_label), signs

    @classmethod
    def of(cls, classes: NDArray[Any], counts: NDArray[Any], pos_label: Any) -> TwoClasses:
        """The same from the rows of each class."""
        positive = positive_of(classes, counts, pos_label)
        # Of two equal classes, the negative one.
        majority = int((positive == 1) == (2 * counts[positive] > counts.sum()))
        return cls(classes, classes[positive], majority)

    def targets(self, signs: Labels) -> NDArray[np.int8]:
        """What the voters learn."""
        return (signs > 0).astype(np.int8)

    def census(self, signs: Labels, base: Numbers | None) -> Census:
        return Census.of(self.targets(signs), 2, base)

    def lean(self, mass: Numbers, part: float) -> float:
        """How many negatives a positive counts for."""
        negatives, positives = mass.tolist()
        return float(negatives / positives) ** part

    def ballots(
        self,
        votes: NDArray[Any],
        signs: Labels,
        base: Numbers | None,
        folds: NDArray[Any],
        part: float,
        unseen: NDArray[np.uint8] | None = None,
        only_unseen: bool = False,
        census: Census | None = None,
    ) -> Ballots:
        """The votes on labelled rows; ``census`` is that of a table they are a part of."""
        lean = self.lean((census or self.census(signs, base)).mass, part)
        return Ballots(votes, signs, base, folds, unseen, only_unseen, lean)

    def calibrate(
        self,
        votes: NDArray[Any],
        signs: Labels,
        base: Numbers | None,
        folds: NDArray[Any],
        part: float,
        method: Any,
    ) -> tuple[NDArray[Any], list[Any]]:
        """The votes put right, and what does so for other votes."""
        lean = self.lean(self.census(signs, base).mass, part)
        # On the same scale of classes as the weights: nobody counts for more than 1.
        counts = np.where(signs > 0, min(lean, 1.0), min(1 / lean, 1.0))
        weights = counts if base is None else counts * base
        return calibrate_votes(
            votes, self.targets(signs), folds, method=method, sample_weight=weights
        )

    def aim(self, wanted: Any) -> Any:
        """What the threshold is for, checked."""
        joint = isinstance(wanted, str) and wanted == JOINT
        return JOINT if joint else parse_objective(wanted)

    def decide(self, weighing: Weighing, aim: Any, *, calibrates: bool) -> Decision:
        objective = Fixed(weighing.threshold) if isinstance(aim, str) else aim
        majority = int(self.classes[self.majority] == self.pos_label)
        return Decision(weighing, objective, calibrates, np.array([majority, 1 - majority]))

    def scores(self, vote: Numbers, threshold: Any) -> Numbers:
        """The decision function: above 0 means ``classes[1]``."""
        return self._orient(vote - threshold)

    def winners(self, scores: Numbers) -> NDArray[np.intp]:
        return (scores > 0).astype(np.intp)

    def chances(self, vote: Numbers, calibrator: Any) -> Numbers:
        """Probabilities (n, 2)."""
        if calibrator is None:
            last = (1 + self._orient(vote)) / 2
        else:
            positive = calibrator(vote)
            last = positive if self.pos_label == self.classes[1] else 1 - positive
        return np.column_stack([1 - last, last])

    def lacking(self, voters: Any, rows: NDArray[np.int64]) -> str | None:
        """What to say of voters that have seen no positive."""
        missed = int(voters.n_without_class[1])
        if not missed:
            return None
        return (
            f"{missed} of {len(voters)} samples drew none of the "
            f"{_rows(rows[1])} of the positive class ({self.pos_label}), so "
            f"these voters never vote for it; stratified=True draws within each class"
        )

    def _orient(self, vote: Numbers) -> Numbers:
        """From a vote for ``pos_label`` to one for ``classes[1]``, ties settled."""
        towards_last = vote if self.pos_label == self.classes[1] else -vote
        return settle(towards_last, (self.majority, 1 - self.majority))


@dataclass(frozen=True, eq=False)
class ManyClasses:
    """Three classes or more; rows have the numbers of their classes, and so have votes.

    Attributes
    ----------
    classes : ndarray of shape (C,)
    majority : ndarray of shape (C,)
        The places of the classes, the most frequent first, as they win ties.
    """

    classes: NDArray[Any]
    majority: NDArray[np.intp]

    pos_label: ClassVar[None] = None
    tuned_for: ClassVar[str] = "macro_f1"
    limits: ClassVar[tuple[float, float]] = (0.0, 1.0)

    @classmethod
    def read(cls, y: Any, pos_label: Any) -> tuple[ManyClasses, NDArray[np.intp]]:
        """The classes, and the number of each row's."""
        classes, labels = read_classes(y, MAX_CLASSES)
        return cls.of(classes, np.bincount(labels), pos_label), labels

    @classmethod
    def of(cls, classes: NDArray[Any], counts: NDArray[Any], pos_label: Any) -> ManyClasses:
        """The same from the rows of each class."""
        check_classes(classes, counts, MAX_CLASSES)
        if pos_label is not None:
            raise ValueError(
                f"Only binary classification is supported with pos_label={pos_label!r}, "
                f"and y has {len(classes)} classes; leave it out, or name one class "
                f"against the rest, as in y == {pos_label!r}"
            )
        return cls(classes, np.argsort(-counts, kind="stable"))

    def targets(self, labels: Labels) -> Labels:
        """What the voters learn."""
        return labels

    def census(self, labels: Labels, base: Numbers | None) -> Census:
        return Census.of(labels, len(self.classes), base)

    def lean(self, mass: Numbers, part: float) -> Numbers:
        """How many rows of the largest class a row of each class counts for."""
        return np.asarray((mass.max() / mass) ** part)

    def ballots(
        self,
        votes: NDArray[Any],
        labels: Labels,
        base: Numbers | None,
        folds: NDArray[Any],
        part: float,
        unseen: NDArray[np.uint8] | None = None,
        only_unseen: bool = False,
        census: Census | None = None,
    ) -> ClassBallots:
        """The votes on labelled rows; ``census`` is that of a table they are a part of."""
        census = census or self.census(labels, base)
        mass = census.mass
        lean = self.lean(mass, part)
        rare = mass * len(mass) < mass.sum()
        return ClassBallots(votes, labels, base, folds, unseen, only_unseen, rare, lean)

    def calibrate(
        self,
        votes: NDArray[Any],
        labels: Labels,
        base: Numbers | None,
        folds: NDArray[Any],
        part: float,
        method: Any,
    ) -> tuple[NDArray[Any], list[Any]]:
        """The votes put right, and what does so for other votes."""
        lean = self.lean(self.census(labels, base).mass, part)
        # On the same scale of classes as the weights: nobody counts for more than 1.
        counts = (lean / lean.max())[labels]
        weights = counts if base is None else counts * base
        return calibrate_votes(votes, labels, folds, method=method, sample_weight=weights)

    def aim(self, wanted: Any) -> Any:
        """What the factors of the classes are for, checked."""
        return parse_objective(wanted, len(self.classes))

    def decide(self, weighing: Weighing, aim: Any, *, calibrates: bool) -> Decision:
        return Decision(weighing, aim, calibrates, self.majority)

    def scores(self, vote: Numbers, threshold: Any) -> Numbers:
        """The decision function (n, C), votes times factors: the largest one decides."""
        return settle(vote * threshold, self.majority)

    def winners(self, scores: Numbers) -> NDArray[np.intp]:
        return scores.argmax(axis=1)

    def chances(self, vote: Numbers, calibrator: Any) -> Numbers:
        """Probabilities (n, C)."""
        if calibrator is None:
            return settle(vote, self.majority)
        chances: Numbers = calibrator(vote)
        return chances

    def lacking(self, voters: Any, rows: NDArray[np.int64]) -> str | None:
        """What to say of voters that have not seen all classes."""
        missed = voters.n_without_class
        if not missed.any():
            return None
        worst = int(np.argmax(missed))
        more = int((missed > 0).sum()) - 1
        others = f" (and so for {more} of the other classes)" if more else ""
        return (
            f"{int(missed[worst])} of {len(voters)} samples drew none of the "
            f"{_rows(rows[worst])} of class "
            f"{self.classes.tolist()[worst]!r}, so these voters never vote for it{others}; "
            f"stratified=True draws within each class"
        )


def read_contest(y: Any, pos_label: Any) -> tuple[TwoClasses | ManyClasses, Labels]:
    """What is voted on, and each row's sign, or number of class."""
    try:
        many = len(np.unique(y)) > 2
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in np.asarray(y).ravel().tolist()})
        raise TypeError(
            f"labels of different kinds, {' and '.join(kinds)}, have no order; make them "
            f"alike, as in [str(label) for label in y]"
        ) from error
    return (ManyClasses if many else TwoClasses).read(y, pos_label)


def contest_from(classes: NDArray[Any], counts: NDArray[Any], pos_label: Any) -> Any:
    """The same from the rows of each class."""
    many = len(classes) > 2
    return (ManyClasses if many else TwoClasses).of(classes, counts, pos_label)


def contest_of(classes: NDArray[Any], pos_label: Any, majority: Any) -> Any:
    """The same from what a fitted model keeps of it."""
    if len(classes) == 2:
        return TwoClasses(classes, pos_label, majority)
    return ManyClasses(classes, majority)
