"""``damvi export``: a model for other tools."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .console import Output, check_output_file, current_output, load_whole

if TYPE_CHECKING:
    from ..model import Model

ENDINGS = {"onnx": ".onnx", "skops": ".skops", "sklearn": ".sklearn.skops"}


@click.command()
@click.argument("model", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--to",
    "form",
    type=click.Choice(list(ENDINGS)),
    required=True,
    help="onnx: an ONNX graph. skops: the damvi model as a skops file. sklearn: plain "
    "scikit-learn models, also as skops.",
)
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Output file. Default: next to MODEL.",
)
def export(model: Path, form: str, out: Path | None) -> None:
    """Export MODEL to ONNX, skops or scikit-learn.

    The Export page of the guide shows how to run the result, and what is exact.
    """
    output = current_output()
    path = out or model.with_name(model.stem + ENDINGS[form])
    check_output_file(path, model)
    written = write(load_whole(model, output), form, path)
    _show(written, output)
    output.result(written)


def write(model: Model, form: str, path: Path) -> dict[str, Any]:
    """Write the file and return its description."""
    from ..io import export_onnx, to_sklearn, to_skops

    written: dict[str, Any] = {"path": str(path), "to": form}
    if form == "onnx":
        written |= export_onnx(model, path)
    else:
        if form == "sklearn" and model.schema.encoders:
            hashed = list(model.schema.encoders)
            drops = " ".join(shlex.join(["--drop", name]) for name in hashed)
            raise ValueError(
                f"the model hashes free-text and high-cardinality columns, which {form} "
                f"cannot reproduce; to export it, refit with {drops}"
            )
        chosen = model.classifier if form == "skops" else to_sklearn(model.classifier)
        written["trusted"] = to_skops(chosen, path)
    written["bytes"] = path.stat().st_size
    return written


def _show(written: dict[str, Any], output: Output) -> None:
    output.say(f"Wrote {written['path']} ({written['bytes']:,} bytes).")
    if written["to"] == "onnx":
        output.say(f"Inputs: {', '.join(written['inputs'])}")
        output.say(f"Outputs: {', '.join(written['outputs'])}")
        output.say(f"How to turn raw rows into inputs: {written['feeder']}")
        return
    output.say("To load it, trust these types:")
    for name in written["trusted"]:
        output.say(f"  {name}")
