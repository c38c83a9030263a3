"""Where the rows of a subtree are makes no difference to the tree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from damvi.voters.trees.homes import END, FLOOR, ROWS, move, room_for_homes, settle

from .test_grow import SEEDS, grow_fast, tables


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=200, deadline=None)
@given(tables(), SEEDS, st.integers(0, 12))
def test_small_trees_are_the_same_on_tables_of_their_own(table, seed, near_rows):
    assert_same(grow_fast(*table, seed), grow_fast(*table, seed, near_rows=near_rows))


@pytest.mark.parametrize("near_rows", [0, 30, 1000])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"features": 2},
        {"min_leaf": 3},
        {"max_depth": 4},
        {"features": 1, "min_leaf": 2},
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_large_trees_are_the_same_on_tables_of_their_own(options, near_rows, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 40, (5000, 4)).astype(np.uint8)  # 0 is missing
    positive = rng.random(5000) < 0.02 + 0.3 * (codes[:, 0] > 35) * (codes[:, 3] % 3 == 0)
    weights = rng.integers(1, 2**30, 5000)
    table = codes, weights, positive, np.array([0, 0, 0, 1], dtype=np.uint8)
    assert_same(
        grow_fast(*table, seed + 1, **options),
        grow_fast(*table, seed + 1, **options, near_rows=near_rows),
    )


def test_rows_move_with_their_weights_and_are_numbered_anew():
    codes = np.arange(30, dtype=np.uint8).reshape(10, 3)
    weights, rows = np.arange(10) * 100, np.array([2, 3, 9], dtype=np.uint32)
    block, own = np.zeros((5, 3), dtype=np.uint8), np.zeros(5, dtype=np.int64)
    move(codes, weights, rows, 1, block, own)
    np.testing.assert_array_equal(block[1:4], codes[[2, 3, 9]])
    assert own.tolist() == [0, 200, 300, 900, 0]
    assert rows.tolist() == [1, 2, 3]


def test_a_home_begins_where_the_one_around_it_ends():
    codes, weights = np.zeros((64, 1), dtype=np.uint8), np.ones(64, dtype=np.int64)
    room = room_for_homes(64, 0)
    block, own = np.zeros((room, 1), dtype=np.uint8), np.zeros(room, dtype=np.int64)
    homes, level, sizes = np.zeros((8, 3), dtype=np.int64), 0, [16, 4, 1]
    for floor, size in enumerate(sizes):
        rows = np.arange(size, dtype=np.uint32)
        level = settle(codes, weights, rows[1:], rows[:1], floor, homes, level, block, own)
    assert homes[1:4, [FLOOR, END, ROWS]].tolist() == [[0, 16, 16], [1, 20, 4], [2, 21, 1]]
    assert homes[level, END] <= room
