"""Workers that accept no work: one clear error, and a cluster that can be used again."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial

import dask
import dask.dataframe as dd
import numpy as np
import pytest
from distributed import Client, LocalCluster, WorkerPlugin

from damvi import DAMVIClassifier
from damvi.distributed import DaskTable, fit
from damvi.distributed import cluster as clusters

from .conftest import frame_of, same


class Scripted:
    """A client whose workers are as a script says, and a clock that it moves."""

    status = "running"

    def __init__(self, script, monkeypatch, end=600):
        self.script, self.now, self.end, self.scheduler = script, 0.0, end, self
        self.identity = None
        monkeypatch.setattr(clusters.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(clusters, "wait", self.wait)

    @contextmanager
    def as_current(self):
        yield

    def sync(self, ask, callback_timeout):
        workers = self.script(self.now)
        if workers is None:
            self.now += callback_timeout
            raise TimeoutError
        return {"workers": {f"tcp://{k}": worker for k, worker in enumerate(workers)}}

    def wait(self, futures, timeout, return_when):
        if self.now >= self.end:
            return  # it was worth the wait
        self.now += timeout
        raise TimeoutError


def worker(now, running=0, held=1, status="running", seen=None):
    counts = {"executing": running, "memory": held, "flight": int(now) % 3}
    said = now if seen is None else seen
    metrics = {"task_counts": {state: n for state, n in counts.items() if n}}
    limit = 400_000_000
    return {
        "last_seen": said,
        "metrics": metrics,
        "status": status,
        "memory_limit": limit,
    }


def paused(now, **state):
    return worker(now, status="paused", **state)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (lambda now: [paused(now), paused(now)], "2 of 2 are paused.*memory.*381"),
        (lambda now: [paused(now), worker(now)], "1 of 2 are paused.*memory"),
        (lambda now: [], "the cluster has had no workers.*memory"),
        (lambda now: [worker(now, seen=1), worker(now)], "1 of 2 .*tcp://0.*memory"),
        (lambda now: [worker(now, running=1, seen=1)], "no sign of life from 1 of 1"),
        (lambda now: None, "no sign of life from the cluster's scheduler.*memory"),
    ],
)
def test_what_is_told_after_a_minute(monkeypatch, script, message):
    client = Scripted(script, monkeypatch)
    with pytest.raises(RuntimeError, match=message):
        clusters.Watch(client).wait([])
    assert 60 <= client.now <= 90


@pytest.mark.parametrize(
    "script",
    [
        lambda now: [worker(now, running=1)],
        lambda now: [paused(now, running=1), paused(now)],
        lambda now: [worker(now, running=1), worker(now, seen=1)],
        lambda now: [paused(now, held=now // 30)],  # one result now and then
        lambda now: [worker(now), worker(now)],  # a long way from one to the other
        lambda now: [paused(now)] if now % 50 < 40 else [worker(now, running=1)],
        lambda now: [] if now % 50 < 40 else [worker(now, running=1)],
    ],
)
def test_what_is_no_fault(monkeypatch, script):
    client = Scripted(script, monkeypatch)
    clusters.Watch(client).wait([])
    assert client.now >= 600


def test_a_task_that_the_scheduler_has_lost(monkeypatch):
    client = Scripted(lambda now: [worker(now), worker(now)], monkeypatch, end=2000)
    with pytest.raises(RuntimeError, match=r"all 2 workers are alive.*restart"):
        clusters.Watch(client).wait([])
    assert 900 <= client.now <= 930


def test_time_in_which_the_client_was_stopped_does_not_count(monkeypatch):
    client = Scripted(lambda now: [paused(now)], monkeypatch)
    watch, begin = clusters.Watch(client), clusters.CHECK_EVERY

    def wait(futures, timeout, return_when):
        if client.now > 3600 + begin:
            return
        client.now += 3600 if client.now == begin else timeout
        raise TimeoutError

    monkeypatch.setattr(clusters, "wait", wait)
    watch.wait([])


# With real processes.


def fresh():
    return DAMVIClassifier(n_estimators=16, bootstrap="poisson", random_state=0)


@pytest.fixture(scope="module")
def frame():
    return frame_of(300)


@pytest.fixture(scope="module")
def table(frame):
    return dd.from_pandas(frame, npartitions=4)


@pytest.fixture(scope="module")
def undisturbed(frame):
    return fresh().fit(frame.drop(columns="label"), frame["label"])


@pytest.fixture(scope="module")
def pair():
    """Two worker processes that have a limit of memory, and stop at nothing but it."""
    limits = {"target": False, "spill": False, "pause": 0.99, "terminate": False}
    with (
        dask.config.set({f"distributed.worker.memory.{k}": v for k, v in limits.items()}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="8GB"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        pids = client.run(os.getpid).values()
        yield client
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def set_pause(share, dask_worker):
    dask_worker.memory_manager.memory_pause_fraction = share


@contextmanager
def short_of_memory(client):
    client.run(set_pause, 1e-6)
    try:
        yield
    finally:
        client.run(set_pause, 0.99)
        wait_for(lambda: statuses(client) == {"running"})


def statuses(client):
    return {one["status"] for one in client.scheduler_info()["workers"].values()}


def wait_for(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


@contextmanager
def after(seconds, what, *args):
    """Something that ends a wait which should have ended before."""
    timer = threading.Timer(seconds, what, args)
    timer.start()
    try:
        yield timer
    finally:
        timer.cancel()
        timer.join()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(clusters, "CHECK_EVERY", 0.5)
    monkeypatch.setattr(clusters, "PATIENCE", 4.0)


@pytest.mark.slow
def test_all_workers_paused(pair, table, frame, undisturbed, impatient):
    with short_of_memory(pair), after(40, pair.run, set_pause, 0.99):
        wait_for(lambda: statuses(pair) == {"paused"})
        with pytest.raises(RuntimeError, match=r"2 of 2 are paused .* memory"):
            fit(fresh(), table, "label", client=pair)
    same(
        fit(fresh(), table, "label", client=pair), undisturbed, frame.drop(columns="label")
    )


class StopAt(WorkerPlugin):
    """SIGSTOP for the first worker that begins one of a step's tasks but the first few."""

    def __init__(self, step, mark, spared):
        self.prefix, self.mark, self.spared = f"damvi-{step}-", str(mark), spared

    def transition(self, key, start, finish, **_):
        if finish == "executing" and str(key).startswith(self.prefix):
            self.spared -= 1
            if self.spared < 0:
                with open(self.mark, "x", encoding="utf-8") as file:
                    file.write(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGSTOP)


