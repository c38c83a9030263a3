"""Tables of numbers to grids of text: what every format shows, before it is rendered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from .names import (
    METRICS,
    PAPER_METHODS,
    REFERENCE,
    in_the_paper,
    label,
    order_datasets,
    order_methods,
)
from .paper import agrees, paper_entries, paper_entry
from .tables import Cell, Entry, Table

MISSING = "–"


@dataclass(frozen=True)
class Box:
    """A place of a grid. The marks hold for ``text``; ``tail`` follows it plainly."""

    text: str = ""
    tail: str = ""
    bold: bool = False
    italic: bool = False
    down: bool = False
    apart: bool = False
    note: int | None = None
    kind: str = ""


@dataclass(frozen=True)
class Grid:
    """A table as shown: a caption, a head, rows, and numbered notes below.

    ``rules`` are the rows that have a line above them; ``stub`` is the number of leading
    columns that hold words.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Box, ...], ...]
    rules: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()
    stub: int = 1


class _Notes:
    """Numbers footnotes as they come; the same words get the same number."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def number(self, text: str) -> int | None:
        if not text:
            return None
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1


def one_line(text: str) -> str:
    return " ".join(text.split())


def score(value: float | None, digits: int = 4) -> str:
    """
    >>> score(0.79961), score(1.0), score(0.011, 3), score(None)
    ('.7996', '1.0000', '.011', '–')
    """
    if value is None:
        return MISSING
    return (
        f"{value:.{digits}f}".replace("0.", ".", 1) if value < 1 else f"{value:.{digits}f}"
    )


def footnote(entry: Entry) -> str:
    """What a reader must know of an entry that is not simply done."""
    if entry.status == "partial":
        missing = entry.n_splits - entry.n_done
        reasons = [
            f"{n} {words}"
            for n, words in (
                (entry.n_failed, "failed"),
                (entry.n_timeout, "timed out"),
                (missing - entry.n_failed - entry.n_timeout, "not run"),
            )
            if n > 0
        ]
        words = f"{entry.n_done} of {entry.n_splits} splits ({', '.join(reasons)})"
        return f"{words}: {entry.note}" if entry.note else words
    if entry.status == "failed":
        return entry.note or "failed without a word"
    if entry.status == "timeout":
        return entry.note or "over the time limit"
    return ""


def _box(entry: Entry, notes: _Notes) -> Box:
    note = notes.number(footnote(entry))
    if entry.mean is None:
        text = {"failed": "failed", "timeout": "time out"}.get(entry.status, MISSING)
        return Box(text, note=note)
    tail = "" if entry.std is None else f"±{score(entry.std, 3)}"
    return Box(
        score(entry.mean),
        tail,
        bold=entry.best,
        italic=entry.second,
        down=entry.worse,
        note=note,
    )


def _splits(table: Table) -> str:
    counts = table.n_splits
    if len(counts) > 1:
        return f"{counts[0]} to {counts[-1]} splits"
    return f"{counts[0]} split{'s' * (counts[0] != 1)}" if counts else "no splits"


def _caption(table: Table, protocol_words: str) -> str:
    what = f"{METRICS[table.metric]} over {_splits(table)}"
    spread = "mean" if table.n_splits in ([], [1]) else "mean ± standard deviation (n − 1)"
    return f"{what} ({protocol_words}): {spread}."


MARKS = (
    "Best in bold, second in italics; ↓: significantly worse than DAMVI "
    "(Wilcoxon rank-sum test, two-sided, p < 0.05)."
)


def _rules(methods: Sequence[str], rows_each: int = 1) -> frozenset[int]:
    """A line above DAMVI, as in the paper, and one above the methods it has not."""
    rules = set()
    if REFERENCE in methods:
        rules.add(methods.index(REFERENCE))
    extra = [place for place, method in enumerate(methods) if method not in PAPER_METHODS]
    rules.update(extra[:1])
    return frozenset(rows_each * place for place in rules if place)


def score_grid(table: Table, protocol_words: str) -> Grid:
    """The table of a metric, in the look of the paper's."""
    notes = _Notes()
    rows = tuple(
        (Box(method), *(_box(table[method, dataset], notes) for dataset in table.datasets))
        for method in table.methods
    )
    return Grid(
        caption=f"{_caption(table, protocol_words)} {MARKS}",
        head=("", *(label(dataset) for dataset in table.datasets)),
        rows=rows,
        rules=_rules(table.methods),
        notes=tuple(notes.texts),
    )


def comparison_grid(table: Table, protocol_words: str) -> Grid:
    """Ours above the paper's, method by method, where the paper has a number.

    Best and second are sought among the paper's methods on both sides.
    """
    datasets = [d for d in table.datasets if in_the_paper(d)]
    ours = table.only(PAPER_METHODS)
    notes = _Notes()
    rows: list[tuple[Box, ...]] = []
    for method in ours.methods:
        mine, theirs = [Box(method), Box("ours")], [Box(), Box("paper")]
        for dataset in datasets:
            entry, paper = ours[method, dataset], paper_entry(table.metric, method, dataset)
            box = _box(entry, notes)
            if paper and agrees(entry, paper) is False:
                box = replace(box, apart=True)
            mine.append(box)
            theirs.append(_paper_box(table.metric, method, dataset))
        rows += [tuple(mine), tuple(theirs)]
    return Grid(
        caption=(
            f"{_caption(table, protocol_words)} Each method's second line is the paper's. "
            f"{MARKS} ≠: further apart than one standard deviation of the paper plus one "
            "of ours."
        ),
        head=("", "", *(label(dataset) for dataset in datasets)),
        rows=tuple(rows),
        rules=frozenset(range(2, len(rows), 2)),
        notes=tuple(notes.texts),
        stub=2,
    )


def _paper_box(metric: str, method: str, dataset: str) -> Box:
    paper = paper_entry(metric, method, dataset)
    if paper is None:
        return Box(MISSING)
    means = sorted(
        {
            entry.mean
            for (of, _, where), entry in paper_entries().items()
            if of == metric and where == in_the_paper(dataset)
        },
        reverse=True,
    )
    return Box(
        score(paper.mean),
        f"±{score(paper.std, 3)}",
        bold=paper.mean == means[0],
        italic=paper.mean == means[1],
        down=paper.worse,
        kind="paper",
    )


def cost_grid(cells: Iterable[Cell], field: str, caption: str) -> Grid:
    """The median over the done cells of what they cost, such as ``peak_mb``."""
    done = [c for c in cells if c["status"] == "done" and c.get(field) is not None]
    methods = order_methods(cell["method"] for cell in done)
    datasets = order_datasets(cell["dataset"] for cell in done)
    costs: dict[tuple[str, str], list[float]] = {}
    for cell in done:
        costs.setdefault((cell["method"], cell["dataset"]), []).append(cell[field])
    rows = tuple(
        (Box(m), *(Box(_amount(costs.get((m, d), []))) for d in datasets)) for m in methods
    )
    head = ("", *(label(dataset) for dataset in datasets))
    return Grid(caption, head, rows, _rules(methods))


def _amount(values: Sequence[float]) -> str:
    """Three digits, and no more than there are."""
    if not values:
        return MISSING
    middle = median(values)
    return f"{middle:,.0f}" if middle >= 100 else f"{middle:.3g}"
