"""Metrics, baselines on the same rows, and the leaderboard.

All scores are out of sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..decision import (
    Cost,
    FBeta,
    Fixed,
    Flags,
    Floor,
    MacroF1,
    parse_objective,
)
from ..evaluation import (
    Figure,
    FittedVote,
    TopFigures,
    alike_blocks,
    compare,
    headlines,
    measure,
    point_figures,
    top_figures,
)
from ..tables import Target
from ..voters import PoolVoters, out_of_fold_votes
from ..voters.portfolio import can_load, voter_of_pool
from .table import Prepared

KNOWN = "f1, ap, recall@0.9, precision@0.5, flags@200 (or @1%, @200/10000) or cost"
MACRO = {"macro_f1": "macro F1", "macro_ap": "macro AP"}
"""Metrics for three or more classes, and their display names."""
PEERS = {"forest": "plain forest", "lightgbm": "LightGBM"}
"""Voters of the strong pool that serve as baselines, and their display names."""
OURS = "DAMVI"
BEST = "best single model"
"""The best voter of a pool, chosen for each fold on the other folds."""
WEIGHTED, PLAIN = "weighted vote", "plain vote"
SINGLE_MODEL = "A single model does {} here: use --pool best (in Python pool='best')."
OF_YOURS = "A single model does {} here. The best of your voters: "
MOST_CLASSES = 30
"""With more classes, LightGBM is no baseline for trees: it grows a tree per class and
round, which with a hundred classes takes twenty times as long as the fit."""


@dataclass(frozen=True)
class Metric:
    """A metric, as named on the command line.

    Attributes
    ----------
    name : str
        As the user wrote it.
    threshold : str or dict
        What the threshold is tuned for, as for
        :func:`damvi.decision.parse_objective`.
    measure : str
        The score by which models are compared, from :data:`damvi.evaluation.MEASURES`.
    words : str
    cost : (float, float) or None
        Costs of a false alarm and a miss.
    """

    name: str
    threshold: Any
    measure: str
    words: str
    cost: tuple[float, float] | None = None

    @property
    def budget(self) -> Flags | None:
        """The alert budget, if the metric is one."""
        named = isinstance(self.threshold, dict) and "flags" in self.threshold
        aim = parse_objective(self.threshold) if named else None
        return aim if isinstance(aim, Flags) else None


def parse_metric(text: str, cost: tuple[float, float] | None = None) -> Metric:
    """Parse the name of a metric.

    ``recall@0.9`` is the best precision at a recall of at least 0.9, ``precision@0.5`` the
    best recall at a precision of at least 0.5. ``flags@200`` flags 200 rows per table of
    this size, ``flags@200/10000`` 200 of every 10,000 rows, and ``flags@1%`` a share.
    ``ap`` scores the ranking; its threshold is tuned for F1. ``macro_f1`` and ``macro_ap``
    are means over three or more classes.

    Examples
    --------
    >>> parse_metric("recall@0.9").threshold
    {'recall': 0.9}
    >>> parse_metric("flags@200/10000").threshold
    {'flags': (200.0, 10000.0)}
    >>> parse_metric("cost", (1, 20)).words
    'cost per row'
    """
    if text in MACRO:
        if cost is not None:
            raise ValueError(
                f"the metric {text} is for three or more classes, but costs of a miss and "
                f"a false alarm are for two; use one or the other"
            )
        return Metric(text, "macro_f1", text, MACRO[text])
    if text == "cost":
        if cost is None or min(cost) <= 0:
            raise ValueError(
                "the metric cost needs the costs of errors, such as --cost-miss 20 "
                "--cost-false-alarm 1, each above 0"
            )
        return Metric(text, {"cost": cost}, "cost", "cost per row", cost)
    if text in ("f1", "ap"):
        return Metric(text, "f1", text, text.upper(), cost)
    rate, _, floor = text.partition("@")
    if rate in ("recall", "precision", "flags") and floor:
        number, slash, per = floor.partition("/")
        try:
            least = float(number.rstrip("%")) / (100 if number.endswith("%") else 1)
            asked: Any = (least, float(per)) if slash else least
        except ValueError:
            asked = least = 0.0
        if rate == "flags" and least > 0 and (not slash or asked[1] > 0):
            aim = parse_objective({"flags": asked})
            return Metric(text, {"flags": asked}, "recall", aim.name, cost)
        if 0 < least <= 1 and not slash and rate != "flags":
            other = "precision" if rate == "recall" else "recall"
            words = f"{other} at a {rate} of {least:g}"
            return Metric(text, {rate: least}, other, words, cost)
    raise ValueError(
        f"unknown metric {text!r}; use {KNOWN}, or with three or more classes "
        f"{' or '.join(MACRO)}"
    )


def metric_for(target: Target, asked: Metric | None = None) -> Metric:
    """The requested metric, checked against the classes, or the default one.

    Examples
    --------
    >>> from damvi.tables import TargetOfMany
    >>> metric_for(TargetOfMany("kind", classes=("a", "b", "c"))).name
    'macro_f1'
    """
    usual = parse_metric(target.usual_metric)
    if asked is None:
        return usual
    if asked.cost is not None or (asked.measure in MACRO) != (usual.measure in MACRO):
        _require_classes(target, asked)
    return asked


def _require_classes(target: Target, asked: Metric) -> None:
    """Raise an error if the metric is for another number of classes."""
    named = "or name the positive class with --positive"
    if asked.cost is not None:
        costs = "the costs of a miss and a false alarm are"
        target.require_two(costs, f"leave them out, {named}")
    what = f"the metric {asked.name} is"
    if asked.measure in MACRO:
        target.require_many(what, f"give {KNOWN}")
    else:
        target.require_two(what, f"give {' or '.join(MACRO)}, {named}")


def as_metric(threshold: Any, target: Target, n_rows: int) -> Metric:
    """The metric for a ``threshold`` as users may write it.

    Parameters
    ----------
    threshold : str, dict, tuple, number, Objective, Metric or None
        As for :func:`parse_metric`, such as ``"recall@0.9"``, or as for the estimators,
        such as ``{"cost": (1, 20)}``; None is the default.
    target : Target
    n_rows : int
        Rows of the table, which a number of flags refers to unless it says otherwise.

    Examples
    --------
    >>> from damvi.tables import Target
    >>> as_metric({"recall": 0.9}, Target("y", "0", "1"), 1000).name
    'recall@0.9'
    >>> as_metric("flags@20", Target("y", "0", "1"), 1000).threshold
    {'flags': (20.0, 1000)}
    """
    metric = _as_metric(threshold, target)
    if metric.budget is None:
        return metric
    budget = metric.budget.among(n_rows)
    return replace(metric, threshold={"flags": (budget.number, budget.per)})


def _as_metric(threshold: Any, target: Target) -> Metric:
    if threshold is None or isinstance(threshold, Metric):
        return metric_for(target, threshold)
    if isinstance(threshold, str) and threshold not in ("vote", "fbeta"):
        return metric_for(target, parse_metric(threshold))
    objective, usual = parse_objective(threshold, target.n_classes), metric_for(target)
    match objective:
        case Floor(rate=rate, floor=floor):
            return parse_metric(f"{rate}@{floor:g}")
        case Flags(number=number, per=None):
            return parse_metric(f"flags@{number:g}")
        case Flags(number=number, per=per):
            return parse_metric(f"flags@{number:g}/{per:g}")
        case Cost(false_alarm=float() as alarm, miss=float() as miss):
            return parse_metric("cost", (alarm, miss))
        case Cost():
            raise ValueError(
                "costs per row only work with the estimators; for a table, give two "
                "numbers: {'cost': (false_alarm, miss)}"
            )
        case FBeta(beta=beta) if beta != 1:
            return replace(usual, name=f"f{beta:g}", threshold=("fbeta", beta))
        case FBeta() | MacroF1() if not isinstance(objective, Fixed):
            return usual
        case Fixed():
            return replace(usual, threshold=threshold)
    return replace(usual, name=objective.name, threshold=threshold)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores by model, and verdicts on which is better.

    ``headlines`` names the main scores, ``by_class`` has the scores of each of three or
    more classes, and ``chances`` the chance levels. ``threshold`` and ``probability`` are
    the cross-fitted ones of our vote on each row, NaN if it has none. ``top`` is what an
    alert budget finds. ``alike`` names the columns that define dependent rows, which the
    intervals account for, and ``blocks`` has the block of each row, -1 if it has no vote.
    """

    figures: dict[str, dict[str, Figure]]
    headlines: tuple[str, ...]
    verdicts: list[str]
    n_judged: int
    chances: dict[str, float]
    threshold: NDArray[np.float64]
    probability: NDArray[np.float64]
    by_class: dict[str, tuple[dict[str, Figure | None], ...]] | None = None
    top: TopFigures | None = None
    alike: dict[str, str] = field(default_factory=dict)
    blocks: NDArray[np.int16] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        plain: dict[str, Any] = {
            "models": {
                model: {name: figure.as_dict() for name, figure in figures.items()}
                for model, figures in self.figures.items()
            },
            "verdicts": self.verdicts,
            "rows_judged": self.n_judged,
            "chances": self.chances,
            "alike": self.alike,
        }
        if self.by_class is not None:
            plain["by_class"] = {
                model: [_figures_as_dict(figures) for figures in classes]
                for model, classes in self.by_class.items()
            }
        if self.top is not None:
            plain["top"] = {**self.top.as_dict(), "words": self.top.words}
        return plain


