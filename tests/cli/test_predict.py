"""Predictions are the model's own, row by row, whatever the file and its blocks."""

import csv
import io
import json
import re
import subprocess
import sys
import zipfile
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from damvi import load
from damvi.cli.console import no_formula
from damvi.drift import DriftWarning
from damvi.tables import read_table

from .conftest import fraud


@pytest.mark.parametrize("out", ["p.csv", "p.parquet"])
@pytest.mark.parametrize("block", [3000, 1 << 21])
def test_the_same_as_the_classifier_says(damvi, made, folder, monkeypatch, out, block):
    from damvi.tables import textfiles

    monkeypatch.setattr(textfiles, "BLOCK", block)
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
    # One that is read is not enough to keep quiet.
    odd.iloc[0, odd.columns.get_loc("shop")] = "north"
    odd.iloc[-1, odd.columns.get_loc("amount")] = "12.5"
    odd.to_csv("odd.csv", index=False)
    said = damvi("predict", made / "model.damvi", "odd.csv", "--json")
    found = json.loads(said.stdout)["changed"]
    amount = "'amount': 199 of 200 values are unreadable (0% in training)"
    assert amount in found
    assert "'shop': 199 of 200 values are new categories (0% in training)" in found
    assert "Warning: the data have drifted from the training rows." in said.stderr
    assert amount in said.stderr
    (folder / "odd.predictions.csv").write_text("old")
    said = damvi("predict", made / "model.damvi", "odd.csv", "--strict", code=1)
    assert amount in said.stderr
    assert "Nothing was written" in said.stderr
    assert (folder / "odd.predictions.csv").read_text() == "old"
    assert not damvi("predict", made / "model.damvi", "odd.csv", "--quiet").output
    odd.assign(is_fraud="0", amount="much").to_csv("odd.csv", index=False)
    said = damvi("report", made / "model.damvi", "odd.csv")
    assert "no value in 'amount' could be read" in said.stderr
    odd.iloc[1:2].to_csv("one.csv", index=False)
    said = damvi("predict", made / "model.damvi", "one.csv")
    assert said.stderr == ""
    assert said.stdout.startswith("1 row scored")


@pytest.mark.slow
def test_training_rows_are_noted(damvi, made, folder):
    model = made / "model.damvi"
    rows = pd.read_csv(made / "data.csv", dtype=str, keep_default_na=False)
    told = "whose labels the model has seen. For honest scores, use damvi evaluate."
    said = damvi("predict", model, made / "data.csv", "-o", "p.csv", "--json")
    assert f"Note: the first 600 rows are training rows, {told}" in said.stderr
    assert json.loads(said.stdout)["rows"] == 600
    new = pd.read_csv(made / "new.csv", dtype=str, keep_default_na=False)
    pd.concat([new, rows[:100]]).drop(columns="is_fraud", errors="ignore").to_csv(
        "some.csv", index=False
    )
    said = damvi("predict", model, "some.csv", "-o", "p.csv")
    assert f"Note: 100 of the first 300 rows are training rows, {told}" in said.stderr
    pd.concat([new, rows[:10]]).to_csv("few.csv", index=False)
    for data in ("few.csv", made / "new.csv"):
        assert (
            "training rows, whose"
            not in damvi("predict", model, data, "-o", "p.csv").stderr
        )
    quiet = damvi("predict", model, made / "data.csv", "-o", "p.csv", "--quiet")
    assert quiet.output == ""


def test_amounts_times_a_hundred_are_warned_of(damvi, made, folder):
    new = fraud(2000, seed=1).drop(columns="is_fraud")
    new["amount"] = [str(100 * float(text.replace(",", ""))) for text in new["amount"]]
    new.to_csv("big.csv", index=False)
    said = damvi("predict", made / "model.damvi", "big.csv")
    assert re.search(
        r"'amount': [\d.]+% above [\d.]+ .the maximum in training", said.stderr
    )
    said = damvi("drift", made / "model.damvi", "big.csv", "-o", "drift.html")
    first = "big.csv: 2,000 rows, compared with 600 training rows.\n1 of "
    assert said.stdout.startswith(first)
    assert "<svg" in (folder / "drift.html").read_text()
    said = damvi("drift", made / "model.damvi", "big.csv", "--json")
    first = json.loads(said.stdout)["columns"][0]
    assert first["column"] == "amount"
    assert first["matters"]
    assert first["distance"] > 0.8
    said = damvi("drift", made / "model.damvi", "big.csv", "--strict", code=1)
    assert "'amount'" in said.stderr
    said = damvi("drift", made / "model.damvi", made / "new.csv", "--strict")
    assert "No significant drift in any of the 4 columns" in said.stdout


def messy(n=900):
    """Rows whose ids and comments have all that breaks a naive reader."""
    rng = np.random.default_rng(5)
    odd = ['a "quoted" one', "one,\nin two lines", "", "=1+1", "é; ü", " spaced ", "0012"]
    frame = fraud(n, seed=3).drop(columns="is_fraud")
    frame["payment_id"] = [f"{i:05}" for i in range(n)]
    frame["comment"] = [odd[k] for k in rng.integers(0, len(odd), n)]
    return frame


