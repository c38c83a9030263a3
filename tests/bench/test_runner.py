"""The runner: each cell once, failures as notes, the same answer however it was run."""

import os
import signal
import time

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.metrics import average_precision_score, f1_score
from sklearn.utils import Bunch

from damvi.baselines import METHODS, Method, make_method
from damvi.bench.plan import Plan
from damvi.bench.protocol import Protocol
from damvi.bench.runner import run


def dataset(name="toy", n=300, weights=0.85):
    X, y = make_classification(n, 4, weights=[weights], flip_y=0.1, random_state=1)
    return Bunch(data=X, target=y, name=name, groups=None)


class Sleeper(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        time.sleep(60)


class Suicide(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def registry(monkeypatch):
    def add(name, estimator):
        monkeypatch.setitem(METHODS, name, Method(name, lambda trees, seed: estimator))

    return add


def scores(cells):
    return [
        (c["dataset"], c["method"], c["split"], c["ratio"], c["f1"], c["ap"]) for c in cells
    ]


def test_a_cell_is_fit_on_the_training_rows_and_judged_on_the_others(tmp_path):
    data, protocol = dataset(), Protocol(seed=5)
    cells = run(Plan([data], ["R-DT"], 2), tmp_path, protocol)
    for cell in cells:
        train, test = protocol.split(data.target, None, cell["split"], None)
        model = make_method("R-DT", random_state=5 + cell["split"])
        model.fit(data.data[train], data.target[train])
        flagged = model.predict(data.data[test])
        score = model.predict_proba(data.data[test])[:, 1]
        assert cell["status"] == "done"
        assert cell["f1"] == f1_score(data.target[test], flagged)
        assert cell["ap"] == average_precision_score(data.target[test], score)
        assert cell["test_positives"] == data.target[test].sum()
        assert cell["fit_seconds"] > 0
        assert cell["peak_mb"] >= 0
        assert cell["versions"]["scikit-learn"]


def test_jobs_and_interruptions_change_nothing(tmp_path):
    plan = Plan(
        [dataset("a"), dataset("b", weights=0.9)], ["R-DT", "DAMVI"], 2, (None, 0.2)
    )
    protocol = Protocol(splits="stratified")
    at_once = run(plan, tmp_path / "once", protocol)

    class Enough(Exception):
        pass

    def break_off(done, total, left, cell):
        if cell is not None:
            raise Enough

    for _ in range(5):
        with pytest.raises(Enough):
            run(plan, tmp_path / "bits", protocol, n_jobs=2, follow=break_off)
    seen = []
    resumed = run(
        plan,
        tmp_path / "bits",
        protocol,
        n_jobs=2,
        follow=lambda done, total, left, cell: seen.append((done, total, cell)),
    )
    assert seen[0] == (0, 11, None)  # five of the sixteen are kept
    assert scores(resumed) == scores(at_once)
    # Nothing is left to do, and more splits are added to what is there.
    seen.clear()
    run(plan, tmp_path / "bits", protocol, follow=lambda *told: seen.append(told))
    assert seen == [(0, 0, None, None)]


def test_changed_settings_and_changed_data_do_not_reuse_cells(tmp_path, registry):
    ran = []

    def count(done, total, left, cell):
        ran.append(total)

    data = dataset()
    run(Plan([data], ["R-DT"], 1), tmp_path, Protocol(), follow=count)
    registry("R-DT", DummyClassifier())
    run(Plan([data], ["R-DT"], 1), tmp_path, Protocol(), follow=count)
    data.data = data.data + 1e-9
    run(Plan([data], ["R-DT"], 1), tmp_path, Protocol(), follow=count)
    assert ran == [1, 1, 1, 1, 1, 1]


def test_what_goes_wrong_is_noted_and_the_rest_goes_on(tmp_path, registry):
    registry("slow", Sleeper())
    registry("killed", Suicide())
    few = dataset("few")
    few.target = np.zeros(300, np.int8)
    few.target[::60] = 1  # 5 positives, 3 or so to train on
    plan = Plan([few], ["S-DT", "A-BG", "slow", "killed", "R-DT"], 1)
    protocol = Protocol(splits="stratified")
    cells = {c["method"]: c for c in run(plan, tmp_path, protocol, n_jobs=2, time_limit=2)}
    assert cells["S-DT"]["status"] == cells["A-BG"]["status"] == "failed"
    assert "there are 4 positives to train on" in cells["S-DT"]["note"]
    assert cells["slow"]["status"] == "timeout"
    assert cells["slow"]["note"] == "stopped after 2 seconds"
    assert cells["killed"]["status"] == "died"
    assert "memory" in cells["killed"]["note"]
    assert cells["R-DT"]["status"] == "done"
    # What failed for good is not tried again, what a larger limit might cure is.
    totals = []
    run(plan, tmp_path, protocol, time_limit=1, follow=lambda d, t, *_: totals.append(t))
    assert totals[0] == 1  # the one that died
    run(plan, tmp_path, protocol, time_limit=3, follow=lambda d, t, *_: totals.append(t))
    assert totals[-1] == 2  # and the slow one


def test_a_split_without_test_positives_is_a_note(tmp_path):
    data = dataset()
    data.target = np.zeros(300, np.int8)
    data.target[0] = 1
    cells = run(Plan([data], ["R-DT"], 4), tmp_path, Protocol())
    notes = {cell["note"].split(";")[0] for cell in cells}
    assert any("no positive among the test rows" in note for note in notes)
    assert all(cell["status"] == "failed" for cell in cells)


def test_a_small_memory_budget_runs_one_cell_at_a_time(tmp_path):
    plan = Plan([dataset()], ["R-DT", "uniform"], 2)
    cells = run(plan, tmp_path, Protocol(), n_jobs=2, memory_mb=1)
    assert [cell["status"] for cell in cells] == ["done"] * 4
