"""``damvi report``: the page, the words and the JSON; what is wrong in one line."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from damvi.cli import main
from damvi.io import save
from tests.report.toy import make_model, make_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    frame = make_table()
    frame.to_csv(folder / "fit.csv", index=False)
    make_table(200, seed=1).to_parquet(folder / "new.parquet")
    save(make_model(frame), folder / "model.damvi")
    return folder


@pytest.fixture
def run(folder, monkeypatch):
    monkeypatch.chdir(folder)

    def invoke(*arguments):
        return CliRunner().invoke(main, ["report", *arguments])

    return invoke


@pytest.mark.parametrize("data", ["fit.csv", "new.parquet"])
def test_a_page_and_what_it_says_in_short(run, folder, data):
    result = run("model.damvi", data)
    assert result.exit_code == 0, result.output
    assert "of 100 flagged rows, about" in result.output
    assert "Saved the report to report.html" in result.output
    line = "Evaluated on 200 rows that are new to the model."
    if data == "fit.csv":
        line = "Evaluated out of sample on 600 training rows."
    assert line in result.output
    assert line in (folder / "report.html").read_text()


def test_for_machines_and_for_nobody(run, folder):
    result = run("model.damvi", "new.parquet", "-o", "page.html", "--json")
    said = json.loads(result.stdout)
    assert said["report"] == "page.html"
    assert said["data"]["rows"] == 200
    assert said["decision"]["confusion"][1][1] > 0
    assert (folder / "page.html").stat().st_size < 3_000_000
    assert run("model.damvi", "new.parquet", "--quiet").output == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.damvi", "fit.csv"], "nowhere.damvi"),
        (["model.damvi", "nowhere.csv"], "nowhere.csv"),
        (["fit.csv", "fit.csv"], "fit.csv"),
        (["model.damvi", "fit.csv", "--target", "frad"], "Did you mean 'fraud'"),
        (["model.damvi", "fit.csv", "--target", "kind"], "but the model only knows"),
        (["model.damvi", "fit.csv", "-o", "no/such/page.html"], "does not exist"),
        (["model.damvi", "fit.csv", "-o", "."], "is a folder"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(run, folder, arguments, words):
    before = sorted(path.name for path in folder.iterdir())
    result = run(*arguments)
    assert result.exit_code == 1
    assert words in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_one_figure_has_one_interval_in_fit_evaluate_and_report(run, folder, classes):
    rng = np.random.default_rng(0)
    kind = rng.choice(
        classes, p=[0.8, 0.2] if classes == 2 else [0.8, 0.12, 0.08], size=250
    )
    frame = pd.DataFrame(
        rng.normal(size=(250, 3)) + kind[:, None] * 0.8, columns=list("abc")
    )
    frame["kind"] = np.array(["fine", "dent", "crack"])[kind]
    frame.to_csv("kinds.csv", index=False)
    told = {}
    for name, command in {
        "fit": "fit kinds.csv --target kind --pool trees -o kinds.damvi --json",
        "evaluate": "evaluate kinds.damvi kinds.csv --json",
        "report": "report kinds.damvi kinds.csv -o kinds.html --json",
    }.items():
        result = CliRunner().invoke(main, command.split())
        assert result.exit_code == 0, result.output
        told[name] = json.loads(result.stdout)
    fitted = told["fit"]["models"]["DAMVI"]
    reported = {score["key"]: score for score in told["report"]["scores"]}
    assert {*fitted} == {*told["evaluate"]["figures"]} == {*reported}
    for key, figure in fitted.items():
        for end in ("value", "low", "high"):
            assert told["evaluate"]["figures"][key][end] == figure[end], key
            assert reported[key][end] == figure[end], key
    # What the page shows above the table of scores is the same figure too.
    found = told["report"]["decision"]["mean_found"]
    if classes == 3:
        assert found["value"] == fitted["balanced_accuracy"]["value"]
    else:
        assert told["report"]["classes"][1]["recall"]["low"] == fitted["recall"]["low"]
    assert told["fit"]["chances"] == told["evaluate"]["chances"]