def _figures_as_dict(figures: dict[str, Figure | None]) -> dict[str, Any]:
    return {
        name: None if figure is None else figure.as_dict()
        for name, figure in figures.items()
    }


def compare_with_peers(
    table: Prepared,
    fitted: FittedVote,
    vote: NDArray[np.float64],
    metric: Metric,
    peers: Mapping[str, NDArray[np.float64]] | None,
    ours: str = OURS,
    advice: str = "",
) -> Comparison:
    """Score the vote and its baselines out of sample on the same rows.

    Thresholds, class factors and calibrators are cross-fitted over the same folds for all.
    For an alert budget, models are compared at the same number of flags, since thresholds
    learned on other rows flag more or fewer here. Without the rows in memory, there are no
    baselines. ``advice`` is given if a single model does as well.
    """
    decision, n_classes = fitted.classifier.decision_, fitted.n_classes
    targets = table.y.astype(np.intp)
    votes = {OURS: vote, **(peers or {})}
    has_vote = ~np.isnan(vote.reshape(len(vote), -1)).any(axis=1)
    truth = targets[has_vote]
    times, groups = (
        None if given is None else given[has_vote] for given in (table.times, table.groups)
    )
    blocks = alike_blocks(times, groups)
    figures, by_class, decided, learned = {}, {}, {}, {}
    for name, votes_of_all in votes.items():
        # Score all models on the rows that our vote covers.
        own = votes_of_all[has_vote]
        decisions, cuts = decision.crossfit(own, truth, has_vote, metric.threshold)
        chance = None
        if name == OURS and len(np.unique(truth)) < n_classes:
            # No votes for one class, so calibration cannot be cross-fitted.
            chance = fitted.labels.chances(own, decision.calibrator)
        elif n_classes == 2 or name == OURS:
            chance = decision.crossfit_probability(own, truth, has_vote)
        decided[name], learned[name] = (own, decisions), (cuts, chance)
        found = measure(truth, own, decisions, chance, cost=metric.cost, blocks=blocks)
        figures[name], by_class[name] = found.overall, found.by_class
    budget = None if metric.budget is None else metric.budget.among(len(table.y))
    how: Any = {"cost": metric.cost or (1.0, 1.0), "blocks": blocks}
    how["top"] = None if budget is None else budget.share
    alone = fitted.is_pool and len(fitted.names) == 1
    # A vote of one voter is not compared with itself.
    same = PEERS.get(fitted.names[0]) if alone else None
    gains = {
        name: compare(metric.measure, truth, decided[OURS], pair, **how)
        for name, pair in decided.items()
        if name not in (OURS, same)
    }
    verdicts = [verdict(name, metric, gain, ours) for name, gain in gains.items()]
    single = [gains[BEST]] if BEST in gains else gains.values()
    if advice and not alone and any(gain.low <= 0 for gain in single):
        wins = any(gain.high < 0 for gain in single)
        verdicts.append(advice.replace("{}", "better" if wins else "as well", 1))
    if budget is not None:
        flagged, asked = int(decided[OURS][1].sum()), round(budget.share * len(truth))
        if flagged != asked:
            verdicts.append(
                f"Precision, recall and F1 use thresholds learned on other rows, which "
                f"flag {flagged:,} of {len(truth):,} rows instead of {asked:,}. "
                f"{'The comparisons and h' if gains else 'H'}its use exactly {asked:,}."
            )
    weights = decision.comparison  # only for pools
    if weights is not None and weights.plain_kept:
        verdicts.append(
            f"All voters have equal weight: the out-of-fold average precision was "
            f"{weights.learned:.3f} with learned weights and {weights.plain:.3f} with "
            f"equal ones."
        )
    if peers is not None and n_classes > MOST_CLASSES and PEERS["lightgbm"] not in votes:
        verdicts.append(
            f"Not compared with LightGBM: with {n_classes} classes it would take far "
            f"longer than the fit. The strong pool includes it."
        )
    if peers is None:
        verdicts.append(
            "Not compared with a forest or LightGBM: they need all rows in memory."
        )
    several = by_class if n_classes > 2 else None
    top = None
    if budget is not None:
        n, judged = len(table.y), [budget.share * len(truth)]
        (top,) = top_figures(truth, vote[has_vote], judged, blocks=blocks)
        of = n if budget.per in (None, 1) else budget.per
        top = top.per(budget.share * of, of)
    threshold, probability = (np.full(vote.shape, np.nan) for _ in range(2))
    threshold[has_vote], probability[has_vote] = learned[OURS]
    numbers = None
    if blocks is not None:
        numbers = np.full(len(vote), -1, np.int16)
        numbers[has_vote] = blocks
    return Comparison(
        figures,
        headlines(figures[OURS]),
        verdicts,
        len(truth),
        found.chances,
        threshold,
        probability,
        several,
        top,
        table.alike,
        numbers,
    )


