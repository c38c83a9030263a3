"""evaluate, explain and report on a model of four classes."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from damvi import load, save
from damvi.cli import main
from damvi.evaluation import honest_rows
from damvi.tables import read_table
from tests.report.toy import CLASSES, make_class_model, make_class_table

FORMULA = "=1+cmd"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    frame = make_class_table(500, width=FORMULA)
    frame.to_csv(folder / "fit.csv", index=False)
    make_class_table(300, seed=1, width=FORMULA).to_parquet(folder / "new.parquet")
    save(make_class_model(frame), folder / "model.damvi")
    return folder


@pytest.fixture
def run(folder, monkeypatch):
    monkeypatch.chdir(folder)

    def invoke(*arguments):
        env = {"COLUMNS": "160"}
        return CliRunner().invoke(main, [str(a) for a in arguments], env=env)

    return invoke


@pytest.mark.parametrize("data", ["fit.csv", "new.parquet"])
def test_evaluate_says_it_all(run, folder, data):
    result = run("evaluate", "model.damvi", data)
    assert result.exit_code == 0, result.output
    for words in ("macro F1", "balanced accuracy", "macro AP", "90% interval"):
        assert words in result.output
    for name in CLASSES[1:]:
        assert name in result.output
    known = "All 500 rows are training rows" in result.output
    assert known == (data == "fit.csv")
    assert ("thresholds that never saw them" in result.output) == known
    said = json.loads(run("evaluate", "model.damvi", data, "--json").stdout)
    model = load(folder / "model.damvi")
    judged = honest_rows(model, read_table(folder / data))
    table = np.array(said["confusion"])
    for true, decided in np.ndindex(4, 4):
        cell = (judged.labels == true) & (judged.decided == decided)
        assert table[true, decided] == cell.sum()
    assert [one["class"] for one in said["classes"]] == list(CLASSES)
    assert [one["rows"] for one in said["classes"]] == table.sum(axis=1).tolist()
    assert said["training_rows"] == (500 if known else 0)
    assert said["factors"] == model.classifier.threshold_.tolist()


@pytest.mark.parametrize("columns", ["80", None])
def test_names_of_classes_stay_whole_where_lines_are_short(folder, monkeypatch, columns):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("COLUMNS", raising=False)
    env = {"COLUMNS": columns} if columns else {}
    result = CliRunner().invoke(main, ["evaluate", "model.damvi", "new.parquet"], env=env)
    head = next(line for line in result.output.splitlines() if "recall" in line)
    # The rarest first; AP gives way to the names.
    assert head.split()[:5] == ["class", "rows", "precision", "recall", "F1"]
    assert ("AP" in head) == (columns is None)
    for name in CLASSES[1:]:
        assert any(line.startswith(name) for line in result.output.splitlines())


def test_what_evaluate_cannot_do_is_said_in_one_line(run):
    result = run("evaluate", "model.damvi", "fit.csv", "--cost-miss", 10)
    assert result.exit_code == 1
    assert "costs are for two classes, but 'fault' has 4" in result.output
    result = run("evaluate", "model.damvi", "fit.csv", "--target", "line")
    assert result.exit_code == 1
    assert "but the model only knows" in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_a_table_without_some_class(run, folder):
    frame = make_class_table(200, seed=2, width=FORMULA)
    frame[frame["fault"] != "dent"].to_csv(folder / "less.csv", index=False)
    result = run("evaluate", "model.damvi", "less.csv")
    assert result.exit_code == 0, result.output
    assert "No rows of class 'dent'" in result.output


@pytest.mark.slow
def test_explain_by_the_class_decided_or_asked_for(run, folder):
    result = run("explain", "model.damvi", "new.parquet", "-o", "parts.csv")
    assert result.exit_code == 0, result.output
    assert result.output.count("\nrow ") == 20
    assert ", predicted " in result.output
    with open(folder / "parts.csv", encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    by_row = {}
    for line in lines:
        parts = by_row.setdefault(line["row"], {"base": 0, "column": 0, "voter": 0})
        parts[line["part"]] += float(line["contribution"])
        parts["score"] = float(line["score"])
    assert len(by_row) == 20
    for parts in by_row.values():
        assert parts["base"] + parts["column"] == pytest.approx(parts["score"])
        assert parts["voter"] == pytest.approx(parts["score"])
    assert f"'{FORMULA}" in {line["name"] for line in lines}
    asked = ["explain", "model.damvi", "new.parquet", "--row", "7"]
    said = json.loads(run(*asked, "--class", "dent", "--json").stdout)
    assert said["rows"][0]["class"] == "dent"
    plain = run(*asked, "--class", "dent").output
    assert "for dent" in plain
    assert "by voter (weight times vote)" in plain


def test_a_class_that_is_not_there(run):
    result = run("explain", "model.damvi", "new.parquet", "--class", "dint")
    assert result.exit_code == 1
    assert "unknown class 'dint'; the model votes for" in result.output


@pytest.mark.parametrize("data", ["fit.csv", "new.parquet"])
def test_a_page_and_what_it_says_in_short(run, folder, data):
    result = run("report", "model.damvi", data)
    assert result.exit_code == 0, result.output
    assert "are classified correctly" in result.output
    assert "Saved the report to report.html" in result.output
    known = "Evaluated out of sample on 500 training rows." in result.output
    assert known == (data == "fit.csv")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert ("Evaluated out of sample on 500 training rows." in page) == known
    assert ("thresholds that never saw them" in page) == known
    said = json.loads(run("report", "model.damvi", data, "--json").stdout)
    assert [one["name"] for one in said["classes"]] == list(CLASSES)
