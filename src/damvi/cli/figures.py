"""Figures and columns as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .talking import shown

if TYPE_CHECKING:
    from ..evaluation import Figure
    from ..tables import Schema

HEADLINES = ("precision", "recall", "f1", "ap")
MOST_COLUMNS = 40
"""Columns that are listed one by one; of more, those used as they are are counted."""


def figure_table(figures: dict[str, dict[str, Figure]], extra: str | None = None) -> Any:
    """Models by row, the main figures with their standard errors by column."""
    from rich.table import Table

    from ..evaluation import MEASURES

    names = [*HEADLINES, *([extra] if extra else [])]
    table = Table(box=None, header_style="bold", pad_edge=False)
    # On a narrow terminal the figures take two lines, and the names stay whole.
    table.add_column("", no_wrap=True)
    for name in names:
        table.add_column(MEASURES[name], justify="right")
    for model, found in figures.items():
        cells = [f"{digits(found[n].value)} ± {digits(found[n].spread)}" for n in names]
        table.add_row(model, *cells)
    return table


def interval_table(figures: dict[str, Figure]) -> Any:
    """All figures of one model, with their intervals."""
    from ..evaluation import MEASURES

    return figure_rows({MEASURES[name]: figure for name, figure in figures.items()})


def figure_rows(figures: dict[str, Figure]) -> Any:
    """Figures by what to call them, with their intervals."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    table.add_column("value", justify="right")
    table.add_column("90 % interval", justify="right")
    for name, figure in figures.items():
        interval = f"{digits(figure.low)} to {digits(figure.high)}"
        table.add_row(name, digits(figure.value), interval)
    return table


def digits(value: float) -> str:
    """Three digits, and more where all of them would be 0, as in costs a row.

    Examples
    --------
    >>> digits(0.61254), digits(0.000462), digits(0.0)
    ('0.613', '0.00046', '0.000')
    """
    return f"{value:.3f}" if abs(value) >= 0.005 or not value else f"{value:.2g}"


def confusion_table(counts: dict[str, int], positive: str) -> Any:
    """What was flagged, by what is true."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("", "flagged", "not flagged"):
        table.add_column(heading, justify="right" if heading else "left")
    found, missed = counts["found"], counts["missed"]
    alarms, passed = counts["false_alarms"], counts["passed"]
    table.add_row(shown(positive), f"{found:,} found", f"{missed:,} missed")
    table.add_row("others", f"{alarms:,} false alarms", f"{passed:,} passed")
    return table


def column_table(schema: Schema) -> Any:
    """What becomes of each column; the plain ones are only counted if there are many."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("column", "used as", ""):
        table.add_column(heading, overflow="fold")
    columns = list(schema.columns)
    if len(columns) > MOST_COLUMNS:
        plain = [column for column in columns if column.kind != "dropped"]
        plain = [column for column in plain if not column.reason]
        columns = [column for column in columns if column not in plain]
        table.add_row(f"{len(plain):,} columns", "number", "")
    for column in columns[:MOST_COLUMNS]:
        table.add_row(shown(column.name), column.kind, shown(column.reason))
    if len(columns) > MOST_COLUMNS:
        table.add_row(f"{len(columns) - MOST_COLUMNS:,} more", "", "")
    return table
