"""The claims of the paper's text, and checks of our own, each tested on the cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from .figures import ratio_scores
from .grids import score
from .published import (
    BASELINES,
    METRICS,
    PAPER_DATASETS,
    PAPER_METHODS,
    REFERENCE,
    SHORT,
    PaperEntry,
    agrees,
    allowed_gap,
    in_the_paper,
    is_imitation,
    is_part,
    label,
    order_datasets,
    order_methods,
    paper_entries,
    paper_entry,
)
from .tables import (
    LEVEL,
    Cell,
    Entry,
    Table,
    score_table,
    significantly_lower,
    smallest_p,
)

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


Means = Mapping[float, Mapping[str, float]]

BEST_TEXT = "DAMVI is best in {} below 4 % of positives{}."
SECOND_TEXT = "{} is second best in {} at every ratio below 1 %."
WORST_TEXT = "EE is worst in F1 at every ratio below 1 %."
CONSISTENT_TEXT = (
    "DAMVI is consistent over the ratios (read as: among the best three at every ratio)."
)
STABLE_TEXT = (
    "DAMVI is stable over the ratios (read as: its standard deviation, averaged over the "
    "ratios, is below that of the median method)."
)


def ratio_claims(cells: Iterable[Cell]) -> list[Claim]:
    """What the paper says of its figure (of Mammography), among its own ten methods."""
    cells = [
        c
        for c in cells
        if c.get("ratio") is not None
        and c["dataset"] == "mammography"
        and c["method"] in PAPER_METHODS
    ]
    means = {metric: _means(cells, metric) for metric in METRICS}
    return [
        _best(means["f1"], "f1", ", but for 2 %"),
        _best(means["ap"], "ap", ""),
        _placed(means["ap"], "EE", 2, SECOND_TEXT.format("EE", SHORT["ap"])),
        _placed(means["f1"], "EE", -1, WORST_TEXT),
        _placed(means["f1"], "R-BG", 2, SECOND_TEXT.format("R-BG", SHORT["f1"])),
        _consistent(means),
        _stable_over_ratios(cells),
    ]


def _means(cells: list[Cell], metric: str) -> Means:
    """Mean scores by ratio and method, at the ratios that all ten methods have met.

    DAMVI must be done with every split; a rival that is not has no mean, and has lost.
    """
    table = score_table(
        [{**c, "dataset": str(c["ratio"]), "ratio": None} for c in cells], metric
    )
    return {
        ratio: {
            m: mean
            for m in PAPER_METHODS
            if table[m, str(ratio)].complete
            and (mean := table[m, str(ratio)].mean) is not None
        }
        for ratio in sorted({c["ratio"] for c in cells})
        if table[REFERENCE, str(ratio)].complete
        and all(table[m, str(ratio)].status != "missing" for m in PAPER_METHODS)
    }


def _order(of: Mapping[str, float]) -> list[str]:
    return sorted(of, key=lambda method: -of[method])


def _place(of: Mapping[str, float], method: str) -> int:
    """Rank from 1, and methods that tie share the better one."""
    return 1 + sum(mean > of[method] for mean in of.values())


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.3g} %"


def _near(ratio: float, other: float) -> bool:
    return abs(ratio - other) < 1e-9


def _best(means: Means, metric: str, exception: str) -> Claim:
    text = BEST_TEXT.format(SHORT[metric], exception)
    below = {ratio: of for ratio, of in means.items() if ratio < 0.04 - 1e-9}
    if not below:
        return Claim(text, UNTESTED, "No ratio below 4 % has all ten methods.")
    excepted = [r for r in below if exception and _near(r, 0.02)]
    lost = [r for r in below if _place(below[r], REFERENCE) > 1]
    words = []
    for ratio in lost:
        first = _order(below[ratio])[0]
        words.append(
            f"at {_percent(ratio)} {first} {score(below[ratio][first])} "
            f"(DAMVI {score(below[ratio][REFERENCE])})"
        )
    figures = f"Best at {len(below) - len(lost)} of {len(below)} ratios"
    figures += f"; {'; '.join(words)}." if words else "."
    counted = [r for r in lost if r not in excepted]
    return Claim(text, verdict(not counted), figures)


def _placed(means: Means, method: str, place: int, text: str) -> Claim:
    below = {ratio: of for ratio, of in means.items() if ratio < 0.01 - 1e-9}
    if not below:
        return Claim(text, UNTESTED, "No ratio below 1 % has all ten methods.")
    words, places = [], []
    for ratio, of in below.items():
        # Counted from the end for the worst, since some of the ten may have failed.
        places.append(
            _place(of, method) - (len(of) + 1) * (place < 0) if method in of else 0
        )
        words.append(
            f"at {_percent(ratio)} "
            + (
                f"place {_place(of, method)} of {len(of)} ({score(of[method])})"
                if method in of
                else "not complete"
            )
        )
    holds = all(found == place for found in places)
    return Claim(text, verdict(holds), f"{method}: {'; '.join(words)}.")


def _consistent(means: Mapping[str, Means]) -> Claim:
    words, worst = [], 0
    for metric, by_ratio in means.items():
        if not by_ratio:
            return Claim(CONSISTENT_TEXT, UNTESTED, "No ratio has all ten methods.")
        places = {ratio: _place(of, REFERENCE) for ratio, of in by_ratio.items()}
        low = max(places, key=lambda ratio: places[ratio])
        worst = max(worst, places[low])
        scores = [of[REFERENCE] for of in by_ratio.values()]
        words.append(
            f"{SHORT[metric]}: from {score(min(scores))} to {score(max(scores))} over "
            f"{len(scores)} ratios, at worst place {places[low]} (at {_percent(low)})"
        )
    return Claim(CONSISTENT_TEXT, verdict(worst <= 3), f"{'; '.join(words)}.")


def _stable_over_ratios(cells: list[Cell]) -> Claim:
    words, verdicts = [], []
    for metric in METRICS:
        spread = {}
        for method, by_ratio in ratio_scores(cells, metric).items():
            stds = [stdev(scores) for scores in by_ratio.values() if len(scores) > 1]
            if stds:
                spread[method] = fmean(stds)
        if len(spread) < len(PAPER_METHODS):
            return Claim(STABLE_TEXT, UNTESTED, "Not all ten methods have two splits.")
        middle = median(spread.values())
        verdicts.append(spread[REFERENCE] < middle)
        words.append(
            f"{SHORT[metric]}: DAMVI {score(spread[REFERENCE])}, median {score(middle)}"
        )
    return Claim(STABLE_TEXT, verdict(all(verdicts)), f"{'; '.join(words)}.")


def our_checks(f1: Table, ap: Table) -> list[Claim]:
    """Does DAMVI score as it did in the paper, and who wins when others are let in?"""
    checks = [_reproduced(table, d) for table in (f1, ap) for d in table.datasets]
    others = order_methods(set(f1.methods) - set(PAPER_METHODS))
    if others:
        for table, losses in ((f1, 0), (ap, 1)):
            text = (
                f"DAMVI is best in {SHORT[table.metric]} on all datasets"
                f"{' but one' * losses}, with {', '.join(others)} let in."
            )
            checks.append(best_claim(table, losses, text, ours=True))
    return [check for check in checks if check]


def _reproduced(table: Table, dataset: str) -> Claim | None:
    ours, paper = table[REFERENCE, dataset], paper_entry(table.metric, REFERENCE, dataset)
    if paper is None or ours.status == "missing":
        return None
    text = f"{label(dataset)}: DAMVI's {SHORT[table.metric]} agrees with the paper's."
    within = agrees(ours.mean, ours.std, ours.n_done, paper)
    figures = (
        f"Ours {score(ours.mean)}±{score(ours.std, 3)}, the paper's {score(paper.mean)}"
        f"±{score(paper.std, 3)}"
    )
    if within is None:
        return Claim(text, UNTESTED, f"{figures}.", ours=True)
    apart = abs((ours.mean or 0) - paper.mean)
    room = score(allowed_gap(ours.std or 0, ours.n_done, paper))
    figures += f": {score(apart)} apart, where {room} is allowed."
    return Claim(text, verdict(within), figures, ours=True)


def difference_words(tables: Iterable[Table]) -> str:
    """A Markdown list of the entries that are further apart than two standard errors."""
    apart: dict[str, list[str]] = {}
    compared = marks = same_marks = 0
    for table in tables:
        for dataset in table.datasets:
            for method in PAPER_METHODS:
                ours = table[method, dataset]
                paper = paper_entry(table.metric, method, dataset)
                within = agrees(ours.mean, ours.std, ours.n_done, paper) if paper else None
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
        f"Of {compared} entries that both have, {compared - n_apart} are within two "
        f"standard errors of each other, and {n_apart} are not. The "
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
