"""What the cells of pools.py say, in words, tables and figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from paper.store import read_cells, write_whole
from pool_contenders import (
    BEST,
    BEST_F1,
    CHOSEN,
    COMBINERS,
    DAMVI,
    LIGHTGBM,
    MAKE_UPS,
    N_BINS,
    THEIRS,
    settings,
)
from report_parts import draw, markdown, paired, plus_minus
from scipy.stats import rankdata

Cell = dict[str, Any]
METRICS = {
    "ap": ("AP", 1),
    "f1": ("F1", 1),
    "f1_whole": ("F1, one set of weights", 1),
    "balanced_accuracy": ("balanced accuracy", 1),
    "mcc": ("MCC", 1),
    "brier": ("Brier", -1),
    "log_loss": ("log loss", -1),
}
"""How a score is called, and whether more or less of it is better."""
MARGIN = 0.01
ENOUGH_CALIBRATED = 8
OURS = "isotonic"


class Results:
    """Finished cells of one pool and the same contenders, by dataset and split."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        newest = _ground(cells[-1])
        same = [cell for cell in cells if _ground(cell) == newest]
        self.n_others = len(cells) - len(same)
        self.cells = {(cell["dataset"], cell["split"]): cell for cell in same}
        self.datasets = list(dict.fromkeys(cell["dataset"] for cell in same))
        self.contenders: list[str] = newest["contenders"]["names"]
        # In the pool's own order, which the file does not keep in its settings.
        self.voters = self.contenders[: len(newest["pool"])]
        self.settings = newest

    def of(self, dataset: str) -> list[Cell]:
        mine = [cell for (name, _), cell in self.cells.items() if name == dataset]
        return sorted(mine, key=lambda cell: cell["split"])

    def scores(self, dataset: str, contender: str, metric: str) -> np.ndarray:
        return np.array([c["scores"][contender][metric] for c in self.of(dataset)])

    def mean(self, contender: str, metric: str) -> float:
        """Over datasets, each of which counts the same."""
        return float(
            np.mean([self.scores(d, contender, metric).mean() for d in self.datasets])
        )

    def table(self, contenders: Sequence[str], metric: str) -> np.ndarray:
        """Means by dataset (rows) and contender."""
        return np.array(
            [[self.scores(d, c, metric).mean() for c in contenders] for d in self.datasets]
        )

    def ranks(self, contenders: Sequence[str], metric: str) -> dict[str, float]:
        """Mean ranks over the datasets, 1 the best."""
        table = -METRICS[metric][1] * self.table(contenders, metric)
        return dict(zip(contenders, rankdata(table, axis=1).mean(axis=0), strict=True))

    @property
    def main(self) -> list[str]:
        return [*self.voters, BEST, BEST_F1, *COMBINERS, DAMVI]


def _ground(cell: Cell) -> dict[str, Any]:
    own = ("dataset", "data", "split", "pool_by_labels")
    return {name: value for name, value in cell["settings"].items() if name not in own}


def aims(results: Results) -> list[str]:
    """The issue's aims, and whether they are met."""
    lines = []
    for metric in ("ap", "f1"):
        ranks = results.ranks(results.main, metric)
        better = [name for name, rank in ranks.items() if rank < ranks[DAMVI]]
        ahead = f"behind {', '.join(better)}" if better else "nobody is ahead"
        lines.append(
            f"- {'Met' if not better else 'Not met'}: first in mean rank by "
            f"{METRICS[metric][0]} ({ranks[DAMVI]:.2f} of {len(ranks)}; {ahead})."
        )
    kept = {d: against_best(results, d)[2] for d in results.datasets}
    broken = [dataset for dataset, holds in kept.items() if not holds]
    lines.append(
        f"- {'Not met' if broken else 'Met'}: AP never below that of the best single model "
        f"by more than {MARGIN} or one paired standard error, whichever is larger "
        f"({sum(kept.values())} of {len(kept)}"
        f"{'; not on ' + ', '.join(broken) if broken else ''})."
    )
    if LIGHTGBM in results.voters:
        for curve in (OURS, THEIRS):
            n = len(results.datasets)
            good = sum(all(not_above(results, d, curve)) for d in results.datasets)
            enough = good >= min(ENOUGH_CALIBRATED, n)
            lines.append(
                f"- {'Met' if enough else 'Not met'}: Brier score and log loss both not "
                f"above LightGBM's ({curve}) on {good} of {n} datasets; "
                f"{ENOUGH_CALIBRATED} of 13 are asked for."
            )
    return [*lines, ""]


