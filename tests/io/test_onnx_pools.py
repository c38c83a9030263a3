"""Pools in onnxruntime: every voter of the strong one, calibrators, what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier
from damvi.io import to_onnx
from damvi.voters import FastForestClassifier, strong_pool

from .running import agree
from .tables import frame

VOTERS = [name for name, _ in strong_pool(0)]


@pytest.fixture(scope="module")
def strong():
    X, y = frame(500, seed=0)
    return DAMVIClassifier("strong", cv=2, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def surprises():
    X, _ = frame(400, seed=1, surprises=True)
    return X


def weighted(model, weights):
    model.weights_ = np.asarray(weights, dtype=np.float64)
    return model


def test_the_strong_pool_as_it_votes(strong, surprises):
    weights = np.arange(1.0, len(VOTERS) + 1)
    agree(weighted(strong, weights / weights.sum()), surprises, atol=1e-6)


@pytest.mark.parametrize("name", VOTERS)
def test_each_voter_of_the_strong_pool(strong, surprises, name):
    alone = [voter == name for voter in strong._voters.names]
    agree(weighted(strong, alone), surprises, atol=1e-6)


def test_pools_on_arrays_with_values_of_any_size():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3)) * [1.0, 1e30, 1e-30]
    pool = [(name, model) for name, model in strong_pool(0) if name in QUICK]
    model = DAMVIClassifier(pool, cv=2, random_state=0).fit(X, X[:, 0] > 1)
    weights = np.full(len(pool), 1 / len(pool))
    fresh = rng.standard_normal((300, 3)) * [1e3, 1e33, 1e-33]
    agree(weighted(model, weights), np.concatenate([X, fresh]), atol=1e-6)


QUICK = ("extra_trees", "lightgbm", "balanced_forest", "rank_linear", "linear")

SMALL = [
    ("forest", FastForestClassifier(9, random_state=0)),
    ("random_forest", RandomForestClassifier(9, random_state=0)),
    ("tree", DecisionTreeClassifier(max_depth=2, random_state=0)),
    ("linear", LogisticRegression()),
    ("svm", LinearSVC()),
    ("ridge", RidgeClassifier()),
]


@pytest.mark.parametrize(
    "options",
    [
        {"calibration": "isotonic"},
        {"calibration": "platt"},
        {"calibration": None, "threshold": 0.1},
        {"voting": "hard"},
        {"voting": "hard", "pos_label": "fine"},
        {"pos_label": "fine"},
    ],
    ids=str,
)
def test_ways_of_voting(table, fresh, options):
    X, y = table
    model = DAMVIClassifier(SMALL, cv=3, random_state=0, **options)
    model.fit(X, np.where(y == 1, "bad", "fine"))
    agree(weighted(model, np.full(len(SMALL), 1 / len(SMALL))), fresh, atol=1e-6)


def test_voters_that_were_fitted_before(table, fresh):
    X, y = table
    named = np.where(y == 1, "bad", "fine")
    pool = [(name, model.fit(X, named)) for name, model in SMALL]
    model = DAMVIClassifier(pool, votes="prefit", random_state=0).fit(X, named)
    agree(weighted(model, np.full(len(SMALL), 1 / len(SMALL))), fresh, atol=1e-6)


@pytest.mark.parametrize("method", ["isotonic", "beta", "platt"])
def test_probabilities_by_each_curve(method):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 2))
    y = X[:, 0] + rng.standard_normal(2000) > 1
    pool = [("linear", LogisticRegression()), ("tree", DecisionTreeClassifier(max_depth=3))]
    model = DAMVIClassifier(pool, cv=2, random_state=0).fit(X, y)
    if method != "isotonic":  # which 300 positives or more choose
        from damvi.decision import calibrate_vote

        model._decision.calibrator = calibrate_vote(model.vote(X), y, method=method)
    assert model._calibrator.curves[0].method == method
    far = np.concatenate([X, 100 * X])
    agree(model, far, atol=1e-6)


def test_pipelines_of_the_user(surprises):
    X, y = frame(400, seed=0)
    places = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["wide", "amount"]),
        (OneHotEncoder(handle_unknown="ignore"), ["grade", "colour"]),
        ("passthrough", ["constant"]),
    )
    pool = [
        ("columns", make_pipeline(places, LogisticRegression())),
        ("forest", FastForestClassifier(5, random_state=0)),
    ]
    model = DAMVIClassifier(pool, cv=2, random_state=0).fit(X, y)
    agree(weighted(model, [0.5, 0.5]), surprises, atol=1e-6)


@pytest.mark.parametrize(
    ("voter", "message"),
    [
        (KNeighborsClassifier(), "voter 'odd'.*KNeighborsClassifier.* is not known here"),
        (make_pipeline(StandardScaler(), GaussianNB()), "voter 'odd'.*GaussianNB"),
    ],
)
def test_what_cannot_be_written_is_named(table, voter, message):
    pool = [("forest", FastForestClassifier(5)), ("odd", voter)]
    model = DAMVIClassifier(pool, cv=2, random_state=0).fit(*table)
    with pytest.raises(ValueError, match=message) as refusal:
        to_onnx(weighted(model, [0.5, 0.5]))
    assert "export to skops" in str(refusal.value)
    to_onnx(weighted(model, [1.0, 0.0]))  # who has no vote has no part in it


@pytest.mark.parametrize(
    "encoder", [OneHotEncoder(), OneHotEncoder(handle_unknown="ignore", min_frequency=0.9)]
)
def test_encoders_that_cannot_be_written(encoder):
    X = pd.DataFrame({"c": pd.Categorical(list("abcd") * 30), "x": np.arange(120.0)})
    places = make_column_transformer((encoder, ["c"]), ("passthrough", ["x"]))
    if encoder.min_frequency:
        encoder.set_params(handle_unknown="infrequent_if_exist")
    pool = [("linear", make_pipeline(places, LogisticRegression()))]
    model = DAMVIClassifier(pool, cv=2, random_state=0).fit(X, np.arange(120) % 5 == 0)
    with pytest.raises(ValueError, match="its OneHotEncoder"):
        to_onnx(model)
