"""Figures, classes and columns as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .talking import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..evaluation import Figure, Figures
    from ..tables import Schema

HEADLINES = ("precision", "recall", "f1", "ap")
MOST_COLUMNS = 40
"""Columns that are listed one by one; of more, those used as they are are counted."""
MOST_LISTED = 40
MOST_MISTAKES = 10
MOST_LINES = 20
"""Classes of a model file that are shown; all are in the JSON."""
NARROW = 100
"""Columns of a terminal below which AP gives way to the names of the classes."""


def plain_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1
) -> Any:
    """A table whose first columns are names, and all others numbers."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for place, heading in enumerate(headings):
        side: Any = "left" if place < texts else "right"
        table.add_column(shown(heading), justify=side, overflow="fold")
    for row in rows:
        table.add_row(*map(shown, row))
    return table


def figure_table(figures: dict[str, dict[str, Figure]], extra: str | None = None) -> Any:
    """Models by row, the main figures with their standard errors by column."""
    from ..evaluation import MEASURES

    names = [*HEADLINES, *([extra] if extra else [])]
    rows = [
        [model, *(f"{digits(found[n].value)} ± {digits(found[n].spread)}" for n in names)]
        for model, found in figures.items()
    ]
    table = plain_table(["", *(MEASURES[name] for name in names)], rows)
    # On a narrow terminal the figures take two lines, and the names stay whole.
    table.columns[0].no_wrap = True
    return table


def interval_table(figures: dict[str, Figure]) -> Any:
    """All figures of one model, with their intervals."""
    from ..evaluation import MEASURES

    rows = [
        [MEASURES[name], digits(one.value), f"{digits(one.low)} to {digits(one.high)}"]
        for name, one in figures.items()
    ]
    return plain_table(["", "value", "90 % interval"], rows)


def digits(value: float) -> str:
    """Three digits, and more where all of them would be 0, as in costs a row.

    Examples
    --------
    >>> digits(0.61254), digits(0.000462), digits(0.0)
    ('0.613', '0.00046', '0.000')
    """
    return f"{value:.3f}" if abs(value) >= 0.005 or not value else f"{value:.2g}"


def class_table(figures: Figures, names: Sequence[str], columns: int) -> Any:
    """Each class against the rest, the rarest first, with 90 % intervals."""
    from ..evaluation import MEASURES

    told = HEADLINES if columns >= NARROW else HEADLINES[:3]
    sizes = figures.confusion.sum(axis=1)
    order = sorted(range(len(names)), key=lambda c: (sizes[c], c))
    rows = []
    for c in order[:MOST_LISTED]:
        found = [figures.by_class[c][name] for name in told]
        cells = [f"{f.value:.2f} ({f.low:.2f}–{f.high:.2f})" if f else "–" for f in found]
        rows.append([names[c], f"{sizes[c]:,}", *cells])
    if len(order) > MOST_LISTED:
        rows.append([f"{len(order) - MOST_LISTED:,} more"])
    table = plain_table(["class", "rows", *(MEASURES[name] for name in told)], rows)
    for column in table.columns[1:]:
        column.no_wrap = True
    return table


def mistakes(counts: Any, names: Sequence[str]) -> list[list[str]]:
    """The most frequent mistakes."""
    pairs = [
        (-count, true, decided)
        for true, row in enumerate(counts.tolist())
        for decided, count in enumerate(row)
        if true != decided and count
    ]
    return [
        [names[true], names[decided], f"{-count:,}"]
        for count, true, decided in sorted(pairs)[:MOST_MISTAKES]
    ]


def class_lines(said: dict[str, Any]) -> list[str]:
    """Each class of a model file with its rows, the factor of its votes and its F1."""
    threshold = said["threshold"]
    tuning, factors = threshold["tuning"], threshold["value"]
    counts = said.get("target", {}).get("classes")
    labels = [one["label"] for one in counts] if counts else map(str, said["classes"])
    cells = []
    for place, label in enumerate(labels):
        row = [label, f"{counts[place]['rows']:,} rows"] if counts else [label]
        row.append(f"factor {factors[place]:.3g}")
        if tuning:
            row.append(f"F1 {tuning['honest_f1'][place]:.3g}")
        cells.append(row)
    listed = cells[:MOST_LINES]
    widths = [max(len(cell) for cell in column) for column in zip(*listed, strict=True)]
    lines = [
        "  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip()
        for row in listed
    ]
    if len(cells) > len(listed):
        lines.append(f"and {len(cells) - len(listed)} more")
    lines.append("the largest vote times factor decides")
    if not tuning:
        return [*lines, "the factors are not tuned"]
    return [
        *lines,
        f"tuned for {threshold['tuned_for']}: {tuning['honest_value']:.3g} on rows not "
        f"tuned on",
    ]


def column_table(schema: Schema) -> Any:
    """What becomes of each column; the plain ones are only counted if there are many."""
    columns, rows = list(schema.columns), []
    if len(columns) > MOST_COLUMNS:
        plain = [one for one in columns if one.kind != "dropped" and not one.reason]
        columns = [column for column in columns if column not in plain]
        rows.append([f"{len(plain):,} columns", "number", ""])
    rows += [[one.name, one.kind, one.reason] for one in columns[:MOST_COLUMNS]]
    if len(columns) > MOST_COLUMNS:
        rows.append([f"{len(columns) - MOST_COLUMNS:,} more"])
    return plain_table(["column", "used as", ""], rows, 3)
