"""Fewer voters for nearly the same vote: the C-bound's path from many to few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .choosing import judge_of
from .crossfit import FoldWeights, fold_weights
from .decision.decision import AVERAGE_PRECISION
from .moments import Moments
from .solvers import SOLVERS
from .weighing import Rule

Weights = NDArray[np.float64]


@dataclass(frozen=True)
class Pruning:
    """The price of having fewer voters. ``print`` it to read it.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of voters, from all that have a weight down to those kept.
    c_bound : tuple of float
        Of the best weights found for so many voters.
    average_precision, f1 : tuple of float
        On rows that neither voters nor weights, nor the choice of voters, know; with
        three or more classes the means over these.
    """

    sizes: tuple[int, ...]
    c_bound: tuple[float, ...]
    average_precision: tuple[float, ...]
    f1: tuple[float, ...]

    def __str__(self) -> str:
        lines = ["voters  C-bound  average precision     F1"]
        for row in zip(
            self.sizes, self.c_bound, self.average_precision, self.f1, strict=True
        ):
            lines.append("{:6d}  {:7.4f}  {:17.4f}  {:5.4f}".format(*row))
        return "\n".join(lines)


def path(moments: Moments, solver: str) -> dict[int, Weights]:
    """Weights for each number of voters, from the solver's support downwards.

    The voter that goes next is the one whose loss raises the residual least (if no other
    weight has to go to 0 for it); then the rest are weighted anew.
    """
    weights = SOLVERS[solver](moments).weights
    found = {}
    while True:
        kept = np.flatnonzero(weights)
        found[len(kept)] = weights
        if len(kept) == 1:
            return found
        inner = moments.restricted(kept)
        m, M = inner.normalised()
        ridge = 1e-12 * float(np.trace(M)) / len(m)
        inverse = linalg.inv(M + ridge * np.eye(len(m)))
        w = weights[kept]
        stays = np.delete(np.arange(len(kept)), int(np.argmin(w**2 / np.diag(inverse))))
        weights = np.zeros_like(weights)
        weights[kept[stays]] = SOLVERS[solver](inner.restricted(stays)).weights


def at_most(found: dict[int, Weights], size: int) -> Weights:
    """The weights of the largest number of voters that is no larger than ``size``."""
    return found[max((n for n in found if n <= size), default=min(found))]


def price(
    ballots: Any,
    rule: Rule,
    max_voters: int,
    n_jobs: int | None,
    tuned_for: str = "f1",
) -> tuple[Weights, Pruning, NDArray[np.float64]]:
    """Weights for at most so many voters, and what they cost on the way there.

    The votes are those of voters chosen without each fold, on its rows.
    """
    by_fold = ballots.tallies(rule.emphasis, rule.eta)
    whole = sum(by_fold[1:], start=by_fold[0])
    found = path(rule.moments(whole), rule.solver)
    others = [whole - fold for fold in by_fold]
    others_found = [path(rule.moments(tally), rule.solver) for tally in others]
    sizes = _shown(max(found), max(n for n in found if n <= max_voters))
    ap: list[float] = []
    f1: list[float] = []
    for size in sizes:
        chosen = [at_most(one, size) for one in others_found]
        votes = _vote(ballots, rule, others, chosen, n_jobs)
        for metric, values in ((AVERAGE_PRECISION, ap), (tuned_for, f1)):
            values.append(judge_of(ballots, metric)([votes] * len(others))[0])
    weights = at_most(found, max_voters)
    bounds = tuple(rule.c_bound(whole, at_most(found, size)) for size in sizes)
    return weights, Pruning(tuple(sizes), bounds, tuple(ap), tuple(f1)), votes


def _vote(
    ballots: Any,
    rule: Rule,
    others: Sequence[Any],
    weights: Sequence[Weights],
    n_jobs: int | None,
) -> NDArray[np.float64]:
    """The vote on each fold by weights chosen on the others, relative to a threshold."""
    pairs = list(zip(others, weights, strict=True))
    found: list[FoldWeights] = [fold_weights(rule.moments(t), Q) for t, Q in pairs]
    vote: NDArray[np.float64] = ballots.vote_by(found, n_jobs)
    if rule.jointly:
        vote = vote - np.array([rule.threshold(t, Q) for t, Q in pairs])[ballots.folds]
    return vote


def _shown(most: int, fewest: int) -> list[int]:
    """A few numbers of voters, halved from one to the next."""
    sizes = [most]
    while sizes[-1] // 2 > fewest:
        sizes.append(sizes[-1] // 2)
    return sizes if fewest == most else [*sizes, fewest]
