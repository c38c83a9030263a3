"""Three or more classes on the command line: fit, predict, info."""

import csv
import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from damvi import load
from damvi.cli import main
from damvi.cli.console import FORMULA, no_formula
from damvi.evaluation import FittedVote
from damvi.model import comparison
from damvi.report.words import per_hundred

from .conftest import crops as crops_of
from .test_first_minutes import check

PREDICT = import_module("damvi.model.prediction")
LABELS = ("wheat", "maize", "=rye", 'oat, "wild"')


def crops(n=500, seed=0):
    return crops_of(n, seed, LABELS)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("crops")
    crops().to_csv(path / "crops.csv", index=False)
    crops(200, seed=1).to_csv(path / "new.csv", index=False)
    command = ["fit", path / "crops.csv", "--target", "crop", "--pool", "trees"]
    command = [*command, "-o", path / "model.damvi", "--quiet"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "can_load", lambda name: False)  # LightGBM takes long
        result = CliRunner().invoke(main, [str(word) for word in command])
    assert result.exit_code == 0, (result.output, result.exception)
    return path


@pytest.mark.slow
def test_fit_says_which_classes_there_are_and_how_well_they_are_told_apart(damvi, folder):
    crops().to_csv("crops.csv", index=False)
    said = damvi("fit", "crops.csv", "--target", "crop", "--pool", "trees").output
    check("fit_classes", said)
    scores = json.loads(Path("model.scores.json").read_text(encoding="utf-8"))
    assert scores["target"] == {"name": "crop", "classes": ["=rye", *sorted(LABELS)[1:]]}
    assert scores["classes"] == {
        "=rye": 50,
        "maize": 125,
        'oat, "wild"': 50,
        "wheat": 275,
    }
    assert scores["metric"] == "macro_f1"
    for figures in scores["models"].values():
        assert {"macro_f1", "balanced_accuracy", "macro_ap"} <= set(figures)
        assert 0.4 < figures["macro_f1"]["value"] < 0.95
    assert len(scores["by_class"]["DAMVI"]) == 4
    assert set(scores["models"]) == {"DAMVI", "plain forest", "LightGBM"}


def test_fit_evaluate_and_report_say_the_same_of_training_rows(damvi, fitted):
    """Factors that were tuned on the rows they judge flatter: the figures of fit do not."""
    data, model = fitted / "crops.csv", fitted / "model.damvi"
    own = load(model).scores["models"]["DAMVI"]
    macro, mean = own["macro_f1"]["value"], own["balanced_accuracy"]["value"]
    said = damvi("evaluate", model, data).output.split()
    assert said[said.index("F1") + 1] == f"{macro:.3f}"
    assert said[said.index("accuracy") + 1] == f"{mean:.3f}"
    said = damvi("report", model, data, "-o", fitted / "page.html").output
    assert f"about {per_hundred(mean)} in 100 are found" in said


def test_one_against_the_rest(damvi, folder, fitted, monkeypatch):
    monkeypatch.setattr(comparison, "can_load", lambda name: False)
    command = ["fit", fitted / "crops.csv", "--target", "crop", "--pool", "trees"]
    said = damvi(*command, "--positive", "maize").output
    assert "Target crop: 125 'maize' (positive, 25.00%), 375 others." in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--metric", "f1"],
            "'crop' has 4; give macro_f1 or macro_ap, or name the positive class",
        ),
        (["--metric", "recall@0.9"], "for two classes"),
        (["--cost-miss", "5"], "costs of a miss and a false alarm are for two classes"),
        (["--metric", "macro_f1", "--positive", "maize"], "has two"),
        (["--positive", "spelt"], "'spelt' is not a value of the target"),
        (["--target", "rain"], "look like amounts or ids"),
        (["--target", "field_id"], "look like amounts or ids"),
    ],
)
def test_what_cannot_be_had_is_one_line(damvi, folder, fitted, options, words):
    command = ["fit", fitted / "crops.csv", "--target", "crop", "--pool", "trees"]
    said = damvi(*command, *options, code=1).output
    assert words in said
    assert len(said.splitlines()) == 1
    assert not Path("model.damvi").exists()


