"""The drift report: what changed, expected scores, and batches over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..evaluation import MEASURES, Expected, Figure
from ..history import Batch
from .charts import TENTHS, Drawing, plain
from .page import fill
from .words import percent

if TYPE_CHECKING:
    from ..drift import ColumnDrift, Drift

MOST_CHARTS = 30
MOST_BARS = 12
MOST_DRAWN = 60
"""The most recent batches shown in a chart."""
MOST_NAMED = 6
LONGEST = 12
"""Longest name below a chart, in characters."""


def drift_page(drift: Drift, name: str = "", command: str = "") -> str:
    """A self-contained HTML page."""
    changed = [column for column in drift.columns if column.changed]
    drawn = [column for column in changed if len(column.labels) > 1][:MOST_CHARTS]
    return fill(
        "drift.html.j2",
        {"percent": percent},
        drift=drift,
        name=name,
        command=command,
        rows=[_row(column) for column in drift.columns],
        charts=[(column, _chart(f"c{k}", column)) for k, column in enumerate(drawn)],
        left_out=len(changed) - len(drawn),
        by_class=_class_rows(drift.expected, drift.labels),
        batches=_batch_rows(drift.batches),
        batch_headings=_batch_headings(drift.batches),
        history=history_charts(drift.batches),
    )


def _class_rows(found: Expected | None, labels: tuple[str, ...]) -> list[list[str]]:
    """A row per class, if there are three or more."""
    if found is None or len(found.by_class) == 1:
        return []
    return [
        [
            labels[c],
            _number(own["rows"]),
            f"{own['named']:,}",
            _number(own["right"]),
            *(_share(own[name]) for name in ("precision", "recall")),
        ]
        for c, own in enumerate(found.by_class)
    ]


def _share(one: Figure) -> str:
    return f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})"


def _number(one: Figure) -> str:
    return f"{one.value:,.0f} ({one.low:,.0f} to {one.high:,.0f})"


def _row(column: ColumnDrift) -> list[str]:
    return [
        column.name,
        column.kind,
        "yes" if column.matters else "slightly" if column.changed else "no",
        *column.figures,
        f"{percent(column.missing[0])} → {percent(column.missing[1])}",
        f"{percent(column.unread[0])} → {percent(column.unread[1])}",
        "; ".join(part for part in (column.words, _dates(column)) if part),
    ]


def _dates(column: ColumnDrift) -> str:
    if column.days is None or np.isnan(column.days).any():
        return ""
    first, last, new_first, new_last = (
        np.datetime64(int(day), "D").astype(str) for day in column.days
    )
    return f"{new_first} to {new_last} (training: {first} to {last})"


def _chart(name: str, column: ColumnDrift) -> str:
    draw = _lines if column.kind == "number" else _bars
    return draw(name, column)


def _lines(name: str, column: ColumnDrift) -> str:
    """Cumulative shares of rows at the stored values, evenly spaced."""
    n = len(column.labels)
    drawing = Drawing(
        name,
        f"{column.name}: values in training and now",
        "The share of rows up to each value: dashed for training, solid for now.",
        x=(0, n - 1),
        y=(0, 1),
    )
    shown = sorted({0, n // 4, n // 2, 3 * n // 4, n - 1})
    drawing.axes(
        "value (quantiles of training)",
        "share of rows up to it",
        shown,
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0],
        lambda k: plain(float(column.labels[int(k)].replace(",", ""))),
        percent,
    )
    then, now = (list(enumerate(shares.tolist())) for shares in column.shares)
    return drawing.line(then, "chance").line(now, "main").svg()


def _bars(name: str, column: ColumnDrift) -> str:
    """The categories whose shares changed most."""
    then, now = column.shares
    order = np.argsort(-np.abs(now - then), kind="stable")[:MOST_BARS].tolist()
    top = max(float(column.shares[:, order].max()), 1e-9)
    drawing = Drawing(
        name,
        f"{column.name}: categories in training and now",
        "The share of each category: blue for training, orange for now.",
        x=(0, top * 1.02),
        y=(len(order), 0),
        height=62 + 54 * len(order),
        left=6,
    )
    drawing.axes("share of rows", "", [top / 2, top], [], percent)
    for place, c in enumerate(order):
        # Labels are above their bars, so that long ones fit.
        label = column.labels[c]
        short = label if len(label) <= 40 else label[:39] + "…"
        drawing.words(0, place + 0.36, short)
        for share, up, kind in ((then[c], 0.44, "negative"), (now[c], 0.7, "positive")):
            says = f"{label}: {percent(float(share))}"
            drawing.bar(0, float(share), place + up + 0.22, place + up, f"bar-{kind}", says)
    return drawing.svg()


# Batches over time.


def _batch_rows(batches: list[Batch]) -> list[list[str]]:
    """The rows of the table of batches, latest first."""
    found = []
    for batch in reversed(batches):
        cells = []
        for name in _drawn(batches):
            if name not in batch.expected:
                cells.append("–")
                continue
            value, low, high = batch.expected[name]
            text = f"{value:.2f} ({low:.2f} to {high:.2f})"
            if name in batch.achieved:
                outside = "" if batch.within(name) else ", outside"
                text += f" → {batch.achieved[name]:.2f}{outside}"
            cells.append(text)
        rows = [batch.name, batch.date[:10], f"{batch.rows:,}", f"{batch.flagged:,}"]
        found.append([*rows, *cells, f"{len(batch.warnings)}"])
    return found


def _batch_headings(batches: list[Batch]) -> list[str]:
    """The headings of the table of batches."""
    names = [MEASURES[name] for name in _drawn(batches)]
    return ["Batch", "Seen", "Rows", "Flagged", *names, "Warnings"]


def _drawn(batches: list[Batch]) -> list[str]:
    """The scores that any of the batches has, in the usual order."""
    there = {name for batch in batches for name in batch.expected}
    return [name for name in MEASURES if name in there]


def history_charts(batches: list[Batch]) -> list[tuple[str, str]]:
    """A chart of each score over the batches: its name and an SVG."""
    last = batches[-MOST_DRAWN:]
    return [(MEASURES[name], _history_chart(name, last)) for name in _drawn(last)]


def _history_chart(name: str, batches: list[Batch]) -> str:
    """Expected scores as a line with intervals, achieved ones as dots."""
    n, title = len(batches), MEASURES[name]
    drawing = Drawing(
        f"history-{name}",
        f"{title}, batch by batch",
        f"The expected {title} of each batch, with a 90% interval. Dots are achieved "
        f"scores, if labels are known.",
        x=(-0.5, n - 0.5),
        y=(0, 1),
    )
    step = max(1, math.ceil(n / MOST_NAMED))
    shown = [float(k) for k in range((n - 1) % step, n, step)]

    def named(k: float) -> str:
        text = batches[int(k)].name
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"

    drawing.axes("batch", title, shown, TENTHS, named, percent)
    known = [
        (k, one.expected[name]) for k, one in enumerate(batches) if name in one.expected
    ]
    for k, (_, low, high) in known:
        drawing.line([(k, low), (k, high)], "whisker")
    drawing.line([(k, own[0]) for k, own in known], "main")
    for k, own in known:
        drawing.dot(k, own[0], "point", 3.5)
    for k, one in enumerate(batches):
        if name in one.achieved:
            drawing.dot(k, one.achieved[name], "mark", 6)
    return drawing.svg()
