"""``damvi demo`` prints one small table, the same for the same seed."""

import re

import pytest
from click.testing import CliRunner

from damvi import __version__
from damvi.cli import main


@pytest.fixture(scope="module")
def printed():
    result = CliRunner().invoke(main, ["demo", "--seed", "1"], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", ["DAMVI", "plain vote, same trees", "random forest"])
def test_each_contender_has_a_row_of_five_figures(printed, name):
    row = next(line for line in printed.splitlines() if line.startswith(name))
    figures = [float(x) for x in re.findall(r"\d+\.\d+", row)]
    assert len(figures) == 5
    assert all(0.3 < x <= 1 for x in figures[:4])


def test_it_says_what_was_measured_and_on_what(printed):
    for words in ("precision", "recall", "F1", "AP", "seconds"):
        assert words in printed
    assert "11,183 rows, 2.3% positive" in printed
    assert "judged on 3,355 with 78 positives" in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_help_and_version():
    runner = CliRunner()
    assert "demo" in runner.invoke(main, ["--help"]).output
    assert runner.invoke(main, ["--version"]).output.strip().endswith(__version__)
    assert "--seed" in runner.invoke(main, ["demo", "-h"]).output
    assert runner.invoke(main, ["nonsense"]).exit_code == 2
