"""Bagged voters: what each one is trained on, and how their votes add up."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from damvi.voters import BaggedVoters, BootstrapSampling

from .models import Recorder, Silent, Strict


class Unweighted(Recorder):
    def fit(self, X, y):
        return super().fit(X, y)


def grown(estimator, X, y, draws, n_voters=4, **options):
    return BaggedVoters.train(estimator, X, y.astype(np.int8), draws, n_voters, **options)


def plan(y, **options):
    return BootstrapSampling.plan(y, **{"max_samples": 0.5, "seed": 0, **options})


def test_a_bootstrap_shows_the_voter_how_often_each_row_was_drawn(table):
    X, y = table
    draws = plan(y)
    voters, _ = grown(Recorder(), X, y, draws)
    for k, voter in enumerate(voters.estimators):
        counts = draws.counts(k)
        np.testing.assert_array_equal(voter.X_, X[counts > 0])
        np.testing.assert_array_equal(voter.y_, y[counts > 0])
        np.testing.assert_array_equal(voter.weights_, counts[counts > 0])
        assert voter.random_state == draws.random_state(k)


def test_sample_weight_under_a_bootstrap_reaches_voters_only_through_the_draw(table):
    X, y = table
    weights = np.random.RandomState(0).rand(len(y))
    draws = plan(y, sample_weight=weights)
    voters, _ = grown(Recorder(), X, y, draws, sample_weight=weights)
    counts = draws.counts(0)
    np.testing.assert_array_equal(voters.estimators[0].weights_, counts[counts > 0])
    assert counts.max() > 1


def test_an_estimator_without_sample_weight_gets_repeated_rows(table):
    X, y = table
    draws = plan(y)
    voters, _ = grown(Unweighted(), X, y, draws)
    rows = np.repeat(np.arange(len(y)), draws.counts(1))
    np.testing.assert_array_equal(voters.estimators[1].X_, X[rows])


def test_without_a_bootstrap_voters_see_the_real_weights(table):
    X, y = table
    weights = np.random.RandomState(0).rand(len(y))
    draws = plan(y, replace=False, sample_weight=weights)
    voters, _ = grown(Recorder(), X, y, draws, sample_weight=weights)
    drawn = draws.counts(2) > 0
    np.testing.assert_array_equal(voters.estimators[2].X_, X[drawn])
    np.testing.assert_array_equal(voters.estimators[2].weights_, weights[drawn])


def test_without_bootstrap_or_weights_voters_see_plain_rows(table):
    X, y = table
    voters, _ = grown(Recorder(), X, y, plan(y, replace=False))
    assert voters.estimators[0].weights_ is None


def test_real_weights_need_an_estimator_that_takes_them(table):
    X, y = table
    draws = plan(y, replace=False)
    with pytest.raises(ValueError, match=r"KNeighborsClassifier.*bootstrap=True"):
        grown(KNeighborsClassifier(), X, y, draws, sample_weight=np.ones(len(y)))


def test_fit_params_with_one_value_a_row_are_drawn_along(table):
    X, y = table
    draws = plan(y)
    voters, _ = grown(Recorder(), X, y, draws, fit_params={"note": np.arange(len(y))})
    expected = np.flatnonzero(draws.counts(0))
    np.testing.assert_array_equal(voters.estimators[0].note_, expected)
    voters, _ = grown(Recorder(), X, y, draws, fit_params={"note": "as it is"})
    assert voters.estimators[0].note_ == "as it is"


def test_votes_are_one_byte_and_those_of_the_voters(table):
    X, y = table
    voters, votes = grown(DecisionTreeClassifier(), X, y, plan(y))
    assert votes.dtype == np.int8
    for k, voter in enumerate(voters.estimators):
        np.testing.assert_array_equal(votes[:, k], 2 * voter.predict(X) - 1)


def test_a_sample_of_one_class_makes_a_constant_voter_and_is_counted(table):
    X, y = table
    rare = np.zeros_like(y)
    rare[:2] = 1
    draws = plan(rare, max_samples=0.1)
    missed = [not draws.counts(k)[:2].any() for k in range(20)]
    assert 0 < sum(missed) < 20
    voters, votes = grown(LogisticRegression(), X, rare, draws, 20)
    assert voters.n_without_class.tolist() == [0, sum(missed)]
    assert (votes[:, missed] == -1).all()


def test_a_sample_of_positives_only_makes_a_constant_voter_too(table):
    X, y = table
    common = np.ones_like(y)
    common[:2] = 0
    voters, votes = grown(LogisticRegression(), X, common, plan(common, max_samples=5))
    assert (votes == 1).all()
    assert voters.n_without_class.tolist() == [4, 0]


@pytest.mark.parametrize("estimator", [Strict(), DecisionTreeClassifier()], ids=str)
def test_samples_that_missed_one_of_many_classes(estimator):
    X, y = make_blobs(200, 2, centers=4, random_state=0)
    y = np.where(np.arange(200) == 7, 1, np.where(y == 1, 0, y))
    draws = plan(y, max_samples=40)
    voters, votes = BaggedVoters.train(estimator, X, y, draws, 10, n_classes=4)
    missed = [draws.counts(k)[7] == 0 for k in range(10)]
    assert voters.n_without_class.tolist() == [0, sum(missed), 0, 0]
    assert 0 < sum(missed) < 10
    np.testing.assert_array_equal(votes, voters.votes(X))
    assert not (votes[:, missed] == 1).any()
    more, _ = BaggedVoters.train(estimator, X, y, draws, 12, n_classes=4, known=voters)
    assert more.n_without_class[1] >= sum(missed)


def test_every_nested_random_state_is_seeded(table):
    X, y = table
    estimator = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_features=1))
    draws = plan(y)
    voters, _ = grown(estimator, X, y, draws)
    for k, voter in enumerate(voters.estimators):
        assert voter[-1].random_state == draws.random_state(k)


def test_growing_keeps_the_voters_and_asks_them_again(table):
    X, y = table
    draws = plan(y)
    few, _ = grown(DecisionTreeClassifier(), X, y, draws, 3)
    more, votes = grown(DecisionTreeClassifier(), X, y, draws, 5, known=few)
    _, at_once = grown(DecisionTreeClassifier(), X, y, draws, 5)
    assert more.estimators[:3] == few.estimators
    np.testing.assert_array_equal(votes, at_once)


def test_the_weighted_vote_does_not_ask_voters_of_weight_zero(table):
    X, _ = table
    voters = BaggedVoters([Recorder(), Silent(), Recorder()], np.zeros(2, np.intp))
    vote = voters.weighted_vote(X, np.array([0.25, 0.0, 0.75]))
    np.testing.assert_array_equal(vote, np.where(X[:, 0] > 0, 1.0, -1.0))


def test_progress_follows_the_voters_one_by_one(table):
    X, y = table
    seen = []

    def progress(results, length):
        for result in results:
            seen.append(length)
            yield result

    grown(Recorder(), X, y, plan(y), 6, progress=progress)
    assert seen == [6] * 6
