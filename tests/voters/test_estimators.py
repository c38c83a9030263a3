"""Votes as fitted classifiers cast them, of two classes and of more."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from damvi.voters import VoteReader

NAMES = np.array(["a", "b", "c", "d"])


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(200, 2, centers=4, random_state=0)


class Silent(ClassifierMixin, BaseEstimator):
    """Has decisions only."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full((len(X), 1), self.classes_[-1])


class Lost(Silent):
    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), np.nan)


@pytest.mark.parametrize("kind", [GaussianNB(), LinearSVC(), RidgeClassifier(), Silent()])
@pytest.mark.parametrize("missing", [None, "a", "c", "d"])
def test_votes_go_to_the_classes_by_name(blobs, kind, missing):
    X, y = blobs
    some = NAMES[y] != missing
    model = kind.fit(X[some], NAMES[y][some])
    shares = VoteReader(NAMES, "soft")(model, X)
    numbers = VoteReader(NAMES, "hard")(model, X)
    assert shares.dtype == np.float32
    assert numbers.dtype == np.uint8
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(NAMES[numbers], np.ravel(model.predict(X)))
    np.testing.assert_array_equal(shares.argmax(axis=1), numbers)
    if missing:
        assert not shares[:, missing == NAMES].any()


def test_two_of_many_classes_have_one_score(blobs):
    X, y = blobs
    some = y < 2
    model = LinearSVC().fit(X[some], NAMES[y][some])
    shares = VoteReader(NAMES, "soft")(model, X)
    np.testing.assert_array_equal(shares[:, 2:], 0)
    np.testing.assert_array_equal(shares[:, 1] > 0.5, model.predict(X) == "b")


@pytest.mark.parametrize("positive", ["no", "yes"])
@pytest.mark.parametrize("kind", [LogisticRegression(), RidgeClassifier(), Silent()])
def test_of_two_classes_votes_are_signed(table, positive, kind):
    X, y = table
    model = kind.fit(X, np.array(["no", "yes"])[y])
    classes = np.array(["no", "yes"] if positive == "yes" else ["yes", "no"])
    hard, soft = (VoteReader(classes, voting)(model, X) for voting in ("hard", "soft"))
    assert (hard.dtype, soft.dtype) == (np.int8, np.float32)
    np.testing.assert_array_equal(hard == 1, np.ravel(model.predict(X)) == positive)
    np.testing.assert_array_equal(np.sign(soft), hard)
    side = 1 if positive == "yes" else -1
    if hasattr(model, "predict_proba"):
        expected = side * (2 * model.predict_proba(X)[:, 1] - 1)
    elif hasattr(model, "decision_function"):
        expected = side * np.tanh(model.decision_function(X) / 2)
    else:
        expected = hard
    np.testing.assert_allclose(soft, expected, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_vote_that_is_no_number(blobs, n_classes):
    X, y = blobs
    model = Lost().fit(X, NAMES[y % n_classes])
    with pytest.raises(ValueError, match="its vote is NaN on 200 rows"):
        VoteReader(NAMES[:n_classes], "soft")(model, X)
