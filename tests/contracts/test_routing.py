"""Metadata routing: weights to the vote, everything else to the voters."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.naive_bayes import GaussianNB

from damvi import DAMVIClassifier, DAMVIVotingClassifier


class Noted(ClassifierMixin, BaseEstimator):
    """Remembers the notes that came with its rows."""

    def fit(self, X, y, sample_weight=None, note=None, lesson=None):
        self.classes_ = np.unique(y)
        self.rows_, self.note_, self.lesson_ = X[:, 0], note, lesson
        return self

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def model(estimator=None, **options):
    return DAMVIClassifier(estimator, n_estimators=5, random_state=0, **options)


def test_a_fit_without_metadata_is_the_same_as_ever(table, fresh):
    routed = model().fit(*table).vote(fresh)
    with sklearn.config_context(enable_metadata_routing=False):
        np.testing.assert_array_equal(model().fit(*table).vote(fresh), routed)


def test_values_with_one_entry_a_row_are_drawn_along_with_the_rows(table):
    X, y = table
    estimator = Noted().set_fit_request(note=True, lesson=True)
    fitted = model(estimator).fit(X, y, note=X[:, 0] * 10, lesson="once")
    assert len(fitted.estimators_) == 5
    for voter in fitted.estimators_:
        np.testing.assert_array_equal(voter.note_, voter.rows_ * 10)
        assert voter.lesson_ == "once"


def test_what_the_voters_did_not_ask_for_is_an_error(table):
    X, y = table
    with pytest.raises(UnsetMetadataPassedError, match="note"):
        model(Noted()).fit(X, y, note=X[:, 0])


def test_what_the_voters_declined_is_an_error_too(table):
    X, y = table
    declined = Noted().set_fit_request(note=False)
    with pytest.raises(TypeError, match=r"unexpected argument\(s\) {'note'}"):
        model(declined).fit(X, y, note=X[:, 0])


def test_cross_validation_hands_sample_weight_to_the_fit(table):
    X, y = table
    requesting = model().set_fit_request(sample_weight=True)
    requesting.set_score_request(sample_weight=False)
    weights = np.random.RandomState(0).rand(len(y))
    fits = {}
    for name, w in {"real": weights, "equal": np.ones(len(y))}.items():
        result = cross_validate(
            requesting, X, y, cv=2, params={"sample_weight": w}, return_estimator=True
        )
        fits[name] = result["estimator"]
    plain = cross_validate(model(), X, y, cv=2, params={}, return_estimator=True)[
        "estimator"
    ]
    for i in range(2):
        np.testing.assert_array_equal(fits["equal"][i].vote(X), plain[i].vote(X))
        assert (fits["real"][i].vote(X) != plain[i].vote(X)).any()


def test_a_grid_search_hands_sample_weight_to_the_fit(table):
    X, y = table
    requesting = model().set_fit_request(sample_weight=True)
    requesting.set_score_request(sample_weight=True)
    search = GridSearchCV(requesting, {"reweight": [True, False]}, cv=2)
    weights = np.where(np.arange(len(y)) < 200, 1.0, 0.0)
    search.fit(X, y, sample_weight=weights)
    chosen = model(**search.best_params_).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(search.best_estimator_.vote(X), chosen.vote(X))


def test_sample_weight_without_a_request_is_an_error_of_the_search(table):
    X, y = table
    search = GridSearchCV(model(), {"reweight": [True]}, cv=2)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        search.fit(X, y, sample_weight=np.ones(len(y)))


def test_a_voter_that_requests_sample_weight_itself_sees_the_draw(table, fresh):
    X, y = table
    asking = LogisticRegression().set_fit_request(sample_weight=True)
    fitted = model(asking).fit(X, y)
    plain = model(LogisticRegression()).fit(X, y)
    np.testing.assert_array_equal(fitted.vote(fresh), plain.vote(fresh))


def test_a_pool_hands_groups_to_its_folds_and_notes_to_who_asked(table):
    X, y = table
    groups = np.arange(len(y)) // 4
    pool = [
        ("noted", Noted().set_fit_request(note=True)),
        ("linear", LogisticRegression()),
    ]
    for cv in (None, GroupKFold(3)):
        fitted = DAMVIVotingClassifier(pool, cv=cv, random_state=0)
        fitted.fit(X, y, groups=groups, note=X[:, 0] * 10)
        folds = fitted.votes_.folds
        assert len(np.unique(np.stack([groups, folds]), axis=1).T) == groups.max() + 1
        noted = fitted.estimators_[0]
        np.testing.assert_array_equal(noted.note_, noted.rows_ * 10)
    with pytest.raises(TypeError, match="colour"):
        DAMVIVotingClassifier(pool).fit(X, y, colour=groups)


def test_groups_reach_a_pool_inside_a_grid_search(table):
    X, y = table
    pool = [("bayes", GaussianNB()), ("linear", LogisticRegression())]
    search = GridSearchCV(
        DAMVIVotingClassifier(pool, cv=3), {"shrinkage": [0.0, 0.5]}, cv=GroupKFold(2)
    )
    search.fit(X, y, groups=np.arange(len(y)) // 4)
    assert search.best_estimator_.predict(X).shape == y.shape


def test_a_pool_needs_no_metadata(table):
    pool = [("bayes", GaussianNB()), ("linear", LogisticRegression())]
    routed = DAMVIVotingClassifier(pool, random_state=0).fit(*table)
    with sklearn.config_context(enable_metadata_routing=False):
        plain = DAMVIVotingClassifier(pool, random_state=0).fit(*table)
    np.testing.assert_array_equal(routed.weights_, plain.weights_)
