"""``damvi bench`` on a table of one's own; what is wrong is said in one line."""

from pathlib import Path

import pandas as pd
import pytest

from damvi import contenders
from damvi.cli.bench import in_words

from .conftest import fraud

pytestmark = pytest.mark.slow


@pytest.fixture
def table(folder):
    fraud(300).to_csv("data.csv", index=False)
    return "data.csv"


def test_a_table_from_end_to_end_and_again(damvi, table):
    command = ["bench", table, "--target", "is_fraud", "--jobs", 1]
    command += ["--contenders", "R-DT,DAMVI,uniform", "-o", "out"]
    first = damvi(*command, "--splits", 2)
    assert "payment_id  dropped" in first.stdout  # read as damvi fit reads it
    assert "[6/6] uniform split 1" in first.stderr
    assert "F1 and average precision over 2 splits (70/30)" in first.stdout
    assert "Saved scores.csv, table.md, table.tex to out." in first.stdout
    # A run that was killed while it wrote goes on where it stopped, to the same table.
    scores = Path("out/scores.csv").read_text(encoding="utf-8")
    Path("out/scores.csv").write_text(scores[:-12], encoding="utf-8")
    again = damvi(*command, "--splits", 2, "--format", "markdown")
    assert "[1/1] uniform split 1" in again.stderr
    assert Path("out/table.md").read_text(encoding="utf-8") in again.stdout
    kept, made = pd.read_csv("out/scores.csv"), pd.read_csv(pd.io.common.StringIO(scores))
    assert kept[["f1", "ap"]].equals(made[["f1", "ap"]])
    assert "scores are in" not in first.stderr
    # So is what is found in the top rows.
    top = damvi(*command, "--splits", 1, "--top", 9)
    assert "it has other rows or settings" in top.stderr
    assert "precision@9" in top.stdout
    assert {"top_precision", "top_recall"} <= {*pd.read_csv("out/scores.csv").columns}
    # Other rows are another comparison.
    fraud(300, seed=1).to_csv(table, index=False)
    other = damvi(*command, "--splits", 1)
    assert "it has other rows or settings" in other.stderr
    assert len(pd.read_csv("out/scores.csv")) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--target", "is_fraud", "--contenders", ","], 1, "unknown contender"),
        (["--target", "is_fraud", "--contenders", "RBG"], 1, "Did you mean R-BG"),
        (["--target", "isfraud"], 1, "is_fraud"),
        (["--target", "is_fraud", "--group", "age"], 1, "every row needs a group"),
        (["--target", "is_fraud", "--splits", "0"], 2, "--splits"),
        ([], 2, "--target"),
    ],
)
def test_bad_input_is_one_line(damvi, table, arguments, code, words):
    result = damvi("bench", table, *arguments, code=code)
    assert words in result.stderr
    assert "Traceback" not in result.output


def test_contenders_not_installed_are_left_out(damvi, table, monkeypatch):
    monkeypatch.setattr(contenders, "can_load", lambda name: False)
    for name in ("DAMVI-strong", "RF", "ET"):  # and others, to save time
        monkeypatch.delitem(contenders.CONTENDERS, name)
    result = damvi("bench", table, "--target", "is_fraud", "--splits", 1)
    line = next(one for one in result.stderr.splitlines() if "Skipped" in one)
    assert line.startswith("Skipped: S-DT, R-DT, ")
    assert line.endswith("(not installed: catboost, imbalanced-learn, lightgbm, xgboost).")
    made = pd.read_csv("damvi-bench/data/scores.csv")
    assert made["contender"].tolist() == ["DAMVI", "uniform"]


def test_a_comma_at_the_end_is_no_contender(damvi, table):
    damvi("bench", table, "--target", "is_fraud", "--splits", 1, "--contenders", "DAMVI,")


def test_the_case_of_a_name_does_not_matter(damvi, table):
    names = "damvi,Uniform,DAMVI"
    damvi("bench", table, "--target", "is_fraud", "--splits", 1, "--contenders", names)
    made = pd.read_csv("damvi-bench/data/scores.csv")
    assert made["contender"].tolist() == ["DAMVI", "uniform"]


def test_nothing_that_could_be_fitted(damvi, table, monkeypatch):
    fraud(40).to_csv(table, index=False)
    command = ["bench", table, "--target", "is_fraud", "--contenders", "S-DT"]
    result = damvi(*command, "--splits", 1, code=1)
    assert "no model could be fitted: ValueError: SMOTE needs 5" in result.stderr


def test_time_in_words():
    told = [in_words(seconds) for seconds in (0, 30, 100, 3000, 7200)]
    assert told == ["1 s", "30 s", "2 min", "50 min", "2.0 h"]
