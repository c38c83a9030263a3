"""How the scores and decisions of two models differ on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..decision import Flags, recall_of_top
from ..messages import counted
from ..selection import objective_of
from ..tables import check_carried, listed, pick
from ..validation import require_number_of_rows
from .draws import draw_pairs, widening
from .measures import MEASURES, Figure, compare, point_figures
from .rows import (
    ALL_NEW,
    UNKNOWN,
    Judged,
    alike_words,
    class_names,
    honest_rows,
    with_blocks,
)
from .voters import FittedVote

if TYPE_CHECKING:
    import pandas as pd

    from ..io import ModelParts

Numbers = NDArray[np.intp]
Pair = tuple[Any, Any]

OWN = ("row", "label", "old score", "new score", "old decision", "new decision")
"""Columns of the table of rows on which two models differ."""
FEWEST = 5
"""Rows of each class needed to say which model is better."""
HITS, FEWEST_HITS = "hits in the top", 10
"""Hits of the better model needed to say which one has more."""


@dataclass(frozen=True, eq=False, repr=False)
class Differences:
    """How a new model differs from an old one. ``print`` it to read it.

    Attributes
    ----------
    table : DataFrame
        A row per score: hits in the top rows (if there is an alert budget), AP, F1 and
        cost per row (if costs are known), as macro means for three or more classes, and
        the rows flagged, or given each class. Columns: ``old``, ``new``, ``difference``
        (new minus old) and its 90% interval ``low`` to ``high``, from a paired bootstrap.
        Without labels, only the counts of decisions.
    rows : DataFrame
        The rows on which the decisions differ, largest change in probability first.
    judged : int
        How many rows both models scored.
    words : tuple of str
        Which model is better, and how the rows were scored.
    """

    table: pd.DataFrame
    rows: pd.DataFrame
    judged: int
    words: tuple[str, ...]

    @property
    def agreement(self) -> float:
        """The share of rows on which both models decide the same."""
        return 1 - len(self.rows) / self.judged

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "rows": self.judged,
            "agreement": self.agreement,
            "figures": self.table.to_dict("index"),
            "words": list(self.words),
            "differ": self.rows.to_dict("records"),
        }

    def __repr__(self) -> str:
        return "\n".join([str(self.table.round(3)), *self.words])

    def _repr_html_(self) -> str:
        told = "".join(f"<p>{escape(text)}</p>" for text in self.words)
        return self.table.round(3).to_html() + told


def differences(
    models: tuple[ModelParts, ModelParts],
    frames: tuple[pd.DataFrame, pd.DataFrame],
    *,
    target: str | None = None,
    cost: tuple[float, float] | None = None,
    top: int | None = None,
    carried: Sequence[str] = (),
) -> Differences:
    """Compare an old and a new model on the same rows.

    Parameters
    ----------
    models : (old, new)
    frames : (DataFrame, DataFrame)
        The same table, as each model reads it.
    target : str, optional
        The column of true labels; some may be missing. Default: the models' target, if
        the table has it.
    cost : (false alarm, miss), optional
        Default: those of the models, if they agree.
    top : int, optional
        Also compare the hits among each model's ``top`` highest votes. Default: the alert
        budget that both models were fitted for, if it is the same share of the rows.
    carried : sequence of str
        Columns of the table to show with the rows on which the models differ.
    """
    import pandas as pd

    old, new = models
    if top is not None:
        old.target.require_two("the top rows of one class are", "leave top out")
        require_number_of_rows(top, "top")
    name = _target(old, new, target)
    check_carried(carried, list(frames[0].columns), OWN)
    if target is not None:
        pick(frames[0], target, "target")
    there = name if name in frames[0].columns else None
    one = _judge(old, frames[0], there, "old")
    other = _judge(new, frames[1], there, "new")
    told = [replace(judged, alike={}).words for judged in (one, other)]
    both = one.has_vote & other.has_vote
    if not both.any():
        raise ValueError("no row can be scored out of sample by both models")
    one, other = (_only(judged, both) for judged in (one, other))
    alike = with_blocks(new, frames[1], other)
    if alike.blocks is None:
        alike = with_blocks(old, frames[0], one)
    blocks = alike.blocks
    figures = _flags(old, (one, other), both, blocks)
    words = []
    labelled = np.zeros(len(both), bool)
    if one.labels is not None:
        labelled = both & (one.labels != UNKNOWN)
    truth = one.labels[labelled] if one.labels is not None else np.empty(0, np.intp)
    sizes = np.unique(truth, return_counts=True)[1].tolist()
    if len(sizes) > 1:
        within = None if blocks is None else blocks[labelled[both]]
        cost, why = _cost(old, new, cost)
        found = _hits(models, (one, other), labelled, within, top)
        found |= _figures(old, (one, other), labelled, within, cost)
        words += [why] * bool(why)
        if min(sizes) < FEWEST:  # too few to bootstrap
            few = counted(min(sizes), "row")
            words.append(f"One class has only {few}: too few to say which model is better.")
        else:
            words += [
                f"Too few {name} ({max(pair):.0f}) to say which model is better."
                if name.startswith(HITS) and max(pair) < FEWEST_HITS
                else _verdict(name, (pair, gain))
                for name, (pair, gain) in found.items()
            ]
        figures = found | figures
    else:
        words.append(_why_unlabelled(name, there, labelled))
        if top is not None:
            words.append(f"Hits in the top {top:,} are not counted, for the same reason.")
    rows = pd.DataFrame(
        {
            MEASURES.get(key, key): [*pair, gain.value, gain.low, gain.high]
            for key, (pair, gain) in figures.items()
        },
        index=["old", "new", "difference", "low", "high"],
    ).T
    n, differ = int(both.sum()), both & (one.decided != other.decided)
    each = ["Both models"] if told[0] == told[1] else ["Old model", "New model"]
    if len(each) == 1 and told[0].endswith(ALL_NEW):
        words.append(told[0].removesuffix(ALL_NEW) + "new to both models.")
    else:
        words += [f"{who}: {text}" for who, text in zip(each, told, strict=False)]
    if n < len(both):
        rest = counted(len(both) - n, "row is", "rows are")
        words.append(f"{rest} left out: one of the models cannot score them.")
    if blocks is not None:
        words.append(alike_words(alike.alike))
    listed_rows = _rows(old, (one, other), frames[0], np.flatnonzero(differ), carried)
    return Differences(rows, listed_rows, n, tuple(words))


def _target(old: ModelParts, new: ModelParts, target: str | None) -> str:
    """The column of true labels; an error if the models have different classes."""
    one, other = old.target, new.target
    if target is None and one.name != other.name:
        raise ValueError(
            f"the old model predicts {one.name!r} and the new one {other.name!r}; give two "
            f"models of the same target, or name the column of true labels (target)"
        )
    names = [class_names(one), class_names(other)]
    if one.positive != other.positive or len(names[0]) != len(names[1]):
        told = [
            f"{found[-1]!r}" if len(found) == 2 else listed([*found]) for found in names
        ]
        raise ValueError(
            f"the old model finds {told[0]} and the new one {told[1]}, so they cannot be "
            f"compared; fit the new one with --like, or with the same positive label"
        )
    odd = [*one.classes, *other.classes] if one.classes != other.classes else []
    odd = [label for label in odd if label not in one.classes or label not in other.classes]
    if odd:
        raise ValueError(
            f"only one of the models knows the class {odd[0]!r}, so they cannot be "
            f"compared; fit both on tables with the same classes"
        )
    return target or one.name


def _judge(model: Any, frame: pd.DataFrame, target: str | None, which: str) -> Judged:
    try:
        return honest_rows(model, frame, target, partly=True)
    except ValueError as error:
        raise ValueError(f"the {which} model cannot score the table: {error}") from None


def _only(judged: Judged, some: NDArray[np.bool_]) -> Judged:
    """The same, with votes on some rows only."""
    columns = np.where(some[:, None], judged.columns, np.nan)
    return replace(judged, vote=columns.reshape(judged.vote.shape))


def _flags(
    model: ModelParts, judged: Pair, both: NDArray[np.bool_], blocks: Numbers | None
) -> dict[str, tuple[Pair, Figure]]:
    """How many rows each model flags, or gives each class, and the difference."""
    names = class_names(model.target)
    decided = [one.decided[both] for one in judged]
    n, nobody = len(decided[0]), np.zeros(len(decided[0]), np.intp)
    rng, swapped = np.random.RandomState([0, 29]), _swapped(*decided)
    pair_in_order = decided[::-1] if swapped else decided
    tables = draw_pairs(rng, nobody, pair_in_order, len(names), blocks)
    one, other = (table[:, 0] / table[:, 0].sum(axis=1, keepdims=True) for table in tables)
    moved = n * (one - other if swapped else other - one)
    found, looked_for = {}, FittedVote(model.classifier).labels.reported.tolist()
    for c in looked_for:
        pair = float((decided[0] == c).sum()), float((decided[1] == c).sum())
        gain, draws = pair[1] - pair[0], moved[1:, c]
        if blocks is not None:
            draws = gain + widening(blocks) * (draws - draws.mean())
        key = f"decided {names[c]!r}" if len(looked_for) > 1 else "flags"
        found[key] = pair, Figure.around(gain, draws)
    return found


def _swapped(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether to swap two models in the bootstrap.

    A canonical order makes the draws, and the differences, the same whichever is old.
    """
    return one.tobytes() > other.tobytes()