def against_best(results: Results, dataset: str) -> tuple[float, float, bool]:
    ours, theirs = (results.scores(dataset, c, "ap") for c in (DAMVI, BEST))
    mean, error = paired(ours - theirs)
    return mean, error, bool(mean >= -np.nanmax([MARGIN, error]))


def data_lines(results: Results) -> list[str]:
    rows = []
    for dataset in results.datasets:
        cells = results.of(dataset)
        first = cells[0]
        seconds = np.mean([sum(cell["train_seconds"].values()) for cell in cells])
        combining = np.mean([cell["combining_seconds"] for cell in cells])
        rows.append(
            [
                dataset,
                str(len(cells)),
                f"{first['rows']:,}",
                str(first["features"]),
                str(first["train_positives"]),
                str(first["test_positives"]),
                f"{seconds:.1f}",
                f"{combining:.1f}",
            ]
        )
    head = (
        "",
        "splits",
        "rows",
        "features",
        "positives, training",
        "test",
        "CPU s, training the pool",
        "all contenders",
    )
    return markdown(head, rows)


def train_seconds(results: Results, contender: str) -> float:
    """CPU seconds of the voters behind a contender, a split, mean over datasets."""
    asked = [contender] if contender in results.voters else results.voters
    if contender in MAKE_UPS:
        asked = list(filter(MAKE_UPS[contender], results.voters))
    return float(
        np.mean(
            [
                np.mean([sum(c["train_seconds"][v] for v in asked) for c in results.of(d)])
                for d in results.datasets
            ]
        )
    )


def main_lines(results: Results, contenders: Sequence[str]) -> list[str]:
    ranks = {metric: results.ranks(contenders, metric) for metric in METRICS}
    order = sorted(contenders, key=lambda name: ranks["ap"][name])
    rows = []
    for name in order:
        shown = f"**{name}**" if name == DAMVI else name
        figures = [f"{results.mean(name, m):.4f} ({ranks[m][name]:.2f})" for m in METRICS]
        combining = results.mean(name, "seconds")
        seconds = [f"{train_seconds(results, name):.1f}", f"{combining:.2f}"]
        rows.append([shown, *figures, *seconds])
    names = [METRICS[metric][0] for metric in METRICS]
    return markdown(("", *names, "CPU s, training", "combining"), rows)


def before_lines(results: Results, folder: Path) -> list[str]:
    """The main contenders of both, this one and an older folder, on the splits of both."""
    older = [c for c in read_cells(folder) if (c["dataset"], c["split"]) in results.cells]
    before = Results(older)
    shared = [cell for key, cell in results.cells.items() if key in before.cells]
    after = Results(shared)
    before.datasets = after.datasets
    both = (before, after)
    names = [name for name in results.main if name in before.contenders]
    ranks = {m: [one.ranks(names, m) for one in both] for m in ("ap", "f1")}
    rows = []
    for name in sorted(names, key=lambda name: ranks["ap"][1][name]):
        row = [f"**{name}**" if name == DAMVI else name]
        for metric in ("ap", "f1"):
            old, new = (one.table([name], metric)[:, 0] for one in both)
            sides = [f"{s.mean(name, metric):.4f}" for s in both]
            places = [f"({rank[name]:.2f})" for rank in ranks[metric]]
            row += [f"{side} {place}" for side, place in zip(sides, places, strict=True)]
            row.append(plus_minus(*paired(new - old)))
        rows.append(row)
    head = ("", "AP before", "after", "difference", "F1 before", "after", "difference")
    places = [f"{d} {len(after.of(d))}" for d in after.datasets]
    return [
        "## Before and after",
        "",
        f"The same splits in `{folder}` (by the code at the time) and here, of the "
        f"contenders that are in both; mean ranks among these in brackets, differences ± "
        f"one standard error over datasets. Splits: {', '.join(places)}.",
        "",
        *markdown(head, rows),
        *(line for c in CHANGED if c in names for line in _changed(before, after, c)),
    ]


