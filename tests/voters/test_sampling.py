"""The samples: a function of seed and voter, that follows weights and classes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.tree import DecisionTreeClassifier

from damvi import DAMVIClassifier
from damvi.labels import ClassTotals
from damvi.voters import BootstrapSampling, PoissonSampling
from damvi.voters.sampling import poisson_rates

TARGETS = np.repeat([0, 1], [95, 5])


def test_a_draw_depends_on_seed_and_voter_alone():
    one, again, other = (
        BootstrapSampling.plan(TARGETS, max_samples=0.2, seed=s) for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.counts(7), again.counts(7))
    assert (one.counts(7) != one.counts(8)).any()
    assert (one.counts(7) != other.counts(7)).any()
    assert one.random_state(7) == again.random_state(7) != one.random_state(8)


@pytest.mark.parametrize(
    ("max_samples", "expected"),
    [(0.2, 20), (1.0, 100), (1, 1), (37, 37), (250, 250), (0.001, 1), (np.int64(3), 3)],
)
def test_max_samples_is_a_fraction_of_the_rows_or_a_count(max_samples, expected):
    draws = BootstrapSampling.plan(TARGETS, max_samples=max_samples, seed=0)
    assert draws.counts(0).sum() == expected
    assert len(draws.counts(0)) == 100


def test_with_replacement_rows_repeat_and_without_they_do_not():
    assert BootstrapSampling.plan(TARGETS, max_samples=1.0, seed=0).counts(0).max() > 1
    once = BootstrapSampling.plan(TARGETS, max_samples=0.6, seed=0, replace=False).counts(0)
    assert once.max() == 1
    assert once.sum() == 60


def test_every_row_is_drawn_about_equally_often():
    draws = BootstrapSampling.plan(TARGETS, max_samples=1.0, seed=0)
    drawn = sum(draws.counts(k) for k in range(400))
    np.testing.assert_allclose(drawn, 400, atol=5 * 20)


def test_with_replacement_the_weights_drive_the_draw():
    weights = np.repeat([0.1, 1.0], [50, 50])
    draws = BootstrapSampling.plan(TARGETS, max_samples=1.0, seed=0, sample_weight=weights)
    drawn = sum(draws.counts(k) for k in range(200))
    assert drawn[50:].sum() / drawn.sum() == pytest.approx(10 / 11, abs=0.01)


def test_without_replacement_the_weights_do_not_drive_the_draw():
    weights = np.repeat([0.1, 1.0], [50, 50])
    plain, weighted = (
        BootstrapSampling.plan(
            TARGETS, max_samples=0.5, seed=0, replace=False, sample_weight=w
        )
        for w in (None, weights)
    )
    np.testing.assert_array_equal(plain.counts(3), weighted.counts(3))


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("stratified", [True, False])
def test_rows_of_weight_zero_are_never_drawn(replace, stratified):
    weights = np.ones(100)
    weights[::3] = 0
    weights[1] = 0.5
    draws = BootstrapSampling.plan(
        TARGETS,
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
        BootstrapSampling.plan(TARGETS, max_samples=0.5, seed=0, sample_weight=w)
        for w in (None, np.full(100, 0.25))
    )
    np.testing.assert_array_equal(plain.counts(0), equal.counts(0))


@pytest.mark.parametrize("replace", [True, False])
def test_stratified_draws_hold_each_class_in_proportion(replace):
    draws = BootstrapSampling.plan(
        TARGETS, max_samples=0.2, seed=0, replace=replace, stratified=True
    )
    for voter in range(20):
        counts = draws.counts(voter)
        assert counts[TARGETS == 1].sum() == 1
        assert counts[TARGETS == 0].sum() == 19


def test_stratified_draws_hold_every_class_even_when_its_share_rounds_to_zero():
    draws = BootstrapSampling.plan(TARGETS, max_samples=2, seed=0, stratified=True)
    assert all(draws.counts(voter)[TARGETS == 1].sum() == 1 for voter in range(20))


def test_out_of_bag_is_the_complement_of_the_draw():
    draws = BootstrapSampling.plan(TARGETS, max_samples=0.2, seed=0)
    np.testing.assert_array_equal(draws.out_of_bag(5), draws.counts(5) == 0)
    assert draws.out_of_bag(5).sum() >= 80


def test_more_draws_than_rows_need_replacement():
    with pytest.raises(ValueError, match=r"max_samples=101 .*the 100 rows.*bootstrap=True"):
        BootstrapSampling.plan(TARGETS, max_samples=101, seed=0, replace=False)


def test_a_sample_is_the_drawn_rows_in_order_and_their_counts():
    draws = BootstrapSampling.plan(TARGETS, max_samples=0.5, seed=0)
    rows, times = draws.sample(3)
    np.testing.assert_array_equal(rows, np.flatnonzero(draws.counts(3)))
    np.testing.assert_array_equal(np.repeat(rows, times), np.sort(np.repeat(rows, times)))
    assert times.sum() == 50


def test_a_row_drawn_more_often_than_a_byte_can_tell_is_counted_all_the_same():
    draws = BootstrapSampling.plan(TARGETS[94:96], max_samples=1000, seed=0)
    rows, times = draws.sample(0)
    assert times.sum() == 1000
    assert times.min() > 255
    np.testing.assert_array_equal(draws.counts(0)[rows], times)


@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 1.0, 100)])
def test_draws_a_few_at_a_time_are_the_draws_all_at_once(weights, monkeypatch):
    draws = BootstrapSampling.plan(TARGETS, max_samples=250, seed=0, sample_weight=weights)
    at_once = draws.counts(4), draws.out_of_bag(4)
    monkeypatch.setattr("damvi.voters.sampling.DRAWS_AT_A_TIME", 7)
    np.testing.assert_array_equal(draws.counts(4), at_once[0])
    np.testing.assert_array_equal(draws.out_of_bag(4), at_once[1])


@st.composite
def tables(draw):
    n = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    labels = rng.integers(0, draw(st.integers(1, 4)), n).astype(np.uint8)
    labels[0] = 0
    weights = None
    if draw(st.booleans()):
        weights = rng.random(n) ** draw(st.sampled_from([1, 9]))
        weights /= weights.max()
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return labels, weights, [0, *cuts, n]


@settings(deadline=None)
@given(tables(), st.booleans(), st.integers(0, 5), st.sampled_from([0.2, 1.0, 7, 3000]))
def test_parts_draw_as_the_whole_does(table, stratified, voter, max_samples):
    labels, weights, edges = table
    draws = PoissonSampling.plan(
        labels,
        max_samples=max_samples,
        seed=3,
        stratified=stratified,
        sample_weight=weights,
    )
    parts = [
        PoissonSampling(
            b - a,
            draws.rates,
            labels[a:b] if stratified else None,
            None if weights is None else weights[a:b],
            seed=3,
            start=a,
        ).counts(voter)
        for a, b in itertools.pairwise(edges)
    ]
    whole = draws.counts(voter)
    assert np.array_equal(np.concatenate(parts), whole)
    rows, times = draws.sample(voter)
    assert np.array_equal(np.flatnonzero(whole), rows)
    assert np.array_equal(whole[rows], times)
    assert np.array_equal(draws.out_of_bag(voter), whole == 0)
    if weights is not None:
        assert (whole[weights == 0] == 0).all()


@pytest.mark.parametrize("rate", [0.03, 0.2, 1.0, 9.0, 40.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_are_poisson(rate, weighted):
    n = 40_000
    weights = np.ones(n) if weighted else None
    draws = PoissonSampling.plan(
        np.zeros(n, np.uint8), max_samples=int(rate * n), seed=5, sample_weight=weights
    )
    counts = np.concatenate([draws.counts(k) for k in range(3)])
    top = int(stats.poisson.ppf(0.999, rate))
    seen = np.bincount(np.minimum(counts, top), minlength=top + 1)
    expected = stats.poisson.pmf(np.arange(top + 1), rate) * len(counts)
    expected[-1] = len(counts) - expected[:-1].sum()
    some = expected > 5
    table = (
        np.append(seen[some], seen[~some].sum()),
        np.append(expected[some], expected[~some].sum()),
    )
    keep = table[1] > 0
    assert stats.chisquare(table[0][keep], table[1][keep]).pvalue > 1e-4


def test_voters_and_seeds_and_rows_are_independent():
    n = 100_000
    draws = PoissonSampling.plan(np.zeros(n, np.uint8), max_samples=1.0, seed=0)
    other = PoissonSampling.plan(np.zeros(n, np.uint8), max_samples=1.0, seed=1)
    one, two, three = draws.counts(0), draws.counts(1), other.counts(0)
    for a, b in ((one, two), (one, three), (two, three), (one[1:], one[:-1])):
        assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(n)


def test_weights_drive_the_rates_and_strata_their_share():
    labels = np.array([0] * 90 + [1] * 10, np.uint8)
    weights = np.where(labels == 1, 0.5, 1.0)
    totals = ClassTotals.of(labels, 2, weights)
    assert poisson_rates(totals, 0.2, False) == pytest.approx([20 / 95])
    assert poisson_rates(totals, 0.2, True) == pytest.approx([18 / 90, 2 / 5])
    assert poisson_rates(ClassTotals.of(labels, 2), 1, True) == pytest.approx(
        [1 / 90, 1 / 10]
    )


def make(n=600, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    score = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) / 2
    cuts = np.quantile(score, [0.9, 0.97][: n_classes - 1])
    return X, np.searchsorted(cuts, score)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("votes", ["train", "oob"])
def test_the_estimator_draws_by_poisson(n_classes, votes):
    X, y = make(n_classes=n_classes)
    model = DAMVIClassifier(
        bootstrap="poisson", n_estimators=20, votes=votes, random_state=0
    )
    once = model.fit(X, y).predict(X)
    again = model.set_params(n_jobs=2).fit(X, y)
    assert np.array_equal(again.predict(X), once)
    assert (once == y).mean() > 0.9
    assert np.isfinite(again.oob_decision_function_).all()


def test_voters_that_drew_nothing_say_what_a_tie_would():
    X, y = make(12)
    y[:2] = 0, 1
    for voter in (None, DecisionTreeClassifier()):
        model = DAMVIClassifier(
            voter, bootstrap="poisson", n_estimators=10, max_samples=1, random_state=0
        )
        with pytest.warns(UserWarning, match="drew none"):
            model.fit(X, y)
        sampling = PoissonSampling.plan(y, max_samples=1, seed=model.seed_)
        empty = [k for k in range(10) if not sampling.counts(k).any()]
        assert empty
        assert (model.cast_votes(X)[:, empty] == -1).all()
