"""What the stored cells say: ranks, paired differences, and what quality costs."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from benchmarks.paper.figures import FONT, rank_figure
from benchmarks.paper.store import Cell, all_cells, read_cells, write_whole
from benchmarks.paper.tables import FEWEST, Ranks
from benchmarks.report_parts import draw, markdown, paired, plus_minus

from .contenders import AUTOGLUON, CONTENDERS, LIGHTGBM, OURS
from .runner import Plan

METRICS = {
    "ap": ("AP", 1),
    "f1": ("F1, own decision", 1),
    "f1_tuned": ("F1, common threshold", 1),
    "log_loss": ("log loss", -1),
    "brier": ("Brier", -1),
}
"""How a score is called, and whether more or less of it is better."""
COSTS = {
    "fit_cpu_seconds": ("CPU s, fit", 1.0, ".1f"),
    "fit_seconds": ("wall s, fit", 1.0, ".1f"),
    "predict_seconds": ("wall s, predict", 1.0, ".2f"),
    "peak_memory": ("peak MB", 1e-6, ".0f"),
}
NOISY = 0.1
"""Share of the cores that others may use before a cell's seconds are in doubt."""


class Entry(NamedTuple):
    """A contender at a budget, if it has one."""

    contender: str
    budget: int | None

    @property
    def label(self) -> str:
        limit = "" if self.budget is None else f", {self.budget} s"
        shown = f"{self.contender}{limit}"
        return f"**{shown}**" if self.contender == OURS else shown


class Board:
    """Stored cells by source, split and entry."""

    def __init__(self, cells: Sequence[Cell], plan: Plan) -> None:
        self.plan, self.sources = plan, plan.sources
        self.cells = {
            (c["dataset"], c["split"], Entry(c["contender"], c["budget"])): c for c in cells
        }
        self.known = list(dict.fromkeys(entry for _, _, entry in self.cells))
        found: dict[str, list[float]] = {}
        for (dataset, _, entry), cell in self.cells.items():
            if entry == Entry(LIGHTGBM, None):
                found.setdefault(dataset, []).append(cell["scores"]["ap"])
        self.reference = {dataset: float(np.mean(aps)) for dataset, aps in found.items()}

    def is_ranked(self, dataset: str) -> bool:
        return dataset in self.reference and self.reference[dataset] <= self.plan.easy

    @property
    def ranked(self) -> list[str]:
        return [dataset for dataset in self.sources if self.is_ranked(dataset)]

    def entries(self, budget: int) -> list[Entry]:
        """Who has that budget, and who has none, as far as there are cells."""
        asked = [Entry(n, budget if c.has_budget else None) for n, c in CONTENDERS.items()]
        return [entry for entry in asked if entry in self.known]

    def complete(self, entries: Sequence[Entry], n_splits: int) -> list[str]:
        """The ranked sources where all of them are done, or have failed."""
        return [
            dataset
            for dataset in self.ranked
            if all((dataset, s, e) in self.cells for s in range(n_splits) for e in entries)
        ]

    def mean(self, dataset: str, entry: Entry, name: str, n_splits: int) -> float:
        """Of a score or a cost over the splits; NaN for what failures do not have."""
        cells = [
            self.cells[dataset, split, entry]
            for split in range(n_splits)
            if (dataset, split, entry) in self.cells
        ]
        values = [(c["scores"] if name in METRICS else c).get(name) for c in cells]
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else np.nan

    def table(
        self, datasets: Sequence[str], entries: Sequence[Entry], name: str, n_splits: int
    ) -> np.ndarray:
        return np.array(
            [[self.mean(d, e, name, n_splits) for e in entries] for d in datasets]
        ).reshape(len(datasets), len(entries))


FIRST = (OURS, AUTOGLUON, LIGHTGBM)


