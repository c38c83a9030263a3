"""The runner: each cell once, failures as notes, the same answer however it was run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.metrics import average_precision_score, f1_score
from sklearn.utils import Bunch

from benchmarks.paper.methods import METHODS, make_method
from benchmarks.paper.protocol import Protocol
from benchmarks.paper.runner import Plan, run

pytestmark = pytest.mark.slow


def env():
    """Of a process that imports the experiments, which are no package."""
    root = Path(__file__).parents[2]
    paths = [str(root), str(root / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


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
        monkeypatch.setitem(METHODS, name, lambda seed: estimator)

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
    cells = {c["method"]: c for c in run(plan, tmp_path, protocol, n_jobs=2, time_limit=8)}
    assert cells["S-DT"]["status"] == cells["A-BG"]["status"] == "failed"
    assert "only 4 training rows" in cells["S-DT"]["note"]
    assert cells["slow"]["status"] == "timeout"
    assert cells["slow"]["note"] == "stopped after 8 seconds"
    assert cells["killed"]["status"] == "died"
    assert "memory" in cells["killed"]["note"]
    assert cells["R-DT"]["status"] == "done"
    # What failed is tried again, what took too long only with more time.
    totals = []
    run(plan, tmp_path, protocol, time_limit=7, follow=lambda d, t, *_: totals.append(t))
    assert totals[0] == 3
    run(plan, tmp_path, protocol, time_limit=9, follow=lambda d, t, *_: totals.append(t))
    assert totals[-1] == 4


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


def test_groups_of_any_kind_stay_together_and_belong_to_the_key(tmp_path):
    data, protocol = dataset(), Protocol(splits="groups")
    data.groups = np.array([f"customer {i // 10}" for i in range(300)])
    plan = Plan([data], ["R-DT"], 1)
    assert run(plan, tmp_path, protocol)[0]["status"] == "done"
    totals = []
    data.groups = np.array([f"site {i % 7}" for i in range(300)])
    run(plan, tmp_path, protocol, follow=lambda d, t, *_: totals.append(t))
    assert totals[0] == 1
    data.groups = None
    with pytest.raises(ValueError, match="toy has none"):
        run(plan, tmp_path, protocol)


def test_two_datasets_of_one_name_are_refused(tmp_path):
    with pytest.raises(ValueError, match="two datasets have the name toy"):
        run(Plan([dataset(), dataset()], ["R-DT"], 1), tmp_path, Protocol())


def test_what_the_folder_holds_beyond_the_plan_is_kept_in_view(tmp_path):
    data = dataset()
    run(Plan([data], ["R-DT", "uniform"], 2), tmp_path, Protocol())
    cells = run(Plan([data], ["R-DT"], 1), tmp_path, Protocol())
    assert [(c["method"], c["split"]) for c in cells] == [
        ("R-DT", 0),
        ("uniform", 0),
        ("R-DT", 1),
        ("uniform", 1),
    ]
    # Other datasets too, but not what was made of other data or with other trees.
    cells = run(Plan([dataset("other")], ["R-DT"], 1), tmp_path, Protocol())
    assert [c["dataset"] for c in cells] == ["other", *["toy"] * 4]
    data.data = data.data + 1
    cells = run(Plan([data], ["R-DT"], 1), tmp_path, Protocol())
    assert [c["dataset"] for c in cells] == ["toy", "other"]
    cells = run(Plan([data], ["R-DT"], 1, trees="cart"), tmp_path, Protocol())
    assert len(cells) == 1


def test_a_killed_runner_takes_its_long_cells_along(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        """
import sys, time
from pathlib import Path
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Bunch
from benchmarks.paper.methods import METHODS
from benchmarks.paper.protocol import Protocol
from benchmarks.paper.runner import Plan, run
class Sleeper(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        Path(sys.argv[1], "asleep").touch()
        time.sleep(600)
METHODS["sleeper"] = lambda seed: Sleeper()
if __name__ == "__main__":
    y = np.arange(100) % 5 == 0
    data = Bunch(data=np.ones((100, 1)), target=y, name="toy", groups=None)
    run(Plan([data], ["sleeper"], 1), Path(sys.argv[1]), Protocol())
"""
    )
    runner = subprocess.Popen([sys.executable, str(script), str(tmp_path)], env=env())
    while not (tmp_path / "asleep").exists():
        assert runner.poll() is None
        time.sleep(0.1)
    workers = psutil.Process(runner.pid).children(recursive=True)
    runner.kill()
    runner.wait()
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert not alive
    # The next run clears away what this one left.
    assert (tmp_path / ".scratch").exists()
    run(Plan([dataset()], ["R-DT"], 1), tmp_path, Protocol())
    assert not (tmp_path / ".scratch").exists()
