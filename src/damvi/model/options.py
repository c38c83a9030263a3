"""Options of a fit: what users call them, and those of an older fit.

What a fit was asked for is in the model's file as ``made["settings"]``. The rest is known
from the model: what its columns are, its classes, its seed, its pool, its threshold rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..io import ModelParts
from ..tables import listed
from ..tables.schema import AS_BEFORE, IN_WORDS, NEW
from .comparison import parse_metric
from .table import Prepared

ELSEWHERE = ("pos_label", "merge_labels", "drop", "pool", "threshold", "random_state")
"""Options of a fit that the model tells itself, by what became of them."""
OF_THIS_FIT = ("n_jobs", "like")
NEED_MEMORY = (
    *("time_limit", "prefer", "unlabeled", "unlabeled_weight", "time", "group"),
    *("sample_weight", "guarantee", "merge_labels"),
)
"""Options of a fit that are not for tables that are read in blocks."""
MOST_NAMED = 20


IN_PYTHON = {
    r"--[\w-]+(?: \w+)? \((?:in Python )?(\w+=[^)]*)\)": r"\1",
    r"--\w+, (\w+=True)": r"\1",
    r"--cost-miss 20 --cost-false-alarm 1": "threshold={'cost': (1, 20)}",
    r"--group (\S+?)(?=[.,;]?(?:\s|$))": r"group='\1'",
    r"--positive\b": "pos_label=",
    r"--merge-labels\b": "merge_labels=True",
    r"--shuffle\b": "shuffle=True",
    r"--(time|keep|drop)\b": r"\1=",
}
"""What options of the command are in Python."""


def in_python(text: str) -> str:
    """A message with the parameters of :func:`fit` in place of the command's options."""
    for option, parameter in IN_PYTHON.items():
        text = re.sub(option, parameter, text)
    return text


def refuse_in_blocks(
    options: Mapping[str, Any], called: Callable[[str], str] = str
) -> None:
    """An error if options of a fit need all rows in memory.

    Parameters
    ----------
    options : mapping of str to object
        Of :func:`~damvi.model.train`.
    called : callable
        What the user calls an option.
    """
    given = {name: options.get(name) for name in NEED_MEMORY}
    asked = [
        called(name)
        for name, value in given.items()
        if value is not None and value is not False
    ]
    cure = "leave it out"
    if options.get("pool") == "best":
        asked.append(f"{called('pool')} best")
        cure = cure if asked[1:] else f"give {called('pool')} strong or trees"
    if asked:
        raise ValueError(
            f"{' and '.join(asked)} need{'s' * (len(asked) == 1)} all rows in memory, and "
            f"these are read in blocks; {cure}, or fit on a sample in one file"
        )


def settings(given: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Of the options of a fit, those to be kept in the model's file.

    Parameters
    ----------
    given, usual : mapping of str to object
        The options, and what they are by default.

    Examples
    --------
    >>> settings({"time": "day", "group": None}, {"time": None, "group": None})
    {'time': 'day'}
    """
    names = [name for name in usual if name not in (*ELSEWHERE, *OF_THIS_FIT)]
    return {
        name: _names(given[name]) if name == "keep" else _plain(given[name])
        for name in names
        if name in given and given[name] != usual[name]
    }


def _plain(value: Any) -> Any:
    """A value without numpy's kinds of numbers."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def repeated(
    like: ModelParts, given: Mapping[str, Any], usual: Mapping[str, Any]
) -> dict[str, Any]:
    """The options of a new fit: those given, and for the others those of the older model.

    Columns to keep are those of both, but for those that are to be dropped now. Columns
    that the older model dropped are known by its schema.

    Parameters
    ----------
    like : ModelParts
    given, usual : mapping of str to object
        As for :func:`settings`. What is as usual is not given.
    """
    kept = like.made.get("settings")
    if not isinstance(kept, dict):
        raise ValueError(
            "the older model does not say how it was fitted, as those of damvi fit do; "
            "give the options themselves instead of --like"
        )
    before = {name: value for name, value in kept.items() if name in usual}
    before |= {
        "target": like.target.name,
        "pos_label": like.target.positive or None,
        "merge_labels": like.target.merged,
        "pool": like.made.get("pool"),
        "random_state": like.made.get("seed"),
        "threshold": _threshold(like),
    }
    if before["pool"] == "own":
        estimators: Any = like.classifier
        before["pool"] = estimators.estimators
    new = {
        name: value
        for name, value in given.items()
        if name not in usual or value != usual[name]
    }
    if new.get("shuffle"):
        before.pop("time", None)
    if new.get("time") is not None:
        before.pop("shuffle", None)
    if new.get("target") is None:
        new.pop("target", None)
    drop, keep = _names(new.get("drop", ())), _names(new.get("keep", ()))
    old = [name for name in _names(before.get("keep", ())) if name not in (*drop, *keep)]
    return before | new | {"keep": (*old, *keep)}