class Contest:
    """All entries of one budget, on the sources where those of :data:`FIRST` are done.

    Of its splits, the first ones, as many as are done on as many sources as the very first.
    Everybody else waits until all of these are done.
    """

    def __init__(self, board: Board, budget: int) -> None:
        self.board, self.budget = board, budget
        self.ours = Entry(OURS, budget)
        known = board.entries(budget)
        first = [one for one in known if one.contender in FIRST]
        done = [
            board.complete(first, 1 + split) for split in range(board.plan.budgets[budget])
        ]
        self.n_splits = sum(len(datasets) == len(done[0]) for datasets in done)
        self.datasets = done[0]
        wanted = set(self.datasets)
        self.waiting = [
            one
            for one in known
            if one not in first and not wanted <= {*board.complete([one], self.n_splits)}
        ]
        self.entries = [one for one in known if one not in self.waiting]

    @property
    def has_begun(self) -> bool:
        return any(entry.budget is not None for entry in self.entries)

    @property
    def has_ranks(self) -> bool:
        enough = len(self.datasets) >= FEWEST and len(self.entries) >= FEWEST
        return self.has_begun and enough

    def table(self, name: str) -> np.ndarray:
        return self.board.table(self.datasets, self.entries, name, self.n_splits)

    def ranks(self, metric: str) -> Ranks:
        names = tuple(entry.label.strip("*") for entry in self.entries)
        scores = METRICS[metric][1] * self.table(metric)
        shown = "ap" if metric == "ap" else "f1"
        return Ranks(shown, names, tuple(self.datasets), scores, ())

    def average_ranks(self, metric: str) -> dict[Entry, float]:
        ranks = rankdata(-METRICS[metric][1] * self.table(metric), axis=1).mean(axis=0)
        return dict(zip(self.entries, ranks.tolist(), strict=True))

    def on_front(self, metric: str) -> set[Entry]:
        """Nothing else is both at least as good and cheaper in CPU seconds, in the mean."""
        quality = METRICS[metric][1] * self.table(metric).mean(axis=0)
        return front(self.entries, quality, cpu_means(self.table("fit_cpu_seconds")))


def cpu_means(table: np.ndarray) -> np.ndarray:
    """By column; one that failed everywhere costs more than any."""
    return np.array(
        [np.nanmean(c) if np.isfinite(c).any() else np.inf for c in table.T], dtype=float
    )


def front(entries: Sequence[Entry], quality: np.ndarray, cost: np.ndarray) -> set[Entry]:
    kept = set()
    for k, entry in enumerate(entries):
        better = (quality >= quality[k]) & (cost <= cost[k])
        better &= (quality > quality[k]) | (cost < cost[k])
        if np.isfinite(cost[k]) and not better.any():
            kept.add(entry)
    return kept


def number(value: float, form: str) -> str:
    return "–" if np.isnan(value) else format(value, form)


def score_lines(contest: Contest) -> list[str]:
    ranks = {metric: contest.average_ranks(metric) for metric in METRICS}
    means = {m: contest.table(m).mean(axis=0) for m in METRICS}
    costs = {c: contest.table(c) for c in COSTS}
    fronts = {metric: contest.on_front(metric) for metric in ("ap", "f1")}
    rows = []
    for entry in sorted(contest.entries, key=lambda e: ranks["ap"][e]):
        k = contest.entries.index(entry)
        row = [entry.label]
        row += [f"{means[m][k]:.4f} ({ranks[m][entry]:.2f})" for m in METRICS]
        for name, (_, factor, form) in COSTS.items():
            column = costs[name][:, k]
            mean = np.nanmean(column) if np.isfinite(column).any() else np.nan
            row.append(number(factor * mean, form))
        on = [METRICS[m][0].split(",")[0] for m in fronts if entry in fronts[m]]
        rows.append([*row, ", ".join(on)])
    head = ["", *(name for name, _ in METRICS.values())]
    return markdown(
        [*head, *(name for name, *_ in COSTS.values()), "on the front by"], rows
    )


def difference_lines(contest: Contest) -> list[str]:
    """Ours less each other, sources as the sample."""
    if contest.ours not in contest.entries:
        return []
    rows, at = [], contest.entries.index(contest.ours)
    tables = {m: contest.table(m) for m in ("ap", "f1", "f1_tuned", "log_loss")}
    for k, entry in enumerate(contest.entries):
        if k == at:
            continue
        row = [entry.label]
        for metric, table in tables.items():
            differences = table[:, at] - table[:, k]
            wins = int((METRICS[metric][1] * differences > 0).sum())
            losses = int((METRICS[metric][1] * differences < 0).sum())
            row += [plus_minus(*paired(differences)), f"{wins} : {losses}"]
        rows.append(row)
    head = [f"{contest.ours.label} less"]
    for metric in tables:
        head += [METRICS[metric][0], "better : worse"]
    return markdown(head, rows)


