import pickle
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from damvi.decision import calibrate_vote, crossfit_probability

from .simulate import rare_votes

METHODS = ["platt", "beta", "isotonic"]


def awkward():
    """Votes and targets that calibrators stumble over."""
    rng = np.random.default_rng(0)
    vote, targets = rare_votes(400)
    yield "one positive", vote, (np.arange(400) == 7).astype(int)
    yield "equal votes", np.full(400, 0.3), targets
    yield "separated", np.where(targets == 1, 0.5, -0.5) + 0.1 * vote, targets
    yield "separated, two values", 2.0 * targets - 1, targets
    yield "inverted", -vote, targets
    yield "hard votes of 10", np.round(vote * 5) / 5, targets
    yield "unanimous", np.where(vote > -0.5, 1.0, -1.0), targets
    yield "coin", rng.uniform(-1, 1, 400), targets
    yield "huge", 1e200 * vote, targets
    yield "tiny", 1e-200 * vote, targets
    yield "mostly positive", vote, 1 - targets


CASES = {name: (vote, targets) for name, vote, targets in awkward()}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", METHODS)
def test_the_mean_is_the_class_rate_and_chances_are_inside_0_and_1(method, case):
    vote, targets = CASES[case]
    chance = calibrate_vote(vote, targets, method=method)
    assert chance(vote).mean() == pytest.approx(targets.mean(), abs=1e-9)
    anywhere = [-np.finfo(float).max, -1e9, -1, -1e-300, 0, 0.999, 1, 1e9, 1e300]
    found = chance(anywhere)
    assert (found > 0).all()
    assert (found < 1).all()
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", METHODS)
def test_ranking_loses_nothing(method, case):
    vote, targets = CASES[case]
    chance = calibrate_vote(vote, targets, method=method)
    (curve,) = chance.curves
    rng = np.random.default_rng(1)
    knots = np.array(getattr(curve.log_odds, "votes", [0.0])) / curve.scale
    some = np.concatenate(
        [rng.uniform(-1, 1, 20_000), knots, np.unique(vote) / curve.scale]
    )
    some = np.clip(some, -1, 1 - 1e-12)
    for step in (1e-12, 1e-9, 1e-3):
        # Both sides of each point, since knots are where a rounded curve may fall.
        below, above = some - step / 2, some + step / 2
        above = np.where(above - below < step, np.nextafter(above, 2), above)
        inside = (below >= -1) & (above <= 1)
        left, right = chance(below * curve.scale), chance(above * curve.scale)
        assert (left < right)[inside].all()
    beyond = curve.scale * np.array([-100, -10, -1, 1, 10, 100])
    assert (np.diff(chance(beyond)) > 0).all()


@settings(max_examples=200, deadline=None)
@given(
    method=st.sampled_from(METHODS),
    low=st.floats(-1, 1 - 2e-12),
    gap=st.floats(1e-12, 1e-10),
)
def test_close_votes_keep_their_order(method, low, gap):
    chance = calibrate_vote(*CASES["separated"], method=method)
    high = low + gap
    if high - low >= 1e-12:
        assert chance(low) < chance(high)


@pytest.mark.parametrize("method", METHODS)
def test_sample_weight_stands_for_rows(method):
    vote, targets = rare_votes(600)
    weight = np.random.default_rng(0).integers(0, 3, 600)
    chance = calibrate_vote(vote, targets, sample_weight=weight, method=method)
    mean = np.average(chance(vote), weights=weight)
    assert mean == pytest.approx(np.average(targets, weights=weight), abs=1e-9)
    for unit in (1e-9, 1e300):
        again = calibrate_vote(vote, targets, sample_weight=weight * unit, method=method)
        assert again(vote) == pytest.approx(chance(vote), rel=1e-6)
    kept = weight > 0
    alone = calibrate_vote(
        vote[kept], targets[kept], sample_weight=weight[kept], method=method
    )
    assert (alone(vote) == chance(vote)).all()


@pytest.mark.parametrize("method", METHODS)
def test_it_finds_the_truth(method):
    rng = np.random.default_rng(0)
    truth = 0.3 * rng.beta(0.5, 3, 40_000)
    vote = 2 * truth - 1
    if method == "platt":
        vote = np.log(truth / (1 - truth))
    targets = (rng.random(40_000) < truth).astype(int)
    chance = calibrate_vote(vote, targets, method=method)(vote)
    assert np.sqrt(np.mean((chance - truth) ** 2)) < 0.006


