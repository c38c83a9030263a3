"""``damvi demo``: a model and a report from bundled data, in under a minute."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .console import current_output
from .fit import fit_file

if TYPE_CHECKING:
    from ..io import ModelParts

FOLDER = "damvi-demo"


@click.command()
@click.option("--seed", default=0, show_default=True, help="Random seed.")
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Output folder. Default: {FOLDER}.",
)
def demo(seed: int, out: Path | None) -> None:
    """Fit a model on bundled data and write a report.

    The data are 10,000 runs of a milling machine, of which 339 failed (AI4I 2020, CC BY
    4.0). The model is the default of damvi fit. Nothing is downloaded.
    """
    output = current_output()
    folder = _folder(out)
    data, model, page = (folder / n for n in ("runs.csv", "model.damvi", "report.html"))
    target = _write_data(data)
    fitted = fit_file(data, target, model, random_state=seed, output=output)
    reported = _report(fitted, data, page)
    if reported:
        output.say(f"Report: {page} (open it in a browser; it works offline).")
    output.say("\nTry it on your own data:")
    output.say("  damvi fit YOUR_DATA.csv --target COLUMN")
    output.say("Or explore the demo:")
    if not reported:
        output.say(f"  damvi report {model} {data}")
    output.say(f"  damvi evaluate {model} {data}")
    output.say(f"  damvi predict {model} {data}")
    output.say(f"  damvi explain {model} {data} --row 70")
    output.say(f"  damvi fit {data} --target {target} --pool best   # one model, no vote")


def _folder(out: Path | None) -> Path:
    """The demo's folder: in the current one if it is writable, else a temporary one."""
    folder = out or Path(FOLDER)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        if out is not None:
            raise
        return Path(tempfile.mkdtemp(prefix=f"{FOLDER}-"))
    if out is None and not os.access(folder, os.W_OK):
        return Path(tempfile.mkdtemp(prefix=f"{FOLDER}-"))
    return folder


def _write_data(path: Path) -> str:
    """Write the bundled table to a file and return the name of its target."""
    from .._files import whole_file
    from ..datasets import load

    data = load("ai4i2020", as_frame=True)
    with whole_file(path) as file:
        data.frame.to_csv(file, index=False)
    return str(data.target_name)


def _report(model: ModelParts, data: Path, page: Path) -> bool:
    """Write the report if its dependencies are installed."""
    from ..model import Model

    command = f"damvi report {page.with_name('model.damvi')} {data}"
    try:
        Model(**vars(model)).report(data, page, command=command)
    except ImportError:
        return False
    return True
