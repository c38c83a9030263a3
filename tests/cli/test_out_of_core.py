"""``damvi fit`` on parquet datasets, which are read in blocks."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from damvi import hashing, load
from damvi.model import model as models
from damvi.model import table, why_in_blocks
from damvi.outofcore import cache, pool

from ..outofcore.test_pool import tiny_pool
from .conftest import crops, fraud


@pytest.fixture(autouse=True)
def bins_here(folder, monkeypatch):
    """Bins are left in the folder of the test, if at all."""
    (folder / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "tmp"))


def write(frame, n_parts=3, name="pay"):
    Path(name).mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), n_parts)):
        part = frame.iloc[rows].reset_index(drop=True)
        part.to_parquet(f"{name}/part-{number}.parquet", row_group_size=90)


FIT = ("fit", "pay", "--target", "is_fraud", "--shuffle")  # rows are in order of time


@pytest.mark.slow
def test_a_folder_is_fitted_in_blocks_and_all_is_said(damvi):
    frame = fraud(600).astype({"is_fraud": float})
    frame.loc[5:9, "is_fraud"] = np.nan
    write(frame)
    run = damvi(*FIT)
    assert "(out of core): pay is a folder of 3 parquet files (600 rows, " in run.stderr
    assert "--pool strong is slower: it trains strong models on a sample" in run.stderr
    assert "Dropped 5 rows with a missing 'is_fraud'." in run.stderr
    assert "judged by a sample" not in run.stderr
    assert "pay: 595 rows. Target is_fraud: 71 '1' (positive" in run.stdout
    assert "Not compared with a forest or LightGBM" in run.stdout
    assert "damvi report model.damvi pay\n" in run.stdout
    assert not any(Path("tmp").iterdir())
    said = damvi("info", "model.damvi").output
    assert "fitted on 595 rows, 71 of them positive (11.93%), out of core" in said
    assert "out_of_core: pay is a folder of 3 parquet files" in said
    scores = json.loads(Path("model.scores.json").read_text(encoding="utf-8"))
    assert scores["made"]["data"]["files"] == 3
    assert scores["made"]["data"]["rows"] == 600
    said = damvi("evaluate", "model.damvi", "pay/part-1.parquet").output
    assert "All 200 rows are training rows" in said
    damvi("predict", "model.damvi", "pay/part-1.parquet")


@pytest.mark.slow
def test_a_folder_a_pattern_and_a_file_give_one_model(damvi):
    write(fraud(400))
    fraud(400).to_parquet("one.parquet")
    options = ("--target", "is_fraud", "--shuffle", "--pool", "trees", "--quiet")
    damvi("fit", "pay", *options, "-o", "folder.damvi")
    damvi("fit", "pay/part-*.parquet", *options, "-o", "pattern.damvi")
    damvi("fit", "one.parquet", *options, "--out-of-core", "-o", "one.damvi")
    first, *others = (load(f"{name}.damvi") for name in ("folder", "pattern", "one"))
    for model in others:
        assert np.array_equal(model.classifier.weights_, first.classifier.weights_)
        assert np.array_equal(model.training.vote, first.training.vote)
        assert np.array_equal(model.training.hashes, first.training.hashes)
        assert model.classifier.threshold_ == first.classifier.threshold_


def test_a_file_too_large_for_the_memory(damvi, monkeypatch):
    fraud(200).to_parquet("one.parquet")
    size = 200 * 8 * 8
    monkeypatch.setattr(table, "memory", lambda: 3 * size - 1)
    options = ("--target", "is_fraud", "--shuffle", "--pool", "trees")
    run = damvi("fit", "one.parquet", *options)
    assert (
        "(out of core): 200 rows, 0.0 MB in memory; this machine has 0.0 MB" in run.stderr
    )
    assert "--pool strong" not in run.stderr
    for enough in (3 * size, None):
        monkeypatch.setattr(table, "memory", lambda enough=enough: enough)
        assert why_in_blocks(Path("one.parquet")) is None


def test_the_memory_of_this_machine(monkeypatch, tmp_path):
    there = table.memory()
    assert there is None or there > 2**27
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(table, "LIMITS", (str(limit),))
    limit.write_text("123456\n")
    assert table.memory() == 123456
    limit.write_text("max\n")
    assert table.memory() == there or there is None or table.memory() >= there


@pytest.mark.slow
def test_many_classes_and_options(damvi):
    write(crops(500), name="fields")
    run = damvi("fit", "fields", "--target", "crop", "--drop", "soil", "--json")
    said = json.loads(run.stdout)
    assert said["metric"] == "macro_f1"
    assert said["classes"] == {"maize": 125, "oats": 50, "rye": 50, "wheat": 275}
    assert [c["reason"] for c in said["columns"] if c["name"] == "soil"] == ["as asked"]
    assert "out of core" in damvi("info", "model.damvi").output
    run = damvi("fit", "fields", "--target", "crop", "--positive", "rye", "--metric", "ap")
    assert "Target crop: 50 'rye' (positive" in run.stdout
    damvi("report", "model.damvi", "fields/part-0.parquet")


@pytest.mark.slow
def test_a_strong_pool_on_a_folder(damvi, monkeypatch):
    monkeypatch.setattr(pool, "strong_pool_for", lambda *a, **k: tiny_pool())
    write(fraud(600))
    run = damvi(*FIT, "--pool", "strong", "--sample-rows", "200")
    assert "The voters are" not in run.stderr
    assert "weighted vote" in damvi("info", "model.damvi").output
    scores = json.loads(Path("model.scores.json").read_text(encoding="utf-8"))
    assert scores["made"]["pool"] == "strong"
    assert scores["made"]["sample_rows"] == 200
    assert {"linear", "bayes", "forest"} < {row["model"] for row in scores["leaderboard"]}
    one = load("model.damvi")
    fraud(600).to_parquet("one.parquet", row_group_size=400)
    again = ("fit", "one.parquet", *FIT[2:], "--out-of-core", "--pool", "strong", "--jobs")
    damvi(*again, 1, "--sample-rows", "200", "-o", "one.damvi", "--quiet")
    other = load("one.damvi")
    assert np.array_equal(one.classifier.weights_, other.classifier.weights_)
    assert np.array_equal(one.training.vote, other.training.vote)
    assert np.array_equal(one.training.hashes, other.training.hashes)


@pytest.mark.slow
def test_folders_and_patterns_are_judged_and_predicted(damvi):
    frame = fraud(600).astype({"is_fraud": float})
    frame.loc[5:9, "is_fraud"] = np.nan
    write(frame)
    damvi(*FIT, "--quiet")
    frame.to_parquet("one.parquet")
    whole = json.loads(damvi("evaluate", "model.damvi", "one.parquet", "--json").stdout)
    for data in ("pay", "pay/part-*.parquet"):
        run = damvi("evaluate", "model.damvi", data, "--json")
        assert json.loads(run.stdout) == whole
        assert "Dropped 5 rows with a missing 'is_fraud'." in run.stderr
    new = fraud(300, seed=1)
    write(new, name="new")
    new.to_parquet("new.parquet")
    whole = json.loads(damvi("evaluate", "model.damvi", "new.parquet", "--json").stdout)
    there = json.loads(damvi("evaluate", "model.damvi", "new", "--json").stdout)
    assert there["training_rows"] == 0
    assert there["figures"] == whole["figures"]
    damvi("report", "model.damvi", "pay", "-o", "page.html")
    assert "a sample of" not in Path("page.html").read_text(encoding="utf-8")
    damvi("predict", "model.damvi", "new", "-o", "folder.csv", "--id", "payment_id")
    damvi("predict", "model.damvi", "new.parquet", "-o", "file.csv", "--id", "payment_id")
    assert Path("folder.csv").read_text(encoding="utf-8") == Path("file.csv").read_text(
        encoding="utf-8"
    )
    damvi("predict", "model.damvi", "new/part-*.parquet")
    assert Path("part.predictions.csv").exists()
    damvi("predict", "model.damvi", "new", "-o", "made", "--id", "payment_id")
    parts = [pd.read_parquet(f"made/part-{number}.parquet") for number in range(3)]
    assert pd.concat(parts)["payment_id"].tolist() == new["payment_id"].tolist()
    assert np.allclose(pd.concat(parts)["score"], pd.read_csv("file.csv")["score"])
    again = damvi("predict", "model.damvi", "new", "-o", "made", code=2)
    assert "the folder made exists already" in again.output
    run = damvi("predict", "model.damvi", "new", "-o", "best", "--top", "3", code=2)
    assert "--top writes a single file" in run.output
    run = damvi("evaluate", "model.damvi", "new", "--target", "lost", code=1)
    assert "no column 'lost' in new" in run.output


@pytest.mark.slow
def test_a_page_of_a_large_folder_shows_a_sample(damvi, monkeypatch):
    monkeypatch.setattr(models, "REPORT_ROWS", 150)
    write(fraud(600))
    damvi(*FIT, "--quiet")
    damvi("report", "model.damvi", "pay")
    page = Path("report.html").read_text(encoding="utf-8")
    assert re.search(r"pay, a sample of 1\d\d of 600 rows", page)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--pool", "best"), 2, "--pool best needs all rows in memory"),
        (
            ("--sample-rows", "50"),
            1,
            "sample_rows only applies to strong models on a table",
        ),
        (("--time-limit", "9"), 2, "--time-limit needs all rows in memory"),
        (("--prefer", "speed"), 2, "--prefer needs all rows in memory"),
        (("--unlabeled", "x", "--group", "shop"), 2, "--unlabeled and --group need all"),
        (("--unlabeled-weight", "0"), 2, "needs all rows in memory"),
        (("--drop", "lost"), 1, "no such column 'lost'"),
        (
            ("-o", "pay/part-1.parquet"),
            2,
            "-o would overwrite the input file pay/part-1.parquet",
        ),
    ],
)
def test_what_cannot_be_had(damvi, options, code, words):
    write(fraud(200))
    run = damvi(*FIT, *options, code=code)
    assert words in run.output
    assert "Traceback" not in run.output


def test_rows_in_order_of_time_need_a_word(damvi):
    write(fraud(200))
    run = damvi("fit", "pay", "--target", "is_fraud", code=1)
    assert "the rows are sorted by 'when'" in run.stderr
    assert "use --shuffle" in run.stderr
    assert not Path("model.damvi").exists()


def test_other_files(damvi):
    fraud(100).to_csv("data.csv", index=False)
    run = damvi("fit", "data.csv", "--target", "is_fraud", "--out-of-core", code=2)
    assert "--out-of-core needs parquet" in run.output
    run = damvi("fit", "lost*.parquet", "--target", "is_fraud", code=1)
    assert "lost*.parquet: no parquet files found" in run.output
    Path("empty").mkdir()
    assert (
        "empty: no parquet files found"
        in damvi("fit", "empty", "--target", "x", code=1).output
    )
    assert (
        "no such file: lost.parquet"
        in damvi("fit", "lost.parquet", "--target", "x", code=1).output
    )
    run = damvi("fit", "lost.parquet", "--target", "x", "--out-of-core", code=1)
    assert "no such file: lost.parquet" in run.output


def thinned_model(damvi, monkeypatch, n=900):
    monkeypatch.setattr(hashing, "HASHES_TO_KEEP", 300)
    frame = fraud(n)
    write(frame)
    frame.to_parquet("all.parquet")
    damvi(*FIT, "--quiet")
    return load("model.damvi")


@pytest.mark.slow
def test_of_very_many_rows_a_sample_is_remembered_and_judged(damvi, monkeypatch):
    model = thinned_model(damvi, monkeypatch)
    assert model.classifier.row_hash_step_ == 4
    n_kept = len(model.training.hashes)
    assert 150 < n_kept < 320
    assert "fitted on 900 rows, 108 of them positive" in damvi("info", "model.damvi").output
    run = damvi("evaluate", "model.damvi", "all.parquet")
    assert "remembers one in 4 of its training rows" in run.stdout
    assert f"{n_kept:,} of them are training rows" in run.stdout
    said = json.loads(damvi("evaluate", "model.damvi", "all.parquet", "--json").stdout)
    some = ~np.isnan(model.training.vote)
    assert said["rows"] == some.sum()
    assert said["training_rows"] == n_kept
    assert said["classes"][1]["rows"] == model.training.labels[some].sum()
    flagged = model.training.vote[some] > model.training.threshold[some]
    assert said["confusion"][1][1] == (flagged & model.training.labels[some]).sum()
    assert said["confusion"][0][1] == (flagged & ~model.training.labels[some]).sum()
    run = damvi("report", "model.damvi", "all.parquet")
    assert "one in 4" in run.stdout
    run = damvi("explain", "model.damvi", "all.parquet", "--row", "1")
    assert "training rows" in run.output


@pytest.mark.slow
def test_new_rows_beside_a_sample_are_new_if_enough_can_be_told(damvi, monkeypatch):
    model = thinned_model(damvi, monkeypatch)
    new = fraud(400, seed=5).assign(age=lambda f: f["age"] + 0.5)
    new.to_parquet("new.parquet")
    run = damvi("evaluate", "model.damvi", "new.parquet")
    assert "All 400 rows are new to the model. (It remembers one in 4" in run.stdout
    new.head(12).to_parquet("few.parquet")
    run = damvi("evaluate", "model.damvi", "few.parquet", code=1)
    assert "remembers one in 4" in run.output
    mixed = pd.concat([new, fraud(900).head(100)])
    mixed.to_parquet("mixed.parquet")
    said = json.loads(damvi("evaluate", "model.damvi", "mixed.parquet", "--json").stdout)
    assert 80 < said["rows"] < 170
    assert 10 < said["training_rows"] < 45
    assert len(model.training.hashes) > 45


@pytest.mark.slow
def test_a_sample_of_many_classes(damvi, monkeypatch):
    monkeypatch.setattr(hashing, "HASHES_TO_KEEP", 200)
    write(crops(500), name="fields")
    crops(500).to_parquet("all.parquet")
    damvi("fit", "fields", "--target", "crop", "--quiet")
    training = load("model.damvi").training
    said = json.loads(damvi("evaluate", "model.damvi", "all.parquet", "--json").stdout)
    some = ~np.isnan(training.vote).any(axis=1)
    assert said["rows"] == some.sum() < 200
    rows = [one["rows"] for one in said["classes"]]
    assert rows == np.bincount(training.labels[some], minlength=4).tolist()
    info = damvi("info", "model.damvi").output
    assert "wheat  275 rows" in info
    assert "one in 4" in damvi("report", "model.damvi", "all.parquet").stdout


STOPPED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
from damvi.outofcore.cache import BinCache
from damvi.cli import run

how = int(sys.argv.pop())

def finish(self, part, usual=BinCache.finish):
    usual(self, part)
    if part == 4:
        os.kill(os.getpid(), how)

BinCache.finish = finish
run()
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, getattr(signal, "SIGKILL", signal.SIGTERM)])
def test_an_interrupted_fit_goes_on_from_its_bins(damvi, monkeypatch, how):
    write(fraud(600))
    command = [sys.executable, "-c", STOPPED, *FIT, "--jobs", "1", str(int(how))]
    env = {**os.environ, "TMPDIR": os.path.abspath("tmp")}
    run = subprocess.run(command, capture_output=True, text=True, env=env)
    assert run.returncode == (130 if how == signal.SIGINT else -9), run.stderr
    assert "Traceback" not in run.stderr
    assert not Path("model.damvi").exists()
    (left,) = Path("tmp").iterdir()
    assert left.name.startswith("damvi-bins-")
    done = []

    def finish(self, part, usual=cache.BinCache.finish):
        usual(self, part)
        done.append(part)

    monkeypatch.setattr(cache.BinCache, "finish", finish)
    damvi(*FIT, "--jobs", "1")
    assert done == [5, 6, 7, 8]
    assert not any(Path("tmp").iterdir())
    done.clear()
    damvi(*FIT, "-o", "again.damvi")
    assert sorted(done) == [*range(9)]
    one, other = load("model.damvi"), load("again.damvi")
    assert np.array_equal(one.classifier.weights_, other.classifier.weights_)
    assert np.array_equal(one.training.vote, other.training.vote)
