"""Voters on three or more classes: what they say, and classes that they never met."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from damvi.voters import BaggedVoters, Draws, PoolVoters
from damvi.voters.class_asking import AskClasses, ClassFoldModels
from damvi.voters.folds import deal_folds, split_rows
from damvi.voters.relabelling import Relabelled

NAMES = np.array(["a", "b", "c", "d"])


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(200, 2, centers=4, random_state=0)


class Strict(ClassifierMixin, BaseEstimator):
    """Insists on labels 0, 1, ... without gaps, as some boosters do."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        if not np.array_equal(self.classes_, np.arange(len(self.classes_))):
            raise ValueError(f"gaps in {self.classes_}")
        self.model_ = GaussianNB().fit(X, y)
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


class Silent(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full((len(X), 1), self.classes_[-1])


@pytest.mark.parametrize("kind", [GaussianNB(), LinearSVC(), RidgeClassifier(), Silent()])
@pytest.mark.parametrize("missing", [None, "a", "c", "d"])
def test_votes_go_to_the_classes_by_name(blobs, kind, missing):
    X, y = blobs
    some = NAMES[y] != missing
    model = kind.fit(X[some], NAMES[y][some])
    shares = AskClasses("soft", NAMES)(model, X)
    numbers = AskClasses("hard", NAMES)(model, X)
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
    shares = AskClasses("soft", NAMES)(model, X)
    np.testing.assert_array_equal(shares[:, 2:], 0)
    np.testing.assert_array_equal(shares[:, 1] > 0.5, model.predict(X) == "b")


def test_a_vote_that_is_no_number(blobs):
    class Lost(Silent):
        def predict_proba(self, X):
            return np.full((len(X), 4), np.nan)

    with pytest.raises(ValueError, match="its vote is NaN on 200 rows"):
        AskClasses("soft", NAMES)(Lost().fit(blobs[0], NAMES[blobs[1]]), blobs[0])


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_a_pool_out_of_fold(blobs, refit, voting):
    X, y = blobs
    pool = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=3))]
    options = {"classes": np.arange(4), "seed": 0, "cv": 4, "voting": voting}
    voters, votes, folds = PoolVoters.train(pool, X, y, refit=refit, **options)
    for fold in range(4):
        model = GaussianNB().fit(X[folds != fold], y[folds != fold])
        said = AskClasses(voting, np.arange(4))(model, X[folds == fold])
        np.testing.assert_array_equal(votes[folds == fold, 0], said)
    assert isinstance(voters.estimators[0], GaussianNB if refit else ClassFoldModels)
    cast = voters.votes(X)
    assert cast.shape == ((200, 2, 4) if voting == "soft" else (200, 2))
    spread = cast if voting == "soft" else np.eye(4)[cast]
    expected = np.einsum("ikc,k->ic", spread, [0.3, 0.7])
    np.testing.assert_allclose(voters.weighted_vote(X, np.array([0.3, 0.7])), expected)
    if not refit:
        model = voters.estimators[1]
        mean = np.mean([one.predict_proba(X) for one in model.models], axis=0)
        np.testing.assert_allclose(model.predict_proba(X), mean, atol=1e-6)
        assert (model.predict(X) == y).mean() > 0.6


@pytest.mark.parametrize("lost", [0, 1, 3])
def test_a_class_that_a_fold_never_met_gets_no_share(blobs, lost):
    X, y = blobs
    first = np.flatnonzero(y == lost)
    test = np.union1d(first, np.arange(80))
    rest = np.setdiff1d(np.arange(200), test)
    splits = [(rest, test), (test, rest)]
    options = {"classes": np.arange(4), "seed": 0, "cv": splits, "refit": False}
    voters, votes, folds = PoolVoters.train([("strict", Strict())], X, y, **options)
    assert not votes[folds == 0, 0, lost].any()
    np.testing.assert_allclose(votes.sum(axis=2), 1, atol=1e-6)
    model = voters.estimators[0].models[0]
    assert isinstance(model, Relabelled) == (lost < 3)
    assert lost not in model.predict(X)
    with pytest.raises(AttributeError, match="feature_importances_"):
        model.feature_importances_  # noqa: B018


def test_bagged_voters_that_missed_a_class(blobs):
    X, y = blobs
    y = np.where(np.arange(200) == 7, 1, np.where(y == 1, 0, y))
    draws = Draws.plan(y, max_samples=40, seed=0)
    for estimator in (Strict(), DecisionTreeClassifier()):
        voters, votes = BaggedVoters.train(estimator, X, y, draws, 10, n_classes=4)
        missed = [draws.counts(k)[7] == 0 for k in range(10)]
        assert voters.n_without_class.tolist() == [0, sum(missed), 0, 0]
        assert 0 < sum(missed) < 10
        np.testing.assert_array_equal(votes, voters.votes(X))
        assert not (votes[:, missed] == 1).any()
        more, _ = BaggedVoters.train(estimator, X, y, draws, 12, n_classes=4, known=voters)
        assert more.n_without_class[1] >= sum(missed)


def test_folds_and_draws_are_even_by_class():
    y = np.repeat(np.arange(4), [50, 20, 10, 5])
    folds = deal_folds(y, 0)
    counts = np.array([np.bincount(folds[y == c], minlength=5) for c in range(4)])
    np.testing.assert_array_equal(counts, [[10] * 5, [4] * 5, [2] * 5, [1] * 5])
    _, others = split_rows(5, y[:, None], y, seed=0)
    np.testing.assert_array_equal(folds, others)
    draws = Draws.plan(y, max_samples=17, seed=0, stratified=True)
    for k in range(5):
        rows = np.repeat(y, draws.counts(k))
        assert np.bincount(rows).tolist() == [10, 4, 2, 1]
