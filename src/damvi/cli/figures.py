"""Tables for people: classes, columns, figures; and what ``damvi fit`` prints."""

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
"""The figures that are printed of a class."""
HONEST = ("value", "recall", "precision")
"""What a file says of rows that its threshold was not tuned on."""
FEW_ROWS = 50
"""Rows of a class below which its figures are rough."""
MOST_COLUMNS = 40
"""Columns that are listed one by one; of more, those used as they are are counted."""
MOST_CLASSES = 30
"""Classes that ``damvi fit`` lists; of more, the most frequent and the rarest."""
MOST_IN_FILE = 20
"""Classes that ``damvi info`` lists; all are in the JSON."""
MOST_LISTED = 40
MOST_CROSSED = 12
"""Classes whose confusion table is printed; of more, the most frequent mistakes are."""
MOST_MISTAKES = 10
GUARANTEED = "DAMVI, guaranteed"
"""The figures at the threshold of a guarantee, beside those that models are compared by."""
NARROW = 100
"""Columns of a terminal below which AP gives way to the names of the classes."""


def plain_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1
) -> Any:
    """A table whose first columns are names, and all others numbers."""
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
    """Models or classes by row, figures with their intervals by column."""
    from ..evaluation import MEASURES

    cells = [
        [label, *(_with_interval(figures.get(name)) for name in names)]
        for label, figures in rows.items()
    ]
    table = plain_table([corner, *(MEASURES[name] for name in names)], cells)
    # On a narrow terminal the names of models stay whole; those of classes may be long.
    for column in table.columns[1:] if corner else table.columns[:1]:
        column.no_wrap = True
    return table


def _with_interval(figure: Figure | None) -> str:
    """Four such columns, and names, fit into 80 places."""
    if figure is None:
        return ""
    if max(abs(figure.value), abs(figure.high)) < 0.005:  # a cost a row
        return f"{figure.value:.2g} {figure.low:.2g}–{figure.high:.2g}"
    low, high = (f"{end:.2f}".replace("0.", ".", 1) for end in (figure.low, figure.high))
    return f"{figure.value:.3f} {low}–{high}"


def interval_table(figures: Figures) -> Any:
    """All figures of one model, with their intervals, and what chance would give."""
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
    return plain_table(["", "value", "90 % interval", "by chance"], rows)


def digits(value: float) -> str:
    """Three digits, and more where all of them would be 0, as in costs a row.

    Examples
    --------
    >>> digits(0.61254), digits(0.000462), digits(0.0)
    ('0.613', '0.00046', '0.000')
    """
    return f"{value:.3f}" if abs(value) >= 0.005 or not value else f"{value:.2g}"


def rounded(value: float | None) -> str:
    """Three digits, or that there is no such figure."""
    return "unknown" if value is None else f"{value:.3g}"


def class_table(figures: Figures, names: Sequence[str], columns: int) -> Any:
    """Each class against the rest, the rarest first, with 90 % intervals."""
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
    """Classes by row, the most frequent first, with their rates; ``mark`` the rare."""
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
    """The classes to list, the most frequent first; None for those between."""
    order = sorted(range(len(counts)), key=lambda c: -counts[c])
    if len(order) <= MOST_CLASSES:
        return [*order]
    half = MOST_CLASSES // 2
    return [*order[:half], None, *order[-half:]]


def _more(counts: Sequence[int]) -> str:
    return f"({len(counts) - 2 * (MOST_CLASSES // 2):,} more)"


