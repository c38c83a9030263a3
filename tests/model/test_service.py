"""The example service with real requests on the loopback: a short run of its load test."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [
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
