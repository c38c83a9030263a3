"""The state of a stream: moments by class, which are additive and decay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._kernels import one_blas_thread
from ..classifier import DAMVIClassifier
from ..labels import Labels
from ..moments import FRACTIONAL_BITS, ClassMoments, ClassShares, Moments, OutOfBagMoments
from ..votes import emphasis, plain_margin, signed_votes
from ..voting import DAMVIVotingClassifier
from ..weighting import Settings, crossfit_weights, moments_of_others
from .drift import POSITIVES, DriftFigures, Margins

Numbers = NDArray[np.float64]
Side = Moments | OutOfBagMoments
Model = DAMVIClassifier | DAMVIVotingClassifier

ROOM = 2**62
"""Largest exact integer sum; larger sums continue as floats."""


class Kept(NamedTuple):
    """Rows of a class, with or without the emphasis of step 2."""

    name: str
    target: int
    strength: float


@dataclass(frozen=True, eq=False)
class Layout:
    """What is stored per class, and its names.

    Attributes
    ----------
    labels : Labels
    n_voters : int
    kept : list of Kept
        In class order. Each of three or more classes may be rare at one time and frequent
        at another, so its rows are stored with and without emphasis.
    n_voted : int
        Number of classes for which votes are summed: all of three or more, if each has its
        own intercept, else 0.
    rows : list of str
        Names of the rows of each class.
    figures : DriftFigures
    """

    labels: Labels
    n_voters: int
    kept: list[Kept]
    n_voted: int
    rows: list[str]
    figures: DriftFigures

    @classmethod
    def of(cls, model: Model) -> Layout:
        labels, settings = model.labels_, Settings.of(model)
        strength, n_voters = settings.reweight, len(model.weights_)
        if labels.is_binary:
            sides = [Kept("negatives", 0, 0.0), Kept("positives", 1, strength)]
            return cls(labels, n_voters, sides, 0, [one.name for one in sides], POSITIVES)
        kept = []
        for target in range(labels.n_classes):
            kept.append(Kept(f"class_{target}", target, 0.0))
            if strength:
                kept.append(Kept(f"class_{target}_emphasized", target, strength))
        names = labels.by_target.tolist()
        figures = DriftFigures(
            labels.reported.tolist(),
            [f"rate_{name}" for name in names],
            [f"gibbs_risk_{name}" for name in names],
        )
        n_voted = labels.n_classes if settings.fit_intercept else 0
        called = [f"of {name!r}" for name in names]
        return cls(labels, n_voters, kept, n_voted, called, figures)

    def places(self, rare: NDArray[np.bool_]) -> list[int]:
        """Return the index in ``kept`` to use for each class, given which are rare."""
        found = []
        for target, is_rare in enumerate(rare.tolist()):
            own = [place for place, one in enumerate(self.kept) if one.target == target]
            found.append(own[-1] if is_rare else own[0])
        return found


@dataclass(frozen=True, eq=False)
class ClassSums:
    """Sums over the rows of one class.

    Attributes
    ----------
    moments : Moments
    voted : ndarray of shape (n_voted, K)
        Sum of each voter's votes for each class.
    """

    moments: Moments
    voted: Numbers

    def __add__(self, other: ClassSums) -> ClassSums:
        both = self.moments + other.moments
        both = both * 1.0 if both.total > ROOM else both
        return ClassSums(both, self.voted + other.voted)

    def __mul__(self, factor: float) -> ClassSums:
        return ClassSums(self.moments * factor, self.voted * factor)

    def shares(self, target: int) -> ClassShares | None:
        """Return the votes as needed for moments about their means."""
        if not len(self.voted):
            return None
        own, rows = np.zeros((2, *self.voted.shape))
        own[target], rows[target] = self.voted[target], self.moments.total
        return ClassShares(own, self.voted, rows)


@dataclass(frozen=True, eq=False)
class Memory:
    """Additive sums over rows.

    Attributes
    ----------
    layout : Layout
    sides : list of ClassSums
        One per entry of the layout.
    margins : Margins
        Margins of votes by weights that have not seen the rows.
    rows : ndarray of shape (C,)
        Number of rows per class, decayed.
    mass : ndarray of shape (C,)
        Their weight, without emphasis.
    """

    layout: Layout
    sides: list[ClassSums]
    margins: Margins
    rows: Numbers
    mass: Numbers

    @classmethod
    def none(cls, layout: Layout) -> Memory:
        K, n_classes = layout.n_voters, layout.labels.n_classes
        zero = Moments(np.zeros(K, np.int64), np.zeros((K, K), np.int64), 0)
        sides = [ClassSums(zero, np.zeros((layout.n_voted, K)))] * len(layout.kept)
        nothing = np.zeros(n_classes)
        return cls(layout, sides, Margins.none(n_classes), nothing, nothing)

    @classmethod
    def of(
        cls,
        layout: Layout,
        votes: NDArray[Any],
        targets: NDArray[Any],
        margin: Numbers,
        *,
        weights: Numbers | None = None,
        fade: Numbers | None = None,
    ) -> Memory:
        """Compute the sums of a batch; ``margin`` is by weights that have not seen it."""
        n, n_classes = len(targets), layout.labels.n_classes
        base = np.ones(n) if weights is None else weights
        counted = base > 0
        faded = np.ones(n) if fade is None else fade
        D = None if weights is None and fade is None else base * faded
        rows_of = [np.flatnonzero(targets == target) for target in range(n_classes)]
        sides = []
        for one in layout.kept:
            rows = rows_of[one.target]
            own = None if D is None else D[rows]
            sides.append(_sums(layout, one.strength, votes[rows], targets[rows], own))
        return cls(
            layout,
            sides,
            Margins.of(margin, targets, base * faded, n_classes),
            np.array([(faded * counted)[some].sum() for some in rows_of]),
            np.array([(faded * base)[some].sum() for some in rows_of]),
        )

    def class_moments(self, class_weight: Numbers) -> ClassMoments:
        """Return the moments for learning weights, with the currently rare classes."""
        rare = self.layout.labels.rare(self.mass)
        sides = [self.sides[place] for place in self.layout.places(rare)]
        return joined(
            [one.moments for one in sides],
            [one.shares(target) for target, one in enumerate(sides)],
            class_weight,
            rare,
        )

    def as_arrays(self) -> dict[str, Any]:
        """Return all arrays by name."""
        found = {"margins": self.margins.sums, "rows": self.rows, "mass": self.mass}
        for (name, _, _), side in zip(self.layout.kept, self.sides, strict=True):
            own = side.moments
            sums = {"m": own.m, "M": own.M, "total": np.array(own.total)}
            sums |= {"voted": side.voted} if len(side.voted) else {}
            found |= {f"{name}_{key}": value for key, value in sums.items()}
        return found

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any], layout: Layout) -> Memory:
        """Restore from arrays; raise a ValueError if they do not match the layout."""
        none = cls.none(layout)
        for name, expected in none.as_arrays().items():
            found = arrays[name]
            if found.shape != expected.shape or found.dtype not in (np.int64, np.float64):
                raise ValueError(f"{name} has a wrong dtype or shape")
            if not np.isfinite(found).all():
                raise ValueError(f"{name} is not finite")
        if min(arrays[name].min() for name in ("rows", "mass")) < 0:
            raise ValueError("it has a negative number of rows")
        sides = [
            ClassSums(
                Moments(
                    arrays[f"{name}_m"], arrays[f"{name}_M"], arrays[f"{name}_total"].item()
                ),
                arrays.get(f"{name}_voted", np.zeros((0, layout.n_voters))),
            )
            for name, _, _ in layout.kept
        ]
        margins = Margins(arrays["margins"])
        return cls(layout, sides, margins, arrays["rows"], arrays["mass"])

    def __add__(self, other: Memory) -> Memory:
        return Memory(
            self.layout,
            [a + b for a, b in zip(self.sides, other.sides, strict=True)],
            self.margins + other.margins,
            self.rows + other.rows,
            self.mass + other.mass,
        )

    def faded(self, factor: float) -> Memory:
        """Scale the weight of all rows by ``factor``."""
        if factor == 1:
            return self  # integers stay integers
        return Memory(
            self.layout,
            [side * factor for side in self.sides],
            self.margins.faded(factor),
            self.rows * factor,
            self.mass * factor,
        )


def _sums(
    layout: Layout,
    strength: float,
    votes: NDArray[Any],
    targets: NDArray[Any],
    weights: Numbers | None,
) -> ClassSums:
    """Compute the sums over rows of one class."""
    lean = None
    if strength:
        margin = plain_margin(votes, targets, layout.labels.n_classes)
        lean = emphasis(margin, strength)
    signed, signs = signed_votes(votes, targets)
    base = np.ones(len(votes)) if weights is None else weights
    D = np.ldexp(base if lean is None else base * lean, FRACTIONAL_BITS)
    if weights is None:
        D = np.rint(D)
        moments = Moments.of(signed, signs, lean)
    else:
        # Not in the fixed point of other moments: its rounding would make the result depend
        # on the batch size, since each batch starts at full weight.
        H = signed.astype(np.float64)
        with one_blas_thread():
            m = H.T @ (D * signs)
            H *= np.sqrt(D)[:, np.newaxis]
            M = H.T @ H
        moments = Moments(m, M, float(D.sum()))
    voted = np.zeros((layout.n_voted, layout.n_voters))
    with one_blas_thread():
        for target in range(layout.n_voted):
            voted[target] = D @ layout.labels.votes_for(votes, target)
    return ClassSums(moments, voted)


def joined(
    sides: Sequence[Any],
    shares: Sequence[ClassShares | None],
    class_weight: Numbers,
    rare: NDArray[np.bool_],
) -> ClassMoments:
    """Combine the moments of the classes, given the weight of a row of each."""

    def total(some: list[Any], weights: list[float]) -> Any:
        parts = [
            one if weight == 1 else one * weight
            for one, weight in zip(some, weights, strict=True)
        ]
        return sum(parts[1:], start=parts[0])

    def side(own: NDArray[np.bool_]) -> Any:
        some = [sides[place] for place in np.flatnonzero(own).tolist()]
        return total(some, class_weight[own].tolist()) if some else sides[0] - sides[0]

    voted = None if shares[0] is None else total([*shares], class_weight.tolist())
    return ClassMoments(side(~rare), side(rare), len(sides), voted)


def known_out_of_sample(
    votes: Any, layout: Layout, settings: Settings, n_rows: float
) -> Memory | None:
    """Return the out-of-sample votes of the fit, weighted to ``n_rows`` rows in all.

    None if the voters were trained on all rows of a class.

    Votes on the voters' own training rows are left out, even if the model's weights were
    learned from them: next to new rows they would be too optimistic.
    """
    honest = votes.out_of_sample()
    of_class = [honest.of_class(one.target, one.strength > 0) for one in layout.kept]
    by_fold = [
        own.moments_by_fold(one.strength, fit_intercept=settings.fit_intercept)
        for one, own in zip(layout.kept, of_class, strict=True)
    ]
    if not all(by_fold):
        return None
    # The last folds may lack a class.
    by_fold = [
        folds + [folds[0] - folds[0]] * (votes.n_folds - len(folds)) for folds in by_fold
    ]
    wholes = [sum(folds[1:], start=folds[0]) for folds in by_fold]
    if not all(_has_votes(_side(whole)) for whole in wholes):
        return None
    judged = votes.folds >= 0
    targets, base = votes.targets[judged], np.ones(int(judged.sum()))
    if votes.sample_weight is not None:
        base = votes.sample_weight[judged]
    weights = [base[targets == target] for target in range(layout.labels.n_classes)]
    mass = np.array([some.sum() for some in weights])
    rare = layout.labels.rare(mass)
    others = [moments_of_others(folds, votes.forward) for folds in by_fold]
    taken = [others[place] for place in layout.places(rare)]
    learned = []
    for fold in zip(*taken, strict=True):
        sides, shares = [_side(one) for one in fold], [one.shares for one in fold]
        learned.append(joined(sides, shares, votes.class_weight, rare))
    found = crossfit_weights([settings.moments(one) for one in learned], settings.solver)
    plain = [of_class[place] for place in layout.places(np.zeros_like(rare))]
    known = Memory(
        layout,
        [_plain(whole, one.target) for one, whole in zip(layout.kept, wholes, strict=True)],
        _crossfitted_margins([own.moments_by_fold(0.0) for own in plain], found, weights),
        np.array([float((some > 0).sum()) for some in weights]),
        mass,
    )
    scaled = known.faded(n_rows / float(mass.sum()))
    return replace(scaled, rows=known.rows * (n_rows / len(targets)))


def _crossfitted_margins(
    classes: list[list[ClassMoments]], found: list[Any], weights: list[Numbers]
) -> Margins:
    """Return the margins on each fold, by weights of the other folds."""
    sums = np.zeros((len(classes), 5))
    for line, folds in enumerate(classes):
        for fold, solved in zip(
            folds, found, strict=False
        ):  # the last folds may lack the class
            Q = solved.weights / solved.weights.sum()
            m, M, total = _means(_side(fold))
            # x**4 <= x**2, so this does not underestimate the variance of the disagreement.
            square = float(np.clip(Q @ M @ Q, 0, 1))
            sums[line] += total * np.array([1, 0, m @ Q, square, square])
    sums[:, 1] = [(some**2).sum() for some in weights]
    return Margins(sums)


def _side(one: ClassMoments) -> Any:
    """Return the side of one class, whose rows are all on one side."""
    return one.negatives + one.positives


def _has_votes(side: Side) -> bool:
    return isinstance(side, Moments) or bool(np.diag(side.rows.M).any())


def _plain(whole: ClassMoments, target: int) -> ClassSums:
    """Return pairwise means over rows as if over all rows, which new rows add to."""
    side, shares = _side(whole), whole.shares
    moments = side if isinstance(side, Moments) else side.at(2) * float(side.total)
    if shares is None:
        return ClassSums(moments, np.zeros((0, moments.n_voters)))
    scale = side.total / np.maximum(shares.rows[target], 1)
    return ClassSums(moments, shares.every * scale)


def _means(side: Side) -> tuple[Any, Any, float]:
    """Return m and M per row, where known, and the total weight of the rows."""
    total = float(side.total)
    weight = total / 2.0**30
    if isinstance(side, Moments):
        return side.m / max(total, 1), side.M / max(total, 1), weight
    rows = np.maximum(np.asarray(side.rows.M, np.float64), 1.0)
    return side.sums.m / np.diag(rows), side.sums.M / rows, weight
