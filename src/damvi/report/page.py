"""Render the summary as a self-contained, escaped HTML page that loads nothing."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files import write_whole
from ..evaluation import MEASURES
from . import charts, words
from .summary import summarise
from .words import percent

if TYPE_CHECKING:
    from ..io import ModelParts

RATIOS = (
    *(0.1, 0.2, 0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70),
    *(100, 150, 200, 300, 500, 700, 1000, 2000, 5000, 10_000),
)
"""Costs of a miss, in false alarms: the steps of the slider."""
HEATS = (0.02, 0.1, 0.25, 0.5, 0.75)
"""Shares of a class's rows at which a cell gets darker; page.js has the same."""
MOST_CELLS = 30
"""With more classes, the confusion table is left out."""
MOST_COLUMNS = 200
MOST_POINTS = 20
SHARES = {"precision", "recall", "balanced_accuracy", "accuracy"}
SCORE = (("score", "Score"), ("probability", "Probability"))
DECIDED = (
    ("decided", "Predicted"),
    ("score", "Score"),
    ("probability", "Probability"),
)
BUDGET = ("hits", "precision", "recall")
FOUND = ("flagged", "named")
"""Tables of rows found; the others list errors."""
ROW_TABLES = {
    "missed": (
        "Missed positives",
        "Missed positives, lowest score first",
        SCORE,
    ),
    "false_alarms": (
        "False alarms",
        "False alarms, highest score first",
        SCORE,
    ),
    "mistakes": (
        "The worst errors",
        "Wrong predictions: missed rows of rare classes first, then the most confident",
        (("truth", "Label"), *DECIDED, ("score_of_truth", "Score of the label")),
    ),
    "flagged": (
        "",
        "Flagged rows, furthest above their threshold first",
        (("truth", "Label"), *SCORE),
    ),
    "named": (
        "",
        "Rows not predicted as the most frequent class, highest score first",
        (("truth", "Label"), *DECIDED),
    ),
}
"""Heading, caption and columns of each table of rows."""
BOUNDS = {"twice_gibbs": "2 x Gibbs risk", "tandem": "tandem", "c_bound": "C-bound"}

Rows = list[list[str]]


def write_report(
    model: ModelParts,
    frame: Any,
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    name: str = "",
    command: str = "",
) -> dict[str, Any]:
    """Write the report on ``model`` and the rows of ``frame``.

    Parameters
    ----------
    model : ModelParts
    frame : DataFrame
        See :func:`summarise`.
    path : path
        The HTML file.
    target, name, command
        See :func:`summarise`.

    Returns
    -------
    summary : dict
        The contents of the page, as plain values.
    """
    summary = summarise(model, frame, target, name=name, command=command)
    write_whole(Path(path), render(summary))
    # The rows to download are in the user's table already.
    return {key: value for key, value in summary.items() if key != "download"}


def render(summary: dict[str, Any]) -> str:
    """The HTML page of a summary."""
    script = files(__package__).joinpath("page.js").read_text(encoding="utf-8")
    filters = {
        "per100": words.per_hundred,
        "range100": words.range_of_hundred,
        "small": small,
    }
    return fill(
        "page.html.j2",
        filters,
        summary=summary,
        script=script,
        script_hash=digest(script),
        live_json=json_for_script(_live(summary)),
        **_values(summary),
        **_tables(summary),
    )


