"""What all commands share: JSON, silence, exit codes, errors on one line, quick help."""

import csv
import json
import os
import subprocess
import sys
import time

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from damvi.cli import main, one_line
from damvi.cli.console import Output
from damvi.cli.figures import figure_table
from damvi.evaluation import Figure


def commands(group=main, before=()):
    for name, command in group.commands.items():
        yield (*before, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*before, name))


@pytest.mark.parametrize(("words", "command"), list(commands()), ids=str)
def test_every_command_has_the_common_options(words, command):
    names = {name for option in command.params for name in option.opts}
    assert {"--json", "--quiet", "--debug"} <= names


@pytest.mark.slow
def test_json_is_all_of_the_standard_output(damvi, made, folder):
    out = folder / "p.csv"
    for command in (
        ["evaluate", made / "model.damvi", made / "data.csv"],
        ["predict", made / "model.damvi", made / "new.csv", "-o", out],
        ["datasets"],
        ["fit", made / "data.csv", "--target", "is_fraud", "--pool", "trees"],
    ):
        found = json.loads(damvi(*command, "--json").stdout)
        assert found
    assert found["positives"] == 72
    assert set(found["models"]) == {"DAMVI", "plain forest", "LightGBM"}
    beside = json.loads((folder / "model.scores.json").read_text())
    assert beside["models"] == found["models"]
    wrong = damvi("predict", "no.damvi", "no.csv", "--json", code=1)
    assert "no.damvi" in json.loads(wrong.stdout)["error"]


def test_quiet_is_quiet(damvi, made, folder):
    for command in (
        ["evaluate", made / "model.damvi", made / "data.csv"],
        ["predict", made / "model.damvi", made / "new.csv", "-o", folder / "p.csv"],
        ["datasets"],
    ):
        assert damvi(*command, "--quiet").output == ""


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["fit", "data.csv"], 2, "--target"),
        (["fit", "data.csv", "--target", "isfraud"], 1, "Did you mean 'is_fraud'?"),
        (["fit", "gone.csv", "--target", "y"], 1, "no such file: gone.csv"),
        (["fit", "data.csv", "--target", "age"], 1, "look like amounts"),
        (["fit", "data.csv", "--target", "is_fraud", "--positive", "2"], 1, "'2'"),
        (["fit", "data.csv", "--target", "is_fraud", "--metric", "f9"], 2, "recall@0.9"),
        (["fit", "data.csv", "--target", "is_fraud", "--metric", "cost"], 2, "--cost-miss"),
        (
            ["fit", "data.csv", "--target", "is_fraud", "--confidence", "0.8"],
            1,
            "confidence needs a guarantee",
        ),
        (
            ["fit", "data.csv", "--target", "is_fraud", "--guarantee-size", "0.2"],
            1,
            "guarantee_size needs a guarantee",
        ),
        (
            ["evaluate", "model.damvi", "data.csv", "--confidence", "0.8"],
            2,
            "--confidence needs --guarantee",
        ),
        (
            ["fit", "data.csv", "--target", "is_fraud", "-o", "no/m.damvi"],
            1,
            "the folder no does not exist",
        ),
        (["fit", "data.csv", "--target", "is_fraud", "--pool", "weak"], 2, "strong"),
        (["fit", "data.csv", "--target", "is_fraud", "--time-limit", "0"], 2, "time-limit"),
        (["predict", "model.damvi", "gone.csv"], 1, "no such file: gone.csv"),
        (["predict", "gone.damvi", "data.csv"], 1, "no such file: gone.damvi"),
        (["info", "gone.damvi"], 1, "no such file: gone.damvi"),
        (["evaluate", "model.damvi", "data.csv", "--cost-miss", "0"], 2, "x>0"),
        pytest.param(
            ["fit", "data.csv", "--target", "is_fraud", "-o", "/proc/m.damvi"],
            1,
            "cannot write to the folder /proc",
            marks=pytest.mark.skipif(
                not os.path.isdir("/proc"), reason="there is no /proc"
            ),
        ),
        (["fit", "data.csv", "--target", "is_fraud", "-o", "./data.csv"], 2, "another"),
        (
            ["predict", "model.damvi", "data.csv", "-o", "link.csv"],
            2,
            "choose another name",
        ),
        (
            ["report", "model.damvi", "data.csv", "-o", "model.damvi"],
            2,
            "choose another name",
        ),
        (
            ["explain", "model.damvi", "data.csv", "-o", "data.csv"],
            2,
            "choose another name",
        ),
        (["export", "model.damvi", "--to", "onnx", "-o", "model.damvi"], 2, "another"),
        (["export", "model.damvi", "--to", "sklearn"], 1, "refit with --drop comment"),
        (["predict", "data.csv", "data.csv", "-o", "out.csv"], 1, "data.csv"),
        (
            ["predict", "model.damvi", "data.csv", "-o", "out.txt"],
            2,
            ".csv, .parquet, .xlsx",
        ),
        (
            ["predict", "model.damvi", "data.csv", "-o", "data.csv"],
            2,
            "choose another name",
        ),
        (
            ["predict", "model.damvi", "short.csv"],
            1,
            "columns are missing: 'when', 'shop' and 'comment'",
        ),
        (
            ["evaluate", "model.damvi", "new.csv"],
            1,
            "new.csv has no target column 'is_fraud'; name it with --target. Without",
        ),
        (
            ["evaluate", "model.damvi", "new.csv", "--target", "fraud"],
            1,
            "new.csv: no target column 'fraud'.",
        ),
        (["evaluate", "model.damvi", "short.csv"], 1, "short.csv: columns are missing"),
        (
            ["evaluate", "model.damvi", "data.csv", "--target", "shop"],
            1,
            "the model only knows '0' and '1'",
        ),
        (["nonsense"], 2, "nonsense"),
    ],
)
def test_what_is_wrong_is_one_line_and_a_code(damvi, made, folder, command, code, words):
    for name in ("data.csv", "new.csv", "model.damvi"):
        (folder / name).write_bytes((made / name).read_bytes())
    (folder / "short.csv").write_text("amount,age\n1,2\n")
    (folder / "link.csv").symlink_to("data.csv")
    result = damvi(*command, code=code)
    assert words in result.output
    assert "Traceback" not in result.output
    said = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert len(said) == 1


