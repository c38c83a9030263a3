"""The Poisson bootstrap: the same draw for a table and for its parts."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from damvi import DAMVIClassifier
from damvi.census import Census
from damvi.voters.folds import deal_folds_by_rank
from damvi.voters.poisson import PoissonDraws, poisson_rates


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
    draws = PoissonDraws.plan(
        labels,
        max_samples=max_samples,
        seed=3,
        stratified=stratified,
        sample_weight=weights,
    )
    parts = [draws.part(slice(a, b)).counts(voter) for a, b in itertools.pairwise(edges)]
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
    draws = PoissonDraws.plan(
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
    draws = PoissonDraws.plan(np.zeros(n, np.uint8), max_samples=1.0, seed=0)
    other = PoissonDraws.plan(np.zeros(n, np.uint8), max_samples=1.0, seed=1)
    one, two, three = draws.counts(0), draws.counts(1), other.counts(0)
    for a, b in ((one, two), (one, three), (two, three), (one[1:], one[:-1])):
        assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(n)


def test_weights_drive_the_rates_and_strata_their_share():
    labels = np.array([0] * 90 + [1] * 10, np.uint8)
    weights = np.where(labels == 1, 0.5, 1.0)
    census = Census.of(labels, 2, weights)
    assert poisson_rates(census, 0.2, False) == pytest.approx([20 / 95])
    assert poisson_rates(census, 0.2, True) == pytest.approx([18 / 90, 2 / 5])
    assert poisson_rates(Census.of(labels, 2), 1, True) == pytest.approx([1 / 90, 1 / 10])


@settings(deadline=None)
@given(tables(), st.integers(2, 6))
def test_folds_by_rank_are_even_and_the_same_for_parts(table, n_folds):
    labels, _, edges = table
    folds = deal_folds_by_rank(labels, 9, n_folds=n_folds)
    before = np.zeros(4, np.int64)
    parts = []
    for a, b in itertools.pairwise(edges):
        parts.append(deal_folds_by_rank(labels[a:b], 9, before, n_folds))
        before += np.bincount(labels[a:b], minlength=4)
    assert np.array_equal(np.concatenate(parts), folds)
    for number in np.unique(labels):
        sizes = np.bincount(folds[labels == number], minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1


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
    for voter in (None, "bagged"):
        if voter:
            from sklearn.tree import DecisionTreeClassifier

            voter = DecisionTreeClassifier()
        model = DAMVIClassifier(
            voter, bootstrap="poisson", n_estimators=10, max_samples=1, random_state=0
        )
        with pytest.warns(UserWarning, match="drew none"):
            model.fit(X, y)
        empty = [
            k
            for k in range(10)
            if not PoissonDraws.plan(y.astype(np.uint8), max_samples=1, seed=model._seed)
            .counts(k)
            .any()
        ]
        assert empty
        assert (model.cast_votes(X)[:, empty] == -1).all()