CHANGED = (DAMVI, "uniform vote", LIGHTGBM)


def _changed(before: Results, after: Results, name: str) -> list[str]:
    rows = []
    for dataset in after.datasets:
        row = [dataset]
        for metric in ("ap", "f1"):
            sides = [one.scores(dataset, name, metric).mean() for one in (before, after)]
            row += [f"{side:.4f}" for side in sides]
        rows.append(row)
    return markdown((name, "AP before", "after", "F1 before", "after"), rows)


def best_lines(results: Results) -> list[str]:
    rows = []
    for dataset in results.datasets:
        mean, error, holds = against_best(results, dataset)
        f1 = paired(
            results.scores(dataset, DAMVI, "f1") - results.scores(dataset, BEST, "f1")
        )
        chosen = [cell["scores"][BEST]["note"] for cell in results.of(dataset)]
        counts = {name: chosen.count(name) for name in dict.fromkeys(chosen)}
        rows.append(
            [
                dataset,
                ", ".join(f"{name} {n}" for name, n in counts.items()),
                f"{results.scores(dataset, BEST, 'ap').mean():.4f}",
                f"{results.scores(dataset, DAMVI, 'ap').mean():.4f}",
                plus_minus(mean, error),
                f"{-np.nanmax([MARGIN, error]):.4f}",
                "yes" if holds else "**no**",
                plus_minus(*f1),
            ]
        )
    head = ("", "chosen, splits", "its AP", "DAMVI", "difference", "allowed", "holds", "F1")
    return markdown(head, rows)


def dataset_lines(results: Results, metric: str) -> list[str]:
    contenders = results.main
    rows = []
    for dataset, means in zip(
        results.datasets, results.table(contenders, metric), strict=True
    ):
        top = means.max()
        shown = [f"**{mean:.3f}**" if mean == top else f"{mean:.3f}" for mean in means]
        rows.append([dataset, *shown])
    return markdown((METRICS[metric][0], *contenders), rows)


def variant_lines(results: Results, variants: Sequence[str]) -> list[str]:
    """Each variant against the default: mean difference, datasets as the sample."""
    rows = []
    for name in variants:
        row = [name]
        for metric in ("ap", "f1", "log_loss"):
            both = results.table([name, DAMVI], metric)
            differences = both[:, 0] - both[:, 1]
            wins = int((METRICS[metric][1] * differences > 0).sum())
            losses = int((METRICS[metric][1] * differences < 0).sum())
            row += [plus_minus(*paired(differences)), f"{wins} : {losses}"]
        rows.append(row)
    head = ("less DAMVI", "AP", "better : worse", "F1", "", "log loss", "")
    return markdown(head, rows)


def mean_calibration(
    results: Results, dataset: str, voter: str, curve: str, metric: str
) -> float:
    cells = results.of(dataset)
    return float(np.mean([c["calibration"][voter][curve][metric] for c in cells]))


def not_above(results: Results, dataset: str, curve: str) -> tuple[bool, bool]:
    """Whether DAMVI's Brier score, and log loss, are not above LightGBM's."""
    brier, loss = (
        mean_calibration(results, dataset, DAMVI, "auto", metric)
        <= mean_calibration(results, dataset, LIGHTGBM, curve, metric)
        for metric in ("brier", "log_loss")
    )
    return brier, loss