def column_table(schema: Schema) -> Any:
    """What becomes of each column; the plain ones are only counted if there are many."""
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
    """What is said of a positive class and the rest."""

    def show_table(self, output: Output, data: Path, table: Prepared, aside: int) -> None:
        """How many rows of a table are positive."""
        n, target, positives = len(table.y), table.target, table.class_counts[1]
        against = f"against {target.negative!r}" if target.negative else "against the rest"
        rows, own = f"{n:,} rows", f"{positives:,} rows"
        if aside:
            rows = f"{n + aside:,} rows, of which {aside:,} are set aside for the guarantee"
            own = f"{positives:,} of the other {n:,} rows"
        output.say(
            f"{data}: {rows}. Positive is {printable(target.name)} = "
            f"{target.positive!r} {against}: {own}, {positives / n:.2%}.\n"
        )

    def counts(self, data: Path, names: tuple[str, ...], sizes: Any) -> list[str]:
        """How many rows there are of what, of those that a model is evaluated on."""
        n, found = int(sizes.sum()), int(sizes[1])
        return [
            f"{data}: {counted(n, 'row')}, {found:,} of them {names[1]!r} "
            f"({found / n:.2%})."
        ]

    def show_confusion(
        self, output: Output, figures: Figures, names: tuple[str, ...]
    ) -> None:
        """What was flagged, by what is true."""
        (passed, alarms), (missed, found) = figures.confusion.tolist()
        rows = [
            [names[1], f"{found:,} found", f"{missed:,} missed"],
            ["others", counted(alarms, "false alarm"), f"{passed:,} passed"],
        ]
        output.show(plain_table(["", "flagged", "not flagged"], rows))

    def show_decided(
        self, output: Output, counts: dict[str, int], out: str, carried: str, best: str
    ) -> dict[str, Any]:
        """What was predicted, and where it is; the same for machines.

        ``out`` is the file, if there is one, ``carried`` are the columns that go with the
        predictions, and ``best`` is which rows are in it, if not all.
        """
        say = output.say if out else output.note
        n, (*_, (label, flagged)) = sum(counts.values()), counts.items()
        words = f"{flagged:,} flagged as {label!r} ({flagged / n:.2%})"
        say(f"{counted(n, 'row')} judged, {words}.")
        if out:
            say(f"Saved {out}: {best}{carried}score, probability and decision.")
        return {"flagged": flagged}

    def labels(self, classes: Sequence[Any], positive: Any) -> str:
        """What a model without a table tells apart."""
        (other,) = (label for label in classes if label != positive)
        return f"{positive!r} (positive) against {other!r}"

    def target(self, told: dict[str, Any]) -> tuple[str, str]:
        """What a model with a table tells apart, and what is said of its rows."""
        rate = "" if told["rate"] is None else f" ({told['rate']:.2%})"
        what = f"{told['positive']!r} is positive, against {told['negative']!r}"
        return what, f", {told['positives']:,} of them positive{rate}"

    def decides(self, summary: dict[str, Any]) -> tuple[str, list[str]]:
        """A heading and lines on what a model file decides by."""
        threshold = summary["threshold"]
        promised = summary.get("scores", {}).get("guarantee")
        value, tuning = threshold["value"], threshold["tuning"]
        shown = "none" if value is None else f"{value:.4g}"
        head = f"a vote above {shown} is flagged"
        lines = guarantee_lines(promised) if isinstance(promised, dict) else []
        if lines and promised.get("threshold") == value:
            return "Threshold", [f"{head}; by a guarantee", *lines]
        if tuning is None:
            return "Threshold", [f"{head}; not tuned", *lines]
        honest = {name: rounded(tuning[f"honest_{name}"]) for name in HONEST}
        return "Threshold", [
            f"{head}; tuned for {threshold['tuned_for']}",
            f"{honest['value']} on rows not tuned on, with recall {honest['recall']} and "
            f"precision {honest['precision']}",
            *lines,
        ]


