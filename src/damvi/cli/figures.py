"""Tables of classes, columns and scores, and the output of ``damvi fit``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._files import write_whole
from ..messages import counted
from .console import Output, no_formula, printable

if TYPE_CHECKING:
    import pandas as pd

    from ..evaluation import Figure, Figures
    from ..io import ModelParts
    from ..model import Comparison, Metric, Prepared
    from ..tables import Schema

OF_CLASS = ("precision", "recall", "f1", "ap")
"""The scores printed for each class."""
HONEST = ("value", "recall", "precision")
"""Scores of a tuned threshold that a model file reports."""
FEW_ROWS = 50
"""A class with fewer rows than this has only rough scores."""
MOST_COLUMNS = 40
"""If there are more columns, those used as they are are only counted."""
MOST_CLASSES = 30
"""If there are more classes, the most frequent and the rarest are listed."""
MOST_IN_FILE = 20
"""Classes that ``damvi info`` lists; the JSON has all."""
MOST_LISTED = 40
MOST_CROSSED = 12
"""If there are more classes, the most frequent mistakes replace the confusion table."""
MOST_MISTAKES = 10
GUARANTEED = "DAMVI, guaranteed"
"""The scores at the threshold of a guarantee; models are compared at other thresholds."""
NARROW = 100
"""On terminals narrower than this, AP is left out to make room for class names."""


def plain_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1
) -> Any:
    """A table whose first ``texts`` columns are left-aligned text, and the rest numbers."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for place, heading in enumerate(headings):
        side: Any = "left" if place < texts else "right"
        table.add_column(printable(heading), justify=side, overflow="fold")
    for row in rows:
        table.add_row(*map(printable, row))
    return table


def figure_table(
    rows: Mapping[str, Mapping[str, Figure | None]],
    names: Sequence[str],
    corner: str = "",
) -> Any:
    """A row per model or class, a column per score with its interval."""
    from ..evaluation import MEASURES

    cells = [
        [label, *(_with_interval(figures.get(name)) for name in names)]
        for label, figures in rows.items()
    ]
    table = plain_table([corner, *(MEASURES[name] for name in names)], cells)
    # On a narrow terminal, model names are not wrapped; class names may be too long.
    for column in table.columns[1:] if corner else table.columns[:1]:
        column.no_wrap = True
    return table


def _with_interval(figure: Figure | None) -> str:
    """Short enough for four such columns and names in 80 characters."""
    if figure is None:
        return ""
    if max(abs(figure.value), abs(figure.high)) < 0.005:  # a cost per row
        return f"{figure.value:.2g} {figure.low:.2g}–{figure.high:.2g}"
    low, high = (f"{end:.2f}".replace("0.", ".", 1) for end in (figure.low, figure.high))
    return f"{figure.value:.3f} {low}–{high}"


def interval_table(figures: Figures) -> Any:
    """All scores of a model, with intervals and the chance level."""
    from ..evaluation import MEASURES

    chances = figures.chances
    rows = [
        [
            MEASURES[name],
            digits(one.value),
            f"{digits(one.low)} to {digits(one.high)}",
            digits(chances[name]) if name in chances else "",
        ]
        for name, one in figures.overall.items()
    ]
    return plain_table(["", "value", "90% interval", "chance"], rows)


def digits(value: float) -> str:
    """Three decimals, or two significant digits for tiny values such as costs per row.

    Examples
    --------
    >>> digits(0.61254), digits(0.000462), digits(0.0)
    ('0.613', '0.00046', '0.000')
    """
    return f"{value:.3f}" if abs(value) >= 0.005 or not value else f"{value:.2g}"


def rounded(value: float | None) -> str:
    """Format a score, which may be unknown."""
    return "unknown" if value is None else f"{value:.3g}"


def class_table(figures: Figures, names: Sequence[str], columns: int) -> Any:
    """Each class against the rest, the rarest first, with 90% intervals."""
    from ..evaluation import MEASURES

    measures = OF_CLASS if columns >= NARROW else OF_CLASS[:3]
    sizes = figures.confusion.sum(axis=1)
    order = sorted(range(len(names)), key=lambda c: (sizes[c], c))
    rows = []
    for c in order[:MOST_LISTED]:
        found = [figures.by_class[c][name] for name in measures]
        cells = [f"{f.value:.2f} ({f.low:.2f}–{f.high:.2f})" if f else "–" for f in found]
        rows.append([names[c], f"{sizes[c]:,}", *cells])
    if len(order) > MOST_LISTED:
        rows.append([f"{len(order) - MOST_LISTED:,} more"])
    table = plain_table(["class", "rows", *(MEASURES[name] for name in measures)], rows)
    for column in table.columns[1:]:
        column.no_wrap = True
    return table


