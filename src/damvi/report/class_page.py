"""What the page of three or more classes needs beside the summary."""

from __future__ import annotations

from typing import Any

from . import class_words, words
from .charts import bars, draw_model, draw_scores
from .class_summary import CLASS_PEER_FIGURES
from .tables import (
    calibration_rows,
    curve_rows,
    distribution_rows,
    peer_rows,
    score_rows,
    shared_rows,
)
from .words import percent

MOST_CELLS = 30
"""Classes whose table of decisions is shown whole."""
MOST_BARS = 15
HEATS = (0.02, 0.1, 0.25, 0.5, 0.75)
"""From which share of a class's rows on a cell is darker; the script has the same."""

SCORES = (
    "How many rows have each share of the vote for this class. The class with the largest "
    "share, times its factor, is decided for."
)


def fill_classes(said: dict[str, Any]) -> dict[str, Any]:
    """The values of the template."""
    charts = dict.fromkeys(("kappa", "hard"), "")
    values = {
        **shared_rows(said),
        "order": _order(said),
        "panels": [_panel(view) for view in said["views"]],
        "charts": charts | draw_model(said, "for its true class") | _draw_classes(said),
        "classes_words": _classes_words(said),
        "basis": class_basis(said),
        "lead": class_words.lead(said),
        "data_words": class_words.data_words(said),
        "hard_words": class_words.hard_words(said),
        "errors_words": "Errors count all classes alike.",
        "alone_words": "Strong: the voter alone would have given it its class.",
        "live_id": "weights",
        "live": None,
    }
    if said["labelled"]:
        values |= _judged(said)
    return values


def class_basis(said: dict[str, Any]) -> dict[str, str]:
    """Which rows the page is about."""
    tuned = any(factor != 1 for factor in said["factors"])
    return words.basis(
        said, "what the model decides", "factors of the classes were" if tuned else None
    )


def _judged(said: dict[str, Any]) -> dict[str, Any]:
    certificate = said["certificate"]
    return {
        "live": {
            "weights": said["weights"],
            "confusion": [n for row in said["decision"]["confusion"] for n in row],
        },
        "heats": _heats(said["decision"]["confusion"]),
        "shows_table": len(said["classes"]) <= MOST_CELLS,
        "score_rows": score_rows(said["scores"], class_words.CLASS_SAYS),
        "class_score_rows": _class_scores(said),
        "peer_rows": peer_rows(said["peers"], CLASS_PEER_FIGURES),
        "mixed_rows": [
            [
                one["truth"],
                one["decided"],
                f"{one['rows']:,}",
                percent(one["rows"] / one["of"]),
            ]
            for one in said["mixed_up"]
        ],
        "promise_words": "" if certificate["why"] else class_words.promise_words(said),
        "promise_rows": [] if certificate["why"] else _promise(said),
        "bound_rows": [] if certificate["why"] else _bounds(certificate["pac_bayes"]),
    }


def _order(said: dict[str, Any]) -> list[int]:
    """The classes as the page lists them: the rarest first."""
    sizes = [
        one["named"]["part"] if one["rows"] is None else one["rows"]
        for one in said["classes"]
    ]
    return sorted(range(len(sizes)), key=lambda c: (sizes[c], c))


def _draw_classes(said: dict[str, Any]) -> dict[str, str]:
    shown = [said["classes"][c] for c in _order(said)[::-1]][:MOST_BARS]
    shares = [one["rate"] if said["labelled"] else one["named"]["value"] for one in shown]
    names = [one["name"] for one in shown]
    title = "How frequent the classes are"
    return {"classes": bars("chart-classes", title, names, shares, "share of the rows")}


def _classes_words(said: dict[str, Any]) -> str:
    words = "How frequent each class is"
    words += "." if said["labelled"] else ", as the model decides."
    if len(said["classes"]) > MOST_BARS:
        words += f" The {MOST_BARS} most frequent of {len(said['classes'])} are shown."
    return words


def _panel(view: dict[str, Any]) -> dict[str, Any]:
    """The charts of a class against the rest, with their numbers."""
    of = f"-{view['class']}"
    panel = {
        "class": view["class"],
        "name": view["name"],
        "charts": draw_scores(view, of),
        **distribution_rows(view, SCORES),
    }
    if "curves" in view:
        panel |= {**curve_rows(view), "calibration_rows": calibration_rows(view)}
    return panel


def heat(part: int, whole: int) -> int:
    """How dark a cell is, from 0 to 5.

    Examples
    --------
    >>> heat(0, 10), heat(3, 10), heat(10, 10), heat(0, 0)
    (0, 3, 5, 0)
    """
    return sum(part >= edge * whole for edge in HEATS) if part else 0


def _heats(table: list[list[int]]) -> list[list[int]]:
    return [[heat(count, sum(row)) for count in row] for row in table]


def _class_scores(said: dict[str, Any]) -> list[list[str]]:
    def shown(figure: dict[str, Any] | None) -> str:
        if figure is None:
            return "–"
        return f"{figure['value']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"

    keys = ("precision", "recall", "f1", "ap", "roc_auc")
    return [
        [
            one["name"],
            f"{one['rows']:,}",
            *(
                shown(one[key] if one[key] and one[key]["value"] is not None else None)
                for key in keys
            ),
        ]
        for one in (said["classes"][c] for c in _order(said))
    ]


def _promise(said: dict[str, Any]) -> list[list[str]]:
    found = said["certificate"]

    def line(name: str, each: dict[str, Any]) -> list[str]:
        return [
            name,
            f"{each['rows']:,}",
            f"{each['errors']:,}",
            percent(each["errors"] / each["rows"] if each["rows"] else None),
            percent(each["upper"]),
            "says nothing: vacuous" if each["vacuous"] else "",
        ]

    rows = [line("all decisions", found["overall"])]
    for c in _order(said):
        name = said["classes"][c]["name"]
        rows.append(line(f"{name}: missed", found["missed"][c]))
        rows.append(line(f"others taken for {name}", found["flagged"][c]))
    return rows


def _bounds(made: dict[str, Any] | None) -> list[list[str]]:
    if not made:
        return []
    named = {"twice_gibbs": "2 x Gibbs risk", "tandem": "tandem", "c_bound": "C-bound"}
    return [[name, percent(made[key])] for key, name in named.items()]
