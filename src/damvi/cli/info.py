"""``damvi info``: what a model file holds."""

from __future__ import annotations

from typing import Any

import click

from .figures import class_lines
from .talking import shown, talk

MOST_VOTERS = 12
"""Voters shown; all are in the JSON."""
FIGURES = {name: name for name in ("precision", "recall", "f1", "ap")}
CLASS_FIGURES = {
    "macro_f1": "macro F1",
    "balanced_accuracy": "balanced accuracy",
    "macro_ap": "macro AP",
}
PLURALS = {"number": "numbers", "category": "categories", "date": "dates"}


@click.command()
@click.argument("model", type=click.Path())
def info(model: str) -> None:
    """Say what MODEL is: its target, columns, voters, threshold and scores."""
    from ..io import summarize

    talks = talk()
    said = summarize(model)
    for heading, lines in _sections(said):
        talks.say(shown(heading))
        for line in lines:
            talks.say(f"  {shown(line)}")
    talks.result(said)


def _sections(said: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Headings, and the lines below each."""
    sections = [(said["file"], _first_lines(said))]
    if "columns" in said:
        sections.append(("Columns", _column_lines(said["columns"])))
    sections.append(("Voters", _voter_lines(said["voters"])))
    many = len(said["classes"]) > 2
    if many:
        sections.append(("Classes", class_lines(said)))
    else:
        sections.append(("Threshold", _threshold_lines(said["threshold"])))
    if said.get("scores"):
        names = CLASS_FIGURES if many else FIGURES
        sections.append(("Scores, out of sample", _score_lines(said["scores"], names)))
    if said.get("made"):
        sections.append(("Made by", _lines_of(said["made"])))
    versions = ", ".join(f"{name} {value}" for name, value in said["versions"].items())
    return [*sections, ("Versions", [versions])]


def _first_lines(said: dict[str, Any]) -> list[str]:
    size = f"{said['bytes']:,} bytes, format {said['format']}"
    many = len(said["classes"]) > 2
    if "target" not in said and many:
        return [
            f"a classifier of {len(said['classes'])} classes",
            f"{said['n_features']} features; no table's columns, so for Python only",
            size,
        ]
    if "target" not in said:
        other = next(label for label in said["classes"] if label != said["positive"])
        return [
            f"a classifier of {said['positive']!r} (positive) against {other!r}",
            f"{said['n_features']} features; no table's columns, so for Python only",
            size,
        ]
    target = said["target"]
    if many:
        return [
            f"predicts {target['name']!r}: {len(said['classes'])} classes",
            f"fitted on {target['rows']:,} rows{_unlabeled(said)}{_in_blocks(said)}",
            size,
        ]
    rate = "" if target["rate"] is None else f" ({target['rate']:.2%})"
    return [
        f"predicts {target['name']!r}: {target['positive']!r} is positive, against "
        f"{target['negative']!r}",
        f"fitted on {target['rows']:,} rows, {target['positives']:,} of them "
        f"positive{rate}{_unlabeled(said)}{_in_blocks(said)}",
        size,
    ]


def _unlabeled(said: dict[str, Any]) -> str:
    """What was made of rows without a label, if there were any."""
    rows = said["scores"].get("unlabeled")
    if not rows:
        return ""
    use = f"with a weight of {rows['weight']:g}" if rows["weight"] else "left out"
    return f"; {rows['rows']:,} without a label, {use}"


def _in_blocks(said: dict[str, Any]) -> str:
    return ", out of core" if "out_of_core" in said["made"] else ""


def _column_lines(columns: list[dict[str, Any]]) -> list[str]:
    lines = []
    for kind, plural in PLURALS.items():
        names = [column["name"] for column in columns if column["kind"] == kind]
        if names:
            noun = kind if len(names) == 1 else plural
            lines.append(f"{len(names)} {noun}: {', '.join(names)}")
    for column in columns:
        if column["kind"] == "dropped":
            why = f" ({column['reason']})" if column["reason"] else ""
            lines.append(f"not used: {column['name']}{why}")
    return lines


def _voter_lines(voters: dict[str, Any]) -> list[str]:
    lines = [
        f"{voters['number']} ({', '.join(voters['kinds'])}), "
        f"{voters['with_weight']} with a weight"
    ]
    heavy = [voter for voter in voters["weights"] if voter["weight"] > 0]
    shown = heavy[:MOST_VOTERS]
    width = max(len(voter["name"]) for voter in shown)
    lines += [f"{voter['name']:<{width}}  {voter['weight']:.3f}" for voter in shown]
    if len(heavy) > len(shown):
        rest = sum(voter["weight"] for voter in heavy[MOST_VOTERS:])
        lines.append(f"and {len(heavy) - len(shown)} more, {rest:.3f} together")
    return lines


def _threshold_lines(threshold: dict[str, Any]) -> list[str]:
    value = threshold["value"]
    shown = "none" if value is None else f"{value:.4g}"
    tuning = threshold["tuning"]
    if tuning is None:
        return [f"a vote above {shown} is flagged; not tuned"]
    return [
        f"a vote above {shown} is flagged; tuned for {threshold['tuned_for']}",
        f"{_number(tuning['honest_value'])} on rows not tuned on, with recall "
        f"{_number(tuning['honest_recall'])} and precision "
        f"{_number(tuning['honest_precision'])}",
    ]


def _score_lines(scores: dict[str, Any], names: dict[str, str]) -> list[str]:
    """The main figures of the model and its peers; the JSON has the rest."""
    models = scores.get("models", {})
    width = max((len(name) for name in models), default=0)
    lines = [
        f"{name:<{width}}  "
        + ", ".join(f"{words} {_number(known[n]['value'])}" for n, words in names.items())
        for name, known in models.items()
    ]
    return [*lines, *scores.get("verdicts", [])]


def _lines_of(values: dict[str, Any]) -> list[str]:
    """Names and values, those of a group in one line."""
    said = {name: _in_words(value) for name, value in values.items()}
    return [f"{name}: {words}" for name, words in said.items() if words]


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(_in_words(item) for item in value)
    return _number(value) if isinstance(value, float) or value is None else str(value)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"
