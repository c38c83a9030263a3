"""Some of the faults that ``make faults`` provokes, and the table of all of them."""

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STORED = ROOT / "results" / "faults"


def lines_of(folder):
    for path in sorted(folder.glob("*.csv")):
        with open(path, encoding="utf-8") as file:
            yield from csv.DictReader(file)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="faults happen in forks")
def test_faults_on_purpose_are_survived(tmp_path):
    command = [sys.executable, "-m", "tests.faults.run", "--every", "23", "-o", tmp_path]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    found = list(lines_of(tmp_path))
    assert len({line["command"] for line in found}) >= 6
    assert {line["fault"] for line in found} >= {"kill", "terminate", "full", "read-only"}


@pytest.mark.skipif(not STORED.exists(), reason="not in the source distribution")
def test_the_stored_table_has_every_command_and_operation():
    lines = list(lines_of(STORED))
    assert len(lines) >= 200
    faults = Counter(line["fault"] for line in lines)
    assert min(faults[how] for how in ("kill", "terminate", "full", "read-only")) >= 100
    operations = {line["operation"] for line in lines if line["fault"] == "kill"}
    assert operations >= {"open", "write", "fsync", "replace", "unlink", "mkdir"}