def waiting_words(contest: Contest) -> str:
    names = ", ".join(entry.contender for entry in contest.waiting)
    return f" Not run on all of these yet, and left out: {names}." if names else ""


def contest_lines(contest: Contest, folder: Path) -> list[str]:
    budget, n = contest.budget, len(contest.datasets)
    lines = [f"## {budget} seconds", ""]
    if not contest.has_begun:
        return [*lines, "Not run yet.", ""]
    if not contest.has_ranks:
        few = f"Not run yet on enough sources ({n} are complete; it takes {FEWEST})."
        return [*lines, few, ""]
    ranks = {metric: contest.ranks(metric) for metric in ("ap", "f1")}
    asked, of_all = contest.board.plan.budgets[budget], len(contest.board.ranked)
    splits = f"{contest.n_splits} split{'s' * (contest.n_splits > 1)} of each"
    if contest.n_splits < asked:
        splits += f" ({asked} are planned)"
    lines += [
        f"{n} of {of_all} ranked sources, {splits}: {', '.join(contest.datasets)}. Those "
        f"with a limit had {budget} s; the others took as long as they liked."
        + waiting_words(contest),
        "",
        f"Each score is the mean over sources and, in brackets, the mean rank among these "
        f"{len(contest.entries)} (1 is best). Two mean ranks must differ by "
        f"{ranks['ap'].critical_difference:.2f} for Nemenyi's test to tell them apart at "
        "p < .05. On the front: nothing else is as good for fewer CPU seconds.",
        "",
        *score_lines(contest),
    ]
    for metric, shown in ranks.items():
        name = f"ranks_{metric}_{budget}s"
        lines += draw(folder, name, lambda shown=shown: rank_figure(shown), shown.words)
    return [
        *lines,
        "Paired by source, ± one standard error over sources:",
        "",
        *difference_lines(contest),
    ]


def aims(contests: Sequence[Contest]) -> list[str]:
    """What the leaderboard was to show, and whether it does."""
    lines = []
    for contest in contests:
        if not contest.has_ranks or contest.ours not in contest.entries:
            continue
        for metric in ("ap", "f1"):
            holds = contest.ours in contest.on_front(metric)
            lines.append(
                f"- {'Met' if holds else 'Not met'}: {OURS} at {contest.budget} s is on "
                f"the front by {METRICS[metric][0]} against CPU seconds."
            )
        theirs = Entry(AUTOGLUON, contest.budget)
        if contest.budget < 60 or theirs not in contest.entries:
            continue
        for metric in ("ap", "f1", "log_loss"):
            ranks = contest.average_ranks(metric)
            at = [contest.entries.index(entry) for entry in (contest.ours, theirs)]
            table = contest.table(metric)[:, at]
            holds = ranks[contest.ours] < ranks[theirs]
            lines.append(
                f"- {'Met' if holds else 'Not met'}: at {contest.budget} s ahead of "
                f"{AUTOGLUON} in mean rank by {METRICS[metric][0]} "
                f"({ranks[contest.ours]:.2f} against {ranks[theirs]:.2f}; difference "
                f"{plus_minus(*paired(table[:, 0] - table[:, 1]))}, "
                f"{len(contest.datasets)} sources)."
            )
    return [*(lines or ["Not enough cells yet."]), ""]


def source_lines(board: Board) -> list[str]:
    rows = []
    for dataset, source in board.sources.items():
        ap = board.reference.get(dataset, np.nan)
        verdict = "not run" if np.isnan(ap) else "yes" if board.is_ranked(dataset) else "no"
        figures = [f"{source.rows:,}", f"{source.features:,}", f"{source.positives:,}"]
        rate, shown = f"{100 * source.rate:.1f} %", number(ap, ".3f")
        where = [source.collected_by, source.package, source.licence]
        rows.append([dataset, *figures, rate, shown, verdict, *where])
    head = ("", "rows", "features", "positives", "rate", "AP of LightGBM", "ranked")
    return markdown((*head, "collected by", "package", "licence"), rows)


