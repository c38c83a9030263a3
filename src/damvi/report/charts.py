"""The page's charts, each from its section of the summary."""

from __future__ import annotations

from math import log10
from typing import Any

from .drawing import Drawing, percent, ticks

TENTHS = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


def draw_all(said: dict[str, Any]) -> dict[str, str]:
    """Each chart that there are figures for, by name, as SVG."""
    drawn = draw_model(said) | draw_scores(said)
    return {name: svg for name, svg in drawn.items() if svg}


def draw_model(said: dict[str, Any], yes: str = "that it is real") -> dict[str, str]:
    """What the model looks at, and its voters; ``yes`` is what speaks for a missed row."""
    drawn = {"importances": importances(said), "weights": weights(said["voters"])}
    if said["voters"]["known"]:
        drawn["kappa"] = kappa_error(said["voters"])
        drawn["hard"] = hard_cases(said["voters"]["hard"], yes)
    return drawn


def draw_scores(said: dict[str, Any], of: str = "") -> dict[str, str]:
    """Scores and curves, of the positive class or of one class (``of``) of many."""
    drawn = {"distribution": distribution(said, of)}
    if "calibration" in said:
        drawn["calibration"] = calibration(said, of)
        if said["curves"]:
            drawn["pr"], drawn["roc"] = precision_recall(said, of), roc(said, of)
    return drawn


def precision_recall(said: dict[str, Any], of: str = "") -> str:
    curve, rate = said["curves"], said["data"]["rate"]
    points = [
        (r, p)
        for r, p in zip(curve["recall"], curve["precision"], strict=True)
        if p is not None
    ]
    own = said["decision"]
    drawing = Drawing(
        f"chart-pr{of}",
        "Precision and recall",
        f"From left to right more of the real ones are found, and fewer of the flagged are "
        f"real. Without any skill {percent(rate)} of the flagged would be real.",
        x=(0, 1),
        y=(0, 1),
    )
    drawing.axes(
        "found, of all real ones (recall)",
        "real, of all flagged (precision)",
        TENTHS,
        TENTHS,
        percent,
        percent,
    )
    drawing.line([(0, rate), (1, rate)], "chance").line(_stairs(points), "main")
    precision = own["precision"]["value"] or 0.0
    recall = own["recall"]["value"] or 0.0
    return drawing.dot(recall, precision, "mark", 6, f"mark-pr{of}").svg()