def mistakes(counts: Any, names: Sequence[str]) -> list[list[str]]:
    """The most frequent mistakes."""
    pairs = [
        (-count, true, decided)
        for true, row in enumerate(counts.tolist())
        for decided, count in enumerate(row)
        if true != decided and count
    ]
    return [
        [names[true], names[decided], f"{-count:,}"]
        for count, true, decided in sorted(pairs)[:MOST_MISTAKES]
    ]


def count_table(classes: Sequence[str], counts: Sequence[int], mark: bool = True) -> Any:
    """Class counts and rates, most frequent first; ``mark`` flags the rare ones."""
    total, rows = sum(counts), []
    for place in _places_to_list(counts):
        if place is None:
            rows.append([_more(counts), "", "", ""])
            continue
        n = counts[place]
        rare = "rare" if mark and n * len(counts) < total else ""
        rows.append([classes[place], f"{n:,}", f"{n / total:.2%}", rare])
    table = plain_table(["class", "rows", "rate", ""], rows)
    for column in table.columns[1:]:
        column.no_wrap = True
    table.columns[3].justify = "left"
    return table


def _places_to_list(counts: Sequence[int]) -> list[int | None]:
    """The classes to list, most frequent first; None stands for those in between."""
    order = sorted(range(len(counts)), key=lambda c: -counts[c])
    if len(order) <= MOST_CLASSES:
        return [*order]
    half = MOST_CLASSES // 2
    return [*order[:half], None, *order[-half:]]


def _more(counts: Sequence[int]) -> str:
    return f"({len(counts) - 2 * (MOST_CLASSES // 2):,} more)"


def column_table(schema: Schema) -> Any:
    """How each column is used; if there are many, the plain ones are only counted."""
    columns, rows = list(schema.columns), []
    if len(columns) > MOST_COLUMNS:
        plain = [one for one in columns if one.kind != "dropped" and not one.reason]
        columns = [column for column in columns if column not in plain]
        rows.append([f"{len(plain):,} columns", "number", ""])
    rows += [[one.name, one.kind, one.reason] for one in columns[:MOST_COLUMNS]]
    if len(columns) > MOST_COLUMNS:
        rows.append([f"{len(columns) - MOST_COLUMNS:,} more"])
    return plain_table(["column", "used as", ""], rows, 3)


