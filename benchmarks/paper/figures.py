"""The paper's figure, scores against the imbalance ratio, and a diagram of ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .published import METRICS, PAPER_METHODS, REFERENCE, label, order_methods
from .tables import Cell, Ranks, check_distinct, score_of

NATURAL = 0.0232  # the share of positives in Mammography

# Okabe and Ito's colours, safe for the colour-blind: one to a family of the paper's
# methods, and markers that tell its members apart.
_FAMILIES = {
    "S-DT": ("#E69F00", "o"),
    "R-DT": ("#E69F00", "s"),
    "A-DT": ("#E69F00", "^"),
    "S-BG": ("#0072B2", "o"),
    "R-BG": ("#0072B2", "s"),
    "A-BG": ("#0072B2", "^"),
    "BB": ("#009E73", "D"),
    "BRF": ("#009E73", "v"),
    "EE": ("#009E73", "X"),
}
_EXTRA_MARKERS = "x+12348"
_EXTRA = ("#CC79A7", "#7A7A7A", "#56B4E9", "#8C564B")
FONT: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}


def colour(method: str) -> str:
    """The colour of a method in every figure."""
    if method == REFERENCE:
        return "#D55E00"
    return _FAMILIES[method][0] if method in _FAMILIES else "#7A7A7A"


def _style(method: str, extras: Sequence[str]) -> dict[str, Any]:
    if method == REFERENCE:
        line = {"color": colour(method), "linewidth": 2.6, "marker": "o", "markersize": 6}
        return {**line, "linestyle": "-", "zorder": 5}
    if method in _FAMILIES:
        shade, marker = _FAMILIES[method]
        line = {"color": shade, "linewidth": 1.2, "marker": marker, "markersize": 5.5}
        return {**line, "linestyle": "-", "zorder": 3, "markeredgecolor": "white"}
    place = extras.index(method)
    return {
        "color": _EXTRA[place % len(_EXTRA)],
        "linewidth": 1.3,
        "marker": _EXTRA_MARKERS[place % len(_EXTRA_MARKERS)],
        "markersize": 5,
        "linestyle": (0, (4, 2)),
        "zorder": 4,
    }


def ratio_scores(
    cells: Iterable[Cell], metric: str
) -> dict[str, dict[float, tuple[float, ...]]]:
    """The scores over the splits, by method and share of positives, in order."""
    cells = [cell for cell in cells if cell.get("ratio") is not None]
    check_distinct(cells)
    found: dict[str, dict[float, tuple[float, ...]]] = {}
    for method in order_methods(cell["method"] for cell in cells):
        mine = [c for c in cells if c["method"] == method]
        by_ratio = {
            float(ratio): tuple(
                score
                for cell in mine
                if cell["ratio"] == ratio and (score := score_of(cell, metric)) is not None
            )
            for ratio in sorted({c["ratio"] for c in mine})
        }
        found[method] = {ratio: scores for ratio, scores in by_ratio.items() if scores}
    return found


def ratio_figure(cells: Sequence[Cell], natural: float | None = NATURAL) -> Any:
    """F1 and average precision against the share of positives, as a matplotlib Figure.

    Lines are means over the splits and bands one standard deviation (n - 1) either side.
    The cells are of one dataset; ``natural`` marks its own share.
    """
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

    datasets = sorted({c["dataset"] for c in cells if c.get("ratio") is not None})
    if len(datasets) != 1:
        raise ValueError(f"The figure shows one dataset, and the cells are of {datasets}.")
    with matplotlib.rc_context(FONT):
        figure = Figure(figsize=(10.5, 4.2), layout="constrained")
        panels = figure.subplots(1, 2, sharex=True)
        for axes, metric in zip(panels, METRICS, strict=True):
            scores = ratio_scores(cells, metric)
            extras = [m for m in scores if m not in PAPER_METHODS]
            for method, by_ratio in scores.items():
                _draw(axes, method, by_ratio, _style(method, extras))
            if natural is not None:
                axes.axvline(100 * natural, color="0.45", linewidth=0.9, linestyle=":")
                axes.annotate(
                    f"natural, {100 * natural:.2f} %",
                    (100 * natural, 0.01),
                    xycoords=("data", "axes fraction"),
                    xytext=(3, 0),
                    textcoords="offset points",
                    color="0.35",
                    fontsize=8,
                )
            axes.set_xscale("log")
            lowest, highest = axes.get_xlim()
            shares = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4, 10, 20, 50)
            ticks = [share for share in shares if lowest <= share <= highest]
            axes.xaxis.set_major_locator(FixedLocator(ticks))
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.grid(color="0.9", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.set_xlabel("imbalance ratio: positives in the data, %")
            axes.set_ylabel(METRICS[metric])
            axes.set_ylim(bottom=0)
        _legend(figure, panels[0])
        figure.suptitle(
            f"{label(datasets[0])}: mean ± one standard deviation over the splits"
        )
    return figure


def _legend(figure: Any, axes: Any) -> None:
    """One legend, the paper's methods above the others."""
    from matplotlib.lines import Line2D

    lines = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    theirs = [name for name in lines if name in PAPER_METHODS]
    groups = {
        "the paper's methods": sorted(theirs, key=lambda name: name != REFERENCE),
        "beyond the paper": [name for name in lines if name not in theirs],
    }
    handles, names = [], []
    for title, members in groups.items():
        if members:
            handles += [Line2D([], [], linestyle="none"), *(lines[m] for m in members)]
            names += [title, *members]
    legend = figure.legend(
        handles, names, loc="outside right center", frameon=False, handlelength=2.6
    )
    for text in legend.get_texts():
        if text.get_text() in groups:
            text.set_fontweight("bold")


