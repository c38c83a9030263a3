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
from ..io import Model
from . import words
from .summary import summarise
from .view import view_of


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
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("reports need jinja2; pip install 'damvi[report]'") from error
    here = files(__package__)

    def text_of(*names: str) -> str:
        return "".join(here.joinpath(name).read_text(encoding="utf-8") for name in names)

    environment = Environment(
        loader=FunctionLoader(text_of),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["per100"] = words.per_hundred
    environment.filters["steady"] = words.steady
    environment.filters["range100"] = words.range_of_hundred
    view = view_of(said)
    style = text_of(*view.styles)
    script = f'"use strict";\n(() => {{\n{text_of(*view.scripts)}}})();\n'
    values = view.fill(said)
    return environment.get_template(view.template).render(
        said=said,
        style=style,
        style_hash=digest(style),
        script=script,
        script_hash=digest(script),
        live_json=json_for_script(values["live"]),
        voter_words=words.voter_words(said),
        judged_rows=said["data"]["judged"],
        gaps=_has_gaps(said["voters"]),
        **values,
    )


def _has_gaps(voters: dict[str, Any]) -> bool:
    says = voters["hard"]["says"] if voters["known"] else []
    return any(vote is None for votes in says for vote in votes)


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