def calibration_lines(results: Results) -> list[str]:
    rows = []
    for dataset in results.datasets:
        row = [dataset]
        for metric in ("brier", "log_loss"):
            figures = [
                mean_calibration(results, dataset, *of, metric)
                for of in ((DAMVI, "auto"), (LIGHTGBM, OURS), (LIGHTGBM, THEIRS))
            ]
            row += [f"{figure:.5f}" for figure in figures]
        both = [not_above(results, dataset, curve) for curve in (OURS, THEIRS)]
        row += [
            f"{'yes' if brier else 'no'} / {'yes' if loss else 'no'}"
            for brier, loss in both
        ]
        ours = expected_error(bins_of(results, dataset, DAMVI, "auto"))
        theirs = expected_error(bins_of(results, dataset, LIGHTGBM, OURS))
        rows.append([*row, f"{ours:.4f} / {theirs:.4f}"])
    head = (
        "",
        "Brier: DAMVI",
        "LightGBM, isotonic",
        "scikit-learn's",
        "log loss: DAMVI",
        "LightGBM, isotonic",
        "scikit-learn's",
        "Brier / log loss not above",
        "scikit-learn's",
        "calibration error, DAMVI / LightGBM",
    )
    return markdown(head, rows)


def curve_lines(results: Results) -> list[str]:
    """Which final curve does best, by voter: means over datasets."""
    datasets, rows = results.datasets, []
    voters = results.of(datasets[0])[0]["calibration"]
    for voter, curves in voters.items():
        for curve in curves:
            means = [
                np.mean(
                    [
                        mean_calibration(results, d, voter, curve, m)
                        for d in results.datasets
                    ]
                )
                for m in ("brier", "log_loss")
            ]
            rows.append([voter, curve, *(f"{mean:.5f}" for mean in means)])
    return markdown(("", "curve", "Brier", "log loss"), rows)


def bins_of(results: Results, dataset: str, voter: str, curve: str) -> np.ndarray:
    """Rows, sum of probabilities and positives by bin, added over the splits."""
    cells = results.of(dataset)
    return np.sum([c["calibration"][voter][curve]["bins"] for c in cells], axis=0)


def expected_error(bins: np.ndarray) -> float:
    """Mean distance of probability and share of positives, over bins of equal mass."""
    return float(np.abs(bins[:, 1] - bins[:, 2]).sum() / bins[:, 0].sum())


def root(values: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(values, 0))


