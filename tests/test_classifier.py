"""The estimator: what a fit leaves behind, and what prediction does with it."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from damvi import DAMVIClassifier, risks


@pytest.fixture(scope="module")
def model(table):
    return DAMVIClassifier(n_estimators=25, random_state=0).fit(*table)


def votes_of(model, X):
    return np.stack([2 * voter.predict(X) - 1 for voter in model.estimators_], axis=1)


def test_the_weights_lie_on_the_simplex_and_some_are_zero(model):
    assert model.weights_.shape == (25,)
    assert (model.weights_ >= 0).all()
    assert model.weights_.sum() == pytest.approx(1)
    assert (model.weights_ == 0).any()


def test_all_voters_are_kept_with_predict_and_classes(model, fresh):
    assert len(model.estimators_) == 25
    for voter in model.estimators_:
        assert set(voter.predict(fresh)) <= set(voter.classes_)


def test_the_vote_is_the_weighted_sum_of_all_voters_zeros_included(model, fresh):
    vote = votes_of(model, fresh) @ model.weights_
    np.testing.assert_allclose(model.vote(fresh), vote, atol=1e-15)
    assert np.abs(model.vote(fresh)).max() <= 1


def test_voters_of_weight_zero_are_not_asked(model, fresh, monkeypatch):
    def refuse(X):
        raise AssertionError("asked")

    expected = model.vote(fresh)
    idle = np.flatnonzero(model.weights_ == 0)
    assert len(idle)
    for k in idle:
        monkeypatch.setattr(model.estimators_[k], "predict", refuse)
    np.testing.assert_array_equal(model.vote(fresh), expected)


def test_the_sign_of_the_decision_function_is_the_decision(model, fresh):
    decision = model.decision_function(fresh)
    np.testing.assert_array_equal(model.predict(fresh), (decision > 0).astype(int))
    np.testing.assert_array_equal(decision, model.vote(fresh))
    assert 0 < (decision > 0).sum() < len(fresh)


def test_probabilities_are_the_vote_on_a_scale_from_0_to_1(model, fresh):
    proba = model.predict_proba(fresh)
    np.testing.assert_allclose(proba[:, 1], (1 + model.vote(fresh)) / 2, atol=1e-15)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


@pytest.mark.parametrize("solver", ["exact", "slsqp", "uniform"])
def test_the_fitted_figures_are_those_of_the_reweighted_training_sample(table, solver):
    X, y = table
    model = DAMVIClassifier(n_estimators=15, solver=solver, random_state=0).fit(X, y)
    votes, signs, Q = votes_of(model, X), 2 * y - 1, model.weights_
    D = np.where(y == 1, np.exp(-votes.mean(axis=1)), 1)
    assert model.c_bound_ == pytest.approx(risks.c_bound(votes, signs, Q, D), abs=1e-8)
    assert model.gibbs_risk_ == pytest.approx(risks.gibbs_risk(votes, signs, Q, D))
    assert model.disagreement_ == pytest.approx(risks.disagreement(votes, Q, D))


def test_the_solvers_are_ordered_by_their_c_bound(table):
    bound = {
        solver: DAMVIClassifier(n_estimators=15, solver=solver, random_state=0)
        .fit(*table)
        .c_bound_
        for solver in ("exact", "slsqp", "uniform")
    }
    assert bound["exact"] <= bound["slsqp"] + 1e-12
    assert bound["slsqp"] < bound["uniform"]


def test_the_plain_vote_gives_each_voter_the_same_weight(table):
    model = DAMVIClassifier(n_estimators=7, solver="uniform", random_state=0).fit(*table)
    np.testing.assert_allclose(model.weights_, 1 / 7)
    assert len(set(model.weights_)) == 1


def test_the_out_of_bag_score_ranks_the_training_rows(model, table):
    _, y = table
    score = model.oob_decision_function_
    assert score.shape == y.shape
    assert not np.isnan(score).any()
    assert np.abs(score).max() <= 1
    assert score[y == 1].mean() > score[y == 0].mean() + 0.5


def test_rows_never_out_of_bag_have_no_score(table):
    whole = DAMVIClassifier(n_estimators=3, bootstrap=False, max_samples=1.0)
    assert np.isnan(whole.fit(*table).oob_decision_function_).all()
    few = DAMVIClassifier(n_estimators=2, max_samples=1.0, random_state=0).fit(*table)
    missing = np.isnan(few.oob_decision_function_)
    assert 0 < missing.sum() < len(missing)


def test_feature_importances_are_the_weighted_mean_of_the_voters(model):
    expected = sum(
        weight * voter.feature_importances_
        for weight, voter in zip(model.weights_, model.estimators_, strict=True)
    )
    np.testing.assert_allclose(model.feature_importances_, expected)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_.argmax() == 0


def test_voters_without_feature_importances_have_none_to_give(table):
    model = DAMVIClassifier(KNeighborsClassifier(), n_estimators=3).fit(*table)
    assert not hasattr(model, "feature_importances_")
    with pytest.raises(AttributeError, match="KNeighborsClassifier"):
        _ = model.feature_importances_


def test_samples_without_positives_are_one_warning_with_count_and_advice(table):
    X, y = table
    rare = np.zeros_like(y)
    rare[np.flatnonzero(y)[:3]] = 1
    with pytest.warns(UserWarning, match="samples drew none") as caught:
        model = DAMVIClassifier(n_estimators=20, random_state=0).fit(X, rare)
    constant = sum(voter.predict_proba(X)[:, 1].max() == 0 for voter in model.estimators_)
    assert 0 < constant < 20
    assert len(caught) == 1
    message = str(caught[0].message)
    assert f"{constant} of 20 samples" in message
    assert "none of the 3 rows of class 1" in message
    assert "stratified=True" in message
    assert caught[0].filename == __file__


def test_stratified_draws_raise_no_such_warning(table):
    X, y = table
    rare = np.zeros_like(y)
    rare[np.flatnonzero(y)[:3]] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DAMVIClassifier(n_estimators=20, stratified=True, random_state=0)
        model.fit(X, rare)
    assert all(len(voter.classes_) == 2 for voter in model.estimators_)


def test_one_positive_alone_can_be_learned_from(table):
    X, y = table
    lone = np.zeros_like(y)
    lone[X[:, 0].argmax()] = 1
    model = DAMVIClassifier(n_estimators=10, stratified=True, random_state=0).fit(X, lone)
    assert model.pos_label_ == 1
    assert model.predict(X)[X[:, 0].argmax()] == 1


def test_features_that_say_nothing_give_the_plain_vote_and_a_warning():
    X, balanced = np.ones((100, 2)), np.arange(100) % 2
    model = DAMVIClassifier(n_estimators=4, bootstrap=False, max_samples=1.0)
    with pytest.warns(UserWarning, match="No voter is better than chance"):
        model.fit(X, balanced)
    np.testing.assert_array_equal(model.weights_, 0.25)
    assert model.c_bound_ == 1.0


def test_constant_features_and_duplicated_rows_change_nothing_to_worry_about(table):
    X, y = table
    X = np.column_stack([np.repeat(X[:150], 2, axis=0), np.ones(300)])
    y = np.repeat(y[:150], 2)
    model = DAMVIClassifier(n_estimators=10, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.feature_importances_[-1] == 0


def test_a_clone_is_unfitted_and_has_the_same_parameters(model):
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "weights_")


def test_it_can_be_searched_over_inside_a_pipeline(table, fresh):
    steps = make_pipeline(
        StandardScaler().set_output(transform="pandas"),
        DAMVIClassifier(LogisticRegression(), n_estimators=5, random_state=0),
    )
    grid = {
        "damviclassifier__reweight": [True, False],
        "damviclassifier__estimator__C": [0.01, 1.0],
    }
    search = GridSearchCV(steps, grid, scoring="average_precision", cv=2).fit(*table)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ > 0.5
    named = search.best_estimator_[-1].feature_names_in_
    assert named.tolist() == ["x0", "x1", "x2", "x3"]
    assert set(search.predict(fresh)) == {0, 1}


@pytest.mark.parametrize(
    ("threshold", "check"),
    [
        ({"recall": 0.9}, lambda model, y, flags: flags[y == 1].mean() > 0.8),
        ({"cost": (1, 100)}, lambda model, y, flags: flags.mean() > 0.3),
        (0.25, lambda model, y, flags: model.threshold_ == 0.25),
        ("vote", lambda model, y, flags: model.threshold_ == 0),
    ],
    ids=["recall", "cost", "number", "vote"],
)
def test_thresholds(table, threshold, check):
    X, y = table
    model = DAMVIClassifier(threshold=threshold, random_state=0).fit(X, y)
    flags = model.predict(X) == 1
    assert check(model, y, flags)
    assert (flags == (model.decision_function(X) > 0)).all()


def test_shrinkage_draws_the_weights_together(table):
    spread = [
        np.ptp(DAMVIClassifier(shrinkage=s, random_state=0).fit(*table).weights_)
        for s in (0, 0.5, 0.99)
    ]
    assert spread[0] > spread[1] > spread[2]
    assert spread[2] < 0.002


def test_other_settings_without_another_training(table):
    X, y = table
    model = DAMVIClassifier(n_estimators=30, random_state=0).fit(X, y)
    trees = model.estimators_
    again = model.reweigh(shrinkage=0.3, reweight=0.5, threshold="f1")
    assert again is model
    fresh = DAMVIClassifier(
        n_estimators=30, shrinkage=0.3, reweight=0.5, threshold="f1", random_state=0
    ).fit(X, y)
    assert (model.weights_ == fresh.weights_).all()
    assert model.threshold_ == fresh.threshold_
    assert (model.predict(X) == fresh.predict(X)).all()
    assert len(trees) == 30
    with pytest.raises(TypeError, match=", not n_estimators"):
        model.reweigh(n_estimators=3)
    loaded = pickle.loads(pickle.dumps(model))
    assert (loaded.decision_function(X) == model.decision_function(X)).all()
    with pytest.raises(AttributeError, match="not saved, pickled or copied with the model"):
        loaded.reweigh(shrinkage=0)


@pytest.mark.parametrize("wrong", [{"threshold": "bogus"}, {"shrinkage": 1.5}])
def test_a_failed_reweighing_changes_nothing(table, wrong):
    X, y = table
    model = DAMVIClassifier(n_estimators=20, random_state=0).fit(X, y)
    before, chance = model.get_params(), model.predict_proba(X)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        model.reweigh(**{"reweight": 0.5, **wrong})
    assert model.get_params() == before
    np.testing.assert_array_equal(model.predict_proba(X), chance)
    model.reweigh()
