"""Predictions are the model's own, row by row, whatever the file and its blocks."""

import json

import numpy as np
import pandas as pd
import pytest

from damvi import load
from damvi.cli.console import no_formula
from damvi.tables import read_table

from .conftest import fraud


@pytest.mark.parametrize("out", ["p.csv", "p.parquet"])
@pytest.mark.parametrize("block", [3000, 1 << 21])
def test_the_same_as_the_classifier_says(damvi, made, folder, monkeypatch, out, block):
    from damvi.tables import delimited

    monkeypatch.setattr(delimited, "BLOCK", block)
    damvi("predict", made / "model.damvi", made / "new.csv", "-o", out, "--jobs", 2)
    found = pd.read_csv(out) if out.endswith("csv") else pd.read_parquet(out)
    model = load(made / "model.damvi")
    frame = read_table(made / "new.csv", model.schema)
    encoded = model.schema.encode(frame)
    np.testing.assert_allclose(found["score"], model.classifier.vote(encoded), rtol=1e-12)
    chance = model.classifier.predict_proba(encoded)[:, 1]
    np.testing.assert_allclose(found["probability"], chance, rtol=1e-12)
    flagged = model.classifier.predict(encoded)
    assert found["decision"].astype(str).tolist() == np.where(flagged, "1", "0").tolist()
    assert 0 < flagged.sum() < len(flagged)


def test_columns_in_any_order_extra_ones_and_unknown_values(damvi, made, folder):
    damvi("predict", made / "model.damvi", made / "new.csv", "-o", "one.csv")
    new = pd.read_csv(made / "new.csv", dtype=str, keep_default_na=False)
    other = new[new.columns[::-1]].assign(is_fraud="1", more="x")
    other.to_csv("other.csv", index=False)
    damvi("predict", made / "model.damvi", "other.csv", "-o", "two.csv")
    assert (folder / "one.csv").read_bytes() == (folder / "two.csv").read_bytes()
    new.assign(shop="nowhere", age="", when="?").to_csv("odd.csv", index=False)
    damvi("predict", made / "model.damvi", "odd.csv", "-o", "three.csv")
    assert len(pd.read_csv("three.csv")) == 200


def test_a_column_written_otherwise_is_named(damvi, made, folder):
    new = pd.read_csv(made / "new.csv", dtype=str, keep_default_na=False)
    odd = new.assign(shop="nowhere", amount="much")
    odd.assign(is_fraud="0").to_csv("odd.csv", index=False)
    said = damvi("predict", made / "model.damvi", "odd.csv", "--json")
    assert json.loads(said.stdout)["unread"] == ["amount", "shop"]
    assert "in 'amount' no value could be read in any row" in said.stderr
    said = damvi("report", made / "model.damvi", "odd.csv")
    assert "in 'shop' no value could be read in any row" in said.stderr
    odd.iloc[0, odd.columns.get_loc("shop")] = "north"
    odd.iloc[-1, odd.columns.get_loc("amount")] = "12.5"
    odd.to_csv("odd.csv", index=False)
    assert damvi("predict", made / "model.damvi", "odd.csv").stderr == ""
    odd.iloc[1:2].to_csv("one.csv", index=False)
    said = damvi("predict", made / "model.damvi", "one.csv")
    assert said.stderr == ""
    assert said.stdout.startswith("1 row judged")


def test_labels_that_look_like_formulas(damvi, folder):
    assert no_formula("=cmd()") == "'=cmd()"
    assert no_formula("@x") == "'@x"
    assert no_formula("-1") == "-1"
    data = fraud(300)
    data["is_fraud"] = np.where(data["is_fraud"] == 1, "=cmd|' /C calc'!A0", "ok")
    data.to_csv("data.csv", index=False)
    damvi("fit", "data.csv", "--target", "is_fraud", "--pool", "trees")
    damvi("predict", "model.damvi", "data.csv", "-o", "p.csv")
    labels = set(pd.read_csv("p.csv")["decision"])
    assert labels == {"'=cmd|' /C calc'!A0", "ok"}
    damvi("predict", "model.damvi", "data.csv", "-o", "p.parquet")
    assert set(pd.read_parquet("p.parquet")["decision"]) == {"=cmd|' /C calc'!A0", "ok"}


def test_a_file_without_rows(damvi, made, folder):
    header = (made / "new.csv").read_text().splitlines()[0]
    (folder / "empty.csv").write_text(header + "\n")
    result = damvi("predict", made / "model.damvi", "empty.csv", code=1)
    assert "has a header but no rows" in result.output
    assert not (folder / "empty.predictions.csv").exists()


def test_default_names(damvi, made, folder):
    for name in ("new.csv.gz", "x.y.parquet", "z.jsonl"):
        frame = fraud(50)
        if name.endswith("parquet"):
            frame.to_parquet(name)
        elif name.endswith("jsonl"):
            frame.to_json(name, orient="records", lines=True)
        else:
            frame.to_csv(name, index=False)
        damvi("predict", made / "model.damvi", name)
    names = {path.name for path in folder.glob("*.predictions.csv")}
    expected = {"new.predictions.csv", "x.y.predictions.csv", "z.predictions.csv"}
    assert names == expected