def reliability_figure(results: Results) -> Any:
    import matplotlib
    from matplotlib.figure import Figure

    n_columns = min(4, len(results.datasets))
    n_rows = -(-len(results.datasets) // n_columns)
    with matplotlib.rc_context({"font.size": 8}):
        figure = Figure(figsize=(2.3 * n_columns, 2.4 * n_rows), layout="constrained")
        panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for axes in panels[len(results.datasets) :]:
            axes.set_visible(False)
        for axes, dataset in zip(panels, results.datasets, strict=False):
            top = 0.0
            for voter, curve, style in (
                (LIGHTGBM, OURS, {"color": "#0072B2", "marker": "s"}),
                (DAMVI, "auto", {"color": "#D55E00", "marker": "o"}),
            ):
                bins = bins_of(results, dataset, voter, curve)
                chance, share = bins[:, 1] / bins[:, 0], bins[:, 2] / bins[:, 0]
                top = max(top, 1.08 * chance.max(), 1.08 * share.max())
                axes.plot(chance, share, lw=0.8, ms=3, label=f"{voter}, {curve}", **style)
            axes.plot([0, top], [0, top], color="0.6", lw=0.8, zorder=0)
            # Roots, so that the many bins near 0 can be told apart.
            for scale in (axes.set_xscale, axes.set_yscale):
                scale("function", functions=(root, np.square))
            axes.set(xlim=(0, top), ylim=(0, top), title=dataset)
            axes.tick_params(labelsize=6)
        panels[0].legend(fontsize=6)
        figure.supxlabel("mean probability")
        figure.supylabel("share of positives")
    return figure


def rank_lines(results: Results, folder: Path, metric: str) -> list[str]:
    from paper.figures import rank_figure
    from paper.tables import FEWEST, Ranks

    if len(results.datasets) < FEWEST:
        return [f"No diagram of ranks by {METRICS[metric][0]}: too few datasets.", ""]
    scores = results.table(results.main, metric)
    ranks = Ranks(metric, tuple(results.main), tuple(results.datasets), scores, ())
    return draw(folder, f"ranks_{metric}", lambda: rank_figure(ranks), ranks.words)


def chosen_elsewhere(results: Results) -> list[str]:
    """What the default's two numbers would be without a dataset, judged on that dataset.

    Balance and shrinkage of the default were chosen on these datasets, and so flatter it.
    """
    pool = [*results.voters, BEST, BEST_F1, *COMBINERS]
    names = [setting.name for setting in settings() if not setting.reweight]
    rules = [name for name in names if ", raw" not in name and ", isotonic" not in name]
    if len(results.datasets) < 3 or not set(rules) <= set(results.contenders):
        return []
    ranks = {
        rule: [
            rankdata(-results.table([rule, *pool], metric), axis=1)
            for metric in ("ap", "f1")
        ]
        for rule in rules
    }
    picked, found = [], []
    for left_out in range(len(results.datasets)):
        others = np.arange(len(results.datasets)) != left_out
        rule = min(rules, key=lambda r: sum(by[others, 0].mean() for by in ranks[r]))
        picked.append(rule)
        found.append([by[left_out] for by in ranks[rule]])
    lines = [
        "Balance and shrinkage of the default were chosen on these datasets. Where each "
        "dataset is judged by what does best (in mean rank by AP and F1) on the others, "
        f"the default is the choice for {picked.count(DAMVI)} of {len(picked)}, and",
        "",
    ]
    for at, metric in enumerate(("AP", "F1")):
        own, *rest = np.mean([both[at] for both in found], axis=0)
        best = int(np.argmin(rest))
        lines.append(
            f"- the mean rank by {metric} is {own:.2f}; the best of the others is "
            f"{pool[best]} with {rest[best]:.2f}."
        )
    return [*lines, ""]


def voter_lines(results: Results) -> list[str]:
    """The mean weight of each voter in the default recipe."""
    rows = []
    for dataset in results.datasets:
        cells = results.of(dataset)
        weights = np.mean([cell["scores"][DAMVI]["weights"] for cell in cells], axis=0)
        rows.append([dataset, *(f"{weight:.2f}" for weight in weights)])
    seconds = [f"{train_seconds(results, voter):.1f}" for voter in results.voters]
    rows.append(["*CPU s a split*", *seconds])
    return markdown(("", *results.voters), rows)


def scores_csv(results: Results) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = [*METRICS, "threshold", "out_of_fold_ap", "seconds", "note"]
    writer.writerow(["dataset", "split", "contender", *columns])
    for (dataset, split), cell in sorted(results.cells.items()):
        for name, scores in cell["scores"].items():
            figures = [scores.get(column, "") for column in columns]
            writer.writerow([dataset, split, name, *figures])
    return out.getvalue()


def page(results: Results, folder: Path, before: Path | None) -> list[str]:
    setting = results.settings
    rows = f"at most {setting['rows']:,} rows a dataset" if setting["rows"] else "all rows"
    if setting["rows"]:
        natural = setting["cap"] == "rate"
        rows += (
            ", drawn for each split at the natural class rate"
            if natural
            else ", drawn for each split, with all positives"
        )
    n_splits = sorted({len(results.of(dataset)) for dataset in results.datasets})
    how_many = " to ".join(map(str, dict.fromkeys([n_splits[0], n_splits[-1]])))
    versions = next(reversed(results.cells.values()))["versions"]
    left_out = [name for name in ("catboost",) if name not in results.voters]
    grid = [n for n in results.contenders if n.startswith("C-bound") and n not in CHOSEN]
    alike = [f"{name}, calibrated" for name in COMBINERS]
    lines = [
        "# Pools",
        "",
        f"{len(results.datasets)} datasets, {how_many} stratified 70/30 splits each, "
        f"{rows}. Blocks and other groups of rows are not kept together.",
        "",
        "The pool is `strong_pool()`, trained once a split: five-fold out of fold, and on "
        "all training rows. All contenders share its votes. Weights, curves and thresholds "
        "are learned on the training rows, and each fold's vote, which sets threshold and "
        "probability, comes by weights of the other folds. The test rows are for the "
        "scores alone. All thresholds are tuned for F1, also where balanced accuracy and "
        'MCC are shown. "F1, one set of weights" is the other way to tune them: on the '
        "out-of-fold votes joined by the weights of the test rows, which have seen all "
        "folds. Seconds are CPU time on one core, the folds included.",
        "",
        f"{', '.join(f'{name} {number}' for name, number in versions.items())}.",
        "",
    ]
    if left_out:
        lines += [f"Boosters that are not in the pool: {', '.join(left_out)}.", ""]
    if results.n_others:
        lines += [f"{results.n_others} cells of other settings are left out.", ""]
    lines += ["## Aims", "", *aims(results), "## Data", "", *data_lines(results)]
    lines += [
        "## Contenders",
        "",
        "Means over datasets, and mean ranks among these contenders (1 is best). "
        f"{DAMVI} is what `DAMVIVotingClassifier()` does. The best single model is "
        "chosen by out-of-fold AP (by F1: by cross-fitted F1).",
        "",
        *main_lines(results, results.main),
        *chosen_elsewhere(results),
        *rank_lines(results, folder, "ap"),
        *rank_lines(results, folder, "f1"),
        *(before_lines(results, before) if before else ()),
        "## Against the best single model",
        "",
        "Differences are paired by split, ± one standard error (splits overlap, so it is "
        "too small).",
        "",
        *best_lines(results),
        "## By dataset",
        "",
        *dataset_lines(results, "ap"),
        *dataset_lines(results, "f1"),
        "## Weights",
        "",
        *voter_lines(results),
        "## Other recipes",
        "",
        "What each gives beyond the default, ± one standard error over datasets, and on "
        "how many datasets it is better or worse. Calibrated: with the default's "
        "calibration of voters. Chosen: the C-bound setting that is best on honest votes.",
        "",
        *variant_lines(results, [*COMBINERS, *alike, *CHOSEN, *MAKE_UPS, *grid]),
    ]
    if LIGHTGBM in results.voters:
        words = (
            f"Reliability on the test rows, in {N_BINS} bins of equally many rows (axes in "
            "roots)."
        )
        lines += [
            "## Calibration",
            "",
            "LightGBM's isotonic curves are learned on its out-of-fold votes, by "
            "`damvi.decision` or by scikit-learn (whose zeros cost log loss dearly).",
            "",
            *calibration_lines(results),
            *draw(folder, "reliability", lambda: reliability_figure(results), words),
            "By final curve, means over datasets:",
            "",
            *curve_lines(results),
        ]
    lines += [
        "## All contenders",
        "",
        "With mean ranks among all of them, many of which are much alike.",
        "",
        *main_lines(results, results.contenders),
    ]
    return lines


def write_report(folder: Path, before: Path | None = None) -> None:
    """Write pools.md, scores.csv and the figures from the cells of a folder."""
    cells = read_cells(folder)
    if not cells:
        print(f"no finished cells in {folder}")
        return
    results = Results(cells)
    text = "\n".join(page(results, folder, before)).rstrip() + "\n"
    write_whole(folder / "pools.md", text)
    write_whole(folder / "scores.csv", scores_csv(results))
    print("\n".join(aims(results)))
    print(f"wrote {folder / 'pools.md'}")
