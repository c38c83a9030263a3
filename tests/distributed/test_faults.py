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
from damvi.distributed import cluster as clusters
from damvi.distributed import fit

from .conftest import frame_of, same

pytestmark = pytest.mark.slow


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


STEPS = ["labels", "totals", "sketch", "codes", "samples", "grow", "moments", "votes"]


class Staff:
    """Workers that nobody starts again: Dask's nannies do, but not always."""

    def __init__(self, client):
        self.client, self.address = client, client.cluster.scheduler_address
        self.workers = []

    def of(self, n):
        """As many workers as this, at work."""
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        command = "-m", "distributed.cli.dask_worker", self.address
        options = "--no-nanny", "--nthreads", "1", "--no-dashboard", "--memory-limit", "0"
        for _ in range(n - len(self.workers)):
            worker = [sys.executable, *command, *options]
            self.workers.append(subprocess.Popen(worker, stderr=subprocess.DEVNULL))
        until = time.monotonic() + 120
        while len(self.client.nthreads()) != n:  # those killed may not be missed yet
            assert time.monotonic() < until, "no worker came"
            time.sleep(0.05)
        return self.client

    def dismiss(self):
        for worker in self.workers:
            worker.kill()
            worker.wait()


@pytest.fixture(scope="module")
def staff():
    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        staff = Staff(client)
        yield staff
        staff.dismiss()


@pytest.mark.parametrize("step", STEPS)
def test_a_worker_killed_at_any_step(staff, frame, undisturbed, tmp_path, step):
    client, mark = staff.of(2), tmp_path / "killed"
    # It stays, and does no more harm: the mark is there.
    client.register_plugin(KillAt(step, mark), name=f"kill at {step}")
    there = fit(fresh(), dd.from_pandas(frame, npartitions=4), "label", client=client)
    same(there, undisturbed, frame.drop(columns="label"))
    assert mark.exists()


def test_a_task_that_kills_whoever_takes_it(staff, frame, tmp_path, monkeypatch):
    client = staff.of(2)
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    client.register_plugin(KillAt("codes", tmp_path / "killed"), name="kill any")
    table = dd.from_pandas(frame, npartitions=4)
    with pytest.raises(RuntimeError, match="workers die repeatedly"):
        fit(fresh(), table, "label", client=client)


# The last of the staff: what it leaves undone would go on with the next worker.
def test_no_worker_left(staff, frame, tmp_path, monkeypatch):
    staff.dismiss()
    client = staff.of(1)
    monkeypatch.setattr(clusters, "CHECK_EVERY", 0.3)
    monkeypatch.setattr(clusters, "PATIENCE", 3.0)
    client.register_plugin(KillAt("codes", tmp_path / "killed"), name="leave none")
    table = dd.from_pandas(frame, npartitions=4)
    with pytest.raises(RuntimeError, match="the cluster has had no workers"):
        fit(fresh(), table, "label", client=client)


def test_rows_that_are_gone_with_their_cluster(frame):
    with (
        LocalCluster(1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        model = fit(fresh(), dd.from_pandas(frame, npartitions=2), "label", client=client)
        lost = client.submit(time.sleep, 0.5)
        lost.cancel()
        with pytest.raises(RuntimeError, match="lost data that it cannot recompute"):
            clusters.Watch(client).result(lost)
    assert len(model.predict(frame.drop(columns="label"))) == len(frame)
    with pytest.raises(RuntimeError, match="lost the connection to the cluster"):
        model.reweigh(reweight=0.5)
