"""Ctrl-C and SIGTERM end a command cleanly, whatever its threads are at."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from .conftest import fraud

STRONG = ("fit", "data.csv", "--target", "is_fraud")


@pytest.fixture
def data(folder):
    fraud(30_000).to_csv("data.csv", index=False)  # ten seconds or more to train on
    return folder


def start(words, **options):
    return subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # Ignored in the background, and so would it be by what is started there.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **options,
    )


def check_nothing_is_left(run, folder, there=("data.csv",)):
    with pytest.raises(ProcessLookupError):
        os.killpg(run.pid, 0)
    assert sorted(os.listdir(folder)) == sorted(there)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "words", "seed"),
    [
        (signal.SIGINT, (), 0),
        (signal.SIGINT, ("--jobs", "2"), 1),
        (signal.SIGINT, ("--jobs", "1"), 2),
        (signal.SIGTERM, ("--jobs", "2"), 3),
    ],
)
def test_a_fit_of_the_strong_pool_that_is_stopped(data, how, words, seed):
    with start([sys.executable, "-m", "damvi", *STRONG, *words]) as run:
        run.stdout.readline()  # what is in the table; now models are trained
        time.sleep(random.Random(seed).uniform(0.5, 4))
        run.send_signal(how)
        _, said = run.communicate(timeout=60)
    word = "Interrupted" if how == signal.SIGINT else "Terminated"
    assert said.decode().splitlines()[-1] == f"{word}. No partial files were left behind."
    assert b"Traceback" not in said
    assert run.returncode == 128 + how
    check_nothing_is_left(run, data)


HOLDS_ON = """
import sys, time
from damvi import cli
cli.GRACE = float(sys.argv.pop(1))
def never():
    from damvi._files import whole_file
    with whole_file("out"):
        while True:
            try:
                print("here", flush=True)
                time.sleep(60)
            except BaseException:
                pass
cli.main.commands["info"].callback = lambda **_: never()
cli.run()
"""


@pytest.mark.parametrize(("grace", "signals"), [("0.2", 1), ("60", 2)])
def test_a_command_that_does_not_let_go(folder, grace, signals):
    command = [sys.executable, "-c", HOLDS_ON, grace, "info", "some"]
    with start(command) as run:
        for _ in range(signals):
            assert run.stdout.readline() == b"here\n", run.stderr.read()
            run.send_signal(signal.SIGTERM)
        run.communicate(timeout=30)
    assert run.returncode == 143
    check_nothing_is_left(run, folder, ())


def test_signals_that_were_ignored_stay_so(folder):
    code = """
import os, signal
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from damvi import cli
def work(**_):
    os.kill(os.getpid(), signal.SIGHUP)
    print("went on")
cli.main.commands["info"].callback = work
cli.run()
"""
    command = [sys.executable, "-c", code, "info", "some"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "went on\n"), run.stderr


IN_PYTHON = """
import os
from sklearn.datasets import make_classification
from damvi import DAMVIVotingClassifier
X, y = make_classification(4000, 20, weights=[0.9], random_state=0)
print("here", flush=True)
try:
    while True:  # the signal comes during a fit, however fast the machine
        DAMVIVotingClassifier(n_jobs=2).fit(X, y)
except KeyboardInterrupt:
    print("caught", flush=True)
    os._exit(7)
"""


@pytest.mark.slow
def test_python_users_get_a_keyboard_interrupt(folder):
    with start([sys.executable, "-c", IN_PYTHON]) as run:
        assert run.stdout.readline() == b"here\n"
        time.sleep(3)
        run.send_signal(signal.SIGINT)
        said, _ = run.communicate(timeout=60)
    assert (run.returncode, said) == (7, b"caught\n")
