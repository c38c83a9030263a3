"""``damvi fit --cluster``: the same model, by the workers of a Dask cluster."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from distributed import LocalCluster

from damvi import hashing, load
from damvi.cli import console
from damvi.model import prepare_dataset

from .conftest import crops, fraud
from .test_out_of_core import FIT, write


def same(one, other):
    assert np.array_equal(one.classifier.weights_, other.classifier.weights_)
    assert np.array_equal(one.classifier.threshold_, other.classifier.threshold_)
    assert np.array_equal(one.training.vote, other.training.vote, equal_nan=True)
    assert np.array_equal(one.training.hashes, other.training.hashes)
    assert np.array_equal(one.training.labels, other.training.labels)
    assert one.scores == other.scores
    assert one.schema == other.schema


@pytest.mark.slow
def test_a_local_cluster_gives_the_model_of_one_machine(damvi, folder, monkeypatch):
    monkeypatch.setattr(hashing, "HASHES_TO_KEEP", 300)
    frame = fraud(700).astype({"is_fraud": float})
    frame.loc[5:9, "is_fraud"] = np.nan
    write(frame)
    damvi(*FIT, "-o", "one.damvi", "--quiet")
    run = damvi(*FIT, "-o", "other.damvi", "--cluster", "local", "--jobs", "2")
    assert "Using 2 workers (2 threads) on a Dask cluster on this machine" in run.stderr
    one, other = load("one.damvi"), load("other.damvi")
    assert one.classifier.row_hash_step_ == 4
    same(one, other)


@pytest.fixture(scope="module")
def address():
    """A cluster that runs already."""
    with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address


@pytest.mark.slow
def test_a_cluster_by_its_address(damvi, folder, address):
    write(crops(400), name="fields")
    command = ("fit", "fields", "--target", "crop", "--quiet", "-o")
    damvi(*command, "one.damvi")
    damvi(*command, "other.damvi", "--cluster", address)
    same(load("one.damvi"), load("other.damvi"))


def test_nobody_answers(damvi, folder, monkeypatch):
    monkeypatch.setattr(console, "PATIENCE", 0.5)
    write(fraud(100))
    run = damvi(*FIT, "--cluster", "tcp://127.0.0.1:9", code=1)
    assert "cannot reach a Dask scheduler at 'tcp://127.0.0.1:9'" in run.output
    assert "Traceback" not in run.output
    run = damvi(*FIT, "--cluster", "nonsense://x", code=1)
    assert "cannot reach a Dask scheduler at 'nonsense://x'" in run.output


def test_nobody_works(damvi, folder):
    write(fraud(100))
    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster:
        run = damvi(*FIT, "--cluster", cluster.scheduler_address, code=1)
    assert "has no workers; start one" in run.output


def test_only_parquet(damvi, folder):
    fraud(100).to_csv("data.csv", index=False)
    run = damvi("fit", "data.csv", "--target", "is_fraud", "--cluster", "local", code=2)
    assert "--cluster needs parquet" in run.output


@pytest.mark.slow
def test_without_dask(folder):
    write(fraud(100))
    code = (
        "import sys; sys.modules['dask'] = sys.modules['distributed'] = None\n"
        "from damvi.cli import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, *FIT, "--cluster", "local"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 1
    assert "pip install 'damvi[dask]'" in run.stderr
    assert "Traceback" not in run.stderr
    assert not Path("model.damvi").exists()


def test_what_workers_read(folder):
    write(fraud(100))
    table, _ = prepare_dataset("pay", "is_fraud", shuffle=True)
    (first, *_) = table.X.groups
    whole = first.read()
    assert [*whole] == [*table.schema.features, "is_fraud"]
    assert np.array_equal(whole["is_fraud"], table.y[: len(whole)])
    for columns in (["is_fraud"], ["shop"], ["is_fraud", "age"]):
        part = first.read(columns)
        pd.testing.assert_frame_equal(part, whole[columns])
    Path(first.file).unlink()
    with pytest.raises(
        FileNotFoundError, match="put the dataset where all workers can read"
    ):
        first.read()
