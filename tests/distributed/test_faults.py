"""Workers that die: the same answer, or one clear error."""

import os
import signal
import subprocess
import sys
import time

import dask.dataframe as dd
import pytest
from distributed import Client, LocalCluster, WorkerPlugin

from damvi import DAMVIClassifier
from damvi.distributed import fit, waiting

from .conftest import frame_of, same


class KillAt(WorkerPlugin):
    """SIGKILL for the worker that begins a task of a step; for the first one only."""

    def __init__(self, step, mark):
        self.prefix, self.mark = f"damvi-{step}-", str(mark)

    def transition(self, key, start, finish, **_):
        if finish == "executing" and str(key).startswith(self.prefix):
            try:
                os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def frame():
    return frame_of(600)


@pytest.fixture(scope="module")
def undisturbed(frame):
    return fresh().fit(frame.drop(columns="label"), frame["label"])


def fresh():
    return DAMVIClassifier(
        n_estimators=8, bootstrap="poisson", random_state=0, threshold="f1"
    )


STEPS = ["survey", "census", "sketch", "codes", "samples", "grow", "tallies", "votes"]


@pytest.mark.parametrize("step", STEPS)
def test_a_worker_killed_at_any_step(client, frame, undisturbed, tmp_path, step):
    mark = tmp_path / "killed"
    client.register_plugin(KillAt(step, mark), name="kill")
    try:
        there = fit(fresh(), dd.from_pandas(frame, npartitions=4), "label", client=client)
        same(there, undisturbed, frame.drop(columns="label"))
    finally:
        client.unregister_worker_plugin("kill")
    assert mark.exists()


@pytest.fixture
def alone():
    """A cluster whose only worker is not started again."""
    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        command = "-m", "distributed.cli.dask_worker", cluster.scheduler_address
        options = "--no-nanny", "--nthreads", "1", "--no-dashboard"
        worker = subprocess.Popen(
            [sys.executable, *command, *options], stderr=subprocess.DEVNULL
        )
        try:
            client.wait_for_workers(1, timeout=120)
            yield client, cluster.scheduler
        finally:
            worker.kill()
            worker.wait()


def test_no_worker_left(alone, frame, tmp_path, monkeypatch):
    client, _ = alone
    monkeypatch.setattr(waiting, "LOOK_EVERY", 0.3)
    monkeypatch.setattr(waiting, "PATIENCE", 1.0)
    client.register_plugin(KillAt("codes", tmp_path / "killed"), name="kill")
    table = dd.from_pandas(frame, npartitions=4)
    with pytest.raises(RuntimeError, match="no worker is left in the cluster, and none"):
        fit(fresh(), table, "label", client=client)


def test_a_task_that_kills_whoever_takes_it(alone, frame, tmp_path):
    client, scheduler = alone
    scheduler.allowed_failures = 0
    client.register_plugin(KillAt("codes", tmp_path / "killed"), name="kill")
    table = dd.from_pandas(frame, npartitions=4)
    with pytest.raises(RuntimeError, match="workers die again and again"):
        fit(fresh(), table, "label", client=client)


def test_rows_that_are_gone_with_their_cluster(frame):
    with (
        LocalCluster(1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        model = fit(fresh(), dd.from_pandas(frame, npartitions=2), "label", client=client)
        lost = client.submit(time.sleep, 60)
        lost.cancel()
        with pytest.raises(RuntimeError, match="lost data that it cannot make again"):
            waiting.Watch(client).result(lost)
    assert len(model.predict(frame.drop(columns="label"))) == len(frame)
    with pytest.raises(RuntimeError, match="connection to the cluster is lost"):
        model.reweigh(reweight=0.5)
