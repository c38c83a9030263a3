"""How a new fit differs from an older one that it repeats, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..evaluation import MEASURES
from ..io import ModelParts
from ..tables import listed
from ..tables.schema import AS_BEFORE, IN_WORDS, NEW
from .comparison import promised_figures
from .table import Prepared

MOST_NAMED = 20
COMPARED = ("f1", "ap", "macro_f1", "macro_ap", "cost")
"""Scores of an older model that are shown next to those of a new one."""


def changes(like: ModelParts, table: Prepared) -> list[str]:
    """How the tables of two fits differ, in words."""
    said = []
    before = {column.name: column for column in like.schema.columns}
    for column in table.schema.columns:
        old = before.get(column.name)
        if old is None or old.kind == "dropped":
            continue
        name, kind = column.name, IN_WORDS[old.kind]
        if column.kind == "dropped" and column.reason != "as asked":
            said.append(f"{name!r} was {kind} and is now dropped: {column.reason}")
        elif column.kind not in (old.kind, "dropped"):
            said.append(f"{name!r} was {kind} and is now {IN_WORDS[column.kind]}")
        elif column.reason.startswith(AS_BEFORE) and column.reason != old.reason:
            said.append(f"{name!r} is {kind} {column.reason}")
    new = [column.name for column in table.schema.columns if column.reason == NEW.reason]
    if new:
        more = f" and {len(new) - MOST_NAMED:,} more" if len(new) > MOST_NAMED else ""
        are = "columns are" if len(new) > 1 else "column is"
        said.append(
            f"new {are} not used: {', '.join(map(repr, new[:MOST_NAMED]))}{more}. Use "
            f"--keep to add them"
        )
    return said + _changes_of_rows(like, table)


def promises(like: ModelParts, scores: Mapping[str, Any]) -> list[str]:
    """The scores of an older model and of the new one, in words."""
    # Costs are only comparable at the same prices.
    same = like.scores.get("cost") == scores.get("cost")
    before, now = (
        {
            name: one
            for name, one in promised_figures(own).items()
            if name in COMPARED and {"value", "low", "high"} <= {*one}
        }
        for own in (like.scores, scores)
    )
    both = [
        name
        for name in COMPARED
        if name in before and name in now and (same or name != "cost")
    ]
    told = [
        [_figure(name, own[name]) for name in both] + _guaranteed(of)
        for own, of in ((before, like.scores), (now, scores))
    ]
    if not told[0]:
        return []
    return [
        f"Older model, out of sample: {'; '.join(told[0])}.",
        f"New model: {'; '.join(told[1]) or 'no such scores'}. Each is scored on its own "
        f"rows; damvi compare (in Python old.compare(new, table)) scores both on the same.",
    ]


def _figure(name: str, one: Mapping[str, Any]) -> str:
    form = ".2g" if name == "cost" else ".3f"  # tiny if positives are rare
    value, low, high = (format(one[key], form) for key in ("value", "low", "high"))
    return f"{MEASURES[name]} {value} (90% CI: {low} to {high})"


def _guaranteed(scores: Mapping[str, Any]) -> list[str]:
    promise = scores.get("guarantee")
    if not isinstance(promise, dict) or promise.get("threshold") is None:
        return []
    return [f"a guaranteed {str(promise.get('words')).partition(' (by ')[0]}"]


def _changes_of_rows(like: ModelParts, table: Prepared) -> list[str]:
    said, old, new = [], like.target, table.target
    if old.classes != new.classes:
        gone = [label for label in old.classes if label not in new.classes]
        more = [label for label in new.classes if label not in old.classes]
        parts = {"new": more, "gone": gone}
        words = [f"{what}: {listed(some)}" for what, some in parts.items() if some]
        said.append(f"the classes of {new.name!r} have changed ({'; '.join(words)})")
    elif old.negative and old.negative != new.negative:
        others = repr(new.negative) if new.negative else "several other labels"
        said.append(
            f"the negative class of {new.name!r} was {old.negative!r} and is now {others}"
        )
    known = like.scores.get("alike")
    time = known.get("time") if isinstance(known, dict) else None
    if time is not None and table.times is None:
        said.append(
            f"the older model was validated forward in time by {time!r}, but this one uses "
            f"random folds; give --time to match"
        )
    elif time is None and table.times is not None and "time" in table.alike:
        said.append(
            f"this model is validated forward in time by {table.alike['time']!r}, but the "
            f"older one used random folds"
        )
    return said