def _hits(
    models: tuple[ModelParts, ModelParts],
    judged: Pair,
    some: NDArray[np.bool_],
    blocks: Numbers | None,
    top: int | None,
) -> dict[str, tuple[Pair, Figure]]:
    """Positives among the rows with the highest votes, the same number for each model."""
    truth, n = judged[0].labels[some], int(some.sum())
    if top is None:
        aims = [objective_of(model.classifier) for model in models]
        shares = {aim.share if isinstance(aim, Flags) and aim.per else 0.0 for aim in aims}
        share = shares.pop() if len(shares) == 1 else 0.0
        rows = max(1.0, round(n * share)) if share else 0.0
    else:
        rows = float(min(top, n))
    if not rows:
        return {}
    votes, positive = [own.vote[some] for own in judged], truth == 1
    whole, part = np.ones((1, n)), rows / n
    pair = [
        float(positive.sum() * recall_of_top(vote, positive, whole, part)[0])
        for vote in votes
    ]
    swapped = _swapped(*votes)
    ours, other = votes if swapped else votes[::-1]
    gain = compare("recall", truth, (ours, ours), (other, other), top=part, blocks=blocks)
    gain = gain.times(positive.sum())
    if swapped:
        gain = Figure(0.0 - gain.value, 0.0 - gain.high, 0.0 - gain.low, gain.spread)
    return {f"{HITS} {rows:,.0f}": ((pair[0], pair[1]), gain)}


