"""The example service with real requests on the loopback: a short run of its load test."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import damvi

from .tables import mixed

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (ROOT / "examples/service").is_dir(), reason="the examples are not here"
    ),
    pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="it takes Linux"),
]


def test_no_good_request_is_lost_among_wrong_huge_and_slow_ones(monkeypatch):
    for name in ("fastapi", "uvicorn", "httpx"):
        pytest.importorskip(name)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    sys.modules.pop("service_load", None)
    from service_load import run

    told = run(seconds=5)
    requests = told["requests"]
    assert not told["lost"], requests
    assert not told["surprises"], requests
    assert requests["good"] > 20
    assert {"no JSON", "a column is missing", "too many rows", "huge"} <= {*requests}
    assert requests["slow"] >= 2
    memory = told["MiB resident"]
    assert max(memory) - memory[4] < 40, memory
    assert any(line.startswith("damvi_reloads ") for line in told["metrics"])
    assert any(line.startswith('damvi_requests{status="200"}') for line in told["metrics"])


def test_the_commands_of_the_container(tmp_path):
    """As far as they can be run without one; the load test runs its CMD."""
    text = (ROOT / "examples/service/Dockerfile").read_text(encoding="utf-8")
    assert text in (ROOT / "docs/service.md").read_text(encoding="utf-8")
    assert "damvi-*.whl fastapi uvicorn" in text
    copied = re.search(r"^COPY (service.py.*) \./$", text, re.MULTILINE)[1].split()
    shutil.copy(ROOT / "examples/service/service.py", tmp_path)
    table = mixed(200)[["size", "shop", "late"]]
    damvi.fit(table, "late", pool="trees", shuffle=True).save(tmp_path / "model.damvi")
    assert {*copied} == {path.name for path in tmp_path.iterdir()}
    command = re.search(r"^RUN python (.*)$", text, re.MULTILINE)[1]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    run = [sys.executable, *shlex.split(command)]
    subprocess.run(run, cwd=tmp_path, env=environment, check=True)
