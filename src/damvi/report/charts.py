"""The charts of the page as inline SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby
from math import ceil, floor, log10
from typing import Any

from .words import percent

WIDTH, HEIGHT = 520, 330
LEFT, RIGHT, TOP, BOTTOM = 84, 32, 14, 52
TENTHS = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
MOST_BARS = 15
PROBABILITY = "mean probability"

Point = tuple[float, float]


def plain(value: float) -> str:
    return f"{value:.3g}"


class Drawing:
    """A chart under construction.

    Parameters
    ----------
    x, y : (low, high)
        What the axes span.
    name : str
        Of the chart, for the script (its ``id``).
    title, describes : str
        For those who do not see it: what it is, and what it shows.
    """

    def __init__(
        self,
        name: str,
        title: str,
        describes: str,
        *,
        x: Point,
        y: Point,
        height: int = HEIGHT,
        left: int = LEFT,
    ) -> None:
        self.name: str = name
        self.title: str = title
        self.describes: str = describes
        self.x: Point = x
        self.y: Point = y
        self.height: int = height
        self.left: int = left
        self.parts: list[str] = []

    def at(self, x: float, y: float) -> Point:
        """Where a point of the data is on the paper."""
        (x0, x1), (y0, y1) = self.x, self.y
        across = (x - x0) / ((x1 - x0) or 1)
        up = (y - y0) / ((y1 - y0) or 1)
        return (
            self.left + across * (WIDTH - self.left - RIGHT),
            self.height - BOTTOM - up * (self.height - TOP - BOTTOM),
        )

    def axes(
        self,
        x_label: str,
        y_label: str,
        x_ticks: Sequence[float],
        y_ticks: Sequence[float],
        x_text: Callable[[float], str] = plain,
        y_text: Callable[[float], str] = plain,
    ) -> Drawing:
        """Ticks with a faint grid, and what the axes mean."""
        for tick in x_ticks:
            x, bottom = self.at(tick, self.y[0])
            self._add("line", kind="grid", x1=x, y1=TOP, x2=x, y2=bottom)
            self._text(x, bottom + 17, x_text(tick), "tick", "middle")
        for tick in y_ticks:
            left, y = self.at(self.x[0], tick)
            self._add("line", kind="grid", x1=left, y1=y, x2=WIDTH - RIGHT, y2=y)
            self._text(left - 7, y + 4, y_text(tick), "tick", "end")
        self._text(
            (self.left + WIDTH - RIGHT) / 2, self.height - 8, x_label, "label", "middle"
        )
        place = f"translate(18 {(TOP + self.height - BOTTOM) / 2:.1f}) rotate(-90)"
        self._add("text", y_label, kind="label", text_anchor="middle", transform=place)
        return self

    def line(self, points: Sequence[Point], kind: str) -> Drawing:
        """A line through these points; ``kind`` is its class in the style."""
        places = ("{:.1f},{:.1f}".format(*self.at(*point)) for point in points)
        self._add(
            "polyline", kind=f"line {kind}", points=" ".join(k for k, _ in groupby(places))
        )
        return self

    def bar(
        self, x0: float, x1: float, y0: float, y1: float, kind: str, says: str = ""
    ) -> Drawing:
        """A rectangle, with what it ``says`` to a pointer that rests on it."""
        (left, bottom), (right, top) = self.at(x0, y0), self.at(x1, y1)
        width, height = max(right - left, 0.0), max(bottom - top, 0.0)
        self._add("rect", kind=kind, x=left, y=top, width=width, height=height, says=says)
        return self

    def dot(
        self,
        x: float,
        y: float,
        kind: str,
        radius: float = 4.0,
        name: str = "",
        start: float | None = None,
    ) -> Drawing:
        """A dot, which the script may move by its ``name``; to ``start`` without a y."""
        across, down = self.at(x, y)
        told = "" if start is None else str(start)
        self._add(
            "circle",
            kind=kind,
            id=name,
            cx=across,
            cy=down,
            r=float(radius),
            data_start=told,
        )
        return self

    def words(
        self, x: float, y: float, text: str, kind: str = "tick", anchor: str = "start"
    ) -> Drawing:
        """A text at a point of the data."""
        self._text(*self.at(x, y), text, kind, anchor)
        return self

    def _text(self, x: float, y: float, text: str, kind: str, anchor: str) -> None:
        self._add("text", text, kind=kind, text_anchor=anchor, x=x, y=y)

    def _add(
        self, tag: str, text: str = "", *, kind: str, says: str = "", **attributes: Any
    ) -> None:
        """An element, with everything in it escaped."""
        written = [f'class="{escape(kind)}"']
        for name, value in attributes.items():
            if value != "":
                shown = f"{value:.1f}" if isinstance(value, float) else escape(str(value))
                written.append(f'{name.replace("_", "-")}="{shown}"')
        inside = f"<title>{escape(says)}</title>" if says else escape(text)
        end = f">{inside}</{tag}>" if inside else "/>"
        self.parts.append(f"<{tag} {' '.join(written)}{end}")

    def svg(self) -> str:
        """All of it, with the plot's frame for the script to place its marks by."""
        (x0, y0), (x1, y1) = self.at(self.x[0], self.y[0]), self.at(self.x[1], self.y[1])
        return (
            f'<svg id="{self.name}" viewBox="0 0 {WIDTH} {self.height}" role="img" '
            f'aria-labelledby="{self.name}-t {self.name}-d" '
            f'data-frame="{x0:.1f} {y0:.1f} {x1:.1f} {y1:.1f}">'
            f'<title id="{self.name}-t">{escape(self.title)}</title>'
            f'<desc id="{self.name}-d">{escape(self.describes)}</desc>'
            f"{''.join(self.parts)}</svg>"
        )


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from ``low`` to ``high``, about so many.

    Examples
    --------
    >>> ticks(0, 0.23)
    [0.0, 0.05, 0.1, 0.15, 0.2]
    """
    span = high - low
    if not span > 0:
        return [low]
    rough = span / about
    power = 10.0 ** floor(log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def of_model(summary: dict[str, Any], yes: str) -> dict[str, str]:
    """Charts of importances and voters; ``yes`` describes a vote for a missed row."""
    found, voters = summary["importances"], summary["voters"]
    heaviest = voters["weights"][:20]
    drawn = {
        "importances": bars(
            "importances",
            "Column importance",
            found["names"][:MOST_BARS],
            found["values"][:MOST_BARS],
            "importance",
        ),
        "weights": bars(
            "weights",
            "Voter weights",
            [each["name"] for each in heaviest],
            [each["weight"] for each in heaviest],
            "weight",
        ),
        "kappa": kappa_error(voters) if voters["known"] else "",
        "hard": hard_cases(voters["hard"], yes) if voters["known"] else "",
    }
    return drawn


def effects(found: list[dict[str, Any]], of: int) -> list[str]:
    """Partial dependence: the mean probability of a class by a column's values."""
    drawn = []
    for k, one in enumerate(found):
        place = 0 if len(one["chance"][0]) == 1 else of
        chances = [each[place] for each in one["chance"]]
        name = f"effect-{of}-{k}"
        if one["is_number"]:
            drawn.append(_effect_of_number(name, one["name"], one["values"], chances))
        else:
            drawn.append(
                bars(name, one["name"], one["values"], chances, PROBABILITY, percent)
            )
    return drawn


