"""The claims of the paper's text, each tested on the cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .layout import score
from .names import (
    BASELINES,
    PAPER_DATASETS,
    PAPER_METHODS,
    REFERENCE,
    SHORT,
    in_the_paper,
    is_imitation,
    is_part,
    label,
)
from .paper import paper_entries
from .significance import LEVEL, significantly_lower, smallest_p
from .tables import Table

HOLDS, FAILS, UNTESTED = "holds", "does not hold", "not tested"


@dataclass(frozen=True)
class Claim:
    """A claim, its verdict and the figures behind it.

    ``ours`` marks a check that the paper's text does not make. A claim about all or most
    datasets is not held to be tested before every one that can be had is there; a single
    counterexample to "all" is enough before that.
    """

    text: str
    verdict: str
    figures: str
    ours: bool = False


def verdict(holds: bool) -> str:
    return HOLDS if holds else FAILS


def ready(table: Table) -> list[str]:
    """The paper's datasets, full or in part, that every one of its ten methods has met.

    DAMVI must be done with every split; a rival may have failed, for it has lost then. A
    part does not count beside its whole.
    """
    return [
        dataset
        for dataset in table.datasets
        if in_the_paper(dataset)
        and not (is_part(dataset) and in_the_paper(dataset) in table.datasets)
        and table[REFERENCE, dataset].complete
        and all(table[m, dataset].status != "missing" for m in PAPER_METHODS)
    ]


def lacking(datasets: Sequence[str]) -> list[str]:
    """The paper's datasets, but the proprietary one, of which these hold nothing."""
    found = {in_the_paper(dataset) for dataset in datasets}
    return [d for d in PAPER_DATASETS if d != "pct" and d not in found]


def table_claims(f1: Table, ap: Table) -> list[Claim]:
    """What the paper says of its two tables, among its own ten methods."""
    both = (f1.only(PAPER_METHODS), ap.only(PAPER_METHODS))
    return [
        best_claim(both[0], allowed_losses=0, text="DAMVI is best in F1 on all datasets."),
        best_claim(
            both[1],
            allowed_losses=1,
            text="DAMVI is best in AP on 5 of 6 datasets (all but one).",
        ),
        _significantly_better(both),
        _on_pct(both),
        _stable(both),
        _second_best(both),
    ]


def _winner(table: Table, dataset: str) -> str:
    entries = {m: table[m, dataset] for m in table.methods}
    best = [m for m, entry in entries.items() if entry.best]
    words = f"{label(dataset)}: {' and '.join(best)} {score(entries[best[0]].mean)}"
    if REFERENCE not in best:
        mean = entries[REFERENCE].mean
        words += f" (DAMVI {score(mean)})"
    return words


def best_claim(table: Table, allowed_losses: int, text: str, ours: bool = False) -> Claim:
    tested = ready(table)
    lost = [d for d in tested if not table[REFERENCE, d].best]
    if not tested:
        return Claim(text, UNTESTED, "No dataset is complete.", ours)
    figures = [
        f"Best on {len(tested) - len(lost)} of {len(tested)} datasets.",
        f"{'; '.join(_winner(table, d) for d in tested)}.",
        *_coverage(tested),
    ]
    for dataset in table.datasets:
        if is_imitation(dataset) and table[REFERENCE, dataset].complete:
            figures.append(f"Not counted, {_winner(table, dataset)}.")
    if len(lost) > allowed_losses:
        return Claim(text, FAILS, " ".join(figures), ours)
    return Claim(text, UNTESTED if lacking(tested) else HOLDS, " ".join(figures), ours)


def _coverage(tested: Sequence[str]) -> list[str]:
    words = []
    if missing := [label(dataset) for dataset in lacking(tested)]:
        words.append(f"Without {', '.join(missing)}.")
    if part := [label(dataset) for dataset in tested if is_part(dataset)]:
        words.append(f"{', '.join(part)} stands for the whole.")
    return words


def _of_most(tables: Sequence[Table], text: str, holds: bool, figures: str) -> Claim:
    """A claim about most datasets, which takes all of them."""
    tested = ready(tables[0])
    figures = " ".join([figures, *_coverage(tested)])
    return Claim(text, UNTESTED if lacking(tested) else verdict(holds), figures)


