"""Folds: even within each class, a function of the seed alone; windows in time; groups."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from damvi import forward_splits
from damvi.folds import (
    deal_folds,
    deal_folds_by_rank,
    folds_to_learn_from,
    split_rows,
)


def test_folds_are_even_within_each_class():
    targets = np.repeat(np.arange(4), [53, 20, 10, 5])
    folds = deal_folds(targets, seed=3)
    sizes = np.array([np.bincount(folds[targets == c], minlength=5) for c in range(4)])
    np.testing.assert_array_equal(sizes, [[11, 11, 11, 10, 10], [4] * 5, [2] * 5, [1] * 5])
    train, others, _ = split_rows(5, targets[:, None], targets, seed=3)
    np.testing.assert_array_equal(folds, others)
    np.testing.assert_array_equal(train[1], np.flatnonzero(folds != 1))


def test_folds_depend_on_the_seed_alone():
    targets = np.repeat([1, 0], [30, 70])
    np.testing.assert_array_equal(deal_folds(targets, 1), deal_folds(targets, 1))
    assert (deal_folds(targets, 1) != deal_folds(targets, 2)).any()


@st.composite
def tables(draw):
    n = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    targets = rng.integers(0, draw(st.integers(1, 4)), n).astype(np.uint8)
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return targets, [0, *cuts, n]


@settings(deadline=None)
@given(tables(), st.integers(2, 6))
def test_folds_by_rank_are_even_and_the_same_for_parts(table, n_folds):
    targets, edges = table
    folds = deal_folds_by_rank(targets, 9, n_folds=n_folds)
    before = np.zeros(4, np.int64)
    parts = []
    for a, b in itertools.pairwise(edges):
        parts.append(deal_folds_by_rank(targets[a:b], 9, before, n_folds))
        before += np.bincount(targets[a:b], minlength=4)
    assert np.array_equal(np.concatenate(parts), folds)
    for number in np.unique(targets):
        sizes = np.bincount(folds[targets == number], minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize(
    "cv", [StratifiedKFold(4), KFold(4), list(KFold(4).split(np.zeros(300)))]
)
def test_any_splitter_that_partitions_the_rows_will_do(table, cv):
    X, y = table
    train, folds, forward = split_rows(cv, X, y, seed=0)
    assert not forward
    splits = cv if isinstance(cv, list) else list(cv.split(X, y))
    for fold, (rows, test) in enumerate(splits):
        assert (folds[test] == fold).all()
        np.testing.assert_array_equal(train[fold], rows)


def test_folds_may_train_on_less_than_all_the_others(table):
    rows = np.arange(300)
    cv = [(rows % 3 == (fold + 1) % 3, rows % 3 == fold) for fold in range(3)]
    train, folds, _ = split_rows(cv, *table, seed=0)
    np.testing.assert_array_equal(folds, rows % 3)
    np.testing.assert_array_equal(train[0], np.flatnonzero(rows % 3 == 1))


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (ShuffleSplit(3, random_state=0), "cv tests row 25 2 times, and 13 of 300 rows"),
        ([(np.arange(200), np.arange(200, 300))], "only one fold"),
        (
            [(np.arange(300), np.arange(300))],
            "same rows in the training and the test set of fold 0",
        ),
        (1, "between 2 and 100 folds"),
        (True, None),
    ],
)
def test_other_splits_are_refused(table, cv, message):
    with pytest.raises(ValueError, match=message):
        split_rows(cv, *table, seed=0)


def test_rows_may_stay_unjudged(table):
    split = split_rows(TimeSeriesSplit(3), *table, seed=0)
    assert split.forward
    assert (split.folds[:75] == -1).all()
    np.testing.assert_array_equal(split.folds[75:], np.repeat([0, 1, 2], 75))
    split = split_rows(PredefinedSplit(np.repeat([-1, 0, 1], 100)), *table, seed=0)
    assert not split.forward  # fold 0 is judged by models of fold 1
    np.testing.assert_array_equal(split.folds, np.repeat([-1, 0, 1], 100))


@pytest.mark.parametrize("cv", [3, KFold(3), GroupKFold(3), TimeSeriesSplit(3)])
def test_no_group_is_on_both_sides(table, cv):
    groups = np.random.default_rng(0).integers(0, 40, 300).astype(str)
    train, folds, _ = split_rows(cv, *table, groups, seed=0)
    for fold, rows in enumerate(train):
        assert len(rows)
        assert not np.isin(groups[rows], groups[folds == fold]).any()


def test_in_time_a_window_learns_from_those_before_it():
    learned = [folds_to_learn_from(fold, 4, forward=True).tolist() for fold in range(4)]
    assert learned == [[1, 2, 3], [0], [0, 1], [0, 1, 2]]  # the first has none before it
    assert folds_to_learn_from(1, 4, forward=True, least=2).tolist() == [0, 2, 3]
    assert folds_to_learn_from(1, 4).tolist() == [0, 2, 3]


@st.composite
def dated(draw):
    n = draw(st.integers(20, 200))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    times = rng.integers(0, draw(st.integers(10, 100)), n)
    y = rng.random(n) < draw(st.floats(0.05, 0.5))
    groups = rng.integers(0, n, n) if draw(st.booleans()) else None
    return times, y, groups, draw(st.integers(2, 6))


@settings(deadline=None)
@given(dated())
def test_windows_are_judged_by_what_came_before(table):
    times, y, groups, n_splits = table
    try:
        splits = forward_splits(times, y, groups, n_splits=n_splits)
    except ValueError:  # said below
        return
    assert 2 <= len(splits) <= n_splits
    judged = np.concatenate([test for _, test in splits])
    assert len(np.unique(judged)) == len(judged)
    first = np.setdiff1d(np.arange(len(y)), judged)
    assert times[first].max() < times[judged].min()
    for train, test in splits:
        assert times[train].max() < times[test].min()
        assert len(np.unique(y[train])) == len(np.unique(y[test])) == 2
        if groups is None:  # nothing that came before is left out
            assert len(train) == (times < times[test].min()).sum()
        else:
            assert not np.isin(groups[train], groups[test]).any()


def test_windows_share_the_positives_and_their_number_gives_way():
    times, y = np.arange(1000), np.zeros(1000, int)
    y[::50] = 1
    sizes = [y[test].sum() for _, test in forward_splits(times, y)]
    assert len(sizes) == 5
    assert min(sizes) >= 2
    late = np.where(times < 100, times % 10 == 0, times > 990)
    assert len(forward_splits(times // 20, late)) < 5
    with pytest.raises(ValueError, match=r"do not allow two windows.*--shuffle"):
        forward_splits(times, times < 100)
    with pytest.raises(ValueError, match="missing values"):
        forward_splits(np.where(times == 3, np.nan, times), y)
    dates = np.datetime64("2024-01-01") + times[::-1]
    assert min(forward_splits(dates, y)[0][0]) > 500
