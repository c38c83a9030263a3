"""A critical-difference diagram: average ranks over datasets, by Nemenyi's test.

Demšar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7.
With few datasets the test is weak: what it joins by a bar may well differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .figures import FONT, colour
from .names import METRICS, REFERENCE, SHORT, label
from .significance import LEVEL
from .tables import Table

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
        from scipy.stats import rankdata

        ranks = rankdata(-self.scores, axis=1).mean(axis=0)
        return dict(zip(self.methods, ranks.tolist(), strict=True))

    @property
    def critical_difference(self) -> float:
        """How far apart two average ranks must be for Nemenyi's test to tell them apart."""
        from scipy.stats import studentized_range

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


def rank_figure(ranks: Ranks) -> Any:
    """The diagram, as a matplotlib Figure."""
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