class OneClass:
    """Output for a positive and a negative class."""

    def show_table(self, output: Output, data: Path, table: Prepared, aside: int) -> None:
        """How many rows of a table are positive."""
        n, target, positives = len(table.y), table.target, table.class_counts[1]
        rows, where = f"{n:,} rows", ""
        if aside:
            rows = f"{n + aside:,} rows, {aside:,} of them set aside for the guarantee"
            where = f" in the other {n:,}"
        others = repr(target.negative) if target.negative else "others"
        output.say(
            f"{data}: {rows}. Target {printable(target.name)}{where}: {positives:,} "
            f"{target.positive!r} (positive, {positives / n:.2%}), {n - positives:,} "
            f"{others}.\n"
        )

    def counts(self, data: Path, names: tuple[str, ...], sizes: Any) -> list[str]:
        """How many rows a model is evaluated on, by class."""
        n, found = int(sizes.sum()), int(sizes[1])
        return [
            f"{data}: {counted(n, 'row')}, {found:,} of them {names[1]!r} "
            f"({found / n:.2%})."
        ]

    def show_confusion(
        self, output: Output, figures: Figures, names: tuple[str, ...]
    ) -> None:
        """The confusion table."""
        (passed, alarms), (missed, found) = figures.confusion.tolist()
        rows = [
            [names[1], f"{found:,} found", f"{missed:,} missed"],
            [names[0], counted(alarms, "false alarm"), f"{passed:,} passed"],
        ]
        output.show(plain_table(["", "flagged", "not flagged"], rows))

    def show_decided(
        self, output: Output, counts: dict[str, int], out: str, carried: str, best: str
    ) -> dict[str, Any]:
        """Say what was predicted and where it is saved; return the counts for JSON.

        ``out`` is the output file, if any; ``carried`` names the input columns in it, and
        ``best`` says which rows it has, if not all.
        """
        say = output.say if out else output.note
        n, (*_, (label, flagged)) = sum(counts.values()), counts.items()
        words = f"{flagged:,} flagged as {label!r} ({flagged / n:.2%})"
        say(f"{counted(n, 'row')} scored, {words}.")
        if out:
            say(f"Saved {out}: {best}{carried}score, probability and decision.")
        return {"flagged": flagged}

    def labels(self, classes: Sequence[Any], positive: Any) -> str:
        """The classes of a model without a table."""
        (other,) = (label for label in classes if label != positive)
        return f"{positive!r} (positive) vs {other!r}"

    def target(self, told: dict[str, Any]) -> tuple[str, str]:
        """The classes of a table's model, and its positives."""
        rate = "" if told["rate"] is None else f" ({told['rate']:.2%})"
        what = f"{told['positive']!r} (positive) vs {told['negative']!r}"
        return what, f", {told['positives']:,} of them positive{rate}"

    def decides(self, summary: dict[str, Any]) -> tuple[str, list[str]]:
        """A heading, and lines on how the model decides."""
        threshold = summary["threshold"]
        promised = summary.get("scores", {}).get("guarantee")
        value, tuning = threshold["value"], threshold["tuning"]
        shown = "none" if value is None else f"{value:.4g}"
        head = f"rows with a vote above {shown} are flagged"
        lines = guarantee_lines(promised) if isinstance(promised, dict) else []
        if lines and promised.get("threshold") == value:
            return "Threshold", [f"{head} (set by a guarantee)", *lines]
        if tuning is None:
            return "Threshold", [f"{head} (not tuned)", *lines]
        honest = {name: rounded(tuning[f"honest_{name}"]) for name in HONEST}
        return "Threshold", [
            f"{head} (tuned for {threshold['tuned_for']})",
            f"{honest['value']} on rows not used for tuning (recall {honest['recall']}, "
            f"precision {honest['precision']})",
            *lines,
        ]


class EachClass:
    """Output for three or more classes, each against the rest."""

    def show_table(self, output: Output, data: Path, table: Prepared, aside: int) -> None:
        target = table.target
        name = printable(target.name)
        output.say(f"{data}: {len(table.y):,} rows. Classes of {name}:\n")
        output.show(count_table(target.classes, table.class_counts))
        output.say()

    def counts(self, data: Path, names: tuple[str, ...], sizes: Any) -> list[str]:
        classes = counted((sizes > 0).sum(), "class", "classes")
        first = f"{data}: {counted(sizes.sum(), 'row')} of {classes}."
        lacking = [repr(printable(names[c])) for c in (sizes == 0).nonzero()[0]]
        if not lacking:
            return [first]
        them = " or ".join(lacking[:5])
        return [first, f"No rows of class {them}: means are over the other classes."]

    def show_confusion(
        self, output: Output, figures: Figures, names: tuple[str, ...]
    ) -> None:
        """Scores of each class against the rest, and the confusion table."""
        output.show(class_table(figures, names, output.columns))
        output.say()
        if len(names) > MOST_CROSSED:
            pairs = mistakes(figures.confusion, names)
            output.show(plain_table(["true", "predicted", "rows"], pairs, 2))
            return
        rows = [
            [name, *(f"{count:,}" for count in row)]
            for name, row in zip(names, figures.confusion.tolist(), strict=True)
        ]
        output.show(plain_table(["true \\ predicted", *names], rows))

    def show_decided(
        self, output: Output, counts: dict[str, int], out: str, carried: str, best: str
    ) -> dict[str, Any]:
        scored = f"{counted(sum(counts.values()), 'row')} scored"
        if not out:
            each = (f"{count:,} {label!r}" for label, count in counts.items())
            output.note(f"{scored}: {', '.join(each)}.")
        else:
            output.say(f"{scored}:\n")
            output.show(count_table(list(counts), list(counts.values()), mark=False))
            output.say(
                f"\nSaved {out}: {carried}decision, and the probability and score of each "
                f"class."
            )
        return {"decisions": counts}

    def labels(self, classes: Sequence[Any], positive: Any) -> str:
        return f"{len(classes)} classes"

    def target(self, told: dict[str, Any]) -> tuple[str, str]:
        return f"{len(told['classes'])} classes", ""

    def decides(self, summary: dict[str, Any]) -> tuple[str, list[str]]:
        """Each class with its rows, vote factor and F1."""
        threshold = summary["threshold"]
        tuning, factors = threshold["tuning"], threshold["value"]
        counts = summary.get("target", {}).get("classes")
        names = [one["label"] for one in counts] if counts else map(str, summary["classes"])
        cells = []
        for place, label in enumerate(names):
            row = [label, counted(counts[place]["rows"], "row")] if counts else [label]
            row.append(f"factor {factors[place]:.3g}")
            if tuning:
                row.append(f"F1 {tuning['honest_f1'][place]:.3g}")
            cells.append(row)
        shown = cells[:MOST_IN_FILE]
        widths = [max(len(cell) for cell in column) for column in zip(*shown, strict=True)]
        lines = [
            "  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip()
            for row in shown
        ]
        if len(cells) > len(shown):
            lines.append(f"and {len(cells) - len(shown)} more")
        lines.append("the class with the largest vote times factor is predicted")
        if not tuning:
            return "Classes", [*lines, "the factors are not tuned"]
        return "Classes", [
            *lines,
            f"tuned for {threshold['tuned_for']}: {tuning['honest_value']:.3g} on rows not "
            f"used for tuning",
        ]


