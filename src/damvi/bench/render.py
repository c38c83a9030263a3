"""Grids and tables as text: terminal, Markdown, HTML and CSV. LaTeX is in ``latex``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from .layout import Box, Grid, one_line
from .names import label
from .paper import agrees, paper_entry
from .tables import Table


def to_terminal(grid: Grid, width: int | None = None) -> Any:
    """Something for ``rich.console.Console.print``.

    Columns that do not fit in ``width`` characters go into a further table below, so that
    no number is ever cut.
    """
    from rich.box import HORIZONTALS
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    def shown(box: Box) -> Text:
        style = "bold" if box.bold else "italic" if box.italic else ""
        marks = "↓" * box.down + "≠" * box.apart + (f"[{box.note}]" if box.note else "")
        return Text.assemble((box.text, style), box.tail, marks)

    stub = list(range(grid.stub))
    wide = [
        3 + max(len(name), *(shown(row[place]).cell_len for row in grid.rows), 0)
        for place, name in enumerate(grid.head)
    ]
    blocks, room = [stub.copy()], width or sum(wide)
    for place in range(grid.stub, len(grid.head)):
        if (
            sum(wide[p] for p in (*blocks[-1], place)) > room
            and len(blocks[-1]) > grid.stub
        ):
            blocks.append(stub.copy())
        blocks[-1].append(place)
    parts: list[Any] = [Text(grid.caption)]
    for block in blocks:
        table = RichTable(box=HORIZONTALS, pad_edge=False, header_style="bold")
        for place in block:
            side: Any = "left" if place < grid.stub else "right"
            table.add_column(Text(grid.head[place]), justify=side, no_wrap=True)
        for number, row in enumerate(grid.rows, 1):
            boxes = [shown(row[place]) for place in block]
            table.add_row(*boxes, end_section=number in grid.rules)
        parts.append(table)
    return Group(*parts, *(Text(f"[{n}] {note}") for n, note in enumerate(grid.notes, 1)))


_MARKDOWN = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|#~"})


def to_markdown(grid: Grid) -> str:
    """A table of GitHub's Markdown, with its caption above and its notes below."""

    def shown(box: Box) -> str:
        mark = "**" if box.bold else "*" if box.italic else ""
        note = f"<sup>{box.note}</sup>" if box.note else ""
        text = one_line(box.text).translate(_MARKDOWN)
        return f"{mark}{text}{mark}{box.tail}{'↓' * box.down}{'≠' * box.apart}{note}"

    marks = [":--" if place < grid.stub else "--:" for place in range(len(grid.head))]
    lines = [grid.caption.translate(_MARKDOWN), ""]
    for row in (
        [name.translate(_MARKDOWN) for name in grid.head],
        marks,
        *([shown(box) for box in row] for row in grid.rows),
    ):
        lines.append(f"| {' | '.join(row)} |")
    for number, note in enumerate(grid.notes, 1):
        lines += ["", f"<sup>{number}</sup> {one_line(note).translate(_MARKDOWN)}"]
    return "\n".join(lines) + "\n"


_WORDS = ' class="words"'


def to_html(grid: Grid) -> str:
    """A fragment: a ``table`` in a ``figure``, styled by whoever shows it."""

    def shown(box: Box) -> str:
        text = escape(box.text)
        text = f"<b>{text}</b>" if box.bold else text
        text = f"<i>{text}</i>" if box.italic else text
        note = f"<sup>{box.note}</sup>" if box.note else ""
        return text + escape(box.tail) + "↓" * box.down + "≠" * box.apart + note

    head = "".join(
        f'<th scope="col"{_WORDS * (place < grid.stub)}>{escape(name)}</th>'
        for place, name in enumerate(grid.head)
    )
    lines = [
        "<figure>",
        f"<figcaption>{escape(grid.caption)}</figcaption>",
        '<div class="wide"><table>',
        f"<thead><tr>{head}</tr></thead>",
        "<tbody>",
    ]
    for number, row in enumerate(grid.rows):
        places = [f'<th scope="row">{shown(row[0])}</th>']
        for place, box in enumerate(row[1:], 1):
            kind = box.kind or ("words" if place < grid.stub else "")
            places.append(f'<td class="{kind}">' if kind else "<td>")
            places.append(f"{shown(box)}</td>")
        rule = ' class="rule"' if number in grid.rules else ""
        lines.append(f"<tr{rule}>{''.join(places)}</tr>")
    lines.append("</tbody></table></div>")
    for number, note in enumerate(grid.notes, 1):
        lines.append(f"<p><sup>{number}</sup> {escape(note)}</p>")
    return "\n".join([*lines, "</figure>", ""])


def to_csv(tables: Iterable[Table]) -> str:
    """One row an entry, in full precision, with the paper's number beside it."""
    out = io.StringIO()
    rows = [row for table in tables for row in _csv_rows(table)]
    writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _csv_rows(table: Table) -> Iterator[dict[str, Any]]:
    for dataset in table.datasets:
        for method in table.methods:
            entry = table[method, dataset]
            paper = paper_entry(table.metric, method, dataset)
            within = agrees(entry, paper) if paper else None
            yield {
                "metric": table.metric,
                "dataset": dataset,
                "label": label(dataset),
                "method": method,
                "mean": entry.mean,
                "std": entry.std,
                "n_done": entry.n_done,
                "n_splits": entry.n_splits,
                "status": entry.status,
                "best": int(entry.best),
                "second": int(entry.second),
                "significantly_worse": int(entry.worse),
                "p": entry.p,
                "paper_mean": paper.mean if paper else None,
                "paper_std": paper.std if paper else None,
                "paper_significantly_worse": int(paper.worse) if paper else None,
                "within": None if within is None else int(within),
                "note": entry.note,
            }