def test_costs_alone_are_what_is_minimised(damvi, made, folder):
    fit = ["fit", made / "data.csv", "--pool", "trees", "--json"]
    new, costs = [*fit, "--target", "is_fraud"], ["--cost-miss", 20]
    like = [*fit, "--like", folder / "m.damvi"]
    for command, metric, cost in (
        ([*new, *costs], "cost", [1, 20]),
        ([*like, "--cost-false-alarm", 2], "cost", [2, 20]),
        ([*like, "--metric", "cost"], "cost", [1, 20]),
        ([*new, *costs, "--metric", "f1"], "f1", [1, 20]),
        ([*new, "--metric", "recall@0.9"], "recall@0.9", None),
        ([*like, *costs], "recall@0.9", [1, 20]),
    ):
        to = folder / ("new.damvi" if "--like" in command else "m.damvi")
        scores = json.loads(damvi(*command, "-o", to).stdout)
        assert (scores["metric"], scores["cost"]) == (metric, cost)


def test_debug_shows_where(damvi, folder):
    result = damvi("fit", "gone.csv", "--target", "y", "--debug", code=1)
    assert isinstance(result.exception, FileNotFoundError)


def test_what_nobody_foresaw_is_still_one_line(damvi, folder, monkeypatch):
    monkeypatch.setattr("damvi.model.table.read_table", lambda *a, **k: [].pop())
    result = damvi("fit", "data.csv", "--target", "y", code=1)
    assert "IndexError: pop from empty list (this looks like a bug" in result.output


def test_a_package_that_is_not_there_is_named_with_the_cure():
    error = ModuleNotFoundError("No module named 'filelock'", name="filelock")
    assert one_line(error) == (
        "this needs the package filelock, which is not installed; "
        "run pip install 'damvi[all]'"
    )
    assert one_line(ImportError("pip install onnx")) == "pip install onnx"


