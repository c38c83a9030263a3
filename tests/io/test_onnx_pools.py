"""Pools in onnxruntime: every voter of the strong one, calibrators, what is refused."""

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.base import clone
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

from damvi import DAMVIClassifier, DAMVIVotingClassifier
from damvi.io import to_onnx, to_skops
from damvi.voters import CategoryBoostingClassifier, FastForestClassifier, strong_pool

from .running import agree, weighted
from .tables import FRAMES, FULL4, NAMES, Y4, classes_of, frame

VOTERS = [name for name, _ in strong_pool(0, extended=True)]
SMALLER = {
    "iterations": 40,
    "extratreesclassifier__n_estimators": 20,
    "histgradientboostingclassifier__max_iter": 20,
    "lgbmclassifier__n_estimators": 20,
    "n_estimators": 20,
    "networksclassifier__n_estimators": 3,
    "xgbclassifier__n_estimators": 20,
}


def smaller(voter):
    known = voter.get_params()
    return voter.set_params(**{k: v for k, v in SMALLER.items() if k in known})


@pytest.fixture(scope="module", params=[2, 4])
def strong(request):
    """A strong pool and a table with surprises."""
    X, y = FRAMES[request.param](500, seed=0)
    pool = [(name, smaller(voter)) for name, voter in strong_pool(0, extended=True)]
    model = DAMVIVotingClassifier(pool, cv=2, random_state=0).fit(X, y)
    return model, FRAMES[request.param](400, seed=1, surprises=True)[0]


@pytest.mark.slow
def test_the_strong_pool_as_it_votes(strong):
    model, surprises = strong
    weights = np.arange(1.0, len(VOTERS) + 1)
    weights[VOTERS.index("catboost")] = 0  # on a table with categories
    said = agree(weighted(model, weights / weights.sum()), surprises, atol=1e-6)
    np.testing.assert_allclose(said["probability"].sum(axis=1), 1, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*VOTERS} - {"catboost"}))
def test_each_voter_of_the_strong_pool(strong, name):
    model, surprises = strong
    agree(weighted(model, [voter == name for voter in VOTERS]), surprises, atol=1e-6)


def test_catboost_is_refused_on_a_table_with_categories(strong):
    model, _ = strong
    only = weighted(model, [voter == "catboost" for voter in VOTERS])
    match = r"voter 'catboost' .*tables of categories.* without this voter"
    with pytest.raises(ValueError, match=match):
        to_onnx(only)


def test_the_voters_but_for_catboost_can_be_exported():
    X, y = frame(400, seed=0)
    pool = [
        ("forest", FastForestClassifier(5)),
        ("catboost", CategoryBoostingClassifier(40)),
    ]
    model = DAMVIVotingClassifier(pool, cv=2, random_state=0).fit(X, y)
    used = [(name, one) for name, one in model.estimators_used_ if name != "catboost"]
    again = DAMVIVotingClassifier(used, cv=2, random_state=0).fit(X, y)
    agree(again, X, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_catboost_on_numbers(n_classes):
    X, y = FRAMES[n_classes](500, seed=0)
    numbers = X.select_dtypes("number")
    assert 1 < numbers.shape[1] < X.shape[1]
    voter = smaller(dict(strong_pool(0, extended=True))["catboost"])
    for table in (numbers, numbers.to_numpy(dtype=np.float64)):
        pool = [("catboost", clone(voter)), ("forest", FastForestClassifier(3))]
        model = DAMVIVotingClassifier(pool, cv=2, random_state=0).fit(table, y)
        agree(weighted(model, [1.0, 0.0]), table, atol=1e-6)


def test_the_strong_pool_by_skops(strong, tmp_path):
    model, surprises = strong
    types = to_skops(model, tmp_path / "model.skops")
    again = skops.io.load(tmp_path / "model.skops", trusted=types)
    for method in ("vote", "predict_proba", "predict"):
        ours, theirs = (getattr(one, method)(surprises) for one in (model, again))
        np.testing.assert_array_equal(ours, theirs)


def test_pools_on_arrays_with_values_of_any_size():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3)) * [1.0, 1e30, 1e-30]
    pool = [(name, model) for name, model in strong_pool(0, extended=True) if name in QUICK]
    model = DAMVIVotingClassifier(pool, cv=2, random_state=0).fit(X, X[:, 0] > 1)
    weights = np.full(len(pool), 1 / len(pool))
    fresh = rng.standard_normal((300, 3)) * [1e3, 1e33, 1e-33]
    agree(weighted(model, weights), np.concatenate([X, fresh]), atol=1e-6)


