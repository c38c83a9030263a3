"""Objects of a hostile file that would load, and then fail or contradict themselves."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, QuantileTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, DAMVIVotingClassifier, load, save
from damvi.io import ModelFileError
from damvi.io.container import array_from_bytes, array_to_bytes
from damvi.voters import strong_pool
from damvi.voters.columns import scaled_table

from .models import X4, Y4, X, Y, frame
from .test_hostile_files import (
    content_of,
    decided,
    find,
    fitted,
    flat,
    opened,
    refused,
    sealed,
    state,
)

NUMBER = 10**6
"""That no object of a sound file has."""


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    """Pipelines of the strong pool, of two classes; Platt's curves."""
    named = [one for one in strong_pool(0) if one[0].endswith("linear")]
    named.append(("linear", make_pipeline(scaled_table(), LogisticRegression())))
    model = DAMVIVotingClassifier(named, cv=2, random_state=0).fit(frame(), Y)
    return content_of(model, tmp_path_factory)


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """Of four classes; isotonic curves."""
    by_ranks = make_pipeline(QuantileTransformer(n_quantiles=9), GaussianNB())
    named = [("lda", LinearDiscriminantAnalysis()), ("bayes", by_ranks)]
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    named.append(("codes", make_pipeline(codes, GaussianNB())))
    model = DAMVIVotingClassifier(named, cv=2, calibration="isotonic", random_state=0)
    return content_of(model.fit(np.round(X4), Y4), tmp_path_factory)


@pytest.fixture(scope="module")
def bagged(tmp_path_factory):
    tree = DecisionTreeClassifier(max_depth=2)
    model = DAMVIClassifier(tree, n_estimators=3, random_state=0)
    return content_of(model.fit(X4, Y4), tmp_path_factory)


def change_array(members, stored, change):
    name = stored["at"]
    members[name] = array_to_bytes(change(array_from_bytes(members[name], name)))


def swap(array):
    array[[0, 1]] = array[[1, 0]]
    return array


# What is looked up by its place in an order: answers depended on the order of rows.


@pytest.mark.parametrize(
    ("part", "change", "match"),
    [
        (0, swap, "knots out of order"),
        (0, flat(1, np.nan), "knots out of order"),
        (0, lambda a: a[:-1], "knots without heights"),
        (0, lambda a: a.astype(str), "no knots"),
        (1, swap, "heights out of order"),
        (1, flat(1, np.inf), "heights out of order"),
    ],
)
def test_ranks_out_of_order(linear, part, change, match, tmp_path):
    said, members = opened(linear, tmp_path)
    change_array(members, state(said, "RankScaler")["knots_"][0]["items"][part], change)
    refused(sealed(said, members), tmp_path, match)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (swap, "categories out of order"),
        (lambda a: a * 0, "categories out of order"),
        (lambda a: np.array(["a"] * len(a)), "duplicate categories"),
    ],
)
def test_categories_out_of_order(pool, change, match, tmp_path):
    said, members = opened(pool, tmp_path)
    change_array(members, state(said, "OrdinalEncoder")["categories_"][0], change)
    refused(sealed(said, members), tmp_path, match)


def test_hashes_of_categories_that_trees_have_no_codes_for(tmp_path):
    table = pd.DataFrame({"who": [f"person {k}" for k in range(300)] * 2})
    labels = np.arange(600) % 3 == 0
    model = DAMVIClassifier(n_estimators=2, max_samples=0.5, random_state=0)
    save(model.fit(table, labels), tmp_path / "model.damvi")
    said, members = opened((tmp_path / "model.damvi").read_bytes(), tmp_path)
    find(said["classifier"], "HashedCategories")["state"]["n_buckets"] = 2**53
    refused(sealed(said, members), tmp_path, "buckets out of range")


def test_categories_of_indicators_that_appear_twice(linear, tmp_path):
    said, members = opened(linear, tmp_path)
    twice = {"is": "objects", "shape": [2], "items": ["a", "a"]}
    state(said, "OneHotEncoder")["categories_"][0] = twice
    refused(sealed(said, members), tmp_path, "duplicate categories")


def test_quantiles_out_of_order(pool, tmp_path):
    for name in ("quantiles_", "references_"):
        said, members = opened(pool, tmp_path)
        change_array(members, state(said, "QuantileTransformer")[name], lambda a: -a)
        refused(sealed(said, members), tmp_path, f"{name} out of order")