def _draw(
    axes: Any, method: str, by_ratio: dict[float, tuple[float, ...]], style: Any
) -> None:
    shares = [100 * ratio for ratio in by_ratio]
    means = np.array([np.mean(scores) for scores in by_ratio.values()])
    axes.plot(shares, means, label=method, markeredgewidth=0.7, **style)
    spread = np.array(
        [np.std(scores, ddof=1) if len(scores) > 1 else 0 for scores in by_ratio.values()]
    )
    ours = method == REFERENCE
    axes.fill_between(
        shares,
        means - spread,
        means + spread,
        color=style["color"],
        alpha=0.22 if ours else 0.07,
        linewidth=0,
        zorder=style["zorder"] - 1,
    )


def rank_figure(ranks: Ranks) -> Any:
    """A critical-difference diagram, as a matplotlib Figure."""
    import matplotlib
    import pandas as pd
    import scikit_posthocs
    from matplotlib.figure import Figure

    methods = list(ranks.methods)
    p_values = scikit_posthocs.posthoc_nemenyi_friedman(ranks.scores)
    p_values = pd.DataFrame(np.asarray(p_values), index=methods, columns=methods)
    with matplotlib.rc_context(FONT):
        height = 1.4 + 0.17 * len(methods)
        figure = Figure(figsize=(7.5, height), layout="constrained")
        axes = figure.subplots()
        # Its level is 0.05 unless told, and only later releases can be told.
        scikit_posthocs.critical_difference_diagram(
            ranks.average,
            p_values,
            ax=axes,
            label_fmt_left="{label} {rank:.2f} ",
            label_fmt_right=" {rank:.2f} {label}",
            color_palette={method: colour(method) for method in methods},
            text_h_margin=0.2,
            elbow_props={"linewidth": 1.0},
            crossbar_props={"color": "0.25", "linewidth": 2.4},
            marker_props={"s": 18},
        )
        axes.spines["top"].set_visible(True)
        for text in axes.texts:
            if REFERENCE in text.get_text().split():
                text.set_fontweight("bold")
            else:
                text.set_color("0.15")
        axes.set_title(
            f"{METRICS[ranks.metric]}: average rank over {len(ranks.datasets)} datasets "
            "(1 is best)",
            fontsize=9,
        )
    return figure
