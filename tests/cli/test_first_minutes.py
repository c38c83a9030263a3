"""The first ten minutes of a user, command by command, with what they see kept beside.

The snapshots are rewritten with DAMVI_SNAPSHOTS=write.
"""

import json
import os
import re
from pathlib import Path

import pytest

from damvi import __version__

from .conftest import fraud

SNAPSHOTS = Path(__file__).parent / "snapshots"


def check(name, printed):
    """Compare with the snapshot, but for what differs from machine to machine."""
    said = printed.replace(__version__, "VERSION")
    said = re.sub(r"\d+(\.\d+)? MB", "SIZE MB", said)
    said = re.sub(r"[-+]?\d+\.\d{3}", "0.000", said)
    said = re.sub(r"\d[\d,]* (found|missed|false alarms|passed|flagged)", r"N \1", said)
    said = re.sub(r"about \d+", "about N", said)
    said = re.sub(r"\(\d+\.\d+%\)", "(N%)", said)
    said = re.sub(r"\d?\.\d\d–\d?\.\d\d", ".00–.00", said)
    verdict = r"^(DAMVI|A plain forest|The best|LightGBM) .*(?=and|beats).*$"
    said = re.sub(verdict, "VERDICT", said, flags=re.M)
    said = re.sub(r"^A single model does .*\n", "", said, flags=re.M)
    said = "\n".join(re.sub(r" +", " ", line).rstrip() for line in said.splitlines()) + "\n"
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("DAMVI_SNAPSHOTS") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(said, encoding="utf-8")
    assert said == path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_minute_1_demo(damvi, folder):
    result = damvi("demo")
    said = result.output
    lines = said.splitlines()
    names = ("DAMVI  ", "LightGBM  ", "best single model  ")
    rows = [line for line in lines if line.startswith(names)]
    assert len(rows) == 3
    for row in rows:
        figures = [float(x) for x in re.findall(r"\d\.\d{3}", row)]
        assert len(figures) == 4
        assert all(0.6 < x < 0.95 for x in figures), row
    assert "10,000 rows" in said
    assert "339 'yes' (positive, 3.39%), 9,661 'no'" in said
    assert "product_type           category  3 categories" in said
    scores = json.loads((folder / "damvi-demo" / "model.scores.json").read_text())
    assert scores["positives"] == 339
    # One model that ties or wins is said to, and how to take it.
    assert ("--pool best" in "\n".join(scores["verdicts"])) == any(
        "tie" in line or "beats DAMVI" in line for line in scores["verdicts"]
    )
    check("demo", said)
    # What it says to type next works as it stands.
    typed = [line.split("#")[0].split() for line in lines if line.startswith("  damvi ")]
    tried = [words for words in typed if "damvi-demo/runs.csv" in words]
    assert {words[1] for words in tried} == {"evaluate", "predict", "explain", "fit"}
    for _, *words in tried:
        if words[0] != "fit":  # once is enough
            damvi(*words)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_minutes_2_to_6(damvi, folder, kind):
    data, new = fraud(), fraud(200, seed=1).drop(columns="is_fraud")
    if kind == "csv":
        data.to_csv("data.csv", index=False)
        new.to_csv("new.csv", index=False)
    else:
        data.to_parquet("data.parquet")
        new.to_parquet("new.parquet")
    fitted = damvi("fit", f"data.{kind}", "--target", "is_fraud").output
    check(f"fit_{kind}", fitted)
    assert "(positive, 12.00%)" in fitted
    assert Path("model.damvi").is_file()
    assert Path("model.scores.json").is_file()
    check(f"report_{kind}", damvi("report", "model.damvi", f"data.{kind}").output)
    page = Path("report.html").read_text(encoding="utf-8")
    assert "is_fraud" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    check(f"predict_{kind}", damvi("predict", "model.damvi", f"new.{kind}").output)
    lines = Path("new.predictions.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "score,probability,decision"
    assert len(lines) == 201
    judged = damvi("evaluate", "model.damvi", f"data.{kind}").output
    assert "All 600 rows are training rows" in judged
    check(f"evaluate_{kind}", judged)


@pytest.mark.slow
def test_minute_8_bench(damvi, folder):
    fraud().to_csv("data.csv", index=False)
    command = ["bench", "data.csv", "--target", "is_fraud", "--contenders", "R-DT,DAMVI"]
    result = damvi(*command, "--splits", "1", "--jobs", "1")
    assert "F1 and average precision over 1 split (70/30)" in result.output
    assert "to damvi-bench/data." in result.output