@pytest.mark.parametrize("columns", [50, 60, 100])
def test_a_narrow_terminal_shows_names_and_figures(monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    figure = Figure(0.509, 0.4, 0.6, 0.026)
    names = ("precision", "recall", "f1", "ap")
    Output().show(figure_table({"plain forest": dict.fromkeys(names, figure)}, names))
    said = capsys.readouterr().out
    assert "plain forest" in said
    assert said.count("0.509") == said.count(".40–.60") == 4
    assert max(map(len, said.splitlines())) <= columns


@pytest.mark.slow
def test_no_colour_in_a_pipe(made):
    command = [sys.executable, "-m", "damvi", "evaluate"]
    command += [str(made / "model.damvi"), str(made / "data.csv")]
    said = subprocess.run(command, capture_output=True, check=True)
    assert b"\x1b" not in said.stdout + said.stderr
    assert b"found" in said.stdout


@pytest.mark.parametrize("words", [[], ["fit"], ["predict"], ["evaluate"], ["demo"]])
def test_help_imports_nothing_heavy(words):
    code = (
        f"from damvi.cli import main; main({[*words, '--help']}, standalone_mode=False)\n"
        "import sys; heavy = {'numpy', 'pandas', 'pyarrow', 'sklearn', 'numba', 'rich'}\n"
        "print(heavy & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.stdout.splitlines()[-1] == "set()"


def test_help_is_quick():
    def seconds():
        start = time.perf_counter()
        command = [sys.executable, "-m", "damvi", "fit", "--help"]
        subprocess.run(command, capture_output=True, check=True)
        return time.perf_counter() - start

    def bare():
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import click"], check=True)
        return time.perf_counter() - start

    # 0.3 s on a calm machine; on a busy one, not much more than Python and click alone.
    assert min(seconds() for _ in range(5)) < max(0.3, 3 * min(bare() for _ in range(5)))


STEER = "\x1b[31m\x9b5m\x07\u202e\r"
"""Colour, blinking, a bell, the direction of text, and a return to the line's start."""


@pytest.fixture(scope="module", params=[2, 3])
def steering(request, tmp_path_factory):
    """A model of names, labels, categories and a file that would steer a terminal."""
    path = tmp_path_factory.mktemp("steering")
    rng = np.random.default_rng(0)
    places = np.arange(300) % 10 % request.param
    frame = pd.DataFrame(
        {
            f"a{STEER}": rng.normal(size=300) + places,
            f"b{STEER}": np.array([f"x{STEER}", f"y{STEER}", "z"])[rng.integers(0, 3, 300)],
            f"c{STEER}": f"alike{STEER}",
            f"t{STEER}": np.array([f"no{STEER}", f"yes{STEER}", "other"])[places],
        }
    )
    data = path / "data\x1b[31m.csv"
    frame.to_csv(data, index=False, quoting=csv.QUOTE_ALL)
    new = frame.assign(**{f"b{STEER}": "new"})
    new.to_csv(path / "new.csv", index=False, quoting=csv.QUOTE_ALL)
    run_raw(path, "fit", data, "--target", f"t{STEER}", "--pool", "trees")
    return path


def run_raw(path, *arguments, code=0):
    """What a terminal would be sent: colours stay."""
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(path)
        words = [str(argument) for argument in arguments]
        result = CliRunner().invoke(main, words, color=True)
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["fit", "data\x1b[31m.csv", "--target", f"t{STEER}", "--pool", "trees"], 0),
        (["evaluate", "model.damvi", "data\x1b[31m.csv"], 0),
        (["evaluate", "model.damvi", "new.csv", "--target", f"t{STEER}"], 0),
        (["predict", "model.damvi", "data\x1b[31m.csv"], 0),
        (["explain", "model.damvi", "data\x1b[31m.csv", "--row", "1"], 0),
        (["info", "model.damvi"], 0),
        (["report", "model.damvi", "data\x1b[31m.csv"], 0),
        (["fit", "data\x1b[31m.csv", "--target", f"T{STEER}"], 1),
        (["fit", f"gone{STEER}.csv", "--target", "t"], 1),
        (["predict", "model.damvi", "new.csv", "-o", f"out.{STEER}"], 2),
        (["evaluate", "model.damvi", "bad.csv"], 1),
        (["info", f"gone{STEER}.damvi"], 1),
        ([f"nonsense{STEER}"], 2),
    ],
)
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_nothing_in_a_table_steers_the_terminal(steering, command, code, more):
    (steering / "bad.csv").write_text(f'"a{STEER}","b{STEER}"\n1,"{STEER}",""\n')
    said = run_raw(steering, *command, *(more if len(command) > 1 else []), code=code)
    assert not [sign for sign in said if not sign.isprintable() and sign != "\n"]


@pytest.mark.slow
def test_a_traceback_does_not_steer_the_terminal(folder):
    command = [sys.executable, "-m", "damvi", "info", f"gone{STEER}.damvi", "--debug"]
    said = subprocess.run(command, capture_output=True, check=False).stderr.decode()
    assert "Traceback" in said
    assert not [sign for sign in said if not sign.isprintable() and sign != "\n"]