@pytest.mark.parametrize("out", ["p.csv", "p.parquet"])
@pytest.mark.parametrize("numbers", [100, 1 << 20])
def test_predictions_are_the_classifiers(damvi, fitted, folder, monkeypatch, out, numbers):
    monkeypatch.setattr(PREDICT, "MOST_NUMBERS", numbers)
    said = damvi("predict", fitted / "model.damvi", fitted / "new.csv", "-o", out).output
    assert "200 rows scored" in said
    assert f"Saved {out}: decision, and the probability and score of each class." in said
    model = load(fitted / "model.damvi")
    classes = model.target.classes
    assert set(classes) == set(LABELS)
    found = pd.read_csv(out) if out.endswith("csv") else pd.read_parquet(out)
    names = [f"{what} {label}" for what in ("probability", "score") for label in classes]
    assert found.columns.tolist() == ["decision", *names]
    X = model.schema.encode(pd.read_csv(fitted / "new.csv"))
    chances, scores = found[names].to_numpy()[:, :4], found[names].to_numpy()[:, 4:]
    np.testing.assert_allclose(chances, model.classifier.predict_proba(X), rtol=1e-12)
    np.testing.assert_allclose(scores, model.classifier.vote(X), rtol=1e-12)
    labels = np.array(classes)[model.classifier.predict(X)]
    if out.endswith("csv"):
        labels = [no_formula(label) for label in labels]
        assert "'=rye" in set(labels)
    assert found["decision"].tolist() == list(labels)


def test_headers_are_no_formulas_and_one_line_is_one_row(damvi, fitted, folder):
    damvi("predict", fitted / "model.damvi", fitted / "new.csv", "-o", "p.csv")
    with open("p.csv", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert len(rows) == 200
    assert {len(row) for row in rows} == {len(header)} == {9}
    for cell in [*header, *(row[0] for row in rows)]:
        assert not cell.startswith(FORMULA)


def test_predictions_for_machines(damvi, fitted, folder):
    run = damvi("predict", fitted / "model.damvi", fitted / "new.csv", "--json")
    said = json.loads(run.output)
    counts = pd.read_csv("new.predictions.csv")["decision"].value_counts()
    assert said["rows"] == sum(said["decisions"].values()) == 200
    assert said["decisions"]["wheat"] == counts["wheat"]
    assert said["decisions"]["=rye"] == counts["'=rye"]


def test_info(damvi, fitted):
    said = damvi("info", fitted / "model.damvi").output
    for words in (
        "predicts 'crop': 4 classes",
        "fitted on 500 rows",
        "wheat        275 rows  factor 1",
        "the class with the largest vote times factor is predicted",
        "tuned for macro F1: 0.",
        "plain forest  macro F1 0.",
    ):
        assert words in said, said
    told = json.loads(damvi("info", fitted / "model.damvi", "--json").output)
    assert {one["label"]: one["rows"] for one in told["target"]["classes"]}["maize"] == 125
    # Voters are called the same wherever they are named.
    names = [voter["name"] for voter in told["voters"]["weights"]]
    assert sorted(names) == sorted(
        FittedVote(load(fitted / "model.damvi").classifier).names
    )
    assert "tree 1" in names
    assert "tree 0" not in names


def test_info_of_a_classifier_alone(damvi, folder):
    from sklearn.linear_model import LogisticRegression

    from damvi import DAMVIClassifier, save

    frame = crops(300)
    voter = LogisticRegression()
    model = DAMVIClassifier(voter, n_estimators=5, stratified=True, random_state=0)
    save(model.fit(frame[["rain", "sun"]], frame["crop"]), "alone.damvi")
    said = damvi("info", "alone.damvi").output
    assert "a classifier for 4 classes" in said
    assert "the factors are not tuned" in said
    assert "voter 1 " in said


@pytest.mark.slow
def test_many_classes_are_listed_in_part(damvi, folder, monkeypatch):
    monkeypatch.setattr(comparison, "can_load", lambda name: False)
    rng = np.random.default_rng(0)
    kinds = np.sort(np.concatenate([np.arange(40).repeat(3), np.zeros(200, int)]))
    frame = pd.DataFrame({"x": kinds + rng.normal(size=320), "kind": kinds}).sample(
        frac=1, random_state=0
    )
    frame.assign(kind=[f"k{k:02}" for k in frame["kind"]]).to_csv("d.csv", index=False)
    said = damvi("fit", "d.csv", "--target", "kind", "--pool", "trees").output
    assert said.count("(10 more)") == 2
    assert "k00         203  63.44%" in said
    assert "and 19 more have fewer than 50 rows" in said
