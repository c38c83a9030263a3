"""The examples: each a lesson with a title and a picture, and the quick ones run."""

import os
import subprocess
import sys

import pytest

from .pages import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
QUICK = ("many_classes", "unlabelled_rows")
"""Those that run here. All do by ``make docs``, and with DAMVI_EXAMPLES=all."""

pytestmark = pytest.mark.skipif(not EXAMPLES, reason="examples are not in the package")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_lesson(path):
    text = path.read_text(encoding="utf-8")
    title, line = text.split("\n")[1:3]
    assert text.startswith('"""\n')
    assert line == "=" * len(title)
    assert text.count("# %%") >= 3
    assert "plt." in text, "a lesson has a picture"


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_quick_example_runs(path, tmp_path):
    named = path.stem.split("_", 2)[2]
    if named not in QUICK and os.environ.get("DAMVI_EXAMPLES") != "all":
        pytest.skip("it takes longer; make docs runs it, and DAMVI_EXAMPLES=all here")
    environment = os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-W", "error::DeprecationWarning:damvi", str(path)]
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