def wording(classes: Sequence[Any]) -> OneClass | EachClass:
    """The wording for these classes: two or more."""
    return OneClass() if len(classes) == 2 else EachClass()


def show_table(output: Output, data: Path, table: Prepared, aside: int = 0) -> None:
    """Print the classes of a table and how each column is used.

    ``aside`` more rows of the file are kept for a guarantee.
    """
    wording(table.class_counts).show_table(output, data, table, aside)
    output.show(column_table(table.schema))
    output.say()
    for warning in table.warnings:
        click.secho(f"Warning: {printable(warning)}", err=True, bold=True)


def show_scores(
    output: Output, model: ModelParts, comparison: Comparison, metric: Metric
) -> None:
    """Out-of-sample scores of the model and of the models it is compared with."""
    from ..evaluation import Figure, alike_words
    from ..model.comparison import BEST

    scores = model.scores
    names = comparison.headlines + (("cost",) if metric.cost else ())
    left_out = scores["rows"] - scores["rows_judged"]
    n, some = f"{scores['rows_judged']:,}", ""
    if left_out and "windows" in model.made:
        some = f" of {scores['rows']:,} (the earliest {left_out:,} are for training only)"
    elif left_out:
        some = f" of {scores['rows']:,} (every tree was trained on the others)"
    over = f"Out-of-sample scores, cross-fitted on {n} rows{some}"
    guaranteed = at_guarantee(scores)
    if guaranteed is None:
        output.say(f"{over}:\n")
    else:
        output.say(f"{over}.\n{guaranteed[0]}\n")
    chances = comparison.chances
    terms = f"AP is average precision (chance: {digits(chances.get('ap', 0))})."
    if "macro_ap" in names:
        terms = (
            f"Macro scores are plain means over\nthe classes. AP is average precision "
            f"(chance: {digits(chances['macro_ap'])}); balanced accuracy is the mean "
            f"recall."
        )
    best = model.made.get("best")
    figures = comparison.figures
    if best is not None:
        figures = {f"{best} (best alone)": figures["DAMVI"]} | figures
        del figures["DAMVI"]
    if guaranteed is not None:
        own = {name: Figure(**one) for name, one in guaranteed[1].items()}
        figures = {GUARANTEED: own} | figures
    output.show(figure_table(figures, names))
    output.say(f"\nRanges are 90% confidence intervals. {terms}")
    if BEST in figures:
        output.say(
            f"The {BEST} is chosen for each fold on the other folds, so its scores include "
            f"the cost of choosing."
        )
    if comparison.alike:
        output.say(printable(alike_words(comparison.alike)))
    for verdict in comparison.verdicts:
        output.say(verdict)
    if comparison.top is not None:
        output.say(f"\n{comparison.top.words}")
    if scores.get("guarantee"):
        show_guarantee(output, scores["guarantee"])
    for place, line in enumerate(scores.get("older", [])):
        output.say(line if place else f"\n{line}")
    if comparison.by_class is not None:
        _show_classes(output, scores["classes"], comparison.by_class)
    elif scores["positives"] < FEW_ROWS:
        output.say(f"Only {scores['positives']} positives: treat these scores as rough.")