def _stairs(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The best precision at each recall; the rest of the zigzag is left out."""
    kept: list[tuple[float, float]] = []
    for recall, precision in points:
        if kept and kept[-1][0] == recall:
            continue
        kept.append((recall, precision))
    return kept


def roc(said: dict[str, Any], of: str = "") -> str:
    curve, own = said["curves"], said["decision"]
    points = list(zip(curve["alarm_rate"], curve["recall"], strict=True))
    drawing = Drawing(
        f"chart-roc{of}",
        "ROC curve",
        "From left to right more of the others are flagged by mistake, and more of the "
        "real ones are found.",
        x=(0, 1),
        y=(0, 1),
    )
    drawing.axes(
        "flagged by mistake, of all others",
        "found, of all real ones (recall)",
        TENTHS,
        TENTHS,
        percent,
        percent,
    )
    drawing.line([(0, 0), (1, 1)], "chance").line(points, "main")
    others = max(own["false_alarms"] + own["passed"], 1)
    recall = own["recall"]["value"] or 0.0
    return drawing.dot(
        own["false_alarms"] / others, recall, "mark", 6, f"mark-roc{of}"
    ).svg()


def calibration(said: dict[str, Any], of: str = "") -> str:
    """On a scale that gives small probabilities room: the square root."""
    bins = said["calibration"]["bins"]
    high = max([b["high"] or 0.0 for b in bins] + [b["said"] for b in bins])
    marks = [t for t in (0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0) if t <= high * 1.15]
    top = high**0.5 * 1.04
    drawing = Drawing(
        f"chart-calibration{of}",
        "Probability said and share that came true",
        "Each dot is a group of rows: across the mean probability said, up the share that "
        "came true, with a 90 % interval. On the dashed line both are the same.",
        x=(0, top),
        y=(0, top),
    )
    roots = [mark**0.5 for mark in marks]

    def squared(root: float) -> str:
        return percent(round(root * root, 6))

    drawing.axes("probability said", "share that came true", roots, roots, squared, squared)
    drawing.line([(0, 0), (top, top)], "chance")
    for b in bins:
        x = b["said"] ** 0.5
        drawing.line([(x, b["low"] ** 0.5), (x, b["high"] ** 0.5)], "whisker")
        drawing.dot(x, b["seen"] ** 0.5, "point", 4.5)
    return drawing.svg()


def distribution(said: dict[str, Any], of: str = "") -> str:
    """Counts on a logarithmic scale, or the few would not be seen beside the many."""
    found, cut = said["distribution"], said["threshold"]
    edges = found["edges"]
    groups = [name for name in ("negative", "positive", "all") if name in found]
    most = max(max(found[name]) for name in groups)
    top = log10(max(most, 10)) * 1.05 + 0.1
    drawing = Drawing(
        f"chart-distribution{of}",
        "Scores of the rows",
        "How many rows have each score, on a logarithmic scale"
        + (f"; a score above {cut:.3g} flags the row." if cut is not None else "."),
        x=(edges[0], edges[-1]),
        y=(0, top),
    )
    drawing.axes(
        "score: the weighted vote",
        "rows (logarithmic)",
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


def importances(said: dict[str, Any]) -> str:
    found = said["importances"]
    names, values = found["names"][:15], found["values"][:15]
    return bars("chart-importances", "What the model looks at", names, values, "importance")


def weights(voters: dict[str, Any]) -> str:
    listed = voters["weights"][:20]
    names, values = [w["name"] for w in listed], [w["weight"] for w in listed]
    return bars("chart-weights", "The voters' weights", names, values, "weight")


def bars(name: str, title: str, names: list[str], values: list[float], what: str) -> str:
    """A bar for each name, with the name on it."""
    top = max([*values, 0.0]) or 1.0
    n = len(names)
    drawing = Drawing(
        name,
        title,
        f"A bar for each, the largest first: {_shorten(names[0])} has {values[0]:.3g}."
        if n
        else "",
        x=(0, top * 1.02),
        y=(n, 0),
        height=62 + 24 * n,
        left=6,
    )
    # Names stand above the bars' own ground, so that long ones fit.
    drawing.axes(what, "", ticks(0, top, 4), [])
    for place, (label, value) in enumerate(zip(names, values, strict=True)):
        drawing.bar(
            0, value, place + 0.85, place + 0.15, "bar-all", f"{label}: {value:.4g}"
        )
        drawing.words(
            top * 0.012, place + 0.68, f"{_shorten(label)}  {value:.3g}", "on-bar"
        )
    return drawing.svg()


def _shorten(name: str, most: int = 48) -> str:
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
        "Each dot is a pair of voters: to the left pairs that differ more, at the bottom "
        "pairs that err less. Both voters of the strong dots have weight.",
        x=(low, high),
        y=(0, top),
    )
    drawing.axes(
        "agreement beyond chance (kappa)",
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
        "What the voters say of the missed",
        "A line for each voter, the heaviest at the top; a column for each missed row. "
        f"Strong squares are votes {yes}, faint ones that it is not; gaps are rows that "
        "the voter was trained on.",
        x=(0, n_columns),
        y=(n_rows, 0),
        height=62 + 15 * n_rows,
        left=110,
    )
    for place, (name, says) in enumerate(zip(hard["names"], hard["says"], strict=True)):
        drawing.words(-0.3, place + 0.75, _shorten(name, 16), "tick", "end")
        for column, vote in enumerate(says):
            if vote is not None:
                kind = "cell-yes" if vote else "cell-no"
                drawing.bar(column + 0.08, column + 0.92, place + 0.9, place + 0.1, kind)
    drawing.axes("missed rows, one a column", "", [], [])
    return drawing.svg()
