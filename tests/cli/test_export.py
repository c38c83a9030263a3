"""``damvi export``, on a model as ``damvi fit`` saves it."""

import json

import numpy as np
import pandas as pd
import pytest
import skops.io
from click.testing import CliRunner

import damvi.io
from damvi import DAMVIClassifier
from damvi.cli import main
from damvi.cli.export import write
from damvi.io import TrainingRows
from damvi.model import Model
from damvi.tables import Column, Schema, Target, TargetOfMany

from ..io.running import run


def model_of(X, y, *columns):
    """A model file's content, of an encoded table."""
    classifier = DAMVIClassifier(n_estimators=9, random_state=0).fit(X, y)
    nothing = TrainingRows(np.empty(0, np.uint64), np.empty(0), np.empty(0, bool))
    return Model(classifier, Schema(columns), Target("paid", "no", "yes"), nothing)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.standard_normal(300)})
    return X, (X["size"] > 1).to_numpy()


@pytest.fixture
def model(rows):
    return model_of(*rows, Column("size", "number"))


def test_an_onnx_file_speaks_in_the_labels_of_the_target(model, rows, tmp_path):
    import onnx

    said = write(model, "onnx", tmp_path / "model.onnx")
    assert said["inputs"] == ["size"]
    assert said["outputs"] == ["label", "probability", "vote"]
    assert said["bytes"] == (tmp_path / "model.onnx").stat().st_size
    graph = onnx.load(tmp_path / "model.onnx")
    labels = run(graph, {"size": rows[0].to_numpy()})["label"].tolist()
    decided = model.classifier.predict(rows[0])
    assert labels == ["yes" if positive else "no" for positive in decided]


@pytest.mark.parametrize("threshold", ["vote", "macro_f1"])
def test_three_classes(rows, threshold, tmp_path):
    import onnx

    X, labels = rows[0], np.digitize(rows[0]["size"], [0.0, 1.0])
    classifier = DAMVIClassifier(n_estimators=9, threshold=threshold, random_state=0)
    classifier.fit(X, labels)
    whole = Model(
        classifier,
        Schema((Column("size", "number"),)),
        TargetOfMany("state", classes=("low", "mid", "high")),
        TrainingRows(np.empty(0, np.uint64), np.empty((0, 3)), np.empty(0, np.uint8)),
    )
    source = tmp_path / "model.damvi"
    damvi.save(whole, source)
    for form in ("onnx", "skops", "sklearn"):
        path = tmp_path / form
        run_of = CliRunner().invoke(main, ["export", str(source), "--to", form, "-o", path])
        assert run_of.exit_code == 0, run_of.output
        if form == "onnx":
            said = run(onnx.load(path), {"size": X.to_numpy()})
            assert said["probability"].shape == said["vote"].shape == (300, 3)
            expected = np.array(["low", "mid", "high"])[classifier.predict(X)]
            assert said["label"].tolist() == expected.tolist()
        else:
            types = skops.io.get_untrusted_types(file=path)
            again = skops.io.load(path, trusted=types)
            assert (again.predict(X) == classifier.predict(X)).all()


@pytest.mark.parametrize("other", [True, False])
def test_unknown_categories_are_what_the_schema_makes_of_them(other, tmp_path):
    import onnx

    rng = np.random.default_rng(0)
    categories = ("red", "blue", "green", *(("(other)",) if other else ()))
    codes = rng.integers(-1, len(categories), 400)
    colour = pd.Categorical.from_codes(codes, categories=list(categories))
    X = pd.DataFrame({"colour": colour, "size": rng.standard_normal(400)})
    y = X["size"] + np.isin(codes, (0, 3)) > 1.2
    made = model_of(
        X, y, Column("colour", "category", categories), Column("size", "number")
    )
    write(made, "onnx", tmp_path / "model.onnx")
    feed = {
        "colour": np.full((400, 1), "mauve", dtype=object),
        "size": X[["size"]].to_numpy(),
    }
    stands_for = "(other)" if other else None
    as_known = X.assign(colour=pd.Categorical([stands_for] * 400, list(categories)))
    said = run(onnx.load(tmp_path / "model.onnx"), feed)["vote"]
    np.testing.assert_array_equal(said, made.classifier.vote(as_known))


@pytest.mark.parametrize("form", ["skops", "sklearn"])
def test_a_skops_file_says_what_to_trust(model, rows, tmp_path, form):
    path = tmp_path / "model.skops"
    said = write(model, form, path)
    again = skops.io.load(path, trusted=said["trusted"])
    expected = model.classifier.predict(rows[0])
    np.testing.assert_array_equal(again.predict(rows[0]), expected)


@pytest.mark.parametrize(
    ("form", "name"),
    [("onnx", "a.onnx"), ("skops", "a.skops"), ("sklearn", "a.sklearn.skops")],
)
def test_the_command(model, tmp_path, monkeypatch, form, name):
    monkeypatch.setattr(damvi.model, "load", lambda path: model, raising=False)
    given = ["export", str(tmp_path / "a.damvi"), "--to", form]
    run_of = CliRunner().invoke(main, given)
    assert run_of.exit_code == 0, run_of.output
    assert f"Wrote {tmp_path / name} (" in run_of.output
    assert ("Inputs: size" if form == "onnx" else "trust these types") in run_of.output

    elsewhere = [*given, "-o", str(tmp_path / "elsewhere")]
    said = json.loads(CliRunner().invoke(main, [*elsewhere, "--json"]).output)
    assert (said["to"], said["path"]) == (form, str(tmp_path / "elsewhere"))
    assert CliRunner().invoke(main, [*elsewhere, "--quiet"]).output == ""


def test_what_cannot_be_exported_is_one_line_and_exit_code_1(rows, tmp_path, monkeypatch):
    X = rows[0].assign(colour=pd.Categorical(["red", "blue", "green"] * 100))
    made = model_of(X, (X["colour"] == "red") & (X["size"] > 0))
    monkeypatch.setattr(damvi.model, "load", lambda path: made, raising=False)
    refused = CliRunner().invoke(main, ["export", str(tmp_path / "a"), "--to", "sklearn"])
    assert refused.exit_code == 1
    assert refused.output.startswith("Error: voter ")
    assert len(refused.output.splitlines()) == 1
    assert not list(tmp_path.iterdir())
    assert CliRunner().invoke(main, ["export", "a", "--to", "pickle"]).exit_code == 2