def at_guarantee(scores: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """A note on the thresholds of a model with a guarantee, and the scores at its own.

    None if the model has no guarantee, or no scores at its threshold.
    """
    promised, metric = scores.get("guarantee"), str(scores.get("metric"))
    own = promised.get("figures") if isinstance(promised, dict) else None
    if not isinstance(own, dict):
        return None
    tuned_for = "f1" if metric == "ap" else metric
    words = (
        f"{GUARANTEED!r} is at the guarantee's threshold, which the model uses. The other "
        f"rows,\nand the comparisons, are at thresholds tuned for {tuned_for}:"
    )
    return words, own


def show_guarantee(output: Output, promise: dict[str, Any]) -> None:
    """Print the guarantee, its basis and its price."""
    given = promise.get("threshold") is not None  # it may be 0
    output.say("\nGuarantee:" if given else "\nNo guarantee:")
    for line in guarantee_lines(promise):
        output.say(f"  {printable(line)}")


def guarantee_lines(promise: dict[str, Any]) -> list[str]:
    """The same as a list of lines."""
    words, cut = promise.get("words"), promise.get("threshold")
    if not isinstance(words, str):
        return []
    if not isinstance(cut, float):
        return [f"{words[:1].upper()}{words[1:]}.", "The model keeps its threshold."]
    lines = [f"A {words}, by flagging votes above {cut:.4g}."]
    lines += [str(promise.get(name)) for name in ("price", "basis")]
    own = promise.get("figures")
    if isinstance(own, dict) and {"precision", "recall"} <= own.keys():
        estimates = [
            f"{name} {digits(own[name]['value'])} (90% CI: {digits(own[name]['low'])} to "
            f"{digits(own[name]['high'])})"
            for name in ("precision", "recall")
        ]
        lines.append(
            f"Out-of-sample estimates at this threshold (not guaranteed): "
            f"{' and '.join(estimates)}."
        )
    return lines


def _show_classes(
    output: Output, counts: dict[str, int], by_class: Mapping[str, Sequence[Any]]
) -> None:
    """Scores by class, and which classes have few rows."""
    from ..tables import listed

    (ours, figures), *_ = by_class.items()
    output.say(f"\n{ours} by class, each against the rest:\n")
    labels, sizes = list(counts), list(counts.values())
    rows = {
        _more(sizes) if place is None else labels[place]: (
            {} if place is None else figures[place]
        )
        for place in _places_to_list(sizes)
    }
    output.show(figure_table(rows, OF_CLASS, corner="class"))
    few = [label for label, n in counts.items() if n < FEW_ROWS]
    if few:
        which = "Class" if len(few) == 1 else "Classes"
        have = "has" if len(few) == 1 else "have"
        output.say(
            f"\n{which} {printable(listed(few))} {have} fewer than {FEW_ROWS} rows, so "
            f"these scores are rough."
        )


def show_rows(output: Output, rows: pd.DataFrame, most: int, out: Path | None) -> None:
    """Print the first rows of a frame, and write all of them to ``out`` if given."""
    n, head = len(rows), rows.head(most)
    if n:
        output.say()
        output.show(plain_table(list(head.columns), _cells(head), len(head.columns)))
    if n > most:
        where = f"all rows are in {out}" if out else "use -o FILE to save all of them"
        output.say(f"... and {n - most:,} more ({where}).")
    if out is not None:
        write_whole(out, _as_csv(rows))
        output.say(f"\nSaved {counted(n, 'row')} to {out}.")


def _cells(rows: pd.DataFrame) -> list[list[str]]:
    """Rows of a frame as text: floats with three decimals, missing values blank."""

    def text(value: Any) -> str:
        if value is None or value != value:
            return ""
        return f"{value:.3f}" if isinstance(value, float) else str(value)

    return [[text(value) for value in row] for row in rows.itertuples(index=False)]


def _as_csv(rows: pd.DataFrame) -> str:
    """A frame as CSV, with formulas escaped."""
    safe = rows.copy()
    for name in safe.columns:
        if safe[name].dtype.kind not in "biuf":
            safe[name] = safe[name].map(
                lambda value: no_formula(value) if isinstance(value, str) else value
            )
    safe.columns = [no_formula(str(name)) for name in safe.columns]
    return safe.to_csv(index=False, lineterminator="\n")