def _names(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else [str(name) for name in given]


def _threshold(like: ModelParts) -> Any:
    """What the threshold was tuned for, and the metric of the figures beside it."""
    rule, cost = like.classifier.threshold, like.scores.get("cost")
    try:
        metric = parse_metric(like.scores["metric"], tuple(cost) if cost else None)
    except (KeyError, ValueError):  # a rule of the estimators, which have more of them
        return rule
    return metric if metric.threshold == rule else rule


def changes(like: ModelParts, table: Prepared) -> list[str]:
    """What differs between the tables of two fits, for the user to read."""
    said = []
    before = {column.name: column for column in like.schema.columns}
    for column in table.schema.columns:
        old = before.get(column.name)
        if old is None or old.kind == "dropped":
            continue
        name, kind = column.name, IN_WORDS[old.kind]
        if column.kind == "dropped" and column.reason != "as asked":
            said.append(f"{name!r} was {kind}, and is not used now: {column.reason}")
        elif column.kind not in (old.kind, "dropped"):
            said.append(f"{name!r} was {kind}, and is {IN_WORDS[column.kind]} now")
        elif column.reason.startswith(AS_BEFORE) and column.reason != old.reason:
            said.append(f"{name!r} is {kind} {column.reason}")
    new = [column.name for column in table.schema.columns if column.reason == NEW.reason]
    if new:
        more = f" and {len(new) - MOST_NAMED:,} more" if len(new) > MOST_NAMED else ""
        are = "columns are" if len(new) > 1 else "column is"
        said.append(
            f"new {are} not used: {', '.join(map(repr, new[:MOST_NAMED]))}{more}. To use "
            f"one, give --keep"
        )
    return said + _changes_of_rows(like, table)


def _changes_of_rows(like: ModelParts, table: Prepared) -> list[str]:
    said, old, new = [], like.target, table.target
    if old.classes != new.classes:
        gone = [label for label in old.classes if label not in new.classes]
        more = [label for label in new.classes if label not in old.classes]
        parts = {"new": more, "gone": gone}
        words = [f"{what}: {listed(some)}" for what, some in parts.items() if some]
        said.append(f"{new.name!r} has other classes than it had ({'; '.join(words)})")
    elif old.negative and old.negative != new.negative:
        others = repr(new.negative) if new.negative else "several other labels"
        said.append(
            f"{new.positive!r} stands against {others} in {new.name!r}, and stood against "
            f"{old.negative!r}"
        )
    known = like.scores.get("alike")
    time = known.get("time") if isinstance(known, dict) else None
    if time is not None and table.times is None:
        said.append(
            f"the rows of the older model were judged in the order of {time!r}, and these "
            f"are judged in any order; give --time to judge them so too"
        )
    elif time is None and table.times is not None and "time" in table.alike:
        said.append(
            f"these rows are judged in the order of {table.alike['time']!r}, and those of "
            f"the older model were judged in any order"
        )
    return said
