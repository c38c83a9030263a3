"""``damvi info``: what a model file contains."""

from __future__ import annotations

from typing import Any

import click

from ..messages import counted
from .console import current_output, printable
from .figures import GUARANTEED, at_guarantee, rounded, wording

MOST_VOTERS = 12
"""Voters shown; the JSON has all."""
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
    sections.append(wording(summary["classes"]).decides(summary))
    if summary.get("scores"):
        sections.append(("Out-of-sample scores", _score_lines(summary["scores"])))
    if summary.get("made"):
        sections.append(("Made by", _lines_of(summary["made"])))
    versions = ", ".join(f"{name} {value}" for name, value in summary["versions"].items())
    return [*sections, ("Versions", [versions])]


def _first_lines(summary: dict[str, Any]) -> list[str]:
    """The model's target, its training rows and its size."""
    target, say = summary.get("target"), wording(summary["classes"])
    size = f"{summary['bytes']:,} bytes, format {summary['format']}"
    if target is None:
        what = say.labels(summary["classes"], summary["positive"])
        features = counted(summary["n_features"], "feature")
        only = f"{features}; no table schema, so usable from Python only"
        return [f"a classifier for {what}", only, size]
    what, found = say.target(target)
    rows = f"fitted on {target['rows']:,} rows{found}"
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


def _score_lines(scores: dict[str, Any]) -> list[str]:
    """The main scores of the model and its baselines; the JSON has the rest."""
    from ..evaluation import MEASURES, headlines

    models, guaranteed = scores.get("models", {}), at_guarantee(scores)
    words = []
    if guaranteed is not None:
        words = [" ".join(guaranteed[0].split()).replace(":", ".")]
        models = {GUARANTEED: guaranteed[1]} | models
    width = max((len(name) for name in models), default=0)
    lines = [
        f"{name:<{width}}  "
        + ", ".join(f"{MEASURES[n]} {rounded(known[n]['value'])}" for n in headlines(known))
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
    return rounded(value) if isinstance(value, float) or value is None else str(value)
