"""A full disk, Ctrl-C and SIGKILL leave the old output or the new one, never a half."""

import os
import resource
import signal
import subprocess
import sys
import time

import pytest

OLD = b"the old one"

# Stops in the middle of the work, at a known place, and says that it is there.
PREDICT = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
from damvi.cli import run
from damvi.model.prediction import Judge
def slowly(self, *rest, blocks=Judge.blocks):
    for block in blocks(self, *rest):
        yield block
        print("half", flush=True)
        time.sleep(60)
Judge.blocks = slowly
run()
"""
FIT = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from damvi import io
from damvi.cli import run
import damvi._files, os
replace = os.replace
def slowly(*names):
    if str(names[1]).endswith("m.damvi"):
        print("half", flush=True)
        time.sleep(60)
    replace(*names)
os.replace = slowly
run()
"""


def limit_files():
    """A disk that is full after 2 kB, as far as this process can tell."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))


@pytest.fixture
def commands(made, folder):
    fit = ["fit", made / "data.csv", "--target", "is_fraud", "--pool", "trees"]
    return {
        "fit": (FIT, [*fit, "-o", folder / "m.damvi"], folder / "m.damvi"),
        "predict": (
            PREDICT,
            ["predict", made / "model.damvi", made / "data.csv", "-o", folder / "p.csv"],
            folder / "p.csv",
        ),
    }


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize(
    ("what", "there"), [("fit", True), ("predict", True), ("predict", False)]
)
def test_a_command_that_is_broken_off(commands, what, how, there):
    code, words, out = commands[what]
    if there:
        out.write_bytes(OLD)
    command = [sys.executable, "-c", code, *map(str, words), "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout.readline() == b"half\n", run.stderr.read()
        time.sleep(0.1)
        os.kill(run.pid, how)
        _, said = run.communicate(timeout=30)
    assert run.returncode == (-how if how == signal.SIGKILL else 128 + how)
    assert b"Traceback" not in said
    assert (out.read_bytes() == OLD) if there else not out.exists()
    assert len(list(out.parent.glob(".*.part"))) == (how == signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["fit", "predict"])
def test_a_disk_that_is_full(commands, what):
    _, words, out = commands[what]
    out.write_bytes(OLD)
    run = subprocess.run(
        [sys.executable, "-m", "damvi", *map(str, words)],
        capture_output=True,
        text=True,
        preexec_fn=limit_files,
    )
    assert run.returncode == 1
    assert "File too large" in run.stderr
    assert "Traceback" not in run.stderr
    assert out.read_bytes() == OLD
    assert not list(out.parent.glob(".*.part"))


def test_the_new_output_replaces_the_old_one(damvi, commands):
    _, words, out = commands["predict"]
    out.write_bytes(OLD)
    damvi(*words)
    assert out.read_bytes().startswith(b"score,probability,decision\n")
