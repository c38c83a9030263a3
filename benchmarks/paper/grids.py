"""Tables as grids of text, and grids as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from .published import (
    METRICS,
    PAPER_METHODS,
    PAPER_SIZES,
    REFERENCE,
    agrees,
    in_the_paper,
    is_imitation,
    label,
    order_datasets,
    order_methods,
    paper_entries,
    paper_entry,
)
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
    """As the paper prints them: .7996, 1.0000, or – for none."""
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
            if paper and agrees(entry.mean, entry.std, entry.n_done, paper) is False:
                box = replace(box, apart=True)
            mine.append(box)
            theirs.append(_paper_box(table.metric, method, dataset))
        rows += [tuple(mine), tuple(theirs)]
    return Grid(
        caption=(
            f"{_caption(table, protocol_words)} Each method's second line is the paper's. "
            f"{MARKS} ≠: further apart than two standard errors of the "
            "difference."
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


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    '"': "''",
    "±": r"$\pm$",
    "↓": r"$\downarrow$",
    "≠": r"$\neq$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "→": r"$\rightarrow$",
    "×": r"$\times$",
    "−": "$-$",
    "–": "--",
    "—": "---",
    "’": "'",
    "‘": "`",
    "“": "``",
    "”": "''",
    "…": "...",
    **{c: f"\\{c}" for c in "&%$#_{}"},
}
_ACCENTS = dict(zip("\u0300\u0301\u0302\u0303\u0308\u0327", "`'^~\"c", strict=True))


def latex_escape(text: str) -> str:
    """Any text as LaTeX of no package; what it cannot set becomes a question mark."""
    return "".join(map(_latex_character, one_line(text)))


def _latex_character(c: str) -> str:
    if c in _LATEX:
        return _LATEX[c]
    if c.isascii():
        return c
    base, *accents = list(unicodedata.normalize("NFKD", c))
    if base.isascii() and base.isalpha() and len(accents) == 1 and accents[0] in _ACCENTS:
        return f"\\{_ACCENTS[accents[0]]}{{{base}}}"
    return "?"


def to_latex(grid: Grid) -> str:
    """A ``table`` with a plain ``tabular``: no package is needed."""

    def shown(box: Box) -> str:
        text = latex_escape(box.text)
        text = f"\\textbf{{{text}}}" if box.bold else text
        text = f"\\textit{{{text}}}" if box.italic else text
        marks = r"$\,\downarrow$" * box.down + r"$\,\neq$" * box.apart
        note = f"$^{{{box.note}}}$" if box.note else ""
        return text + latex_escape(box.tail) + marks + note

    columns = "l" * grid.stub + "|" + "c" * (len(grid.head) - grid.stub)
    lines = [
        r"\begin{table}[p]",
        f"\\caption{{{latex_escape(grid.caption)}}}",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}\renewcommand{\arraystretch}{1.15}",
        f"\\begin{{tabular}}{{{columns}}}",
        r"\hline",
        " & ".join(map(latex_escape, grid.head)) + r" \\ \hline",
    ]
    for number, row in enumerate(grid.rows):
        rule = r"\hline " if number in grid.rules else ""
        # Braces keep a first place that starts with [ from being read as \\'s option.
        lines.append(rule + "{}" + " & ".join(map(shown, row)) + r" \\")
    lines += [r"\hline", r"\end{tabular}"]
    for number, note in enumerate(grid.notes, 1):
        lines += ["", f"$^{{{number}}}$ {latex_escape(note)}"]
    return "\n".join([*lines, r"\end{table}", ""])


def latex_document(tables: Iterable[str]) -> str:
    """A whole document around tables, wide enough for six datasets."""
    return "\n".join(
        [
            r"\documentclass[a4paper]{article}",
            r"\setlength{\textwidth}{18cm}\setlength{\oddsidemargin}{-1cm}",
            r"\setlength{\textheight}{25cm}\setlength{\topmargin}{-2cm}",
            r"\begin{document}",
            *tables,
            r"\end{document}",
            "",
        ]
    )


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
            within = agrees(entry.mean, entry.std, entry.n_done, paper) if paper else None
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
