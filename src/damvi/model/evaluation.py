"""Evaluate a model on a labelled table."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ..evaluation import (
    MEASURES,
    Figure,
    Figures,
    FittedVote,
    Judged,
    TopFigures,
    class_names,
    honest_blocks,
    honest_rows,
    measure,
    top_figures,
)
from ..io import ModelParts
from ..tables import label_texts, pick
from ..validation import require_number_of_rows
from .dataset import DatasetRows

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """A model's scores on a table. ``print`` it to read it.

    Attributes
    ----------
    figures : Figures
        Scores with intervals, overall and by class, and the confusion table.
    names : tuple of str
        The class names, in order of their numbers.
    words : str
        How the rows were scored; training rows are scored out of sample.
    dropped : int
        Unlabelled rows.
    top : TopFigures or None
        What is found among the highest scores, if requested.
    promise : str
        The model's guarantee and how it held here; empty if it has none.
    """

    figures: Figures
    names: tuple[str, ...]
    words: str
    dropped: int
    top: TopFigures | None
    promise: str
    _judged: Judged
    _fitted: FittedVote

    @property
    def table(self) -> pd.DataFrame:
        """The scores, each with its 90% interval."""
        import pandas as pd

        rows = {
            MEASURES[name]: [one.value, one.low, one.high]
            for name, one in self.figures.overall.items()
        }
        return pd.DataFrame.from_dict(rows, "index", columns=["value", "low", "high"])

    @property
    def total_cost(self) -> float | None:
        """The total cost of errors, if costs are known."""
        cost = self.figures.overall.get("cost")
        return None if cost is None else round(cost.value * self.figures.confusion.sum(), 6)

    @property
    def remarks(self) -> list[str]:
        """Notes below the scores: the total cost, the top rows, the guarantee."""
        cost = (
            "" if self.total_cost is None else f"The total cost is {self.total_cost:,.10g}."
        )
        top = "" if self.top is None else self.top.words
        return [text for text in (cost, top, self.promise) if text]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; with two classes, scores of the positive one."""
        summary, counts = self.figures.as_dict(), self.figures.confusion
        sizes, named = counts.sum(axis=1).tolist(), counts.sum(axis=0).tolist()
        labels, judged = self._fitted.labels, self._judged
        own = dict(zip(labels.reported.tolist(), summary["by_class"], strict=True))
        return {
            "rows": int(judged.has_vote.sum()),
            "training_rows": judged.n_of_fit,
            "rows_without_vote": int((~judged.has_vote).sum()),
            "classes": [
                {"class": name, "rows": sizes[c], "named": named[c], **own.get(c, {})}
                for c, name in enumerate(self.names)
            ],
            "figures": summary["overall"],
            "chances": summary["chances"],
            "confusion": summary["confusion"],
            "confusion_shares": summary["shares"],
            **labels.told(self._fitted.threshold),
            **({} if self.top is None else {"top": self.top.as_dict()}),
            **({} if self.total_cost is None else {"total_cost": self.total_cost}),
            **({"promise": self.promise} if self.promise else {}),
        }

    def __repr__(self) -> str:
        return "\n".join([self.words, str(self.table.round(3)), *self.remarks])

    def _repr_html_(self) -> str:
        below = "".join(f"<p>{escape(text)}</p>" for text in self.remarks)
        return f"<p>{escape(self.words)}</p>{self.table.round(3).to_html()}{below}"


def evaluate(
    model: ModelParts,
    table: pd.DataFrame | DatasetRows,
    target: str | None = None,
    cost: tuple[float, float] | None = None,
    top: int | None = None,
    n_jobs: int | None = None,
) -> Evaluation:
    """Evaluate a model on a frame, or on rows read in blocks; see
    :meth:`damvi.model.Model.evaluate`."""
    names, fitted = class_names(model.target), FittedVote(model.classifier)
    if cost is not None:
        model.target.require_two("costs are", "leave them out")
    if top is not None:
        model.target.require_two("the top rows of one class are", "leave top out")
        require_number_of_rows(top, "top")
    cost = cost or tuple(model.scores.get("cost") or ()) or None
    judged, dropped = judge(model, table, target, n_jobs)
    some, labels = judged.has_vote, judged.labels
    assert labels is not None  # the table has the target
    figures = measure(
        labels[some],
        judged.vote[some],
        judged.decided[some],
        judged.probability[some],
        cost=cost,
        blocks=judged.blocks,
    )
    found = None
    if top is not None:
        own = labels[some], judged.vote[some], [top]
        (found,) = top_figures(*own, blocks=judged.blocks)
    words = f"{judged.words}{_of_promise(model, judged)}"
    kept = _promise_here(model.scores.get("guarantee"), figures)
    return Evaluation(figures, names, words, dropped, found, kept, judged, fitted)


def _promise_here(promised: Any, figures: Figures) -> str:
    """The model's guarantee, and the rate on these rows."""
    if not isinstance(promised, dict) or promised.get("threshold") is None:
        return ""
    rate, level = promised["rate"], promised["level"]
    (passed, alarms), _ = figures.confusion.tolist()
    if rate == "false_alarm_rate":
        one = Figure.counted(alarms, passed + alarms, figures.effects["recall"][0])
    else:
        one = figures.by_class[-1][rate]
    told = f"Guaranteed: {str(promised['words']).partition(' (by ')[0]}."
    if one is None:
        return told
    told += f" Here it is {one.value:.3f} (90% CI: {one.low:.3f} to {one.high:.3f})."
    # A false-alarm rate is guaranteed to be at most its level, the others at least.
    below = level - np.array([one.value, one.low, one.high])
    value, *ends = below if rate != "false_alarm_rate" else -below
    if min(ends) > 0:
        told += (
            " The guarantee does not hold here, so these rows differ from those behind it; "
            "damvi drift (in Python model.drift) shows how."
        )
    elif value > 0:
        told += (
            " That may be chance, with so few rows, or these rows differ from those behind "
            "the guarantee; damvi drift (in Python model.drift) can tell."
        )
    return told


def _of_promise(model: ModelParts, judged: Judged) -> str:
    """A note on rows that were used to set the guarantee's threshold, if any."""
    if "guarantee" not in model.scores or judged.values is None or judged.labels is None:
        return ""
    rows = judged.values | judged.labels.astype(np.uint64)
    known = np.isin(rows, model.classifier.row_hashes_) & ~judged.of_fit
    n = int(known.sum())
    return f" {n:,} of them were used to set its guaranteed threshold." if n else ""


def judge(
    model: ModelParts,
    table: pd.DataFrame | DatasetRows,
    target: str | None = None,
    n_jobs: int | None = None,
    *,
    new: bool = False,
) -> tuple[Judged, int]:
    """Score the labelled rows, and count the unlabelled ones."""
    name = target or model.target.name
    if isinstance(table, DatasetRows):
        judged = honest_blocks(model, table.parts(name), name, n_jobs)
        return judged, table.table.n_rows - len(judged)
    answered = label_texts(pick(table, name, "target")).notna()
    dropped = int((~answered).sum())
    if dropped == len(table):
        raise ValueError(
            f"the target {name!r} is missing in every row; to score rows without labels, "
            f"use predict or drift"
        )
    if dropped:
        table = table.loc[answered].reset_index(drop=True)
    return honest_rows(model, table, name, new=new), dropped
