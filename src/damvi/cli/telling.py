"""What ``damvi fit`` tells: of the table, and of what the model is worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .talking import Talk, shown

if TYPE_CHECKING:
    from ..evaluation import Figure

MOST_CLASSES = 30
"""Classes that are listed; of more, the most frequent and the rarest."""
FEW_ROWS = 50
"""Rows of a class below which its figures are rough."""
CLASS_HEADLINES = ("macro_f1", "balanced_accuracy", "macro_ap")
OF_EACH_CLASS = {"precision": "precision", "recall": "recall", "f1": "F1", "ap": "AP"}


def tell_table(talks: Talk, data: Path, table: Any) -> None:
    """The classes, and what becomes of each column."""
    from .figures import column_table

    n, target = len(table.y), table.target
    if table.n_classes > 2:
        talks.say(f"{data}: {n:,} rows. {shown(target.name)} has these classes:\n")
        talks.show(class_table(target.classes, table.class_counts))
        talks.say()
    else:
        found = int(table.y.sum())
        against = f"against {target.negative!r}" if target.negative else "against the rest"
        talks.say(
            f"{data}: {n:,} rows. Positive is {shown(target.name)} = "
            f"{target.positive!r} {against}: {found:,} rows, {found / n:.2%}.\n"
        )
    talks.show(column_table(table.schema))
    talks.say()
    for warning in table.warnings:
        click.secho(f"Warning: {shown(warning)}", err=True, bold=True)


def tell_worth(talks: Talk, model: Any, worth: Any, metric: Any) -> None:
    """Scores out of sample, beside those of others."""
    from .figures import figure_table

    scores = model.scores
    left_out = scores["rows"] - scores["rows_judged"]
    some = f" ({left_out:,} that every tree was trained on left out)" if left_out else ""
    talks.say(f"Out of sample, cross-fitted over the {scores['rows']:,} rows{some}:\n")
    if metric.many:
        _tell_classes(talks, model, worth)
        return
    extra = "cost" if metric.cost else None
    talks.show(figure_table(worth.figures, extra))
    talks.say("\n± is the standard error, by bootstrap. AP is average precision.")
    for verdict in worth.verdicts:
        talks.say(verdict)
    if scores["positives"] < FEW_ROWS:
        talks.say(f"Only {scores['positives']} positives: all these figures are rough.")


def _tell_classes(talks: Talk, model: Any, worth: Any) -> None:
    from ..evaluation import MEASURES
    from ..tables.labels import listed

    names = {name: MEASURES[name] for name in CLASS_HEADLINES}
    talks.show(_table_of_figures("", list(worth.figures.items()), names))
    talks.say(
        "\n± is the standard error, by bootstrap. Macro: the mean over the classes, each "
        "counted alike. AP\nis average precision, and balanced accuracy the mean recall."
    )
    for verdict in worth.verdicts:
        talks.say(verdict)
    first = next(iter(worth.by_class))
    counts = model.scores["classes"]
    talks.say(f"\n{first} by class, each against the rest:\n")
    labels, places = list(counts), _listed_places(list(counts.values()))
    rows = [
        (_gap(counts, places), {})
        if place is None
        else (labels[place], worth.by_class[first][place])
        for place in places
    ]
    talks.show(_table_of_figures("class", rows, OF_EACH_CLASS))
    few = [label for label, n in counts.items() if n < FEW_ROWS]
    if few:
        which = "Class" if len(few) == 1 else "Classes"
        have = "has" if len(few) == 1 else "have"
        talks.say(
            f"\n{which} {shown(listed(few))} {have} fewer than {FEW_ROWS} rows: figures of "
            f"so few are rough."
        )


def class_table(classes: tuple[str, ...], counts: list[int], marks: bool = True) -> Any:
    """Classes by row, the most frequent first, with their rates; ``marks`` the rare."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("class", overflow="fold")
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("rate", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    total = sum(counts)
    places = _listed_places(counts)
    for place in places:
        if place is None:
            table.add_row(_gap(counts, places), "", "", "")
            continue
        n = counts[place]
        rare = "rare" if marks and n * len(counts) < total else ""
        table.add_row(shown(classes[place]), f"{n:,}", f"{n / total:.2%}", rare)
    return table


def _listed_places(counts: list[int]) -> list[int | None]:
    """The classes to list, the most frequent first; None for those between."""
    order = sorted(range(len(counts)), key=lambda c: -counts[c])
    if len(order) <= MOST_CLASSES:
        return [*order]
    half = MOST_CLASSES // 2
    return [*order[:half], None, *order[-half:]]


def _gap(counts: Any, places: list[int | None]) -> str:
    return f"({len(counts) - len(places) + 1:,} more)"


def _table_of_figures(
    corner: str, rows: list[tuple[str, dict[str, Figure | None]]], names: dict[str, str]
) -> Any:
    """Figures with their standard errors; nothing where there is none."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column(corner, overflow="fold")
    for words in names.values():
        table.add_column(words, justify="right", no_wrap=True)
    for label, found in rows:
        figures = [found.get(name) for name in names]
        cells = ["" if f is None else f"{f.value:.3f} ± {f.spread:.3f}" for f in figures]
        table.add_row(shown(label), *cells)
    return table


def summary(model: Any, out: Path, beside: Path, table: Any) -> dict[str, Any]:
    """The same for machines."""
    target = model.target
    named = {"positive": target.positive, "negative": target.negative}
    if target.classes:
        named = {"classes": list(target.classes)}
    return {
        "model": str(out),
        "scores_file": str(beside),
        "target": {"name": target.name, **named},
        **{name: said for name, said in model.scores.items() if name != "voters"},
        "columns": model.schema.as_dict()["columns"],
        "warnings": table.warnings,
        "made": model.made,
    }
