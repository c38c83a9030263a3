"""The summary's figures as rows of text, for the tables on the page."""

from __future__ import annotations

from typing import Any

from .shared import PEER_FIGURES
from .words import SAYS, percent

MAX_COLUMNS = 200
MAX_POINTS = 20
SHARES = {"precision", "recall", "balanced_accuracy", "accuracy"}

Rows = list[list[str]]


def all_rows(said: dict[str, Any]) -> dict[str, Any]:
    """Everything that the template of two classes lays out as a table."""
    made = {
        **shared_rows(said),
        **distribution_rows(
            said, "How many rows have each score. The dashed line is the model's own."
        ),
    }
    if said["labelled"]:
        made |= {
            "score_rows": score_rows(said["scores"], SAYS),
            "calibration_rows": calibration_rows(said),
            **curve_rows(said),
            **_promise(said["certificate"]),
            "peer_rows": peer_rows(said["peers"], PEER_FIGURES),
        }
    return made


def shared_rows(said: dict[str, Any]) -> dict[str, Any]:
    """Those that do not depend on how many classes there are."""
    return {
        "column_rows": _columns(said),
        "importance_rows": [
            [name, f"{value:.4g}"]
            for name, value in zip(
                said["importances"]["names"], said["importances"]["values"], strict=True
            )
        ],
        "weight_rows": _weights(said["voters"]),
        "repeat_rows": _repeat(said),
    }


def _columns(said: dict[str, Any]) -> Rows:
    columns = said["data"]["columns"]
    rows = [
        [
            column["name"],
            "not used" if column["kind"] == "dropped" else column["kind"],
            percent(column["missing"]),
            column["values"],
            column["reason"],
        ]
        for column in columns[:MAX_COLUMNS]
    ]
    if len(columns) > MAX_COLUMNS:
        rows.append([f"{len(columns) - MAX_COLUMNS:,} more", "", "", "", ""])
    return rows


def score_rows(scores: list[dict[str, Any]], says: dict[str, str]) -> Rows:
    """Figures with their intervals, and what each says."""

    def shown(key: str, value: float) -> str:
        if key in SHARES:
            return f"{100 * value:.1f} %"
        # Squared errors and costs a row are tiny where the positives are rare.
        return f"{value:.3f}" if abs(value) >= 0.005 or not value else f"{value:.2g}"

    return [
        [
            score["name"],
            shown(score["key"], score["value"]),
            f"{shown(score['key'], score['low'])} to {shown(score['key'], score['high'])}",
            says[score["key"]],
        ]
        for score in scores
    ]


def calibration_rows(said: dict[str, Any]) -> Rows:
    """What was said of groups of rows, and what came true."""
    return [
        [
            percent(b["said"]),
            percent(b["seen"]),
            f"{percent(b['low'])} to {percent(b['high'])}",
            f"{b['rows']:,}",
            f"{b['positives']:,}",
        ]
        for b in said["calibration"]["bins"]
    ]


def curve_rows(said: dict[str, Any]) -> dict[str, Rows]:
    """Points of both curves."""
    curve = said["curves"]
    if not curve:
        return {"pr_rows": [], "roc_rows": []}
    n = len(curve["recall"])
    steps = sorted({round(k * (n - 1) / MAX_POINTS) for k in range(MAX_POINTS + 1)})
    return {
        "pr_rows": [
            [percent(curve["recall"][k]), percent(curve["precision"][k])] for k in steps
        ],
        "roc_rows": [
            [percent(curve["alarm_rate"][k]), percent(curve["recall"][k])] for k in steps
        ],
    }


def distribution_rows(said: dict[str, Any], words: str) -> dict[str, Any]:
    """How many rows have each score, and in ``words`` what that is."""
    found = said["distribution"]
    groups = [name for name in ("positive", "negative", "all") if name in found]
    called = {"positive": "real", "negative": "not", "all": "rows"}
    edges = found["edges"]
    rows = [
        [
            f"{edges[k]:.2f} to {edges[k + 1]:.2f}",
            *(f"{found[name][k]:,}" for name in groups),
        ]
        for k in range(len(edges) - 1)
        if any(found[name][k] for name in groups)
    ]
    if "positive" in found:
        words += " Orange: real ones; blue: the others."
    return {
        "distribution_words": words,
        "distribution_headings": ["score", *(called[name] for name in groups)],
        "distribution_rows": rows,
    }


def _weights(voters: dict[str, Any]) -> Rows:
    errors = voters.get("errors", {})
    return [
        [each["name"], f"{each['weight']:.4f}", percent(errors.get(each["name"]))]
        for each in voters["weights"]
    ]


def _promise(found: dict[str, Any]) -> dict[str, Rows]:
    if found["why"]:
        return {"promise_rows": [], "bound_rows": []}

    def rate(name: str, key: str) -> list[str]:
        each = found[key]
        return [
            name,
            f"{each['rows']:,}",
            f"{each['errors']:,}",
            percent(each["seen"]),
            percent(each["upper"]),
            "says nothing: vacuous" if each["vacuous"] else "",
        ]

    rows = [
        rate("real ones missed", "missed"),
        rate("others flagged", "false_alarms"),
        rate("all decisions", "overall"),
    ]
    made = found["pac_bayes"]
    named = {"twice_gibbs": "2 x Gibbs risk", "tandem": "tandem", "c_bound": "C-bound"}
    bounds = []
    for key, name in named.items() if made else ():
        bound = made[key]
        by_class = " (vacuous)" if bound["vacuous_by_class"] else ""
        overall = " (vacuous)" if bound["vacuous_overall"] else ""
        bounds.append(
            [
                name,
                percent(bound["missed"]) + by_class,
                percent(bound["false_alarms"]) + by_class,
                percent(bound["overall"]) + overall,
            ]
        )
    return {"promise_rows": rows, "bound_rows": bounds}


def peer_rows(peers: dict[str, Any] | None, shown: tuple[str, ...]) -> Rows:
    """Models beside each other, by the figures to be shown."""
    return [
        [name, *(f"{figures[key]:.3f}" if key in figures else "–" for key in shown)]
        for name, figures in (peers["models"] if peers else {}).items()
    ]


def _repeat(said: dict[str, Any]) -> Rows:
    made = said["repeat"]
    rows = [["data fingerprint", made["fingerprint"]], ["page made", made["made"]]]
    rows += [[name, version] for name, version in made["versions"].items()]
    rows += [[f"model: {name}", _flat(value)] for name, value in made["model"].items()]
    rows = [row for row in rows if row[1]]
    return rows


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_flat(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(_flat, value))
    return str(value)
