"""``damvi explain``: words, a CSV that adds up, JSON."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from damvi.cli import main
from damvi.io import save
from tests.report.toy import make_model, make_table

FORMULA = "=1+cmd"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    frame = make_table(400, amount=FORMULA)
    save(make_model(frame), folder / "model.damvi")
    make_table(50, seed=1, amount=FORMULA).to_csv(folder / "new.csv", index=False)
    return folder


@pytest.fixture
def run(folder, monkeypatch):
    monkeypatch.chdir(folder)

    def invoke(*arguments):
        return CliRunner().invoke(main, ["explain", *arguments])

    return invoke


def test_the_highest_rows_a_line_each(run, folder):
    result = run("model.damvi", "new.csv", "-o", "parts.csv")
    assert result.exit_code == 0, result.output
    assert result.output.count("\nrow ") == 20
    assert "Shapley values, sampled with 32 background rows" in result.output
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
    names = {line["name"] for line in lines}
    assert f"'{FORMULA}" in names  # no spreadsheet runs it
    assert FORMULA not in names


def test_rows_asked_for_in_full_and_as_json(run):
    result = run("model.damvi", "new.csv", "--row", "7", "--row", "3")
    assert result.output.count("by voter (weight times vote)") == 2
    said = json.loads(run("model.damvi", "new.csv", "--row", "7", "--json").stdout)
    (row,) = said["rows"]
    assert row["row"] == 7
    total = sum(column["contribution"] for column in row["columns"]) + row["base"]
    assert total == pytest.approx(row["vote"])
    assert np.isclose(sum(voter["contribution"] for voter in row["voters"]), row["vote"])
    assert said["importances"]["names"][0] == FORMULA


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["model.damvi", "new.csv", "--row", "51"], 1, "rows 1 to 50"),
        (["model.damvi", "new.csv", "--row", "0"], 2, "x>=1"),
        (["model.damvi", "nowhere.csv"], 1, "nowhere.csv"),
        (["model.damvi", "new.csv", "-o", "no/parts.csv"], 1, "does not exist"),
    ],
)
def test_what_is_wrong_is_said(run, arguments, code, words):
    result = run(*arguments)
    assert result.exit_code == code
    assert words in result.output
    assert "Traceback" not in result.output