def _figures(
    model: ModelParts,
    judged: Pair,
    some: NDArray[np.bool_],
    blocks: Numbers | None,
    cost: tuple[float, float] | None,
) -> dict[str, tuple[Pair, Figure]]:
    labels = FittedVote(model.classifier).labels
    truth = judged[0].labels[some]
    pairs = [(own.vote[some], own.decided[some]) for own in judged]
    points = [point_figures(truth, *pair, labels.reported, cost=cost) for pair in pairs]
    names = {f"{labels.averaged}ap": "AP", f"{labels.averaged}f1": "F1"}
    names |= {} if cost is None else {"cost": "cost"}
    found = {}
    for measure, key in names.items():
        by = 0 if key == "AP" else 1  # the votes alone, or the decisions
        swapped = _swapped(*(pair[by] for pair in pairs))
        ours, other = pairs if swapped else pairs[::-1]
        gain = compare(measure, truth, ours, other, cost=cost or (1, 1), blocks=blocks)
        # compare() is positive in favour of the first, which for costs means lower.
        if swapped != (measure == "cost"):
            gain = Figure(0.0 - gain.value, 0.0 - gain.high, 0.0 - gain.low, gain.spread)
        found[measure] = (points[0][key], points[1][key]), gain
    return found


def _cost(
    old: ModelParts, new: ModelParts, cost: tuple[float, float] | None
) -> tuple[tuple[float, float] | None, str]:
    """The costs of errors, or why there are none."""
    if cost is not None:
        old.target.require_two("costs are", "leave them out")
        return cost, ""
    known = {tuple(one.scores.get("cost") or ()) for one in (old, new)} - {()}
    if len(known) > 1:
        told = " and ".join(f"{alarm:g} and {miss:g}" for alarm, miss in sorted(known))
        return None, (
            f"The models were fitted with different costs of a false alarm and a miss "
            f"({told}). Give the costs to compare by."
        )
    return next(iter(known), None), ""


def _verdict(measure: str, found: tuple[Pair, Figure]) -> str:
    _, gain = found
    words = MEASURES.get(measure, measure)
    form = ".2g" if measure == "cost" else ".3f" if measure in MEASURES else ".3g"
    sure = f"90% CI: {gain.low:+{form}} to {gain.high:+{form}}"
    if gain.low <= 0 <= gain.high:
        return f"No clear difference in {words} ({sure})."
    more = "higher" if gain.value > 0 else "lower"
    better = (gain.value > 0) != (measure == "cost")
    return (
        f"The {'new' if better else 'old'} model has the better {words}: the new one's is "
        f"{abs(gain.value):{form}} {more} ({sure})."
    )


def _why_unlabelled(name: str, there: str | None, labelled: NDArray[np.bool_]) -> str:
    if there is None:
        return f"No column {name!r}, so only decisions are compared."
    if not labelled.any():
        return f"{name!r} is missing in all rows, so only decisions are compared."
    return (
        f"All rows with {name!r} have the same class, so only decisions are compared: AP "
        f"and F1 need two classes."
    )


def _rows(
    model: ModelParts,
    judged: Pair,
    frame: pd.DataFrame,
    rows: Numbers,
    carried: Sequence[str],
) -> pd.DataFrame:
    """The rows on which two models differ."""
    import pandas as pd

    moved = [one.probability.reshape(len(frame), -1)[rows] for one in judged]
    by = np.abs(np.subtract(*moved)).sum(axis=1)
    rows = rows[np.argsort(-by, kind="stable")]
    labels = pd.Series([*model.target.as_given(), None], dtype=object).to_numpy()
    own: dict[str, Any] = {"row": rows + 1}
    own |= {name: frame[name].to_numpy()[rows] for name in carried}
    if judged[0].labels is not None:
        own["label"] = labels[judged[0].labels[rows]]
    for which, one in zip(("old", "new"), judged, strict=True):
        votes, decided = one.columns[rows], one.decided[rows]
        at = np.minimum(decided, votes.shape[1] - 1)  # with two classes, the positive one
        own[f"{which} score"] = votes[np.arange(len(rows)), at]
    for which, one in zip(("old", "new"), judged, strict=True):
        own[f"{which} decision"] = labels[one.decided[rows]]
    return pd.DataFrame(own)