def test_beta_is_a_logistic_regression_also_where_plain_steps_of_newton_go_astray():
    vote = np.repeat([-1.0, -0.5, 0.0], [1462, 315, 21])
    targets = np.repeat([0, 1, 0, 1, 0], [1462, 11, 304, 19, 2])
    (curve,) = calibrate_vote(vote, targets, method="beta").curves
    up, down = np.maximum((1 + vote) / 2, curve.log_odds.low), (1 - vote) / 2
    columns = np.column_stack([np.log(up), -np.log(down)])
    smoothed = np.where(targets == 1, 31 / 32, 1 / (1768 + 2))
    oracle = LogisticRegression(C=1e12, tol=1e-12, max_iter=10**4, solver="newton-cholesky")
    oracle.fit(
        np.tile(columns, (2, 1)),
        np.repeat([1, 0], len(vote)),
        sample_weight=np.concatenate([smoothed, 1 - smoothed]),
    )
    found = curve.log_odds.for_votes, curve.log_odds.against, curve.log_odds.intercept
    expected = (*oracle.coef_[0], oracle.intercept_[0])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_votes_that_say_nothing_give_the_class_rate():
    for case in ("inverted", "equal votes"):
        vote, targets = CASES[case]
        for method in METHODS:
            chance = calibrate_vote(vote, targets, method=method)(vote)
            assert chance == pytest.approx(targets.mean(), rel=0.03)


def test_auto_goes_by_the_number_of_positives():
    assert calibrate_vote(*rare_votes(2000, rate=0.05)).curves[0].method == "beta"
    vote, targets = rare_votes(2000, rate=0.2)
    assert calibrate_vote(vote, targets).curves[0].method == "isotonic"
    assert calibrate_vote(3 * vote[:500], targets[:500]).curves[0].method == "platt"
    # A few rows with nearly all the weight are worth no more than a few rows.
    weight = np.where(np.cumsum(targets == 1) < 100, 1.0, 1e-9)
    assert calibrate_vote(vote, targets, sample_weight=weight).curves[0].method == "beta"


@pytest.mark.parametrize("method", METHODS)
def test_plain_numbers_that_pickle(method):
    vote, targets = rare_votes(500)
    chance = calibrate_vote(vote, targets, method=method)
    again = pickle.loads(pickle.dumps(chance))
    assert again == chance
    assert (again(vote) == chance(vote)).all()
    assert len(pickle.dumps(chance)) < 10_000


def test_missing_votes_and_shapes():
    vote, targets = rare_votes(500)
    vote[:3] = np.nan
    chance = calibrate_vote(vote, targets)
    assert np.isnan(chance(vote)[:3]).all()
    assert chance(0.2).shape == ()
    assert chance([[0.2, 0.1]]).shape == (1, 2)


def test_crossfitted_probabilities_come_from_the_other_folds():
    vote, targets = rare_votes(600)
    vote[5] = np.nan
    folds = np.arange(600) % 3 + 7
    chance = crossfit_probability(vote, targets, folds)
    assert np.isnan(chance[5])
    for fold in (7, 8, 9):
        here = (folds == fold) & ~np.isnan(vote)
        learned = calibrate_vote(vote[folds != fold], targets[folds != fold])
        assert chance[here] == pytest.approx(learned(vote[here]), rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_folds_without_a_positive_elsewhere(method):
    vote = np.linspace(-1, 1, 30)
    targets = (np.arange(30) == 20).astype(int)
    chance = crossfit_probability(vote, targets, np.arange(30) % 3, method=method)
    assert (chance > 0).all()
    assert (chance[2::3] < 0.2).all()  # learned without the positive


def test_honest_log_loss_of_coin_flips_is_no_better_than_the_rate():
    losses = []
    for seed in range(20):
        vote, targets = rare_votes(1000, seed=seed, strength=0)
        chance = crossfit_probability(vote, targets, np.arange(1000) % 5)
        losses.append(-np.log(np.where(targets == 1, chance, 1 - chance)).mean())
    entropy = -(0.05 * np.log(0.05) + 0.95 * np.log(0.95))
    assert entropy - 1e-3 < np.mean(losses) < entropy + 0.01


def test_chances_of_many_classes_add_up_and_keep_the_class_rates():
    rng = np.random.default_rng(0)
    targets = rng.choice(4, 2000, p=[0.6, 0.3, 0.08, 0.02])
    vote = rng.dirichlet(np.ones(4), size=2000) / 2 + np.eye(4)[targets] / 2
    rates = np.bincount(targets) / 2000
    folds = np.arange(2000) % 5
    for chances in (
        calibrate_vote(vote, targets)(vote),
        crossfit_probability(vote, targets, folds),
    ):
        np.testing.assert_allclose(chances.sum(axis=1), 1)
        np.testing.assert_allclose(chances.mean(axis=0), rates, atol=0.01)
    first = folds == 0
    learned = calibrate_vote(vote[~first], targets[~first])
    np.testing.assert_array_equal(chances[first], learned(vote[first]))


def test_bad_input_is_named():
    vote, targets = rare_votes(100)
    with pytest.raises(ValueError, match="method='sigmoid' is unknown; use one of 'auto'"):
        calibrate_vote(vote, targets, method="sigmoid")
    with pytest.raises(ValueError, match="is of class 1; rows of every class"):
        calibrate_vote(vote, np.zeros(100))
    with pytest.raises(ValueError, match="is of class 2; rows of every class"):
        calibrate_vote(np.full((4, 3), 0.3), [0, 1, 0, 1])


def test_speed():
    vote, targets = rare_votes(200_000, rate=0.01)
    for method in METHODS:
        start = time.process_time()
        calibrate_vote(vote, targets, method=method)
        assert time.process_time() - start < 1  # 0.06 to 0.13 on a quiet machine
