"""damvi info: for people and for machines."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from damvi import DAMVIClassifier, DAMVIVotingClassifier, save
from damvi.cli import main
from damvi.io import TrainingRows
from damvi.model import Model
from damvi.tables import Column, Schema, Target


def info(*arguments):
    return CliRunner().invoke(main, ["info", *map(str, arguments)])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=300) > 1.2
    pool = [("bayes [bold]", GaussianNB()), ("linear", LogisticRegression())]
    classifier = DAMVIVotingClassifier(pool, cv=2, shrinkage=0.5, random_state=0)
    classifier.fit(X, y)
    model = Model(
        classifier,
        Schema(
            (
                Column("amount", "number"),
                Column("\x1b[31mred", "category", ("a", "b")),
                Column("id", "dropped", reason="every value differs"),
            )
        ),
        Target("is fraud", "no", "yes"),
        TrainingRows(np.arange(300, dtype=np.uint64), np.zeros(300), y),
        scores={
            "models": {
                "DAMVI": {
                    "precision": {"value": 0.25},
                    "recall": {"value": 0.75},
                    "f1": {"value": 0.375},
                    "ap": {"value": float("nan")},
                }
            },
            "verdicts": ["DAMVI and a plain forest tie."],
            "rows": 300,
        },
        made={"command": "damvi fit data.csv --target 'is fraud'", "seed": 0},
    )
    file = tmp_path_factory.mktemp("models") / "model.damvi"
    save(model, file)
    return file


def test_what_people_see(path):
    run = info(path)
    assert run.exit_code == 0, run.output
    for line in [
        "predicts 'is fraud': 'yes' (positive) vs 'no'",
        "fitted on 300 rows, 33 of them positive (11.00%)",
        "1 number: amount",
        "not used: id (every value differs)",
        "2 (GaussianNB, LogisticRegression)",
        "bayes [bold]",
        "tuned for F1",
        "DAMVI  precision 0.25, recall 0.75, F1 0.375, AP unknown",
        "DAMVI and a plain forest tie.",
        "command: damvi fit data.csv --target 'is fraud'",
        "scikit-learn",
    ]:
        assert line in run.output, run.output
    assert "\x1b" not in run.output


def test_what_machines_see(path):
    run = info(path, "--json")
    assert run.exit_code == 0
    said = json.loads(run.output, parse_constant=lambda name: 1 / 0)
    assert said["target"]["name"] == "is fraud"
    assert said["target"]["positives"] == 33
    assert said["scores"]["models"]["DAMVI"]["ap"]["value"] is None
    assert said["bytes"] == path.stat().st_size
    assert {voter["name"] for voter in said["voters"]["weights"]} == {
        "bayes [bold]",
        "linear",
    }
    weights = [voter["weight"] for voter in said["voters"]["weights"]]
    assert sum(weights) == pytest.approx(1)
    assert weights == sorted(weights, reverse=True)
    assert said["threshold"]["tuned_for"] == said["threshold"]["tuning"]["objective"]
    assert said["versions"]["damvi"]


def test_a_classifier_alone(tmp_path, table):
    X, y = table
    labels = np.where(y, "bad", "good")
    model = DAMVIClassifier(n_estimators=30, random_state=0).fit(X, labels)
    save(model, tmp_path / "model.damvi")
    run = info(tmp_path / "model.damvi")
    assert run.exit_code == 0, run.output
    assert "a classifier for 'bad' (positive) vs 'good'" in run.output
    assert "usable from Python only" in run.output
    assert "not tuned" in run.output
    assert "more, 0." in run.output  # voters that are not shown


def test_bad_files_are_one_line(tmp_path):
    bad = tmp_path / "bad.damvi"
    bad.write_text("not a model")
    for path in (bad, tmp_path / "missing.damvi", tmp_path):
        run = info(path)
        assert run.exit_code == 1
        assert run.output.startswith("Error: ")
        assert len(run.output.splitlines()) == 1
        assert str(path) in run.output
    assert info().exit_code == 2


def test_a_classifier_alone_is_no_whole_model(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 5 == 0
    save(DAMVIClassifier(n_estimators=2, random_state=0).fit(X, y), tmp_path / "m.damvi")
    refused = CliRunner().invoke(
        main, ["export", str(tmp_path / "m.damvi"), "--to", "onnx"]
    )
    assert refused.exit_code == 1
    assert "Load it in Python with damvi.load, or make a full model" in refused.output