def fill(template: str, filters: dict[str, Any], **values: Any) -> str:
    """Render a template of this folder, with the common style and autoescaping."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise ImportError("reports need jinja2: pip install 'damvi[report]'") from error
    text, style = (
        files(__package__).joinpath(file).read_text(encoding="utf-8")
        for file in (template, "page.css")
    )
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= filters
    page = environment.from_string(text)
    return page.render(style=style, style_hash=digest(style), **values)


def _values(summary: dict[str, Any]) -> dict[str, Any]:
    """What the template needs besides the summary and the tables."""
    voters, labelled, say = summary["voters"], summary["labelled"], words.wording(summary)
    order = _order(summary)
    drawn = charts.of_model(summary, say.speaks)
    frequent = [summary["classes"][c] for c in order[::-1]][: charts.MOST_BARS]
    drawn["classes"] = charts.bars(
        "classes",
        "Class frequencies",
        [one["name"] for one in frequent],
        [one["rate"] if labelled else one["named"]["value"] for one in frequent],
        "share of rows",
    )
    says = voters["hard"]["says"] if voters["known"] else []
    promised = labelled and not summary["certificate"]["why"]
    return {
        "say": say,
        "order": order,
        "judged_rows": summary["data"]["judged"],
        "charts": drawn,
        "views": [
            {
                "charts": charts.of_view(view),
                "effects": [
                    (svg, words.effect_words(effect, view["class"]))
                    for svg, effect in zip(
                        charts.effects(summary["effects"], view["class"]),
                        summary["effects"],
                        strict=True,
                    )
                ],
                **view,
                **_view_tables(view, say.distribution),
            }
            for view in summary["views"]
        ],
        "row_tables": [
            (name, *_row_table(name, rows))
            for name, rows in summary["rows"].items()
            if name not in FOUND
        ],
        "found": next(
            (name, *_row_table(name, rows))
            for name, rows in summary["rows"].items()
            if name in FOUND
        ),
        "most_bars": charts.MOST_BARS,
        "shows_table": len(order) <= MOST_CELLS,
        "heat": heat,
        "gaps": any(vote is None for votes in says for vote in votes),
        "basis": words.basis(summary),
        "alike": f" {summary['data']['alike']}".rstrip(),
        "lead": words.lead(summary) if not labelled else "",
        "as_it_decides": words.AS_IT_DECIDES,
        "data_words": words.data_words(summary),
        "voter_words": words.voter_words(summary),
        "hard_words": words.hard_words(summary),
        "promise_words": words.promise_words(summary) if promised else "",
    }


def _row_table(name: str, found: dict[str, Any]) -> tuple[Any, ...]:
    """Heading, caption, the available columns, and the rows."""
    heading, caption, columns = ROW_TABLES[name]
    known = found["rows"][0] if found["rows"] else {}
    return heading, caption, [one for one in columns if one[0] in known], found


def _live(summary: dict[str, Any]) -> dict[str, Any]:
    """Data for the script: thresholds or class weights to move, and rows to download."""
    live: dict[str, Any] = {"download": summary["download"]}
    if not summary["labelled"]:
        return live
    table = [n for row in summary["decision"]["confusion"] for n in row]
    cuts = next((view["cuts"] for view in summary["views"]), None)
    if cuts:
        # The slider starts at the costs the model was fitted for, if known.
        cost = summary["cost"]
        alarm, miss = cost if cost and cost[0] > 0 else (1.0, 10.0)
        ratios = sorted({*RATIOS, miss / alarm})
        cuts |= {"ratios": ratios, "start": ratios.index(miss / alarm), "unit": alarm}
    return {
        **live,
        "confusion": table,
        "effects": summary["decision"]["effects"],
        "weights": summary["weights"],
        "budget": summary["budget"],
        "cuts": cuts,
    }


def _order(summary: dict[str, Any]) -> list[int]:
    """The classes in the order of the page: rare ones first, then by size."""
    return sorted(
        range(len(summary["classes"])),
        key=lambda c: (not summary["classes"][c]["rare"], _size(summary["classes"][c]), c),
    )


def _size(one: dict[str, Any]) -> int:
    """The rows of a class or, without labels, those predicted as it."""
    rows: int = one["named"]["part"] if one["rows"] is None else one["rows"]
    return rows


def heat(part: int, whole: int) -> int:
    """How dark a cell is, from 0 to 5.

    Examples
    --------
    >>> heat(0, 10), heat(3, 10), heat(10, 10), heat(0, 0)
    (0, 3, 5, 0)
    """
    return sum(part >= edge * whole for edge in HEATS) if part else 0


def small(value: float | None) -> str:
    """Three decimals, or one significant digit for tiny values.

    Examples
    --------
    >>> small(0.61254), small(-0.2), small(0.00002), small(None)
    ('0.613', '-0.200', '2e-05', '')
    """
    if value is None:
        return ""
    return f"{value:.3f}" if abs(value) >= 0.0005 or not value else f"{value:.1g}"


def json_for_script(value: Any) -> str:
    """JSON that cannot close the script element around it.

    Examples
    --------
    >>> json_for_script({"a": "</script>"})
    '{"a":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def digest(text: str) -> str:
    """The Content-Security-Policy hash of an inline style or script."""
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _tables(summary: dict[str, Any]) -> dict[str, Any]:
    """Headings and rows of the tables, as text."""
    found = summary["importances"]
    errors = summary["voters"].get("errors", {})
    made = summary["repeat"]
    repeat = {"data fingerprint": made["fingerprint"], "page made": made["made"]}
    repeat |= made["versions"]
    repeat |= {
        f"model: {name}": _flat(value, ",.1f" if name == "seconds" else "")
        for name, value in made["model"].items()
    }
    tables: dict[str, Any] = {
        "column_rows": _columns(summary["data"]["columns"]),
        "importance_rows": [
            [name, f"{value:.4g}"]
            for name, value in zip(found["names"], found["values"], strict=True)
        ],
        "weight_rows": [
            [each["name"], f"{each['weight']:.4f}", percent(errors.get(each["name"]))]
            for each in summary["voters"]["weights"]
        ],
        "repeat_rows": [[name, value] for name, value in repeat.items() if value],
    }
    if not summary["labelled"]:
        return tables
    say = words.wording(summary)
    peers = (summary["peers"] or {}).get("models", {})
    compared = [key for key in MEASURES if any(key in own for own in peers.values())]
    return tables | {
        "score_rows": [
            [
                score["name"],
                _shown(score["key"], score["value"]),
                f"{_shown(score['key'], score['low'])} to "
                f"{_shown(score['key'], score['high'])}",
                "" if score["chance"] is None else _shown(score["key"], score["chance"]),
                words.MEANINGS[score["key"]],
            ]
            for score in summary["scores"]
        ],
        "segment_tables": [
            (
                one["name"],
                say.segment_headings,
                [say.segment(group) for group in one["groups"]],
            )
            for one in summary["segments"]
        ],
        "budget_rows": [
            [f"{one['rows']:,}", *(_between(one[name]) for name in BUDGET)]
            for one in summary["budget"][:: max(1, len(summary["budget"]) // MOST_POINTS)]
        ],
        "class_score_rows": [_class_scores(summary["classes"][c]) for c in _order(summary)],
        "peer_headings": ["model", *(MEASURES[key] for key in compared)],
        "peer_rows": [
            [name, *(f"{own[key]:.3f}" if key in own else "–" for key in compared)]
            for name, own in peers.items()
        ],
        "mixed_rows": [
            [
                one["truth"],
                one["decided"],
                f"{one['rows']:,}",
                percent(one["rows"] / one["of"]),
            ]
            for one in summary["mixed_up"]
        ],
        **_promise(summary),
    }


def _columns(columns: list[dict[str, Any]]) -> Rows:
    rows = [
        [
            column["name"],
            "dropped" if column["kind"] == "dropped" else column["kind"],
            percent(column["missing"]),
            column["values"],
            column["reason"],
        ]
        for column in columns[:MOST_COLUMNS]
    ]
    more = len(columns) - MOST_COLUMNS
    return [*rows, [f"{more:,} more", "", "", "", ""]] if more > 0 else rows


def _shown(key: str, value: float) -> str:
    if key in SHARES:
        return f"{100 * value:.1f}%"
    # Squared errors and costs per row are tiny if positives are rare.
    return f"{value:.3f}" if abs(value) >= 0.005 or not value else f"{value:.2g}"


def _between(figure: list[float]) -> str:
    """A score and its interval."""
    value, low, high = (f"{one:,.3g}" for one in figure)
    return f"{value} ({low} to {high})"


def _class_scores(one: dict[str, Any]) -> list[str]:
    cells = [one["name"], f"{one['rows']:,}"]
    for figure in (one[key] for key in ("precision", "recall", "f1", "ap", "roc_auc")):
        known = figure is not None and figure["value"] is not None
        interval = "{value:.3f} ({low:.3f} to {high:.3f})"
        cells.append(interval.format(**figure) if known else "–")
    return cells


def _view_tables(view: dict[str, Any], caption: str) -> dict[str, Any]:
    """The numbers of the charts of one class."""
    found = view["distribution"]
    groups = [name for name in ("positive", "negative", "all") if name in found]
    called = {"positive": "positive", "negative": "negative", "all": "rows"}
    edges, curve = found["edges"], view.get("curves")
    if "positive" in found:
        caption += " Orange: positives; blue: negatives."
    last = len(curve["recall"]) - 1 if curve else -1
    steps = sorted({round(k * last / MOST_POINTS) for k in range(MOST_POINTS + 1)})
    points = {
        key: [percent(curve[key][k]) if curve else "" for k in steps]
        for key in ("recall", "precision", "alarm_rate")
    }
    return {
        "distribution_words": caption,
        "distribution_headings": ["score", *(called[name] for name in groups)],
        "distribution_rows": [
            [
                f"{edges[k]:.2f} to {edges[k + 1]:.2f}",
                *(f"{found[name][k]:,}" for name in groups),
            ]
            for k in range(len(edges) - 1)
            if any(found[name][k] for name in groups)
        ],
        "pr_rows": list(zip(points["recall"], points["precision"], strict=True)),
        "roc_rows": list(zip(points["alarm_rate"], points["recall"], strict=True)),
        "calibration_rows": [
            [
                percent(b["said"]),
                percent(b["seen"]),
                f"{percent(b['low'])} to {percent(b['high'])}",
                f"{b['rows']:,}",
                f"{b['positives']:,}",
            ]
            for b in view.get("calibration", ())
        ],
    }


def _promise(summary: dict[str, Any]) -> dict[str, Any]:
    """The certificate's rates by class, and its bounds."""
    found, say = summary["certificate"], words.wording(summary)
    if found["why"]:
        return {"promise_rows": [], "bound_headings": [], "bound_rows": []}
    made = found["pac_bayes"] or {}
    bounds = [[name, *say.bound(made[key])] for key, name in BOUNDS.items() if made]
    rows = [
        [
            name,
            f"{rate['rows']:,}",
            f"{rate['errors']:,}",
            percent(rate["errors"] / rate["rows"] if rate["rows"] else None),
            percent(rate["upper"]),
            "vacuous" if rate["vacuous"] else "",
        ]
        for name, rate in say.rates(summary, _order(summary)).items()
    ]
    headings = say.bound_headings
    return {"promise_rows": rows, "bound_headings": headings, "bound_rows": bounds}


def _flat(value: Any, form: str = "") -> str:
    """A value as one line of text, with the floats in it in this form."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_flat(inner, form)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(_flat(inner, form) for inner in value)
    return format(value, form) if isinstance(value, float) else str(value)
