"""Other weights for the same votes: settings tried by the dozen, judged honestly.

A setting is chosen by the votes that it gives on rows its weights were not learned on.
What the choice is worth is told by choosing once more without each fold, from weights
that do not know the fold either, and judging the fold by what was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from .ballots import Ballots, Tally
from .class_judging import ClassJudge
from .decision import Fixed, Objective, parse_objective
from .decision.decision import AVERAGE_PRECISION
from .decision.objectives import Counts
from .decision.rows import read_rows
from .decision.threshold import search
from .weighing import Rule, honest_vote

Votes = NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """Which setting was chosen, and what each was worth. ``print`` it to read it.

    Attributes
    ----------
    metric : str
    rules : tuple of Rule
    values : tuple of float
        The metric of each rule on votes on unseen rows. The best of them flatters.
    chosen : Rule
    honest_value : float
        The metric where each fold's rule was chosen on the other folds.
    """

    metric: str
    rules: tuple[Rule, ...]
    values: tuple[float, ...]
    chosen: Rule
    honest_value: float

    def __str__(self) -> str:
        lines = [f"reweight  shrinkage  {self.metric}"]
        for rule, value in zip(self.rules, self.values, strict=True):
            mark = "  <- chosen" if rule == self.chosen else ""
            lines.append(f"{rule.emphasis:8g}  {rule.shrinkage:9g}  {value:.4f}{mark}")
        lines.append(f"{self.honest_value:.4f} where each fold's was chosen on the others")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Judge:
    """What votes are worth by a metric, each fold decided by what the others say."""

    ballots: Ballots
    aim: Objective | None
    """None is average precision, which needs no threshold."""

    @classmethod
    def of(cls, ballots: Ballots, metric: Any) -> Judge:
        """``metric`` is "average_precision" or what a threshold can be tuned for."""
        if isinstance(metric, str) and metric == AVERAGE_PRECISION:
            return cls(ballots, None)
        try:
            aim = parse_objective(metric)
        except ValueError as error:
            raise ValueError(
                f"metric={metric!r} is not known; give {AVERAGE_PRECISION!r}, or what a "
                f"threshold can be tuned for, such as 'f1' or {{'recall': 0.9}}"
            ) from error
        if isinstance(aim, Fixed):
            raise ValueError(
                f"metric={metric!r} is a threshold; give {AVERAGE_PRECISION!r}, or what "
                f"a threshold can be tuned for, such as 'f1' or {{'recall': 0.9}}"
            )
        return cls(ballots, aim)

    @property
    def name(self) -> str:
        return "average precision" if self.aim is None else self.aim.name

    def __call__(
        self, votes: Sequence[Votes], left_out: int | None = None
    ) -> tuple[float, float]:
        """The value, and what to maximise, of a vote for each fold.

        A fold's vote is taken on its rows, and cut at the threshold that is best for the
        same vote on all others. The rows of ``left_out`` have no part in either.
        """
        ballots = self.ballots
        known = ballots.folds != (-1 if left_out is None else left_out)
        vote, flagged = np.full(len(known), np.nan), np.zeros(len(known), bool)
        for fold in range(ballots.n_folds):
            here = ballots.folds == fold
            vote[here] = votes[fold][here]
            if self.aim is not None and fold != left_out:
                rows = read_rows(
                    np.where(known & ~here, votes[fold], np.nan),
                    ballots.targets,
                    ballots.base,
                )
                flagged[here] = vote[here] > search(rows, self.aim)
        rows = read_rows(np.where(known, vote, np.nan), ballots.targets, ballots.base)
        if self.aim is None:
            if not rows.positive.any():  # the only ones are in the fold left out
                return 0.0, 0.0
            value = float(
                average_precision_score(rows.positive, rows.vote, sample_weight=rows.weight)
            )
            return value, value
        counts = Counts.of(rows, flagged[rows.index], self.aim.mass(rows))
        return float(self.aim.value(counts)), float(self.aim.preference(counts)[0])


def judge_of(ballots: Any, metric: Any) -> Judge | ClassJudge:
    """Who judges votes on two classes, or on many."""
    return (ClassJudge if ballots.n_classes > 2 else Judge).of(ballots, metric)


def choose_rule(
    ballots: Any, rules: Sequence[Rule], metric: Any, n_jobs: int | None = None
) -> tuple[Choice, Votes]:
    """The rule whose votes on unseen rows are best; of equally good ones the first.

    ``metric`` is "average_precision" or what a threshold can be tuned for. The votes are
    those of the rules chosen without each fold, which know nothing of the choice.
    """
    if ballots.n_folds < 3:
        raise ValueError(
            f"there are {ballots.n_folds} folds, and to choose honestly takes three or "
            f"more: fit with cv=5, say"
        )
    judge, folds = judge_of(ballots, metric), range(ballots.n_folds)
    values, worth = np.empty(len(rules)), np.empty((len(rules), 1 + len(folds)))
    blind: list[list[Votes]] = []
    for number, rule in enumerate(rules):
        tallies = ballots.tallies(rule.emphasis, rule.eta)

        def vote_without(fold: int, tallies: Any = tallies, rule: Rule = rule) -> Votes:
            known = [_without(tallies, {fold, other}) for other in folds]
            return honest_vote(ballots, known, rule, n_jobs=n_jobs)

        blind.append([vote_without(fold) for fold in folds])
        # A fold's own entry is the vote by weights learned on all others.
        own = np.stack(blind[-1])[ballots.folds, np.arange(len(ballots.folds))]
        values[number], worth[number, 0] = judge([own] * len(folds))
        for fold in folds:
            worth[number, 1 + fold] = judge([blind[-1][fold]] * len(folds), fold)[1]
    best, *of_folds = np.argmax(worth, axis=0).tolist()
    votes = [blind[rule][fold] for fold, rule in enumerate(of_folds)]
    honest, _ = judge(votes)
    choice = Choice(judge.name, tuple(rules), tuple(values.tolist()), rules[best], honest)
    return choice, np.stack(votes)[ballots.folds, np.arange(len(ballots.folds))]


def _without(tallies: Sequence[Tally], left_out: set[int]) -> Tally:
    kept = [tally for fold, tally in enumerate(tallies) if fold not in left_out]
    return sum(kept[1:], start=kept[0])
