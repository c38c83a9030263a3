"""The imitation has PCT's size and rarity, and failures that come in episodes."""

import numpy as np
import pytest

from damvi.datasets import imitate_pct, load


@pytest.fixture(scope="module")
def small():
    return imitate_pct(n=200_000)


def test_it_has_the_papers_size_and_rarity_and_says_what_it_is():
    data = load("pct_imitation")
    assert data.data.shape == (816_099, 17)
    assert data.target.sum() == 163
    assert data.imitation is True
    assert "imitation" in data.name
    assert "imitation" in data.DESCR
    assert "imitation" in data.notes[0]
    assert np.isfinite(data.data).all()


def test_the_same_seed_gives_the_same_table():
    one, two, other = (imitate_pct(n=5_000, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.data, two.data)
    np.testing.assert_array_equal(one.target, two.target)
    assert not np.array_equal(one.data, other.data)


@pytest.mark.parametrize(("n", "positives"), [(100, 2), (10_000, 2), (200_000, 40)])
def test_the_share_of_positives_holds_at_any_size(n, positives):
    data = imitate_pct(n=n)
    assert data.data.shape == (n, 17)
    assert data.target.sum() == positives


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="n=99 is too few rows"):
        imitate_pct(n=99)


def test_failures_are_episodes_of_consecutive_rows_nearly_alike(small):
    episodes = np.unique(small.groups[small.target == 1])
    assert 4 <= len(episodes) <= 12
    spread = small.data.std(axis=0)
    for episode in episodes:
        rows = np.flatnonzero(small.groups == episode)
        assert small.target[rows].all()
        assert (np.diff(rows) == 1).all()
        assert (np.ptp(small.data[rows], axis=0) <= 0.5 * spread).all()


def test_groups_never_mix_the_classes(small):
    failing = set(small.groups[small.target == 1])
    assert not failing & set(small.groups[small.target == 0])


def test_no_single_sensor_tells_the_failures_apart(small):
    found, healthy = small.data[small.target == 1], small.data[small.target == 0]
    reach = (healthy.min(axis=0) <= found.max(axis=0)) & (
        found.min(axis=0) <= healthy.max(axis=0)
    )
    assert reach.all()
    medians = (np.median(found, axis=0) - healthy.mean(axis=0)) / healthy.std(axis=0)
    assert (np.abs(medians) > 1).sum() >= 4


def test_some_columns_are_counters_or_whole_numbers(small):
    whole = [(column == np.rint(column)).all() for column in small.data.T]
    assert sum(whole) >= 4
    odometer = small.data[:4000, small.feature_names.index("odometer")]
    healthy = small.target[:4000] == 0
    assert (np.diff(odometer[healthy]) >= 0).all()
