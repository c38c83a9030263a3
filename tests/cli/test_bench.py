"""``damvi bench`` on a table of one's own; what is wrong is said in one line."""

import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.datasets import make_classification

from damvi.baselines import methods as registry
from damvi.bench import read_cells
from damvi.cli import main
from damvi.cli.following import Following, in_words


@pytest.fixture
def table(tmp_path):
    X, y = make_classification(300, 4, weights=[0.85], flip_y=0.1, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["text"], frame["is_fraud"] = [f"row {i}" for i in range(300)], y
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


@pytest.fixture
def bench(tmp_path):
    def invoke(*arguments):
        env = {"COLUMNS": "100", "DAMVI_CACHE": str(tmp_path / "cache"), "DAMVI_DATA": ""}
        return CliRunner().invoke(main, ["bench", *map(str, arguments)], env=env)

    return invoke


def test_a_table_from_end_to_end_and_again(bench, table, tmp_path):
    command = [table, "--target", "is_fraud", "--methods", "R-DT,DAMVI,uniform"]
    command += ["--splits", 2, "--split-by", "stratified", "--ratios", "5,10"]
    command += ["-o", tmp_path / "out", "--jobs", 2]
    result = bench(*command)
    assert result.exit_code == 0, result.output
    assert "'text'" in result.output  # dropped, and said so
    assert "6 cells to run" in result.output
    assert "12 cells to run" in result.output
    assert "(stratified 70/30)" in result.output
    written = {path.name for path in (tmp_path / "out").iterdir()}
    files = "tables.md tables.tex tables.html tables.csv cells.csv comparison.html"
    assert {*files.split(), "ratio_table_csv.png"} <= written
    again = bench(*command)
    assert again.exit_code == 0
    assert "0 cells to run" in again.output
    tables = [run.output.split("F1 over", 1)[1] for run in (result, again)]
    assert tables[0] == tables[1]


def test_other_splits_need_another_folder(bench, table, tmp_path):
    command = [table, "--target", "is_fraud", "--methods", "R-DT", "--splits", 1]
    command += ["-o", tmp_path / "out"]
    assert bench(*command).exit_code == 0
    result = bench(*command, "--split-by", "stratified")
    assert result.exit_code == 1
    assert "another protocol" in result.output
    assert len(read_cells(tmp_path / "out")) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["TABLE", "--target", "is_fraud", "--methods", ","], 1, "unknown method"),
        (["TABLE", "--target", "is_fraud", "--time-limit", "0"], 2, "time-limit"),
        (["TABLE", "TABLE", "--target", "is_fraud", "--ratios", "5"], 2, "one dataset"),
        ([], 2, "give one of DATA, --paper or --quick"),
        (["--quick", "--paper"], 2, "give one of DATA, --paper or --quick"),
        (["TABLE", "--target", "isfraud"], 1, "is_fraud"),
        (["TABLE", "--target", "a"], 1, "a"),
        (
            ["TABLE", "--target", "is_fraud", "--methods", "R-DT,RBG"],
            1,
            "Did you mean R-BG",
        ),
        (["TABLE", "--target", "is_fraud", "--ratios", "none"], 2, "percentages"),
        (["TABLE", "--target", "is_fraud", "--ratios", "70"], 2, "percentages"),
        (["TABLE", "--target", "is_fraud", "--split-by", "groups"], 1, "has none"),
        (["nowhere.csv", "--target", "y"], 1, "nowhere.csv"),
        (["no_such_dataset"], 1, "no_such_dataset"),
    ],
)
def test_bad_input_is_one_line(bench, table, tmp_path, arguments, code, words):
    arguments = [str(table) if a == "TABLE" else a for a in arguments]
    if arguments and not arguments[0].startswith("--"):
        arguments += ["-o", tmp_path / "out", "--splits", 1]
        if "--methods" not in arguments:
            arguments += ["--methods", "R-DT"]
    result = bench(*arguments)
    assert result.exit_code == code, result.output
    assert words in result.output
    assert "Traceback" not in result.output


def test_methods_not_installed_are_left_out(bench, table, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    result = bench(table, "--target", "is_fraud", "--splits", 1, "-o", tmp_path / "out")
    assert result.exit_code == 0
    assert "Left out: EE needs the package imblearn" in result.output
    assert {cell["method"] for cell in read_cells(tmp_path / "out")} == {
        "DAMVI",
        "uniform",
        "RF",
    }


def test_time_in_words():
    told = [in_words(seconds) for seconds in (0, 30, 100, 3000, 7200)]
    assert told == ["1 s", "30 s", "2 min", "50 min", "2.0 h"]


def test_a_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    cell = {"dataset": "toy", "method": "DAMVI", "split": 0, "ratio": None}
    with Following() as follow:
        follow(0, 2, None, None)
        follow(1, 2, 200.0, cell)
    assert "about 3 min left" in capsys.readouterr().err