class EachClass:
    """What is said of several classes, each against the rest."""

    def show_table(self, output: Output, data: Path, table: Prepared, aside: int) -> None:
        target = table.target
        name = printable(target.name)
        output.say(f"{data}: {len(table.y):,} rows. {name} has these classes:\n")
        output.show(count_table(target.classes, table.class_counts))
        output.say()

    def counts(self, data: Path, names: tuple[str, ...], sizes: Any) -> list[str]:
        classes = counted((sizes > 0).sum(), "class", "classes")
        first = f"{data}: {counted(sizes.sum(), 'row')} of {classes}."
        lacking = [repr(printable(names[c])) for c in (sizes == 0).nonzero()[0]]
        if not lacking:
            return [first]
        them = " or ".join(lacking[:5])
        return [first, f"No row is {them}: the means are over the others."]

    def show_confusion(
        self, output: Output, figures: Figures, names: tuple[str, ...]
    ) -> None:
        """Each class against the rest, and which are taken for which."""
        output.show(class_table(figures, names, output.columns))
        output.say()
        if len(names) > MOST_CROSSED:
            pairs = mistakes(figures.confusion, names)
            output.show(plain_table(["true", "decided", "rows"], pairs, 2))
            return
        rows = [
            [name, *(f"{count:,}" for count in row)]
            for name, row in zip(names, figures.confusion.tolist(), strict=True)
        ]
        output.show(plain_table(["true \\ decided", *names], rows))

    def show_decided(
        self, output: Output, counts: dict[str, int], out: str, carried: str, best: str
    ) -> dict[str, Any]:
        judged = f"{counted(sum(counts.values()), 'row')} judged"
        if not out:
            each = (f"{count:,} {label!r}" for label, count in counts.items())
            output.note(f"{judged}: {', '.join(each)}.")
        else:
            output.say(f"{judged}:\n")
            output.show(count_table(list(counts), list(counts.values()), mark=False))
            told = f"{carried}the decision, and probability and score of each class"
            output.say(f"\nSaved {out}: {told}.")
        return {"decisions": counts}

    def labels(self, classes: Sequence[Any], positive: Any) -> str:
        return f"{len(classes)} classes"

    def target(self, told: dict[str, Any]) -> tuple[str, str]:
        return f"{len(told['classes'])} classes", ""

    def decides(self, summary: dict[str, Any]) -> tuple[str, list[str]]:
        """Each class with its rows, the factor of its votes and its F1."""
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
        lines.append("the largest vote times factor decides")
        if not tuning:
            return "Classes", [*lines, "the factors are not tuned"]
        return "Classes", [
            *lines,
            f"tuned for {threshold['tuned_for']}: {tuning['honest_value']:.3g} on rows not "
            f"tuned on",
        ]


def wording(classes: Sequence[Any]) -> OneClass | EachClass:
    """How to speak of what a model tells apart; there is one of these for each class."""
    return OneClass() if len(classes) == 2 else EachClass()


def show_table(output: Output, data: Path, table: Prepared, aside: int = 0) -> None:
    """The classes of a table, and what becomes of each column.

    ``aside`` more rows of the file are for a guarantee, and train nothing.
    """
    wording(table.class_counts).show_table(output, data, table, aside)
    output.show(column_table(table.schema))
    output.say()
    for warning in table.warnings:
        click.secho(f"Warning: {printable(warning)}", err=True, bold=True)