def overall(board: Board, contests: Sequence[Contest]) -> tuple[list[Entry], list[str]]:
    """The entries of all budgets that were run, and the sources complete for all.

    Only split 0 counts here, so who waits for other splits is there too.
    """
    run = [contest for contest in contests if contest.has_ranks]
    common = [d for d in board.sources if run and all(d in c.datasets for c in run)]
    known = dict.fromkeys(one for c in run for one in (*c.entries, *c.waiting))
    return [one for one in known if {*common} <= {*board.complete([one], 1)}], common


def front_table(
    board: Board, entries: Sequence[Entry], datasets: Sequence[str]
) -> dict[str, np.ndarray]:
    """Mean CPU seconds, and AP and F1 on split 0, which all budgets share."""
    names = ("fit_cpu_seconds", "ap", "f1", "f1_tuned")
    tables = {name: board.table(datasets, entries, name, 1) for name in names}
    means = {name: table.mean(axis=0) for name, table in tables.items()}
    return {**means, "fit_cpu_seconds": cpu_means(tables["fit_cpu_seconds"])}


def front_lines(board: Board, contests: Sequence[Contest], folder: Path) -> list[str]:
    entries, datasets = overall(board, contests)
    if len(datasets) < FEWEST:
        return []
    means = front_table(board, entries, datasets)
    cost = means["fit_cpu_seconds"]
    fronts = {m: front(entries, means[m], cost) for m in ("ap", "f1", "f1_tuned")}
    rows = []
    for k in np.argsort(cost):
        row = [entries[k].label, number(cost[k], ".1f")]
        for metric, kept in fronts.items():
            row += [f"{means[metric][k]:.4f}", "yes" if entries[k] in kept else ""]
        rows.append(row)
    head = ["", "CPU s"]
    for metric in fronts:
        head += [METRICS[metric][0], "on the front"]
    words = (
        f"AP and F1 (own decision) against CPU seconds of fit, means over {len(datasets)} "
        "sources, split 0, which all budgets share. Further left is cheaper, further up is "
        "better. Systems with a budget are lines, from the shortest limit to the longest; "
        "the others are numbers, with an arrow if they are further down than is shown. The "
        "grey steps are the front: nothing is both above and to the left of it."
    )
    return [
        "## What quality costs",
        "",
        *draw(folder, "front", lambda: front_figure(entries, means), words),
        *markdown(head, rows),
    ]


COLOURS = {OURS: "#D55E00", AUTOGLUON: "#0072B2"}
SPAN = 0.2
"""How far below the best the front figure goes, so that the best can be told apart."""


def front_figure(entries: Sequence[Entry], means: dict[str, np.ndarray]) -> Any:
    import matplotlib
    from matplotlib.figure import Figure

    cost = means["fit_cpu_seconds"]
    shown = [k for k in np.argsort(cost) if np.isfinite(cost[k])]
    limited = dict.fromkeys(entries[k].contender for k in shown if entries[k].budget)
    others = [k for k in shown if entries[k].budget is None]
    with matplotlib.rc_context(FONT):
        figure = Figure(figsize=(11, 6), layout="constrained")
        for axes, metric in zip(figure.subplots(1, 2), ("ap", "f1"), strict=True):
            quality = means[metric]
            lines = [quality[k] for k in shown if entries[k].budget]
            floor = min([quality[shown].max() - SPAN, *lines])
            best = front(entries, quality, cost)
            steps = [(cost[k], quality[k]) for k in shown if entries[k] in best]
            steps.append((cost[shown[-1]], steps[-1][1]))
            style: dict[str, Any] = {"color": "0.85", "lw": 4, "zorder": 0}
            axes.step(*zip(*steps, strict=True), where="post", label="the front", **style)
            for name in limited:
                own = [k for k in shown if entries[k].contender == name]
                own.sort(key=lambda k: entries[k].budget or 0)
                colour = COLOURS.get(name, "#009E73")
                axes.plot(cost[own], quality[own], "o-", color=colour, ms=6, label=name)
                for near in _close_together(own, cost):
                    budgets = [entries[k].budget or 0 for k in near]
                    rivals = [k for k in shown if entries[k].budget in budgets]
                    # The worst of those with a limit has its labels below it.
                    is_last = quality[near].max() <= quality[rivals].min()
                    height = (min if is_last else max)(quality[near])
                    axes.annotate(
                        f"{', '.join(map(str, budgets))} s",
                        (np.exp(np.log(cost[near]).mean()), height),
                        xytext=(0, -6 if is_last else 6),
                        textcoords="offset points",
                        ha="center",
                        va="top" if is_last else "bottom",
                        fontsize=8,
                        color=colour,
                    )
            for place, k in enumerate(others, 1):
                ours = entries[k].contender.startswith("DAMVI")
                axes.plot(
                    cost[k],
                    max(quality[k], floor),
                    marker=f"${place}$",
                    ls="",
                    ms=9 if place > 9 else 6,
                    color=COLOURS[OURS] if ours else "0.15",
                    label=entries[k].contender,
                )
                if quality[k] < floor:
                    foot: dict[str, Any] = {"xytext": (0, -5), "fontsize": 8}
                    foot |= {"textcoords": "offset points", "ha": "center", "va": "top"}
                    axes.annotate("↓", (cost[k], floor), **foot)
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
            axes.set(xlabel="CPU seconds of fit", ylabel=METRICS[metric][0])
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside lower center", ncols=5
        )
    return figure


