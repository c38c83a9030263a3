"""Folds: even within each class, and a function of the seed alone."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, TimeSeriesSplit

from damvi.votes import deal_folds, deal_folds_by_rank, split_rows


def test_folds_are_even_within_each_class():
    targets = np.repeat(np.arange(4), [53, 20, 10, 5])
    folds = deal_folds(targets, seed=3)
    sizes = np.array([np.bincount(folds[targets == c], minlength=5) for c in range(4)])
    np.testing.assert_array_equal(sizes, [[11, 11, 11, 10, 10], [4] * 5, [2] * 5, [1] * 5])
    train, others = split_rows(5, targets[:, None], targets, seed=3)
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
    train, folds = split_rows(cv, X, y, seed=0)
    splits = cv if isinstance(cv, list) else list(cv.split(X, y))
    for fold, (rows, test) in enumerate(splits):
        assert (folds[test] == fold).all()
        np.testing.assert_array_equal(train[fold], rows)


def test_folds_may_train_on_less_than_all_the_others(table):
    rows = np.arange(300)
    cv = [(rows % 3 == (fold + 1) % 3, rows % 3 == fold) for fold in range(3)]
    train, folds = split_rows(cv, *table, seed=0)
    np.testing.assert_array_equal(folds, rows % 3)
    np.testing.assert_array_equal(train[0], np.flatnonzero(rows % 3 == 1))


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (TimeSeriesSplit(3), "cv judges row 0 0 times, and 75 of 300 rows"),
        (ShuffleSplit(3, random_state=0), "not exactly once"),
        ([(np.arange(300), np.arange(300))], "trains on rows that it judges, in fold 0"),
        (1, "from 2 to 100"),
        (True, None),
    ],
)
def test_other_splits_are_refused(table, cv, message):
    with pytest.raises(ValueError, match=message):
        split_rows(cv, *table, seed=0)