QUICK = ("extra_trees", "lightgbm_pairs", "balanced_forest", "spline_linear")

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
    model = DAMVIVotingClassifier(SMALL, cv=3, random_state=0, **options)
    model.fit(X, np.where(y == 1, "bad", "fine"))
    agree(weighted(model, np.full(len(SMALL), 1 / len(SMALL))), fresh, atol=1e-6)


def test_voters_that_were_fitted_before(table, fresh):
    X, y = table
    named = np.where(y == 1, "bad", "fine")
    pool = [(name, model.fit(X, named)) for name, model in SMALL]
    model = DAMVIVotingClassifier(pool, cv="prefit", random_state=0).fit(X, named)
    agree(weighted(model, np.full(len(SMALL), 1 / len(SMALL))), fresh, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"calibration": "isotonic"},
        {"calibration": "platt"},
        {"calibration": None, "threshold": "vote"},
        {"voting": "hard"},
    ],
    ids=str,
)
def test_ways_of_voting_on_four_classes(options):
    model = DAMVIVotingClassifier(SMALL, cv=3, random_state=0, **options).fit(
        FULL4, NAMES[Y4]
    )
    fresh = np.nan_to_num(classes_of(300, 1)[0])
    agree(weighted(model, np.full(len(SMALL), 1 / len(SMALL))), fresh, atol=1e-6)


def test_prefit_voters_that_know_fewer_classes():
    names = NAMES[Y4]
    known, two = names != "b", np.isin(names, ["a", "z"])
    pool = [
        ("all", LogisticRegression().fit(FULL4, names)),
        ("three", FastForestClassifier(5, random_state=0).fit(FULL4[known], names[known])),
        ("two", LogisticRegression().fit(FULL4[two], names[two])),
    ]
    for voting in ("soft", "hard"):
        model = DAMVIVotingClassifier(pool, cv="prefit", voting=voting, random_state=0)
        agree(weighted(model.fit(FULL4, names), [0.3, 0.3, 0.4]), FULL4, atol=1e-6)


def test_a_class_of_one_row():
    """Models that have not met it learn other numbers for the rest."""
    y = np.where(Y4 == 1, 0, Y4)
    y[np.flatnonzero(y == 0)[0]] = 1
    chosen = ("lightgbm", "xgboost", "catboost", "spline_linear")
    for voter in (
        smaller(voter) for name, voter in strong_pool(0, extended=True) if name in chosen
    ):
        model = DAMVIClassifier(voter, n_estimators=3, max_samples=0.2, random_state=0)
        with pytest.warns(UserWarning, match="drew none of the"):
            model.fit(FULL4, y)
        agree(weighted(model, np.full(3, 1 / 3)), FULL4, atol=1e-6)


@pytest.mark.parametrize("method", ["isotonic", "beta", "platt"])
def test_probabilities_by_each_curve(method):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 2))
    y = X[:, 0] + rng.standard_normal(2000) > 1
    pool = [("linear", LogisticRegression()), ("tree", DecisionTreeClassifier(max_depth=3))]
    model = DAMVIVotingClassifier(pool, cv=2, random_state=0).fit(X, y)
    if method != "isotonic":  # which 300 positives or more choose
        from damvi.decision import calibrate_vote

        model.decision_.calibrator = calibrate_vote(model.vote(X), y, method=method)
    assert model.decision_.calibrator.curves[0].method == method
    far = np.concatenate([X, 100 * X])
    agree(model, far, atol=1e-6)


def test_pipelines_of_the_user():
    X, y = frame(400, seed=0)
    surprises, _ = frame(400, seed=1, surprises=True)
    places = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["wide", "amount"]),
        (OneHotEncoder(handle_unknown="ignore"), ["grade", "colour"]),
        ("passthrough", ["constant"]),
    )
    pool = [
        ("columns", make_pipeline(places, LogisticRegression())),
        ("forest", FastForestClassifier(5, random_state=0)),
    ]
    model = DAMVIVotingClassifier(pool, cv=2, random_state=0).fit(X, y)
    agree(weighted(model, [0.5, 0.5]), surprises, atol=1e-6)


@pytest.mark.parametrize(
    ("voter", "message"),
    [
        (KNeighborsClassifier(), "voter 'odd'.*KNeighborsClassifier.* is not supported"),
        (make_pipeline(StandardScaler(), GaussianNB()), "voter 'odd'.*GaussianNB"),
    ],
)
def test_what_cannot_be_written_is_named(table, voter, message):
    pool = [("forest", FastForestClassifier(5)), ("odd", voter)]
    model = DAMVIVotingClassifier(pool, cv=2, random_state=0).fit(*table)
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
    model = DAMVIVotingClassifier(pool, cv=2, fit_intercept=False, random_state=0)
    model.fit(X, np.arange(120) % 5 == 0)
    with pytest.raises(ValueError, match="its OneHotEncoder"):
        to_onnx(model)
