"""Cells to tables: means, deviations, the marks of the paper's tables, and ranks.

The marks are the paper's test: Wilcoxon's rank-sum test, two-sided, at p < 0.05. It is kept
because the paper used it, and its limits are worth knowing:

- the splits of a dataset overlap, so their scores are not independent draws and the
  p-values are too small;
- with 5 splits a side the smallest p there is, when all of one side lies below the other,
  is .008; with 4 it is .029, with 3 it is .1, and nothing can be significant;
- that two methods saw the same splits is ignored, which costs power;
- nine tests a dataset are not corrected for being many.

Ranks over datasets are judged by Nemenyi's test: Demšar (2006), Statistical comparisons of
classifiers over multiple data sets, JMLR 7. With few datasets it is weak: what it does not
tell apart may well differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu, rankdata, studentized_range

from .published import REFERENCE, SHORT, label, order_datasets, order_methods

Cell = Mapping[str, Any]

LEVEL = 0.05


def rank_sum_p(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The two-sided p-value that both come from one distribution (1 if one is empty).

    Exact without ties, where the usual normal approximation is too quick to see a
    difference among so few.
    """
    if not len(ours) or not len(theirs):
        return 1.0
    # The rank-sum statistic but for a constant; "auto" is exact without ties.
    return float(mannwhitneyu(ours, theirs, method="auto").pvalue)


def significantly_lower(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether ``ours`` is lower in the mean, and the test says it is no accident."""
    if not len(ours) or not len(theirs) or not np.mean(ours) < np.mean(theirs):
        return False
    return rank_sum_p(ours, theirs) < LEVEL


def smallest_p(n_ours: int, n_theirs: int) -> float:
    """The p-value when the two do not overlap at all: the least these many can give."""
    return rank_sum_p(range(n_ours), range(n_ours, n_ours + n_theirs))


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


FEWEST = 3


@dataclass(frozen=True)
class Ranks:
    """Methods that are complete on the same datasets, and their mean scores there."""

    metric: str
    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    scores: np.ndarray
    left_out: tuple[str, ...]

    @property
    def average(self) -> dict[str, float]:
        """The average rank of each method over the datasets, 1 the best."""
        ranks = rankdata(-self.scores, axis=1).mean(axis=0)
        return dict(zip(self.methods, ranks.tolist(), strict=True))

    @property
    def critical_difference(self) -> float:
        """How far apart two average ranks must be for Nemenyi's test to tell them apart."""
        n, k = self.scores.shape
        quantile = float(studentized_range.ppf(1 - LEVEL, k, np.inf))
        return quantile / np.sqrt(2) * float(np.sqrt(k * (k + 1) / (6 * n)))

    @property
    def words(self) -> str:
        """What the diagram is of."""
        of = ", ".join(label(dataset) for dataset in self.datasets)
        without = f" Left out as not complete: {', '.join(self.left_out)}."
        return (
            f"Average ranks by {SHORT[self.metric]} over {len(self.datasets)} datasets "
            f"({of}); a bar joins methods that Nemenyi's test does not tell apart at "
            f"p < {LEVEL}, which takes a difference of {self.critical_difference:.2f}."
            f"{without if self.left_out else ''}"
        )


def complete_ranks(table: Table) -> Ranks | str:
    """The largest choice of datasets and methods without a gap, or why there is none."""

    def complete_on(datasets: list[str]) -> list[str]:
        return [m for m in table.methods if all(table[m, d].complete for d in datasets)]

    # Datasets that most methods are done with come first; each step may cost methods.
    order = sorted(table.datasets, key=lambda d: -len(complete_on([d])))
    choices = [(order[:n], complete_on(order[:n])) for n in range(FEWEST, len(order) + 1)]
    choices = [choice for choice in choices if len(choice[1]) >= FEWEST]
    if not choices:
        return (
            f"No critical-difference diagram by {SHORT[table.metric]}: it takes at least "
            f"{FEWEST} methods that are complete on the same {FEWEST} datasets."
        )
    # Of equally large choices, the one with more datasets: they are what the test counts.
    choices.reverse()
    chosen, methods = max(choices, key=lambda choice: len(choice[0]) * len(choice[1]))
    datasets = [dataset for dataset in table.datasets if dataset in chosen]
    scores = np.array([[table[m, d].mean for m in methods] for d in datasets], dtype=float)
    left_out = [m for m in table.methods if m not in methods]
    left_out += [label(d) for d in table.datasets if d not in datasets]
    return Ranks(table.metric, tuple(methods), tuple(datasets), scores, tuple(left_out))
