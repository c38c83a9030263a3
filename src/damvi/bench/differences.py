"""Where paper and reproduction differ, in words, and what the data were."""

from __future__ import annotations

from collections.abc import Iterable

from .layout import MISSING, Box, Grid, score
from .names import (
    PAPER_METHODS,
    REFERENCE,
    SHORT,
    in_the_paper,
    is_imitation,
    label,
    order_datasets,
)
from .paper import PAPER_SIZES, PaperEntry, agrees, paper_entry
from .tables import Cell, Entry, Table


def difference_words(tables: Iterable[Table]) -> str:
    """A Markdown list of the entries that are further apart than both deviations allow."""
    apart: dict[str, list[str]] = {}
    compared = marks = same_marks = 0
    for table in tables:
        for dataset in table.datasets:
            for method in PAPER_METHODS:
                ours = table[method, dataset]
                paper = paper_entry(table.metric, method, dataset)
                within = agrees(ours, paper) if paper else None
                if paper is None or within is None:
                    continue
                compared += 1
                if method != REFERENCE and ours.p is not None:
                    marks += 1
                    same_marks += ours.worse == paper.worse
                if not within:
                    words = f"{method} in {SHORT[table.metric]} {_gap(ours, paper)}"
                    apart.setdefault(dataset, []).append(words)
    if not compared:
        return "Nothing can be compared yet: it takes two splits of a dataset of the paper."
    n_apart = sum(map(len, apart.values()))
    lines = [
        f"Of {compared} entries that both have, {compared - n_apart} are within one "
        f"standard deviation of the paper plus one of ours, and {n_apart} are not. The "
        f"marks of significance agree on {same_marks} of {marks}."
    ]
    for dataset in order_datasets(apart):
        lines.append(f"- **{label(dataset)}**: {'; '.join(apart[dataset])}.")
    return "\n\n".join([lines[0], "\n".join(lines[1:])]).strip()


def _gap(ours: Entry, paper: PaperEntry) -> str:
    gap = (ours.mean or 0) - paper.mean
    return (
        f"is {'higher' if gap > 0 else 'lower'} by {score(abs(gap))} "
        f"({score(ours.mean)}±{score(ours.std, 3)} against "
        f"{score(paper.mean)}±{score(paper.std, 3)})"
    )


def dataset_grid(cells: Iterable[Cell]) -> Grid:
    """Sizes of the data that the cells saw, beside those of the paper's table."""
    first: dict[str, Cell] = {}
    for cell in cells:
        if cell.get("rows") and cell.get("ratio") is None:
            first.setdefault(cell["dataset"], cell)
    rows = []
    for dataset in order_datasets(first):
        cell = first[dataset]
        # An imitation is made to the size of what it imitates, and may be held against it.
        model = dataset.removesuffix("_imitation") if is_imitation(dataset) else None
        paper = PAPER_SIZES.get(model or in_the_paper(dataset) or "")
        share = 100 * (cell.get("positives") or 0) / cell["rows"]
        rows.append(
            (
                Box(label(dataset)),
                Box(f"{cell['rows']:,}"),
                Box(f"{paper[1]:,}" if paper else MISSING),
                Box(f"{cell['features']}" if cell.get("features") else MISSING),
                Box(f"{paper[0]}" if paper else MISSING),
                Box(f"{share:.3g} %"),
                Box(f"{paper[2]} %" if paper else MISSING),
            )
        )
    head = ("", "rows", "paper", "attributes", "paper", "positives", "paper")
    return Grid("The data, beside the paper's table of them.", head, tuple(rows))