@pytest.mark.slow
def test_one_worker_stopped(pair, table, frame, undisturbed, impatient, tmp_path):
    mark = tmp_path / "pid"

    def go_on():
        if mark.exists():
            os.kill(int(mark.read_text()), signal.SIGCONT)

    pair.register_plugin(StopAt("grow", mark, 3), name="stop")
    told = "no sign of life from 1 of 2 workers.*memory.* [0-9]+ voters are saved in"
    try:
        with after(40, go_on), pytest.raises(RuntimeError, match=told):
            fit(fresh(), table, "label", client=pair, cache=tmp_path)
    finally:
        go_on()
        pair.unregister_worker_plugin("stop")
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    before = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert before
    model = fit(fresh(), table, "label", client=pair, cache=tmp_path)
    same(model, undisturbed, frame.drop(columns="label"))
    assert before.items() <= {f: f.stat().st_mtime_ns for f in folder.iterdir()}.items()


@pytest.mark.slow
def test_a_long_task_is_no_fault(pair, impatient):
    watch = clusters.Cluster(pair)
    long = watch.submit("long", time.sleep, 10)
    wait_for(lambda: any(pair.processing().values()))
    with short_of_memory(pair):  # a paused worker ends what it has begun
        wait_for(lambda: statuses(pair) == {"paused"})
        watch.watch.wait([long])