def _significantly_better(tables: Sequence[Table]) -> Claim:
    text = "In most cases DAMVI is significantly better than the baselines (p < 0.05)."
    better = worse = cases = 0
    possible = True
    for table in tables:
        for dataset in ready(table):
            ours = table[REFERENCE, dataset].scores
            for method in BASELINES:
                entry = table[method, dataset]
                if entry.scores:
                    cases += 1
                    better += entry.worse
                    worse += significantly_lower(ours, entry.scores)
                    possible &= smallest_p(len(ours), entry.n_done) < LEVEL
    theirs = [e.worse for (_, m, _), e in paper_entries().items() if m != REFERENCE]
    figures = (
        f"Significantly better in {better} of {cases} comparisons, significantly worse in "
        f"{worse}; in the paper better in {sum(theirs)} of {len(theirs)} (with PCT)."
    )
    if not cases:
        return Claim(text, UNTESTED, "No dataset is complete.")
    if not possible and 2 * better <= cases:
        why = f" With so few splits the test cannot give p < {LEVEL}."
        return Claim(text, UNTESTED, figures + why)
    return _of_most(tables, text, 2 * better > cases, figures)


def _on_pct(tables: Sequence[Table]) -> Claim:
    unmarked = [
        f"{method} in {SHORT[metric]}"
        for (metric, method, dataset), entry in paper_entries().items()
        if dataset == "pct" and method != REFERENCE and not entry.worse
    ]
    figures = (
        "The data are proprietary. The paper's own table has no mark of significance for "
        f"{', '.join(unmarked)}."
    )
    for table in tables:
        for dataset in filter(is_imitation, table.datasets):
            rivals = [m for m in BASELINES if table[m, dataset].scores]
            marked = sum(table[m, dataset].worse for m in rivals)
            figures += (
                f" {label(dataset)}, {SHORT[table.metric]}: significantly better than "
                f"{marked} of {len(rivals)}."
            )
    return Claim(
        "On PCT DAMVI is significantly better than the baselines.", UNTESTED, figures
    )


def _stable(tables: Sequence[Table]) -> Claim:
    text = (
        "DAMVI is more stable than R-BG: a smaller standard deviation (on most datasets)."
    )
    parts, verdicts = [], []
    for table in tables:
        pairs = {
            dataset: (ours, theirs)
            for dataset in ready(table)
            if (ours := table[REFERENCE, dataset].std) is not None
            and (theirs := table["R-BG", dataset].std) is not None
        }
        smaller = sum(ours < theirs for ours, theirs in pairs.values())
        verdicts.append(2 * smaller > len(pairs))
        listed = "; ".join(
            f"{label(d)} {score(ours, 3)} against {score(theirs, 3)}"
            for d, (ours, theirs) in pairs.items()
        )
        paper = {
            (m, d): e.std for (of, m, d), e in paper_entries().items() if of == table.metric
        }
        in_paper = sum(paper[REFERENCE, d] < paper["R-BG", d] for d in PAPER_DATASETS)
        parts.append(
            f"{SHORT[table.metric]}: smaller on {smaller} of {len(pairs)} ({listed}); in "
            f"the paper's table on {in_paper} of {len(PAPER_DATASETS)}."
        )
        if not pairs:
            return Claim(text, UNTESTED, "No dataset has both with two splits or more.")
    n = min(n for n in tables[0].n_splits if n > 1)
    parts.append(
        f"A standard deviation of {n} splits is itself uncertain by some "
        f"{100 / (2 * (n - 1)) ** 0.5:.0f} %."
    )
    return _of_most(tables, text, all(verdicts), " ".join(parts))


def _second_best(tables: Sequence[Table]) -> Claim:
    text = "R-BG is in general the second best."
    cases = [(table, dataset) for table in tables for dataset in ready(table)]
    times = {m: sum(t[m, d].second for t, d in cases) for m in PAPER_METHODS}
    listed = sorted(((n, m) for m, n in times.items() if n), reverse=True)
    figures = "; ".join(f"{method} {n} of {len(cases)} times" for n, method in listed)
    if not cases:
        return Claim(text, UNTESTED, "No dataset is complete.")
    most = max(times.values())
    holds = times["R-BG"] == most and list(times.values()).count(most) == 1
    return _of_most(tables, text, holds, f"Second over both metrics: {figures}.")
