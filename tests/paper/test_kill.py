"""A run that is killed, whenever it is, resumes to the table of one that is not."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
from sklearn.utils import Bunch

from benchmarks.paper.protocol import Protocol
from benchmarks.paper.runner import Plan, run
from benchmarks.paper.store import read_cells

from .test_runner import env

pytestmark = pytest.mark.slow

METHODS = ["R-DT", "S-DT", "DAMVI", "BRF"]
SCRIPT = """
import sys
from pathlib import Path
from benchmarks.paper.protocol import Protocol
from benchmarks.paper.runner import Plan, run
from tests.paper.test_kill import table
if __name__ == "__main__":
    plan = Plan([table()], sys.argv[2].split(","), 3)
    run(plan, Path(sys.argv[1]), Protocol(), n_jobs=2)
"""
KILLS = 8


def table():
    rng = np.random.default_rng(0)
    y = (np.arange(600) % 12 == 0).astype(np.int8)
    X = rng.normal(size=(600, 2)) + np.outer(y, [1, -1])
    return Bunch(data=X, target=y, name="toy", groups=None)


def start(script, folder):
    command = [sys.executable, str(script), str(folder), ",".join(METHODS)]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, env=env(), **silent)


def summary(cells):
    return [(c["method"], c["split"], c["status"], c["f1"], c["ap"]) for c in cells]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_killed_at_random_moments(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    plan = Plan([table()], METHODS, 3)
    whole = summary(run(plan, tmp_path / "whole", Protocol()))
    began = time.perf_counter()
    assert start(script, tmp_path / "timed").wait(120) == 0
    seconds = time.perf_counter() - began

    rng, kept, orphans = random.Random(1), [], []
    for number in range(KILLS):
        folder = tmp_path / str(number)
        runner = start(script, folder)
        time.sleep(rng.uniform(0.2, 1.0) * seconds)
        orphans += psutil.Process(runner.pid).children(recursive=True)
        os.kill(runner.pid, signal.SIGKILL)
        runner.wait()
        kept.append(len(read_cells(folder)))
        assert summary(run(plan, folder, Protocol())) == whole
    # The kills fell where they should: before, between and after cells.
    assert len(set(kept)) > 2
    # Nobody works on for a runner that is gone.
    _, alive = psutil.wait_procs(orphans, timeout=90)
    assert not alive
