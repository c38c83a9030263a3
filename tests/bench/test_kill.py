"""A run that is killed, whenever it is, resumes to the table of one that is not."""

import os
import random
import signal
import subprocess
import sys
import time

import psutil
import pytest

from damvi.bench.plan import Plan
from damvi.bench.protocol import Protocol
from damvi.bench.runner import run
from damvi.bench.store import read_cells
from damvi.datasets import load

METHODS = ["R-DT", "S-DT", "DAMVI", "BRF"]
SCRIPT = """
import sys
from pathlib import Path
from damvi.bench.protocol import Protocol
from damvi.bench.plan import Plan
from damvi.bench.runner import run
from damvi.datasets import load
if __name__ == "__main__":
    plan = Plan([load(sys.argv[1], target="y")], sys.argv[3].split(","), 3)
    run(plan, Path(sys.argv[2]), Protocol(), n_jobs=2)
"""
KILLS = 20


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("kill") / "table.csv"
    rng = random.Random(0)
    lines = ["a,b,y"]
    for row in range(600):
        y = int(row % 12 == 0)
        lines.append(f"{rng.gauss(y, 1):.4f},{rng.gauss(-y, 1):.4f},{y}")
    path.write_text("\n".join(lines))
    return path


def start(script, table, folder):
    command = [sys.executable, str(script), str(table), str(folder), ",".join(METHODS)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def summary(cells):
    return [(c["method"], c["split"], c["status"], c["f1"], c["ap"]) for c in cells]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_killed_at_random_moments(table, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    plan = Plan([load(table, target="y")], METHODS, 3)
    whole = summary(run(plan, tmp_path / "whole", Protocol()))
    began = time.perf_counter()
    assert start(script, table, tmp_path / "timed").wait(120) == 0
    seconds = time.perf_counter() - began

    rng, kept, orphans = random.Random(1), [], []
    for number in range(KILLS):
        folder = tmp_path / str(number)
        runner = start(script, table, folder)
        time.sleep(rng.uniform(0.2, 1.0) * seconds)
        orphans += psutil.Process(runner.pid).children(recursive=True)
        os.kill(runner.pid, signal.SIGKILL)
        runner.wait()
        kept.append(len(read_cells(folder)))
        assert summary(run(plan, folder, Protocol())) == whole
    # The kills fell where they should: before, between and after cells.
    assert len(set(kept)) > 3
    # Nobody works on for a runner that is gone.
    _, alive = psutil.wait_procs(orphans, timeout=10)
    assert not alive
