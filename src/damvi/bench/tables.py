"""Cells to tables: means, standard deviations and the marks of the paper's tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .names import REFERENCE, order_datasets, order_methods
from .significance import rank_sum_p, significantly_lower

Cell = Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    """What the splits of one dataset say about one method, by one metric.

    ``std`` divides by n - 1 (the paper does not say what it took); one split has none.
    ``n_splits`` counts the splits that any method has met on this dataset.
    """

    scores: tuple[float, ...] = ()
    n_splits: int = 0
    n_failed: int = 0
    n_timeout: int = 0
    note: str = ""
    best: bool = False
    second: bool = False
    worse: bool = False
    p: float | None = None

    @property
    def n_done(self) -> int:
        return len(self.scores)

    @property
    def mean(self) -> float | None:
        # An exact sum, so that two methods with the same scores tie in any order of splits.
        return math.fsum(self.scores) / self.n_done if self.scores else None

    @property
    def std(self) -> float | None:
        return float(np.std(self.scores, ddof=1)) if self.n_done > 1 else None

    @property
    def complete(self) -> bool:
        return 0 < self.n_done == self.n_splits

    @property
    def status(self) -> str:
        """``done``, ``partial``, ``failed``, ``timeout`` or ``missing``."""
        if self.scores:
            return "done" if self.complete else "partial"
        if self.n_failed:
            return "failed"
        return "timeout" if self.n_timeout else "missing"


@dataclass(frozen=True)
class Table:
    """Methods by datasets, for one metric (``"f1"`` or ``"ap"``)."""

    metric: str
    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    entries: Mapping[tuple[str, str], Entry]

    def __getitem__(self, place: tuple[str, str]) -> Entry:
        """The entry of a method on a dataset, which may be missing."""
        return self.entries.get(place, Entry())

    @property
    def n_splits(self) -> list[int]:
        """The numbers of splits that occur, most often a single one."""
        return sorted({e.n_splits for e in self.entries.values()})

    def only(self, methods: Iterable[str]) -> Table:
        """The table of these methods alone, with best and second found among them."""
        kept = tuple(m for m in self.methods if m in set(methods))
        entries = {place: e for place, e in self.entries.items() if place[0] in kept}
        return Table(self.metric, kept, self.datasets, _rank(entries, self.datasets))


def score_table(cells: Iterable[Cell], metric: str, reference: str = REFERENCE) -> Table:
    """The table of a metric from the cells of the main experiment (no ratio).

    The highest unrounded mean of a dataset is best, the next lower one second, and methods
    that tie share the mark. A method with fewer splits done than the best served of the
    dataset gets neither. ``worse`` is the paper's test against ``reference``.
    """
    cells = [cell for cell in cells if cell.get("ratio") is None]
    check_distinct(cells)
    methods = order_methods(cell["method"] for cell in cells)
    datasets = order_datasets(cell["dataset"] for cell in cells)
    entries: dict[tuple[str, str], Entry] = {}
    for dataset in datasets:
        here = [cell for cell in cells if cell["dataset"] == dataset]
        n_splits = len({cell["split"] for cell in here})
        for method in methods:
            mine = [cell for cell in here if cell["method"] == method]
            if mine:
                entries[method, dataset] = _entry(mine, metric, n_splits)
        against = entries.get((reference, dataset), Entry()).scores
        for method in methods:
            entry = entries.get((method, dataset))
            if entry and entry.scores and against and method != reference:
                entries[method, dataset] = replace(
                    entry,
                    worse=significantly_lower(entry.scores, against),
                    p=rank_sum_p(entry.scores, against),
                )
    return Table(metric, tuple(methods), tuple(datasets), _rank(entries, datasets))


def _entry(cells: Sequence[Cell], metric: str, n_splits: int) -> Entry:
    cells = sorted(cells, key=lambda cell: cell["split"])
    scored = [cell for cell in cells if score_of(cell, metric) is not None]
    others = [cell for cell in cells if score_of(cell, metric) is None]
    timeout = [cell for cell in others if cell["status"] == "timeout"]
    notes = dict.fromkeys(" ".join(str(cell.get("note") or "").split()) for cell in others)
    return Entry(
        scores=tuple(float(cell[metric]) for cell in scored),
        n_splits=n_splits,
        n_failed=len(others) - len(timeout),
        n_timeout=len(timeout),
        note="; ".join(note for note in notes if note),
    )


def score_of(cell: Cell, metric: str) -> float | None:
    """The cell's score, or None if it has none."""
    value = cell.get(metric)
    if cell["status"] != "done" or value is None or not math.isfinite(value):
        return None
    return float(value)


def _rank(
    entries: Mapping[tuple[str, str], Entry], datasets: Iterable[str]
) -> dict[tuple[str, str], Entry]:
    ranked = dict(entries)
    for dataset in datasets:
        column = {place: e for place, e in entries.items() if place[1] == dataset}
        most = max((e.n_done for e in column.values()), default=0)
        means = {
            place: e.mean
            for place, e in column.items()
            if e.n_done == most and e.mean is not None
        }
        steps = sorted(set(means.values()), reverse=True)
        for place, entry in column.items():
            mean = means.get(place)
            best, second = mean in steps[:1], mean in steps[1:2]
            ranked[place] = replace(entry, best=best, second=second)
    return ranked


def check_distinct(cells: Iterable[Cell]) -> None:
    """Refuse two cells for one place: a mean over both would be of no protocol."""
    seen = set()
    for cell in cells:
        key = (cell["dataset"], cell["method"], cell["split"], cell.get("ratio"))
        if key in seen:
            raise ValueError(
                f"Two cells for dataset={key[0]!r}, method={key[1]!r}, split={key[2]}, "
                f"ratio={key[3]}: give the cells of one protocol only."
            )
        seen.add(key)
