"""What a model is judged by, and beside whom: metrics, peers on the same rows, leaderboard.

All figures are out of sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
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
    crossfit_decisions,
    crossfit_probability,
    crossfit_thresholds,
    decide,
    parse_objective,
)
from ..evaluation import (
    Figure,
    FittedVote,
    TopFigures,
    compare,
    measure,
    point_figures,
    top_figures,
)
from ..folds import alike_blocks
from ..tables import Target
from ..voters import PoolVoters, many_categories, out_of_fold_votes, strong_pool
from ..weighting import crossfitted_vote
from .table import Prepared

KNOWN = "f1, ap, recall@0.9, precision@0.5, flags@200 (or @1%, @200/10000) or cost"
MACRO = {"macro_f1": "macro F1", "macro_ap": "macro AP"}
"""Metrics of three or more classes, and what to call them: means over the classes."""
PEERS = {"forest": "plain forest", "lightgbm": "LightGBM"}
"""Voters of the strong pool, and what users call them."""
OURS = "DAMVI"
BEST = "best single model"
"""Of a pool, chosen for each fold without it."""
WEIGHTED, PLAIN = "weighted vote", "plain vote"
SINGLE_MODEL = "A single model does {} here: --pool best (in Python pool='best') takes it."
OF_YOURS = "A single model does {} here. The best alone of your voters: "
MOST_CLASSES = 30
"""Beside trees, LightGBM is trained for up to as many classes: it grows a tree for each, in
every round, which at a hundred classes takes twenty times as long as the fit."""


@dataclass(frozen=True)
class Metric:
    """A metric of the command line.

    Attributes
    ----------
    name : str
        As the user wrote it.
    threshold : str or dict
        What the threshold is tuned for, in the words of
        :func:`damvi.decision.parse_objective`.
    measure : str
        The figure by which models are compared, of :data:`damvi.evaluation.MEASURES`.
    words : str
    cost : (float, float) or None
        Of a false alarm and a miss.
    """

    name: str
    threshold: Any
    measure: str
    words: str
    cost: tuple[float, float] | None = None

    @property
    def budget(self) -> Flags | None:
        """How many rows are to be flagged, if it is that."""
        named = isinstance(self.threshold, dict) and "flags" in self.threshold
        aim = parse_objective(self.threshold) if named else None
        return aim if isinstance(aim, Flags) else None


def parse_metric(text: str, cost: tuple[float, float] | None = None) -> Metric:
    """The metric that a text stands for.

    ``recall@0.9`` is the best precision among thresholds that find 90 % of the positives,
    ``precision@0.5`` the best recall among those where half of the flagged are positive.
    ``flags@200`` flags 200 of as many rows as there are, ``flags@200/10000`` of every
    10,000, and ``flags@1%`` a share.
    ``ap`` judges the ranking; its threshold is the best for F1. ``macro_f1`` and
    ``macro_ap`` are their means over three or more classes.

    Examples
    --------
    >>> parse_metric("recall@0.9").threshold
    {'recall': 0.9}
    >>> parse_metric("flags@200/10000").threshold
    {'flags': (200.0, 10000.0)}
    >>> parse_metric("cost", (1, 20)).words
    'cost a row'
    """
    if text in MACRO:
        if cost is not None:
            raise ValueError(
                f"the metric {text} is for three or more classes, and the costs of a miss "
                f"and a false alarm are for two; leave out one of them"
            )
        return Metric(text, "macro_f1", text, MACRO[text])
    if text == "cost":
        if cost is None or min(cost) <= 0:
            raise ValueError(
                "the metric cost needs what errors cost, as in --cost-miss 20 "
                "--cost-false-alarm 1, each above 0"
            )
        return Metric(text, {"cost": cost}, "cost", "cost a row", cost)
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
        f"the metric {text!r} is not known; give {KNOWN}; with three or more classes "
        f"{' or '.join(MACRO)}"
    )


def metric_for(target: Target, asked: Metric | None = None) -> Metric:
    """The metric that was asked for, if it goes with the classes, or the usual one.

    Examples
    --------
    >>> from damvi.tables import TargetOfMany
    >>> metric_for(TargetOfMany("kind", classes=("a", "b", "c"))).name
    'macro_f1'
    """
    if asked is None:
        return parse_metric(target.usual_metric)
    named = "or name the class to find with --positive"
    if asked.cost is not None:
        costs = "the costs of a miss and a false alarm are"
        target.require_two(costs, f"leave them out, {named}")
    what = f"the metric {asked.name} is"
    if asked.measure in MACRO:
        target.require_many(what, f"give {KNOWN}")
    else:
        target.require_two(what, f"give {' or '.join(MACRO)}, {named}")
    return asked


def as_metric(threshold: Any, target: Target, n_rows: int) -> Metric:
    """The metric of what a user's ``threshold`` is for, in any words that are known.

    Parameters
    ----------
    threshold : str, dict, tuple, number, Objective, Metric or None
        Those of :func:`parse_metric`, as ``"recall@0.9"``, and those of the estimators, as
        ``{"cost": (1, 20)}``; None is the usual one.
    target : Target
    n_rows : int
        Of the table: so many flags are of as many rows, if nobody says of how many.

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
                "costs by row are for the estimators: rows of a table may be left out, and "
                "scores need one cost; give {'cost': (false_alarm, miss)} of two numbers"
            )
        case FBeta(beta=beta) if beta != 1:
            return replace(usual, name=f"f{beta:g}", threshold=("fbeta", beta))
        case FBeta() | MacroF1() if not isinstance(objective, Fixed):
            return usual
    return replace(usual, threshold=threshold)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Figures by model and measure, and words on who is better.

    ``by_class`` has those of three or more classes, one after the other, and ``chances``
    what scores without any skill would have. ``threshold`` and ``probability`` are what our
    vote on each row was judged by: learned on other rows, in the shape of the vote, NaN
    where there is none. ``top`` is what a budget of flags finds. ``alike`` are the
    columns that say which rows are alike, so that the intervals heed it, and ``blocks`` has
    the number of each row's block then, -1 where there is no vote.
    """

    figures: dict[str, dict[str, Figure]]
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
    classifier: Any,
    vote: NDArray[np.float64],
    metric: Metric,
    peers: Mapping[str, NDArray[np.float64]] | None,
    ours: str = OURS,
    advice: str = "",
) -> Comparison:
    """Judge the vote and its peers on the same rows, all of them out of sample.

    Thresholds, factors of classes and calibrators are cross-fitted over the same folds for
    all. For a budget of flags, who is better is told by as many flags for all: thresholds
    that were learned on other rows flag more or fewer here. Where the rows are not in
    memory there are no peers. ``advice`` is for where a single model does as well.
    """
    weighting, order = classifier.decision_.weighting, classifier.labels_.target_order
    folds, forward = weighting.folds, weighting.forward
    targets, n_classes = table.y.astype(np.intp), table.target.n_classes
    votes = {OURS: vote, **(peers or {})}
    has_vote = ~np.isnan(vote.reshape(len(vote), -1)).any(axis=1)
    truth, some = targets[has_vote], folds[has_vote]
    times, groups = (
        None if given is None else given[has_vote] for given in (table.times, table.groups)
    )
    blocks = alike_blocks(times, groups)
    figures, by_class, decided, learned = {}, {}, {}, {}
    for name, votes_of_all in votes.items():
        # Rows that have no vote of ours are nobody's, so that all are judged alike.
        own = votes_of_all[has_vote]
        cuts = crossfit_thresholds(
            own, truth, metric.threshold, some, forward=forward, order=order, smooth=True
        )
        decisions = decide(own, cuts, order)
        chance = None
        if name == OURS and len(np.unique(truth)) < n_classes:
            # A class none of whose rows has a vote: nothing can be learned on other rows.
            chance = classifier.labels_.chances(own, classifier.decision_.calibrator)
        elif n_classes == 2 or name == OURS:
            chance = crossfit_probability(own, truth, some, forward=forward)
        decided[name], learned[name] = (own, decisions), (cuts, chance)
        found = measure(truth, own, decisions, chance, cost=metric.cost, blocks=blocks)
        figures[name], by_class[name] = found.overall, found.by_class
    budget = None if metric.budget is None else metric.budget.among(len(table.y))
    how: Any = {"cost": metric.cost or (1.0, 1.0), "blocks": blocks}
    how["top"] = None if budget is None else budget.share
    gains = {
        name: compare(metric.measure, truth, decided[OURS], pair, **how)
        for name, pair in decided.items()
        if name != OURS
    }
    verdicts = [verdict(name, metric, gain, ours) for name, gain in gains.items()]
    single = [gains[BEST]] if BEST in gains else gains.values()
    if advice and any(gain.low <= 0 for gain in single):
        wins = any(gain.high < 0 for gain in single)
        verdicts.append(advice.replace("{}", "better" if wins else "as well", 1))
    if budget is not None:
        flagged, asked = int(decided[OURS][1].sum()), round(budget.share * len(truth))
        if flagged != asked:
            verdicts.append(
                f"Precision, recall and F1 are at thresholds learned from other rows: that "
                f"of the vote flagged {flagged:,} of {len(truth):,} rows, not {asked:,}. "
                f"W{'ho is better, and w' if gains else ''}hat is in the highest votes, is "
                f"told by exactly {asked:,}."
            )
    weights = classifier.decision_.comparison  # of a pool
    if weights is not None and weights.plain_kept:
        verdicts.append(
            f"All voters weigh the same: learned weights had average precision "
            f"{weights.learned:.3f} out of fold, and equal ones {weights.plain:.3f}."
        )
    if peers is not None and n_classes > MOST_CLASSES and PEERS["lightgbm"] not in votes:
        verdicts.append(
            f"LightGBM is not compared beside trees: with {n_classes} classes it would "
            f"take far longer than the fit. The strong pool has it."
        )
    if peers is None:
        verdicts.append(
            "No forest or LightGBM beside it: they would need all rows in memory."
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
    """The figures of a model, out of sample, at the threshold that it decides by."""
    own = scores.get("models", {}).get(OURS, {})
    found: dict[str, Any] = scores.get("guarantee", {}).get("figures", own)
    return found


def leaderboard(
    classifier: Any, peers: Mapping[str, NDArray[np.float64]], metric: Metric
) -> list[dict[str, Any]]:
    """Each voter alone, the votes of all, and peers that were trained beside: plain values.

    All are out of sample; voters that vote hard are judged on the rows that each was not
    trained on; those that were left out for their time are there without a weight. Where
    whole fits judge the rows, no voter of the model itself does. For a
    budget of flags the rows with the highest votes are flagged, as many of each.
    """
    weighting, votes = classifier.decision_.weighting, classifier.votes_
    labels, folds = classifier.labels_, weighting.folds
    targets, cost = votes.targets.astype(np.intp), metric.cost
    budget = metric.budget

    def soft(vote: NDArray[np.float64]) -> dict[str, float]:
        some = ~np.isnan(vote.reshape(len(vote), -1)).any(axis=1) & (folds >= 0)
        own, truth = vote[some], targets[some]
        if budget is not None:  # as many flags for all
            n_flags = max(1, round(budget.among(len(targets)).share * len(own)))
            decided = np.zeros(len(own), np.intp)
            chance = np.random.RandomState(0).permutation(len(own))  # of equal votes any
            decided[np.lexsort((chance, -own))[:n_flags]] = 1
            return point_figures(truth, own, decided, labels.reported, cost=cost)
        decided = crossfit_decisions(
            own,
            truth,
            metric.threshold,
            folds[some],
            forward=weighting.forward,
            order=labels.target_order,
            smooth=True,
        )
        return point_figures(truth, own, decided, labels.reported, cost=cost)

    even = np.full(len(classifier.weights_), 1 / len(classifier.weights_))
    if weighting.refitted is None:
        plain = crossfitted_vote(
            votes,
            weighting.others,
            weighting.settings,
            classifier.n_jobs,
            weights=[even] * len(weighting.others),
        )
    else:
        plain = weighting.refitted.plain
    rows = [
        {
            "model": WEIGHTED,
            **soft(classifier.decision_.out_of_sample_vote),
            "weight": None,
        },
        {"model": PLAIN, **soft(plain), "weight": None},
    ]
    fitted, own_names = FittedVote(classifier), set()
    found: dict[str, Any]
    for k, (name, weight) in enumerate(zip(fitted.names, fitted.weights, strict=True)):
        if fitted.is_pool:
            found = soft(votes.votes[:, k].astype(np.float64))
        elif weighting.refitted is not None:
            found = dict.fromkeys(rows[0].keys() - {"model", "weight"})
        else:
            unseen = np.unpackbits(votes.out_of_bag[k], count=len(targets)).astype(bool)
            decided = fitted.decided_by_each(votes.votes[unseen, k : k + 1])[:, 0]
            truth = targets[unseen]
            found = point_figures(truth, None, decided, labels.reported, cost=cost)
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
    """Votes out of fold: those that the pool took already, or by a training for them.

    ``cv`` are the splits that the classifier was fitted with, if it was with any.
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
    boosts = find_spec("lightgbm") is not None and n_classes <= MOST_CLASSES
    names = [name for name in PEERS if name != "lightgbm" or boosts]
    rates = bool(many_categories(X))
    pool = dict(strong_pool(seed, targets, rates=rates, extended=True))
    splits = cv or [
        (np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
        for fold in range(int(folds.max()) + 1)
    ]
    took: dict[str, float] = {}
    votes = out_of_fold_votes(
        [(name, pool[name]) for name in names],
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
    """Who is better, by how much our figure is, in words.

    Intervals are of the first one's figure less the other's: below 0 for a lower cost.
    """
    # A cost a row is tiny where the positives are rare.
    form = ".2g" if metric.measure == "cost" else ".3f"
    size = f"{abs(gain.value):{form}}"
    sure, theirs = (
        f"90 %: {low:+{form}} to {high:+{form}}"
        for low, high in ((gain.low, gain.high), (-gain.high, -gain.low))
    )
    less = "higher"
    if metric.measure == "cost":  # the gain is how much better it is, and that is less
        sure, theirs, less = theirs, sure, "lower"
    article = {"plain forest": "a ", BEST: "the ", WEIGHTED: "the "}.get(name, "")
    peer = f"{article}{name}"
    if gain.low > 0:
        return (
            f"{ours} does better than {peer}: its {metric.words} is {size} {less} ({sure})."
        )
    if gain.high < 0:
        return (
            f"{peer[0].upper()}{peer[1:]} does better: its {metric.words} is {size} "
            f"{less} ({theirs})."
        )
    return f"{ours} and {peer} tie on {metric.words} (difference, {sure})."