def _close_together(places: Sequence[int], cost: np.ndarray) -> list[list[int]]:
    """Points that would have their labels on top of each other share one."""
    groups: list[list[int]] = []
    for k in places:
        if groups and cost[k] < 2 * cost[groups[-1][-1]]:
            groups[-1].append(k)
        else:
            groups.append([k])
    return groups


def dataset_lines(board: Board, contest: Contest, metric: str) -> list[str]:
    """Every source, the unranked ones too, and those that are not complete."""
    rows = []
    for dataset in board.sources:
        values = board.table([dataset], contest.entries, metric, contest.n_splits)[0]
        if not np.isfinite(values).any():
            continue
        top = np.nanmax(values)
        shown = [
            f"**{shown}**" if v == top else shown
            for v in values
            for shown in [number(v, ".3f").removeprefix("0")]
        ]
        unranked = "" if board.is_ranked(dataset) else " (not ranked)"
        rows.append([dataset + unranked, *shown])
    title = f"{METRICS[metric][0]}, {contest.budget} s"
    return markdown([title, *(entry.label for entry in contest.entries)], rows)


def budget_lines(board: Board) -> list[str]:
    """Whether limits were kept: seconds of fit, as a share of the limit."""
    rows = []
    for entry in board.known:
        if entry.budget is None:
            continue
        cells = [c for (_, _, e), c in board.cells.items() if e == entry]
        shares = [c["fit_seconds"] / entry.budget for c in cells if "fit_seconds" in c]
        late = sum(share > 1.15 for share in shares)
        figures = [f"{100 * f(shares or [np.nan]):.0f} %" for f in (np.mean, np.max)]
        failed = sum("error" in cell for cell in cells)
        rows.append([entry.label, str(len(cells)), *figures, str(late), str(failed)])
    head = ("", "cells", "mean of the limit", "most", "beyond 115 %", "failed")
    return markdown(head, rows) if rows else []


def change_lines(board: Board, folder: Path) -> list[str]:
    """What changed where cells of ours were run again with later code."""
    first: dict[str, Cell] = {}
    for cell in all_cells(folder):
        first.setdefault(cell["key"], cell)
    rows = []
    for budget in board.plan.budgets:
        entry, found = Entry(OURS, budget), dict[str, list[list[float]]]()
        for (dataset, _, one), cell in board.cells.items():
            before = first[cell["key"]]
            if one != entry or before.get("code") == cell.get("code"):
                continue
            if board.is_ranked(dataset):
                now, then = cell["scores"], before["scores"]
                change = [now[metric] - then[metric] for metric in METRICS]
                found.setdefault(dataset, []).append(change)
        if len(found) >= FEWEST:
            changes = np.array([np.mean(own, axis=0) for own in found.values()])
            errors = changes.std(axis=0, ddof=1) / len(changes) ** 0.5
            row = [entry.label, str(sum(map(len, found.values())))]
            for own, error in zip(changes.T, errors, strict=True):
                row.append(f"{own.mean():+.4f} ± {error:.4f}")
                row.append(f"{(own > 0).sum()} : {(own < 0).sum()}")
            rows.append(row)
    head = ["now less before", "cells"]
    for metric in METRICS:
        head += [METRICS[metric][0], "up : down"]
    return markdown(head, rows) if rows else ["None.", ""]


