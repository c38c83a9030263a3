"""``damvi info``: what a model file contains."""

from __future__ import annotations

from typing import Any

import click

from ..messages import counted
from .console import current_output, printable

MOST_VOTERS = 12
"""Voters shown; the JSON has all."""
MOST_CLASSES = 20
"""Likewise."""
KINDS = {
    "number": ("number", "numbers"),
    "category": ("category", "categories"),
    "levels": ("high-cardinality category", "high-cardinality categories"),
    "text": ("free-text column", "free-text columns"),
    "date": ("date", "dates"),
}
"""The name of a column kind, singular and plural."""


@click.command()
@click.argument("model", type=click.Path())
def info(model: str) -> None:
    """Show MODEL's target, columns, voters and scores."""
    from ..io import summarize

    output = current_output()
    summary = summarize(model)
    for heading, lines in _sections(summary):
        output.say(printable(heading))
        for line in lines:
            output.say(f"  {printable(line)}")
    output.result(summary)


def _sections(summary: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Headings and the lines below each."""
    sections = [(summary["file"], _first_lines(summary))]
    if "columns" in summary:
        sections.append(("Columns", _column_lines(summary["columns"])))
    sections.append(("Voters", _voter_lines(summary["voters"])))
    if len(summary["classes"]) > 2:
        sections.append(("Classes", _class_lines(summary)))
    else:
        promised = summary.get("scores", {}).get("guarantee")
        sections.append(("Threshold", _threshold_lines(summary["threshold"], promised)))
    if summary.get("scores"):
        sections.append(("Out-of-sample scores", _score_lines(summary["scores"])))
    if summary.get("made"):
        sections.append(("Made by", _lines_of(summary["made"])))
    versions = ", ".join(f"{name} {value}" for name, value in summary["versions"].items())
    return [*sections, ("Versions", [versions])]


def _first_lines(summary: dict[str, Any]) -> list[str]:
    """The model's target, its training rows and its size."""
    classes, target = summary["classes"], summary.get("target")
    size = f"{summary['bytes']:,} bytes, format {summary['format']}"
    what = f"{len(classes)} classes"
    if target is None:
        if len(classes) == 2:
            positive = summary["positive"]
            (other,) = (label for label in classes if label != positive)
            what = f"{positive!r} (positive) vs {other!r}"
        features = counted(summary["n_features"], "feature")
        only = f"{features}; no table schema, so usable from Python only"
        return [f"a classifier for {what}", only, size]
    rows = f"fitted on {target['rows']:,} rows"
    if len(classes) == 2:
        what = f"{target['positive']!r} (positive) vs {target['negative']!r}"
        rate = "" if target["rate"] is None else f" ({target['rate']:.2%})"
        rows += f", {target['positives']:,} of them positive{rate}"
    unlabeled = summary["scores"].get("unlabeled")
    if unlabeled:
        weight = unlabeled["weight"]
        use = f"weight {weight:g}" if weight else "not used"
        rows += f"; {unlabeled['rows']:,} unlabelled ({use})"
    if "out_of_core" in summary["made"]:
        rows += ", out of core"
    return [f"predicts {target['name']!r}: {what}", rows, size]


def _column_lines(columns: list[dict[str, Any]]) -> list[str]:
    lines = []
    for kind, (one, several) in KINDS.items():
        names = [column["name"] for column in columns if column["kind"] == kind]
        if names:
            noun = one if len(names) == 1 else several
            lines.append(f"{len(names)} {noun}: {', '.join(names)}")
    for column in columns:
        if column["kind"] == "dropped":
            why = f" ({column['reason']})" if column["reason"] else ""
            lines.append(f"not used: {column['name']}{why}")
    return lines


def _voter_lines(voters: dict[str, Any]) -> list[str]:
    lines = [
        f"{voters['number']} ({', '.join(voters['kinds'])}), "
        f"{voters['with_weight']} with nonzero weight"
    ]
    heavy = [voter for voter in voters["weights"] if voter["weight"] > 0]
    shown = heavy[:MOST_VOTERS]
    width = max(len(voter["name"]) for voter in shown)
    lines += [f"{voter['name']:<{width}}  {voter['weight']:.3f}" for voter in shown]
    if len(heavy) > len(shown):
        rest = sum(voter["weight"] for voter in heavy[MOST_VOTERS:])
        lines.append(f"and {len(heavy) - len(shown)} more, {rest:.3f} in total")
    return lines


def _threshold_lines(threshold: dict[str, Any], promised: Any) -> list[str]:
    from .figures import guarantee_lines

    value = threshold["value"]
    shown = "none" if value is None else f"{value:.4g}"
    tuning = threshold["tuning"]
    lines = guarantee_lines(promised) if isinstance(promised, dict) else []
    if lines and promised.get("threshold") == value:
        return [f"rows with a vote above {shown} are flagged (set by a guarantee)", *lines]
    if tuning is None:
        return [f"rows with a vote above {shown} are flagged (not tuned)", *lines]
    return [
        f"rows with a vote above {shown} are flagged (tuned for {threshold['tuned_for']})",
        f"{_number(tuning['honest_value'])} on rows not used for tuning (recall "
        f"{_number(tuning['honest_recall'])}, precision "
        f"{_number(tuning['honest_precision'])})",
        *lines,
    ]


def _class_lines(summary: dict[str, Any]) -> list[str]:
    """Each class with its rows, vote factor and F1."""
    threshold = summary["threshold"]
    tuning, factors = threshold["tuning"], threshold["value"]
    counts = summary.get("target", {}).get("classes")
    labels = [one["label"] for one in counts] if counts else map(str, summary["classes"])
    cells = []
    for place, label in enumerate(labels):
        row = [label, counted(counts[place]["rows"], "row")] if counts else [label]
        row.append(f"factor {factors[place]:.3g}")
        if tuning:
            row.append(f"F1 {tuning['honest_f1'][place]:.3g}")
        cells.append(row)
    listed = cells[:MOST_CLASSES]
    widths = [max(len(cell) for cell in column) for column in zip(*listed, strict=True)]
    lines = [
        "  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip()
        for row in listed
    ]
    if len(cells) > len(listed):
        lines.append(f"and {len(cells) - len(listed)} more")
    lines.append("the class with the largest vote times factor is predicted")
    if not tuning:
        return [*lines, "the factors are not tuned"]
    return [
        *lines,
        f"tuned for {threshold['tuned_for']}: {tuning['honest_value']:.3g} on rows not "
        f"used for tuning",
    ]


def _score_lines(scores: dict[str, Any]) -> list[str]:
    """The main scores of the model and its baselines; the JSON has the rest."""
    from ..evaluation import MEASURES, headlines
    from .figures import GUARANTEED, at_guarantee

    models, guaranteed = scores.get("models", {}), at_guarantee(scores)
    words = []
    if guaranteed is not None:
        words = [" ".join(guaranteed[0].split()).replace(":", ".")]
        models = {GUARANTEED: guaranteed[1]} | models
    width = max((len(name) for name in models), default=0)
    lines = [
        f"{name:<{width}}  "
        + ", ".join(f"{MEASURES[n]} {_number(known[n]['value'])}" for n in headlines(known))
        for name, known in models.items()
    ]
    return [*lines, *words, *scores.get("verdicts", [])]


def _lines_of(values: dict[str, Any]) -> list[str]:
    """A line per entry; nested values share a line."""
    lines = {name: _in_words(value) for name, value in values.items()}
    return [f"{name}: {words}" for name, words in lines.items() if words]


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(_in_words(item) for item in value)
    return _number(value) if isinstance(value, float) or value is None else str(value)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"
