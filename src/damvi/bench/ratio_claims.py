"""The claims of the paper's text about the imbalance ratio, each tested on the cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean, median, stdev

from .claims import UNTESTED, Claim, verdict
from .figures import ratio_scores
from .layout import score
from .names import METRICS, PAPER_METHODS, REFERENCE, SHORT
from .tables import Cell, score_table

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
        _stable(cells),
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


def _stable(cells: list[Cell]) -> Claim:
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