@pytest.mark.slow
def test_a_scheduler_that_is_stopped(impatient, tmp_path):
    where = tmp_path / "where.json"
    options = ["--port", "0", "--no-dashboard", "--scheduler-file", str(where)]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", *options]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as scheduler:
        try:
            wait_for(where.exists)
            with Client(scheduler_file=str(where), set_as_default=False) as client:
                future = client.submit(time.sleep, 1)
                with (
                    stopped(scheduler.pid),
                    after(40, scheduler.kill),
                    pytest.raises(RuntimeError, match=r"no sign of life from .* scheduler"),
                ):
                    clusters.Watch(client).wait([future])
        finally:
            scheduler.kill()


@contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_no_worker_at_all(table, monkeypatch):
    monkeypatch.setattr(clusters, "CHECK_EVERY", 0.2)
    monkeypatch.setattr(clusters, "PATIENCE", 0.5)
    settings = {"n_workers": 0, "dashboard_address": ":0", "set_as_default": False}
    with (
        Client(processes=False, **settings) as client,
        pytest.raises(RuntimeError, match=r"the cluster has had no workers.*memory"),
    ):
        fit(fresh(), table, "label", client=client)


# Ctrl-C.


def keys(client):
    """All that the scheduler knows of."""
    found = client.run_on_scheduler(
        lambda dask_scheduler: {
            str(key): bool(task.who_wants) for key, task in dask_scheduler.tasks.items()
        }
    )
    return {key: wanted for key, wanted in found.items() if key.startswith("damvi")}


def n_executing(dask_worker):
    """Tasks that were given up run on, and Dask may lose those asked for meanwhile."""
    return len(dask_worker.state.executing)


def read_when_there(part, frame, mark):
    """Rows that come when a file does."""
    while not mark.exists():
        time.sleep(0.05)
    return frame.iloc[part::2]


@pytest.fixture
def ctrl_c():
    """Ctrl-C is heeded, which it is not in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("direct", [False, True])
def test_ctrl_c_leaves_a_cluster_that_can_be_used(here, frame, tmp_path, direct):
    mark = tmp_path / "go on"
    slow = dd.from_map(read_when_there, range(2), meta=frame[:0], args=[frame, mark])
    before = keys(here)
    X = DaskTable(slow, here) if direct else slow
    begin = fresh().fit if direct else partial(fit, fresh(), client=here)
    with (
        after(1, os.kill, os.getpid(), signal.SIGINT),
        pytest.raises(KeyboardInterrupt) as interrupted,  # holds all frames
    ):
        begin(X, "label")
    wait_for(lambda: not {key for key, wanted in keys(here).items() if wanted} - {*before})
    mark.touch()
    wait_for(lambda: keys(here).keys() <= before.keys())
    wait_for(lambda: not any(here.run(n_executing).values()))
    assert interrupted.traceback
    model = fit(fresh(), slow, "label", client=here)
    assert np.isfinite(model.weights_).all()


def test_ctrl_c_in_a_pass_leaves_the_model(here, frame, table, monkeypatch):
    model = fit(fresh(), table, "label", client=here)
    weights, strength, held = model.weights_, model.reweight, keys(here)
    result = clusters.Watch.result

    def interrupt(self, future):
        raise KeyboardInterrupt

    monkeypatch.setattr(clusters.Watch, "result", interrupt)
    with pytest.raises(KeyboardInterrupt) as interrupted:
        model.reweigh(reweight=0.5)
    wait_for(lambda: keys(here).keys() <= held.keys())
    assert interrupted.traceback
    monkeypatch.setattr(clusters.Watch, "result", result)
    model.reweigh(reweight=0.5)
    model.reweigh(reweight=strength)
    assert np.array_equal(model.weights_, weights)
