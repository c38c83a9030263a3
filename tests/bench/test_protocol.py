"""Splits: the paper's by default, repeatable, and honest about groups."""

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from damvi.bench.protocol import Protocol, rows_at_ratio

Y = (np.arange(1000) % 25 == 0).astype(np.int8)  # 4 %


@pytest.mark.parametrize("kind", ["random", "stratified", "groups"])
def test_splits_share_out_all_rows_and_repeat(kind):
    protocol, groups = Protocol(splits=kind, seed=3), np.arange(1000) // 10
    train, test = protocol.split(Y, groups, 1, None)
    assert sorted([*train, *test]) == list(range(1000))
    assert len(test) == 300
    again = protocol.split(Y, groups, 1, None)
    assert (train == again[0]).all()
    assert set(train) != set(protocol.split(Y, groups, 2, None)[0])
    # Split 1 from seed 3 is split 0 from seed 4: seeds are fixed per split.
    other = Protocol(splits=kind, seed=4).split(Y, groups, 0, None)
    assert (train == other[0]).all()


def test_the_default_is_a_plain_random_split():
    train, _ = Protocol().split(Y, None, 2, None)
    expected, _ = train_test_split(np.arange(1000), test_size=0.3, random_state=2)
    assert (train == expected).all()


def test_stratified_splits_keep_the_rate_and_groups_stay_whole():
    _, test = Protocol(splits="stratified").split(Y, None, 0, None)
    assert Y[test].sum() == 12
    groups = np.arange(1000) // 10
    train, test = Protocol(splits="groups").split(Y, groups, 0, None)
    assert not set(groups[train]) & set(groups[test])
    with pytest.raises(ValueError, match="need to know the groups"):
        Protocol(splits="groups").split(Y, None, 0, None)


@pytest.mark.parametrize("ratio", [0.005, 0.02, 0.04, 0.1, 0.3])
def test_thinning_takes_rows_of_one_class_only(ratio):
    rows = rows_at_ratio(Y, ratio, seed=0)
    assert Y[rows].mean() == pytest.approx(ratio, abs=0.001)
    assert len(set(rows)) == len(rows)
    kept = Y[rows].sum() == 40, (1 - Y[rows]).sum() == 960
    assert any(kept)
    assert (rows == rows_at_ratio(Y, ratio, seed=0)).all()


def test_words():
    assert Protocol().words == "plain random 70/30"
    assert Protocol(splits="groups", test_size=0.2).words == "by groups 80/20"