# Curves.

LINE = {"slope": 1.0, "intercept": 0.0}
BETA = {"for_votes": 1.0, "against": 1.0, "intercept": 0.0}
BETA |= {"scale": 1.0, "low": 0.1, "high": 0.1}
NAN, INF = ({"is": "float", "value": name} for name in ("nan", "inf"))
NAIVE = {"is": "sklearn.naive_bayes.GaussianNB", "number": NUMBER + 1}
NAIVE["state"] = {"priors": None, "var_smoothing": 1e-9}


def knots(votes, heights):
    return {
        name: {"is": "tuple", "items": items}
        for name, items in (("votes", votes), ("log_odds", heights))
    }


def record(kind, values):
    return {"is": f"damvi.{kind}", "number": NUMBER, "state": values}


@pytest.mark.parametrize(
    "log_odds",
    [
        None,
        2.5,
        "text",
        NAIVE,
        record("Line", LINE | {"slope": -1.0}),
        record("Line", LINE | {"slope": "text"}),
        record("Line", LINE | {"intercept": NAN}),
        record("Line", LINE | {"intercept": NAIVE}),
        record("Platt", LINE),
        *(record("BetaCurve", BETA | {name: NAN}) for name in BETA),
        record("BetaCurve", BETA | {"high": NAIVE}),
        record("BetaCurve", BETA | {"against": 1e307}),
        record("BetaCurve", BETA | {"scale": 0.0}),
        record("BetaCurve", BETA | {"low": 0.0}),
        record("Knots", knots([0.0, 1.0], [0.0])),
        record("Knots", knots([1.0, 0.0], [0.0, 1.0])),
        record("Knots", knots([0.0, 1.0], [1.0, 0.0])),
        record("Knots", knots([0.0, 1.0], [0.0, INF])),
        record("Knots", knots([0.0, None], [0.0, 1.0])),
        record("Knots", knots([], [])),
        record("Knots", {"votes": 1.0, "log_odds": 2.0}),
    ],
    ids=lambda one: str(one)[:60],
)
def test_curves_of_probabilities(linear, log_odds, tmp_path):
    """They gave NaN, or a TypeError when asked."""
    said, members = opened(linear, tmp_path)
    curve = decided(said)["calibrator"]["state"]["curves"]["items"][0]["state"]
    curve["log_odds"] = log_odds
    refused(sealed(said, members), tmp_path, "invalid")


@pytest.mark.parametrize("log_odds", [("Line", LINE), ("BetaCurve", BETA)], ids=str)
def test_other_sound_curves_load(linear, log_odds, tmp_path):
    said, members = opened(linear, tmp_path)
    curve = decided(said)["calibrator"]["state"]["curves"]["items"][0]["state"]
    curve["log_odds"] = record(*log_odds)
    path = tmp_path / "other.damvi"
    path.write_bytes(sealed(said, members))
    assert np.isfinite(load(path).predict_proba(frame())).all()


@pytest.mark.parametrize(
    ("name", "value"), [("shift", NAN), ("scale", 0.0), ("scale", None), ("method", 3)]
)
def test_numbers_of_a_probability_curve(linear, name, value, tmp_path):
    said, members = opened(linear, tmp_path)
    curves = decided(said)["calibrator"]["state"]["curves"]
    curves["items"][0]["state"][name] = value
    refused(sealed(said, members), tmp_path, "invalid")


def test_curves_of_two_classes_are_one_for_each_voter(linear, tmp_path):
    for odd in (None, 0.5, NAIVE, record("Platt", LINE | {"slope": NAN})):
        said, members = opened(linear, tmp_path)
        find(fitted(said), "PoolVoters")["state"]["calibrators"][0] = odd
        refused(sealed(said, members), tmp_path, "invalid")


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("calibrated", flat(0, 1e300), "out of range"),
        ("calibrated", flat(0, np.nan), "out of range"),
        ("calibrated", lambda a: -a, "out of order|out of range"),
        ("votes", flat(-1, np.inf), "no knots"),
        ("votes", lambda a: -a, "knots out of order"),
    ],
)
def test_knots_of_a_voter(pool, name, change, match, tmp_path):
    """One number of 1e300 made votes that are not finite."""
    said, members = opened(pool, tmp_path)
    change_array(members, find(fitted(said), "Isotonic")["state"][name], change)
    refused(sealed(said, members), tmp_path, match)