def failure_lines(board: Board) -> list[str]:
    failed = [cell for cell in board.cells.values() if "error" in cell]
    if not failed:
        return ["No cell has failed.", ""]
    return [*(f"- {cell['key']}: {cell['error']}" for cell in failed), ""]


def version_lines(board: Board) -> list[str]:
    found: dict[str, set[str]] = {}
    for cell in board.cells.values():
        for package, number_ in cell.get("versions", {}).items():
            found.setdefault(package, set()).add(number_)
        if "code" in cell:
            found.setdefault("damvi (digest of src)", set()).add(cell["code"])
    noisy = [c for c in board.cells.values() if c["others"] > NOISY]
    listed = ", ".join(f"{p} {' and '.join(sorted(v))}" for p, v in sorted(found.items()))
    return [
        f"{listed}. {len(board.cells)} cells; during {len(noisy)} of them other processes "
        f"used more than {100 * NOISY:.0f} % of the cores, so that their seconds, and what "
        "is done in a limit, are in doubt.",
        "",
    ]


def scores_csv(board: Board) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    extra = ["others", "error"]
    writer.writerow(["dataset", "split", "contender", "budget", *METRICS, *COSTS, *extra])
    order = sorted(
        board.cells, key=lambda k: (k[0], k[1], k[2].contender, k[2].budget or 0)
    )
    for dataset, split, entry in order:
        cell = board.cells[dataset, split, entry]
        scores = [cell["scores"][metric] for metric in METRICS]
        costs = [cell.get(name, "") for name in (*COSTS, *extra)]
        writer.writerow(
            [dataset, split, entry.contender, entry.budget or "", *scores, *costs]
        )
    return out.getvalue()


def page(board: Board, folder: Path) -> list[str]:
    plan = board.plan
    contests = [Contest(board, budget) for budget in plan.budgets]
    begun = [contest for contest in contests if contest.has_begun] or contests[:1]
    easy = (
        f"Not ranked: sources on which LightGBM exceeds an AP of {plan.easy} (mean of up "
        f"to {plan.splits} splits)."
    )
    lines = [
        f"# {plan.title}",
        "",
        f"{plan.words} By `python -m benchmarks.leaderboard`; how it was made is in "
        "`results/leaderboard/protocol.md`, every score in [scores.csv](scores.csv).",
        "",
        "AP is average precision, how well rows are ranked. F1 is that of each system's "
        "own decision, and, so that no threshold is blamed on a ranking, at a common "
        "threshold; of log loss and Brier score less is better.",
        "",
        "## Aims",
        "",
        *aims(contests),
        *front_lines(board, contests, folder),
    ]
    for contest in contests:
        lines += contest_lines(contest, folder)
    lines += [
        "## Sources",
        "",
        *([easy, ""] if plan.easy < 1 else []),
        *source_lines(board),
    ]
    lines += ["## By source", "", "The best of each row is bold.", ""]
    for contest in begun:
        for metric in ("ap", "f1"):
            lines += dataset_lines(board, contest, metric)
    lines += ["## Limits", "", *budget_lines(board)]
    lines += ["## Ours, run again with later code", "", *change_lines(board, folder)]
    lines += ["## Failures", "", *failure_lines(board)]
    return [*lines, "## Versions", "", *version_lines(board)]


def write_report(folder: Path, plan: Plan) -> None:
    """Write leaderboard.md, scores.csv and the figures from the cells of a folder."""
    cells = read_cells(folder)
    if not cells:
        print(f"no finished cells in {folder}")
        return
    board = Board(cells, plan)
    text = "\n".join(page(board, folder)).rstrip() + "\n"
    write_whole(folder / "leaderboard.md", text)
    write_whole(folder / "scores.csv", scores_csv(board))
    print("\n".join(aims([Contest(board, budget) for budget in plan.budgets])))
    print(f"wrote {folder / 'leaderboard.md'}")
