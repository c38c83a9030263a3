import pickle
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from damvi.decision import calibrate, crossfit_probability

from .simulate import rare_votes

METHODS = ["platt", "beta", "isotonic"]


def awkward():
    """Votes and signs that calibrators stumble over."""
    rng = np.random.default_rng(0)
    vote, signs = rare_votes(400)
    yield "one positive", vote, np.where(np.arange(400) == 7, 1, -1)
    yield "equal votes", np.full(400, 0.3), signs
    yield "separated", np.where(signs > 0, 0.5, -0.5) + 0.1 * vote, signs
    yield "separated, two values", signs.astype(float), signs
    yield "inverted", -vote, signs
    yield "hard votes of 10", np.round(vote * 5) / 5, signs
    yield "unanimous", np.where(vote > -0.5, 1.0, -1.0), signs
    yield "coin", rng.uniform(-1, 1, 400), signs
    yield "huge", 1e200 * vote, signs
    yield "tiny", 1e-200 * vote, signs
    yield "mostly positive", vote, -signs


CASES = {name: (vote, signs) for name, vote, signs in awkward()}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", METHODS)
def test_the_mean_is_the_class_rate_and_chances_are_inside_0_and_1(method, case):
    vote, signs = CASES[case]
    chance = calibrate(vote, signs, method=method)
    assert chance(vote).mean() == pytest.approx((signs > 0).mean(), abs=1e-9)
    anywhere = [-np.finfo(float).max, -1e9, -1, -1e-300, 0, 0.999, 1, 1e9, 1e300]
    found = chance(anywhere)
    assert (found > 0).all()
    assert (found < 1).all()
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", METHODS)
def test_ranking_loses_nothing(method, case):
    vote, signs = CASES[case]
    chance = calibrate(vote, signs, method=method)
    rng = np.random.default_rng(1)
    knots = np.array(getattr(chance.curve, "votes", [0.0])) / chance.scale
    some = np.concatenate(
        [rng.uniform(-1, 1, 20_000), knots, np.unique(vote) / chance.scale]
    )
    some = np.clip(some, -1, 1 - 1e-12)
    for step in (1e-12, 1e-9, 1e-3):
        # Both sides of each point, since knots are where a rounded curve may fall.
        below, above = some - step / 2, some + step / 2
        above = np.where(above - below < step, np.nextafter(above, 2), above)
        inside = (below >= -1) & (above <= 1)
        left, right = chance(below * chance.scale), chance(above * chance.scale)
        assert (left < right)[inside].all()
    beyond = chance.scale * np.array([-100, -10, -1, 1, 10, 100])
    assert (np.diff(chance(beyond)) > 0).all()


@settings(max_examples=200, deadline=None)
@given(
    method=st.sampled_from(METHODS),
    low=st.floats(-1, 1 - 2e-12),
    gap=st.floats(1e-12, 1e-10),
)
def test_close_votes_keep_their_order(method, low, gap):
    chance = calibrate(*CASES["separated"], method=method)
    high = low + gap
    if high - low >= 1e-12:
        assert chance(low) < chance(high)


@pytest.mark.parametrize("method", METHODS)
def test_sample_weight_stands_for_rows(method):
    vote, signs = rare_votes(600)
    weight = np.random.default_rng(0).integers(0, 3, 600)
    chance = calibrate(vote, signs, sample_weight=weight, method=method)
    mean = np.average(chance(vote), weights=weight)
    assert mean == pytest.approx(np.average(signs > 0, weights=weight), abs=1e-9)
    for unit in (1e-9, 1e300):
        again = calibrate(vote, signs, sample_weight=weight * unit, method=method)
        assert again(vote) == pytest.approx(chance(vote), rel=1e-6)
    kept = weight > 0
    alone = calibrate(vote[kept], signs[kept], sample_weight=weight[kept], method=method)
    assert (alone(vote) == chance(vote)).all()


