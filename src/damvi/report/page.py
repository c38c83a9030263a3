"""From the summary to one self-contained page: escaped, and allowed to load nothing."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from .._files import write_whole
from ..modelfile import Model
from . import words
from .charts import draw_all
from .summary import summarise
from .tables import all_rows

RATIOS = (
    *(0.1, 0.2, 0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70),
    *(100, 150, 200, 300, 500, 700, 1000, 2000, 5000, 10_000),
)
"""What a miss may cost, in false alarms: the steps of the slider."""


def write_report(
    model: Model,
    frame: Any,
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    name: str = "",
    command: str = "",
) -> dict[str, Any]:
    """Write the page about ``model`` on the rows of ``frame``, whole or not at all.

    Parameters
    ----------
    model : Model
    frame : DataFrame
        See :func:`summarise`.
    path : path
        Of the HTML file.
    target, name, command
        See :func:`summarise`.

    Returns
    -------
    summary : dict
        What the page shows, as plain values.
    """
    said = summarise(model, frame, target, name=name, command=command)
    write_whole(Path(path), render(said))
    return said


def render(said: dict[str, Any]) -> str:
    """The page of a summary."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise ImportError("reports need jinja2; pip install 'damvi[report]'") from error
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["per100"] = words.per_hundred
    environment.filters["steady"] = words.steady
    environment.filters["range100"] = words.range_of_hundred
    here = files(__package__)
    style, script, template = (
        here.joinpath(f"page.{kind}").read_text(encoding="utf-8")
        for kind in ("css", "js", "html.j2")
    )
    values: dict[str, Any] = {"flagged_share": "", "promise_words": "", **all_rows(said)}
    cuts = None
    if said["labelled"]:
        decision = said["decision"]
        flagged = decision["found"] + decision["false_alarms"]
        values["flagged_share"] = words.percent(flagged / said["data"]["judged"])
        if not said["certificate"]["why"]:
            values["promise_words"] = words.promise_words(said)
        cuts = said["cuts"] | _slider(said["cost"])
    charts = dict.fromkeys(("pr", "roc", "calibration", "kappa", "hard"), "")
    return environment.from_string(template).render(
        said=said,
        style=style,
        style_hash=digest(style),
        script=script,
        script_hash=digest(script),
        cuts_json=json_for_script(cuts),
        charts=charts | draw_all(said),
        basis=words.basis(said),
        lead=words.lead(said),
        data_words=words.data_words(said),
        voter_words=words.voter_words(said),
        hard_words=words.hard_words(said),
        judged_rows=said["data"]["judged"],
        gaps=_has_gaps(said["voters"]),
        **values,
    )


def _has_gaps(voters: dict[str, Any]) -> bool:
    says = voters["hard"]["says"] if voters["known"] else []
    return any(vote is None for votes in says for vote in votes)


def _slider(cost: list[float] | None) -> dict[str, Any]:
    """The steps of the cost slider; it starts where the model was fitted for, if known."""
    alarm, miss = cost if cost and cost[0] > 0 else (1.0, 10.0)
    ratio = miss / alarm
    ratios = sorted({*RATIOS, ratio})
    return {"ratios": ratios, "start": ratios.index(ratio), "unit": alarm}


def json_for_script(value: Any) -> str:
    """JSON that cannot end the script element it stands in.

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
    """What a Content-Security-Policy knows an inline style or script by."""
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
