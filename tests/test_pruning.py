"""Fewer voters: the path, its price, and models that are pruned."""

import pickle

import numpy as np
import pytest
from damvi.pruning import path
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier
from damvi.moments import Moments
from damvi.solvers import exact

POOL = [
    ("linear", LogisticRegression()),
    ("bayes", GaussianNB()),
    ("stump", DecisionTreeClassifier(max_depth=1, random_state=0)),
    ("tree", DecisionTreeClassifier(max_depth=4, random_state=0)),
]


@pytest.fixture(scope="module")
def table():
    return make_classification(
        800, 10, n_informative=5, weights=[0.85], flip_y=0.05, random_state=1
    )


def test_the_path_goes_down_from_the_best_weights_to_the_best_voter():
    rng = np.random.default_rng(0)
    signs = np.where(rng.random(500) < 0.3, 1, -1)
    votes = np.where(signs[:, None] * 0.4 + rng.normal(size=(500, 12)) > 0, 1, -1)
    moments = Moments.of(votes.astype(np.int8), signs)
    found = path(moments, "exact")
    sizes = sorted(found, reverse=True)
    np.testing.assert_array_equal(found[sizes[0]], exact(moments).weights)
    assert sizes[-1] == 1
    bounds = [moments.c_bound(found[size]) for size in sizes]
    assert (np.diff(bounds) >= -1e-12).all()
    for size in sizes:
        kept = np.flatnonzero(found[size])
        assert len(kept) == size
        alone = exact(moments.restricted(kept)).weights
        np.testing.assert_allclose(found[size][kept], alone, atol=1e-12)


@pytest.mark.parametrize("solver", ["exact", "uniform"])
def test_voters_that_are_worth_nothing_can_be_pruned_too(solver):
    rng = np.random.default_rng(0)
    signs = np.where(rng.random(60) < 0.3, 1, -1)
    votes = np.repeat(-signs[:, None], 3, axis=1).astype(np.int8)
    found = path(Moments.of(votes, signs), solver)
    assert min(found) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"votes": "oob", "threshold": "f1"},
        {"estimator": DecisionTreeClassifier(max_depth=3)},
        {"threshold": "joint"},
    ],
)
def test_a_pruned_model_votes_by_the_voters_that_it_kept(table, settings):
    X, y = table
    model = DAMVIClassifier(**{"n_estimators": 30, **settings}, random_state=0).fit(X, y)
    before, voters = model.weights_, model.estimators_
    assert np.count_nonzero(before) > 5
    assert model.prune(max_voters=5) is model
    assert 1 <= len(model.estimators_) <= 5
    assert (model.weights_ > 0).all()
    kept = [voter.predict(X).tolist() for voter in model.estimators_]
    everyone = [voter.predict(X).tolist() for voter in voters]
    assert all(said in everyone for said in kept)
    vote = (2 * np.array(kept).T - 1) @ model.weights_
    np.testing.assert_allclose(model.vote(X), vote, atol=1e-12)
    price = model.pruning_
    assert price.sizes[0] == np.count_nonzero(before)
    assert price.sizes[-1] == len(model.estimators_)
    assert list(price.c_bound) == sorted(price.c_bound)
    assert "average precision" in str(price)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_pool_is_pruned_with_its_calibrators(table):
    X, y = table
    model = DAMVIClassifier(POOL, random_state=0).fit(X, y)
    model.prune(2)
    names = model._voters.names
    alone = DAMVIClassifier([p for p in POOL if p[0] in names], random_state=0).fit(X, y)
    np.testing.assert_allclose(model.vote(X), alone.vote(X), atol=1e-9)
    assert list(model.named_estimators_) == [n for n, _ in POOL if n in names]


def test_pruning_to_more_than_there_are_changes_no_prediction(table):
    X, y = table
    model = DAMVIClassifier(n_estimators=20, random_state=0).fit(X, y)
    vote = model.vote(X)
    model.prune(100)
    np.testing.assert_array_equal(model.vote(X), vote)
    assert len(model.pruning_.sizes) == 1


def test_no_fit_adds_voters_to_a_pruned_model(table):
    X, y = table
    model = DAMVIClassifier(n_estimators=20, warm_start=True, random_state=0).fit(X, y)
    model.prune(3)
    with pytest.raises(ValueError, match="warm_start adds voters"):
        model.set_params(n_estimators=40).fit(X, y)


@pytest.mark.parametrize("bad", [0, -1, 2.5, "3"])
def test_a_number_of_voters_is_needed(table, bad):
    model = DAMVIClassifier(n_estimators=5, random_state=0).fit(*table)
    with pytest.raises(ValueError, match="give a whole number"):
        model.prune(bad)