def promised_figures(scores: Mapping[str, Any]) -> dict[str, Any]:
    """The out-of-sample scores of a model at the threshold it uses."""
    own = scores.get("models", {}).get(OURS, {})
    found: dict[str, Any] = scores.get("guarantee", {}).get("figures", own)
    return found


def leaderboard(
    fitted: FittedVote, peers: Mapping[str, NDArray[np.float64]], metric: Metric
) -> list[dict[str, Any]]:
    """Scores of each voter, of the votes of all, and of the baselines, as plain values.

    All are out of sample. Voters with hard votes are scored on the rows they were not
    trained on. Voters dropped for their time are listed without weight. If whole fits are
    used for out-of-sample votes, single voters have no scores. For an alert budget, the
    same number of highest votes is flagged for all.
    """
    classifier, reported = fitted.classifier, fitted.reported
    decision, votes = classifier.decision_, classifier.votes_
    targets, folds = votes.targets.astype(np.intp), decision.folds
    budget, cost = metric.budget, metric.cost

    def soft(vote: NDArray[np.float64]) -> dict[str, float]:
        some = ~np.isnan(vote.reshape(len(vote), -1)).any(axis=1) & (folds >= 0)
        own, truth = vote[some], targets[some]
        if budget is not None:  # the same number of flags for all
            n_flags = max(1, round(budget.among(len(targets)).share * len(own)))
            decided = np.zeros(len(own), np.intp)
            chance = np.random.RandomState(0).permutation(len(own))  # break ties at random
            decided[np.lexsort((chance, -own))[:n_flags]] = 1
        else:
            decided, _ = decision.crossfit(own, truth, some, metric.threshold)
        return point_figures(truth, own, decided, reported, cost=cost)

    rows = [
        {"model": WEIGHTED, **soft(decision.out_of_sample_vote), "weight": None},
        {"model": PLAIN, **soft(decision.plain_vote), "weight": None},
    ]
    own_names = set()
    found: dict[str, Any]
    for k, (name, weight) in enumerate(zip(fitted.names, fitted.weights, strict=True)):
        if fitted.is_pool:
            found = soft(votes.votes[:, k].astype(np.float64))
        elif decision.weighting.refitted is not None:
            found = dict.fromkeys(rows[0].keys() - {"model", "weight"})
        else:
            unseen = np.unpackbits(votes.out_of_bag[k], count=len(targets)).astype(bool)
            decided = fitted.decided_by_each(votes.votes[unseen, k : k + 1])[:, 0]
            truth = targets[unseen]
            found = point_figures(truth, None, decided, reported, cost=cost)
        rows.append({"model": name, **found, "weight": float(weight)})
        own_names.add(PEERS.get(name, name))
    for name, vote in getattr(classifier, "slow_votes_", {}).items():
        rows.append({"model": name, **soft(vote.astype(np.float64)), "weight": 0.0})
        own_names.add(PEERS.get(name, name))
    for name, vote in peers.items():
        if name not in own_names:
            rows.append({"model": name, **soft(vote), "weight": None})
    return rows


