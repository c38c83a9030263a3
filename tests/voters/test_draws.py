"""The draws: a function of seed and voter, that follows weights and classes."""

import numpy as np
import pytest

from damvi.voters import Draws

SIGNS = np.repeat([-1, 1], [95, 5])


def test_a_draw_depends_on_seed_and_voter_alone():
    one, again, other = (Draws.plan(SIGNS, max_samples=0.2, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.counts(7), again.counts(7))
    assert (one.counts(7) != one.counts(8)).any()
    assert (one.counts(7) != other.counts(7)).any()
    assert one.random_state(7) == again.random_state(7) != one.random_state(8)


@pytest.mark.parametrize(
    ("max_samples", "expected"),
    [(0.2, 20), (1.0, 100), (1, 1), (37, 37), (250, 250), (0.001, 1), (np.int64(3), 3)],
)
def test_max_samples_is_a_fraction_of_the_rows_or_a_count(max_samples, expected):
    draws = Draws.plan(SIGNS, max_samples=max_samples, seed=0)
    assert draws.counts(0).sum() == expected
    assert len(draws.counts(0)) == 100


def test_with_replacement_rows_repeat_and_without_they_do_not():
    assert Draws.plan(SIGNS, max_samples=1.0, seed=0).counts(0).max() > 1
    once = Draws.plan(SIGNS, max_samples=0.6, seed=0, replace=False).counts(0)
    assert once.max() == 1
    assert once.sum() == 60


def test_every_row_is_drawn_about_equally_often():
    draws = Draws.plan(SIGNS, max_samples=1.0, seed=0)
    drawn = sum(draws.counts(k) for k in range(400))
    np.testing.assert_allclose(drawn, 400, atol=5 * 20)


def test_with_replacement_the_weights_drive_the_draw():
    weights = np.repeat([0.1, 1.0], [50, 50])
    draws = Draws.plan(SIGNS, max_samples=1.0, seed=0, sample_weight=weights)
    drawn = sum(draws.counts(k) for k in range(200))
    assert drawn[50:].sum() / drawn.sum() == pytest.approx(10 / 11, abs=0.01)


def test_without_replacement_the_weights_do_not_drive_the_draw():
    weights = np.repeat([0.1, 1.0], [50, 50])
    plain, weighted = (
        Draws.plan(SIGNS, max_samples=0.5, seed=0, replace=False, sample_weight=w)
        for w in (None, weights)
    )
    np.testing.assert_array_equal(plain.counts(3), weighted.counts(3))


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("stratified", [True, False])
def test_rows_of_weight_zero_are_never_drawn(replace, stratified):
    weights = np.ones(100)
    weights[::3] = 0
    weights[1] = 0.5
    draws = Draws.plan(
        SIGNS,
        max_samples=1.0,
        seed=0,
        replace=replace,
        stratified=stratified,
        sample_weight=weights,
    )
    drawn = sum(draws.counts(k) for k in range(60))
    assert (drawn[::3] == 0).all()
    assert (drawn[weights > 0] > 0).all()


def test_equal_weights_draw_as_no_weights_do():
    plain, equal = (
        Draws.plan(SIGNS, max_samples=0.5, seed=0, sample_weight=w)
        for w in (None, np.full(100, 0.25))
    )
    np.testing.assert_array_equal(plain.counts(0), equal.counts(0))


@pytest.mark.parametrize("replace", [True, False])
def test_stratified_draws_hold_each_class_in_proportion(replace):
    draws = Draws.plan(SIGNS, max_samples=0.2, seed=0, replace=replace, stratified=True)
    for voter in range(20):
        counts = draws.counts(voter)
        assert counts[SIGNS > 0].sum() == 1
        assert counts[SIGNS < 0].sum() == 19


def test_stratified_draws_hold_every_class_even_when_its_share_rounds_to_zero():
    draws = Draws.plan(SIGNS, max_samples=2, seed=0, stratified=True)
    assert all(draws.counts(voter)[SIGNS > 0].sum() == 1 for voter in range(20))


def test_out_of_bag_is_the_complement_of_the_draw():
    draws = Draws.plan(SIGNS, max_samples=0.2, seed=0)
    np.testing.assert_array_equal(draws.out_of_bag(5), draws.counts(5) == 0)
    assert draws.out_of_bag(5).sum() >= 80


def test_more_draws_than_rows_need_replacement():
    with pytest.raises(ValueError, match=r"max_samples=101 .*rows \(100\).*bootstrap=True"):
        Draws.plan(SIGNS, max_samples=101, seed=0, replace=False)


def test_a_sample_is_the_drawn_rows_in_order_and_their_counts():
    draws = Draws.plan(SIGNS, max_samples=0.5, seed=0)
    rows, times = draws.sample(3)
    np.testing.assert_array_equal(rows, np.flatnonzero(draws.counts(3)))
    np.testing.assert_array_equal(np.repeat(rows, times), np.sort(np.repeat(rows, times)))
    assert times.sum() == 50


def test_a_row_drawn_more_often_than_a_byte_can_tell_is_counted_all_the_same():
    draws = Draws.plan(SIGNS[94:96], max_samples=1000, seed=0)
    rows, times = draws.sample(0)
    assert times.sum() == 1000
    assert times.min() > 255
    np.testing.assert_array_equal(draws.counts(0)[rows], times)


@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 1.0, 100)])
def test_draws_a_few_at_a_time_are_the_draws_all_at_once(weights, monkeypatch):
    draws = Draws.plan(SIGNS, max_samples=250, seed=0, sample_weight=weights)
    at_once = draws.counts(4), draws.out_of_bag(4)
    monkeypatch.setattr("damvi.voters.draws.DRAWS_AT_A_TIME", 7)
    np.testing.assert_array_equal(draws.counts(4), at_once[0])
    np.testing.assert_array_equal(draws.out_of_bag(4), at_once[1])
