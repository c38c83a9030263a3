"""What Windows and macOS lack is not asked for, as far as it can be had on one machine.

In a process of its own, what Windows has not is taken away after other libraries, which
have their own ways there, and before damvi. The standard output is of a code page, and to
open a text file without a word on its encoding is an error.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import damvi

# fcntl.flock, fork and the like; os.fchmod is there on Windows since Python 3.13.
TAKEN = """
import os, signal, sys, warnings
import joblib, numba, numpy, pandas, pyarrow.parquet, rich.console, scipy.optimize
import sklearn.ensemble

for name in ("fcntl", "grp", "pwd", "pty", "resource", "syslog", "termios", "tty"):
    sys.modules[name] = None
for name in [
    *("chown", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid", "getpgid"),
    *("getuid", "killpg", "mkfifo", "nice", "pread", "preadv", "pwrite", "pwritev"),
    *("sched_getaffinity", "setsid", "sysconf", "wait3", "wait4"),
    *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC"),
]:
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1"):
    delattr(signal, name)
warnings.filterwarnings("error", category=EncodingWarning, module=r"damvi(\\.|$)")
"""

COMMANDS = """
from damvi.cli import run

def damvi(*words):
    sys.argv = ["damvi", *words]
    try:
        run()
    except SystemExit as end:
        assert not end.code, words

few = ["--target", "Störung", "--pool", "trees", "--jobs", "1"]
damvi("fit", "rows.csv", *few, "-o", "model.damvi")
damvi("predict", "model.damvi", "rows.csv", "-o", "answers.csv")
damvi("report", "model.damvi", "rows.csv", "-o", "report.html")
damvi("fit", "rows.parquet", "--out-of-core", *few, "-o", "large.damvi")
damvi("fit", "rows.csv", *few, "-o", "model.damvi")  # over what is there
damvi("info", "model.damvi")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    import numpy as np
    import pandas as pd

    rng = np.random.RandomState(0)
    sizes = rng.normal(size=300)
    frame = pd.DataFrame(
        {
            "Größe": sizes.round(3),
            "等级": rng.choice(["低", "高", "中"], 300),
            "Störung": np.where(sizes + rng.normal(size=300) / 2 > 1.3, "故障", "正常"),
        }
    )
    folder = tmp_path_factory.mktemp("a folder with spaces and ümlauts")
    frame.to_csv(folder / "rows.csv", index=False, encoding="utf-8")
    frame.to_parquet(folder / "rows.parquet")
    return folder


def run(code, folder, *words, page="cp1252"):
    environment = os.environ | {
        "PYTHONPATH": str(Path(damvi.__file__).parents[1]),
        "PYTHONIOENCODING": page,
    }
    ran = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-c", code, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
    )
    assert ran.returncode == 0, ran.stderr.decode(page, "replace")
    return ran.stdout.decode(page)


@pytest.mark.slow
def test_a_model_is_fitted_and_used_without_what_windows_lacks(folder):
    said = run(TAKEN + COMMANDS, folder)
    assert "Größe" in said
    assert r"\u6545\u969c" in said  # what the code page has not, by its number
    answers = (folder / "answers.csv").read_text(encoding="utf-8")
    assert "故障" in answers
    assert 'charset="utf-8"' in (folder / "report.html").read_text(encoding="utf-8").lower()
    left = {path.name for path in folder.iterdir()}
    assert not [name for name in left if name.endswith(".part")]
    code = "import sys; from damvi.cli import run; sys.argv[0] = 'damvi'; run()"
    told = json.loads(run(code, folder, "info", "model.damvi", "--json"))
    assert "故障" in json.dumps(told, ensure_ascii=False)