def peer_votes(
    classifier: Any,
    X: Any,
    targets: NDArray[np.intp],
    seed: int,
    seconds: dict[str, float],
    cv: Any = None,
) -> dict[str, NDArray[np.float64]]:
    """Out-of-fold votes of the baselines, from the pool or from training them.

    ``cv`` are the splits that the classifier was fitted with, if any.
    """
    voters, folds = classifier.voters_, classifier.votes_.folds
    if isinstance(voters, PoolVoters):
        own = classifier.votes_.votes
        there = {name: own[:, k] for k, name in enumerate(voters.names) if name in PEERS}
        there |= classifier.slow_votes_
        return {
            words: there[name].astype(np.float64)
            for name, words in PEERS.items()
            if name in there
        }
    n_classes = classifier.labels_.n_classes
    boosts = can_load("lightgbm") and n_classes <= MOST_CLASSES
    names = [name for name in PEERS if name != "lightgbm" or boosts]
    splits = cv or [
        (np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
        for fold in range(int(folds.max()) + 1)
    ]
    took: dict[str, float] = {}
    votes = out_of_fold_votes(
        [(name, voter_of_pool(name, X, targets, seed)) for name in names],
        X,
        targets,
        n_classes=n_classes,
        seed=seed,
        cv=[(train, test) for train, test in splits if len(test)],
        n_jobs=classifier.n_jobs,
        seconds=took,
    )
    seconds |= {PEERS[name]: spent for name, spent in took.items()}
    return {PEERS[name]: votes[:, k].astype(np.float64) for k, name in enumerate(names)}


def verdict(name: str, metric: Metric, gain: Figure, ours: str = OURS) -> str:
    """Which model is better and by how much, in words.

    Intervals are for the better score minus the other: below 0 for a lower cost.
    """
    # A cost per row is tiny if positives are rare.
    form = ".2g" if metric.measure == "cost" else ".3f"
    size = f"{abs(gain.value):{form}}"
    sure, theirs = (
        f"90% CI: {low:+{form}} to {high:+{form}}"
        for low, high in ((gain.low, gain.high), (-gain.high, -gain.low))
    )
    less = "higher"
    if metric.measure == "cost":  # the gain is an improvement, so a lower cost
        sure, theirs, less = theirs, sure, "lower"
    article = {"plain forest": "a ", BEST: "the ", WEIGHTED: "the "}.get(name, "")
    peer = f"{article}{name}"
    if gain.low > 0:
        return f"{ours} beats {peer}: its {metric.words} is {size} {less} ({sure})."
    if gain.high < 0:
        return (
            f"{peer[0].upper()}{peer[1:]} beats {ours}: its {metric.words} is {size} "
            f"{less} ({theirs})."
        )
    sure = sure.replace("CI", "CI of the difference")
    return f"{ours} and {peer} tie on {metric.words} ({sure})."
