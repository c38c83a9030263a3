"""Rows without a label on the command line."""

import json
from pathlib import Path

import pytest

from damvi.model import comparison

from .conftest import fraud


@pytest.fixture(autouse=True)
def tables(folder, monkeypatch):
    """200 labelled rows and 100 others; 150 more in a file of their own."""
    monkeypatch.setattr(comparison, "can_load", lambda name: False)  # LightGBM takes long
    data = fraud(300).astype({"is_fraud": object})
    data.loc[200:, "is_fraud"] = ""
    data.to_csv("data.csv", index=False)
    more = fraud(150, seed=3).drop(columns="is_fraud")
    more.to_parquet("more.parquet")
    more.drop(columns=["shop", "when"]).assign(new=1).to_csv("other.csv", index=False)
    more.head(0).to_csv("none.csv", index=False)


FIT = ("fit", "data.csv", "--target", "is_fraud", "--pool", "trees")


def test_they_are_counted_and_by_default_left_out(damvi):
    said = damvi(*FIT).output
    assert "data.csv: 200 rows. Target is_fraud: 24 '1' (positive" in said
    assert "Dropped 100 unlabelled rows" in said
    assert "of 200" in said
    assert "100 unlabelled (not used)" in damvi("info", "model.damvi").output


def test_a_file_of_more(damvi):
    options = ["--unlabeled", "more.parquet", "--unlabeled-weight", "0.5"]
    run = damvi(*FIT, *options)
    assert "250 unlabelled rows" in run.output
    scores = json.loads(Path("model.scores.json").read_text(encoding="utf-8"))
    assert scores["rows"] == 200
    assert scores["unlabeled"] == {"rows": 250, "weight": 0.5}
    assert scores["made"]["unlabeled"]["rows"] == 150
    described = damvi("info", "model.damvi").output
    assert "250 unlabelled (weight 0.5)" in described
    assert damvi("predict", "model.damvi", "more.parquet").output.startswith("150 rows")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--unlabeled", "other.csv"], "other.csv: columns are missing: 'when' and"),
        (["--unlabeled", "none.csv"], "none.csv has a header but no rows"),
        (["--unlabeled", "lost.csv"], "no such file: lost.csv"),
    ],
)
def test_what_is_wrong_is_one_line(damvi, options, words):
    said = damvi(*FIT, *options, code=1)
    assert words in said.stderr
    assert len(said.stderr.splitlines()) == 1
    assert not Path("model.damvi").exists()


def test_nothing_to_learn_from(damvi):
    fraud(300).to_csv("all.csv", index=False)
    command = ["fit", "all.csv", "--target", "is_fraud", "--pool", "trees"]
    said = damvi(*command, "--unlabeled-weight", "0.5", code=1).output
    assert "needs unlabelled rows, but there are none" in said
    fraud(300).assign(is_fraud="").to_csv("none_at_all.csv", index=False)
    said = damvi("fit", "none_at_all.csv", "--target", "is_fraud", code=1).output
    assert "is missing in every row" in said
