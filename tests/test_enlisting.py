"""Fits with unlabelled rows: what they change, and what they leave."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, Unlabeled
from damvi.certificate import certify

from .conftest import imbalanced

POOL = [("bayes", GaussianNB()), ("linear", LogisticRegression())]
USES = ["disagreement", "kmeans", "self", ("disagreement", "self")]


def model(estimator=None, **options):
    options = {"n_estimators": 12, "random_state": 0, **options}
    return DAMVIClassifier(estimator, **options)


def test_turned_off_it_is_as_if_there_were_none(table, fresh):
    plain = model().fit(*table)
    off = model(unlabeled=None).fit(*table, X_unlabeled=fresh)
    np.testing.assert_array_equal(plain.weights_, off.weights_)
    np.testing.assert_array_equal(plain._row_prints, off._row_prints)
    assert plain.eta_ == off.eta_ == 0
    with pytest.warns(UserWarning, match="X_unlabeled is left alone") as told:
        default = model().fit(*table, X_unlabeled=fresh)
    assert told[0].filename == __file__
    np.testing.assert_array_equal(plain.weights_, default.weights_)


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(), POOL])
def test_with_eta_0_it_is_the_supervised_fit_out_of_sample(table, fresh, estimator):
    votes = "auto" if estimator is POOL else "oob"
    plain = model(estimator, votes=votes).fit(*table)
    refined = model(estimator, unlabeled="disagreement", eta=0.0)
    refined.fit(*table, X_unlabeled=fresh)
    np.testing.assert_array_equal(plain.weights_, refined.weights_)
    np.testing.assert_array_equal(plain.vote(fresh), refined.vote(fresh))
    for name in ("c_bound_", "gibbs_risk_", "disagreement_", "threshold_"):
        assert getattr(plain, name) == getattr(refined, name)
    np.testing.assert_array_equal(
        plain.oob_decision_function_, refined.oob_decision_function_
    )
    refined.reweigh(eta=0.9)
    assert refined.eta_ == 0.9
    assert (plain.weights_ != refined.weights_).any()


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(), POOL])
def test_only_the_second_moments_of_the_votes_are_kept(table, fresh, estimator):
    fitted = model(estimator, unlabeled="disagreement", eta=0.5)
    fitted.fit(*table, X_unlabeled=fresh)
    votes = fitted.cast_votes(fresh).astype(float)
    np.testing.assert_allclose(
        fitted._ballots.crowd.M, votes.T @ votes / len(fresh), atol=1e-9
    )


def test_blocks_of_unlabelled_rows_make_no_difference(table, fresh, monkeypatch):
    for unlabeled in ("disagreement", ("disagreement", "kmeans")):
        once = model(unlabeled=unlabeled, eta=0.5).fit(*table, X_unlabeled=fresh)
        with monkeypatch.context() as patch:
            patch.setattr("damvi.enlisting.BLOCK_ROWS", 64)
            parts = model(unlabeled=unlabeled, eta=0.5).fit(*table, X_unlabeled=fresh)
        np.testing.assert_array_equal(once._ballots.crowd.M, parts._ballots.crowd.M)
        np.testing.assert_array_equal(once.weights_, parts.weights_)


def test_eta_is_the_best_on_votes_on_unseen_rows(table, fresh):
    fitted = model(unlabeled="disagreement", n_estimators=30).fit(*table, X_unlabeled=fresh)
    from damvi.revising import ETAS
    from sklearn.metrics import average_precision_score

    worth = []
    for eta in ETAS:
        again = model(unlabeled="disagreement", n_estimators=30, eta=eta)
        again.fit(*table, X_unlabeled=fresh)
        unseen = again.oob_decision_function_
        worth.append(average_precision_score(table[1], unseen))
    assert fitted.eta_ == ETAS[int(np.argmax(np.round(worth, 12)))]


@pytest.mark.parametrize("threshold", ["vote", "joint"])
def test_votes_on_unseen_rows_know_nothing_of_the_choice_of_eta(table, fresh, threshold):
    from damvi.choosing import choose_rule
    from damvi.revising import ETAS

    settings = {"unlabeled": "disagreement", "n_estimators": 30, "threshold": threshold}
    fitted = model(**settings).fit(*table, X_unlabeled=fresh)
    rules = [fitted._rule()._replace(eta=eta) for eta in ETAS]
    _, votes = choose_rule(fitted._ballots, rules, "average_precision")
    expected = np.sign(votes) if fitted.pos_label_ == 1 else -np.sign(votes)
    np.testing.assert_array_equal(np.sign(fitted.oob_decision_function_), expected)
    told = clone(fitted).set_params(eta=fitted.eta_).fit(*table, X_unlabeled=fresh)
    np.testing.assert_array_equal(fitted.weights_, told.weights_)
    # Weighed anew it is as if it had been fitted so, the choice of eta included.
    fitted.reweigh(shrinkage=0.1)
    again = model(**settings, shrinkage=0.1).fit(*table, X_unlabeled=fresh)
    assert fitted.eta_ == again.eta_
    for name in ("weights_", "oob_decision_function_"):
        np.testing.assert_array_equal(getattr(fitted, name), getattr(again, name))


@pytest.mark.parametrize("unlabeled", USES)
@pytest.mark.parametrize("bootstrap", [True, False])
def test_every_use_gives_a_model_that_works(table, fresh, unlabeled, bootstrap):
    X, y = table
    weights = np.where(np.arange(len(y)) % 7 == 0, 0.0, 1.0)
    fitted = model(unlabeled=unlabeled, bootstrap=bootstrap, threshold="f1")
    fitted.fit(X, y, sample_weight=weights, X_unlabeled=fresh)
    again = clone(fitted).set_params(n_jobs=2)
    again.fit(X, y, sample_weight=weights, X_unlabeled=Unlabeled(fresh))
    np.testing.assert_array_equal(fitted.vote(fresh), again.vote(fresh))
    assert len(fitted.estimators_) == 12
    rows, labels = imbalanced(400, seed=2)
    assert roc_auc_score(labels, fitted.vote(rows)) > 0.7
    assert fitted.prune(3).weights_.shape[0] <= 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        certify(fitted, rows, labels)
    with pytest.raises(ValueError, match="rows of the fit are among them"):
        certify(fitted, fresh, np.arange(len(fresh)) % 2)


@pytest.mark.parametrize("unlabeled", ["kmeans", "self"])
@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(max_depth=3)])
def test_taught_voters_judge_only_rows_unknown_to_their_committee(
    table, fresh, unlabeled, estimator
):
    fitted = model(estimator, unlabeled=unlabeled).fit(*table, X_unlabeled=fresh)
    ballots = fitted._ballots
    assert ballots.only_unseen
    # Two thirds of each class are known; of the others nothing.
    share = ballots.mask.mean(axis=0)
    np.testing.assert_allclose(share, 1 / 3, atol=0.01)
    expected = fitted.cast_votes(table[0])
    np.testing.assert_array_equal(ballots.votes, expected)


def test_tables_with_categories_and_gaps(table, fresh):
    X, y = table
    frame = pd.DataFrame(X.copy(), columns=list("abcd"))
    more = pd.DataFrame(fresh.copy(), columns=list("abcd"))
    for one in (frame, more):
        one["e"] = pd.Categorical(np.where(one["a"] > 0, "up", "down"))
        one.loc[::9, "b"] = np.nan
    for unlabeled in USES:
        fitted = model(unlabeled=unlabeled).fit(frame, y, X_unlabeled=more)
        assert roc_auc_score(y, fitted.vote(frame)) > 0.8


def test_what_a_teacher_cannot_do_is_refused(table, fresh):
    X, y = table
    with pytest.raises(ValueError, match="a pool takes unlabeled='disagreement'"):
        model(POOL, unlabeled="kmeans").fit(X, y, X_unlabeled=fresh)
    with pytest.raises(ValueError, match="voting='soft' is for a list"):
        model(unlabeled="kmeans", voting="soft").fit(X, y, X_unlabeled=fresh)
    with pytest.raises(ValueError, match="votes='oof' does not go"):
        model(unlabeled="kmeans", votes="oof").fit(X, y, X_unlabeled=fresh)
    with pytest.raises(ValueError, match="warm_start=False"):
        model(unlabeled="self", warm_start=True).fit(X, y, X_unlabeled=fresh)
    one = np.zeros(len(y), int)
    one[3] = 1
    with pytest.raises(ValueError, match="1 labelled row only"):
        model(unlabeled="self").fit(X, one, X_unlabeled=fresh)


def test_warm_start_goes_on_with_unlabelled_rows(table, fresh):
    settings = {"unlabeled": "disagreement", "eta": 0.5}
    warm = model(warm_start=True, n_estimators=6, **settings)
    warm.fit(*table, X_unlabeled=fresh)
    warm.set_params(n_estimators=12).fit(*table, X_unlabeled=fresh)
    cold = model(**settings).fit(*table, X_unlabeled=fresh)
    np.testing.assert_array_equal(warm.weights_, cold.weights_)


@pytest.mark.parametrize("unlabeled", USES[:3])
def test_coin_flips_stay_at_chance(unlabeled):
    found = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        y = (np.arange(300) < 45).astype(int)
        X, fresh = rng.normal(size=(300, 4)), rng.normal(size=(600, 4))
        fitted = model(unlabeled=unlabeled, n_estimators=40, random_state=seed)
        fitted.fit(X, y, X_unlabeled=fresh)
        score = fitted.oob_decision_function_
        known = ~np.isnan(score)
        found.append(roc_auc_score(y[known], score[known]))
    error = np.std(found, ddof=1) / 4
    assert error < 0.02
    assert abs(np.mean(found) - 0.5) < 2.5 * error


def test_no_use_of_unlabelled_rows_is_advised_for_many_classes(table, fresh):
    X, y = table
    with pytest.warns(UserWarning, match=r"three or more classes there is none so far"):
        model().fit(X, np.arange(len(y)) % 3, X_unlabeled=fresh)
    plain = model(unlabeled=()).fit(X, y, X_unlabeled=fresh)  # asks for nothing: no warning
    np.testing.assert_array_equal(plain.weights_, model().fit(X, y).weights_)


def test_eta_with_one_positive(table, fresh):
    X, y = table
    some = np.append(np.flatnonzero(y == 0), np.flatnonzero(y == 1)[0])
    fitted = model(unlabeled="disagreement", stratified=True)
    fitted.fit(X[some], y[some], X_unlabeled=fresh)
    assert 0 <= fitted.eta_ < 1