def show_scores(
    output: Output, model: ModelParts, comparison: Comparison, metric: Metric
) -> None:
    """Scores out of sample, beside those of other models."""
    from ..evaluation import Figure, alike_words, headlines
    from ..model.comparison import BEST

    scores = model.scores
    names = headlines(next(iter(comparison.figures.values())))
    names += ("cost",) if metric.cost else ()
    left_out = scores["rows"] - scores["rows_judged"]
    why = "every tree was trained on left out"
    why = "came first, and only train" if "windows" in model.made else why
    some = f" ({left_out:,} that {why})" if left_out else ""
    over = f"Out of sample, cross-fitted over the {scores['rows']:,} rows{some}"
    guaranteed = at_guarantee(scores)
    if guaranteed is None:
        output.say(f"{over}:\n")
    else:
        output.say(f"{over}.\n{guaranteed[0]}\n")
    chances = comparison.chances
    terms = f"AP is average precision; chance would give {digits(chances.get('ap', 0))}."
    if "macro_ap" in names:
        terms = (
            f"Macro: the mean over the classes, each counted\nalike. AP is average "
            f"precision (by chance {digits(chances['macro_ap'])}), and balanced accuracy "
            f"the mean recall."
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
    output.say(f"\nAfter each figure its 90 % interval. {terms}")
    if BEST in figures:
        output.say(
            f"The {BEST} is chosen anew for each fold, by the other folds, so that the "
            f"choice is judged too."
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
        output.say(
            f"Only {counted(scores['positives'], 'positive')}: all these figures are rough."
        )


def at_guarantee(scores: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Where the figures of a model with a guarantee are from, and those at its threshold.

    None if it decides by no guarantee, or has no figures there.
    """
    promised, metric = scores.get("guarantee"), str(scores.get("metric"))
    own = promised.get("figures") if isinstance(promised, dict) else None
    if not isinstance(own, dict):
        return None
    tuned_for = "f1" if metric == "ap" else metric
    words = (
        f"{GUARANTEED!r} is at the threshold of the guarantee, by which the model decides; "
        f"the others,\nand who is better, are at thresholds tuned for {tuned_for}:"
    )
    return words, own


def show_guarantee(output: Output, promise: dict[str, Any]) -> None:
    """What is promised, what it rests on, and what it costs."""
    given = promise.get("threshold") is not None  # it may be 0
    output.say("\nGuarantee:" if given else "\nNo guarantee:")
    for line in guarantee_lines(promise):
        output.say(f"  {printable(line)}")


def guarantee_lines(promise: dict[str, Any]) -> list[str]:
    """The same, line by line."""
    words, cut = promise.get("words"), promise.get("threshold")
    if not isinstance(words, str):
        return []
    if not isinstance(cut, float):
        return [f"{words[:1].upper()}{words[1:]}."]
    lines = [f"A {words}, by flagging votes above {cut:.4g}."]
    lines += [str(promise.get(name)) for name in ("price", "basis")]
    own = promise.get("figures")
    if isinstance(own, dict) and {"precision", "recall"} <= own.keys():
        told = [
            f"{name} {digits(own[name]['value'])} (90 %: {digits(own[name]['low'])} to "
            f"{digits(own[name]['high'])})"
            for name in ("precision", "recall")
        ]
        lines.append(
            f"At this threshold the training rows have {' and '.join(told)} out of sample: "
            f"estimates, and no promise."
        )
    return lines


def _show_classes(
    output: Output, counts: dict[str, int], by_class: Mapping[str, Sequence[Any]]
) -> None:
    """The figures of each class, and which have few rows."""
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
            f"\n{which} {printable(listed(few))} {have} fewer than {FEW_ROWS} rows: "
            f"figures of so few are rough."
        )


def show_rows(output: Output, rows: pd.DataFrame, most: int, out: Path | None) -> None:
    """The first rows of a frame on the terminal, and all of them in a file, if asked."""
    n, head = len(rows), rows.head(most)
    if n:
        output.say()
        output.show(plain_table(list(head.columns), _cells(head), len(head.columns)))
    if n > most:
        where = f"; all are in {out}" if out else "; -o FILE writes all of them"
        output.say(f"and {n - most:,} more{where}.")
    if out is not None:
        write_whole(out, _as_csv(rows))
        output.say(f"\nSaved {out}: {counted(n, 'row')}.")


def _cells(rows: pd.DataFrame) -> list[list[str]]:
    """Rows of a frame as texts, numbers in three digits and nothing for what is missing."""

    def text(value: Any) -> str:
        if value is None or value != value:
            return ""
        return f"{value:.3f}" if isinstance(value, float) else str(value)

    return [[text(value) for value in row] for row in rows.itertuples(index=False)]


def _as_csv(rows: pd.DataFrame) -> str:
    """A frame as CSV, in which no text is a formula."""
    safe = rows.copy()
    for name in safe.columns:
        if safe[name].dtype.kind not in "biuf":
            safe[name] = safe[name].map(
                lambda value: no_formula(value) if isinstance(value, str) else value
            )
    safe.columns = [no_formula(str(name)) for name in safe.columns]
    return safe.to_csv(index=False, lineterminator="\n")