def _effect_of_number(
    name: str, column: str, values: list[float], chances: list[float]
) -> str:
    top = max(chances) * 1.15 or 1.0
    drawing = Drawing(
        f"chart-{name}",
        column,
        f"The mean probability goes from {percent(chances[0])} at {values[0]:.4g} to "
        f"{percent(chances[-1])} at {values[-1]:.4g}.",
        x=(values[0], values[-1]),
        y=(0, top),
        height=230,
    )
    drawing.axes(
        _shorten(column, 40),
        PROBABILITY,
        ticks(values[0], values[-1], 4),
        ticks(0, top, 4),
        lambda value: f"{value:,.4g}",
        percent,
    )
    points = [*zip(values, chances, strict=True)]
    drawing.line(points, "main")
    for value, chance in points:
        drawing.dot(value, chance, "point", 3.5)
    return drawing.svg()


def of_view(view: dict[str, Any]) -> dict[str, str]:
    """The scores and curves of one class against the rest."""
    drawn = {"distribution": distribution(view), "calibration": "", "pr": "", "roc": ""}
    if "calibration" in view:
        drawn["calibration"] = calibration(view)
    if view.get("curves"):
        drawn |= {"pr": precision_recall(view), "roc": roc(view)}
    return drawn


def precision_recall(view: dict[str, Any]) -> str:
    curve, rate, of = view["curves"], view["rate"], view["class"]
    points = [*zip(curve["recall"], curve["precision"], strict=True)]
    drawing = Drawing(
        f"chart-pr-{of}",
        "Precision and recall",
        f"From left to right, recall rises and precision falls. By chance, precision would "
        f"be {percent(rate)}.",
        x=(0, 1),
        y=(0, 1),
    )
    drawing.axes(
        "recall",
        "precision",
        TENTHS,
        TENTHS,
        percent,
        percent,
    )
    drawing.line([(0, rate), (1, rate)], "chance").line(points, "main")
    # With nothing flagged, the dot is where the curve starts.
    start, recall = points[0][1], view["recall"]["value"] or 0.0
    precision = view["precision"]["value"]
    precision = start if precision is None else precision
    return drawing.dot(recall, precision, "mark", 6, f"mark-pr-{of}", start).svg()


