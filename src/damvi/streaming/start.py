"""What a fitted model knows of rows that its voters have not seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ballots import Ballots, Tally
from ..crossfit import crossfit_weights
from ..moments import Moments
from ..unseen_moments import UnseenMoments
from ..weighing import Rule
from .drift import Margins
from .memory import Memory

Side = Moments | UnseenMoments


def out_of_sample(ballots: Ballots, rule: Rule, n_rows: float) -> Memory | None:
    """The votes of the fit on unseen rows, counting for ``n_rows`` rows in all.

    None where the voters have seen all rows of a class, so that nothing is known.

    Votes on rows that the voters were trained on are left out, whatever the model's own
    weights were learned from: beside new rows they would be mere optimism.
    """
    unseen = ballots.on_unseen()
    folds = unseen.tallies(rule.emphasis)
    whole = sum(folds[1:], start=folds[0])
    if not (_has_votes(whole.negatives) and _has_votes(whole.positives)):
        return None
    up = ballots.signs > 0
    base = np.ones(len(up)) if ballots.base is None else ballots.base
    sides = [base[~up], base[up]]
    mass = np.array([side.sum() for side in sides])
    known = Memory(
        Tally(_plain(whole.negatives), _plain(whole.positives)),
        _crossfitted(ballots, unseen, folds, whole, rule, sides),
        np.array([float((side > 0).sum()) for side in sides]),
        mass,
    )
    scaled = known.faded(n_rows / float(mass.sum()))
    return replace(scaled, rows=known.rows * (n_rows / len(up)))


def _crossfitted(
    ballots: Ballots,
    unseen: Ballots,
    folds: list[Tally],
    whole: Tally,
    rule: Rule,
    sides: list[NDArray[np.float64]],
) -> Margins:
    """The margins on each fold, by weights of the others."""
    others = [leaning(whole - fold, ballots.lean) for fold in folds]
    found = crossfit_weights([rule.moments(tally) for tally in others], rule.solver)
    sums = np.zeros((2, 5))
    for fold, weights in zip(unseen.tallies(0.0), found, strict=True):
        Q = weights.weights / weights.weights.sum()
        for line, side in enumerate((fold.negatives, fold.positives)):
            m, M, total = _means(side)
            # x**4 is no more than x**2, so the spread of the disagreement is no less.
            square = float(np.clip(Q @ M @ Q, 0, 1))
            sums[line] += total * np.array([1, 0, m @ Q, square, square])
    sums[:, 1] = [(side**2).sum() for side in sides]
    return Margins(sums)


def leaning(tally: Tally, lean: float) -> Tally:
    """The same, with each positive counting for ``lean`` negatives."""
    return tally if lean == 1 else replace(tally, positives=tally.positives * lean)


def _has_votes(side: Side) -> bool:
    return isinstance(side, Moments) or bool(np.diag(side.rows.M).any())


def _plain(side: Side) -> Moments:
    """Means over the rows of each pair of voters as if over all: what new rows add to."""
    return side if isinstance(side, Moments) else side.moments() * float(side.rows.total)


def _means(side: Side) -> tuple[Any, Any, float]:
    """m and M of a row, where each is known, and the weight of the rows."""
    total = float(side.total if isinstance(side, Moments) else side.rows.total)
    weight = total / 2.0**30
    if isinstance(side, Moments):
        return side.m / max(total, 1), side.M / max(total, 1), weight
    rows = np.maximum(np.asarray(side.rows.M, np.float64), 1.0)
    return side.sums.m / np.diag(rows), side.sums.M / rows, weight