@pytest.mark.slow
@pytest.mark.parametrize("block", [1 << 11, 1 << 20])
@pytest.mark.parametrize("out", ["p.csv", "-", "p.parquet", "p.xlsx"])
def test_each_row_keeps_its_own_id(damvi, made, folder, monkeypatch, block, out):
    """By Python's own csv, with blank lines, quotes and line breaks, whatever the block."""
    from damvi.tables import reading, textfiles

    monkeypatch.setattr(textfiles, "BLOCK", block)
    monkeypatch.setattr(reading, "ROWS", 128)
    text = messy().to_csv(index=False, lineterminator="\r\n")
    lines = text.split("\r\n0")  # a record begins with its id
    (folder / "messy.csv").write_text("\r\n\r\n0".join(lines), newline="")
    with open("messy.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if any(row.values())]
    carried = ["--id", "payment_id", "--columns", "comment,amount"]
    result = damvi("predict", made / "model.damvi", "messy.csv", "-o", out, *carried)
    if out == "-":
        found = pd.read_csv(io.StringIO(result.stdout), dtype=str, keep_default_na=False)
        assert "rows scored" in result.stderr
    elif out == "p.parquet":
        found = pd.read_parquet(out).fillna("").astype(str)
    elif out == "p.xlsx":
        found = excel_cells(out)
    else:
        found = pd.read_csv(out, dtype=str, keep_default_na=False)
    names = ["payment_id", "comment", "amount", "score", "probability", "decision"]
    assert list(found.columns) == names
    for name in names[:3]:
        assert found[name].tolist() == [row[name] for row in rows]
    damvi("predict", made / "model.damvi", "messy.csv", "-o", "plain.csv")
    plain = pd.read_csv("plain.csv")
    np.testing.assert_allclose(found["score"].astype(float), plain["score"], rtol=1e-12)


def excel_cells(path):
    """What is in a sheet, by the standard library alone; a formula would be an error."""
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(path) as archive:
        sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
    rows = []
    for row in sheet.iter(f"{space}row"):
        cells = dict.fromkeys("ABCDEF", "")
        for cell in row:
            assert cell.find(f"{space}f") is None
            value = "".join(part.text or "" for part in cell.iter() if part.text)
            assert cell.get("t") == "inlineStr" or float(value) == float(value)
            cells[cell.get("r")[0]] = value
        rows.append([*cells.values()])
    return pd.DataFrame(rows[1:], columns=rows[0])


def test_the_top_rows(damvi, made, folder):
    model, new = made / "model.damvi", made / "new.csv"
    damvi("predict", model, new, "-o", "all.csv", "--id", "payment_id")
    found = pd.read_csv("all.csv").sort_values("score", ascending=False, kind="stable")
    said = damvi("predict", model, new, "-o", "top.csv", "--id", "payment_id", "--top", 7)
    pd.testing.assert_frame_equal(
        pd.read_csv("top.csv"), found.head(7).reset_index(drop=True)
    )
    assert "the 7 highest-scoring rows" in said.stdout
    # Without an id the number of the row says which it is.
    damvi("predict", model, new, "-o", "top.csv", "--top", 7)
    top = pd.read_csv("top.csv")
    assert list(top.columns) == ["row", "score", "probability", "decision"]
    assert top["row"].tolist() == (found.head(7).index + 1).tolist()
    said = damvi("predict", model, new, "-o", "top.parquet", "--top", 5000, "--json")
    assert json.loads(said.stdout)["written"] == 200 == len(pd.read_parquet("top.parquet"))


def test_the_same_in_python(damvi, made, folder):
    model, new = load(made / "model.damvi"), made / "new.csv"
    damvi("predict", made / "model.damvi", new, "-o", "p.csv", "--id", "shop")
    told = pd.read_csv("p.csv", keep_default_na=False)
    with pytest.warns(DriftWarning, match=r"'shop': 28\.5% missing .0% in training"):
        model.predict(pd.read_csv(new))  # "NA", which pandas takes for a gap
    frame = pd.read_csv(new, keep_default_na=False, na_values={"age": [""]})
    found = model.predict(frame.set_index(frame.index + 7), id="shop", columns=["age"])
    assert found.index[0] == 7
    assert list(found.columns)[:2] == ["shop", "age"]
    for table in (frame, new):
        found = model.predict(table, id="shop")
        pd.testing.assert_frame_equal(found, told, check_dtype=False)
        top = model.predict(table, id="shop", top=3)
        best = told.sort_values("score", ascending=False, kind="stable").head(3)
        assert top["score"].tolist() == best["score"].tolist()
        with pytest.raises(ValueError, match="no column 'nobody' to carry along"):
            model.predict(table, id="nobody")
    with pytest.raises(ValueError, match="already have a column 'score'"):
        model.predict(frame.assign(score=1), columns=["score"])


@pytest.mark.slow
def test_a_stream_from_and_to_other_commands(made, folder):
    command = [sys.executable, "-m", "damvi", "predict", made / "model.damvi", "-"]
    text = (made / "new.csv").read_bytes()
    run = subprocess.run(
        [*command, "--top", "3"], input=text, capture_output=True, check=True
    )
    assert len(run.stdout.splitlines()) == 4
    assert b"200 rows scored" in run.stderr
    words = [*command, "-o", "p.csv", "--id", "payment_id"]
    run = subprocess.run(words, input=text, capture_output=True)
    assert b"Saved p.csv: payment_id, score, probability" in run.stdout
    assert len(pd.read_csv("p.csv")) == 200
    run = subprocess.run(command, input=b"", capture_output=True)
    assert run.returncode == 1
    assert b"standard input is empty" in run.stderr
    assert not run.stdout


def test_what_cannot_be_asked_of_predict(damvi, made, folder):
    model, new = made / "model.damvi", made / "new.csv"
    said = damvi("predict", model, new, "-o", "-", "--json", code=2)
    assert "both write to standard output" in said.stderr
    said = damvi("predict", model, new, "-o", "p.txt", code=2)
    assert ".csv, .parquet, .xlsx" in said.stderr
    said = damvi("predict", model, new, "--id", "nobody", code=1)
    assert "no column 'nobody' to carry along" in said.stderr
    assert not list(folder.iterdir())


@pytest.mark.slow
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
