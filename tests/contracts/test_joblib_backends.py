"""Whatever joblib backend trains the voters, the model is the same."""

import joblib
import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, DAMVIVotingClassifier

VOTERS = {
    "the built-in tree": None,
    "scikit-learn's tree": DecisionTreeClassifier(max_depth=4),
}


@pytest.fixture(
    params=["loky", "threading", pytest.param("dask", marks=pytest.mark.slow), "ray"]
)
def backend(request):
    """The name of a backend that is ready to work."""
    name = request.param
    if name == "dask":
        from distributed import Client, LocalCluster

        # Threads: what is to be shown is that the work goes through Dask and comes back.
        settings = {"processes": False, "dashboard_address": ":0"}
        with LocalCluster(2, **settings) as cluster, Client(cluster):
            yield name
        return
    if name == "ray":
        ray = pytest.importorskip("ray", reason="ray is not installed, so not tried")
        from ray.util.joblib import register_ray

        register_ray()
        ray.init(num_cpus=2, include_dashboard=False)
        yield name
        ray.shutdown()
        return
    yield name


@pytest.mark.slow
@pytest.mark.parametrize("voter", VOTERS.values(), ids=VOTERS)
def test_backends_agree_with_serial(table, fresh, backend, voter):
    X, y = table
    settings = {"n_estimators": 12, "random_state": 0, "votes": "oob", "threshold": "f1"}
    serial = DAMVIClassifier(voter, n_jobs=1, **settings).fit(X, y)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        model = DAMVIClassifier(voter, **settings).fit(X, y)
        votes, answers = model.vote(fresh), model.predict(fresh)
    assert np.array_equal(model.weights_, serial.weights_)
    assert np.array_equal(votes, serial.vote(fresh))
    assert np.array_equal(answers, serial.predict(fresh))


def test_pools_agree_with_serial(table, fresh, backend):
    X, y = table
    pool = [("tree", DecisionTreeClassifier(max_depth=3)), ("bayes", GaussianNB())]
    serial = DAMVIVotingClassifier(pool, n_jobs=1, random_state=0).fit(X, y)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        model = DAMVIVotingClassifier(pool, random_state=0).fit(X, y)
    assert np.array_equal(model.weights_, serial.weights_)
    assert np.array_equal(model.vote(fresh), serial.vote(fresh))
