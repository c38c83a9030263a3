"""Clusters of worker processes, and tables to fit on."""

import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="session")
def client():
    """Two worker processes of one thread."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def here():
    """A cluster in this process."""
    settings = {"n_workers": 1, "dashboard_address": ":0", "set_as_default": False}
    with Client(processes=False, **settings) as client:
        yield client


def frame_of(n=900, n_classes=2, seed=0):
    """Numbers, whole numbers, flags, gaps and categories; weights, some of them 0."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    frame["few"] = rng.integers(0, 6, n)
    frame["flag"] = rng.random(n) < 0.3
    frame.loc[rng.random(n) < 0.1, "b"] = np.nan
    shops = rng.choice(["x", "north", "älter"], n).astype(object)
    shops[rng.random(n) < 0.05] = None
    frame["shop"] = pd.Categorical(shops, categories=["x", "north", "älter", "unused"])
    score = frame["a"] + frame["few"] / 3 + frame["shop"].eq("x") + rng.normal(size=n) / 2
    cuts = np.quantile(score, [0.85, 0.95][: n_classes - 1])
    names = np.array(["common", "rare", "rarest"], dtype=object)
    frame["label"] = names[np.searchsorted(cuts, score)]
    frame["weight"] = rng.integers(0, 4, n) / 4
    return frame


def same(one, other, X):
    """That two models are one and the same."""
    assert np.array_equal(one.weights_, other.weights_)
    assert np.array_equal(one.threshold_, other.threshold_)
    assert np.array_equal(one.vote(X), other.vote(X))
    assert np.array_equal(one.predict(X), other.predict(X))
    assert one.c_bound_ == other.c_bound_
    assert np.array_equal(
        one.oob_decision_function_, other.oob_decision_function_, equal_nan=True
    )
    assert np.array_equal(one.row_hashes_, other.row_hashes_)
    assert one.pos_label_ == other.pos_label_
    assert one.n_features_in_ == other.n_features_in_
    names = [getattr(model, "feature_names_in_", None) for model in (one, other)]
    assert np.array_equal(*names)
