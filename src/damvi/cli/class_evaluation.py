"""What ``damvi evaluate`` says of three or more classes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .talking import Talk, shown

if TYPE_CHECKING:
    from ..evaluation import ClassFigures, Figure

MOST_CLASSES = 12
"""Classes whose confusion table is printed; of more, the most frequent mistakes are."""
MOST_LISTED = 40
MOST_MISTAKES = 10
FIGURES = ("precision", "recall", "f1", "ap")
CALIBRATED = "Probabilities were calibrated"
NARROW = 100
"""Columns of a terminal below which AP gives way to the names of the classes."""


def tell_classes(
    talks: Talk, data: Path, loaded: Any, judged: Any, cost: Any
) -> dict[str, Any]:
    """The means over the classes, each class, and which are taken for which."""
    from ..evaluation import measure_classes
    from .figures import figure_rows

    names = list(loaded.target.classes)
    if cost is not None:
        raise ValueError(
            f"costs are for two classes, and the model has {len(names)}; leave them out"
        )
    some = judged.has_vote
    labels, decided = judged.labels[some], judged.decided[some]
    figures = measure_classes(labels, judged.vote[some], decided, judged.probability[some])
    sizes = figures.confusion.sum(axis=1)
    talks.say(f"{data}: {len(labels):,} rows of {(sizes > 0).sum()} classes.")
    talks.say(judged.words)
    factors = loaded.classifier.threshold_
    if judged.of_fit.any():
        known = "The factors of the classes were tuned" if (factors != 1).any() else ""
        if loaded.classifier._calibrator is not None:
            known = f"{known}, and probabilities calibrated," if known else CALIBRATED
        if known:
            talks.say(f"{known} on these rows too: new rows may do a bit worse.")
    lacking = [repr(shown(names[c])) for c in (sizes == 0).nonzero()[0].tolist()]
    if lacking:
        talks.say(f"No row is {' or '.join(lacking[:5])}: the means are over the others.")
    talks.say()
    talks.show(figure_rows(_means(figures)))
    talks.say()
    talks.show(class_table(figures, names, talks.columns))
    talks.say()
    if len(names) <= MOST_CLASSES:
        talks.show(decision_table(figures.confusion, names))
    else:
        talks.show(mistake_table(figures.confusion, names))
    return {
        "classes": [
            {"class": name, "rows": int(size), "named": int(named), **own}
            for name, size, named, own in zip(
                names,
                sizes,
                figures.confusion.sum(axis=0),
                figures.as_dict()["by_class"],
                strict=True,
            )
        ],
        "figures": figures.as_dict()["overall"],
        "confusion": figures.confusion.tolist(),
        "confusion_shares": figures.as_dict()["shares"],
        "factors": factors.tolist(),
    }


def _means(figures: ClassFigures) -> dict[str, Figure]:
    from ..evaluation import CLASS_MEASURES

    return {CLASS_MEASURES[name]: figure for name, figure in figures.overall.items()}


def class_table(figures: ClassFigures, names: list[str], columns: int) -> Any:
    """Each class against the rest, the rarest first, with 90 % intervals."""
    from rich.table import Table

    from ..evaluation import MEASURES

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("class", overflow="fold")
    table.add_column("rows", justify="right", no_wrap=True)
    told = FIGURES if columns >= NARROW else FIGURES[:3]
    for name in told:
        table.add_column(MEASURES[name], justify="right", no_wrap=True)
    sizes = figures.confusion.sum(axis=1)
    order = sorted(range(len(names)), key=lambda c: (sizes[c], c))
    for c in order[:MOST_LISTED]:
        cells = [_with_interval(figures.by_class[c][name]) for name in told]
        table.add_row(shown(names[c]), f"{sizes[c]:,}", *cells)
    if len(order) > MOST_LISTED:
        table.add_row(f"{len(order) - MOST_LISTED:,} more", "")
    return table


def _with_interval(figure: Figure | None) -> str:
    if figure is None:
        return "–"
    return f"{figure.value:.2f} ({figure.low:.2f}–{figure.high:.2f})"


def decision_table(counts: Any, names: list[str]) -> Any:
    """Rows by what is true, columns by what was decided."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("true \\ decided", overflow="fold")
    for name in names:
        table.add_column(shown(name), justify="right", overflow="fold")
    for name, row in zip(names, counts.tolist(), strict=True):
        table.add_row(shown(name), *(f"{count:,}" for count in row))
    return table


def mistake_table(counts: Any, names: list[str]) -> Any:
    """The most frequent mistakes."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("true", "decided"):
        table.add_column(heading, overflow="fold")
    table.add_column("rows", justify="right")
    pairs = [
        (int(count), true, decided)
        for true, row in enumerate(counts.tolist())
        for decided, count in enumerate(row)
        if true != decided and count
    ]
    for count, true, decided in sorted(pairs, key=lambda p: (-p[0], p[1:]))[:MOST_MISTAKES]:
        table.add_row(shown(names[true]), shown(names[decided]), f"{count:,}")
    return table