@pytest.mark.parametrize("method", METHODS)
def test_it_finds_the_truth(method):
    rng = np.random.default_rng(0)
    truth = 0.3 * rng.beta(0.5, 3, 40_000)
    vote = 2 * truth - 1
    if method == "platt":
        vote = np.log(truth / (1 - truth))
    signs = np.where(rng.random(40_000) < truth, 1, -1)
    chance = calibrate(vote, signs, method=method)(vote)
    assert np.sqrt(np.mean((chance - truth) ** 2)) < 0.006


def test_votes_that_say_nothing_give_the_class_rate():
    for case in ("inverted", "equal votes"):
        vote, signs = CASES[case]
        for method in METHODS:
            chance = calibrate(vote, signs, method=method)(vote)
            assert chance == pytest.approx((signs > 0).mean(), rel=0.03)


def test_auto_goes_by_the_number_of_positives():
    assert calibrate(*rare_votes(2000, rate=0.05)).method == "beta"
    vote, signs = rare_votes(2000, rate=0.2)
    assert calibrate(vote, signs).method == "isotonic"
    assert calibrate(3 * vote[:500], signs[:500]).method == "platt"
    # A few rows with nearly all the weight are worth no more than a few rows.
    weight = np.where(np.cumsum(signs > 0) < 100, 1.0, 1e-9)
    assert calibrate(vote, signs, sample_weight=weight).method == "beta"


@pytest.mark.parametrize("method", METHODS)
def test_plain_numbers_that_pickle(method):
    vote, signs = rare_votes(500)
    chance = calibrate(vote, signs, method=method)
    again = pickle.loads(pickle.dumps(chance))
    assert again == chance
    assert (again(vote) == chance(vote)).all()
    assert len(pickle.dumps(chance)) < 10_000


def test_missing_votes_and_shapes():
    vote, signs = rare_votes(500)
    vote[:3] = np.nan
    chance = calibrate(vote, signs)
    assert np.isnan(chance(vote)[:3]).all()
    assert chance(0.2).shape == ()
    assert chance([[0.2, 0.1]]).shape == (1, 2)


def test_crossfitted_probabilities_come_from_the_other_folds():
    vote, signs = rare_votes(600)
    vote[5] = np.nan
    folds = np.arange(600) % 3 + 7
    chance = crossfit_probability(vote, signs, folds)
    assert np.isnan(chance[5])
    for fold in (7, 8, 9):
        here = (folds == fold) & ~np.isnan(vote)
        learned = calibrate(vote[folds != fold], signs[folds != fold])
        assert chance[here] == pytest.approx(learned(vote[here]), rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_folds_without_a_positive_elsewhere(method):
    vote = np.linspace(-1, 1, 30)
    signs = np.where(np.arange(30) == 20, 1, -1)
    chance = crossfit_probability(vote, signs, np.arange(30) % 3, method=method)
    assert (chance > 0).all()
    assert (chance[2::3] < 0.2).all()  # learned without the positive


def test_honest_log_loss_of_coin_flips_is_no_better_than_the_rate():
    losses = []
    for seed in range(20):
        vote, signs = rare_votes(1000, seed=seed, strength=0)
        chance = crossfit_probability(vote, signs, np.arange(1000) % 5)
        losses.append(-np.log(np.where(signs > 0, chance, 1 - chance)).mean())
    entropy = -(0.05 * np.log(0.05) + 0.95 * np.log(0.95))
    assert entropy - 1e-3 < np.mean(losses) < entropy + 0.01


def test_bad_input_is_named():
    vote, signs = rare_votes(100)
    with pytest.raises(ValueError, match="method='sigmoid' is not known; give 'auto'"):
        calibrate(vote, signs, method="sigmoid")
    with pytest.raises(ValueError, match="is positive; both classes"):
        calibrate(vote, np.full(100, -1))


def test_speed():
    vote, signs = rare_votes(200_000, rate=0.01)
    for method in METHODS:
        start = time.process_time()
        calibrate(vote, signs, method=method)
        assert time.process_time() - start < 1  # 0.06 to 0.13 on a quiet machine
