"""Factors of classes: every one that decides otherwise is tried, and judged honestly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from damvi.decision import calibrate_classes, tune_classes, tune_factors
from damvi.decision.class_factors import (
    confusion,
    decide,
    f1_by_class,
    settled,
)
from damvi.decision.class_race import Race


def random_rows(seed, n=None, n_classes=None, levels=None):
    rng = np.random.default_rng(seed)
    n_classes = n_classes or int(rng.integers(2, 6))
    n = n or int(rng.integers(3, 40))
    vote = rng.dirichlet(np.full(n_classes, 0.7), size=n)
    vote = np.round(vote * levels) / levels if levels else vote
    labels = rng.integers(0, n_classes, n)
    return vote, labels, rng.choice([0.5, 1, 2], n), rng.permutation(n_classes), rng


def sum_of_f1(vote, labels, weight, factors, order):
    table = confusion(labels, decide(vote, factors, order), weight, len(factors))
    return f1_by_class(table).sum()


def test_f1_is_scikit_learns():
    vote, labels, weight, order, _ = random_rows(0, n=50, n_classes=4)
    decided = decide(vote, np.ones(4), order)
    expected = f1_score(labels, decided, average=None, sample_weight=weight)
    np.testing.assert_allclose(f1_by_class(confusion(labels, decided, weight, 4)), expected)


@given(seed=st.integers(0, 10**6), levels=st.sampled_from([None, 4]))
def test_no_factor_of_one_class_does_better(seed, levels):
    vote, labels, weight, order, rng = random_rows(seed, levels=levels)
    factors = rng.choice([0.5, 1, 2.0], vote.shape[1])
    c = int(rng.integers(vote.shape[1]))
    order = np.arange(vote.shape[1])
    race = Race(vote, labels, weight, rng.choice([0.5, 1, 2.0], vote.shape[1]))
    for other, known in enumerate(factors):
        race.set_factor(other, known)
    worth, factor = race.best_factor(c)
    if not np.isfinite(worth):
        assert not vote[:, c].any()
        return
    # Points where rows turn, and between them; none is exactly on one but by a tie.
    scores = np.delete(vote * factors, c, axis=1).max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        points = np.unique((scores / vote[:, c])[vote[:, c] > 0])
    tried = np.concatenate([points * (1 - 1e-9), points * (1 + 1e-9), [1e-9, 1e9]])
    changed = [np.where(np.arange(len(factors)) == c, one, factors) for one in tried]
    best = max(sum_of_f1(vote, labels, weight, one, order) for one in changed if one[c] > 0)
    chosen = np.where(np.arange(len(factors)) == c, factor, factors)
    assert sum_of_f1(vote, labels, weight, chosen, order) == pytest.approx(worth, abs=1e-9)
    assert worth >= best - 1e-9


@given(seed=st.integers(0, 10**6))
def test_factors_are_never_worse_than_the_plain_vote(seed):
    vote, labels, weight, order, _ = random_rows(seed)
    factors = tune_factors(vote, labels, sample_weight=weight, order=order)
    tuned, plain = (
        sum_of_f1(vote, labels, weight, one, order)
        for one in (factors, np.ones(len(factors)))
    )
    assert tuned >= plain - 1e-9
    assert (factors > 0).all()
    assert factors[order[0]] == 1


def test_a_shift_of_the_votes_is_put_right():
    rng = np.random.default_rng(0)
    labels = rng.choice(3, 3000, p=[0.8, 0.15, 0.05])
    votes = rng.dirichlet([1, 1, 1], size=3000) + 0.5 * np.eye(3)[labels]
    held_back = votes * [1, 0.4, 0.1]
    order = np.arange(3)
    plain, tuned, as_if_not = (
        f1_score(labels, decide(vote, factors, order), average="macro")
        for vote, factors in (
            (held_back, np.ones(3)),
            (held_back, tune_factors(held_back, labels)),
            (votes, tune_factors(votes, labels)),
        )
    )
    assert plain + 0.1 < tuned == pytest.approx(as_if_not, abs=0.005)


def test_rows_that_do_not_count():
    vote, labels, weight, order, _ = random_rows(1, n=30, n_classes=3)
    plain = tune_factors(vote, labels, sample_weight=weight, order=order)
    more = np.vstack([vote, np.full((1, 3), np.nan), vote[:5]])
    counts = np.concatenate([weight, [1.0], np.zeros(5)])
    again = tune_factors(
        more, np.append(labels, [0, 1, 2, 0, 1, 2]), sample_weight=counts, order=order
    )
    np.testing.assert_array_equal(plain, again)
    np.testing.assert_array_equal(tune_factors(np.full((2, 3), np.nan), [0, 1]), 1)


def test_coin_flips_are_worth_nothing_on_rows_not_tuned_on():
    seen, honest = [], []
    for seed in range(20):
        vote, labels, _, order, _ = random_rows(seed, n=200, n_classes=3)
        tuning = tune_classes(vote, labels, np.arange(200) % 5, order=order)
        seen.append(tuning.value)
        honest.append(tuning.honest_value)
        assert tuning.as_dict()["objective"] == "macro F1"
    assert np.mean(honest) == pytest.approx(1 / 3, abs=0.02)
    assert np.mean(seen) > np.mean(honest) + 0.02


def test_the_interval_holds_what_other_rows_say():
    vote, labels, _, order, _ = random_rows(3, n=3000, n_classes=3)
    vote = vote + 0.3 * np.eye(3)[labels]
    half = np.arange(3000) < 600
    tuning = tune_classes(vote[half], labels[half], np.arange(600) % 5, order=order)
    decided = decide(vote[~half], np.array(tuning.factors), order)
    low, high = tuning.value_interval
    assert low < f1_score(labels[~half], decided, average="macro") < high
    assert high - low < 0.1


def test_ties_are_settled_by_the_smallest_step():
    scores = np.array([[0.4, 0.4, 0.2], [0.1, 0.3, 0.3], [np.nan, np.nan, np.nan]])
    found = settled(scores, np.array([2, 1, 0]))
    assert found[:2].argmax(axis=1).tolist() == [1, 2]
    np.testing.assert_allclose(found, scores, rtol=1e-15)


def test_chances_add_up_and_keep_the_class_rates():
    rng = np.random.default_rng(0)
    labels = rng.choice(4, 2000, p=[0.6, 0.3, 0.08, 0.02])
    vote = rng.dirichlet(np.ones(4), size=2000) / 2 + np.eye(4)[labels] / 2
    chances = calibrate_classes(vote, labels)(vote)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    rates = np.bincount(labels) / 2000
    np.testing.assert_allclose(chances.mean(axis=0), rates, atol=0.01)