# Classes that nobody else knows, and leaves that are no shares.


@pytest.mark.parametrize("odd", [-1, 4, 2**63 - 2])
def test_a_bagged_voter_of_other_classes(bagged, odd, tmp_path):
    said, members = opened(bagged, tmp_path)
    known = find(fitted(said), "DecisionTreeClassifier")["trained"]["classes"]
    place = 0 if odd < 0 else -1
    change_array(members, known, flat(place, odd))
    refused(sealed(said, members), tmp_path, "voters' classes")


@pytest.mark.parametrize("change", [lambda a: a / 2, lambda a: -a, flat(0, 5.0)])
def test_leaves_that_are_no_shares(bagged, change, tmp_path):
    said, members = opened(bagged, tmp_path)
    values = find(fitted(said), "DecisionTreeClassifier")["trained"]["values"]
    change_array(members, values, change)
    refused(sealed(said, members), tmp_path, "not class shares")


# Numbers that memory was asked for.


def test_a_discriminant_analysis_that_makes_ten_million_columns(pool, tmp_path):
    """1 GiB of names of columns were made, to count them."""
    said, members = opened(pool, tmp_path)
    own = state(said, "LinearDiscriminantAnalysis")
    own.update(_max_components=10**7, _n_features_out=10**7)
    tracemalloc.start()
    try:
        refused(sealed(said, members), tmp_path, "_max_components is 10000000")
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


# Parameters.


@pytest.mark.parametrize(
    "estimators",
    [
        None,
        True,
        2.5,
        [None],
        ["text"],
        [{"is": "tuple", "items": ["name"]}],
        [{"is": "tuple", "items": [3, NAIVE]}],
        [{"is": "tuple", "items": ["name", 2.5]}],
        [{"is": "tuple", "items": ["name", "text"]}],
        [{"is": "tuple", "items": ["name", record("Platt", LINE)]}],
        {"is": "tuple", "items": []},
    ],
    ids=lambda one: str(one)[:60],
)
def test_parameters_of_any_kind(pool, estimators, tmp_path):
    """predict reads the tags of all estimators among the parameters."""
    said, members = opened(pool, tmp_path)
    said["classifier"]["params"]["estimators"] = estimators
    refused(sealed(said, members), tmp_path, "invalid|refers")


@pytest.mark.parametrize("where", ["params", "fitted"])
@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("OneHotEncoder", "dtype", ...),
        ("SimpleImputer", "keep_empty_features", ...),
        ("SimpleImputer", "strategy", 3),
        ("ColumnTransformer", "sparse_threshold", ...),
        ("ColumnTransformer", "sparse_threshold", "text"),
        ("LogisticRegression", "C", -1.0),
        ("Pipeline", "steps", 2.5),
    ],
)
def test_parameters_of_nested_estimators(linear, where, kind, name, value, tmp_path):
    said, members = opened(linear, tmp_path)
    own = find(said["classifier"][where], kind)["state"]
    if value is ...:
        own.pop(name)
    else:
        own[name] = value
    refused(sealed(said, members), tmp_path, "invalid|refers|already")


def test_a_file_cannot_have_the_rows_of_the_caller_changed(tmp_path):
    """Scaled in place, they were scaled again by the next prediction."""
    voter = make_pipeline(StandardScaler(), GaussianNB())
    model = DAMVIVotingClassifier([("scaled", voter)], cv=2, random_state=0).fit(X, Y)
    save(model, tmp_path / "sound.damvi")
    said, members = opened((tmp_path / "sound.damvi").read_bytes(), tmp_path)
    state(said, "StandardScaler")["copy"] = False
    (tmp_path / "hostile.damvi").write_bytes(sealed(said, members))
    rows = X.copy()
    assert np.array_equal(load(tmp_path / "hostile.damvi").vote(rows), model.vote(X))
    assert np.array_equal(rows, X)


def test_what_would_not_load_is_not_saved(tmp_path):
    model = DAMVIVotingClassifier([("bayes", GaussianNB())], cv=2, fit_intercept=False)
    model.fit(X, Y)
    model.voters_.estimators[0].var_smoothing = "text"
    path = tmp_path / "model.damvi"
    with pytest.raises(ModelFileError, match="'var_smoothing' parameter of GaussianNB"):
        save(model, path)
    assert not path.exists()
