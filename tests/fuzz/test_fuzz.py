"""A slice of ``make fuzz`` with a fixed seed, and what the runner makes of bad cases.

Kernels are as users have them here; ``make fuzz`` compiles them again with bounds checked.
"""

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="the runner takes Linux's /proc"
)


@pytest.mark.slow
def test_a_slice(tmp_path):
    command = [sys.executable, "-m", "tests.fuzz", "--cases", "60", "--seed", "15"]
    command += ["--few", "--unchecked", "--folder", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("60 cases in") == 5


class Bad:
    """Cases that are bad on purpose, each in its own way."""

    name = "bad"
    per_child = 3

    def check(self, case):
        if case == "segfault":
            ctypes.string_at(0)
        if case == "abort":
            os.abort()
        if case == "loop":
            while True:
                time.process_time()
        if case == "memory":
            return "took " + str(len(bytes(range(256)) * (1 << 18)))
        if case == "error":
            raise KeyError("what")
        if case == "exit":
            os._exit(7)
        return "fine"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "what"),
    [
        ("segfault", "crash: SIGSEGV"),
        ("abort", "crash: SIGABRT"),
        ("loop", "hang"),
        ("memory", "MiB for one case"),
        ("error", "KeyError"),
        ("exit", "crash: exit 7"),
    ],
)
def test_the_runner_survives_and_says_what_it_was(case, what):
    """In a process of its own, since that of the tests has threads."""
    code = f"""
from tests.fuzz import runner
from tests.fuzz.test_fuzz import Bad
runner.CPU_SECONDS, runner.MEMORY = 2.0, 32 << 20
class Kind(Bad):
    def make(self, rng):
        return {case!r} if rng.bit_generator.seed_seq.entropy[1] == 4 else "fine"
log = runner.run(Kind(), 0, iter(range(8)), float("inf"), lambda one: None)
assert log.cases == 8 and log.outcomes["fine"] == 7, log
(found,) = log.findings
assert found.number == 4 and {what!r} in found.message, found
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_cases_are_functions_of_their_numbers():
    pytest.importorskip("catboost")
    from .fits import Fits
    from .runner import random_of

    for number in range(5):
        one, other = (str(Fits().make(random_of(3, number))) for _ in range(2))
        assert one == other


def test_mutations_are_repeatable_and_digests_are_put_right(tmp_path):
    from hashlib import sha256

    from damvi import save

    from .bases import BASES
    from .models import Models
    from .runner import random_of

    base = BASES["trees_three"]()
    save(base.model.fit(base.X, base.y), tmp_path / "trees_three.damvi")
    kind = Models(tmp_path)
    outcomes = set()
    for number in range(30):
        case = kind.make(random_of(0, number))
        assert case == kind.make(random_of(0, number))
        _, second, payload = case.content.split(b"\n", 2)
        fits = second == b"sha256 " + sha256(payload).hexdigest().encode()
        assert fits != case.must_be_refused or case.how == ("bytes, digest as it was",)
        outcomes.add(kind.check(case))
    assert {"refused", "predicts"} <= outcomes
