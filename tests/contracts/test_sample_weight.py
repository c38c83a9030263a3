"""What a sample weight means: chances in the draw, and where D starts from."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier, DAMVIVotingClassifier, risks


class Recorder(DecisionTreeClassifier):
    def fit(self, X, y, sample_weight=None):
        self.X_seen_, self.weight_seen_ = X, sample_weight
        return super().fit(X, y, sample_weight=sample_weight)


def model(**options):
    return DAMVIClassifier(**{"n_estimators": 8, "random_state": 0, **options})


def same(one, other, X):
    np.testing.assert_array_equal(one.weights_, other.weights_)
    np.testing.assert_array_equal(one.vote(X), other.vote(X))
    np.testing.assert_array_equal(one.oob_decision_function_, other.oob_decision_function_)
    assert one.c_bound_ == other.c_bound_


@pytest.fixture(scope="module")
def weights(table):
    _, y = table
    return np.random.RandomState(0).randint(0, 5, len(y)) / 4


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("level", [1, 0.1, 1e-250])
def test_equal_weights_are_no_weights(table, fresh, bootstrap, level):
    X, y = table
    plain = model(bootstrap=bootstrap).fit(X, y)
    equal = model(bootstrap=bootstrap).fit(X, y, sample_weight=np.full(len(y), level))
    same(plain, equal, fresh)


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("factor", [3.0, 2.0**-40, 1e9])
def test_the_scale_of_the_weights_is_free(table, fresh, weights, bootstrap, factor):
    X, y = table
    one = model(bootstrap=bootstrap).fit(X, y, sample_weight=weights)
    other = model(bootstrap=bootstrap).fit(X, y, sample_weight=factor * weights)
    same(one, other, fresh)


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("stratified", [True, False])
def test_rows_of_weight_zero_reach_no_voter(table, weights, bootstrap, stratified):
    X, y = table
    fitted = model(estimator=Recorder(), bootstrap=bootstrap, stratified=stratified)
    fitted.fit(X, y, sample_weight=weights)
    ignored = {row.tobytes() for row in X[weights == 0]}
    for voter in fitted.estimators_:
        assert not ignored & {row.tobytes() for row in voter.X_seen_}


def test_labels_of_rows_of_weight_zero_do_not_matter(table, fresh, weights):
    X, y = table
    other = np.where(weights == 0, 1 - y, y)
    one = model(pos_label=1).fit(X, y, sample_weight=weights)
    two = model(pos_label=1).fit(X, other, sample_weight=weights)
    np.testing.assert_array_equal(one.weights_, two.weights_)
    np.testing.assert_array_equal(one.vote(fresh), two.vote(fresh))


def test_with_a_bootstrap_voters_see_whole_numbers(table, weights):
    X, y = table
    fitted = model(estimator=Recorder(), max_samples=0.5)
    fitted.fit(X, y, sample_weight=weights)
    for voter in fitted.estimators_:
        assert voter.weight_seen_.sum() == 150
        assert (voter.weight_seen_ >= 1).all()
        np.testing.assert_array_equal(voter.weight_seen_, np.rint(voter.weight_seen_))


def test_a_fraction_of_max_samples_is_of_the_row_count(table, weights):
    X, y = table
    fitted = model(estimator=Recorder(), max_samples=0.2)
    fitted.fit(X, y, sample_weight=weights / 100)
    assert {voter.weight_seen_.sum() for voter in fitted.estimators_} == {60}


def test_heavier_rows_are_drawn_more_often(table):
    X, y = table
    heavy = np.where(np.arange(len(y)) < 30, 20.0, 1.0)
    fitted = model(estimator=Recorder(), n_estimators=20)
    fitted.fit(X, y, sample_weight=heavy)
    first = {row.tobytes() for row in X[:30]}
    drawn = [
        times
        for voter in fitted.estimators_
        for row, times in zip(voter.X_seen_, voter.weight_seen_, strict=True)
        if row.tobytes() in first
    ]
    assert sum(drawn) / (20 * 60) == pytest.approx(600 / 870, abs=0.05)


def test_without_a_bootstrap_voters_see_the_weights_themselves(table, weights):
    X, y = table
    fitted = model(estimator=Recorder(), bootstrap=False, max_samples=0.5)
    fitted.fit(X, y, sample_weight=weights)
    of_row = {row.tobytes(): weight for row, weight in zip(X, weights, strict=True)}
    for voter in fitted.estimators_:
        expected = [of_row[row.tobytes()] for row in voter.X_seen_]
        np.testing.assert_allclose(voter.weight_seen_, expected)


@pytest.mark.parametrize("reweight", [True, False])
def test_the_examples_weights_start_from_them(table, weights, reweight):
    X, y = table
    fitted = model(reweight=reweight).fit(X, y, sample_weight=weights)
    votes = np.stack([2 * voter.predict(X) - 1 for voter in fitted.estimators_], axis=1)
    D = weights * np.where((y == 1) & reweight, np.exp(-votes.mean(axis=1)), 1)
    expected = risks.c_bound(votes, 2 * y - 1, fitted.weights_, D)
    assert fitted.c_bound_ == pytest.approx(expected, abs=1e-8)


def test_estimators_without_sample_weight_need_the_bootstrap(table, weights):
    X, y = table
    neighbours = KNeighborsClassifier()
    model(estimator=neighbours).fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match="KNeighborsClassifier does not accept"):
        model(estimator=neighbours, bootstrap=False).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("tiny", [1e-300, 1e-12])
def test_huge_ratios_of_weights_are_no_trouble(table, tiny):
    X, y = table
    extreme = np.where(np.arange(len(y)) % 2, 1.0, tiny)
    fitted = model().fit(X, y, sample_weight=extreme)
    assert 0 <= fitted.c_bound_ < 1
    assert fitted.score(X[1::2], y[1::2]) > 0.85


LARGE_AND_SMALL = [0.0, 1e-300, 2.0**-40, 2.0**-31, 2.0**-30, 1e-3, 1.0, 7.0, 1e12, 1e300]


@settings(max_examples=25)
@given(
    weights=st.lists(st.sampled_from(LARGE_AND_SMALL), min_size=3, max_size=3),
    n_classes=st.sampled_from([2, 3]),
    pool=st.booleans(),
)
def test_weights_however_large_or_small_give_a_model_or_a_clear_error(
    weights, n_classes, pool
):
    """A weight of 2**-31 on all positives was a ZeroDivisionError."""
    rng = np.random.default_rng(0)
    y = np.arange(45) % n_classes
    X = rng.normal(size=(45, 2)) + y[:, np.newaxis]
    if pool:
        named = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=2))]
        model = DAMVIVotingClassifier(named, cv=3, random_state=0)
    else:
        model = DAMVIClassifier(DecisionTreeClassifier(), n_estimators=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # voters may be useless then
        refused = None
        try:
            model.fit(X, y, np.array(weights)[y])
        except ValueError as error:
            refused = str(error)
    if refused is not None:
        assert "sample_weight" in refused
        return
    assert np.isfinite(model.weights_).all()
    assert model.weights_.sum() == pytest.approx(1)
    assert not np.isnan(model.predict_proba(X)).any()


def test_a_weight_that_is_rounded_to_nothing_is_none():
    weights = np.array([1.0, 2.0**-31])
    y = np.arange(40) % 2
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = DAMVIVotingClassifier([("bayes", GaussianNB())], random_state=0)
    with pytest.raises(ValueError, match=r"at most 2\*\*-31 of the largest"):
        model.fit(X, y, weights[y])