def roc(view: dict[str, Any]) -> str:
    curve, of = view["curves"], view["class"]
    drawing = Drawing(
        f"chart-roc-{of}",
        "ROC curve",
        "From left to right, the false-alarm rate and recall rise.",
        x=(0, 1),
        y=(0, 1),
    )
    drawing.axes(
        "false-alarm rate",
        "recall",
        TENTHS,
        TENTHS,
        percent,
        percent,
    )
    points = [*zip(curve["alarm_rate"], curve["recall"], strict=True)]
    drawing.line([(0, 0), (1, 1)], "chance").line(points, "main")
    recall = view["recall"]["value"] or 0.0
    return drawing.dot(view["alarm_rate"], recall, "mark", 6, f"mark-roc-{of}").svg()


def calibration(view: dict[str, Any]) -> str:
    """On a square-root scale, to give small probabilities room."""
    bins = view["calibration"]
    high = max([b["high"] or 0.0 for b in bins] + [b["said"] for b in bins])
    marks = [t for t in (0.0, 0.01, 0.05, 0.2, 0.4, 0.6, 1.0) if t <= high * 1.15]
    top = high**0.5 * 1.04
    drawing = Drawing(
        f"chart-calibration-{view['class']}",
        "Predicted and observed probability",
        "Each dot is a group of rows: its mean predicted probability (x) and its share of "
        "positives (y), with a 90% interval. On the dashed line both are equal.",
        x=(0, top),
        y=(0, top),
    )
    roots = [mark**0.5 for mark in marks]

    def squared(root: float) -> str:
        return percent(round(root * root, 6))

    drawing.axes("predicted probability", "share positive", roots, roots, squared, squared)
    drawing.line([(0, 0), (top, top)], "chance")
    for b in bins:
        x = b["said"] ** 0.5
        drawing.line([(x, b["low"] ** 0.5), (x, b["high"] ** 0.5)], "whisker")
        drawing.dot(x, b["seen"] ** 0.5, "point", 4.5)
    return drawing.svg()


def distribution(view: dict[str, Any]) -> str:
    """Counts on a log scale, so that small bars are visible next to large ones."""
    found, cut = view["distribution"], view["threshold"]
    edges = found["edges"]
    groups = [name for name in ("negative", "positive", "all") if name in found]
    most = max(max(found[name]) for name in groups)
    top = log10(max(most, 10)) * 1.05 + 0.1
    drawing = Drawing(
        f"chart-distribution-{view['class']}",
        "Scores of the rows",
        "Number of rows by score, on a log scale"
        + (f". Rows above {cut:.3g} are flagged." if cut is not None else "."),
        x=(edges[0], edges[-1]),
        y=(0, top),
    )
    drawing.axes(
        "score (weighted vote)",
        "rows (log scale)",
        ticks(edges[0], edges[-1], 6),
        [decade + 0.1 for decade in range(int(top) + 1)],
        y_text=lambda height: f"{round(10 ** (height - 0.1)):,}",
    )
    width = edges[1] - edges[0]
    for place, name in enumerate(groups):
        for left, count in zip(edges, found[name], strict=False):
            if not count:
                continue
            start = left + (0.08 + 0.44 * place) * width
            stop = start + (0.84 if len(groups) == 1 else 0.42) * width
            drawing.bar(
                start, stop, 0, log10(count) + 0.1, f"bar-{name}", f"{count:,} rows"
            )
    if cut is not None:
        drawing.line([(cut, 0), (cut, top)], "cut")
    return drawing.svg()


def bars(
    name: str,
    title: str,
    names: list[str],
    values: list[float],
    what: str,
    text: Callable[[float], str] = plain,
) -> str:
    """A horizontal bar chart with labels on the bars."""
    top = max([*values, 0.0]) or 1.0
    n = len(names)
    drawing = Drawing(
        f"chart-{name}",
        title,
        f"A bar for each: {_shorten(names[0])} has {text(values[0])}." if n else "",
        x=(0, top * 1.02),
        y=(n, 0),
        height=66 + 28 * n,
        left=6,
    )
    # Labels are drawn on the bars, so that long ones fit.
    drawing.axes(what, "", ticks(0, top, 4)[1:], [], text)
    for place, (label, value) in enumerate(zip(names, values, strict=True)):
        drawing.bar(
            0, value, place + 0.87, place + 0.13, "bar-all", f"{label}: {text(value)}"
        )
        drawing.words(
            top * 0.012, place + 0.7, f"{_shorten(label)}  {text(value)}", "on-bar"
        )
    return drawing.svg()


def _shorten(name: str, most: int = 40) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def kappa_error(voters: dict[str, Any]) -> str:
    pairs = voters["pairs"]
    points = [
        (k, e, w)
        for k, e, w in zip(pairs["kappa"], pairs["error"], pairs["weighted"], strict=True)
        if k is not None and e is not None
    ]
    if not points:
        return ""
    low, high = (
        min(min(k for k, _, _ in points), 0.0),
        max(max(k for k, _, _ in points), 0.2),
    )
    top = max(e for _, e, _ in points) * 1.08 or 0.1
    drawing = Drawing(
        "chart-kappa",
        "Kappa-error diagram",
        "Each dot is a pair of voters. Pairs further left differ more; pairs further down "
        "make fewer errors. In the strong dots, both voters have weight.",
        x=(low, high),
        y=(0, top),
    )
    drawing.axes(
        "agreement (Cohen's kappa)",
        "mean error of the pair",
        ticks(low, high),
        ticks(0, top),
        y_text=percent,
    )
    for kappa, error, weighted in sorted(points, key=lambda point: point[2]):
        drawing.dot(kappa, error, "point" if weighted else "point faint", 3)
    return drawing.svg()


def hard_cases(hard: dict[str, Any], yes: str) -> str:
    """A row for each voter, a column for each missed row."""
    n_rows, n_columns = len(hard["names"]), hard["shown"]
    if not n_rows or not n_columns:
        return ""
    drawing = Drawing(
        "chart-hard",
        "Votes on missed rows",
        "One line per voter, the heaviest at the top, and one column per missed row. "
        f"Strong squares are votes {yes}, faint ones against it. Gaps are rows that the "
        "voter was trained on.",
        x=(0, n_columns),
        y=(n_rows, 0),
        height=66 + 22 * n_rows,
        left=170,
    )
    for place, (name, says) in enumerate(zip(hard["names"], hard["says"], strict=True)):
        drawing.words(-0.3, place + 0.75, _shorten(name, 18), "tick", "end")
        for column, vote in enumerate(says):
            if vote is not None:
                kind = "cell-yes" if vote else "cell-no"
                drawing.bar(column + 0.08, column + 0.92, place + 0.9, place + 0.1, kind)
    drawing.axes("missed rows", "", [], [])
    return drawing.svg()
